//! `ByteOffsetWrapped`: an access wraps at 2^32 bytes.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo, shared as common};
use crate::site::{Proposals, Site};

/// An access wraps at 2^32 bytes.
pub struct ByteOffsetWrapped;

impl Rule for ByteOffsetWrapped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ByteOffsetWrapped",
            family: Family::Width,
            reason: "an access wraps at 2^32 bytes",
            source: "boundary paper, candidate boundaries: 2^32 bytes; https://github.com/pytorch/pytorch/issues/96716",
            before: "s = x[i];",
            after: &["s = x[static_cast<unsigned>((i) * sizeof(*x)) / sizeof(*x)];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        common::access_key(at)
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if let Some((array, place)) = shared::global_access(at) {
            let (array, index) = (at.text(array), at.flat(place));
            let wrapped = format!("static_cast<unsigned>(({index}) * sizeof(*{array})) / sizeof(*{array})");
            out.replace(place, wrapped);
        }
    }
}
