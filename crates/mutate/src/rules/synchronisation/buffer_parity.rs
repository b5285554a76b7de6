//! `BufferParity`: both halves of a double buffer are the same one.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// Both halves of a double buffer are the same one.
pub struct BufferParity;

impl Rule for BufferParity {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BufferParity",
            family: Family::Synchronisation,
            reason: "both halves of a double buffer are the same one",
            source: "public bug reports: double buffering",
            before: "j = i ^ 1;",
            after: &["j = i;"],
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
            "^" if at.int(b.right) == Some(1) => out.replace(at.node, at.atom(b.left)),
            "-" if at.int(b.left) == Some(1) && at.integers(&b) && b.right.kind() == "identifier" => {
                out.replace(at.node, at.flat(b.right));
            }
            _ => {}
        }
    }
}
