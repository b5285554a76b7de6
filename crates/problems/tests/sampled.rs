//! What is made or evaluated in part is what the whole has there, for every problem of the catalogue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use assay_ops::Variant;
use assay_ops::sampled::{Limits, Region, Sampling, Source, extents, for_rows, whole_region};
use assay_problems::{Extents, InputValues, Problem, Recipe, Root, discover};
use assay_tensor::Tensor;
use assay_tensor::philox::Stream;

fn all() -> Vec<Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems");
    let all = discover(&[] as &[&str], &Root::Folder(folder)).unwrap();
    assert!(all.len() >= 200, "{}", all.len());
    all
}

/// Inputs that are never made whole.
struct Lazy(BTreeMap<String, InputValues>);

impl Source for Lazy {
    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.0.get(name).map(|v| v.shape.clone())
    }

    fn read(&self, name: &str, region: &[Range<u64>]) -> Result<Tensor, String> {
        let values = self.0.get(name).ok_or("no such input")?;
        let size = values.dtype.size_bytes() as usize;
        let mut data = Vec::new();
        for_rows(&values.shape, region, |first, len| {
            let from = data.len();
            data.resize(from + len as usize * size, 0);
            values.fill(first, &mut data[from..]);
        });
        Tensor::from_bytes(values.dtype, &extents(region), data).map_err(|e| e.to_string())
    }
}

/// The last element, a corner of two in every dimension, and a random box.
fn boxes(shape: &[u64], seed: u64) -> Vec<Region> {
    let stream = Stream::new(seed, 1);
    let random = shape.iter().enumerate().map(|(d, &n)| {
        let at = stream.below_at(d as u64 * 2, n);
        at..at + 1 + stream.below_at(d as u64 * 2 + 1, n - at)
    });
    vec![
        shape.iter().map(|&n| n - 1..n).collect(),
        shape.iter().map(|&n| 0..n.min(2)).collect(),
        random.collect(),
    ]
}

/// Which NaN an element is is not promised.
fn bits(t: &Tensor, region: &[Range<u64>]) -> Vec<u64> {
    let mut out = Vec::new();
    for_rows(&t.shape, region, |first, len| {
        let elements = (first..first + len).map(|i| t.get_f64(i));
        out.extend(elements.map(|x| if x.is_nan() { f64::NAN } else { x }.to_bits()));
    });
    out
}

#[test]
fn a_part_of_an_input_is_that_part_of_the_whole_under_every_recipe() {
    let texts = [
        "official#3",
        "official*0.01+params#4",
        "rand#1",
        "normal(2)#1",
        "uniform(-1,3)#9",
        "ties(3)#1",
        "outlier(0.1,100)#2",
        "tiny(0.1)#2",
        "index(7)#0",
        "sparse(0.5)#5",
        "samesign(10)#6",
        "ramp#0",
        "loguniform(-2,2)#8",
        "alternating(3)#1",
        "spike(mid,50)#1",
        "shifted(5,1)#1",
        "constant(2)#0",
    ];
    let mut parts = 0;
    // Every kind of initialiser, dtype and structure is among these.
    for (k, p) in all().iter().enumerate() {
        // Structured ones meet every recipe, the others a third of them.
        let step = if p.inputs.iter().any(|i| i.structure.is_some()) { 1 } else { 3 };
        for text in texts.iter().skip(k % step).step_by(step) {
            let recipe = Recipe::parse(text).unwrap().with_dims(smallest(p));
            let whole = p.make_inputs(&recipe, Extents::Desk).unwrap();
            for (name, values) in p.input_values(&recipe, Extents::Desk).unwrap() {
                let t = &whole[&name];
                assert_eq!((values.dtype, &values.shape), (t.dtype, &t.shape));
                let size = t.dtype.size_bytes() as usize;
                for first in [0, 1, t.len() / 2, t.len().saturating_sub(9)] {
                    let count = 11.min(t.len() - first.min(t.len())) as usize;
                    let mut part = vec![0xee; count * size];
                    values.fill(first, &mut part);
                    let from = first as usize * size;
                    assert_eq!(part, t.data[from..from + part.len()], "{} {text} `{name}` {first}", p.key());
                    parts += 1;
                }
            }
        }
    }
    assert!(parts > 5000, "{parts}");
}

/// The smallest ragged shape.
fn smallest(p: &Problem) -> BTreeMap<String, u64> {
    p.ragged.iter().min_by_key(|s| s.values().product::<u64>()).cloned().unwrap_or_default()
}

fn sampling(p: &Problem, recipe: &Recipe) -> (Sampling, Lazy) {
    let source = Lazy(p.input_values(recipe, Extents::Desk).unwrap());
    let dims = p.dims_for(recipe, Extents::Desk).unwrap();
    let made = Sampling::new(&p.reference, &|n| source.shape(n), &p.reference_scalars(&dims));
    (made.unwrap_or_else(|e| panic!("{}: {e}", p.key())), source)
}

#[test]
fn boxes_of_every_reference_have_the_bits_of_the_whole() {
    let variants = [Variant::truth(), Variant::official(), Variant::ensemble()[6], Variant::held_out()[0]];
    for (k, p) in all().iter().enumerate() {
        let recipe = Recipe::official(1).with_dims(smallest(p));
        let (sampling, source) = sampling(p, &recipe);
        let dims = p.dims_for(&recipe, Extents::Desk).unwrap();
        let inputs = p.make_inputs(&recipe, Extents::Desk).unwrap();
        // The truth is what verdicts rest on; the others in turn.
        for variant in [&variants[0], &variants[1 + k % 3]] {
            let whole =
                p.reference.evaluate(&inputs, &p.reference_scalars(&dims), &p.outputs, variant).unwrap();
            for (name, want) in &whole {
                assert_eq!(sampling.shape(name).unwrap(), want.shape, "{} `{name}`", p.key());
                for region in boxes(&want.shape, k as u64) {
                    let got = sampling
                        .evaluate(&source, name, &region, variant, &Limits::default())
                        .unwrap_or_else(|e| panic!("{} `{name}` {region:?}: {e}", p.key()));
                    assert_eq!(got.dtype, want.dtype);
                    let same = bits(&got, &whole_region(&got.shape)) == bits(want, &region);
                    assert!(same, "{} `{name}` {region:?} in {variant}", p.key());
                }
            }
        }
    }
}

#[test]
fn every_reference_has_its_shapes_at_official_extents_without_a_tensor_being_made() {
    for p in &all() {
        let recipe = Recipe::official(0);
        let dims = p.dims_for(&recipe, Extents::Official).unwrap();
        let values = p.input_values(&recipe, Extents::Official).unwrap();
        let shape_of = |n: &str| values.get(n).map(|v| v.shape.clone());
        let sampling = Sampling::new(&p.reference, &shape_of, &p.reference_scalars(&dims))
            .unwrap_or_else(|e| panic!("{}: {e}", p.key()));
        for name in &p.outputs {
            let shape = sampling.shape(name).unwrap();
            if let Some(stated) = p.output_shape(name, &dims).unwrap() {
                assert_eq!(shape, stated, "{} `{name}`", p.key());
            }
        }
    }
}
