//! `NotDropped`: a negation is lost.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A negation is lost.
pub struct NotDropped;

impl Rule for NotDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "NotDropped",
            family: Family::Semantic,
            reason: "a negation is lost",
            source: "classical logical replacement",
            before: "if (!flag) s = a;",
            after: &["if (flag) s = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["unary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let operator = at.node.child_by_field_name("operator");
        let Some(argument) = at.node.child_by_field_name("argument") else { return };
        if operator.is_some_and(|op| op.kind() == "!") {
            out.replace(at.node, at.atom(argument));
        }
    }
}
