//! `IndexWrapped`: an access wraps at 2^32 elements.

use crate::rules::{Family, Rule, RuleInfo, shared as common};
use crate::site::{Proposals, Site};

/// An access wraps at 2^32 elements.
pub struct IndexWrapped;

impl Rule for IndexWrapped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexWrapped",
            family: Family::Width,
            reason: "an access wraps at 2^32 elements",
            source: "boundary paper, rule 3: an index wrapped at 2^32; https://github.com/pytorch/pytorch/issues/197636",
            before: "s = x[static_cast<long long>(i) * n];",
            after: &["s = x[static_cast<unsigned>(static_cast<long long>(i) * n)];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        common::access_key(at)
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(index) = common::subscript(at.node).filter(|index| at.wide(*index)) {
            out.replace(index, format!("static_cast<unsigned>({})", at.flat(index)));
        }
    }
}
