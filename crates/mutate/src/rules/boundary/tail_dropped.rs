//! `TailDropped`: the loop over the remainder is missing.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{any_below, bare, binary, for_loop, text};

/// The loop over the remainder is missing.
pub struct TailDropped;

impl Rule for TailDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "TailDropped",
            family: Family::Boundary,
            reason: "the loop over the remainder is missing",
            source: "checker paper, boundary: tail drop",
            before: "for (int q = n / 4 * 4 + tid; q < n; q += 32) y[q] = x[q];",
            after: &[";"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["for_statement", "if_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let source = at.source;
        if at.node.kind() == "if_statement" {
            let remainder = at.node.child_by_field_name("condition").is_some_and(|c| {
                any_below(c, |n| {
                    binary(n).is_some_and(|b| b.op == "%" && at.int(b.right).is_some_and(|w| w <= 8))
                        || (n.kind() == "identifier" && shared::names_tail(text(n, source)))
                })
            });
            if remainder && at.node.child_by_field_name("alternative").is_none() && !at.host() {
                out.replace(at.node, ";");
            }
            return;
        }
        let Some(start) = for_loop(at.node).and_then(|parts| parts.start) else { return };
        let after_vectors = any_below(start, |n| {
            binary(n).is_some_and(|b| {
                let width = |n| matches!(at.int(n), Some(2 | 4 | 8));
                match b.op {
                    "*" => width(b.left) || width(b.right),
                    "<<" => at.int(b.right).is_some(),
                    // `n & ~3`
                    "&" => bare(b.right).kind() == "unary_expression",
                    _ => false,
                }
            }) || (n.kind() == "identifier" && shared::names_tail(text(n, source)))
        });
        if after_vectors && !at.host() {
            out.replace(at.node, ";");
        }
    }
}
