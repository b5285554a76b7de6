//! `IndexDeclaredUnsigned`: an index of 64 bits is kept in an unsigned int.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An index of 64 bits is kept in an unsigned int.
pub struct IndexDeclaredUnsigned;

impl Rule for IndexDeclaredUnsigned {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexDeclaredUnsigned",
            family: Family::Width,
            reason: "an index of 64 bits is kept in an unsigned int",
            source: "public bug reports: https://github.com/pytorch/pytorch/issues/185663",
            before: "long long r = static_cast<long long>(i) * n;",
            after: &["unsigned r = static_cast<long long>(i) * n;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["declaration"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some(ty) = shared::wide_index_declared(at) {
            out.replace(ty, "unsigned");
        }
    }
}
