//! `OnePassVariance`: squared deviations become a difference of squares, which cancels.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// Squared deviations become a difference of squares, which cancels.
pub struct OnePassVariance;

impl Rule for OnePassVariance {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "OnePassVariance",
            family: Family::Precision,
            reason: "squared deviations become a difference of squares, which cancels",
            source: "public bug reports: one-pass variance, https://github.com/tenstorrent/tt-metal/issues/45968",
            before: "s += (a - b) * (a - b);",
            after: &["s += (a * a - b * b);"],
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
        if !at.same(product.left, product.right) || !at.pure(at.node) {
            return;
        }
        let difference = match product.left.kind() {
            // `float d = x - mean;` a little before.
            "identifier" => at.body().and_then(|body| shared::initial_value(at, body, at.text(product.left))),
            _ => Some(bare(product.left)),
        };
        if let Some(d) = difference.and_then(binary).filter(|b| b.op == "-")
            && at.reals(&d)
            && at.pure(d.left)
            && at.pure(d.right)
        {
            let (x, mean) = (at.atom(d.left), at.atom(d.right));
            out.replace(at.node, format!("({x} * {x} - {mean} * {mean})"));
        }
    }
}
