//! `assay blindspots`: the trivial answers that a benchmark's official check accepts on its own problem files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_report::text::{clean, wrap};
use assay_torch::kernelbench::{self, File, Plan, ProblemReport, Status};
use assay_torch::{Settings, Torch};
use serde_json::{Value, json};

use crate::cli::{BlindspotsArgs, Common, ExtentsArg};
use crate::commands::list;
use crate::commands::verify_ops::failure;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Runs the command.
///
/// # Errors
/// No checkout, no PyTorch, a worker that breaks the protocol, a cache that cannot be written.
pub fn blindspots(common: &Common, args: &BlindspotsArgs) -> Result<Exit, Failure> {
    let files = kernelbench::find(&args.kernelbench, &args.levels, &args.ids).map_err(failure)?;
    let mut tolerances = args.tolerances.clone();
    tolerances.sort_by(|a, b| b.total_cmp(a));
    tolerances.dedup();
    let plan = Plan { desk: args.extents == ExtentsArg::Desk, trials: args.trials, tolerances };
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    let settings = Settings {
        python: args.python.clone(),
        threads: common
            .jobs
            .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from),
        seconds: args.timeout,
        // Three quarters of the machine: what does not fit is said so, before the system ends the process.
        memory: assay_sweep::backend::physical_memory().map(|b| b / 4 * 3),
    };
    let mut torch = Torch::start(&settings, &interrupted).map_err(failure)?;
    let environment = torch.environment().clone();
    let version = torch.version().to_owned();
    let cache =
        args.cache.clone().unwrap_or_else(|| assay_sweep::environment::cache().with_file_name("kernelbench"));
    let bar = Bar::new(common.quiet || common.json);
    bar.begin("problems", files.len() as u64);
    let mut reports = Vec::with_capacity(files.len());
    for (i, file) in files.iter().enumerate() {
        bar.at(i as u64, files.len() as u64);
        bar.say(&file.name);
        let kept = cache.join(format!("{}.json", plan.digest(file, &version).map_err(failure)?));
        if let Some(report) = stored(&kept, file) {
            reports.push(report);
            continue;
        }
        let report = kernelbench::measure(&mut torch, file, &plan).map_err(failure)?;
        match report.status {
            Status::Measured | Status::Refused => store(&kept, &report)?,
            // After a death or a time limit there is no worker any more; what did not fit may fit another day.
            Status::Died | Status::Exhausted => {
                torch = Torch::start(&settings, &interrupted).map_err(failure)?
            }
        }
        reports.push(report);
    }
    bar.finish();
    torch.quit();
    kernelbench::others(&mut reports, &plan.tolerances);
    let summary = summary(&reports, &plan);
    if common.json {
        output::json(&json!({
            "environment": environment,
            "extents": if plan.desk { "desk" } else { "official" },
            "seed": kernelbench::SEED,
            "trials": plan.trials,
            "tolerances": plan.tolerances,
            "summary": summary,
            "problems": reports,
        }))?;
    } else {
        output::text(&page(&reports, &plan, &summary, &version))?;
    }
    let incomplete = reports.iter().any(|r| matches!(r.status, Status::Exhausted | Status::Died));
    Ok(if incomplete { Exit::Exhausted } else { Exit::Fine })
}

/// A report of an earlier run that measured the same; where it is from does not matter.
fn stored(path: &Path, file: &File) -> Option<ProblemReport> {
    let mut report: ProblemReport = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    report.path = file.path.to_string_lossy().into_owned();
    report.file.clone_from(&file.name);
    report.problem = file.key();
    Some(report)
}

fn store(path: &Path, report: &ProblemReport) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let text = serde_json::to_vec(report).map_err(Failure::bug)?;
    std::fs::create_dir_all(folder)
        .and_then(|()| {
            let part = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
            std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path))
        })
        .map_err(|e| Failure::cannot_write(format!("cannot write the cache `{}`: {e}", folder.display())))
}

