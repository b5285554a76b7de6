//! `FloorToCeil`: a vector loop runs into the tail.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::any_below;

/// A vector loop runs into the tail.
pub struct FloorToCeil;

impl Rule for FloorToCeil {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FloorToCeil",
            family: Family::Boundary,
            reason: "a vector loop runs into the tail",
            source: "public bug reports: tail of a vector load, https://github.com/amd/IRON/pull/198",
            before: "int r = n / 4;",
            after: &["int r = (n + 3) / 4;"],
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
        let width = match (b.op, at.int(b.right)) {
            ("/", Some(width @ (2 | 4 | 8))) => width,
            (">>", Some(shift @ 1..=3)) => 1 << shift,
            _ => return,
        };
        let size = any_below(b.left, |n| {
            n.kind() == "identifier" && at.symbol(at.text(n)).is_some_and(|s| s.parameter && s.ty.is_int())
        });
        if size && at.integers(&b) && !at.in_ceil_div() {
            out.replace(b.left, format!("({} + {})", at.flat(b.left), width - 1));
        }
    }
}
