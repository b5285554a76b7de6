//! `LateWidening`: a product is widened after its first two factors have met in 32 bits.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;

/// A product is widened after its first two factors have met in 32 bits.
pub struct LateWidening;

impl Rule for LateWidening {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LateWidening",
            family: Family::Width,
            reason: "a product is widened after its first two factors have met in 32 bits",
            source: "public bug reports: https://github.com/ROCm/composable_kernel/issues/3722",
            before: "long long r = static_cast<long long>(i) * n * m;",
            after: &["long long r = static_cast<long long>(i * n) * m;"],
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
        let Some(product) = at.binary().filter(|b| b.op == "*") else { return };
        // With two factors alone it would be the cast dropped.
        let more = at.parent().and_then(binary).is_some_and(|b| b.op == "*" && b.left == at.node);
        let Some((ty, value)) = shared::widening(at, product.left) else { return };
        if more && at.ty(value).is_int() && !at.wide(value) && !at.wide(product.right) {
            let both = format!("{} * {}", at.atom(value), at.atom(product.right));
            out.replace(at.node, format!("static_cast<{}>({both})", at.flat(ty)));
        }
    }
}
