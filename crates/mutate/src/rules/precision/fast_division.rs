//! `FastDivision`: a division is the fast approximation.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;
use crate::types::Base;

/// A division is the fast approximation.
pub struct FastDivision;

impl Rule for FastDivision {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FastDivision",
            family: Family::Precision,
            reason: "a division is the fast approximation",
            source: "checker paper, precision: fast-math intrinsics",
            before: "s = a / b;",
            after: &["s = __fdividef(a, b);"],
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
        if !at.host() && at.ty(at.node).is(Base::Float) && bare(b.right).kind() != "number_literal" {
            out.replace(at.node, format!("__fdividef({}, {})", at.flat(b.left), at.flat(b.right)));
        }
    }
}
