//! `ShiftDirection`: a shift goes the other way.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A shift goes the other way.
pub struct ShiftDirection;

impl Rule for ShiftDirection {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShiftDirection",
            family: Family::Arithmetic,
            reason: "a shift goes the other way",
            source: "classical operator replacement",
            before: "int r = i << 2;",
            after: &["int r = i >> 2;"],
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
            "<<" => out.replace(b.op_node, ">>"),
            ">>" if !at.in_ceil_div() => out.replace(b.op_node, "<<"),
            _ => {}
        }
    }
}
