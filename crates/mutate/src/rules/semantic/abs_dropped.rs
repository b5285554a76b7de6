//! `AbsDropped`: an absolute value keeps its sign.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An absolute value keeps its sign.
pub struct AbsDropped;

impl Rule for AbsDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AbsDropped",
            family: Family::Semantic,
            reason: "an absolute value keeps its sign",
            source: "checker paper: official inputs are all positive",
            before: "s = fabsf(a);",
            after: &["s = (a);"],
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
        if matches!(call.name, "fabsf" | "fabs" | "abs")
            && let [argument] = call.args[..]
        {
            out.replace(at.node, format!("({})", at.flat(argument)));
        }
    }
}
