//! `FastExponential`: an exponential is the fast approximation.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An exponential is the fast approximation.
pub struct FastExponential;

impl Rule for FastExponential {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FastExponential",
            family: Family::Precision,
            reason: "an exponential is the fast approximation",
            source: "checker paper, precision: fast-math intrinsics",
            before: "s = expf(a);",
            after: &["s = __expf(a);"],
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
            "expf" => "__expf",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
