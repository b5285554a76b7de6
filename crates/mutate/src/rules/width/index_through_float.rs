//! `IndexThroughFloat`: an index passes through a float, which is exact to 2^24.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo, shared as common};
use crate::site::{Proposals, Site};

/// An index passes through a float, which is exact to 2^24.
pub struct IndexThroughFloat;

impl Rule for IndexThroughFloat {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexThroughFloat",
            family: Family::Width,
            reason: "an index passes through a float, which is exact to 2^24",
            source: "public bug reports: https://github.com/cudamat/cudamat/issues/84",
            before: "s = x[i];",
            after: &["s = x[static_cast<long long>(static_cast<float>(i))];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        common::access_key(at)
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some((_, index)) = shared::global_access(at) {
            out.replace(index, format!("static_cast<long long>(static_cast<float>({}))", at.flat(index)));
        }
    }
}
