//! KernelBench's problem files as they are, and what their official check lets pass.
//!
//! A file defines `Model`, `get_inputs` and `get_init_inputs`. The worker runs it as the benchmark's `eval.py` does (seed 42,
//! float32 in training mode, every input cast, the trials' seeds drawn from the seed), on the CPU, and compares by
//! `torch.allclose(output, candidate, atol=t, rtol=t)`: the tolerance is relative to the candidate. Here are the files, the
//! extents, the candidates and what is made of the answers.
//!
//! A constant needs no run: whether all elements accept it depends on the smallest and the largest alone, because the
//! check's own float32 arithmetic is monotone in the distance. So the interval of accepted constants is computed, and its
//! middle checked in that arithmetic.

mod export;
mod files;
mod oracle;
mod report;

use std::collections::BTreeMap;

use assay_tensor::tensor::hex;
use assay_worker::Script;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::client::{Raised, Torch};
use crate::error::TorchError;

pub use export::{Cut, Refusal, Revealed, Substrate, lowered, reveal, shrink, substrate};
pub use files::{File, find, find_files};
pub use oracle::{FileFor, FileOracle, Generated};
pub use report::{Candidate, Constant, ProblemReport, Status, Violations, others};

/// The official seed.
pub const SEED: u64 = 42;

/// Functions of one tensor that are tried as answers; the worker knows them by these names.
const FUNCTIONS: &[&str] = &[
    "relu",
    "leaky_relu",
    "sigmoid",
    "tanh",
    "softmax",
    "log_softmax",
    "swish",
    "gelu",
    "selu",
    "hardsigmoid",
    "softplus",
    "softsign",
    "elu",
    "hardtanh",
    "negation",
];

/// The function that a file is named after, within this threshold on every trial, is its answer and no blind spot.
const SAME: f64 = 1e-6;

/// What is measured on each file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Cut extents where the table has them.
    pub desk: bool,
    /// Trials, as `num_correct_trials`.
    pub trials: u64,
    /// The tolerances, each for `atol` and `rtol`.
    pub tolerances: Vec<f64>,
}

/// Extents of problem `level/id` of the benchmark that a CPU affords: module-level names and their values; none where the
/// table has none.
pub fn desk_extents(key: &str) -> Option<BTreeMap<String, Value>> {
    files::desk().ok()?.remove(key)
}

impl Plan {
    /// The extents that a file gets: module-level names and their values.
    ///
    /// # Errors
    /// `Bad` where the table has a fault; a test loads it.
    pub fn overrides(&self, file: &File) -> Result<BTreeMap<String, Value>, TorchError> {
        if !self.desk {
            return Ok(BTreeMap::new());
        }
        Ok(files::desk()?.remove(&file.key()).unwrap_or_default())
    }

    /// What a report depends on, as a digest: the worker, PyTorch, the file, its extents and the plan.
    ///
    /// # Errors
    /// `Io` where the file cannot be read; as [`Plan::overrides`].
    pub fn digest(&self, file: &File, version: &str) -> Result<String, TorchError> {
        let text = std::fs::read(&file.path).map_err(|error| TorchError::Io {
            action: "read",
            path: file.path.clone(),
            error,
        })?;
        let rest = json!([
            Script::Torch.source(),
            version,
            self.overrides(file)?,
            self.trials,
            self.tolerances,
            FUNCTIONS
        ]);
        Ok(hex(&Sha256::new().chain_update(rest.to_string()).chain_update(text).finalize()))
    }
}

/// Measures one file.
///
/// # Errors
/// A worker that broke the protocol, or cannot be used. One that dies or hangs on this file is in the report; the caller
/// needs a new one then.
pub fn measure(torch: &mut Torch<'_>, file: &File, plan: &Plan) -> Result<ProblemReport, TorchError> {
    let mut report = ProblemReport::of(file, plan.overrides(file)?);
    match run(torch, plan, &mut report) {
        Ok(Ok(())) => report.finish(plan),
        Ok(Err(raised)) => {
            report.status = if raised.stage == "allocate" { Status::Exhausted } else { Status::Refused };
            report.reason = format!("{}: {}", raised.stage, raised.message);
        }
        Err(TorchError::Died(why, _)) => {
            report.status = Status::Died;
            report.reason = why;
        }
        Err(TorchError::Hung(seconds, _)) => {
            report.status = Status::Exhausted;
            report.reason = format!("no answer within {seconds} s");
        }
        Err(e) => return Err(e),
    }
    Ok(report)
}

fn run(
    torch: &mut Torch<'_>,
    plan: &Plan,
    report: &mut ProblemReport,
) -> Result<Result<(), Raised>, TorchError> {
    macro_rules! ask {
        ($request:expr) => {
            match torch.ask(&$request, &report.file)? {
                Ok(reply) => reply,
                Err(raised) => return Ok(Err(raised)),
            }
        };
    }
    let reply = ask!(json!({
        "type": "problem", "path": report.path, "overrides": report.extents, "seed": SEED, "trials": plan.trials,
    }));
    report.sha256 = text(&reply, "sha256")?;
    for trial in 0..plan.trials {
        let shown = ask!(json!({"type": "trial", "trial": trial}));
        report.add_trial(&shown).map_err(|why| broken(&why, &shown))?;
        let inputs = shown.get("inputs").and_then(Value::as_array).map_or(0, Vec::len);
        let mut candidates = vec![("zeros".to_owned(), json!({"kind": "constant", "value": 0.0}))];
        for i in 0..inputs.min(4) {
            candidates.push((format!("input {i}"), json!({"kind": "input", "index": i})));
            candidates.push((format!("mean of input {i}"), json!({"kind": "input_mean", "index": i})));
        }
        for name in FUNCTIONS {
            candidates.push(((*name).to_owned(), json!({"kind": "function", "name": name})));
        }
        for (name, candidate) in candidates {
            if trial > 0 && !report.still_open(&name) {
                continue;
            }
            let said =
                ask!(json!({"type": "accepts", "candidate": candidate, "tolerances": plan.tolerances}));
            report.add_answer(&name, &said, plan.tolerances.len()).map_err(|why| broken(&why, &said))?;
        }
        let said = ask!(json!({"type": "violations", "tolerances": plan.tolerances}));
        report.add_violations(&said, &plan.tolerances).map_err(|why| broken(&why, &said))?;
    }
    Ok(Ok(()))
}

fn broken(why: &str, reply: &Value) -> TorchError {
    TorchError::Protocol(format!("the worker broke the protocol: {why}: `{reply}`"), String::new())
}

fn text(reply: &Value, key: &str) -> Result<String, TorchError> {
    reply
        .get(key)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| broken(&format!("no `{key}`"), reply))
}
