//! `repro-N.py`: short Python files that need PyTorch alone and show one failure each on the machine that fails, for a bug
//! report. Each builds the operands at the smallest failing size in the failing layout, runs the operation and compares a
//! few batches around the first wrong one with a float64 computation on the CPU.

use std::path::{Path, PathBuf};

use assay_tensor::DType;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use crate::cases::{Case, Reference, torch_dtype};
use crate::condition::dtype;
use crate::drive::write_whole;
use crate::error::SweepError;
use crate::geometry::Layout;
use crate::record::{Outcome, Record};
use crate::text::grouped;
use crate::values::Kind;

const BMM: &str = include_str!("repro_bmm.py.jinja");
const CASE: &str = include_str!("repro_case.py.jinja");
/// Files of one run folder.
const MAX_FILES: usize = 8;
/// Batches after which values repeat: prime, so that an index that wraps at a power of two reads another batch.
const PERIODS: [u64; 9] = [251, 127, 61, 31, 17, 7, 5, 3, 1];

/// Writes `repro-1.py`, … for the first failing run of each series and outcome, silent ones first; at most eight. `cases`
/// are those of a sweep of cases, else empty. Files of an earlier call are replaced or removed.
///
/// # Errors
/// Records that are none, a folder that cannot be written.
pub fn write(out: &Path, records: &[Record], cases: &[Case]) -> Result<Vec<PathBuf>, SweepError> {
    let mut paths = Vec::new();
    for r in chosen(records)? {
        let Some(text) = text(r, cases)? else { continue };
        let path = out.join(format!("repro-{}.py", paths.len() + 1));
        write_whole(&path, &text)?;
        paths.push(path);
        if paths.len() == MAX_FILES {
            break;
        }
    }
    for n in paths.len() + 1..=MAX_FILES {
        let old = out.join(format!("repro-{n}.py"));
        match std::fs::remove_file(&old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(SweepError::writing(&old)(e)),
            _ => {}
        }
    }
    Ok(paths)
}

/// The smallest failing run of each series and outcome, silent outcomes first.
fn chosen(records: &[Record]) -> Result<Vec<&Record>, SweepError> {
    let mut first: Vec<((String, Outcome), &Record)> = Vec::new();
    for r in records.iter().filter(|r| !r.calibration() && r.input() == Kind::Random) {
        let outcome = r.outcome()?;
        if matches!(outcome, Outcome::Ok | Outcome::Skipped) {
            continue;
        }
        let series = format!("{} {} {} {} {}", r.op, r.shape_id, r.dtype, r.layout, r.backward());
        let size = |r: &Record| (r.b, r.pad_batches);
        match first.iter_mut().find(|f| f.0 == (series.clone(), outcome)) {
            Some(f) if size(r) < size(f.1) => f.1 = r,
            Some(_) => {}
            None => first.push(((series, outcome), r)),
        }
    }
    first.sort_by_key(|f| (!f.0.1.silent(), f.0.1 == Outcome::Error));
    Ok(first.into_iter().map(|f| f.1).collect())
}

/// The file for one record; `None` for a case that is not among `cases`.
fn text(r: &Record, cases: &[Case]) -> Result<Option<String>, SweepError> {
    let of = dtype(&r.dtype).ok_or_else(|| SweepError::bad(format!("`{}` is not a dtype", r.dtype)))?;
    let common = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "observed": observed(r),
        "device": device(r),
        "emulated": r.backend.starts_with("emulated"),
        "b": r.b,
        "dtype": torch_dtype(of),
        "tol": format!("{:.3e}", r.tol.unwrap_or(1e-3)),
    });
    match cases.iter().find(|c| c.name == r.op) {
        Some(case) => render(CASE, &[common, case_fields(r, case, of)?]).map(Some),
        None if r.op == "bmm" || r.op.is_empty() || r.op.starts_with("bmm") && r.point().is_ok() => {
            render(BMM, &[common, bmm_fields(r)?]).map(Some)
        }
        None => Ok(None),
    }
}

fn render(template: &str, parts: &[Value]) -> Result<String, SweepError> {
    let failed = |e: minijinja::Error| SweepError::bad(format!("the reproducer cannot be made: {e:#}"));
    let mut all = serde_json::Map::new();
    for part in parts {
        all.extend(part.as_object().cloned().unwrap_or_default());
    }
    let mut environment = Environment::new();
    // Python, not HTML: strings arrive as literals, comments without line breaks.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?;
    environment.set_syntax(syntax);
    environment.add_template("repro", template).map_err(failed)?;
    let text = environment.get_template("repro").and_then(|t| t.render(Serde(all))).map_err(failed)?;
    Ok(format!("{}\n", text.trim_end()))
}

/// A string literal that JSON and Python read alike, of printable ASCII.
fn literal(text: &str) -> String {
    Value::from(comment(text)).to_string()
}

/// Text of others for a comment: one line of printable ASCII.
fn comment(text: &str) -> String {
    text.chars().take(300).map(|c| if (' '..='~').contains(&c) { c } else { '?' }).collect()
}

