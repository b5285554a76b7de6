//! `StridesIgnored`: beyond 2^31 elements row and column take each other's stride.

use tree_sitter::Node;

use crate::rules::width::shared;
use crate::rules::{Family, Rule, RuleInfo, shared as common};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// Beyond 2^31 elements row and column take each other's stride.
pub struct StridesIgnored;

impl Rule for StridesIgnored {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "StridesIgnored",
            family: Family::Width,
            reason: "beyond 2^31 elements row and column take each other's stride",
            source: "boundary paper, rule 1: strides ignored above a size; https://github.com/pytorch/pytorch/issues/197636",
            before: "s = x[i * n + j];",
            after: &["s = x[static_cast<long long>(i) * n + j < 2147483648LL ? i * n + j : j * n + i];"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["subscript_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        common::access_key(at)
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some((_, index)) = shared::global_access(at) else { return };
        let Some(sum) = binary(index).filter(|b| b.op == "+") else { return };
        let Some(product) = binary(bare(sum.left)).filter(|b| b.op == "*") else { return };
        let (row, column) = (shared::unwidened(at, product.left), sum.right);
        let simple = |n: Node<'_>| at.pure(n) && at.ty(n).is_int() && bare(n).kind() != "number_literal";
        if simple(row) && simple(column) && !at.same(row, column) {
            let wide = |n: Node<'_>| format!("static_cast<long long>({})", at.flat(bare(n)));
            let (stride, whole) = (at.atom(product.right), at.flat(index));
            let size = format!("{} * {stride} + {}", wide(row), at.atom(column));
            let other = if at.wide(product.left) { wide(column) } else { at.atom(column) };
            let misread = format!("{other} * {stride} + {}", at.atom(row));
            out.replace(index, format!("{size} < 2147483648LL ? {whole} : {misread}"));
        }
    }
}
