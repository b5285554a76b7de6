//! `EpsPlacement`: epsilon is added outside the root.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// Epsilon is added outside the root.
pub struct EpsPlacement;

impl Rule for EpsPlacement {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "EpsPlacement",
            family: Family::Semantic,
            reason: "epsilon is added outside the root",
            source: "public bug reports: eps placement, https://github.com/taokong/group_normalization/issues/1",
            before: "s = rsqrtf(a + eps);",
            after: &["s = (rsqrtf(a) + eps);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if !matches!(call.name, "sqrtf" | "rsqrtf" | "sqrt" | "rsqrt") {
            return;
        }
        if let Some(sum) = call.args.first().and_then(|n| binary(bare(*n))).filter(|b| b.op == "+")
            && shared::is_epsilon(at, sum.right)
        {
            let (value, eps) = (at.flat(sum.left), at.flat(sum.right));
            out.replace(at.node, format!("({}({value}) + {eps})", call.name));
        }
    }
}
