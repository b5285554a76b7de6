//! `LayoutTransposed`: row and column of a linear index change places.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary};

/// Row and column of a linear index change places.
pub struct LayoutTransposed;

impl Rule for LayoutTransposed {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LayoutTransposed",
            family: Family::Indexing,
            reason: "row and column of a linear index change places",
            source: "checker paper, indexing: transposed access",
            before: "s = x[i * n + j];",
            after: &["s = x[j * n + i];"],
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
        let Some(sum) = at.binary().filter(|b| b.op == "+") else { return };
        let Some(product) = binary(bare(sum.left)).filter(|b| b.op == "*") else { return };
        let plain =
            |n: Node<'_>| matches!(n.kind(), "identifier" | "field_expression" | "parenthesized_expression");
        let (row, column) = (product.left, sum.right);
        // `blockIdx.x * blockDim.x + threadIdx.x` is an id, not a layout.
        if plain(row)
            && plain(column)
            && !at.same(row, column)
            && at.integers(&sum)
            && !at.text(row).starts_with("blockIdx")
        {
            out.swap(at.source, row, column);
        }
    }
}
