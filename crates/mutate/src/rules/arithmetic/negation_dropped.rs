//! `NegationDropped`: a minus sign is lost.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A minus sign is lost.
pub struct NegationDropped;

impl Rule for NegationDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "NegationDropped",
            family: Family::Arithmetic,
            reason: "a minus sign is lost",
            source: "classical unary operator deletion; sign errors in public bug reports",
            before: "y[i] = -a;",
            after: &["y[i] = a;"],
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
        let constant = at.text(argument);
        // Constants below zero are identities and masks, which semantic rules mutate.
        if operator.is_some_and(|op| op.kind() == "-")
            && argument.kind() != "number_literal"
            && !matches!(constant, "INFINITY" | "FLT_MAX" | "DBL_MAX" | "CUDART_INF_F")
        {
            out.replace(at.node, at.flat(argument));
        }
    }
}
