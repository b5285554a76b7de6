//! `TernarySwapped`: a conditional expression takes the other branch.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// A conditional expression takes the other branch.
pub struct TernarySwapped;

impl Rule for TernarySwapped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "TernarySwapped",
            family: Family::Semantic,
            reason: "a conditional expression takes the other branch",
            source: "classical conditional replacement; checker paper, semantic",
            before: "y[i] = flag ? a : b;",
            after: &["y[i] = flag ? b : a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["conditional_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let yes = at.node.child_by_field_name("consequence");
        let no = at.node.child_by_field_name("alternative");
        if let (Some(yes), Some(no)) = (yes, no)
            && !at.same(yes, no)
            // A nested conditional would bind differently in the other place.
            && bare(no).kind() != "conditional_expression"
        {
            out.swap(at.source, yes, no);
        }
    }
}
