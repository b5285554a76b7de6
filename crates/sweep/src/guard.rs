//! The guard against recorded outcomes (boundary paper, §5 and Table 9): which silent runs would a rule on tensor sizes have
//! stopped, and at what price.

use serde::Serialize;

use crate::error::SweepError;
use crate::geometry::Layout;
use crate::point::Point;
use crate::record::{Outcome, Record};

/// One row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardRow {
    /// What the rows of this line have in common: version and series.
    pub name: String,
    /// Runs, calibration among them.
    pub runs: usize,
    /// Runs that were wrong or zero in any tensor, without an error.
    pub silent: usize,
    /// Of those, runs with a tensor of at least the limit.
    pub stopped_at_least: usize,
    /// Of those, runs with a tensor of more than the limit.
    pub stopped_more: usize,
    /// Correct runs.
    pub correct: usize,
    /// Correct runs that the inclusive rule stops.
    pub correct_stopped: usize,
    /// Silent runs that "more than the limit" lets through, in words, and of the inclusive rule.
    pub missed_by_more: Vec<String>,
    /// See above.
    pub missed_by_at_least: Vec<String>,
}

/// The largest number of elements that a run creates or reads: operands, output, for a backward pass upstream gradient and
/// gradients, and the storage behind an offset view.
pub fn largest(p: &Point) -> u64 {
    let g = p.geometry();
    // A slice is looked at by its own size: the guard sees the view, and the one batch before it was never an operand.
    let of =
        |v: &crate::geometry::View| if p.layout == Layout::Offset { v.storage_numel() } else { v.numel() };
    // Upstream gradient and gradients have the sizes of output and operands.
    of(&g.a).max(of(&g.b)).max(p.batch * p.shape.out())
}

/// Evaluates the rule "no tensor of `limit` elements and more" on records, one row by `name` in order of appearance.
///
/// # Errors
/// Records that are none.
pub fn evaluate(records: &[Record], limit: u64) -> Result<Vec<GuardRow>, SweepError> {
    let mut rows: Vec<GuardRow> = Vec::new();
    for r in records {
        let p = r.point()?;
        let series = match (p.backward, p.layout) {
            (true, _) => "backward pass",
            (_, Layout::Offset) => "offset series",
            _ if p.shape.crossing() == crate::geometry::Crossing::All => "inputs and output together",
            _ => "sweep",
        };
        let version = r.version();
        let name = if version.is_empty() { series.to_owned() } else { format!("{version}, {series}") };
        let at = match rows.iter().position(|row| row.name == name) {
            Some(at) => at,
            None => {
                rows.push(GuardRow { name, ..GuardRow::default() });
                rows.len() - 1
            }
        };
        let row = &mut rows[at];
        let outcome = r.outcome()?;
        let silent = outcome.silent()
            || [&r.cls_out, &r.cls_grad_a, &r.cls_grad_b]
                .into_iter()
                .filter_map(|c| c.as_deref().and_then(Outcome::parse))
                .any(Outcome::silent);
        let size = largest(&p);
        row.runs += 1;
        if silent {
            row.silent += 1;
            let words = || format!("{} {} B={} {}", p.series(), p.kind.name(), p.batch, outcome.name());
            if size >= limit {
                row.stopped_at_least += 1;
            } else {
                row.missed_by_at_least.push(words());
            }
            if size > limit {
                row.stopped_more += 1;
            } else {
                row.missed_by_more.push(words());
            }
        } else if outcome == Outcome::Ok {
            row.correct += 1;
            row.correct_stopped += usize::from(size >= limit);
        }
    }
    Ok(rows)
}
