//! `BaseOffsetDropped`: a row pointer points at the first row.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;

/// A row pointer points at the first row.
pub struct BaseOffsetDropped;

impl Rule for BaseOffsetDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BaseOffsetDropped",
            family: Family::Indexing,
            reason: "a row pointer points at the first row",
            source: "checker paper, indexing; batch offset lost in public bug reports, https://github.com/flashinfer-ai/flashinfer/issues/3800",
            before: "const float* p = x + i * n;",
            after: &["const float* p = x;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["init_declarator"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(value) = at.node.child_by_field_name("value") else { return };
        let Some(sum) = binary(value).filter(|b| b.op == "+") else { return };
        if at.ty(sum.left).is_pointer() && !at.host() {
            out.replace(value, at.flat(sum.left));
        }
    }
}
