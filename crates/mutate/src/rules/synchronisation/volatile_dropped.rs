//! `VolatileDropped`: a value that others change is read once.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// A value that others change is read once.
pub struct VolatileDropped;

impl Rule for VolatileDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "VolatileDropped",
            family: Family::Synchronisation,
            reason: "a value that others change is read once",
            source: "public bug reports: missing volatile, https://github.com/arthurxlw/cytonRL/issues/3",
            before: "volatile float* t = y; s = t[i];",
            after: &["float* t = y; s = t[i];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["type_qualifier"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.text(at.node) == "volatile" {
            out.list.push(shared::without_space(at, at.node, "remove volatile"));
        }
    }
}
