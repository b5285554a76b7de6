//! `assay sweep`, `assay rules`, `assay guard-eval`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_sweep::SweepError;
use assay_sweep::backend::Backend;
use assay_sweep::cases::{self, Case};
use assay_sweep::condition::{Term, dtype};
use assay_sweep::device::Device;
use assay_sweep::drive::{self, Request, Summary};
use assay_sweep::plan::{Plan, ShapeSpec};
use assay_sweep::record::{self, Record};
use assay_sweep::rules::{self, RuleText, Score};
use assay_sweep::{case_run, environment, guard, repro, text};
use serde_json::json;

use crate::cli::Common;
use crate::cli_sweep::{GuardEvalArgs, RulesArgs, SweepArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// The plan where none is given.
const DEFAULT_PLAN: &str = "standard";

/// The failure that a sweep's error is.
pub fn failure(e: SweepError) -> Failure {
    let exit = match &e {
        SweepError::Bad(_) | SweepError::Io { action: "read", .. } => Exit::BadInput,
        SweepError::Unsupported(_) => Exit::Unsupported,
        SweepError::Io { .. } => Exit::CannotWrite,
        SweepError::Worker(_) => Exit::Bug,
        SweepError::Interrupted => Exit::Interrupted,
    };
    Failure { exit, message: e.to_string() }
}

/// Sweeps an operation.
///
/// # Errors
/// Bad input, an unwritable folder, an interrupt, what a backend cannot do.
pub fn sweep(common: &Common, args: &SweepArgs) -> Result<Exit, Failure> {
    if let Some(file) = args.backend.strip_prefix("kernel:") {
        #[cfg(feature = "device")]
        return super::sweep_kernel::sweep(common, args, file);
        #[cfg(not(feature = "device"))]
        return Err(Failure::unsupported(format!("this build has no CPU device to run `{file}`")));
    }
    let backends = backends(args).map_err(failure)?;
    let out = args.out.clone().unwrap_or_else(|| super::default_folder("sweep"));
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    if args.op != "bmm" {
        return cases(common, args, &backends, &out, &interrupted);
    }
    let mut plan = plan(args).map_err(failure)?;
    plan.seed = plan.seed.wrapping_add(common.seed);
    let mut summaries = Vec::new();
    for backend in &backends {
        let folder = if backends.len() > 1 { out.join(backend.version()) } else { out.clone() };
        let bar = Bar::new(common.quiet || common.json);
        bar.begin(&format!("{} on {}", plan.name, backend.label()), 0);
        let progress = |done: usize, planned: usize, r: &Record| {
            bar.at(done as u64, planned as u64);
            bar.say(&format!("{} {} {} B={} {}", r.shape_id, r.dtype, r.layout, r.b, r.cls));
        };
        let request = Request {
            plan: &plan,
            backend,
            out: &folder,
            resume: args.resume,
            jobs: jobs(common, backend),
            whole: args.full,
            limits: args.timeout,
            memory: args.memory,
            interrupted: &interrupted,
            progress: &progress,
        };
        let summary = drive::sweep(&request);
        bar.finish();
        let summary = summary.map_err(failure)?;
        reproducers(common, args, &folder, &[])?;
        summaries.push((folder, summary));
    }
    show(common, &summaries)?;
    Ok(Exit::Fine)
}

/// Sweeps operations of `sweeps/cases`.
fn cases(
    common: &Common,
    args: &SweepArgs,
    backends: &[Backend],
    out: &Path,
    interrupted: &AtomicBool,
) -> Result<Exit, Failure> {
    let cases = if args.op == "all" {
        let mut all = Vec::new();
        for (name, _) in cases::names() {
            all.push(Case::find(&name).map_err(failure)?);
        }
        all
    } else {
        vec![Case::find(&args.op).map_err(failure)?]
    };
    let wrong_flag = [
        ("--plan", args.plan.is_some()),
        ("--layout", !args.layout.is_empty()),
        ("--shapes", !args.shapes.is_empty()),
        ("--full", args.full),
    ];
    if let Some((flag, _)) = wrong_flag.iter().find(|(_, given)| *given) {
        return Err(Failure::bad_input(format!(
            "{flag} is for bmm alone; the file of `{}` says what is run and compared",
            args.op
        )));
    }
    let mut dtypes = Vec::new();
    for name in &args.dtype {
        dtypes.push(dtype(name).ok_or_else(|| Failure::bad_input(format!("`{name}` is not a dtype")))?);
    }
    let boundaries = if args.boundary.is_empty() {
        ["2^31", "2^32", "2^32 bytes"].map(str::to_owned).to_vec()
    } else {
        args.boundary.clone()
    };
    let mut summaries = Vec::new();
    for backend in backends {
        let folder = if backends.len() > 1 { out.join(backend.version()) } else { out.to_path_buf() };
        let bar = Bar::new(common.quiet || common.json);
        bar.begin(&format!("{} on {}", args.op, backend.label()), 0);
        let progress = |done: usize, planned: usize, r: &Record| {
            bar.at(done as u64, planned as u64);
            bar.say(&format!("{} {} B={} {}", r.op, r.dtype, r.b, r.cls));
        };
        let request = case_run::Request {
            cases: &cases,
            backend,
            out: &folder,
            resume: args.resume,
            boundaries: &boundaries,
            dtypes: &dtypes,
            limit: args.timeout.0,
            memory: args.memory,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            seed: common.seed,
            interrupted,
            progress: &progress,
        };
        let summary = case_run::sweep(&request);
        bar.finish();
        let summary = summary.map_err(failure)?;
        reproducers(common, args, &folder, &cases)?;
        summaries.push((folder, summary));
    }
    show(common, &summaries)?;
    Ok(Exit::Fine)
}

/// Writes the Python files of `--repro`.
fn reproducers(common: &Common, args: &SweepArgs, folder: &Path, cases: &[Case]) -> Result<(), Failure> {
    if !args.repro {
        return Ok(());
    }
    let files = repro::write(folder, &record::read(folder).map_err(failure)?, cases).map_err(failure)?;
    if !common.quiet && !common.json {
        if files.is_empty() {
            output::say(format_args!("no reproducer: nothing failed"));
        }
        for file in files {
            output::say(format_args!("reproducer: {}", file.display()));
        }
    }
    Ok(())
}

/// Runs at a time: a backend that holds whole tensors has the machine for itself.
fn jobs(common: &Common, backend: &Backend) -> usize {
    if backend.materialises() {
        return 1;
    }
    common.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

fn plan(args: &SweepArgs) -> Result<Plan, SweepError> {
    let mut plan = Plan::find(args.plan.as_deref().unwrap_or(DEFAULT_PLAN))?;
    if !args.layout.is_empty() {
        plan.layouts = args.layout.iter().map(|l| l.parse()).collect::<Result<_, _>>()?;
        for shape in &mut plan.shapes {
            shape.layouts.clear();
        }
    }
    if !args.boundary.is_empty() {
        plan.boundaries.clone_from(&args.boundary);
    }
    if !args.shapes.is_empty() {
        let like = plan.shapes.first().cloned();
        plan.shapes = args
            .shapes
            .iter()
            .map(|mkn| ShapeSpec {
                mkn: mkn.clone(),
                dtypes: like.as_ref().map_or_else(|| vec!["f32".into()], |l| l.dtypes.clone()),
                grid: like.as_ref().map_or(1, |l| l.grid),
                indexed: like.as_ref().is_some_and(|l| l.indexed),
                layouts: Vec::new(),
                at: Vec::new(),
            })
            .collect();
    }
    if !args.dtype.is_empty() {
        for shape in &mut plan.shapes {
            shape.dtypes.clone_from(&args.dtype);
        }
    }
    // What was put together is checked as a file is.
    plan.series()?;
    Ok(plan)
}

fn backends(args: &SweepArgs) -> Result<Vec<Backend>, SweepError> {
    if let Some(name) = args.backend.strip_prefix("emulated:") {
        return Ok(vec![Backend::Emulated(Box::new(Device::find(name)?))]);
    }
    if args.backend == "torch" {
        if args.torch.is_empty() {
            return Ok(vec![Backend::Torch {
                python: args.python.clone(),
                device: args.device.clone(),
                version: String::new(),
            }]);
        }
        let root = environment::cache();
        return args
            .torch
            .iter()
            .map(|version| {
                Ok(Backend::Torch {
                    python: environment::python_with_torch(&root, version)?,
                    device: args.device.clone(),
                    version: version.clone(),
                })
            })
            .collect();
    }
    Err(SweepError::bad(format!(
        "`{}` is not a backend; there are emulated:NAME, torch and kernel:FILE.cu",
        args.backend
    )))
}

fn show(common: &Common, summaries: &[(PathBuf, Summary)]) -> Result<(), Failure> {
    if common.json {
        return match summaries {
            [(_, one)] => output::json(one),
            several => output::json(&several.iter().map(|(_, s)| s).collect::<Vec<_>>()),
        };
    }
    for (folder, summary) in summaries {
        output::text(&assay_sweep::text::summary(summary, output::width()))?;
        if !common.quiet {
            output::say(format_args!("records, summary and report.html: {}", folder.display()));
        }
    }
    Ok(())
}

/// The records of several run folders and files, and the tool's own ones before others where they say the same.
fn records(paths: &[PathBuf]) -> Result<Vec<Record>, Failure> {
    let mut out = Vec::new();
    for path in paths {
        out.extend(record::read(path).map_err(failure)?);
    }
    if out.is_empty() {
        return Err(Failure::bad_input("there is no record of a sweep"));
    }
    Ok(out)
}

/// Learns or applies rules.
///
/// # Errors
/// Bad input.
pub fn rules(common: &Common, args: &RulesArgs) -> Result<Exit, Failure> {
    let records = records(&args.runs)?;
    let (texts, score, undecided) = match &args.apply {
        Some(file) => {
            let rules = rules::load(file).map_err(failure)?;
            let score = rules::apply(&rules, &records).map_err(failure)?;
            let texts: Vec<_> = rules.iter().zip(&score.decided).map(|(r, n)| r.text(*n)).collect();
            (texts, score, Vec::new())
        }
        None => learned(&records)?,
    };
    if let Some(path) = &args.save {
        let text = rules::write(&texts, "learned by assay rules").map_err(failure)?;
        drive::write_whole(path, &text).map_err(failure)?;
    }
    if common.json {
        output::json(&json!({
            "rules": texts,
            "reproduced": score.reproduced(),
            "total": score.total(),
            "undecided": undecided,
            "by_input": score,
        }))?;
    } else {
        output::text(&text::rules(&texts, &score, &undecided, output::width()))?;
    }
    Ok(if score.reproduced() == score.total() { Exit::Fine } else { Exit::Wrong })
}

/// Rules of every group of versions that behave alike, their score together, and what stays open.
type LearnedText = (Vec<RuleText>, Score, Vec<String>);

fn learned(records: &[Record]) -> Result<LearnedText, Failure> {
    let groups = rules::learn_by_version(records).map_err(failure)?;
    let several = groups.len() > 1;
    let (mut texts, mut all, mut undecided) = (Vec::new(), Score::default(), Vec::new());
    for group in &groups {
        let own: Vec<Record> =
            records.iter().filter(|r| group.versions.contains(&r.version())).cloned().collect();
        let mut list = group.learned.rules.clone();
        if several {
            for rule in &mut list {
                rule.when.0.insert(0, Term::Version(group.versions.clone()));
            }
        }
        let score = rules::apply(&list, &own).map_err(failure)?;
        texts.extend(list.iter().zip(&score.decided).map(|(r, n)| r.text(*n)));
        undecided.extend(
            group
                .learned
                .undecided
                .iter()
                .map(|u| if several { format!("{}: {u}", group.versions.join(", ")) } else { u.clone() }),
        );
        all.add(&score);
    }
    Ok((texts, all, undecided))
}

/// Evaluates the guard.
///
/// # Errors
/// Bad input.
pub fn guard_eval(common: &Common, args: &GuardEvalArgs) -> Result<Exit, Failure> {
    let rows = guard::evaluate(&records(&args.runs)?, args.limit).map_err(failure)?;
    let missed = rows.iter().any(|r| r.stopped_at_least < r.silent);
    if common.json {
        output::json(&json!({"limit": args.limit, "rows": rows}))?;
    } else {
        output::text(&text::guard(&rows, args.limit))?;
    }
    Ok(if missed { Exit::Wrong } else { Exit::Fine })
}
