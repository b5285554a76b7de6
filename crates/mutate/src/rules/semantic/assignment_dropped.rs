//! `AssignmentDropped`: an assignment is missing.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::assignment;

/// An assignment is missing.
pub struct AssignmentDropped;

impl Rule for AssignmentDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AssignmentDropped",
            family: Family::Semantic,
            reason: "an assignment is missing",
            source: "classical statement deletion",
            before: "s = a * b;",
            after: &[";"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["expression_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node.named_child(0)?.child_by_field_name("left")?))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.node.named_child(0).and_then(assignment) else { return };
        if b.op == "=" && !at.host() {
            out.replace(at.node, ";");
        }
    }
}
