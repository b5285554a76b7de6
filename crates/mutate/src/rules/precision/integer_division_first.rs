//! `IntegerDivisionFirst`: a ratio is rounded to an integer before it becomes a float.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A ratio is rounded to an integer before it becomes a float.
pub struct IntegerDivisionFirst;

impl Rule for IntegerDivisionFirst {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IntegerDivisionFirst",
            family: Family::Precision,
            reason: "a ratio is rounded to an integer before it becomes a float",
            source: "public bug reports: cast after division",
            before: "s = (float)i / n;",
            after: &["s = (float)(i / n);"],
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
        let Some(b) = at.binary().filter(|b| b.op == "/") else { return };
        let inner = |n: Node<'_>| {
            if n.kind() == "cast_expression" {
                n.child_by_field_name("value").map(|v| at.atom(v))
            } else {
                None
            }
        };
        let (Some(left), Some(kind)) = (inner(b.left), b.left.child_by_field_name("type")) else { return };
        let whole = |n: Node<'_>| n.child_by_field_name("value").is_some_and(|v| at.ty(v).is_int());
        let right = match inner(b.right) {
            Some(right) if whole(b.right) => right,
            None if at.ty(b.right).is_int() => at.atom(b.right),
            _ => return,
        };
        if whole(b.left) && at.ty(b.left).is_real() {
            out.replace(at.node, format!("({})({left} / {right})", at.flat(kind)));
        }
    }
}
