//! `ShuffleDirection`: a shuffle reads from the other side.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A shuffle reads from the other side.
pub struct ShuffleDirection;

impl Rule for ShuffleDirection {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShuffleDirection",
            family: Family::Synchronisation,
            reason: "a shuffle reads from the other side",
            source: "public bug reports: shuffle variants",
            before: "s = __shfl_down_sync(0xffffffff, s, 4);",
            after: &["s = __shfl_up_sync(0xffffffff, s, 4);"],
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
        let new = match call.name {
            "__shfl_down_sync" => "__shfl_up_sync",
            "__shfl_up_sync" => "__shfl_down_sync",
            // The sum then reaches lane 0 only.
            "__shfl_xor_sync" => "__shfl_down_sync",
            _ => return,
        };
        out.replace(call.name_node, new);
    }
}
