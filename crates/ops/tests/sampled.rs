//! Boxes of outputs have the bits of the whole: every golden case, several boxes, every variant in turn.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use assay_ops::sampled::{Limits, Region, SampleError, Sampling, Source, for_rows, region_len, whole_region};
use assay_ops::{Program, Variant};
use assay_tensor::philox::Stream;
use assay_tensor::{DType, Generator, Tensor, numel};
use common::{cases, golden_files, parse};

/// Every way of computing that has a name.
fn variants() -> Vec<Variant> {
    let all = Variant::ensemble().iter().chain(Variant::held_out()).copied();
    all.chain([Variant::truth()]).collect()
}

/// Boxes worth a look: everything, the first and last element, the two ends of every dimension, random ones.
fn boxes_of(shape: &[u64], seed: u64) -> Vec<Region> {
    let mut out = vec![
        whole_region(shape),
        shape.iter().map(|_| 0..1).collect(),
        shape.iter().map(|&n| n - 1..n).collect(),
    ];
    for (d, &n) in shape.iter().enumerate() {
        for part in [0..n.div_ceil(2), n / 2..n] {
            let mut r = whole_region(shape);
            r[d] = part;
            out.push(r);
        }
    }
    let stream = Stream::new(seed, 0);
    for k in 0..6u64 {
        let range = |(d, &n): (usize, &u64)| {
            let at = stream.below_at(k * 64 + d as u64 * 2, n);
            at..at + 1 + stream.below_at(k * 64 + d as u64 * 2 + 1, n - at)
        };
        out.push(shape.iter().enumerate().map(range).collect());
    }
    out
}

/// The elements of a box; which NaN it is is not promised.
fn elements(t: &Tensor, region: &[Range<u64>]) -> Vec<u64> {
    let mut out = Vec::new();
    for_rows(&t.shape, region, |first, len| {
        out.extend((first..first + len).map(|i| {
            let x = t.get_f64(i);
            if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
        }));
    });
    out
}

