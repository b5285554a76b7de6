//! `ComparisonReversed`: a comparison of values picks the other side.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A comparison of values picks the other side.
pub struct ComparisonReversed;

impl Rule for ComparisonReversed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ComparisonReversed",
            family: Family::Semantic,
            reason: "a comparison of values picks the other side",
            source: "classical relational replacement; checker paper, semantic",
            before: "if (a > b) j = i;",
            after: &["if (a < b) j = i;"],
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
        let Some(b) = at.binary() else { return };
        let new = match b.op {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            ">=" => "<=",
            _ => return,
        };
        if at.reals(&b) {
            out.replace(b.op_node, new);
        }
    }
}
