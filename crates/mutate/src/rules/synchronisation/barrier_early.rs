//! `BarrierEarly`: a barrier stands before the store that it should follow.

use crate::mutant::short;
use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposal, Proposals, Site};
use crate::syntax::{call, named_children};

/// A barrier stands before the store that it should follow.
pub struct BarrierEarly;

impl Rule for BarrierEarly {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BarrierEarly",
            family: Family::Synchronisation,
            reason: "a barrier stands before the store that it should follow",
            source: "checker paper, synchronisation; public bug reports: misplaced barrier, https://github.com/dealii/dealii/pull/8693",
            before: "__shared__ float t[32]; t[tid] = a; __syncthreads();",
            after: &["__shared__ float t[32]; __syncthreads(); t[tid] = a; ;"],
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
        for pair in statements.windows(2) {
            let barrier = pair[1]
                .named_child(0)
                .and_then(|n| call(n, at.source))
                .is_some_and(|c| c.name == "__syncthreads");
            // Moving past a declaration would take its name from what follows.
            let stores = matches!(pair[0].kind(), "expression_statement" | "if_statement" | "for_statement");
            if barrier && stores && pair[1].kind() == "expression_statement" {
                // In place, so that the store keeps its line.
                let start = pair[0].start_byte();
                let edits = vec![
                    (start..start, format!("{} ", at.flat(pair[1]))),
                    (pair[1].byte_range(), ";".to_owned()),
                ];
                let what = format!("move __syncthreads() before {}", short(at.text(pair[0])));
                out.list.push(Proposal { edits, what: Some(what) });
            }
        }
    }
}
