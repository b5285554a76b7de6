//! `BlockForThreadIndex`: the block's index stands where the thread's belongs, or the reverse.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The block's index stands where the thread's belongs, or the reverse.
pub struct BlockForThreadIndex;

impl Rule for BlockForThreadIndex {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BlockForThreadIndex",
            family: Family::Indexing,
            reason: "the block's index stands where the thread's belongs, or the reverse",
            source: "MUTGPU: index replacement",
            before: "int r = threadIdx.x;",
            after: &["int r = blockIdx.x;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["field_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let new = match at.text(at.node) {
            "threadIdx.x" => "blockIdx.x",
            "threadIdx.y" => "blockIdx.y",
            "blockIdx.x" => "threadIdx.x",
            "blockIdx.y" => "threadIdx.y",
            _ => return,
        };
        out.replace(at.node, new);
    }
}
