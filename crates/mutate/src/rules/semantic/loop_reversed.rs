//! `LoopReversed`: a scan runs from the other end.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{any_below, assignment, binary, for_loop, mentions};

/// A scan runs from the other end.
pub struct LoopReversed;

impl Rule for LoopReversed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LoopReversed",
            family: Family::Semantic,
            reason: "a scan runs from the other end",
            source: "checker paper, semantic: reordering; scans in public bug reports",
            before: "for (int q = 0; q < n; ++q) { s += x[q]; y[q] = s; }",
            after: &["for (int q = (n) - 1; q >= 0; --q) { s += x[q]; y[q] = s; }"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["for_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(parts) = for_loop(at.node) else { return };
        let (Some(start), Some(variable), Some(test), Some(update)) =
            (parts.start, parts.variable, parts.condition, parts.update)
        else {
            return;
        };
        let Some(test) = binary(test).filter(|b| b.op == "<") else { return };
        let steps_by_one = update.kind() == "update_expression" && at.text(update).contains("++");
        // An unsigned variable never gets below zero.
        let signed =
            at.node.child_by_field_name("initializer").is_some_and(|n| at.text(n).starts_with("int "));
        // Only where order matters by more than rounding: the loop stores while it accumulates.
        let mut stores = false;
        let mut accumulates = false;
        any_below(parts.body, |n| {
            if let Some(b) = assignment(n) {
                stores |= b.op == "=" && b.left.kind() == "subscript_expression";
                accumulates |= b.left.kind() == "identifier"
                    && (b.op != "=" || mentions(b.right, at.text(b.left), at.source));
            }
            false
        });
        if steps_by_one && signed && stores && accumulates && at.same(test.left, variable) {
            let name = at.text(variable);
            let others = vec![
                (test.left.start_byte()..test.right.end_byte(), format!("{name} >= {}", at.flat(start))),
                (update.byte_range(), format!("--{name}")),
            ];
            out.replace_with(start, format!("({}) - 1", at.flat(test.right)), others);
        }
    }
}
