//! `FlagFlip`: a flag is read the wrong way round.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;
use crate::types::Base;

/// A flag is read the wrong way round.
pub struct FlagFlip;

impl Rule for FlagFlip {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "FlagFlip",
            family: Family::Semantic,
            reason: "a flag is read the wrong way round",
            source: "checker paper, semantic: flag flips",
            before: "if (flag) s = a;",
            after: &["if (!flag) s = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["identifier", "true", "false"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        match at.node.kind() {
            "true" => out.replace(at.node, "false"),
            "false" => out.replace(at.node, "true"),
            _ => {
                let condition = at.parent().is_some_and(|p| {
                    p.kind() == "condition_clause"
                        || p.child_by_field_name("condition") == Some(at.node)
                        || binary(p).is_some_and(|b| matches!(b.op, "&&" | "||"))
                });
                if condition && at.ty(at.node).is(Base::Bool) {
                    out.replace(at.node, format!("!{}", at.text(at.node)));
                }
            }
        }
    }
}