/// Counts by tolerance.
fn summary(reports: &[ProblemReport], plan: &Plan) -> Vec<Value> {
    let measured: Vec<&ProblemReport> = reports.iter().filter(|r| r.status == Status::Measured).collect();
    let count = |f: &dyn Fn(&ProblemReport) -> bool| measured.iter().filter(|r| f(r)).count();
    let passes = |r: &ProblemReport, i: usize, f: &dyn Fn(&str) -> bool| {
        r.candidates.iter().any(|c| f(&c.name) && c.accepted.get(i) == Some(&true))
    };
    plan.tolerances
        .iter()
        .enumerate()
        .map(|(i, &t)| {
            json!({
                "tolerance": t,
                "measured": measured.len(),
                "zeros": count(&|r| passes(r, i, &|n| n == "zeros")),
                "constant": count(&|r| r.constants.iter().any(|c| c.tolerance == t)),
                "mean": count(&|r| r.mean_accepted.get(i) == Some(&true)),
                "input": count(&|r| passes(r, i, &|n| n.starts_with("input "))),
                "function": count(&|r| passes(r, i, &|n| n != "zeros" && !n.contains("input "))),
                "other": count(&|r| r.others.iter().any(|(_, at)| *at <= t)),
                "any": count(&|r| r.is_blind(i, t)),
                "unrefereeable": count(&|r| r.violates(t)),
            })
        })
        .collect()
}

/// The result for people: problems with a blind spot or without a referee, then the counts.
fn page(reports: &[ProblemReport], plan: &Plan, summary: &[Value], version: &str) -> String {
    let least = |accepted: &[bool]| {
        let at = accepted.iter().rposition(|&a| a).and_then(|i| plan.tolerances.get(i));
        at.map_or(String::new(), |t| format!("{t:e}"))
    };
    let blind = |r: &&ProblemReport| {
        r.status == Status::Measured
            && plan.tolerances.iter().enumerate().any(|(i, &t)| r.is_blind(i, t) || r.violates(t))
    };
    let rows = reports.iter().filter(blind).map(|r| {
        let of = |name: &str| {
            r.candidates.iter().find(|c| c.name == name).map_or(String::new(), |c| least(&c.accepted))
        };
        let constant =
            r.constants.last().map_or(String::new(), |c| format!("{:e} ({:.3e})", c.tolerance, c.value));
        let more: Vec<String> = r
            .candidates
            .iter()
            .filter(|c| c.name != "zeros" && c.accepted.iter().any(|&a| a))
            .map(|c| format!("{} {}", c.name, least(&c.accepted)))
            .collect();
        let violated: Vec<String> = r
            .violations
            .iter()
            .filter(|v| v.counts.iter().any(|&c| c > 0))
            .map(|v| {
                format!(
                    "{:e}: {}",
                    v.tolerance,
                    v.counts.iter().map(u64::to_string).collect::<Vec<_>>().join("+")
                )
            })
            .collect();
        vec![
            format!("{} {}", r.problem, r.file),
            of("zeros"),
            constant,
            least(&r.mean_accepted),
            more.join(", "),
            if r.others.is_empty() { String::new() } else { r.others.len().to_string() },
            violated.join(", "),
        ]
    });
    let header = [
        "Problem",
        "Zeros",
        "A constant",
        "The mean",
        "Input or function",
        "Others' constants",
        "float32 against float64",
    ];
    let mut text = list::table(&header, rows);
    // What a problem file raises is a stranger's text.
    let mut say = |words: &str| text.push_str(&wrap(&clean(words), output::width(), "", "  "));
    say("A cell is the smallest tolerance that accepts; the last column counts positions, by trial.");
    for r in reports.iter().filter(|r| r.status != Status::Measured) {
        let status = match r.status {
            Status::Refused => "the official check fails",
            Status::Exhausted => "exhausted",
            _ => "the process ended",
        };
        say(&format!("{} {}: {status}: {}", r.problem, r.file, r.reason));
    }
    for s in summary {
        let n = |k: &str| s[k].as_u64().unwrap_or(0);
        say(&format!(
            "at {:e}: {} of {} accept a trivial answer (zeros {}, a constant {}, the mean {}, an input {}, another function \
             {}, another's constant {}); {} violate their own float64 evaluation",
            s["tolerance"].as_f64().unwrap_or(0.0),
            n("any"),
            n("measured"),
            n("zeros"),
            n("constant"),
            n("mean"),
            n("input"),
            n("function"),
            n("other"),
            n("unrefereeable"),
        ));
    }
    say(&format!(
        "{} extents, {} trials, PyTorch {version} on the CPU; the check is torch.allclose(output, candidate), relative to the \
         candidate",
        if plan.desk { "desk" } else { "official" },
        plan.trials
    ));
    text
}
