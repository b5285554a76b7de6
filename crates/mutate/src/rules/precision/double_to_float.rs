//! `DoubleToFloat`: a double-precision intermediate is single precision.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A double-precision intermediate is single precision.
pub struct DoubleToFloat;

impl Rule for DoubleToFloat {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "DoubleToFloat",
            family: Family::Precision,
            reason: "a double-precision intermediate is single precision",
            source: "checker paper, precision: narrow intermediates",
            before: "double t = a; s = t * b;",
            after: &["float t = a; s = t * b;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["primitive_type"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.text(at.node) == "double" {
            out.replace(at.node, "float");
        }
    }
}
