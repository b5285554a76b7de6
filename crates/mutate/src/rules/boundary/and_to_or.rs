//! `AndToOr`: a guard on two axes holds where one of them does.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A guard on two axes holds where one of them does.
pub struct AndToOr;

impl Rule for AndToOr {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AndToOr",
            family: Family::Boundary,
            reason: "a guard on two axes holds where one of them does",
            source: "classical logical replacement on guards",
            before: "if (i < n && j < m) y[i] = a;",
            after: &["if (i < n || j < m) y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| b.op == "&&") else { return };
        // In a loop's condition the loop might never end.
        let holder = at.outwards().find(|n| {
            !matches!(n.kind(), "binary_expression" | "parenthesized_expression" | "condition_clause")
        });
        if at.for_condition().is_none() && holder.is_none_or(|n| n.kind() != "while_statement") {
            out.replace(b.op_node, "||");
        }
    }
}
