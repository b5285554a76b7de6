//! `ZeroScaleRead`: the old output is read although its scale is zero.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary, float_literal, mentions};

/// The old output is read although its scale is zero.
pub struct ZeroScaleRead;

impl Rule for ZeroScaleRead {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ZeroScaleRead",
            family: Family::Semantic,
            reason: "the old output is read although its scale is zero",
            source: "public bug reports: beta = 0 reads, https://github.com/flashinfer-ai/flashinfer/issues/4724",
            before: "y[i] = a;",
            after: &["y[i] = (a) + 0.0f * y[i];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["assignment_expression", "conditional_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.node.kind() == "assignment_expression" {
            let Some(value) = shared::global_store(at) else { return };
            if let Some(target) = at.assignment().map(|b| b.left).filter(|left| at.pure(*left)) {
                out.replace(value, format!("({}) + 0.0f * {}", at.flat(value), at.flat(target)));
            }
            return;
        }
        // `beta == 0 ? v : v + beta * old`: the special case is missing.
        let field = |name| at.node.child_by_field_name(name);
        let Some(test) = field("condition").map(bare).and_then(binary) else { return };
        let zero =
            float_literal(at.text(test.right)).map_or(at.int(test.right) == Some(0), |l| l.value == 0.0);
        let kept = match test.op {
            "==" => field("alternative"),
            "!=" => field("consequence"),
            _ => None,
        };
        if let Some(kept) = kept
            && zero
            && at.ty(test.left).is_real()
            && mentions(kept, at.text(test.left), at.source)
        {
            out.replace(at.node, format!("({})", at.flat(kept)));
        }
    }
}
