//! `CompoundAssignSign`: an accumulation goes the other way.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An accumulation goes the other way.
pub struct CompoundAssignSign;

impl Rule for CompoundAssignSign {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CompoundAssignSign",
            family: Family::Arithmetic,
            reason: "an accumulation goes the other way",
            source: "classical operator replacement",
            before: "s += a;",
            after: &["s -= a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.assignment() else { return };
        if at.in_for_update() {
            return;
        }
        let real = at.ty(b.left).is_real();
        let new = match b.op {
            "+=" => "-=",
            "-=" => "+=",
            // With integers these drive halving loops, which would never end.
            "*=" if real => "/=",
            "/=" if real => "*=",
            _ => return,
        };
        out.replace(b.op_node, new);
    }
}
