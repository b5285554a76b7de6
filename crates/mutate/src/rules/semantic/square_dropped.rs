//! `SquareDropped`: a square is left as its base.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A square is left as its base.
pub struct SquareDropped;

impl Rule for SquareDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "SquareDropped",
            family: Family::Semantic,
            reason: "a square is left as its base",
            source: "checker paper, semantic",
            before: "s += a * a;",
            after: &["s += a;"],
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
        let Some(b) = at.binary().filter(|b| b.op == "*") else { return };
        if at.same(b.left, b.right) && at.reals(&b) && at.pure(b.left) {
            out.replace(at.node, at.atom(b.left));
        }
    }
}
