//! `IndexDeclaredInt`: an index of 64 bits is kept in an int.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An index of 64 bits is kept in an int.
pub struct IndexDeclaredInt;

impl Rule for IndexDeclaredInt {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "IndexDeclaredInt",
            family: Family::Width,
            reason: "an index of 64 bits is kept in an int",
            source: "public bug reports: https://github.com/microsoft/onnxruntime/issues/32299",
            before: "long long r = static_cast<long long>(i) * n;",
            after: &["int r = static_cast<long long>(i) * n;"],
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
            out.replace(ty, "int");
        }
    }
}
