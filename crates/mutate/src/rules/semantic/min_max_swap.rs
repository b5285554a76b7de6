//! `MinMaxSwap`: a maximum becomes a minimum, or the reverse.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A maximum becomes a minimum, or the reverse.
pub struct MinMaxSwap;

impl Rule for MinMaxSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "MinMaxSwap",
            family: Family::Semantic,
            reason: "a maximum becomes a minimum, or the reverse",
            source: "checker paper, semantic; public bug reports: reduction operator",
            before: "s = fmaxf(a, b);",
            after: &["s = fminf(a, b);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        let new = match call.name {
            "fmaxf" => "fminf",
            "fminf" => "fmaxf",
            "fmax" => "fmin",
            "fmin" => "fmax",
            "max" if !at.host() => "min",
            "min" if !at.host() => "max",
            "atomicMax" => "atomicMin",
            "atomicMin" => "atomicMax",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
