//! `LaneWarpConfusion`: a lane's number stands for its warp's, or the reverse.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A lane's number stands for its warp's, or the reverse.
pub struct LaneWarpConfusion;

impl Rule for LaneWarpConfusion {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LaneWarpConfusion",
            family: Family::Indexing,
            reason: "a lane's number stands for its warp's, or the reverse",
            source: "public bug reports: warp-level indexing, https://github.com/ORNL/HeCBench/issues/167",
            before: "int r = tid & 31;",
            after: &["int r = tid >> 5;"],
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
        let warp = |n: Node<'_>| at.int(n) == Some(32) || at.text(n).to_ascii_lowercase().starts_with("warp");
        let new = match (b.op, at.int(b.right)) {
            ("&", Some(31)) => format!("{} >> 5", at.flat(b.left)),
            (">>", Some(5)) if !at.in_ceil_div() => format!("{} & 31", at.flat(b.left)),
            ("%", _) if warp(b.right) => format!("{} / {}", at.flat(b.left), at.flat(b.right)),
            ("/", _) if warp(b.right) && !at.in_ceil_div() => {
                format!("{} % {}", at.flat(b.left), at.flat(b.right))
            }
            _ => return,
        };
        if !at.host() {
            out.replace(at.node, new);
        }
    }
}
