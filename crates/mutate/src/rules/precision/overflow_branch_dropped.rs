//! `OverflowBranchDropped`: an exponential is taken where a branch avoided its overflow.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{any_below, bare, binary, call, float_literal};

/// An exponential is taken where a branch avoided its overflow.
pub struct OverflowBranchDropped;

impl Rule for OverflowBranchDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OverflowBranchDropped",
            family: Family::Precision,
            reason: "an exponential is taken where a branch avoided its overflow",
            source: "public bug reports: https://github.com/tracel-ai/burn/issues/5373",
            before: "s = a > 20.0f ? a : log1pf(expf(a));",
            after: &["s = (log1pf(expf(a)));"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["conditional_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let field = |name| at.node.child_by_field_name(name);
        let (Some(test), Some(yes), Some(no)) =
            (field("condition").map(bare).and_then(binary), field("consequence"), field("alternative"))
        else {
            return;
        };
        let literal = |n: Node<'_>| float_literal(at.text(n)).is_some();
        let compares = matches!(test.op, "<" | "<=" | ">" | ">=")
            && at.reals(&test)
            && (literal(test.left) || literal(test.right));
        let exponential = |n: Node<'_>| {
            any_below(n, |n| {
                call(n, at.source).is_some_and(|c| matches!(c.name, "expf" | "__expf" | "expm1f" | "exp2f"))
            })
        };
        match (compares, exponential(yes), exponential(no)) {
            (true, false, true) => out.replace(at.node, format!("({})", at.flat(no))),
            (true, true, false) => out.replace(at.node, format!("({})", at.flat(yes))),
            _ => {}
        }
    }
}
