//! `GuardInverted`: a bounds guard lets through what it should stop.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A bounds guard lets through what it should stop.
pub struct GuardInverted;

impl Rule for GuardInverted {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardInverted",
            family: Family::Boundary,
            reason: "a bounds guard lets through what it should stop",
            source: "MUTGPU, conventional operators: negated conditional",
            before: "if (i < n) y[i] = a;",
            after: &["if (!(i < n)) y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["if_statement"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let condition = at.node.child_by_field_name("condition").and_then(|c| c.child_by_field_name("value"));
        if let Some(condition) = condition
            && !at.host()
            && at.is_bounds_test(condition)
        {
            out.replace(condition, format!("!({})", at.flat(condition)));
        }
    }
}
