//! The cases of `testdata/extension`: a CUDA text, and what its functions give.
//!
//! Beside each `NAME.cu` lies a `NAME.toml` with the C++ text, the functions, and the calls: arguments, then the result or
//! how the call ends. A tensor is a table of dtype, shape (and strides), data as it lies, and device.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use assay_extension::{Device, ExtensionError, Library, Module, Run, Sources, Tensor, Value};
use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand};
use assay_simt::{Fill, Sanitize};
use assay_tensor::DType;
use serde::Deserialize;
use toml::Value as Toml;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[expect(dead_code, reason = "for the reader")]
    about: String,
    #[serde(default)]
    cpp: String,
    #[serde(default)]
    functions: Vec<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "why `crates/submit/tests/differential.rs` does not compile it")]
    interpreted_only: Option<String>,
    build: Option<Ending>,
    #[serde(default)]
    call: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ending {
    error: String,
    message: String,
    line: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    function: String,
    args: Vec<Toml>,
    #[serde(default)]
    kwargs: toml::Table,
    fill: Option<String>,
    result: Option<Toml>,
    error: Option<String>,
    message: Option<String>,
    line: Option<u32>,
    #[serde(default)]
    findings: Vec<Seen>,
    launches: Option<u64>,
    operations: Option<Vec<String>>,
    /// The arguments afterwards.
    after: Option<Vec<Toml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    kind: String,
    line: Option<u32>,
    buffer: Option<String>,
}

/// PyTorch for tests: a few operations in float64.
struct Few;

fn numbers(t: &Tensor) -> Vec<f64> {
    let size = t.dtype.size_bytes() as usize;
    t.gather()
        .chunks_exact(size)
        .map(|c| match t.dtype {
            DType::F32 => f64::from(f32::from_le_bytes(c.try_into().unwrap())),
            DType::F64 => f64::from_le_bytes(c.try_into().unwrap()),
            DType::F16 => f64::from(half::f16::from_le_bytes(c.try_into().unwrap())),
            DType::I32 => f64::from(i32::from_le_bytes(c.try_into().unwrap())),
            DType::I64 => i64::from_le_bytes(c.try_into().unwrap()) as f64,
            DType::Bool => f64::from(c[0]),
            other => panic!("a test with {other}"),
        })
        .collect()
}

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|v| match dtype {
            DType::F32 => (*v as f32).to_le_bytes().to_vec(),
            DType::F64 => v.to_le_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(*v).to_le_bytes().to_vec(),
            DType::I32 => (*v as i32).to_le_bytes().to_vec(),
            DType::I64 => (*v as i64).to_le_bytes().to_vec(),
            DType::Bool => vec![u8::from(*v != 0.0)],
            other => panic!("a test with {other}"),
        })
        .collect()
}

impl Library for Few {
    fn call(&mut self, name: &str, args: &[Value], _: &[(String, Value)]) -> Result<Value, ExtensionError> {
        let unsupported =
            || Err(ExtensionError::Unsupported { construct: format!("the operation `{name}`"), line: None });
        let Some(Value::Tensor(a)) = args.first() else { return unsupported() };
        let x = numbers(a);
        let out = |sizes: &[u64], v: &[f64]| {
            Ok(Value::Tensor(
                Tensor::from_bytes(a.dtype, sizes, a.device, bytes(a.dtype, v)).expect("sizes fit"),
            ))
        };
        let right = match args.get(1) {
            Some(Value::Tensor(b)) => numbers(b),
            Some(Value::Float(v)) => vec![*v],
            Some(Value::Int(v)) => vec![*v as f64],
            _ => Vec::new(),
        };
        let each = |f: fn(f64, f64) -> f64| {
            let v: Vec<f64> = x.iter().enumerate().map(|(i, x)| f(*x, right[i % right.len()])).collect();
            out(&a.sizes, &v)
        };
        match name {
            "sum" => out(&[], &[x.iter().sum()]),
            "add" => each(|a, b| a + b),
            "mul" => each(|a, b| a * b),
            "mm" => {
                let Some(Value::Tensor(b)) = args.get(1) else { return unsupported() };
                let (m, k, n) = (a.sizes[0], a.sizes[1], b.sizes[1]);
                let mut v = Vec::new();
                for i in 0..m {
                    for j in 0..n {
                        v.push((0..k).map(|l| x[(i * k + l) as usize] * right[(l * n + j) as usize]).sum());
                    }
                }
                out(&[m, n], &v)
            }
            _ => unsupported(),
        }
    }
}

