//! `TieBreak`: of two equal values the other one wins.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// Of two equal values the other one wins.
pub struct TieBreak;

impl Rule for TieBreak {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "TieBreak",
            family: Family::Semantic,
            reason: "of two equal values the other one wins",
            source: "checker paper, semantic: argmax tie-breaking",
            before: "if (a > b) j = i;",
            after: &["if (a >= b) j = i;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        3
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        let new = match b.op {
            "<" => "<=",
            "<=" => "<",
            ">" => ">=",
            ">=" => ">",
            _ => return,
        };
        // Against a constant a tie is a threshold, and those have a rule of their own.
        let constant = |n: Node<'_>| bare(n).kind() == "number_literal";
        if at.reals(&b) && !constant(b.left) && !constant(b.right) {
            out.replace(b.op_node, new);
        }
    }
}
