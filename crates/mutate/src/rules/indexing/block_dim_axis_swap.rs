//! `BlockDimAxisSwap`: a block or grid extent is taken along the wrong axis.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A block or grid extent is taken along the wrong axis.
pub struct BlockDimAxisSwap;

impl Rule for BlockDimAxisSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BlockDimAxisSwap",
            family: Family::Indexing,
            reason: "a block or grid extent is taken along the wrong axis",
            source: "checker paper, indexing: axis swap",
            before: "int r = blockDim.x;",
            after: &["int r = blockDim.y;"],
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
            "blockDim.x" => "blockDim.y",
            "blockDim.y" => "blockDim.x",
            "gridDim.x" => "gridDim.y",
            "gridDim.y" => "gridDim.x",
            _ => return,
        };
        out.replace(at.node, new);
    }
}
