//! `ThreadAxisSwap`: a thread index is taken along the wrong axis.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A thread index is taken along the wrong axis.
pub struct ThreadAxisSwap;

impl Rule for ThreadAxisSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ThreadAxisSwap",
            family: Family::Indexing,
            reason: "a thread index is taken along the wrong axis",
            source: "checker paper, indexing: axis swap; MUTGPU",
            before: "int r = threadIdx.x;",
            after: &["int r = threadIdx.y;"],
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
            "threadIdx.x" => "threadIdx.y",
            "threadIdx.y" => "threadIdx.x",
            "threadIdx.z" => "threadIdx.y",
            _ => return,
        };
        out.replace(at.node, new);
    }
}
