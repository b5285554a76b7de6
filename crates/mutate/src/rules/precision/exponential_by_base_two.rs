//! `ExponentialByBaseTwo`: an exponential goes through base two with a short constant.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An exponential goes through base two with a short constant.
pub struct ExponentialByBaseTwo;

impl Rule for ExponentialByBaseTwo {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ExponentialByBaseTwo",
            family: Family::Precision,
            reason: "an exponential goes through base two with a short constant",
            source: "checker paper, precision: perturbed constants",
            before: "s = expf(a);",
            after: &["s = exp2f(1.4427f * (a));"],
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
        if matches!(call.name, "expf" | "__expf")
            && let [argument] = call.args[..]
        {
            out.replace(at.node, format!("exp2f(1.4427f * ({}))", at.flat(argument)));
        }
    }
}
