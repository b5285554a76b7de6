//! Modules as graphs: exported by the worker, lowered to problem folders, with the values of their tensors.

use std::collections::{BTreeMap, BTreeSet};

use assay_lower::{ExportedGraph, GeneratedProblem, lower};
use assay_tensor::Tensor;
use serde_json::{Value, json};

use super::{File, SEED, broken};
use crate::client::{Raised, Torch};
use crate::error::TorchError;

/// Bytes of float64 that one request for values may ask for; the exchange holds twice as much.
const BATCH_BYTES: u64 = 96 << 20;

/// A module lowered.
#[derive(Clone, Debug)]
pub struct Substrate {
    /// The folder's text.
    pub problem: GeneratedProblem,
    /// What it was made from.
    pub graph: ExportedGraph,
    /// Whether composite operators were decomposed first.
    pub decomposed: bool,
    /// The file's digest.
    pub sha256: String,
}

/// Module-level names and values, and the work at them where it can be counted.
pub type Cut = (BTreeMap<String, Value>, Option<u64>);

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// We lack something: an operator, a use of one.
    Unsupported(String),
    /// The file, or PyTorch, raised: stage and message.
    Raised(String),
    /// Memory ran out.
    Exhausted(String),
}

impl From<Raised> for Refusal {
    fn from(r: Raised) -> Refusal {
        let said = format!("{}: {}", r.stage, r.message);
        if r.stage == "allocate" { Refusal::Exhausted(said) } else { Refusal::Raised(said) }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Unsupported(what) | Refusal::Exhausted(what) | Refusal::Raised(what) => {
                f.write_str(what)
            }
        }
    }
}

/// A module's tensors on the inputs of one trial, by the generated problem's names.
#[derive(Clone, Debug)]
pub struct Revealed {
    /// Inputs and parameters.
    pub inputs: BTreeMap<String, Tensor>,
    /// What the module gives in float32.
    pub official: BTreeMap<String, Tensor>,
    /// What it gives in float64.
    pub truth: BTreeMap<String, Tensor>,
}

/// Extents at which the work of a forward pass is at most `work` plain kernel steps, or as near as cuts lead: module-level
/// names and values, beginning with `overrides`. The work is none where it cannot be counted.
///
/// # Errors
/// A worker that broke the protocol or ended; what the file raises is the inner error.
pub fn shrink(
    torch: &mut Torch<'_>,
    file: &File,
    overrides: &BTreeMap<String, Value>,
    work: u64,
) -> Result<Result<Cut, Refusal>, TorchError> {
    let request = json!({"type": "shrink", "path": file.path, "overrides": overrides, "work": work});
    let reply = match torch.ask(&request, &file.name)? {
        Ok(reply) => reply,
        Err(raised) => return Ok(Err(raised.into())),
    };
    let values = reply.get("overrides").and_then(Value::as_object);
    let values = values.ok_or_else(|| broken("no `overrides`", &reply))?;
    let values = values.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    Ok(Ok((values, reply.get("work").and_then(Value::as_u64))))
}

/// Cuts a file's extents to the desk's and then until the work is at most `work` plain kernel steps, and lowers its module
/// there; at the file's own extents where there is no such number. The extents and the work are what was tried, whatever
/// came of it.
///
/// # Errors
/// A worker that broke the protocol or ended.
pub fn lowered(
    torch: &mut Torch<'_>,
    file: &File,
    work: Option<u64>,
) -> Result<(Cut, Result<Substrate, Refusal>), TorchError> {
    let Some(work) = work else {
        let none = BTreeMap::new();
        let made = substrate(torch, file, &none)?;
        return Ok(((none, None), made));
    };
    let desk = super::Plan { desk: true, trials: 1, tolerances: Vec::new() }.overrides(file)?;
    let mut tries = vec![desk];
    if tries.iter().any(|t| !t.is_empty()) {
        // A file of another benchmark under a number of the table's: its own numbers are cut.
        tries.push(BTreeMap::new());
    }
    let mut out = None;
    for overrides in tries {
        let cut = match shrink(torch, file, &overrides, work)? {
            Ok(cut) => cut,
            Err(refusal) => {
                out = Some(((overrides, None), Err(refusal)));
                continue;
            }
        };
        let made = substrate(torch, file, &cut.0)?;
        let again = matches!(made, Err(Refusal::Raised(_)));
        out = Some((cut, made));
        if !again {
            break;
        }
    }
    out.ok_or_else(|| TorchError::Bad(format!("`{}`: nothing was tried", file.name)))
}

