//! `EpsilonDropped`: epsilon is missing.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// Epsilon is missing.
pub struct EpsilonDropped;

impl Rule for EpsilonDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "EpsilonDropped",
            family: Family::Precision,
            reason: "epsilon is missing",
            source: "public bug reports: division by zero variance, https://github.com/deepspeedai/DeepSpeed/issues/581",
            before: "s = rsqrtf(a + eps);",
            after: &["s = rsqrtf(a);"],
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
            out.replace(at.node, at.atom(b.left));
        }
    }
}
