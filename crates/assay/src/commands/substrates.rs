//! `assay problems --kernelbench`: a benchmark's own files as problems, exported, lowered, and held against PyTorch.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use assay_campaign::gate::{Gate, GateReport, gate};
use assay_nvrtc::Compiler;
use assay_torch::kernelbench::{self, File, Refusal, Substrate};
use assay_torch::{Settings, Torch, TorchError};
use serde_json::{Value, json};

use crate::cli::{Common, ProblemsArgs};
use crate::commands::{audit, list, tools, verify_ops};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Warp instructions that the substrate may execute for each million of steps asked for, and at least.
const INSTRUCTIONS: (u64, u64) = (20_000_000, 2_000_000_000);

/// What became of a file.
struct Outcome {
    word: &'static str,
    reason: String,
    extents: Value,
    report: Option<GateReport>,
    substrate: Option<Substrate>,
    seconds: f64,
}

impl Outcome {
    fn refused(refusal: &Refusal) -> Outcome {
        let word = match refusal {
            Refusal::Unsupported(_) => "unsupported",
            Refusal::Raised(_) => "refused",
            Refusal::Exhausted(_) => "exhausted",
        };
        Outcome::ended(word, refusal.to_string())
    }

    fn ended(word: &'static str, reason: String) -> Outcome {
        Outcome { word, reason, extents: Value::Null, report: None, substrate: None, seconds: 0.0 }
    }

