//! `ReversedAccess`: an index counts from the wrong end.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// An index counts from the wrong end.
pub struct ReversedAccess;

impl Rule for ReversedAccess {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ReversedAccess",
            family: Family::Indexing,
            reason: "an index counts from the wrong end",
            source: "public bug reports: flipped kernels of transposed convolutions, https://github.com/tenstorrent/tt-metal/pull/15995",
            before: "s = x[n - 1 - i];",
            after: &["s = x[i];"],
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
        let Some(outer) = at.binary().filter(|b| b.op == "-") else { return };
        let Some(inner) = binary(bare(outer.left)).filter(|b| b.op == "-") else { return };
        if at.int(inner.right) == Some(1) && at.integers(&outer) {
            out.replace(at.node, at.atom(outer.right));
        }
    }
}
