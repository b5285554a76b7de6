//! `StrideLoopOnce`: a strided loop handles only each thread's first element.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{assignment, binary, for_loop};

/// A strided loop handles only each thread's first element.
pub struct StrideLoopOnce;

impl Rule for StrideLoopOnce {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StrideLoopOnce",
            family: Family::Boundary,
            reason: "a strided loop handles only each thread's first element",
            source: "checker paper, boundary: tail drop; grid-stride loops",
            before: "for (int q = tid; q < n; q += blockDim.x) s += x[q];",
            after: &["for (int q = tid; q < n; q += n) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["for_statement"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(parts) = for_loop(at.node) else { return };
        let (Some(test), Some(update)) =
            (parts.condition.and_then(binary), parts.update.and_then(assignment))
        else {
            return;
        };
        if update.op == "+=" && test.op == "<" && at.same(update.left, test.left) && at.pure(test.right) {
            out.replace(update.right, at.atom(test.right));
        }
    }
}
