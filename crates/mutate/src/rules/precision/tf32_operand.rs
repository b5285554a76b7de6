//! `Tf32Operand`: a factor is cut to ten bits of mantissa, as tf32 does.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::assignment;
use crate::types::Base;

/// A factor is cut to ten bits of mantissa, as tf32 does.
pub struct Tf32Operand;

impl Rule for Tf32Operand {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "Tf32Operand",
            family: Family::Precision,
            reason: "a factor is cut to ten bits of mantissa, as tf32 does",
            source: "public bug reports: tf32 switched on unasked, https://github.com/pytorch/pytorch/issues/61890",
            before: "s += a * b;",
            after: &["s += __uint_as_float(__float_as_uint(a) & 0xffffe000u) * b;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression", "call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let cut = |n: Node<'_>| format!("__uint_as_float(__float_as_uint({}) & 0xffffe000u)", at.flat(n));
        if let Some(call) = at.call() {
            if call.name == "fmaf"
                && let [first, _, _] = call.args[..]
            {
                out.replace(first, cut(first));
            }
            return;
        }
        let Some(b) = at.binary().filter(|b| b.op == "*") else { return };
        let summed = at.parent().is_some_and(|p| assignment(p).is_some_and(|a| a.op == "+="));
        if summed && at.ty(b.left).is(Base::Float) && at.ty(b.right).is(Base::Float) {
            out.replace(b.left, cut(b.left));
        }
    }
}
