//! `FenceDropped`: stores are not made visible before they are announced.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::call;

/// Stores are not made visible before they are announced.
pub struct FenceDropped;

impl Rule for FenceDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FenceDropped",
            family: Family::Synchronisation,
            reason: "stores are not made visible before they are announced",
            source: "checker paper, synchronisation; MUTGPU, https://github.com/pytorch/pytorch/pull/128455",
            before: "__threadfence();",
            after: &[";"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["expression_statement"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let fence = |n| call(n, at.source).is_some_and(|c| c.name.starts_with("__threadfence"));
        if at.node.named_child(0).is_some_and(fence) {
            out.replace(at.node, ";");
        }
    }
}
