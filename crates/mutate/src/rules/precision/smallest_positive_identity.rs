//! `SmallestPositiveIdentity`: a maximum starts from the smallest positive float.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A maximum starts from the smallest positive float.
pub struct SmallestPositiveIdentity;

impl Rule for SmallestPositiveIdentity {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "SmallestPositiveIdentity",
            family: Family::Precision,
            reason: "a maximum starts from the smallest positive float",
            source: "public bug reports: FLT_MIN taken for the lowest float, https://github.com/openvinotoolkit/openvino/pull/5494",
            before: "s = -INFINITY;",
            after: &["s = 1.17549435e-38f;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["unary_expression", "number_literal"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if shared::is_minus_infinity(at) {
            out.replace(at.node, "1.17549435e-38f");
        }
    }
}
