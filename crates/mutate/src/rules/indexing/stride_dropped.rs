//! `StrideDropped`: a row's number is added where its offset belongs.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;

/// A row's number is added where its offset belongs.
pub struct StrideDropped;

impl Rule for StrideDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StrideDropped",
            family: Family::Indexing,
            reason: "a row's number is added where its offset belongs",
            source: "checker paper, indexing: stride confusion",
            before: "s = x[i * n + j];",
            after: &["s = x[i + j];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(product) = at.binary().filter(|b| b.op == "*") else { return };
        let added = at.parent().and_then(binary).is_some_and(|b| b.op == "+");
        if added
            && !at.host()
            && product.right.kind() == "identifier"
            && at.integers(&product)
            && at.symbol(at.text(product.right)).is_some_and(|s| s.parameter)
            && !at.text(product.left).starts_with("blockIdx")
        {
            out.replace(at.node, at.flat(product.left));
        }
    }
}
