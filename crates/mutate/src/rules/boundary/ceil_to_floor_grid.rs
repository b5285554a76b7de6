//! `CeilToFloorGrid`: the grid leaves out the last, partly filled block.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The grid leaves out the last, partly filled block.
pub struct CeilToFloorGrid;

impl Rule for CeilToFloorGrid {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CeilToFloorGrid",
            family: Family::Boundary,
            reason: "the grid leaves out the last, partly filled block",
            source: "checker paper, boundary: ceil to floor grid; MUTGPU",
            before: "int g = (n + 255) / 256; k<<<g, 256>>>(x, w, y, n, m);",
            after: &["int g = n / 256; k<<<g, 256>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression", "call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.host()
            && let Some(floor) = at.ceil_div(at.node)
        {
            out.replace(at.node, shared::fitting(at, floor));
        }
    }
}
