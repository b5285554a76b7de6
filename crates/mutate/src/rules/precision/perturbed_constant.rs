//! `PerturbedConstant`: the third digit of a constant is wrong.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::float_literal;

/// The third digit of a constant is wrong.
pub struct PerturbedConstant;

impl Rule for PerturbedConstant {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "PerturbedConstant",
            family: Family::Precision,
            reason: "the third digit of a constant is wrong",
            source: "checker paper, precision: perturbed polynomial constants",
            before: "s = 0.044715f * a;",
            after: &["s = 0.044815f * a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["number_literal", "preproc_arg"]
    }

    fn at_file_scope(&self) -> bool {
        true
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let text = at.text(at.node).trim();
        let Some(literal) = float_literal(text) else { return };
        if let Some(other) = shared::third_digit_off(literal.digits) {
            out.replace(at.node, format!("{}{other}{}{}", literal.sign, literal.exponent, literal.suffix));
        }
    }
}
