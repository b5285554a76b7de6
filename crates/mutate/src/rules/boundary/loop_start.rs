//! `LoopStart`: a loop skips its first element.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{assignment, for_loop, int_suffix};

/// A loop skips its first element.
pub struct LoopStart;

impl Rule for LoopStart {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopStart",
            family: Family::Boundary,
            reason: "a loop skips its first element",
            source: "checker paper, boundary: loop start",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 1; q < n; ++q) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["for_statement"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(parts) = for_loop(at.node) else { return };
        let (Some(start), Some(update)) = (parts.start, parts.update) else { return };
        let halving = assignment(update).is_some_and(|b| !matches!(b.op, "+=" | "-=" | "="));
        let down = at.text(update).contains('-');
        if halving || down {
            return;
        }
        match at.int(start) {
            Some(value) => out.replace(start, format!("{}{}", value + 1, int_suffix(at.text(start)))),
            None => out.replace(start, format!("{} + 1", at.flat(start))),
        }
    }
}