fn compiler() -> &'static Arc<Compiler> {
    static COMPILER: OnceLock<Arc<Compiler>> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let worker = WorkerCommand {
            program: env!("CARGO_BIN_EXE_assay-extension").into(),
            args: vec!["__compile-worker".into()],
        };
        let install = Install::locate_or_install(&worker, &mut |_| ())
            .unwrap_or_else(|e| panic!("NVRTC is needed: {e}"));
        Arc::new(Compiler::new(install, worker, 2, Limits::default()))
    })
}

fn value(v: &Toml) -> Value {
    match v {
        Toml::Integer(i) => Value::Int(*i),
        Toml::Float(f) => Value::Float(*f),
        Toml::Boolean(b) => Value::Bool(*b),
        Toml::String(s) if s == "none" => Value::None,
        Toml::String(s) => Value::Str(s.clone()),
        Toml::Array(a) => Value::List(a.iter().map(value).collect()),
        Toml::Table(t) if t.contains_key("list") => {
            Value::List(t["list"].as_array().unwrap().iter().map(value).collect())
        }
        Toml::Table(t) if t.contains_key("tuple") => {
            Value::Tuple(t["tuple"].as_array().unwrap().iter().map(value).collect())
        }
        Toml::Table(t) => {
            let ints = |k: &str| -> Option<Vec<u64>> {
                let list = t.get(k)?.as_array()?;
                Some(list.iter().map(|i| i.as_integer().unwrap() as u64).collect())
            };
            let dtype: DType = t["dtype"].as_str().unwrap().parse().unwrap();
            let data: Vec<f64> = t["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_float().unwrap_or_else(|| v.as_integer().unwrap() as f64))
                .collect();
            let device = if t.get("device").and_then(Toml::as_str) == Some("cpu") {
                Device::Cpu
            } else {
                Device::Cuda
            };
            let sizes = ints("shape").unwrap();
            let mut tensor =
                Tensor::from_bytes(dtype, &sizes, device, bytes(dtype, &data)).expect("data fit shape");
            if let Some(strides) = ints("strides") {
                tensor.strides = strides;
            }
            Value::Tensor(tensor)
        }
        Toml::Datetime(_) => panic!("a date is no argument"),
    }
}

fn text(v: &Value) -> String {
    match v {
        Value::Tensor(t) => format!("{} {:?} {:?}", t.dtype, t.sizes, numbers(t)),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join("; ")),
        Value::Tuple(items) => format!("({})", items.iter().map(text).collect::<Vec<_>>().join("; ")),
        other => format!("{other:?}"),
    }
}

