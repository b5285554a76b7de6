//! `HalvingStop`: a tree reduction leaves out its last level.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{assignment, binary, for_loop};

/// A tree reduction leaves out its last level.
pub struct HalvingStop;

impl Rule for HalvingStop {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HalvingStop",
            family: Family::Boundary,
            reason: "a tree reduction leaves out its last level",
            source: "checker paper, boundary; reductions in public bug reports, https://github.com/CanReader/FastNN/issues/9",
            before: "for (int q = 16; q > 0; q >>= 1) s += q;",
            after: &["for (int q = 16; q > 1; q >>= 1) s += q;"],
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
        let halves = parts.update.and_then(assignment).is_some_and(|b| matches!(b.op, ">>=" | "/="));
        let Some(test) = parts.condition.and_then(binary).filter(|_| halves) else { return };
        match (test.op, at.int(test.right)) {
            (">", Some(value)) => out.replace(test.right, (value + 1).to_string()),
            (">=", Some(value)) if value > 0 => out.replace(test.right, (value + 1).to_string()),
            _ => {}
        }
    }
}
