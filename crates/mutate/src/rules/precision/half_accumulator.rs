//! `HalfAccumulator`: a sum is kept in half precision.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A sum is kept in half precision.
pub struct HalfAccumulator;

impl Rule for HalfAccumulator {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HalfAccumulator",
            family: Family::Precision,
            reason: "a sum is kept in half precision",
            source: "checker paper, precision: fp16 accumulators",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q < n; ++q) s = through_half(s + (x[q]));"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some((target, term)) = shared::accumulation(at) else { return };
        let (value, others) = at.through_half(&format!("{target} + ({term})"));
        out.replace_with(at.node, format!("{target} = {value}"), others);
    }
}
