//! `FusedOrder`: a scale and a bias are applied in the other order.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// A scale and a bias are applied in the other order.
pub struct FusedOrder;

impl Rule for FusedOrder {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FusedOrder",
            family: Family::Semantic,
            reason: "a scale and a bias are applied in the other order",
            source: "checker paper, semantic: fused-op reordering",
            before: "y[i] = a * b + c;",
            after: &["y[i] = a * (b + c);"],
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
        let Some(outer) = at.binary() else { return };
        if !at.reals(&outer) || !at.pure(at.node) {
            return;
        }
        match (outer.op, binary(bare(outer.left))) {
            ("+", Some(b)) if b.op == "*" && at.reals(&b) => {
                let (x, scale, bias) = (at.flat(b.left), at.atom(b.right), at.atom(outer.right));
                out.replace(at.node, format!("{x} * ({scale} + {bias})"));
            }
            ("*", Some(b)) if b.op == "+" && at.reals(&b) => {
                let (x, bias, scale) = (at.atom(b.left), at.atom(b.right), at.atom(outer.right));
                out.replace(at.node, format!("({x} * {scale} + {bias})"));
            }
            _ => {}
        }
    }
}
