//! `FastTrigonometry`: a sine or cosine is the fast approximation.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A sine or cosine is the fast approximation.
pub struct FastTrigonometry;

impl Rule for FastTrigonometry {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FastTrigonometry",
            family: Family::Precision,
            reason: "a sine or cosine is the fast approximation",
            source: "checker paper, precision: fast-math intrinsics",
            before: "s = sinf(a);",
            after: &["s = __sinf(a);"],
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
            "sinf" => "__sinf",
            "cosf" => "__cosf",
            "tanf" => "__tanf",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
