//! `ConvolutionStrideIgnored`: a stride or dilation other than one is ignored.

use tree_sitter::Node;

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A stride or dilation other than one is ignored.
pub struct ConvolutionStrideIgnored;

impl Rule for ConvolutionStrideIgnored {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ConvolutionStrideIgnored",
            family: Family::Indexing,
            reason: "a stride or dilation other than one is ignored",
            source: "checker paper, indexing: stride confusion; convolutions in public bug reports, https://github.com/apache/mxnet/issues/11203",
            before: "int r = i * stride + j;",
            after: &["int r = i + j;"],
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
        let Some(b) = at.binary().filter(|b| b.op == "*") else { return };
        let named = |n: Node<'_>| {
            let name = at.text(n).to_ascii_lowercase();
            n.kind() == "identifier" && (name.contains("stride") || name.contains("dil"))
        };
        if named(b.right) {
            out.replace(at.node, at.atom(b.left));
        } else if named(b.left) {
            out.replace(at.node, at.atom(b.right));
        }
    }
}
