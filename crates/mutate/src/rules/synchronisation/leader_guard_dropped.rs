//! `LeaderGuardDropped`: what one thread should do, all do.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// What one thread should do, all do.
pub struct LeaderGuardDropped;

impl Rule for LeaderGuardDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LeaderGuardDropped",
            family: Family::Synchronisation,
            reason: "what one thread should do, all do",
            source: "checker paper, synchronisation; MUTGPU",
            before: "if (tid == 0) y[i] = s;",
            after: &["if (true) y[i] = s;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["if_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(condition) =
            at.node.child_by_field_name("condition").and_then(|c| c.child_by_field_name("value"))
        else {
            return;
        };
        let leader = binary(bare(condition))
            .is_some_and(|b| b.op == "==" && at.int(b.right) == Some(0) && at.integers(&b));
        if leader && !at.host() && at.node.child_by_field_name("alternative").is_none() {
            out.replace(condition, "true");
        }
    }
}
