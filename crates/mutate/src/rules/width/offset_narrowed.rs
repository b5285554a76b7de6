//! `OffsetNarrowed`: the offset of a row or batch is added in 32 bits.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The offset of a row or batch is added in 32 bits.
pub struct OffsetNarrowed;

impl Rule for OffsetNarrowed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OffsetNarrowed",
            family: Family::Width,
            reason: "the offset of a row or batch is added in 32 bits",
            source: "public bug reports: https://github.com/pytorch/pytorch/issues/182052",
            before: "const float* p = x + static_cast<long long>(i) * n;",
            after: &["const float* p = x + static_cast<int>(static_cast<long long>(i) * n);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(offset) = shared::wide_offset(at) {
            out.replace(offset, format!("static_cast<int>({})", at.flat(offset)));
        }
    }
}
