//! `TransposedAccess`: the two subscripts of a tile change places.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// The two subscripts of a tile change places.
pub struct TransposedAccess;

impl Rule for TransposedAccess {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "TransposedAccess",
            family: Family::Indexing,
            reason: "the two subscripts of a tile change places",
            source: "checker paper, indexing: transposed access",
            before: "__shared__ float t[8][8]; s = t[i][j];",
            after: &["__shared__ float t[8][8]; s = t[j][i];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(inner) = at.node.child_by_field_name("argument") else { return };
        if inner.kind() != "subscript_expression" {
            return;
        }
        if let (Some(row), Some(column)) = (shared::subscript(inner), shared::subscript(at.node))
            && !at.same(row, column)
            && (at.int(row).is_none() || at.int(column).is_none())
        {
            out.swap(at.source, row, column);
        }
    }
}
