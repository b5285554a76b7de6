//! `AddToSub`: an addition becomes a subtraction.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An addition becomes a subtraction.
pub struct AddToSub;

impl Rule for AddToSub {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AddToSub",
            family: Family::Arithmetic,
            reason: "an addition becomes a subtraction",
            source: "checker paper, arithmetic: + to -",
            before: "y[i] = a + b;",
            after: &["y[i] = a - b;"],
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
        // `int + pointer` has no counterpart with a minus.
        if b.op == "+" && !at.ty(b.right).is_pointer() && !at.in_ceil_div() {
            out.replace(b.op_node, "-");
        }
    }
}
