//! `ClampShift`: a clamp has another limit.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::float_literal;

/// A clamp has another limit.
pub struct ClampShift;

impl Rule for ClampShift {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ClampShift",
            family: Family::Semantic,
            reason: "a clamp has another limit",
            source: "checker paper, semantic: shifted piecewise thresholds",
            before: "s = fmaxf(a, 0.0f);",
            after: &["s = fmaxf(a, 0.01f);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if !matches!(call.name, "fmaxf" | "fminf" | "fmax" | "fmin" | "max" | "min") {
            return;
        }
        for side in &call.args {
            let Some(literal) = float_literal(at.text(*side)) else { continue };
            // Huge values are identities, tiny ones guards against a zero.
            if literal.value == 0.0 || (0.01..1e6).contains(&literal.value) {
                out.replace(*side, shared::one_percent_more(&literal));
            }
        }
    }
}