#[test]
fn a_box_of_every_golden_case_has_the_bits_of_the_whole() {
    let (variants, mut seen, mut boxes) = (variants(), BTreeSet::new(), 0u64);
    let mut wrong = Vec::new();
    for (k, case) in golden_files().iter().flat_map(|f| cases(f)).enumerate() {
        let program = parse(&case);
        seen.extend(program.operators());
        let shape_of = |name: &str| case.inputs.shape(name);
        let sampling = Sampling::new(&program, &shape_of, &case.scalars)
            .unwrap_or_else(|e| panic!("{}: {e}", case.name));
        // Every variant meets every family of operators, and the truth every case.
        for variant in [&variants[k % variants.len()], &variants[variants.len() - 1]] {
            let whole = program.evaluate(&case.inputs, &case.scalars, &case.outputs, variant).unwrap();
            for (name, want) in &whole {
                let shape = sampling.shape(name).unwrap();
                assert_eq!(shape, want.shape, "{} `{name}`", case.name);
                if numel(shape) == Some(0) {
                    continue;
                }
                for region in boxes_of(shape, k as u64) {
                    boxes += 1;
                    let got = sampling.evaluate(&case.inputs, name, &region, variant, &Limits::default());
                    match got {
                        Ok(got) if got.dtype == want.dtype => {
                            if elements(&got, &whole_region(&got.shape)) != elements(want, &region) {
                                wrong.push(format!("{} ({variant}) `{name}` {region:?}: bits", case.name));
                            }
                        }
                        Ok(got) => wrong.push(format!("{} `{name}`: {}", case.name, got.dtype)),
                        Err(e) => wrong.push(format!("{} ({variant}) `{name}` {region:?}: {e}", case.name)),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {boxes} boxes:\n{}", wrong.len(), wrong.join("\n"));
    let missing: Vec<&str> = assay_ops::OPS.iter().map(|op| op.name).filter(|n| !seen.contains(n)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

/// Inputs of any size whose element `i` is the hash of `i`, with a count of what was read.
struct Lazy {
    shapes: BTreeMap<&'static str, Vec<u64>>,
    read: std::cell::Cell<u64>,
}

impl Source for Lazy {
    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.shapes.get(name).cloned()
    }

    fn read(&self, name: &str, region: &[Range<u64>]) -> Result<Tensor, String> {
        let shape = self.shape(name).ok_or("none")?;
        let mut data = Vec::new();
        for_rows(&shape, region, |first, len| {
            let from = data.len();
            data.resize(from + len as usize * 4, 0);
            Generator::Hash.fill_at(DType::F32, first, &mut data[from..]);
        });
        self.read.set(self.read.get() + data.len() as u64 / 4);
        let shape: Vec<u64> = region.iter().map(|r| r.end - r.start).collect();
        Tensor::from_bytes(DType::F32, &shape, data).map_err(|e| e.to_string())
    }
}

fn lazy(text: &str, shapes: &[(&'static str, &[u64])]) -> (Sampling, Lazy) {
    let source = Lazy {
        shapes: shapes.iter().map(|(n, s)| (*n, s.to_vec())).collect(),
        read: std::cell::Cell::new(0),
    };
    let names: Vec<&str> = shapes.iter().map(|(n, _)| *n).collect();
    let program = Program::parse(text, &names, &[]).unwrap();
    let sampling = Sampling::new(&program, &|n| source.shape(n), &BTreeMap::new()).unwrap();
    (sampling, source)
}

#[test]
fn a_product_of_matrices_beyond_memory_reads_rows_and_columns_alone() {
    // 2^40 outputs out of two inputs of 2^33 elements each.
    let (m, k, n) = (1u64 << 20, 1u64 << 13, 1u64 << 20);
    let (sampling, source) = lazy("y = relu(a @ b)", &[("a", &[m, k]), ("b", &[k, n])]);
    assert_eq!(sampling.shape("y").unwrap(), [m, n]);
    let region = vec![m - 2..m, n - 3..n];
    let got = sampling.evaluate(&source, "y", &region, &Variant::truth(), &Limits::default()).unwrap();
    assert_eq!(source.read.get(), 5 * k);
    let h = |i: u64| f64::from(Generator::Hash.value_at(i) as f32);
    for (j, got) in got.to_f64_vec().into_iter().enumerate() {
        let (row, column) = (m - 2 + j as u64 / 3, n - 3 + j as u64 % 3);
        let want: f64 = (0..k).map(|t| h(row * k + t) * h(t * n + column)).sum();
        assert!((got - want.max(0.0)).abs() < 1e-9, "{row} {column}: {got} for {want}");
    }
}

#[test]
fn a_chain_over_more_than_2_to_the_32_elements_costs_its_box_alone() {
    let text = "h = conv2d(x, w, stride=2, padding=1)\nh = max_pool2d(gelu(h), 3, stride=2, padding=1)\n\
                y = flatten(permute(softmax(h, 1), (0, 2, 3, 1)), 1, 2)";
    let (sampling, source) = lazy(text, &[("x", &[9000, 3, 512, 512]), ("w", &[16, 3, 5, 5])]);
    // The convolution gives 255 x 255, the pooling 128 x 128.
    assert_eq!(sampling.shape("y").unwrap(), [9000, 128 * 128, 16]);
    let region = vec![8999..9000, 16383..16384, 0..16];
    let got = sampling.evaluate(&source, "y", &region, &Variant::official(), &Limits::default()).unwrap();
    let sum: f64 = got.to_f64_vec().iter().sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    assert!(source.read.get() < 2000, "{}", source.read.get());
}

#[test]
fn what_needs_everything_is_not_sampleable_and_says_what_needs_it() {
    let (sampling, source) =
        lazy("y = mse_loss(relu(x), t)", &[("x", &[1 << 16, 1 << 16]), ("t", &[1 << 16, 1])]);
    let got = sampling.evaluate(&source, "y", &[], &Variant::truth(), &Limits::default());
    let Err(SampleError::NotSampleable { what, elements, .. }) = got else { panic!("{got:?}") };
    assert_eq!((what.as_str(), elements), ("input `x`", 1 << 32));
    assert_eq!(source.read.get(), 0, "nothing is read in vain");
    assert_eq!(sampling.needs("y", &[]).unwrap(), 1 << 32);
}

#[test]
fn a_box_outside_and_an_empty_one_are_refused() {
    let (sampling, source) = lazy("y = relu(x)", &[("x", &[4, 5])]);
    for region in [vec![0..4, 2..6], vec![1..1, 0..5], vec![0..4, 0..5, 0..1]] {
        let got = sampling.evaluate(&source, "y", &region, &Variant::truth(), &Limits::default());
        assert!(matches!(got, Err(SampleError::Region { .. })), "{region:?}: {got:?}");
        assert!(region_len(&region).is_some());
    }
    let unknown = sampling.evaluate(&source, "z", &[], &Variant::truth(), &Limits::default());
    assert!(matches!(unknown, Err(SampleError::Ops(_))), "{unknown:?}");
}

#[test]
fn shapes_that_disagree_are_refused_before_anything_is_read() {
    let refused = [
        ("y = x @ t", [vec![4, 5], vec![4, 5]]),
        ("y = x + t", [vec![4, 5], vec![4, 3]]),
        ("y = linear(x, t)", [vec![4, 5], vec![3, 4]]),
        ("y = conv1d(x, t)", [vec![1, 3, 8], vec![2, 4, 3]]),
        ("y = reshape(x, (3, -1))", [vec![4, 5], vec![1]]),
        ("y = cat((x, t), 0)", [vec![4, 5], vec![4, 6]]),
        ("y = einsum('ij,jk->ik', (x, t))", [vec![4, 5], vec![6, 5]]),
        ("y = max_pool1d(x, 9)", [vec![1, 3, 8], vec![1]]),
    ];
    for (text, [x, t]) in refused {
        let program = Program::parse(text, &["x", "t"], &[]).unwrap();
        let shapes = BTreeMap::from([("x", x), ("t", t)]);
        let got = Sampling::new(&program, &|n| shapes.get(n).cloned(), &BTreeMap::new());
        assert!(got.is_err(), "{text}");
    }
}
