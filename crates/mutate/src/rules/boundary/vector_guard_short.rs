//! `VectorGuardShort`: a vector access is guarded by its first element only.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// A vector access is guarded by its first element only.
pub struct VectorGuardShort;

impl Rule for VectorGuardShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "VectorGuardShort",
            family: Family::Boundary,
            reason: "a vector access is guarded by its first element only",
            source: "public bug reports: tail of a vector load, https://github.com/xlite-dev/LeetCUDA/pull/421",
            before: "if (i + 3 < n) y[i] = a;",
            after: &["if (i < n) y[i] = a;"],
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
        let Some(b) = at.binary().filter(|b| matches!(b.op, "<" | "<=" | ">" | ">=")) else { return };
        let Some(sum) = binary(bare(b.left)).filter(|b| b.op == "+") else { return };
        if at.integers(&b) && at.int(sum.right).is_some() {
            out.replace(b.left, at.flat(sum.left));
        }
    }
}
