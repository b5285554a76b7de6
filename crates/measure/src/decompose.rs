//! How much of a protocol's gain over the official check is its inputs', and how much its tolerance's.
//!
//! Four rates: official inputs and the protocol's, each at the official tolerance and at the protocol's. Both ways from
//! the one corner to the other are told, since the parts depend on which is changed first: the checker paper changes the
//! inputs first. Nothing is executed: thresholds are stored.
//!
//! Source: "Measuring the Checker", section 5 (decomposing KernelBench-Verified).

use serde::{Deserialize, Serialize};

use crate::{KillMatrix, Protocol, Scope, Tolerance, percent, published::Published, score};

/// The four corners of one protocol, in witnessed mutants detected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecompositionRow {
    /// The protocol.
    pub protocol: String,
    /// Its absolute tolerance.
    pub atol: f64,
    /// Its relative tolerance.
    pub rtol: f64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Detected by the official inputs at the official tolerance.
    pub official: u64,
    /// By the official inputs at the protocol's tolerance.
    pub official_at_tolerance: u64,
    /// By the protocol's inputs at the official tolerance.
    pub inputs_at_official_tolerance: u64,
    /// By the protocol.
    pub detected: u64,
    /// Points of its inputs, changed first.
    pub inputs_first: Option<f64>,
    /// Points of its tolerance, changed after the inputs.
    pub tolerance_second: Option<f64>,
    /// Points of its tolerance, changed first.
    pub tolerance_first: Option<f64>,
    /// Points of its inputs, changed after the tolerance.
    pub inputs_second: Option<f64>,
    /// Published points of the inputs, changed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_inputs_first: Option<f64>,
    /// Published points of the tolerance after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_tolerance_second: Option<f64>,
}

/// Points from `from` to `to` of `whole`, to one decimal; none where `whole` is zero.
fn points(from: u64, to: u64, whole: u64) -> Option<f64> {
    let size = percent(from.abs_diff(to), whole)?;
    Some(if to < from { -size } else { size })
}

/// One row for each protocol that asks other inputs than the official one, or has another tolerance. An external
/// checker's tolerance is its own, so it has none; nor has a protocol whose inputs are chosen by cover, as they would
/// be others at another tolerance, unless it keeps the official one.
pub fn decompose(
    official: &Protocol,
    protocols: &[Protocol],
    matrices: &[KillMatrix],
    scope: &Scope,
    published: Option<&Published>,
) -> Vec<DecompositionRow> {
    if official.checker.is_some() {
        return Vec::new();
    }
    let base = official.tolerance();
    let detected = |p: &Protocol, tolerance: Tolerance| {
        let s = score(&p.with_tolerance(p.name.as_str(), tolerance), matrices, scope);
        (s.detected, s.witnessed)
    };
    let (at_base, _) = detected(official, base);
    let same_inputs = |p: &Protocol| {
        p.inputs == official.inputs
            && !p.targeted
            && p.suite_budget.is_none()
            && p.extra_inputs == official.extra_inputs
            && p.problems == official.problems
    };
    let mut rows = Vec::new();
    for p in protocols.iter().filter(|p| p.checker.is_none()) {
        let tolerance = p.tolerance();
        let moves = tolerance != base;
        if (same_inputs(p) && !moves) || (p.suite_budget.is_some() && moves) {
            continue;
        }
        let (own, witnessed) = detected(p, tolerance);
        let official_at_tolerance = if moves { detected(official, tolerance).0 } else { at_base };
        let inputs = if moves { detected(p, base).0 } else { own };
        let beside = published.map(|f| &f.decomposition).filter(|d| d.protocol == p.name);
        rows.push(DecompositionRow {
            protocol: p.name.clone(),
            atol: p.atol,
            rtol: p.rtol,
            witnessed,
            official: at_base,
            official_at_tolerance,
            inputs_at_official_tolerance: inputs,
            detected: own,
            inputs_first: points(at_base, inputs, witnessed),
            tolerance_second: points(inputs, own, witnessed),
            tolerance_first: points(at_base, official_at_tolerance, witnessed),
            inputs_second: points(official_at_tolerance, own, witnessed),
            published_inputs_first: beside.map(|d| d.inputs_points),
            published_tolerance_second: beside.map(|d| d.tolerance_points),
        });
    }
    rows
}
