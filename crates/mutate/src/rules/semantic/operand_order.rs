//! `OperandOrder`: the operands of a subtraction or division change places.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The operands of a subtraction or division change places.
pub struct OperandOrder;

impl Rule for OperandOrder {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OperandOrder",
            family: Family::Semantic,
            reason: "the operands of a subtraction or division change places",
            source: "checker paper, semantic",
            before: "y[i] = a - b;",
            after: &["y[i] = b - a;"],
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
        let Some(b) = at.binary() else { return };
        if matches!(b.op, "-" | "/") && at.reals(&b) && !at.same(b.left, b.right) {
            let one = format!("{} {} {}", at.atom(b.right), b.op, at.atom(b.left));
            out.replace(at.node, one);
        }
    }
}
