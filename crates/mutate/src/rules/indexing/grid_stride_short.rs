//! `GridStrideShort`: a grid-stride loop steps by one block only.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A grid-stride loop steps by one block only.
pub struct GridStrideShort;

impl Rule for GridStrideShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridStrideShort",
            family: Family::Indexing,
            reason: "a grid-stride loop steps by one block only",
            source: "checker paper, indexing: stride confusion",
            before: "i += blockDim.x * gridDim.x;",
            after: &["i += blockDim.x;"],
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
        let Some(b) = at.binary().filter(|b| b.op == "*") else { return };
        let (left, right) = (at.text(b.left), at.text(b.right));
        if left.starts_with("blockDim.") && right.starts_with("gridDim.") {
            out.replace(at.node, left);
        } else if left.starts_with("gridDim.") && right.starts_with("blockDim.") {
            out.replace(at.node, right);
        }
    }
}
