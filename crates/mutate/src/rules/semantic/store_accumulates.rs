//! `StoreAccumulates`: a result is added to what the output holds.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A result is added to what the output holds.
pub struct StoreAccumulates;

impl Rule for StoreAccumulates {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StoreAccumulates",
            family: Family::Semantic,
            reason: "a result is added to what the output holds",
            source: "public bug reports: an output taken for zeroed, https://github.com/ByteDance-Seed/Triton-distributed/pull/184",
            before: "y[i] = a;",
            after: &["y[i] += a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(b) = at.assignment()
            && shared::global_store(at).is_some()
        {
            out.replace(b.op_node, "+=");
        }
    }
}
