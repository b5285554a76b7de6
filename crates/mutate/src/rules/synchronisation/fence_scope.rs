//! `FenceScope`: a fence orders stores for the block only.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A fence orders stores for the block only.
pub struct FenceScope;

impl Rule for FenceScope {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FenceScope",
            family: Family::Synchronisation,
            reason: "a fence orders stores for the block only",
            source: "public bug reports: fence scope, https://github.com/NVIDIA/Fuser/pull/2391",
            before: "__threadfence();",
            after: &["__threadfence_block();"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if call.name == "__threadfence" {
            out.replace(call.name_node, "__threadfence_block");
        }
    }
}
