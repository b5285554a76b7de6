//! The cases of `testdata/extension` with their host part interpreted and compiled: the same bits, the same launches, the
//! same findings.
//!
//! Needs a Python that has PyTorch, of `ASSAY_TORCH_PYTHON`, and a C++ compiler; says `skipped` where one is missing. Every
//! third case is run; `DIFFERENTIAL=all` runs all, `CASE=NAME` those of that name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assay_extension::{Tensor, Value};
use assay_nvrtc::{Compiler, Install, WorkerCommand};
use assay_simt::Fill;
use assay_submit::{CpuHost, Device, Limits, Reply, Seen, Server, Session, Toolchain, Way};
use assay_tensor::DType;
use serde_json::{Value as Json, json};
use toml::Value as Toml;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Every how many-th case is run by default.
const SPREAD: usize = 3;

const SUBMISSION: &str = r#"
from torch.utils.cpp_extension import load_inline

module = load_inline(name="case", cpp_sources=@CPP@, cuda_sources=@CUDA@, functions=@FUNCTIONS@)


class ModelNew:
    def forward(self, name, args, keys, values):
        return [getattr(module, name)(*args, **dict(zip(keys, values))), args]
"#;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("__compile-worker") {
        assay_nvrtc::worker_main();
    }
    // What a test runner asks before it runs.
    if std::env::args().any(|a| a == "--list") {
        println!("both_ways_agree: test");
        return;
    }
    both_ways_agree();
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/extension")
}

fn bytes(dtype: DType, v: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (v as f32).to_le_bytes().to_vec(),
        DType::F64 => v.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(v).to_le_bytes().to_vec(),
        DType::I32 => (v as i32).to_le_bytes().to_vec(),
        DType::I64 => (v as i64).to_le_bytes().to_vec(),
        DType::Bool => vec![u8::from(v != 0.0)],
        other => panic!("a test with {other}"),
    }
}

fn value(v: &Toml) -> Value {
    let list = |v: &Toml| v.as_array().unwrap().iter().map(value).collect();
    match v {
        Toml::Integer(i) => Value::Int(*i),
        Toml::Float(f) => Value::Float(*f),
        Toml::Boolean(b) => Value::Bool(*b),
        Toml::String(s) if s == "none" => Value::None,
        Toml::String(s) => Value::Str(s.clone()),
        Toml::Array(_) => Value::List(list(v)),
        Toml::Table(t) if t.contains_key("list") => Value::List(list(&t["list"])),
        Toml::Table(t) if t.contains_key("tuple") => Value::Tuple(list(&t["tuple"])),
        Toml::Table(t) => {
            let ints = |k: &str| -> Option<Vec<u64>> {
                Some(t.get(k)?.as_array()?.iter().map(|i| i.as_integer().unwrap() as u64).collect())
            };
            let dtype: DType = t["dtype"].as_str().unwrap().parse().unwrap();
            let number = |v: &Toml| v.as_float().unwrap_or_else(|| v.as_integer().unwrap() as f64);
            let data = t["data"].as_array().unwrap().iter().flat_map(|v| bytes(dtype, number(v))).collect();
            let cuda = assay_extension::Device::Cuda;
            let mut tensor =
                Tensor::from_bytes(dtype, &ints("shape").unwrap(), cuda, data).expect("data fit shape");
            if let Some(strides) = ints("strides") {
                tensor.strides = strides;
            }
            Value::Tensor(tensor)
        }
        Toml::Datetime(_) => panic!("a date is no argument"),
    }
}

/// A value with every bit of its tensors.
fn text(v: &Value) -> String {
    match v {
        Value::Tensor(t) => format!("{} {:?} {:02x?}", t.dtype, t.sizes, t.gather()),
        Value::List(all) => format!("[{}]", all.iter().map(text).collect::<Vec<_>>().join("; ")),
        Value::Tuple(all) => format!("({})", all.iter().map(text).collect::<Vec<_>>().join("; ")),
        Value::Float(f) => format!("{:016x}", f.to_bits()),
        other => format!("{other:?}"),
    }
}

/// What is to be equal.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    output: String,
    launches: BTreeMap<String, u64>,
    findings: Vec<String>,
}

