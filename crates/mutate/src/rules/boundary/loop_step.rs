//! `LoopStep`: a loop visits every second element only.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A loop visits every second element only.
pub struct LoopStep;

impl Rule for LoopStep {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopStep",
            family: Family::Boundary,
            reason: "a loop visits every second element only",
            source: "checker paper, boundary: step changes",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q < n; q += 2) s += x[q];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["update_expression"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let parent = at.parent();
        if !parent.is_some_and(|p| p.child_by_field_name("update") == Some(at.node)) {
            return;
        }
        let Some(argument) = at.node.child_by_field_name("argument") else { return };
        let up = at.node.child_by_field_name("operator").is_some_and(|op| op.kind() == "++");
        if up {
            out.replace(at.node, format!("{} += 2", at.flat(argument)));
        }
    }
}
