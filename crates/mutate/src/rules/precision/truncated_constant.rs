//! `TruncatedConstant`: a constant keeps two digits.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::float_literal;

/// A constant keeps two digits.
pub struct TruncatedConstant;

impl Rule for TruncatedConstant {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "TruncatedConstant",
            family: Family::Precision,
            reason: "a constant keeps two digits",
            source: "checker paper, precision: perturbed polynomial constants",
            before: "s = 0.044715f * a;",
            after: &["s = 0.044f * a;"],
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
        if let Some(short) = shared::first_digits(literal.digits, 2) {
            out.replace(at.node, format!("{}{short}{}{}", literal.sign, literal.exponent, literal.suffix));
        }
    }
}
