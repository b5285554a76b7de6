//! `HardwareIndexShift`: every thread takes its neighbour's place.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// Every thread takes its neighbour's place.
pub struct HardwareIndexShift;

impl Rule for HardwareIndexShift {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HardwareIndexShift",
            family: Family::Indexing,
            reason: "every thread takes its neighbour's place",
            source: "MUTGPU: gpu_index_increment, gpu_index_decrement",
            before: "int r = threadIdx.x;",
            after: &["int r = (threadIdx.x + 1);", "int r = (threadIdx.x - 1);"],
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
        let text = at.text(at.node);
        let axis = text.strip_prefix("threadIdx.").or_else(|| text.strip_prefix("blockIdx."));
        if axis.is_some_and(|axis| matches!(axis, "x" | "y" | "z")) {
            out.replace(at.node, format!("({text} + 1)"));
            out.replace(at.node, format!("({text} - 1)"));
        }
    }
}
