//! `NormaliserDropped`: a mean is left as a sum.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// A mean is left as a sum.
pub struct NormaliserDropped;

impl Rule for NormaliserDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "NormaliserDropped",
            family: Family::Semantic,
            reason: "a mean is left as a sum",
            source: "checker paper, semantic; public bug reports: missing division",
            before: "float mean = s / n;",
            after: &["float mean = s;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| b.op == "/") else { return };
        let divisor = bare(b.right);
        let counts = at.ty(divisor).is_int()
            || (divisor.kind() == "cast_expression"
                && divisor.child_by_field_name("value").is_some_and(|n| at.ty(n).is_int()));
        if at.ty(b.left).is_real() && counts {
            out.replace(at.node, at.atom(b.left));
        }
    }
}
