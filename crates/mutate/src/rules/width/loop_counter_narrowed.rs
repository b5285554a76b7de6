//! `LoopCounterNarrowed`: a loop over 64-bit indices counts in an int.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A loop over 64-bit indices counts in an int.
pub struct LoopCounterNarrowed;

impl Rule for LoopCounterNarrowed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopCounterNarrowed",
            family: Family::Width,
            reason: "a loop over 64-bit indices counts in an int",
            source: "public bug reports: https://github.com/pytorch/pytorch/pull/24818",
            before: "for (long long q = i; q < n; ++q) s += x[q];",
            after: &["for (int q = i; q < n; ++q) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["for_statement"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let counter = at.node.child_by_field_name("initializer").filter(|n| n.kind() == "declaration");
        let ty = counter.and_then(|n| n.child_by_field_name("type"));
        if let Some(ty) = ty.filter(|ty| at.wide_type(*ty)) {
            out.replace(ty, "int");
        }
    }
}
