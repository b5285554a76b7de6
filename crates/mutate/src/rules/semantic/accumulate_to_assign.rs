//! `AccumulateToAssign`: an accumulation keeps only its last term.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An accumulation keeps only its last term.
pub struct AccumulateToAssign;

impl Rule for AccumulateToAssign {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AccumulateToAssign",
            family: Family::Semantic,
            reason: "an accumulation keeps only its last term",
            source: "checker paper, semantic; public bug reports: lost accumulation",
            before: "s += a;",
            after: &["s = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.assignment() else { return };
        if matches!(b.op, "+=" | "-=" | "*=") && !at.in_for_update() {
            out.replace(b.op_node, "=");
        }
    }
}
