//! `NaiveLogOnePlus`: a logarithm near one loses its small argument.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A logarithm near one loses its small argument.
pub struct NaiveLogOnePlus;

impl Rule for NaiveLogOnePlus {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "NaiveLogOnePlus",
            family: Family::Precision,
            reason: "a logarithm near one loses its small argument",
            source: "public bug reports: log1p and expm1, https://github.com/pytorch/pytorch/pull/92145",
            before: "s = log1pf(a);",
            after: &["s = logf(1.0f + (a));"],
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
        let [argument] = call.args[..] else { return };
        match call.name {
            "log1pf" => out.replace(at.node, format!("logf(1.0f + ({}))", at.flat(argument))),
            "expm1f" => out.replace(at.node, format!("(expf({}) - 1.0f)", at.flat(argument))),
            _ => {}
        }
    }
}
