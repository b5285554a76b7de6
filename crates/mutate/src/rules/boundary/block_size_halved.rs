//! `BlockSizeHalved`: a launch has half the threads that its kernel expects.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;
use crate::types::Base;

/// A launch has half the threads that its kernel expects.
pub struct BlockSizeHalved;

impl Rule for BlockSizeHalved {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "BlockSizeHalved",
            family: Family::Boundary,
            reason: "a launch has half the threads that its kernel expects",
            source: "checker paper, host code; MUTGPU: block size",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<n, 256 / 2>>>(x, w, y, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["kernel_call_syntax", "declaration"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        if at.node.kind() == "declaration" {
            for (name, args) in shared::dim3_declared(at) {
                if let Some(first) = args.first()
                    && at.is_launch_shape(name, 1)
                {
                    out.replace(*first, format!("{} / 2", at.atom(*first)));
                }
            }
            return;
        }
        let Some(block) = named_children(at.node).get(1).copied() else { return };
        let is_shape = at.ty(block).is(Base::Dim3);
        if !is_shape && at.int(block) != Some(1) {
            out.replace(block, format!("{} / 2", at.atom(block)));
        }
    }
}
