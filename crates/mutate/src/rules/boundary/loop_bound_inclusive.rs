//! `LoopBoundInclusive`: a loop runs once too often.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A loop runs once too often.
pub struct LoopBoundInclusive;

impl Rule for LoopBoundInclusive {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopBoundInclusive",
            family: Family::Boundary,
            reason: "a loop runs once too often",
            source: "checker paper, boundary: loop bound off by one",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q <= n; ++q) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        if at.for_condition().is_none() || shared::steps_by_factor(at) {
            return;
        }
        match b.op {
            "<" if !at.reals(&b) => out.replace(b.op_node, "<="),
            ">" if !at.reals(&b) => out.replace(b.op_node, ">="),
            _ => {}
        }
    }
}
