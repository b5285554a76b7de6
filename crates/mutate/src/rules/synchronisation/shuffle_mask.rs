//! `ShuffleMask`: a shuffle names only half of the lanes.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A shuffle names only half of the lanes.
pub struct ShuffleMask;

impl Rule for ShuffleMask {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShuffleMask",
            family: Family::Synchronisation,
            reason: "a shuffle names only half of the lanes",
            source: "public bug reports: shuffle mask, https://github.com/PaddlePaddle/Paddle/issues/10332",
            before: "s = __shfl_down_sync(0xffffffff, s, 4);",
            after: &["s = __shfl_down_sync(0x0000ffff, s, 4);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if call.name.starts_with("__shfl")
            && let Some(mask) = call.args.first()
        {
            out.replace(*mask, "0x0000ffff");
        }
    }
}
