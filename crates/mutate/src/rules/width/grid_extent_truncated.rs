//! `GridExtentTruncated`: a grid keeps 16 bits of its extent.

use crate::rules::{Family, Rule, RuleInfo, shared as common};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// A grid keeps 16 bits of its extent.
pub struct GridExtentTruncated;

impl Rule for GridExtentTruncated {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridExtentTruncated",
            family: Family::Width,
            reason: "a grid keeps 16 bits of its extent",
            source: "public bug reports: https://github.com/ml-explore/mlx/issues/2267",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<static_cast<unsigned short>(n), 256>>>(x, w, y, n, m);"],
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
        for extent in common::grid_extents(at).into_iter().filter(|n| at.int(*n).is_none()) {
            out.replace(extent, format!("static_cast<unsigned short>({})", at.flat(bare(extent))));
        }
    }
}
