//! `Bfloat16Accumulator`: a sum is cut to bfloat16 at every step.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A sum is cut to bfloat16 at every step.
pub struct Bfloat16Accumulator;

impl Rule for Bfloat16Accumulator {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "Bfloat16Accumulator",
            family: Family::Precision,
            reason: "a sum is cut to bfloat16 at every step",
            source: "checker paper, precision: narrow accumulators",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &[
                "for (int q = 0; q < n; ++q) s = __uint_as_float(__float_as_uint(s + (x[q])) & 0xffff0000u);",
            ],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some((target, term)) = shared::accumulation(at) else { return };
        let sum = format!("__uint_as_float(__float_as_uint({target} + ({term})) & 0xffff0000u)");
        out.replace(at.node, format!("{target} = {sum}"));
    }
}
