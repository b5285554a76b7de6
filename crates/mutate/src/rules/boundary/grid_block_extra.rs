//! `GridBlockExtra`: the grid has a block too many.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The grid has a block too many.
pub struct GridBlockExtra;

impl Rule for GridBlockExtra {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridBlockExtra",
            family: Family::Boundary,
            reason: "the grid has a block too many",
            source: "MUTGPU: alloc_increment; checker paper, equivalence: a write that lands in allocator slack",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<n + 1, 256>>>(x, w, y, n, m);"],
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
        for extent in shared::grid_extents(at).into_iter().take(1) {
            out.replace(extent, format!("{} + 1", at.atom(extent)));
        }
    }
}
