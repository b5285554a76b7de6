//! `assay export`: the release of a finished audit.

use assay_release::{Exported, ReleaseError};
use assay_report::text::number;
use serde_json::{Map, Value, json};

use crate::cli::{Common, ExportArgs};
use crate::commands::{audit, list};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Runs the command.
///
/// # Errors
/// Bad input: no finished run, or a folder that holds something else. An unwritable folder.
pub fn export(common: &Common, args: &ExportArgs) -> Result<Exit, Failure> {
    let bar = Bar::new(common.quiet || common.json);
    let tool = concat!("assay ", env!("CARGO_PKG_VERSION"));
    let done = assay_release::export(&args.run, &args.dir, tool, &bar).map_err(|e| failure(&e));
    bar.finish();
    let done = done?;
    if common.json {
        output::json(&document(&done))?;
    } else if !common.quiet {
        output::text(&page(args, &done))?;
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
