//! Every case in `golden/*.safetensors` (made by PyTorch, see `golden/make_golden.py`), through the language, in
//! float64 and float32. Files and cases are discovered.

mod common;

use assay_ops::{OPS, Precision, Variant};
use assay_tensor::{Tensor, safetensors_io};
use common::{cases, golden_files, parse};

/// A float64 result may differ from PyTorch's by this much relative to the output's largest magnitude.
const F64_TOLERANCE: f64 = 1e-12;

/// Where and how `got` leaves the tolerance, if it does.
fn mismatch(got: &Tensor, want: &Tensor, tolerance: f64) -> Option<String> {
    if got.shape != want.shape || got.dtype != want.dtype {
        return Some(format!("{} {:?} instead of {} {:?}", got.dtype, got.shape, want.dtype, want.shape));
    }
    let (g, w) = (got.to_f64_vec(), want.to_f64_vec());
    let largest = w.iter().filter(|x| x.is_finite()).fold(0.0f64, |m, x| m.max(x.abs()));
    for (i, (&g, &w)) in g.iter().zip(&w).enumerate() {
        let same = if w.is_finite() {
            (g - w).abs() <= tolerance * largest
        } else {
            g == w || (g.is_nan() && w.is_nan())
        };
        if !same {
            return Some(format!("element {i} is {g:e} instead of {w:e} (largest magnitude {largest:e})"));
        }
    }
    None
}

fn faults(variant: &Variant) -> Vec<String> {
    let mut out = Vec::new();
    for case in golden_files().iter().flat_map(|f| cases(f)) {
        let got = match parse(&case).evaluate(&case.inputs, &case.scalars, &case.outputs, variant) {
            Ok(got) => got,
            Err(e) => {
                out.push(format!("{} ({variant}): {e}", case.name));
                continue;
            }
        };
        let (want, tolerance) = match variant.precision {
            Precision::F64 => (&case.f64, F64_TOLERANCE),
            Precision::F32 => (&case.f32, case.ulp32 * f64::from(f32::EPSILON)),
        };
        for (name, tensor) in &got {
            if let Some(m) = mismatch(tensor, &want[name], tolerance) {
                out.push(format!("{} ({variant}) `{name}`: {m}", case.name));
            }
        }
    }
    out
}

#[test]
fn float64_agrees_with_pytorch() {
    let all = faults(&Variant::truth());
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn float32_agrees_with_pytorch_in_every_variant() {
    let mut all = Vec::new();
    for v in Variant::ensemble().iter().chain(Variant::held_out()) {
        all.extend(faults(v));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn every_operator_has_a_golden_case() {
    let mut seen = std::collections::BTreeSet::new();
    for case in golden_files().iter().flat_map(|f| cases(f)) {
        seen.extend(parse(&case).operators());
    }
    let missing: Vec<&str> = OPS.iter().map(|op| op.name).filter(|n| !seen.contains(n)).collect();
    assert!(missing.is_empty(), "no golden case for {missing:?}");
}

#[test]
fn golden_files_name_no_unknown_case() {
    for path in golden_files() {
        let known: Vec<String> = cases(&path)
            .iter()
            .map(|c| c.name.split_once('/').map_or(String::new(), |(_, n)| n.to_owned()))
            .collect();
        for tensor in safetensors_io::read(&path).unwrap().keys() {
            let owner = tensor.split('/').next().unwrap_or_default();
            assert!(known.iter().any(|k| k == owner), "{}: `{tensor}` belongs to no case", path.display());
        }
    }
}

/// SHA-256 over every golden output in every variant, one line each.
fn digests() -> String {
    let mut out = String::new();
    let truth = Variant::truth();
    for v in Variant::ensemble().iter().chain(Variant::held_out()).chain([&truth]) {
        for case in golden_files().iter().flat_map(|f| cases(f)) {
            let got = parse(&case).evaluate(&case.inputs, &case.scalars, &case.outputs, v).unwrap();
            for (name, t) in got {
                // Which NaN comes out of an operation is not ours to promise.
                let bytes: Vec<f64> =
                    t.to_f64_vec().iter().map(|&x| if x.is_nan() { f64::NAN } else { x }).collect();
                let canonical = Tensor::from_f64(&t.shape, &bytes).unwrap();
                out.push_str(&format!("DIGEST {} {v} {name} {}\n", case.name, canonical.sha256_hex()));
            }
        }
    }
    out
}

#[test]
#[ignore = "prints for `portable_and_vector_code_give_the_same_bits`, which runs it in a process of its own"]
fn print_digests() {
    println!("{}", digests());
}

#[test]
fn portable_and_vector_code_give_the_same_bits() {
    let portable = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "print_digests", "--ignored", "--nocapture"])
        .env("ASSAY_SIMD", "portable")
        .output()
        .unwrap();
    let text = String::from_utf8(portable.stdout).unwrap();
    let lines = |s: &str| -> Vec<String> {
        s.lines().filter_map(|l| l.find("DIGEST").map(|i| l[i..].to_owned())).collect()
    };
    let (portable, here) = (lines(&text), lines(&digests()));
    assert!(!here.is_empty());
    let first = here.iter().zip(&portable).find(|(a, b)| a != b);
    assert_eq!(first, None);
    assert_eq!(here.len(), portable.len());
}
