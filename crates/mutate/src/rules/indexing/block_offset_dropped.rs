//! `BlockOffsetDropped`: the block's part of a global index is forgotten.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary, mentions};

/// The block's part of a global index is forgotten.
pub struct BlockOffsetDropped;

impl Rule for BlockOffsetDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BlockOffsetDropped",
            family: Family::Indexing,
            reason: "the block's part of a global index is forgotten",
            source: "MUTGPU: global index replaced by local index",
            before: "int r = blockIdx.x * blockDim.x + threadIdx.x;",
            after: &["int r = threadIdx.x;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(sum) = at.binary().filter(|b| b.op == "+") else { return };
        let Some(product) = binary(bare(sum.left)).filter(|b| b.op == "*") else { return };
        let block = |n| mentions(n, "blockIdx", at.source);
        if (block(product.left) || block(product.right)) && !block(sum.right) {
            out.replace(at.node, at.atom(sum.right));
        }
    }
}
