//! Two sweeps compared run by run (boundary paper, §4.4): every field, except what identifies a run, describes the
//! environment or measures time and memory, and the text that a system writes when a process aborts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::error::SweepError;
use crate::record::{Outcome, Record};

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Runs that both have.
    pub common: usize,
    /// Of those, the ones equal in every compared field.
    pub identical: usize,
    /// Runs that only one side has, in words.
    pub only_first: Vec<String>,
    /// See above.
    pub only_second: Vec<String>,
    /// Runs that differ: which, and field by field both values.
    pub differing: Vec<Differing>,
}

/// A run that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differing {
    /// The run, in words.
    pub run: String,
    /// Field, first value, second value.
    pub fields: Vec<(String, Value, Value)>,
}

impl Difference {
    /// Whether nothing differs.
    pub fn equal(&self) -> bool {
        self.only_first.is_empty() && self.only_second.is_empty() && self.differing.is_empty()
    }
}

/// Fields that say which run it is, where it ran and how long it took.
const APART: [&str; 24] = [
    "schema",
    "run_id",
    "fingerprint",
    "ts",
    "phase",
    "series_id",
    "shape_id",
    "backend",
    "device",
    "torch",
    "environment",
    "wall_sec",
    "host_tag",
    "operators",
    "probe",
    "chip",
    "host",
    "platform",
    "machine",
    "worker_sha256",
    "driver_sha256",
    "sha256",
    "python",
    "peak",
];

/// A field of another writer that describes the environment, time or memory.
fn apart(name: &str) -> bool {
    APART.contains(&name)
        || ["_sec", "time", "torch", "mem", "rss", "macos", "os_", "python", "host", "version"]
            .iter()
            .any(|p| name.contains(p))
}

/// What makes two runs the same one: operation, shape, dtype, layout, input, batch size, seed, kind of comparison, leading
/// batches, and whether it calibrates.
fn key(r: &Record) -> Result<String, SweepError> {
    let p = r.point()?;
    let calibration = if r.calibration() { " calibration" } else { "" };
    let offset = if p.offset > 0 { format!(" behind {}", p.offset) } else { String::new() };
    Ok(format!(
        "{} {} B={}{offset} seed={} {}{calibration}",
        p.series(),
        p.kind.name(),
        p.batch,
        p.seed,
        if r.compare.is_empty() { "sample" } else { &r.compare }
    ))
}

/// Compares two sets of records.
///
/// # Errors
/// Records that are none.
pub fn compare(first: &[Record], second: &[Record]) -> Result<Difference, SweepError> {
    let index = |records: &[Record]| -> Result<BTreeMap<String, Value>, SweepError> {
        let mut out = BTreeMap::new();
        for r in records {
            out.insert(key(r)?, fields(r)?);
        }
        Ok(out)
    };
    let (a, b) = (index(first)?, index(second)?);
    let mut out = Difference::default();
    for (k, v) in &a {
        let Some(w) = b.get(k) else {
            out.only_first.push(k.clone());
            continue;
        };
        out.common += 1;
        let (Value::Object(v), Value::Object(w)) = (v, w) else { continue };
        let names: BTreeSet<&String> = v.keys().chain(w.keys()).collect();
        let fields: Vec<(String, Value, Value)> = names
            .into_iter()
            .map(|n| {
                (
                    n.clone(),
                    v.get(n).cloned().unwrap_or(Value::Null),
                    w.get(n).cloned().unwrap_or(Value::Null),
                )
            })
            .filter(|(_, x, y)| x != y)
            .collect();
        if fields.is_empty() {
            out.identical += 1;
        } else {
            out.differing.push(Differing { run: k.clone(), fields });
        }
    }
    out.only_second = b.keys().filter(|k| !a.contains_key(*k)).cloned().collect();
    Ok(out)
}

/// The compared fields.
fn fields(r: &Record) -> Result<Value, SweepError> {
    let mut value = serde_json::to_value(r).map_err(|e| SweepError::bad(e.to_string()))?;
    if let Some(map) = value.as_object_mut() {
        let crash = r.outcome()? == Outcome::Crash;
        map.retain(|k, _| !(apart(k) || crash && k == "message"));
    }
    Ok(value)
}
