//! `SharedArrayShort`: a shared array is one row too small.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A shared array is one row too small.
pub struct SharedArrayShort;

impl Rule for SharedArrayShort {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "SharedArrayShort",
            family: Family::Boundary,
            reason: "a shared array is one row too small",
            source: "checker paper, boundary; public bug reports: shared memory too small, https://github.com/ORNL/HeCBench/issues/83",
            before: "__shared__ float t[32]; t[tid] = a;",
            after: &["__shared__ float t[32 - 1]; t[tid] = a;"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["declaration"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let shared = named_children(at.node).iter().any(|n| at.text(*n) == "__shared__");
        let Some(mut array) = at.node.child_by_field_name("declarator").filter(|_| shared) else { return };
        if array.kind() != "array_declarator" {
            return;
        }
        // The innermost declarator has the first dimension.
        while let Some(inner) =
            array.child_by_field_name("declarator").filter(|n| n.kind() == "array_declarator")
        {
            array = inner;
        }
        // A constant of one leaves no row at all, which does not compile.
        if let Some(size) = array.child_by_field_name("size").filter(|n| at.int(*n) != Some(1)) {
            out.replace(size, format!("{} - 1", at.flat(size)));
        }
    }
}
