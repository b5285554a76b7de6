//! `BarrierDropped`: threads do not wait for each other's stores.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::call;

/// Threads do not wait for each other's stores.
pub struct BarrierDropped;

impl Rule for BarrierDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BarrierDropped",
            family: Family::Synchronisation,
            reason: "threads do not wait for each other's stores",
            source: "checker paper, synchronisation: barrier removal; MUTGPU",
            before: "__syncthreads();",
            after: &[";"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["expression_statement"]
    }

    fn most(&self) -> usize {
        6
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let barrier = |n| call(n, at.source).is_some_and(|c| c.name == "__syncthreads");
        if at.node.named_child(0).is_some_and(barrier) {
            out.replace(at.node, ";");
        }
    }
}
