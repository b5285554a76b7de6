//! `assay-extension FILE.json`: builds extensions and calls their functions on plausible tensors, to see what the
//! interpreter lacks.
//!
//! The file holds a list of `{"name", "cpp": […], "cuda": […], "functions": […], "flags": […]}`. Prints a line per
//! module: how its build and its calls ended; then the counts. Tensors are small and all ones, so that a fault or an
//! exception may be the function's right answer to them.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use assay_extension::{Device, ExtensionError, Library, Module, Run, Sources, Tensor, Value};
use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand};
use assay_tensor::DType;
use serde_json::Value as Json;

/// Answers every operation with its first tensor.
struct Echo;

impl Library for Echo {
    fn call(&mut self, name: &str, args: &[Value], _: &[(String, Value)]) -> Result<Value, ExtensionError> {
        match args.iter().find(|a| matches!(a, Value::Tensor(_))) {
            Some(v) => Ok(v.clone()),
            None => Err(ExtensionError::Unsupported {
                construct: format!("`{name}` without PyTorch"),
                line: None,
            }),
        }
    }
}

fn strings(v: &Json) -> Vec<String> {
    match v {
        Json::String(s) => vec![s.clone()],
        Json::Array(a) => a.iter().filter_map(|s| s.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn kind(e: &ExtensionError) -> &'static str {
    match e {
        ExtensionError::Rejected { .. } => "rejected",
        ExtensionError::Unsupported { .. } => "unsupported",
        ExtensionError::Raised { .. } => "raised",
        ExtensionError::Fault { .. } => "fault",
        ExtensionError::Exhausted { .. } => "exhausted",
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let first = args.next().unwrap_or_default();
    if first == "__compile-worker" {
        assay_nvrtc::worker_main();
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["__compile-worker".into()] };
    let install = Install::locate(&worker)?;
    let compiler = Arc::new(Compiler::new(install, worker, 1, Limits::default()));
    let list: Vec<Json> = serde_json::from_str(&std::fs::read_to_string(&first)?)?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &list {
        let name = entry["name"].as_str().unwrap_or("?");
        let sources = Sources {
            cpp: strings(&entry["cpp"]),
            cuda: strings(&entry["cuda"]),
            functions: strings(&entry["functions"]),
            cuda_flags: strings(&entry["flags"]),
        };
        let mut module = match Module::build(&sources, &compiler) {
            Ok(m) => m,
            Err(e) => {
                println!("{name}: build {}: {e}", kind(&e));
                *counts.entry(format!("build {}", kind(&e))).or_default() += 1;
                continue;
            }
        };
        *counts.entry("build ok".into()).or_default() += 1;
        let functions: Vec<String> = module.functions().map(str::to_owned).collect();
        for f in functions {
            let (how, text) = attempt(&mut module, &f);
            println!("{name}: {f}: {how}: {text}");
            *counts.entry(format!("call {how}")).or_default() += 1;
        }
    }
    for (k, n) in counts {
        println!("{n:6} {k}");
    }
    Ok(())
}

/// Calls a function with as many arguments as it takes, on shapes and dtypes tried in order until one passes its checks.
fn attempt(module: &mut Module, function: &str) -> (&'static str, String) {
    const SHAPES: [&[u64]; 6] = [&[8, 16, 16], &[4, 4, 8, 8], &[16, 16], &[2, 4, 4, 6, 6], &[64], &[1]];
    let mut last = ("raised", "no parameters".to_owned());
    for params in module.parameters(function) {
        for (dtype, shape) in
            [DType::F32, DType::I64, DType::Bool].iter().flat_map(|d| SHAPES.map(|s| (*d, s)))
        {
            let (how, text) = once(module, function, &params, dtype, shape);
            if how == "ok" {
                return (how, text);
            }
            if last.0 == "raised" || how != "raised" {
                last = (how, text);
            }
            if how == "unsupported" {
                return last;
            }
        }
    }
    last
}

fn once(
    module: &mut Module,
    function: &str,
    params: &[String],
    dtype: DType,
    shape: &[u64],
) -> (&'static str, String) {
    let tensor = |dtype: DType| {
        let n = shape.iter().product::<u64>() as usize;
        let one = match dtype {
            DType::F32 => 1f32.to_le_bytes().to_vec(),
            DType::I64 => 1i64.to_le_bytes().to_vec(),
            _ => vec![1],
        };
        let bytes = std::iter::repeat_n(one, n).flatten().collect();
        Tensor::from_bytes(dtype, shape, Device::Cuda, bytes).map_or(Value::None, Value::Tensor)
    };
    let tensors = params.iter().filter(|p| p.ends_with("Tensor")).count();
    let mut seen = 0;
    let args: Vec<Value> = params
        .iter()
        .map(|p| match p.as_str() {
            "float" | "double" | "at::Scalar" => Value::Float(0.5),
            "bool" => Value::Bool(true),
            p if p.starts_with("std::vector<torch::Tensor") => Value::List(vec![tensor(DType::F32)]),
            p if p.starts_with("std::vector") => Value::List(vec![Value::Int(1), Value::Int(1)]),
            p if p.contains("int") || p.contains("long") => Value::Int(1),
            "std::string" => Value::Str("none".into()),
            _ => {
                seen += 1;
                // Labels and masks come last.
                tensor(if seen == tensors { dtype } else { DType::F32 })
            }
        })
        .collect();
    let mut run = Run { instructions: 5_000_000, ..Run::default() };
    match module.call(function, args, Vec::new(), &mut run, &mut Echo) {
        Ok(_) => ("ok", format!("{} launches", run.launches())),
        Err(e) => (kind(&e), e.to_string()),
    }
}
