//! `ElseDropped`: the path for incomplete tiles is missing.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// The path for incomplete tiles is missing.
pub struct ElseDropped;

impl Rule for ElseDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ElseDropped",
            family: Family::Boundary,
            reason: "the path for incomplete tiles is missing",
            source: "checker paper, boundary: tail drop",
            before: "if (i + 3 < n) { s = a; } else { s = b; }",
            after: &["if (i + 3 < n) { s = a; } "],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["else_clause"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if !at.host() {
            out.replace(at.node, "");
        }
    }
}
