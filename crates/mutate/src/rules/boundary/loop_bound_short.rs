//! `LoopBoundShort`: a loop stops one element early.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::int_suffix;

/// A loop stops one element early.
pub struct LoopBoundShort;

impl Rule for LoopBoundShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopBoundShort",
            family: Family::Boundary,
            reason: "a loop stops one element early",
            source: "checker paper, boundary: loop bound off by one",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q < n - 1; ++q) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| b.op == "<" || b.op == "<=") else { return };
        if at.for_condition().is_none() || at.reals(&b) || shared::steps_by_factor(at) {
            return;
        }
        match at.int(b.right) {
            Some(value) if value > 1 => {
                out.replace(b.right, format!("{}{}", value - 1, int_suffix(at.text(b.right))));
            }
            Some(_) => {}
            None => out.replace(b.right, format!("{} - 1", at.flat(b.right))),
        }
    }
}
