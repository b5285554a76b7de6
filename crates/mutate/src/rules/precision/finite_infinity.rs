//! `FiniteInfinity`: minus infinity is only a largish number.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// Minus infinity is only a largish number.
pub struct FiniteInfinity;

impl Rule for FiniteInfinity {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FiniteInfinity",
            family: Family::Precision,
            reason: "minus infinity is only a largish number",
            source: "public bug reports: masking with -1e4, https://github.com/anthony-chaudhary/fak/issues/12173",
            before: "s = -INFINITY;",
            after: &["s = -1.0e4f;"],
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
            out.replace(at.node, "-1.0e4f");
        }
    }
}
