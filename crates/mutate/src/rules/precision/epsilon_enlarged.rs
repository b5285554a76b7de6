//! `EpsilonEnlarged`: epsilon is a hundred times too large.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// Epsilon is a hundred times too large.
pub struct EpsilonEnlarged;

impl Rule for EpsilonEnlarged {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "EpsilonEnlarged",
            family: Family::Precision,
            reason: "epsilon is a hundred times too large",
            source: "public bug reports: eps constants",
            before: "s = rsqrtf(a + eps);",
            after: &["s = rsqrtf(a + 100.0f * eps);"],
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
        let Some(b) = at.binary().filter(|b| b.op == "+") else { return };
        if shared::is_epsilon(at, b.right) {
            out.replace(b.right, format!("100.0f * {}", at.flat(b.right)));
        }
    }
}
