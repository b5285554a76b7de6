//! `ModToDiv`: a remainder becomes a quotient.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A remainder becomes a quotient.
pub struct ModToDiv;

impl Rule for ModToDiv {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ModToDiv",
            family: Family::Arithmetic,
            reason: "a remainder becomes a quotient",
            source: "classical operator replacement",
            before: "int r = i % n;",
            after: &["int r = i / n;"],
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
        if b.op == "%" {
            out.replace(b.op_node, "/");
        }
    }
}
