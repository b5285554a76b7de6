//! `WideCastDropped`: a product of 64 bits is taken in 32.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A product of 64 bits is taken in 32.
pub struct WideCastDropped;

impl Rule for WideCastDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "WideCastDropped",
            family: Family::Width,
            reason: "a product of 64 bits is taken in 32",
            source: "public bug reports: https://github.com/pyg-team/pyg-lib/issues/671",
            before: "long long r = static_cast<long long>(i) * n;",
            after: &["long long r = i * n;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression", "cast_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.parent()?))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some((_, value)) = shared::widened_operand(at) {
            out.replace(at.node, at.atom(value));
        }
    }
}