/// The calls of a case, one way; an error where the way does not have it.
fn outcomes(
    server: &mut Server,
    host: &CpuHost,
    source: &str,
    calls: &[&toml::Table],
) -> Result<Vec<Outcome>, String> {
    let limits = Limits::default();
    let child = server.fork("fp32", &limits).unwrap();
    let mut session = Session::new(child, host);
    let device = Device {
        fill: Fill::Noise,
        sanitize: true,
        seed: 0,
        instructions: 10_000_000,
        skip: false,
        sample: None,
        stale: Vec::new(),
    };
    let mut run = || {
        let limit = Duration::from_secs(60);
        let mut out = Vec::new();
        let mut asked = |request: Json, values: Option<(&str, &[Value])>| -> Result<(Json, Seen), String> {
            let mut seen = Seen::default();
            match session.ask(request, values, &device, limit, &mut seen) {
                Reply::Answer(answer) => Ok((answer, seen)),
                other => Err(format!("{other:?} {:?}", seen.stop)),
            }
        };
        asked(json!({"type": "load", "source": source, "name": "case.py", "problem": ""}), None)?;
        asked(json!({"type": "make", "seed": 0, "extents": {}}), Some(("init", &[])))?;
        for call in calls {
            let kwargs = call.get("kwargs").and_then(Toml::as_table).cloned().unwrap_or_default();
            let inputs = [
                value(&call["function"]),
                value(&call["args"]),
                Value::List(kwargs.keys().map(|k| Value::Str(k.clone())).collect()),
                Value::List(kwargs.values().map(value).collect()),
            ];
            let mut seen = Seen::default();
            let request = json!({"type": "forward", "seed": 0, "held": false, "stale": null});
            let reply = session.ask(request, Some(("inputs", &inputs)), &device, limit, &mut seen);
            let Reply::Answer(answer) = reply else {
                return Err(format!("{reply:?} {:?}", seen.stop));
            };
            let mut findings: Vec<String> =
                seen.findings.iter().map(|f| format!("{} {:?} {:?}", f.kind, f.line, f.kernel)).collect();
            findings.sort();
            let unwritten = seen.findings.iter().any(|f| f.kind.name() == "unwritten_output");
            // What nobody wrote has other noise.
            let output = if unwritten { String::new() } else { text(&session.output(&answer)?) };
            // Template arguments are written with spaces by a compiler, as the author wrote them otherwise.
            let launches = seen.launches.into_iter().map(|(name, n)| (name.replace(' ', ""), n)).collect();
            out.push(Outcome { output, launches, findings });
        }
        Ok(out)
    };
    let result = run();
    server.end(session.into_child(), 0).unwrap();
    result
}

fn both_ways_agree() {
    let Some(python) = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file())
    else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return;
    };
    if let Err(e) = Toolchain::find(&python) {
        eprintln!("skipped: {}", e.message);
        return;
    }
    let worker =
        WorkerCommand { program: std::env::current_exe().unwrap(), args: vec!["__compile-worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |_| ()).unwrap();
    let compiler = Arc::new(Compiler::new(install, worker, 1, assay_nvrtc::Limits::default()));
    let interpreted = CpuHost::new(Arc::clone(&compiler), python.clone(), Way::Interpreted);
    let compiled = CpuHost::new(compiler, python.clone(), Way::Compiled);
    let mut server = Server::start(&python, &INTERRUPTED).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let only = std::env::var("CASE").ok();
    let all = only.is_some() || std::env::var("DIFFERENTIAL").is_ok_and(|v| v == "all");
    let (mut agreed, mut wrong) = (0, Vec::new());
    for name in names {
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let read = |ext: &str| std::fs::read_to_string(folder().join(format!("{name}.{ext}"))).unwrap();
        let case: toml::Table = toml::from_str(&read("toml")).unwrap();
        let host_memory =
            |call: &toml::Table| call.get("args").is_some_and(|a| a.to_string().contains("\"cpu\""));
        let calls: Vec<&toml::Table> = case
            .get("call")
            .and_then(Toml::as_array)
            .into_iter()
            .flatten()
            .filter_map(Toml::as_table)
            .filter(|c| !c.contains_key("error") && !host_memory(c))
            .collect();
        if case.contains_key("build") || calls.is_empty() {
            continue;
        }
        if let Some(why) = case.get("interpreted_only").and_then(Toml::as_str) {
            eprintln!("{name}: interpreted only: {why}");
            continue;
        }
        agreed += 1;
        if !all && agreed % SPREAD != 0 {
            continue;
        }
        let cpp = case.get("cpp").and_then(Toml::as_str).unwrap_or_default();
        let functions: Json = case.get("functions").map_or(json!([]), |f| serde_json::to_value(f).unwrap());
        let source = SUBMISSION
            .replace("@CPP@", &json!(cpp).to_string())
            .replace("@CUDA@", &json!(read("cu")).to_string())
            .replace("@FUNCTIONS@", &functions.to_string());
        let want = outcomes(&mut server, &interpreted, &source, &calls);
        let got = outcomes(&mut server, &compiled, &source, &calls);
        match (want, got) {
            (Ok(want), Ok(got)) if want == got => eprintln!("{name}: {} calls agree", want.len()),
            (Ok(want), Ok(got)) => {
                for (k, (w, g)) in want.iter().zip(&got).enumerate().filter(|(_, (w, g))| w != g) {
                    wrong.push(format!("{name}: call {}: interpreted {w:?}, compiled {g:?}", k + 1));
                }
            }
            (want, got) => wrong.push(format!("{name}: interpreted {want:?}, compiled {got:?}")),
        }
    }
    assert!(only.is_some() || agreed > 10, "the cases are not there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
