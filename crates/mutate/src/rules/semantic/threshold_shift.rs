//! `ThresholdShift`: a piecewise function changes branch at another value.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::float_literal;

/// A piecewise function changes branch at another value.
pub struct ThresholdShift;

impl Rule for ThresholdShift {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ThresholdShift",
            family: Family::Semantic,
            reason: "a piecewise function changes branch at another value",
            source: "checker paper, semantic: shifted piecewise thresholds",
            before: "if (a > 3.0f) s = a;",
            after: &["if (a > 3.03f) s = a;"],
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
        let Some(b) = at.binary().filter(|b| matches!(b.op, "<" | "<=" | ">" | ">=")) else { return };
        for side in [b.left, b.right] {
            let Some(literal) = float_literal(at.text(side)) else { continue };
            out.replace(side, shared::one_percent_more(&literal));
        }
    }
}