/// Exports a file's module at these extents and lowers it: as it stands, and where an operator is missing then, from its
/// core operators.
///
/// # Errors
/// A worker that broke the protocol or ended; what the file raises, and what is not lowered, is the inner error.
pub fn substrate(
    torch: &mut Torch<'_>,
    file: &File,
    overrides: &BTreeMap<String, Value>,
) -> Result<Result<Substrate, Refusal>, TorchError> {
    let problem = json!({
        "type": "problem", "path": file.path, "overrides": overrides, "seed": SEED, "trials": 5,
    });
    let sha256 = match torch.ask(&problem, &file.name)? {
        Ok(reply) => super::text(&reply, "sha256")?,
        Err(raised) => return Ok(Err(raised.into())),
    };
    let mut first: Option<Refusal> = None;
    for decomposed in [false, true] {
        let request = json!({"type": "export", "trial": 0, "decompose": decomposed});
        let mut reply = match torch.ask(&request, &file.name)? {
            Ok(reply) => reply,
            Err(raised) => return Ok(Err(first.unwrap_or_else(|| raised.into()))),
        };
        let graph = reply.get_mut("graph").map(Value::take).unwrap_or_default();
        let graph: ExportedGraph = serde_json::from_value(graph)
            .map_err(|e| TorchError::Protocol(format!("the worker's graph: {e}"), file.name.clone()))?;
        // Level 0: the catalogue's own problems of these numbers have dims that shipped recipes name.
        let id = file.level.saturating_mul(1000).saturating_add(file.id);
        let graph = ExportedGraph { name: file.title(), level: 0, id, ..graph };
        match lower(&graph) {
            Ok(problem) => return Ok(Ok(Substrate { problem, graph, decomposed, sha256 })),
            Err(e) => first = first.or(Some(Refusal::Unsupported(e.to_string()))),
        }
    }
    Ok(Err(first.unwrap_or_else(|| Refusal::Unsupported("nothing was exported".to_owned()))))
}

/// Runs the module that was exported last on its trial's inputs, in float32 and in float64, and fetches every tensor.
///
/// # Errors
/// As [`substrate`].
pub fn reveal(
    torch: &mut Torch<'_>,
    file: &File,
    substrate: &Substrate,
) -> Result<Result<Revealed, Refusal>, TorchError> {
    let reply = match torch.ask(&json!({"type": "reveal", "trial": 0}), &file.name)? {
        Ok(reply) => reply,
        Err(raised) => return Ok(Err(raised.into())),
    };
    let problem = &substrate.problem;
    if reply.get("outputs").and_then(Value::as_u64) != Some(problem.outputs.len() as u64) {
        return Ok(Err(Refusal::Unsupported(format!(
            "the module gives {} outputs, its graph {}",
            reply.get("outputs").unwrap_or(&Value::Null),
            problem.outputs.len()
        ))));
    }
    let indexed = |kind: &str| -> BTreeMap<String, String> {
        problem.outputs.iter().enumerate().map(|(k, name)| (name.clone(), format!("{kind}:{k}"))).collect()
    };
    // A size decides what is asked for together; what the forward pass made is asked for by itself.
    let sizes: BTreeMap<&str, u64> = substrate
        .graph
        .sources()
        .map(|s| {
            let n = assay_tensor::numel(&s.shape).unwrap_or(u64::MAX);
            (s.target.as_str(), n.saturating_mul(8))
        })
        .collect();
    let mut fetch = |names: &BTreeMap<String, String>| -> Result<Result<_, Refusal>, TorchError> {
        let mut batches: Vec<(u64, Vec<String>)> = Vec::new();
        for target in names.values().collect::<BTreeSet<_>>() {
            let bytes = sizes.get(target.as_str()).copied().unwrap_or(BATCH_BYTES);
            match batches.last_mut() {
                Some((sum, list)) if sum.saturating_add(bytes) <= BATCH_BYTES => {
                    *sum += bytes;
                    list.push(target.clone());
                }
                _ => batches.push((bytes, vec![target.clone()])),
            }
        }
        let mut found: BTreeMap<String, Tensor> = BTreeMap::new();
        for (_, list) in batches {
            match torch.values(&list, &file.name)? {
                Ok(tensors) => found.extend(tensors),
                Err(raised) => return Ok(Err(Refusal::from(raised))),
            }
        }
        let named =
            names.iter().filter_map(|(name, target)| Some((name.clone(), found.get(target)?.clone())));
        Ok(Ok(named.collect::<BTreeMap<String, Tensor>>()))
    };
    macro_rules! take {
        ($names:expr) => {
            match fetch($names)? {
                Ok(tensors) => tensors,
                Err(refusal) => return Ok(Err(refusal)),
            }
        };
    }
    let inputs = take!(&problem.sources);
    let official = take!(&indexed("output"));
    let truth = take!(&indexed("truth"));
    Ok(Ok(Revealed { inputs, official, truth }))
}
