//! `FastLogarithm`: a logarithm is the fast approximation.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A logarithm is the fast approximation.
pub struct FastLogarithm;

impl Rule for FastLogarithm {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FastLogarithm",
            family: Family::Precision,
            reason: "a logarithm is the fast approximation",
            source: "checker paper, precision: fast-math intrinsics",
            before: "s = logf(a);",
            after: &["s = __logf(a);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        let new = match call.name {
            "logf" => "__logf",
            "log2f" => "__log2f",
            "log10f" => "__log10f",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
