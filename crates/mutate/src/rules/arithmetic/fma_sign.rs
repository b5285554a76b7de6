//! `FmaSign`: a fused multiply-add subtracts its product.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A fused multiply-add subtracts its product.
pub struct FmaSign;

impl Rule for FmaSign {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FmaSign",
            family: Family::Arithmetic,
            reason: "a fused multiply-add subtracts its product",
            source: "classical operator replacement on fused operations",
            before: "s = fmaf(a, b, s);",
            after: &["s = fmaf(-a, b, s);"],
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
        if matches!(call.name, "fma" | "fmaf" | "__fmaf_rn")
            && let [first, _, _] = call.args[..]
        {
            out.replace(first, format!("-{}", at.atom(first)));
        }
    }
}