fn observed(r: &Record) -> String {
    let mut out = r.cls.clone();
    if let Some((name, t)) =
        r.tensors.iter().find(|(_, t)| Outcome::parse(&t.cls).is_some_and(Outcome::silent))
    {
        out += &format!(
            " ({name}: {} of {} compared batches",
            grouped(t.n_batches_bad),
            grouped(t.n_batches_compared)
        );
        if let Some(e) = t.extents.first() {
            out += &format!(", {e}");
        }
        out.push(')');
    }
    if let Some(m) = &r.message {
        out += &format!(": {m}");
    }
    if !r.torch.is_empty() {
        out += &format!("; torch {}", r.torch);
    }
    comment(&out)
}

/// The device string for PyTorch. That of an emulated device is the one that it stands for.
fn device(r: &Record) -> String {
    if r.backend == "torch" {
        return literal(&r.device);
    }
    let prefix = r.device.split('-').next().unwrap_or_default();
    literal(if matches!(prefix, "mps" | "cuda" | "xpu") { prefix } else { "cpu" })
}

/// Batches to look at: both sides of the first wrong one, the first and the last.
fn looked_at(r: &Record, all: u64) -> Vec<u64> {
    let first = r.tensors.values().flat_map(|t| t.bad.first()).map(|b| b[0]).min().unwrap_or(0);
    let mut out = vec![0, first.saturating_sub(1), first, first + 1, all / 2, all - 1];
    out.retain(|&b| b < all);
    out.sort_unstable();
    out.dedup();
    out
}

/// The longest period whose batches have no more than 2^24 elements.
fn period(per: u64) -> u64 {
    PERIODS.into_iter().find(|p| p * per <= 1 << 24).unwrap_or(1)
}

fn bmm_fields(r: &Record) -> Result<Value, SweepError> {
    let p = r.point()?;
    let g = p.geometry();
    Ok(json!({
        "m": p.shape.m, "k": p.shape.k, "n": p.shape.n,
        "layout": p.layout.name(),
        "pad": g.a.skip,
        "ta": p.layout == Layout::AT,
        "tb": p.layout == Layout::BT,
        "backward": p.backward,
        "check": looked_at(r, p.batch),
        "period": period(p.shape.crossing_elements()),
        "gigabytes": format!("{:.1}", p.device_bytes() as f64 / 1e9),
    }))
}

fn case_fields(r: &Record, case: &Case, of: DType) -> Result<Value, SweepError> {
    let n = case.output_elements();
    let names: Vec<&str> = case.operands.iter().map(|o| o.name.as_str()).collect();
    let shape = |s: &[u64]| {
        let parts: Vec<String> = s.iter().map(|d| format!("{d},")).collect();
        format!("({})", parts.join(" "))
    };
    let largest = case.operands.iter().map(|o| o.shape.iter().product::<u64>()).max().unwrap_or(1);
    let operands: Vec<Value> = case
        .operands
        .iter()
        .map(|o| {
            let d = case.operand_dtype(o, of);
            json!({
                "name": o.name, "shape": shape(&o.shape), "dtype": torch_dtype(d),
                "permutation": o.values == "permutation",
                "device": if o.place == "cpu" { "\"cpu\"" } else { "DEVICE" },
            })
        })
        .collect();
    let whole =
        format!("(i * {n} + torch.arange({n}, dtype=torch.float64)).view({})", shape(&case.output.shape));
    let expected = match &case.reference {
        Reference::Arange => whole,
        Reference::Linspace { from, to } => {
            format!("{from:?} + {:?} * {whole} / (B * {} - 1)", to - from, case.output.times * n)
        }
        Reference::Constant(v) => {
            format!("torch.full({}, {v:?}, dtype=torch.float64)", shape(&case.output.shape))
        }
        Reference::Take { of, .. } => format!("batch(\"{of}\", permuted(i))[0]"),
        Reference::Cat(names) => format!("batch({names:?}[i // B], i % B)[0]"),
        Reference::Lines(_) => {
            let args: Vec<String> = names.iter().map(|n| format!("batch(\"{n}\", i)")).collect();
            let args = if args.is_empty() { String::new() } else { format!("{}, ", args.join(", ")) };
            format!("call({args}device=\"cpu\", dtype=torch.float64, B=1)[0]")
        }
    };
    let permutation = case.operands.iter().any(|o| o.values == "permutation");
    Ok(json!({
        "case": comment(&case.name),
        "call": case.call.replace("{B}", "B").replace("{dtype}", "dtype"),
        "names": names,
        "operands": operands,
        "expected": expected,
        "permutation": permutation,
        "out_dtype": torch_dtype(case.output_dtype(of)),
        "check": looked_at(r, r.b * case.output.times),
        "period": period(largest.max(1)),
        "gigabytes": format!("{:.1}", case.bytes(r.b, of) as f64 / 1e9),
    }))
}
