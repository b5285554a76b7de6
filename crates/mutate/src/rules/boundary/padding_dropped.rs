//! `PaddingDropped`: a window starts at its centre: the padding is not subtracted.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A window starts at its centre: the padding is not subtracted.
pub struct PaddingDropped;

impl Rule for PaddingDropped {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "PaddingDropped",
            family: Family::Boundary,
            reason: "a window starts at its centre: the padding is not subtracted",
            source: "public bug reports: convolution padding, https://github.com/keras-team/keras-core/pull/520",
            before: "int r = i - pad;",
            after: &["int r = i;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(b) = at.binary().filter(|b| b.op == "-") else { return };
        if b.right.kind() == "identifier" && at.text(b.right).to_ascii_lowercase().contains("pad") {
            out.replace(at.node, at.atom(b.left));
        }
    }
}
