//! `StabiliserDropped`: an exponential is taken without subtracting the maximum.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// An exponential is taken without subtracting the maximum.
pub struct StabiliserDropped;

impl Rule for StabiliserDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StabiliserDropped",
            family: Family::Precision,
            reason: "an exponential is taken without subtracting the maximum",
            source: "checker paper, precision: no-stabiliser softmax",
            before: "s = expf(a - b);",
            after: &["s = expf(a);"],
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
        if !matches!(call.name, "expf" | "__expf" | "exp" | "exp2f") {
            return;
        }
        if let Some(difference) = call.args.first().and_then(|n| binary(bare(*n))).filter(|b| b.op == "-")
            && let Some(argument) = call.args.first()
        {
            out.replace(*argument, at.flat(difference.left));
        }
    }
}
