//! `ErfByTanh`: an error function is approximated by a hyperbolic tangent.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An error function is approximated by a hyperbolic tangent.
pub struct ErfByTanh;

impl Rule for ErfByTanh {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ErfByTanh",
            family: Family::Precision,
            reason: "an error function is approximated by a hyperbolic tangent",
            source: "public bug reports: GELU variants, https://github.com/huggingface/candle/pull/900",
            before: "s = erff(a);",
            after: &["s = tanhf(1.1283792f * (a) + 0.1009f * (a) * (a) * (a));"],
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
        if call.name == "erff"
            && let [argument] = call.args[..]
            && at.pure(argument)
        {
            let z = at.flat(argument);
            out.replace(at.node, format!("tanhf(1.1283792f * ({z}) + 0.1009f * ({z}) * ({z}) * ({z}))"));
        }
    }
}
