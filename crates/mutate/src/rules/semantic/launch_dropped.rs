//! `LaunchDropped`: one kernel of several is not launched.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{any_below, call};

/// One kernel of several is not launched.
pub struct LaunchDropped;

impl Rule for LaunchDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LaunchDropped",
            family: Family::Semantic,
            reason: "one kernel of several is not launched",
            source: "checker paper, host code",
            before: "k<<<n, 256>>>(x, w, y, n, m); k<<<m, 32>>>(y, w, y, n, m);",
            after: &["; k<<<m, 32>>>(y, w, y, n, m);", "k<<<n, 256>>>(x, w, y, n, m); ;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["expression_statement"]
    }

    fn most(&self) -> usize {
        8
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let launch = |n: Node<'_>| call(n, at.source).is_some_and(|c| !c.config.is_empty());
        if !at.node.named_child(0).is_some_and(launch) {
            return;
        }
        let mut launches = 0;
        if let Some(body) = at.body() {
            any_below(body, |n| {
                launches += u32::from(n.kind() == "kernel_call_syntax");
                false
            });
        }
        // With a single launch this is "no kernel at all", which every checker sees.
        if launches > 1 {
            out.replace(at.node, ";");
        }
    }
}
