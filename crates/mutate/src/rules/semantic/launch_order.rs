//! `LaunchOrder`: two launches run in the other order.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{call, named_children};

/// Two launches run in the other order.
pub struct LaunchOrder;

impl Rule for LaunchOrder {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LaunchOrder",
            family: Family::Semantic,
            reason: "two launches run in the other order",
            source: "checker paper, host code",
            before: "k<<<n, 256>>>(x, w, y, n, m); k<<<m, 32>>>(y, w, y, n, m);",
            after: &["k<<<m, 32>>>(y, w, y, n, m); k<<<n, 256>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["compound_statement"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let statements = named_children(at.node);
        let launch = |n: Node<'_>| {
            n.kind() == "expression_statement"
                && n.named_child(0).and_then(|n| call(n, at.source)).is_some_and(|c| !c.config.is_empty())
        };
        for pair in statements.windows(2) {
            if launch(pair[0]) && launch(pair[1]) {
                out.swap(at.source, pair[0], pair[1]);
            }
        }
    }
}
