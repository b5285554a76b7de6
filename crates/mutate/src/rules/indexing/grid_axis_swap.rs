//! `GridAxisSwap`: the grid's axes change places.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The grid's axes change places.
pub struct GridAxisSwap;

impl Rule for GridAxisSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GridAxisSwap",
            family: Family::Indexing,
            reason: "the grid's axes change places",
            source: "checker paper, host code: axis swap",
            before: "dim3 g(n, m); k<<<g, 256>>>(x, w, y, n, m);",
            after: &["dim3 g(m, n); k<<<g, 256>>>(x, w, y, n, m);"],
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
            if let [x, y, ..] = args[..]
                && at.is_launch_shape(name, 0)
                && !at.same(x, y)
            {
                out.swap(at.source, x, y);
            }
        }
    }
}
