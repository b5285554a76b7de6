//! `StatementOrder`: two steps on one value are taken in the other order.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{assignment, named_children};

/// Two steps on one value are taken in the other order.
pub struct StatementOrder;

impl Rule for StatementOrder {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StatementOrder",
            family: Family::Semantic,
            reason: "two steps on one value are taken in the other order",
            source: "checker paper, semantic: fused-op reordering",
            before: "s = s * a; s = fmaxf(s, 0.0f);",
            after: &["s = fmaxf(s, 0.0f); s = s * a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["compound_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let statements = named_children(at.node);
        let target = |n: Node<'_>| {
            let b = n.named_child(0).filter(|_| n.kind() == "expression_statement").and_then(assignment)?;
            Some(at.flat(b.left))
        };
        for pair in statements.windows(2) {
            if let (Some(one), Some(other)) = (target(pair[0]), target(pair[1]))
                && one == other
                && !at.same(pair[0], pair[1])
            {
                out.swap(at.source, pair[0], pair[1]);
            }
        }
    }
}
