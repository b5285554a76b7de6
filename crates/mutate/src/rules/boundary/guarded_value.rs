//! `GuardedValue`: a guarded load reads without its guard.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::any_below;

/// A guarded load reads without its guard.
pub struct GuardedValue;

impl Rule for GuardedValue {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardedValue",
            family: Family::Boundary,
            reason: "a guarded load reads without its guard",
            source: "checker paper, boundary: guard deletion",
            before: "s = i < n ? x[i] : 0.0f;",
            after: &["s = x[i];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["conditional_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let (Some(condition), Some(yes)) =
            (at.node.child_by_field_name("condition"), at.node.child_by_field_name("consequence"))
        else {
            return;
        };
        let loads = any_below(yes, |n| n.kind() == "subscript_expression");
        if loads && at.is_bounds_test(condition) {
            out.replace(at.node, at.atom(yes));
        }
    }
}
