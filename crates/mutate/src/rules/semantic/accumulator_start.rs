//! `AccumulatorStart`: an accumulator starts from the wrong value.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{any_below, assignment, float_literal, mentions};

/// An accumulator starts from the wrong value.
pub struct AccumulatorStart;

impl Rule for AccumulatorStart {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AccumulatorStart",
            family: Family::Semantic,
            reason: "an accumulator starts from the wrong value",
            source: "public bug reports: wrong reduction identity",
            before: "float t = 0.0f; t += a;",
            after: &["float t = 1.0f; t += a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["init_declarator"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(value) = at.node.child_by_field_name("value") else { return };
        let Some(name) = at.node.child_by_field_name("declarator").filter(|n| n.kind() == "identifier")
        else {
            return;
        };
        let Some(literal) = float_literal(at.text(value)) else { return };
        let name = at.text(name);
        let accumulates = at.body().is_some_and(|body| {
            any_below(body, |n| {
                assignment(n).is_some_and(|b| {
                    at.text(b.left) == name && (b.op != "=" || mentions(b.right, name, at.source))
                })
            })
        });
        if accumulates && (literal.value == 0.0 || literal.value == 1.0) {
            let new = if literal.value == 0.0 { "1.0" } else { "0.0" };
            out.replace(value, format!("{new}{}", literal.suffix));
        }
    }
}
