//! `ShuffleOffset`: a shuffle reads another lane.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A shuffle reads another lane.
pub struct ShuffleOffset;

impl Rule for ShuffleOffset {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShuffleOffset",
            family: Family::Synchronisation,
            reason: "a shuffle reads another lane",
            source: "checker paper, synchronisation; public bug reports: shuffle distance",
            before: "s = __shfl_down_sync(0xffffffff, s, 4);",
            after: &["s = __shfl_down_sync(0xffffffff, s, 4 / 2);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if !call.name.starts_with("__shfl") {
            return;
        }
        let Some(distance) = call.args.get(2) else { return };
        match at.int(*distance) {
            Some(0) => out.replace(*distance, "1"),
            _ => out.replace(*distance, format!("{} / 2", at.atom(*distance))),
        }
    }
}
