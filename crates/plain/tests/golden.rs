//! Every golden case of the operators (made by PyTorch, `crates/ops/tests/golden`), through the plain kernels on the
//! CPU device in strict memory with every detector. Files and cases are discovered.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use assay_ops::{OPS, Program};
use assay_plain::{Chain, Placement, Settings};
use assay_simt::Sanitize;
use assay_tensor::{Tensor, safetensors_io};
use common::runner;

struct Case {
    name: String,
    program: Program,
    scalars: BTreeMap<String, f64>,
    outputs: Vec<String>,
    /// How far float32 may lie from PyTorch's, in units of `f32::EPSILON` of the output's largest magnitude.
    ulp32: f64,
    inputs: BTreeMap<String, Tensor>,
    want: BTreeMap<String, Tensor>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops/tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .collect();
    files.sort();
    let mut out = Vec::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        let listed = metadata.metadata().as_ref().unwrap()["cases"].clone();
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
        let tensors = safetensors_io::read(&path).unwrap();
        for c in listed {
            let name = c["name"].as_str().unwrap();
            let part = |part: &str| -> BTreeMap<String, Tensor> {
                let prefix = format!("{name}/{part}/");
                let own = tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(&prefix)?, t)));
                own.map(|(n, t)| (n.to_owned(), t.clone())).collect()
            };
            let inputs = part("in");
            let scalars: BTreeMap<String, f64> = c["scalars"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(k, v)| (k.clone(), v.as_f64().unwrap()))
                .collect();
            let program = Program::parse(
                c["program"].as_str().unwrap(),
                &inputs.keys().map(String::as_str).collect::<Vec<_>>(),
                &scalars.keys().map(String::as_str).collect::<Vec<_>>(),
            );
            let outputs = c["outputs"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned());
            out.push(Case {
                name: format!("{}/{name}", path.file_stem().unwrap().to_string_lossy()),
                program: program.unwrap(),
                outputs: outputs.collect(),
                ulp32: c["ulp32"].as_f64().unwrap(),
                want: part("f32"),
                scalars,
                inputs,
            });
        }
    }
    assert!(!out.is_empty());
    out
}

fn run(case: &Case, placement: Placement) -> Result<Chain, String> {
    let settings = Settings { placement, sanitize: Sanitize::ALL, ..Settings::default() };
    let chain = runner().run(&case.program, &case.inputs, &case.scalars, &case.outputs, &settings);
    let chain = chain.map_err(|e| format!("{}: {e}", case.name))?;
    match chain.findings.first() {
        Some((op, f)) => Err(format!("{}: `{op}`: {}", case.name, f.message)),
        None => Ok(chain),
    }
}

/// Where and how `got` leaves the tolerance, if it does; integers and bools have none.
fn mismatch(got: &Tensor, want: &Tensor, tolerance: f64) -> Option<String> {
    if got.shape != want.shape || got.dtype != want.dtype {
        return Some(format!("{} {:?} instead of {} {:?}", got.dtype, got.shape, want.dtype, want.shape));
    }
    let (g, w) = (got.to_f64_vec(), want.to_f64_vec());
    let tolerance = if got.dtype.is_float() { tolerance } else { 0.0 };
    let largest = w.iter().filter(|x| x.is_finite()).fold(0.0f64, |m, x| m.max(x.abs()));
    g.iter()
        .zip(&w)
        .position(|(g, w)| {
            let close = w.is_finite() && (g - w).abs() <= tolerance * largest;
            !(close || g == w || (g.is_nan() && w.is_nan()))
        })
        .map(|i| format!("element {i} is {:e} instead of {:e} (largest magnitude {largest:e})", g[i], w[i]))
}

/// The cases with their chains over contiguous tensors.
fn contiguous() -> &'static [(Case, Result<Chain, String>)] {
    static RUNS: OnceLock<Vec<(Case, Result<Chain, String>)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        runner().prepare(OPS.iter().map(|op| op.name)).unwrap_or_else(|e| panic!("{e}"));
        let run_one = |c: Case| {
            let chain = run(&c, Placement::Contiguous);
            (c, chain)
        };
        cases().into_iter().map(run_one).collect()
    })
}

/// A kernel and PyTorch give two float32 results of one formula. A case's tolerance (8 units of `f32::EPSILON` of the
/// largest magnitude, more where a case says so) is what every accumulation order of the reference is held to against
/// PyTorch; the kernels add term by term, which is one of these orders, and call functions of the device library that
/// are as exact as PyTorch's, so they are held to the same.
#[test]
fn every_golden_case_agrees_with_pytorch() {
    let mut faults = Vec::new();
    for (case, chain) in contiguous() {
        match chain {
            Err(e) => faults.push(e.clone()),
            Ok(chain) => {
                for (name, got) in &chain.outputs {
                    let tolerance = case.ulp32 * f64::from(f32::EPSILON);
                    if let Some(m) = mismatch(got, &case.want[name], tolerance) {
                        faults.push(format!("{} `{name}`: {m}", case.name));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn strided_views_give_the_same_bits_as_contiguous_tensors() {
    let mut faults = Vec::new();
    for (case, chain) in contiguous() {
        match (chain, run(case, Placement::Strided)) {
            (Ok(a), Ok(b)) => {
                for (name, t) in &a.outputs {
                    if t.data != b.outputs[name].data {
                        faults.push(format!("{} `{name}` differs", case.name));
                    }
                }
            }
            (Ok(_), Err(e)) => faults.push(e),
            // The other test tells.
            (Err(_), _) => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_cases_launch_every_operators_kernel() {
    let seen: Vec<&str> = cases().iter().flat_map(|c| c.program.operators()).collect();
    let missing: Vec<&str> = OPS.iter().map(|op| op.name).filter(|n| !seen.contains(n)).collect();
    assert!(missing.is_empty(), "no golden case for {missing:?}");
}
