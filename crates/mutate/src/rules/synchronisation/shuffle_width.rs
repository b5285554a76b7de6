//! `ShuffleWidth`: a shuffle stays within half a warp.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A shuffle stays within half a warp.
pub struct ShuffleWidth;

impl Rule for ShuffleWidth {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShuffleWidth",
            family: Family::Synchronisation,
            reason: "a shuffle stays within half a warp",
            source: "public bug reports: shuffle width",
            before: "s = __shfl_xor_sync(0xffffffff, s, 16);",
            after: &["s = __shfl_xor_sync(0xffffffff, s, 16, 16);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if call.name.starts_with("__shfl")
            && let [_, _, distance] = call.args[..]
        {
            out.replace(distance, format!("{}, 16", at.flat(distance)));
        }
    }
}
