//! `VectorComponentSwap`: a component of a vector load is taken for its neighbour.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::types::Base;

/// A component of a vector load is taken for its neighbour.
pub struct VectorComponentSwap;

impl Rule for VectorComponentSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "VectorComponentSwap",
            family: Family::Indexing,
            reason: "a component of a vector load is taken for its neighbour",
            source: "public bug reports: vectorised access",
            before: "float4 v; s = v.x;",
            after: &["float4 v; s = v.y;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["field_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node.child_by_field_name("argument")?))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(argument) = at.node.child_by_field_name("argument") else { return };
        let Some(field) = at.node.child_by_field_name("field") else { return };
        if !at.ty(argument).is(Base::FloatVector) {
            return;
        }
        let new = match at.text(field) {
            "x" => "y",
            "y" => "x",
            "z" => "w",
            "w" => "z",
            _ => return,
        };
        out.replace(field, new);
    }
}
