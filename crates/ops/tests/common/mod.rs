//! The cases in `golden/*.safetensors`, made by PyTorch (see `golden/make_golden.py`). Files and cases are discovered.
#![allow(dead_code, reason = "every test uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_ops::Program;
use assay_tensor::{Tensor, safetensors_io};

pub struct Case {
    pub name: String,
    pub program: String,
    pub scalars: BTreeMap<String, f64>,
    pub outputs: Vec<String>,
    pub ulp32: f64,
    pub inputs: BTreeMap<String, Tensor>,
    pub f64: BTreeMap<String, Tensor>,
    pub f32: BTreeMap<String, Tensor>,
}

pub fn golden_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

pub fn cases(path: &Path) -> Vec<Case> {
    let bytes = std::fs::read(path).unwrap();
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let listed = metadata.metadata().as_ref().unwrap()["cases"].clone();
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    let tensors = safetensors_io::read(path).unwrap();
    let family = path.file_stem().unwrap().to_string_lossy().into_owned();
    let part = |case: &str, part: &str| -> BTreeMap<String, Tensor> {
        let prefix = format!("{case}/{part}/");
        tensors
            .iter()
            .filter_map(|(k, t)| k.strip_prefix(&prefix).map(|n| (n.to_owned(), t.clone())))
            .collect()
    };
    listed
        .into_iter()
        .map(|c| {
            let name = c["name"].as_str().unwrap();
            Case {
                inputs: part(name, "in"),
                f64: part(name, "f64"),
                f32: part(name, "f32"),
                program: c["program"].as_str().unwrap().to_owned(),
                scalars: c["scalars"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(k, v)| (k.clone(), v.as_f64().unwrap()))
                    .collect(),
                outputs: c["outputs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_str().unwrap().to_owned())
                    .collect(),
                ulp32: c["ulp32"].as_f64().unwrap(),
                name: format!("{family}/{name}"),
            }
        })
        .collect()
}

pub fn parse(case: &Case) -> Program {
    let inputs: Vec<&str> = case.inputs.keys().map(String::as_str).collect();
    let scalars: Vec<&str> = case.scalars.keys().map(String::as_str).collect();
    Program::parse(&case.program, &inputs, &scalars).unwrap_or_else(|e| panic!("{}: {e}", case.name))
}
