//! `RoundingDropped`: a value is cut where it should be rounded.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A value is cut where it should be rounded.
pub struct RoundingDropped;

impl Rule for RoundingDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "RoundingDropped",
            family: Family::Precision,
            reason: "a value is cut where it should be rounded",
            source: "public bug reports: rounding mode of conversions, https://github.com/tenstorrent/tt-metal/issues/51304",
            before: "int r = (int)roundf(a);",
            after: &["int r = (int)(a);"],
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
        if matches!(call.name, "roundf" | "rintf" | "floorf" | "ceilf" | "nearbyintf")
            && let [argument] = call.args[..]
        {
            out.replace(at.node, format!("({})", at.flat(argument)));
        }
    }
}
