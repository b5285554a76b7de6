//! `HalvingStart`: a tree reduction starts one level too low.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{assignment, for_loop, int_suffix};

/// A tree reduction starts one level too low.
pub struct HalvingStart;

impl Rule for HalvingStart {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HalvingStart",
            family: Family::Boundary,
            reason: "a tree reduction starts one level too low",
            source: "checker paper, boundary; reductions in public bug reports, https://github.com/CanReader/FastNN/issues/9",
            before: "for (int q = 16; q > 0; q >>= 1) s += q;",
            after: &["for (int q = 8; q > 0; q >>= 1) s += q;"],
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
        let (Some(start), Some(update)) = (parts.start, parts.update.and_then(assignment)) else { return };
        if !matches!(update.op, ">>=" | "/=") {
            return;
        }
        match at.int(start) {
            Some(value) if value >= 2 => {
                out.replace(start, format!("{}{}", value / 2, int_suffix(at.text(start))));
            }
            Some(_) => {}
            None => out.replace(start, format!("({}) / 2", at.flat(start))),
        }
    }
}
