//! `WarpBarrierDropped`: lanes of a warp do not wait for each other.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::call;

/// Lanes of a warp do not wait for each other.
pub struct WarpBarrierDropped;

impl Rule for WarpBarrierDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "WarpBarrierDropped",
            family: Family::Synchronisation,
            reason: "lanes of a warp do not wait for each other",
            source: "checker paper, synchronisation: barrier removal",
            before: "__syncwarp();",
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
        let barrier = |n| call(n, at.source).is_some_and(|c| c.name == "__syncwarp");
        if at.node.named_child(0).is_some_and(barrier) {
            out.replace(at.node, ";");
        }
    }
}
