//! `BlockAxisSwap`: a block index is taken along the wrong axis.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A block index is taken along the wrong axis.
pub struct BlockAxisSwap;

impl Rule for BlockAxisSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BlockAxisSwap",
            family: Family::Indexing,
            reason: "a block index is taken along the wrong axis",
            source: "checker paper, indexing: axis swap; MUTGPU",
            before: "int r = blockIdx.y;",
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
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let new = match at.text(at.node) {
            "blockIdx.x" => "blockIdx.y",
            "blockIdx.y" => "blockIdx.x",
            "blockIdx.z" => "blockIdx.y",
            _ => return,
        };
        out.replace(at.node, new);
    }
}
