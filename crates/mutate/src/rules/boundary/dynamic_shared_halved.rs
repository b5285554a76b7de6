//! `DynamicSharedHalved`: a launch asks for half the shared memory that its kernel uses.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A launch asks for half the shared memory that its kernel uses.
pub struct DynamicSharedHalved;

impl Rule for DynamicSharedHalved {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "DynamicSharedHalved",
            family: Family::Boundary,
            reason: "a launch asks for half the shared memory that its kernel uses",
            source: "checker paper, host code",
            before: "k<<<n, 256, 1024>>>(x, w, y, n, m);",
            after: &["k<<<n, 256, 1024 / 2>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["kernel_call_syntax"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(bytes) = named_children(at.node).get(2).copied()
            && at.int(bytes) != Some(0)
        {
            out.replace(bytes, format!("{} / 2", at.atom(bytes)));
        }
    }
}
