//! `CeilToFloorTiles`: a tile loop leaves out the last, partly filled tile.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A tile loop leaves out the last, partly filled tile.
pub struct CeilToFloorTiles;

impl Rule for CeilToFloorTiles {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CeilToFloorTiles",
            family: Family::Boundary,
            reason: "a tile loop leaves out the last, partly filled tile",
            source: "checker paper, boundary: tail drop",
            before: "int r = (n + 16 - 1) / 16;",
            after: &["int r = n / 16;"],
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
        if !at.host()
            && let Some(floor) = at.ceil_div(at.node)
        {
            out.replace(at.node, shared::fitting(at, floor));
        }
    }
}
