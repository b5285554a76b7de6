//! `StrideConfusion`: another extent of the problem serves as the stride.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;

/// Another extent of the problem serves as the stride.
pub struct StrideConfusion;

impl Rule for StrideConfusion {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StrideConfusion",
            family: Family::Indexing,
            reason: "another extent of the problem serves as the stride",
            source: "checker paper, indexing: stride confusion",
            before: "s = x[i * n + j];",
            after: &["s = x[i * m + j];"],
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
        let Some(product) = at.binary().filter(|b| b.op == "*") else { return };
        let Some(function) = at.function else { return };
        let extents: Vec<&str> = function
            .symbols
            .parameters()
            .filter(|(_, symbol)| symbol.ty.is_int())
            .map(|(name, _)| name)
            .collect();
        let stride = at.text(product.right);
        let added = at.parent().and_then(binary).is_some_and(|b| b.op == "+");
        if function.host || !added || product.right.kind() != "identifier" {
            return;
        }
        if let Some(place) = extents.iter().position(|name| *name == stride)
            && let Some(other) = extents.get((place + 1) % extents.len()).filter(|name| **name != stride)
        {
            out.replace(product.right, *other);
        }
    }
}
