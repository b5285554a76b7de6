//! `ReductionIdentity`: a maximum starts from zero, not from minus infinity.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::int_literal;

/// A maximum starts from zero, not from minus infinity.
pub struct ReductionIdentity;

impl Rule for ReductionIdentity {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ReductionIdentity",
            family: Family::Semantic,
            reason: "a maximum starts from zero, not from minus infinity",
            source: "public bug reports: wrong reduction identity, https://github.com/NVIDIA/cccl/issues/1388",
            before: "s = -INFINITY;",
            after: &["s = 0.0f;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["unary_expression", "number_literal", "call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.node.kind() == "call_expression" {
            let Some(call) = at.call() else { return };
            if matches!(call.name, "__int_as_float" | "__uint_as_float")
                && call
                    .args
                    .first()
                    .is_some_and(|n| int_literal(at.text(*n)).is_some_and(|v| v & !(1 << 31) == 0x7f80_0000))
            {
                out.replace(at.node, "0.0f");
            }
            return;
        }
        if shared::is_minus_infinity(at) {
            out.replace(at.node, "0.0f");
        }
    }
}
