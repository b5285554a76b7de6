//! `DivToMul`: a division becomes a multiplication.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A division becomes a multiplication.
pub struct DivToMul;

impl Rule for DivToMul {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "DivToMul",
            family: Family::Arithmetic,
            reason: "a division becomes a multiplication",
            source: "checker paper, arithmetic: operator replacement",
            before: "y[i] = a / b;",
            after: &["y[i] = a * b;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        3
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        if b.op == "/" && !at.in_ceil_div() {
            out.replace(b.op_node, "*");
        }
    }
}
