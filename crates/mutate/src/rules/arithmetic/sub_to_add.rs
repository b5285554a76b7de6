//! `SubToAdd`: a subtraction becomes an addition.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A subtraction becomes an addition.
pub struct SubToAdd;

impl Rule for SubToAdd {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "SubToAdd",
            family: Family::Arithmetic,
            reason: "a subtraction becomes an addition",
            source: "checker paper, arithmetic: operator replacement",
            before: "y[i] = a - b;",
            after: &["y[i] = a + b;"],
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
        let Some(b) = at.binary() else { return };
        if b.op == "-" && !at.ty(b.right).is_pointer() && !at.in_ceil_div() {
            out.replace(b.op_node, "+");
        }
    }
}
