//! `WarpSizeHalved`: a warp is taken to have 16 lanes.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::binary;

/// A warp is taken to have 16 lanes.
pub struct WarpSizeHalved;

impl Rule for WarpSizeHalved {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "WarpSizeHalved",
            family: Family::Boundary,
            reason: "a warp is taken to have 16 lanes",
            source: "public bug reports: assumed warp size, https://github.com/ORNL/HeCBench/issues/171",
            before: "int r = tid / 32;",
            after: &["int r = tid / 16;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["number_literal", "preproc_arg"]
    }

    fn at_file_scope(&self) -> bool {
        true
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.parent()?))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let new = match at.text(at.node).trim() {
            "32" => "16",
            "32u" => "16u",
            "31" => "15",
            "31u" => "15u",
            _ => return,
        };
        if at.node.kind() == "number_literal" && at.function.is_some() {
            let operand = at
                .parent()
                .and_then(binary)
                .is_some_and(|b| matches!(b.op, "/" | "%" | "&" | "<" | "+" | ">>") && b.right == at.node);
            if !operand || at.in_ceil_div() || at.host() {
                return;
            }
        } else {
            // At file scope the name says whether the constant is a warp's size.
            let named = at.parent().is_some_and(|p| at.text(p).to_ascii_lowercase().contains("warp"));
            if !named {
                return;
            }
        }
        out.replace(at.node, new);
    }
}
