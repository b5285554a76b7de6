//! `SharedToLocal`: a shared array becomes each thread's own.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A shared array becomes each thread's own.
pub struct SharedToLocal;

impl Rule for SharedToLocal {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "SharedToLocal",
            family: Family::Synchronisation,
            reason: "a shared array becomes each thread's own",
            source: "MUTGPU: share_removal",
            before: "__shared__ float t[32]; t[tid] = a;",
            after: &["float t[32]; t[tid] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["declaration"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let words = named_children(at.node);
        // An `extern` array has no size of its own, so it cannot be a local one.
        if words.iter().any(|n| at.text(*n) == "extern") {
            return;
        }
        if let Some(word) = words.into_iter().find(|n| at.text(*n) == "__shared__") {
            out.list.push(shared::without_space(at, word, "remove __shared__"));
        }
    }
}