fn ending(e: &ExtensionError) -> (&'static str, Option<u32>) {
    match e {
        ExtensionError::Rejected { line, .. } => ("rejected", *line),
        ExtensionError::Unsupported { line, .. } => ("unsupported", *line),
        ExtensionError::Raised { line, .. } => ("raised", *line),
        ExtensionError::Fault { line, .. } => ("fault", *line),
        ExtensionError::Exhausted { line, .. } => ("exhausted", *line),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/extension")
}

/// What is wrong with a case; empty if nothing.
fn check(name: &str) -> Vec<String> {
    let read = |ext: &str| std::fs::read_to_string(folder().join(format!("{name}.{ext}"))).unwrap();
    let case: Case = toml::from_str(&read("toml")).unwrap_or_else(|e| panic!("{name}.toml: {e}"));
    let sources = Sources {
        cpp: vec![case.cpp.clone()],
        cuda: vec![read("cu")],
        functions: case.functions.clone(),
        cuda_flags: Vec::new(),
    };
    let mut wrong = Vec::new();
    let mut module = match (Module::build(&sources, compiler()), &case.build) {
        (Ok(m), None) => m,
        (Ok(_), Some(_)) => return vec![format!("{name}: builds")],
        (Err(e), None) => return vec![format!("{name}: does not build: {e}")],
        (Err(e), Some(want)) => {
            let (kind, line) = ending(&e);
            if kind != want.error || !e.to_string().contains(&want.message) || line != want.line {
                return vec![format!("{name}: build: {kind} at {line:?}: {e}")];
            }
            return Vec::new();
        }
    };
    for (k, call) in case.call.iter().enumerate() {
        let at = format!("{name}: call {} of `{}`", k + 1, call.function);
        let args: Vec<Value> = call.args.iter().map(value).collect();
        let kwargs = call.kwargs.iter().map(|(n, v)| (n.clone(), value(v))).collect();
        let mut run = Run {
            sanitize: Sanitize::ALL,
            instructions: 2_000_000,
            host_steps: 200_000,
            fill: if call.fill.as_deref() == Some("zeros") { Fill::Zeros } else { Fill::Noise },
            ..Run::default()
        };
        let got = module.call(&call.function, args.clone(), kwargs, &mut run, &mut Few);
        match (&got, &call.result, &call.error) {
            (Ok(v), Some(want), None) => {
                let want = text(&value(want));
                if text(v) != want {
                    wrong.push(format!("{at}: {} and not {want}", text(v)));
                }
            }
            (Err(e), None, Some(want)) => {
                let (kind, line) = ending(e);
                let says = call.message.as_deref().is_none_or(|m| e.to_string().contains(m));
                if kind != want || !says || (call.line.is_some() && line != call.line) {
                    wrong.push(format!("{at}: {kind} at {line:?}: {e}"));
                }
            }
            (Ok(v), ..) => wrong.push(format!("{at}: gives {}", text(v))),
            (Err(e), ..) => wrong.push(format!("{at}: {}: {e}", ending(e).0)),
        }
        let found: Vec<String> =
            run.findings.iter().map(|f| format!("{} {:?} {:?}", f.kind, f.line, f.buffer)).collect();
        let as_wanted = run.findings.len() == call.findings.len()
            && run.findings.iter().zip(&call.findings).all(|(f, w)| {
                f.kind.name() == w.kind
                    && (w.line.is_none() || f.line == w.line)
                    && (w.buffer.is_none() || f.buffer == w.buffer)
            });
        if !as_wanted {
            wrong.push(format!("{at}: findings {found:?}"));
        }
        if call.launches.is_some_and(|n| n != run.launches()) {
            wrong.push(format!("{at}: {} launches", run.launches()));
        }
        if let Some(want) = &call.operations
            && *want != run.operations.keys().cloned().collect::<Vec<_>>()
        {
            wrong.push(format!("{at}: operations {:?}", run.operations));
        }
        for (a, want) in args.iter().zip(call.after.iter().flatten()) {
            if text(a) != text(&value(want)) {
                wrong.push(format!("{at}: an argument is {} afterwards", text(a)));
            }
        }
    }
    wrong
}

#[test]
fn every_case_gives_what_it_says() {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        for ext in ["cu", "toml"] {
            assert!(folder().join(format!("{stem}.{ext}")).is_file(), "`{stem}` has no .{ext}");
        }
        names.insert(stem);
    }
    assert!(names.len() > 15, "the cases are not there");
    let wrong: Vec<String> = names.iter().flat_map(|n| check(n)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Texts that no compiler takes end in an error, never in a panic, and soon.
#[test]
fn arbitrary_text_ends_in_an_answer() {
    let deep = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    let bodies = [
        format!("return {};", deep("(", ")", 5000)),
        format!("return {};", deep("f(", ")", 5000)),
        format!("return {};", "1+".repeat(20_000) + "1"),
        format!("return {};", "-".repeat(20_000) + "1"),
        "{".repeat(5000) + &"}".repeat(5000),
        "if (1) ".repeat(5000) + ";",
        format!("auto x = {};", deep("std::vector<", ">()", 2000)),
        format!("auto f = {};", deep("[&] { return ", "; }", 1000)),
        format!("x{};", ".a".repeat(20_000)),
        "return \u{fffd}\u{0} 'x \"y".to_owned(),
        "k<<<1".to_owned(),
        "for (;;".to_owned(),
        "switch (1) { case".to_owned(),
        "int a[".to_owned(),
        "template<".to_owned(),
    ];
    for body in bodies {
        let sources = Sources {
            cpp: vec!["int f(int n);".into()],
            cuda: vec![format!("int f(int n) {{ {body} }}")],
            functions: vec!["f".into()],
            cuda_flags: Vec::new(),
        };
        if let Ok(mut m) = Module::build(&sources, compiler()) {
            let mut run = Run { host_steps: 100_000, ..Run::default() };
            let _ = m.call("f", vec![Value::Int(1)], Vec::new(), &mut run, &mut Few);
        }
    }
}
