//! `GuardDeleted`: a bounds guard lets every thread through.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A bounds guard lets every thread through.
pub struct GuardDeleted;

impl Rule for GuardDeleted {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "GuardDeleted",
            family: Family::Boundary,
            reason: "a bounds guard lets every thread through",
            source: "checker paper, boundary: guard deletion; MUTGPU",
            before: "if (i < n) y[i] = a;",
            after: &["if (true) y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["if_statement"]
    }

    fn most(&self) -> usize {
        3
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(condition) =
            at.node.child_by_field_name("condition").and_then(|c| c.child_by_field_name("value"))
        else {
            return;
        };
        let Some(body) = at.node.child_by_field_name("consequence") else { return };
        let whole = at.node.child_by_field_name("alternative").is_none();
        if !whole || at.host() || !at.is_bounds_test(condition) {
            return;
        }
        let only = match body.kind() {
            "compound_statement" => named_children(body).into_iter().next().map_or("", |n| n.kind()),
            kind => kind,
        };
        let leaves = matches!(only, "return_statement" | "continue_statement" | "break_statement");
        out.replace(condition, if leaves { "false" } else { "true" });
    }
}
