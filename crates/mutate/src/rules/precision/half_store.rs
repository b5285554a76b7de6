//! `HalfStore`: a result is stored through a half-precision temporary.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A result is stored through a half-precision temporary.
pub struct HalfStore;

impl Rule for HalfStore {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HalfStore",
            family: Family::Precision,
            reason: "a result is stored through a half-precision temporary",
            source: "checker paper, precision: fp16 store temporaries",
            before: "y[i] = a;",
            after: &["y[i] = through_half(a);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(value) = shared::global_store(at) else { return };
        let (new, others) = at.through_half(&at.flat(value));
        out.replace_with(value, new, others);
    }
}
