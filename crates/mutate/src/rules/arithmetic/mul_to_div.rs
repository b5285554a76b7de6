//! `MulToDiv`: a multiplication becomes a division.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::any_below;

/// A multiplication becomes a division.
pub struct MulToDiv;

impl Rule for MulToDiv {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "MulToDiv",
            family: Family::Arithmetic,
            reason: "a multiplication becomes a division",
            source: "checker paper, arithmetic: * to /",
            before: "y[i] = a * b;",
            after: &["y[i] = a / b;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        5
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        let sized = any_below(at.node, |n| n.kind() == "sizeof_expression");
        if b.op == "*" && at.int(b.right) != Some(0) && !sized && !at.in_ceil_div() {
            out.replace(b.op_node, "/");
        }
    }
}
