//! `IncrementDirection`: a counter counts the other way.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A counter counts the other way.
pub struct IncrementDirection;

impl Rule for IncrementDirection {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IncrementDirection",
            family: Family::Arithmetic,
            reason: "a counter counts the other way",
            source: "MUTGPU, conventional operators: increment replacement",
            before: "++j;",
            after: &["--j;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["update_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(operator) = at.node.child_by_field_name("operator") else { return };
        // A loop's own step has rules of its own, and the other way it would not end.
        if at.in_for_update() {
            return;
        }
        match operator.kind() {
            "++" => out.replace(operator, "--"),
            "--" => out.replace(operator, "++"),
            _ => {}
        }
    }
}
