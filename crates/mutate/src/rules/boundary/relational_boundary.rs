//! `RelationalBoundary`: a comparison of indices is off by one.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A comparison of indices is off by one.
pub struct RelationalBoundary;

impl Rule for RelationalBoundary {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "RelationalBoundary",
            family: Family::Boundary,
            reason: "a comparison of indices is off by one",
            source: "checker paper, boundary: < to <=",
            before: "if (i < n) y[i] = a;",
            after: &["if (i <= n) y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        3
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary() else { return };
        let new = match b.op {
            "<" => "<=",
            "<=" => "<",
            ">" => ">=",
            ">=" => ">",
            _ => return,
        };
        if at.integers(&b) && at.for_condition().is_none() && !shared::steps_by_factor(at) {
            out.replace(b.op_node, new);
        }
    }
}
