//! `BarrierToWarp`: a barrier holds the warp, not the block.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A barrier holds the warp, not the block.
pub struct BarrierToWarp;

impl Rule for BarrierToWarp {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BarrierToWarp",
            family: Family::Synchronisation,
            reason: "a barrier holds the warp, not the block",
            source: "checker paper, synchronisation: __syncthreads to __syncwarp",
            before: "__syncthreads();",
            after: &["__syncwarp();"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn most(&self) -> usize {
        6
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if call.name == "__syncthreads" {
            out.replace(call.name_node, "__syncwarp");
        }
    }
}
