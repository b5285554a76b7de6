//! `OrToAnd`: either condition becomes both.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// Either condition becomes both.
pub struct OrToAnd;

impl Rule for OrToAnd {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OrToAnd",
            family: Family::Semantic,
            reason: "either condition becomes both",
            source: "classical logical replacement",
            before: "if (flag || i > n) s = a;",
            after: &["if (flag && i > n) s = a;"],
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
        if b.op == "||" {
            out.replace(b.op_node, "&&");
        }
    }
}
