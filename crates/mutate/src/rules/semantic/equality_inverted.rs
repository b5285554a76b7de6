//! `EqualityInverted`: equal is taken for unequal.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// Equal is taken for unequal.
pub struct EqualityInverted;

impl Rule for EqualityInverted {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "EqualityInverted",
            family: Family::Semantic,
            reason: "equal is taken for unequal",
            source: "classical relational replacement",
            before: "if (i == j) s = a;",
            after: &["if (i != j) s = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        match b.op {
            "==" => out.replace(b.op_node, "!="),
            "!=" => out.replace(b.op_node, "=="),
            _ => {}
        }
    }
}
