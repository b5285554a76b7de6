//! `assay export`: the release of a finished audit; `assay suite --out`: its suites with their tensors.

use std::path::Path;

use assay_campaign::RunReader;
use assay_release::{Exported, ReleaseError, SuiteExport};
use assay_report::text::number;
use serde_json::{Map, Value, json};

use crate::cli::{Common, ExportArgs, SuiteArgs};
use crate::commands::{audit, list, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// What wrote a folder.
const TOOL: &str = concat!("assay ", env!("CARGO_PKG_VERSION"));

/// Runs `assay export`.
///
/// # Errors
/// Bad input: no finished run, or a folder that holds something else. An unwritable folder.
pub fn export(common: &Common, args: &ExportArgs) -> Result<Exit, Failure> {
    let bar = Bar::new(common.quiet || common.json);
    let done = assay_release::export(&args.run, &args.dir, TOOL, &bar).map_err(|e| failure(&e));
    bar.finish();
    let done = done?;
    if common.json {
        output::json(&document(&done))?;
    } else if !common.quiet {
        output::text(&page(args, &done))?;
    }
    Ok(Exit::Fine)
}

/// Runs `assay suite --out`.
///
/// # Errors
/// As [`export`]; a problem of the run whose definition is not there.
pub fn suite(common: &Common, args: &SuiteArgs, out: &Path) -> Result<Exit, Failure> {
    let run = RunReader::open(&args.run).map_err(|e| audit::failure(&e))?;
    let summary = run.summary().map_err(|e| audit::failure(&e))?;
    audit::catalogue_only(&summary.environment, "suite --out")?;
    drop(run);
    let problems = list::find_problems(&args.problems)?;
    let bar = Bar::new(common.quiet || common.json);
    let what = SuiteExport {
        run: &args.run,
        problems: &problems,
        only: !args.problems.is_empty(),
        budget: args.budget,
        target: out,
        tool: TOOL,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(tools::jobs(common))
        .build()
        .map_err(|e| Failure::bug(format!("threads: {e}")))?;
    let done = pool.install(|| assay_release::export_suite(&what, &bar)).map_err(|e| failure(&e));
    bar.finish();
    let done = done?;
    if !done.changed.is_empty() {
        output::say(format_args!(
            "note: `problem.toml` is not that of the run for {}: the inputs written may be others than those judged",
            done.changed.join(", ")
        ));
    }
    if common.json {
        output::json(&json!({
            "folder": done.folder.display().to_string(),
            "budget": args.budget,
            "problems": done.problems,
            "inputs": done.inputs,
            "bytes": done.bytes,
            "changed": done.changed,
        }))?;
    } else if !common.quiet {
        output::text(&format!(
            "{} inputs of {} problems, {} MB: {}\n",
            number(done.inputs),
            number(done.problems),
            number(done.bytes.div_ceil(1_000_000)),
            out.join("README.md").display()
        ))?;
    }
    Ok(Exit::Fine)
}

fn failure(e: &ReleaseError) -> Failure {
    match e {
        ReleaseError::Run(e) => audit::failure(e),
        ReleaseError::Folder { .. } => Failure::bad_input(e),
        ReleaseError::CannotWrite { .. } => Failure::cannot_write(e),
        ReleaseError::Internal(_) => Failure::bug(e),
    }
}

fn document(done: &Exported) -> Value {
    let tables: Map<String, Value> = done.rows.iter().map(|(f, n)| ((*f).to_owned(), json!(n))).collect();
    let c = &done.counted;
    json!({
        "folder": done.folder.display().to_string(),
        "files": done.files,
        "bytes": done.bytes,
        "problems": c.problems,
        "mutants": c.mutants,
        "witnesses": c.witnesses,
        "cells": c.cells,
        "evaluations": c.evaluations,
        "tables": tables,
    })
}

fn page(args: &ExportArgs, done: &Exported) -> String {
    let c = &done.counted;
    let rows = [
        ("mutants, each with its diff", c.mutants),
        ("witnesses", c.witnesses),
        ("cells of the kill matrix", c.cells),
        ("evaluations", c.evaluations),
        ("files", done.files),
    ];
    let mut text = list::table(
        &["The release", "number"],
        rows.iter().map(|(what, n)| vec![(*what).to_owned(), number(*n)]),
    );
    text.push_str(&format!("Begin with {}\n", args.dir.join("README.md").display()));
    text
}
