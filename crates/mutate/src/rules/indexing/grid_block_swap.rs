//! `GridBlockSwap`: a launch's grid and block change places.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A launch's grid and block change places.
pub struct GridBlockSwap;

impl Rule for GridBlockSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridBlockSwap",
            family: Family::Indexing,
            reason: "a launch's grid and block change places",
            source: "MUTGPU: alloc_swap",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<256, n>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["kernel_call_syntax"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let [grid, block, ..] = named_children(at.node)[..]
            && !at.same(grid, block)
        {
            out.swap(at.source, grid, block);
        }
    }
}
