//! `FastPower`: a power is the fast approximation.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A power is the fast approximation.
pub struct FastPower;

impl Rule for FastPower {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FastPower",
            family: Family::Precision,
            reason: "a power is the fast approximation",
            source: "checker paper, precision: fast-math intrinsics",
            before: "s = powf(a, b);",
            after: &["s = __powf(a, b);"],
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
            "powf" => "__powf",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
