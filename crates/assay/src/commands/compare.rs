//! `assay compare`: two runs of one kind, side by side.

use std::path::{Path, PathBuf};

#[cfg(feature = "device")]
use assay_campaign::records::Records;
#[cfg(feature = "device")]
use assay_measure::{KillMatrix, compare_audits};
use assay_sweep::differ;
use assay_sweep::record::{self, RECORDS};
use serde_json::json;

use crate::cli::{Common, CompareArgs};
#[cfg(feature = "device")]
use crate::commands::audit::failure;
use crate::exit::{Exit, Failure};
use crate::output;

/// What a path holds. One variant for each kind of run that can be compared.
enum Operand {
    /// A run folder of `assay audit`.
    #[cfg(feature = "device")]
    Audit(PathBuf),
    /// A run folder of `assay sweep`, or a file of its JSON lines.
    Sweep(PathBuf),
}

/// Tells what a path holds by what lies there.
fn operand(path: &Path) -> Result<Operand, Failure> {
    #[cfg(feature = "device")]
    if path.join("run.db").is_file() {
        return Ok(Operand::Audit(path.to_owned()));
    }
    if path.join(RECORDS).is_file() || path.extension().is_some_and(|e| e == "jsonl") && path.is_file() {
        return Ok(Operand::Sweep(path.to_owned()));
    }
    let what =
        if path.exists() { "holds no run: neither `run.db` nor `records.jsonl`" } else { "does not exist" };
    Err(Failure::bad_input(format!("`{}` {what}; name the folder of a finished run", path.display())))
}

/// Runs the command; exits with 1 on any difference.
///
/// # Errors
/// Bad input: a path without a finished run, two runs of unlike kinds.
pub fn compare(common: &Common, args: &CompareArgs) -> Result<Exit, Failure> {
    match (operand(&args.before)?, operand(&args.after)?) {
        #[cfg(feature = "device")]
        (Operand::Audit(before), Operand::Audit(after)) => audits(common, &before, &after),
        (Operand::Sweep(before), Operand::Sweep(after)) => sweeps(common, &before, &after),
        #[cfg(feature = "device")]
        _ => Err(Failure::bad_input("one of them is an audit, the other a sweep; compare two of a kind")),
    }
}

fn sweeps(common: &Common, before: &Path, after: &Path) -> Result<Exit, Failure> {
    let read = |path: &Path| record::read(path).map_err(super::sweep::failure);
    let found = differ::compare(&read(before)?, &read(after)?).map_err(super::sweep::failure)?;
    if common.json {
        let mut document = json!({
            "kind": "sweeps",
            "before": before.display().to_string(),
            "after": after.display().to_string(),
            "same": found.equal(),
        });
        let more = serde_json::to_value(&found).map_err(Failure::bug)?;
        if let (Some(map), Some(more)) = (document.as_object_mut(), more.as_object()) {
            map.extend(more.clone());
        }
        output::json(&document)?;
    } else {
        output::text(&assay_sweep::text::difference(&found, output::width()))?;
    }
    Ok(if found.equal() { Exit::Fine } else { Exit::Wrong })
}

#[cfg(feature = "device")]
fn audits(common: &Common, before: &Path, after: &Path) -> Result<Exit, Failure> {
    let read = |folder: &Path| Records::read(folder).map_err(|e| failure(&e));
    let (a, b) = (read(before)?, read(after)?);
    let matrices = |r: &Records| -> Vec<KillMatrix> { r.matrices.iter().map(|(_, m)| m.clone()).collect() };
    let compared = compare_audits((&matrices(&a), &a.protocols), (&matrices(&b), &b.protocols));
    if common.json {
        let mut document = json!({
            "kind": "audits",
            "before": before.display().to_string(),
            "after": after.display().to_string(),
        });
        let found = serde_json::to_value(&compared).map_err(Failure::bug)?;
        if let (Some(map), Some(more)) = (document.as_object_mut(), found.as_object()) {
            map.extend(more.clone());
        }
        output::json(&document)?;
    } else {
        output::text(&assay_report::comparison(&compared, output::width()))?;
    }
    Ok(if compared.same { Exit::Fine } else { Exit::Wrong })
}
