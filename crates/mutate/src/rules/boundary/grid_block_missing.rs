//! `GridBlockMissing`: the grid has a block too few.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The grid has a block too few.
pub struct GridBlockMissing;

impl Rule for GridBlockMissing {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridBlockMissing",
            family: Family::Boundary,
            reason: "the grid has a block too few",
            source: "MUTGPU: alloc_decrement",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<n - 1, 256>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["kernel_call_syntax", "declaration"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        // Without its only block a launch is refused, which tells nothing.
        for extent in shared::grid_extents(at).into_iter().take(1).filter(|n| at.int(*n) != Some(1)) {
            out.replace(extent, format!("{} - 1", at.atom(extent)));
        }
    }
}
