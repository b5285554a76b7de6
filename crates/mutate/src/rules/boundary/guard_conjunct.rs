//! `GuardConjunct`: one half of a two-sided guard is missing.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// One half of a two-sided guard is missing.
pub struct GuardConjunct;

impl Rule for GuardConjunct {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardConjunct",
            family: Family::Boundary,
            reason: "one half of a two-sided guard is missing",
            source: "checker paper, boundary: guard deletion",
            before: "if (i < n && j < m) y[i] = a;",
            after: &["if (j < m) y[i] = a;", "if (i < n) y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        4
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| matches!(b.op, "&&" | "||")) else { return };
        if at.is_bounds_test(b.left) || at.is_bounds_test(b.right) {
            out.replace(at.node, at.flat(b.right));
            out.replace(at.node, at.flat(b.left));
        }
    }
}
