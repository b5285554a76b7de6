//! `BiasDropped`: a bias or residual is not added.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A bias or residual is not added.
pub struct BiasDropped;

impl Rule for BiasDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BiasDropped",
            family: Family::Semantic,
            reason: "a bias or residual is not added",
            source: "checker paper, semantic: fused operations",
            before: "y[i] = a + w[j];",
            after: &["y[i] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| b.op == "+") else { return };
        let Some(array) = b.right.child_by_field_name("argument") else { return };
        if b.right.kind() == "subscript_expression"
            && at.reals(&b)
            && at.symbol(at.text(array)).is_some_and(|s| s.parameter)
        {
            out.replace(at.node, at.atom(b.left));
        }
    }
}
