//! `GridAxisDropped`: the grid has one block along an axis that needs more.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The grid has one block along an axis that needs more.
pub struct GridAxisDropped;

impl Rule for GridAxisDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridAxisDropped",
            family: Family::Boundary,
            reason: "the grid has one block along an axis that needs more",
            source: "checker paper, host code; MUTGPU",
            before: "dim3 g(n, m); k<<<g, 256>>>(x, w, y, n, m);",
            after: &["dim3 g(n, 1); k<<<g, 256>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["declaration"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        for (name, args) in shared::dim3_declared(at) {
            if args.len() > 1 && at.is_launch_shape(name, 0) {
                for axis in args.iter().skip(1).filter(|axis| at.int(**axis).is_none()) {
                    out.replace(*axis, "1");
                }
            }
        }
    }
}
