//! `IndexShift`: an element next to the wanted one is accessed.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// An element next to the wanted one is accessed.
pub struct IndexShift;

impl Rule for IndexShift {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexShift",
            family: Family::Indexing,
            reason: "an element next to the wanted one is accessed",
            source: "checker paper, indexing; neighbour access in public bug reports",
            before: "s = x[i];",
            after: &["s = x[i + 1];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        shared::access_key(at)
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(index) = shared::subscript(at.node) else { return };
        let Some(array) = at.node.child_by_field_name("argument") else { return };
        let outside = at.symbol(at.text(array)).is_some_and(|s| s.shared || s.parameter);
        if outside && at.int(index).is_none() {
            out.replace(index, format!("{} + 1", at.flat(index)));
        }
    }
}
