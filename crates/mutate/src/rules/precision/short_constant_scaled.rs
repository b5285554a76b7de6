//! `ShortConstantScaled`: a factor of one or two digits is one percent off.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{binary, float_literal};

/// A factor of one or two digits is one percent off.
pub struct ShortConstantScaled;

impl Rule for ShortConstantScaled {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ShortConstantScaled",
            family: Family::Precision,
            reason: "a factor of one or two digits is one percent off",
            source: "checker paper, precision: perturbed polynomial constants",
            before: "s = 0.5f * a;",
            after: &["s = 0.505f * a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["number_literal"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.parent()?))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(literal) = float_literal(at.text(at.node)) else { return };
        let factor = at.parent().and_then(binary).is_some_and(|b| matches!(b.op, "*" | "+" | "-" | "/"));
        let long = shared::first_digits(literal.digits, 2).is_some();
        if factor && !long && literal.value != 0.0 && literal.exponent.is_empty() {
            out.replace(at.node, shared::one_percent_more(&literal));
        }
    }
}
