//! `GridDimForBlockDim`: the grid's extent stands where the block's belongs, or the reverse.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The grid's extent stands where the block's belongs, or the reverse.
pub struct GridDimForBlockDim;

impl Rule for GridDimForBlockDim {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridDimForBlockDim",
            family: Family::Indexing,
            reason: "the grid's extent stands where the block's belongs, or the reverse",
            source: "MUTGPU: dimension replacement",
            before: "int r = blockIdx.x * blockDim.x;",
            after: &["int r = blockIdx.x * gridDim.x;"],
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
            "blockDim.x" => "gridDim.x",
            "blockDim.y" => "gridDim.y",
            "gridDim.x" => "blockDim.x",
            "gridDim.y" => "blockDim.y",
            _ => return,
        };
        out.replace(at.node, new);
    }
}
