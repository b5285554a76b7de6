//! `GuardNarrowed`: a bounds guard compares the low 32 bits.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A bounds guard compares the low 32 bits.
pub struct GuardNarrowed;

impl Rule for GuardNarrowed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardNarrowed",
            family: Family::Width,
            reason: "a bounds guard compares the low 32 bits",
            source: "public bug reports: https://github.com/pytorch/pytorch/issues/189960",
            before: "long long q = i; if (q < n) y[q] = a;",
            after: &["long long q = i; if (static_cast<int>(q) < n) y[q] = a;"],
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
        let Some(test) = at.binary().filter(|b| matches!(b.op, "<" | "<=" | ">" | ">=")) else { return };
        if at.host() || !at.integers(&test) || at.for_condition().is_some() {
            return;
        }
        let wide = |n: Node<'_>| at.wide(n) && n.kind() != "number_literal";
        let narrow = |n: Node<'_>| format!("static_cast<int>({})", at.flat(n));
        match (wide(test.left), wide(test.right)) {
            (true, true) => {
                out.replace(at.node, format!("{} {} {}", narrow(test.left), test.op, narrow(test.right)))
            }
            (true, false) => out.replace(test.left, narrow(test.left)),
            (false, true) => out.replace(test.right, narrow(test.right)),
            (false, false) => {}
        }
    }
}
