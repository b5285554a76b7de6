//! `IndexClampDropped`: an index is not clamped to the last element.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An index is not clamped to the last element.
pub struct IndexClampDropped;

impl Rule for IndexClampDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexClampDropped",
            family: Family::Boundary,
            reason: "an index is not clamped to the last element",
            source: "public bug reports: clamped index",
            before: "int r = min(i, n - 1);",
            after: &["int r = i;"],
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
        if !matches!(call.name, "min" | "max" | "std::min" | "std::max") {
            return;
        }
        let [first, second] = call.args[..] else { return };
        if !at.ty(at.node).is_int() {
            return;
        }
        // Keep what varies: the limit is the literal or the later argument.
        let kept = if at.int(first).is_some() { second } else { first };
        out.replace(at.node, at.atom(kept));
    }
}
