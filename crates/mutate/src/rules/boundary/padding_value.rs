//! `PaddingValue`: elements outside are padded with one, not with zero.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::float_literal;

/// Elements outside are padded with one, not with zero.
pub struct PaddingValue;

impl Rule for PaddingValue {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "PaddingValue",
            family: Family::Boundary,
            reason: "elements outside are padded with one, not with zero",
            source: "public bug reports: masked loads with a wrong fill, https://github.com/apache/mxnet/issues/2753",
            before: "s = i < n ? x[i] : 0.0f;",
            after: &["s = i < n ? x[i] : 1.0f;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["conditional_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let (Some(condition), Some(no)) =
            (at.node.child_by_field_name("condition"), at.node.child_by_field_name("alternative"))
        else {
            return;
        };
        if let Some(literal) = float_literal(at.text(no)).filter(|l| l.value == 0.0)
            && at.is_bounds_test(condition)
        {
            out.replace(no, format!("1.0{}", literal.suffix));
        }
    }
}
