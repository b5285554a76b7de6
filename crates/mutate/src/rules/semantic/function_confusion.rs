//! `FunctionConfusion`: a function is taken for a similar one.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A function is taken for a similar one.
pub struct FunctionConfusion;

impl Rule for FunctionConfusion {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FunctionConfusion",
            family: Family::Semantic,
            reason: "a function is taken for a similar one",
            source: "checker paper, semantic; public bug reports: activation variants",
            before: "s = sinf(a);",
            after: &["s = cosf(a);"],
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
            "sinf" => "cosf",
            "cosf" => "sinf",
            "erff" => "tanhf",
            "tanhf" => "erff",
            "expf" | "__expf" => "exp2f",
            "logf" | "__logf" => "log2f",
            "log1pf" => "logf",
            "sqrtf" => "cbrtf",
            "rsqrtf" => "sqrtf",
            "floorf" => "ceilf",
            "ceilf" => "floorf",
            "roundf" | "rintf" => "truncf",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
