//! `StorageOffsetDropped`: an offset beyond 32 bits is taken for none.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// An offset beyond 32 bits is taken for none.
pub struct StorageOffsetDropped;

impl Rule for StorageOffsetDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StorageOffsetDropped",
            family: Family::Width,
            reason: "an offset beyond 32 bits is taken for none",
            source: "boundary paper, storage offsets; https://github.com/pytorch/pytorch/issues/193057",
            before: "long long q = i; const float* p = x + q;",
            after: &["long long q = i; const float* p = x + (q == static_cast<int>(q) ? q : 0);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(offset) = shared::wide_offset(at).filter(|offset| at.pure(*offset)) {
            let (whole, plain) = (at.atom(offset), at.flat(bare(offset)));
            out.replace(offset, format!("({whole} == static_cast<int>({plain}) ? {plain} : 0)"));
        }
    }
}
