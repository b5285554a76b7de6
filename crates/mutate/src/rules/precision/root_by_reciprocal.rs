//! `RootByReciprocal`: a square root goes through its reciprocal, which has no value at zero.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A square root goes through its reciprocal, which has no value at zero.
pub struct RootByReciprocal;

impl Rule for RootByReciprocal {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "RootByReciprocal",
            family: Family::Precision,
            reason: "a square root goes through its reciprocal, which has no value at zero",
            source: "public bug reports: sqrt through rsqrt, https://github.com/scoopr/vectorial/issues/2",
            before: "s = sqrtf(a);",
            after: &["s = (a * rsqrtf(a));"],
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
        if call.name == "sqrtf"
            && let [argument] = call.args[..]
            && at.pure(argument)
        {
            out.replace(at.node, format!("({} * rsqrtf({}))", at.atom(argument), at.flat(argument)));
        }
    }
}