    fn exit(&self) -> Exit {
        match self.word {
            "fail" => Exit::BaselineFailed,
            "unsupported" | "refused" => Exit::Unsupported,
            "exhausted" => Exit::Exhausted,
            _ => Exit::Fine,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// No checkout, no PyTorch, a worker that breaks the protocol, a folder that cannot be written.
pub fn substrates(common: &Common, args: &ProblemsArgs, folder: &Path) -> Result<Exit, Failure> {
    if !args.problems.is_empty() || !args.operators.is_empty() || !args.techniques.is_empty() {
        return Err(Failure::bad_input(
            "`--kernelbench` takes `--level` and `--ids`; the other filters are the catalogue's",
        ));
    }
    let files = kernelbench::find(folder, &args.levels, &args.files.ids).map_err(verify_ops::failure)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    let settings = Settings {
        python: args.files.python.clone(),
        threads: tools::jobs(common),
        seconds: args.files.timeout,
        memory: assay_sweep::backend::physical_memory().map(|b| b / 4 * 3),
    };
    let mut torch = Torch::start(&settings, &interrupted).map_err(verify_ops::failure)?;
    let environment = torch.environment().clone();
    let bar = Bar::new(common.quiet || common.json);
    let compiler = if args.verify { Some(tools::compiler(&bar, 1)?) } else { None };
    bar.begin("files", files.len() as u64);
    let mut outcomes = Vec::new();
    for (i, file) in files.iter().enumerate() {
        bar.at(i as u64, files.len() as u64);
        bar.say(&file.name);
        let started = Instant::now();
        let mut outcome = match one(&mut torch, file, args, compiler.as_ref()) {
            Ok(outcome) => outcome?,
            // The file took the worker with it, which says nothing about the next.
            Err(e @ (TorchError::Died(..) | TorchError::Hung(..))) => {
                torch = Torch::start(&settings, &interrupted).map_err(verify_ops::failure)?;
                let word = if matches!(e, TorchError::Hung(..)) { "exhausted" } else { "refused" };
                Outcome::ended(word, e.to_string())
            }
            Err(e) => return Err(verify_ops::failure(e)),
        };
        outcome.seconds = started.elapsed().as_secs_f64();
        if let (Some(out), Some(substrate)) = (&args.files.out, &outcome.substrate) {
            let to = out.join(format!("level{}", file.level)).join(&substrate.problem.slug);
            substrate
                .problem
                .write(&to)
                .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", to.display())))?;
        }
        outcomes.push(outcome);
    }
    bar.finish();
    torch.quit();
    let exit = outcomes.iter().fold(Exit::Fine, |exit, o| exit.and(o.exit()));
    if common.json {
        let records: Vec<Value> = files.iter().zip(&outcomes).map(|(f, o)| record(f, o)).collect();
        output::json(&json!({
            "environment": environment,
            "work": args.files.work * 1_000_000,
            "summary": summary(&files, &outcomes),
            "problems": records,
        }))?;
    } else {
        output::text(&page(&files, &outcomes))?;
    }
    Ok(exit)
}

/// One file. The outer error is the worker's, the inner one ends the command.
fn one(
    torch: &mut Torch<'_>,
    file: &File,
    args: &ProblemsArgs,
    compiler: Option<&Compiler>,
) -> Result<Result<Outcome, Failure>, TorchError> {
    let ((extents, _), made) = kernelbench::lowered(torch, file, Some(args.files.work * 1_000_000))?;
    let substrate = match made {
        Ok(substrate) => substrate,
        Err(refusal) => return Ok(Ok(Outcome { extents: json!(extents), ..Outcome::refused(&refusal) })),
    };
    let mut outcome = Outcome {
        extents: json!(extents),
        substrate: Some(substrate.clone()),
        ..Outcome::ended("lowered", String::new())
    };
    let problem = match substrate.problem.problem() {
        Ok(problem) => problem,
        Err(e) => {
            outcome.word = "unsupported";
            outcome.reason = e.to_string();
            return Ok(Ok(outcome));
        }
    };
    let Some(compiler) = compiler else { return Ok(Ok(outcome)) };
    let revealed = match kernelbench::reveal(torch, file, &substrate)? {
        Ok(revealed) => revealed,
        Err(refusal) => {
            let refused = Outcome::refused(&refusal);
            return Ok(Ok(Outcome { word: refused.word, reason: refused.reason, ..outcome }));
        }
    };
    let budget = args.files.work.saturating_mul(INSTRUCTIONS.0).max(INSTRUCTIONS.1);
    match gate(&problem, revealed.inputs, revealed.official, revealed.truth, compiler, budget) {
        Ok(report) => {
            outcome.word = report.gate.name();
            outcome.reason.clone_from(&report.reason);
            outcome.report = Some(report);
        }
        Err(e @ assay_campaign::CampaignError::Input(_)) => {
            outcome.word = Gate::Fail.name();
            outcome.reason = e.to_string();
        }
        Err(e) => return Ok(Err(audit::failure(&e))),
    }
    Ok(Ok(outcome))
}

/// A threshold as JSON has it.
fn threshold(t: f64) -> Value {
    if t.is_finite() { json!(t) } else { json!("inf") }
}

fn record(file: &File, o: &Outcome) -> Value {
    json!({
        "level": file.level,
        "id": file.id,
        "name": file.name,
        "how": "export",
        "gate": o.word,
        "reason": o.reason,
        "extents": o.extents,
        "decomposed": o.substrate.as_ref().map(|s| s.decomposed),
        "integers_cast": o.substrate.as_ref().map(|s| s.graph.cast_integers),
        "fitted": o.substrate.as_ref().map(|s| s.problem.fitted.clone()),
        "sha256": o.substrate.as_ref().map(|s| s.sha256.clone()),
        "launches": o.substrate.as_ref().map(|s| s.problem.launches),
        "instructions": o.report.as_ref().map(|r| r.instructions),
        "official": o.report.as_ref().map(|r| threshold(r.official)),
        "truth": o.report.as_ref().map(|r| threshold(r.truth)),
        "module": o.report.as_ref().map(|r| threshold(r.module)),
        "reference": o.report.as_ref().map(|r| threshold(r.reference)),
        "seconds": o.seconds,
    })
}

/// Counts by level and outcome.
fn summary(files: &[File], outcomes: &[Outcome]) -> Vec<Value> {
    let mut levels: Vec<u32> = files.iter().map(|f| f.level).collect();
    levels.dedup();
    let words = ["pass", "lowered", "fail", "unsupported", "refused", "exhausted"];
    levels
        .into_iter()
        .map(|level| {
            let of = |word: &str| {
                files.iter().zip(outcomes).filter(|(f, o)| f.level == level && o.word == word).count()
            };
            let mut counts = json!({
                "level": level, "files": files.iter().filter(|f| f.level == level).count(),
            });
            for word in words {
                counts[word] = json!(of(word));
            }
            counts
        })
        .collect()
}

fn page(files: &[File], outcomes: &[Outcome]) -> String {
    let shown = |t: Option<f64>| t.map_or(String::new(), |t| format!("{t:.0e}"));
    let rows = files.iter().zip(outcomes).map(|(f, o)| {
        let of = |pick: fn(&GateReport) -> f64| shown(o.report.as_ref().map(pick));
        vec![
            f.key(),
            f.name.clone(),
            "export".to_owned(),
            o.word.to_owned(),
            of(|r| r.official),
            of(|r| r.truth),
            of(|r| r.module),
            format!("{:.1}", o.seconds),
            o.reason.clone(),
        ]
    });
    let header = ["Id", "File", "How", "Gate", "float32", "float64", "PyTorch", "Seconds", "Reason"];
    let mut text = list::table(&header, rows);
    for counts in summary(files, outcomes) {
        let number = |k: &str| counts.get(k).and_then(Value::as_u64).unwrap_or(0);
        let parts: Vec<String> = ["pass", "lowered", "fail", "unsupported", "refused", "exhausted"]
            .into_iter()
            .filter(|k| number(k) > 0)
            .map(|k| format!("{} {k}", number(k)))
            .collect();
        text.push_str(&format!(
            "level {}: {} files, {}\n",
            number("level"),
            number("files"),
            parts.join(", ")
        ));
    }
    text
}
