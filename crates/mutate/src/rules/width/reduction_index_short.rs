//! `ReductionIndexShort`: a reduction longer than 2^15 reads its elements by a short.

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{binary, for_loop};

/// A reduction longer than 2^15 reads its elements by a short.
pub struct ReductionIndexShort;

impl Rule for ReductionIndexShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ReductionIndexShort",
            family: Family::Width,
            reason: "a reduction longer than 2^15 reads its elements by a short",
            source: "boundary paper, related work: wrong from 2^15 on; https://github.com/pytorch/pytorch/issues/195163",
            before: "for (int q = 0; q < n; ++q) s += x[q];",
            after: &["for (int q = 0; q < n; ++q) s += x[static_cast<short>(q)];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["identifier"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let name = at.text(at.node);
        let mut subscripted = false;
        for around in at.outwards() {
            match around.kind() {
                "subscript_expression" => {
                    let array = around.child_by_field_name("argument");
                    subscripted |= array.is_some_and(|a| shared::is_global_array(at, a));
                }
                "for_statement" => {
                    let Some(parts) = for_loop(around) else { return };
                    if parts.variable.is_none_or(|v| at.text(v) != name) {
                        continue;
                    }
                    // A short constant bound is not a reduction that grows.
                    let bound = parts.condition.and_then(binary).map(|b| b.right);
                    let grows = bound.is_some_and(|n| at.symbol(at.text(n)).is_some_and(|s| s.parameter));
                    let inside = at.node.start_byte() >= parts.body.start_byte();
                    if subscripted && grows && inside && !at.host() {
                        out.replace(at.node, format!("static_cast<short>({name})"));
                    }
                    return;
                }
                _ => {}
            }
        }
    }
}
