//! `GuardShort`: the last element is guarded away.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The last element is guarded away.
pub struct GuardShort;

impl Rule for GuardShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardShort",
            family: Family::Boundary,
            reason: "the last element is guarded away",
            source: "checker paper, boundary: tail drop",
            before: "if (i < n) y[i] = a;",
            after: &["if (i < n - 1) y[i] = a;"],
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
        let Some(b) = at.binary().filter(|b| b.op == "<" || b.op == ">=") else { return };
        let guards =
            at.outwards().find(|n| !matches!(n.kind(), "binary_expression" | "parenthesized_expression"));
        if guards.is_some_and(|n| n.kind() == "condition_clause")
            && at.integers(&b)
            && at.int(b.right).is_none()
            && at.outwards().nth(1).is_none_or(|n| n.kind() != "while_statement")
        {
            out.replace(b.right, format!("{} - 1", at.flat(b.right)));
        }
    }
}
