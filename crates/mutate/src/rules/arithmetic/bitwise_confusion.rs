//! `BitwiseConfusion`: one bit operation stands for another.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// One bit operation stands for another.
pub struct BitwiseConfusion;

impl Rule for BitwiseConfusion {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BitwiseConfusion",
            family: Family::Arithmetic,
            reason: "one bit operation stands for another",
            source: "classical operator replacement",
            before: "int r = i & 7;",
            after: &["int r = i | 7;"],
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
        match b.op {
            "&" => out.replace(b.op_node, "|"),
            "|" => out.replace(b.op_node, "&"),
            "^" => out.replace(b.op_node, "|"),
            _ => {}
        }
    }
}
