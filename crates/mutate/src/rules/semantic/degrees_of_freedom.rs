//! `DegreesOfFreedom`: a biased variance becomes unbiased.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::bare;

/// A biased variance becomes unbiased.
pub struct DegreesOfFreedom;

impl Rule for DegreesOfFreedom {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "DegreesOfFreedom",
            family: Family::Semantic,
            reason: "a biased variance becomes unbiased",
            source: "public bug reports: biased against unbiased variance, https://github.com/tenstorrent/tt-metal/issues/55438",
            before: "float var = s / n;",
            after: &["float var = s / (n - 1);"],
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
        let Some(b) = at.binary().filter(|b| b.op == "/") else { return };
        if !at.reals(&b) || bare(b.right).kind() == "number_literal" {
            return;
        }
        let spread = |text: &str| {
            let text = text.to_ascii_lowercase();
            ["var", "sq", "m2"].iter().any(|word| text.contains(word))
        };
        let target = at.outwards().find_map(|n| match n.kind() {
            "init_declarator" => n.child_by_field_name("declarator"),
            "assignment_expression" => n.child_by_field_name("left"),
            _ => None,
        });
        if spread(at.text(b.left)) || target.is_some_and(|n| spread(at.text(n))) {
            out.replace(b.right, format!("({} - 1)", at.flat(b.right)));
        }
    }
}
