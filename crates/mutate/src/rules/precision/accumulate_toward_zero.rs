//! `AccumulateTowardZero`: a sum rounds toward zero, so its error grows with its length.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A sum rounds toward zero, so its error grows with its length.
pub struct AccumulateTowardZero;

impl Rule for AccumulateTowardZero {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AccumulateTowardZero",
            family: Family::Precision,
            reason: "a sum rounds toward zero, so its error grows with its length",
            source: "public bug reports: biased rounding in accumulators",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q < n; ++q) s = __fadd_rz(s, x[q]);"],
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
        out.replace(at.node, format!("{target} = __fadd_rz({target}, {term})"));
    }
}
