//! `HalfLoad`: an input is read through a half-precision temporary.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::types::Base;

/// An input is read through a half-precision temporary.
pub struct HalfLoad;

impl Rule for HalfLoad {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "HalfLoad",
            family: Family::Precision,
            reason: "an input is read through a half-precision temporary",
            source: "checker paper, precision: fp16 temporaries",
            before: "s = x[i];",
            after: &["s = through_half(x[i]);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node.child_by_field_name("argument")?))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(array) = at.node.child_by_field_name("argument") else { return };
        let written = at.parent().is_some_and(|p| {
            p.child_by_field_name("left") == Some(at.node) && p.kind() == "assignment_expression"
        });
        let plain = !matches!(
            at.parent().map(|p| p.kind()),
            Some("pointer_expression" | "field_expression" | "subscript_expression" | "update_expression")
        );
        if !written
            && plain
            && !at.host()
            && at.ty(at.node).is(Base::Float)
            && at.symbol(at.text(array)).is_some_and(|s| s.parameter)
        {
            let (new, others) = at.through_half(&at.flat(at.node));
            out.replace_with(at.node, new, others);
        }
    }
}
