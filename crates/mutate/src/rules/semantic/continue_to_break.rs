//! `ContinueToBreak`: skipping one element ends the loop.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// Skipping one element ends the loop.
pub struct ContinueToBreak;

impl Rule for ContinueToBreak {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ContinueToBreak",
            family: Family::Semantic,
            reason: "skipping one element ends the loop",
            source: "classical jump replacement",
            before: "for (int q = 0; q < n; ++q) { if (q == i) continue; s += x[q]; }",
            after: &["for (int q = 0; q < n; ++q) { if (q == i) break; s += x[q]; }"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["continue_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        out.replace(at.node, "break;");
    }
}
