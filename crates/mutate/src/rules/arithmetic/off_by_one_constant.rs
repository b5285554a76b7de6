//! `OffByOneConstant`: an integer constant is one too large.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{binary, call, int_literal, int_suffix};

/// An integer constant is one too large.
pub struct OffByOneConstant;

impl Rule for OffByOneConstant {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OffByOneConstant",
            family: Family::Arithmetic,
            reason: "an integer constant is one too large",
            source: "checker paper, arithmetic: off-by-one constant",
            before: "int r = 4 * i;",
            after: &["int r = 5 * i;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["number_literal"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.parent()?))
    }

    fn most(&self) -> usize {
        4
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let literal = at.text(at.node);
        let Some(value) = int_literal(literal) else { return };
        // Masks are not counts; loop starts, bounds and launch shapes have rules of their own.
        if value >= 1 << 16 || at.in_for_start() || at.in_ceil_div() || at.in_launch_shape() {
            return;
        }
        let Some(parent) = at.parent() else { return };
        match parent.kind() {
            "argument_list" => {
                let callee = at.outwards().nth(1).and_then(|n| call(n, at.source));
                if at.host() || callee.is_none_or(|c| c.name.starts_with("__shfl")) {
                    return;
                }
            }
            "binary_expression" => {
                let relational =
                    binary(parent).is_some_and(|b| matches!(b.op, "<" | "<=" | ">" | ">=" | "==" | "!="));
                if relational || at.ty(parent).is_real() {
                    return;
                }
            }
            _ => {}
        }
        out.replace(at.node, format!("{}{}", value + 1, int_suffix(literal)));
    }
}
