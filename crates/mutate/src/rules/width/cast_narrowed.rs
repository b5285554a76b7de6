//! `CastNarrowed`: an index is cast to 32 bits, signed or not, where 64 belong.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// An index is cast to 32 bits, signed or not, where 64 belong.
pub struct CastNarrowed;

impl Rule for CastNarrowed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CastNarrowed",
            family: Family::Width,
            reason: "an index is cast to 32 bits, signed or not, where 64 belong",
            source: "public bug reports: https://github.com/microsoft/onnxruntime/pull/28108",
            before: "long long r = static_cast<long long>(i) * n;",
            after: &["long long r = static_cast<unsigned>(i) * n;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression", "cast_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.parent()?))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        // The type that the value does not have already: without a cast it would be multiplied in its own.
        if let Some((_, value)) = shared::widened_operand(at) {
            let to = if shared::is_launch_variable(at, value) { "int" } else { "unsigned" };
            out.replace(at.node, format!("static_cast<{to}>({})", at.flat(bare(value))));
        }
    }
}
