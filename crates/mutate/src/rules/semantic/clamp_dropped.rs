//! `ClampDropped`: a clamp such as ReLU's lets everything through.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// A clamp such as ReLU's lets everything through.
pub struct ClampDropped;

impl Rule for ClampDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ClampDropped",
            family: Family::Semantic,
            reason: "a clamp such as ReLU's lets everything through",
            source: "checker paper: deleting a ReLU is the identity on official inputs",
            before: "y[i] = fmaxf(a, 0.0f);",
            after: &["y[i] = a;"],
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
        if !matches!(call.name, "fmaxf" | "fminf" | "fmax" | "fmin" | "max" | "min") {
            return;
        }
        let [first, second] = call.args[..] else { return };
        if !at.ty(at.node).is_real() {
            return;
        }
        let constant = |n: Node<'_>| {
            let n = bare(n);
            let inner = n.child_by_field_name("argument").unwrap_or(n);
            inner.kind() == "number_literal"
        };
        match (constant(first), constant(second)) {
            (false, true) => out.replace(at.node, at.atom(first)),
            (true, false) => out.replace(at.node, at.atom(second)),
            _ => {}
        }
    }
}
