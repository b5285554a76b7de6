//! In-place operators as functions: their result stands for the tensor that they write from then on.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Unsupported;
use crate::graph::{Argument, ExportedGraph, Node};

/// Operators whose result may share the elements of their first argument.
const VIEWS: &str = "
    alias broadcast_tensors chunk contiguous detach expand expand_as flatten getitem narrow numpy_T permute
    reshape select slice split split_with_sizes squeeze t to transpose unbind unflatten unfold unsqueeze view
    view_as
";

/// The operator's name without namespace and overload: `aten.add_.Tensor` is `add_`.
pub(crate) fn base(op: &str) -> &str {
    op.strip_prefix("aten.").unwrap_or(op).split('.').next().unwrap_or(op)
}

/// Whether an operator writes its first argument.
fn writes(op: &str) -> bool {
    let base = base(op);
    base.ends_with('_') && !base.ends_with("__")
}

/// The nodes that the outputs need, in order, without in-place operators, and the outputs by their names then.
///
/// # Errors
/// `Use` where a tensor is written while another view of it is read later.
pub(crate) fn functional(graph: &ExportedGraph) -> Result<(Vec<Node>, Vec<Argument>), Unsupported> {
    // Which name stands for a name by now, and which tensor's elements it may share.
    let mut now: BTreeMap<&str, &str> = BTreeMap::new();
    let mut root: BTreeMap<&str, &str> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    let rename = |now: &BTreeMap<&str, &str>, name: &str| now.get(name).copied().unwrap_or(name).to_owned();
    for (at, n) in graph.nodes.iter().enumerate() {
        let to = |name: &str| rename(&now, name);
        nodes.push(Node {
            name: n.name.clone(),
            op: n.op.clone(),
            args: n.args.iter().map(|a| a.renamed(&to)).collect(),
            kwargs: n.kwargs.iter().map(|(k, a)| (k.clone(), a.renamed(&to))).collect(),
            outputs: n.outputs.clone(),
        });
        let first = match n.args.first() {
            Some(Argument::Node(name)) => Some(name.as_str()),
            _ => None,
        };
        let Some(first) = first else { continue };
        let shared = root.get(first).copied().unwrap_or(first);
        if writes(&n.op) {
            // Names for the same elements, the written one apart: those with its shape that it is a mere view of would
            // do, but nothing here tells them from the others.
            let written = now.get(first).copied().unwrap_or(first);
            let others: BTreeSet<&str> = root
                .iter()
                .filter(|(name, r)| {
                    **r == shared && **name != first && now.get(*name).copied() != Some(written)
                })
                .map(|(name, _)| *name)
                .chain((shared != first && now.get(shared).copied() != Some(written)).then_some(shared))
                .collect();
            let later = graph.nodes[at + 1..].iter().flat_map(Node::names);
            let read = later.chain(graph.outputs.iter().filter_map(|o| match o {
                Argument::Node(n) => Some(n.as_str()),
                _ => None,
            }));
            if let Some(other) = read.into_iter().find(|name| others.contains(name)) {
                return Err(Unsupported::Use {
                    op: n.op.clone(),
                    node: n.name.clone(),
                    what: format!("it writes `{first}` while `{other}`, another view of it, is read later"),
                });
            }
            let same: Vec<&str> = now.iter().filter(|(_, v)| **v == written).map(|(k, _)| *k).collect();
            for name in same {
                now.insert(name, &n.name);
            }
            now.insert(first, &n.name);
            root.insert(&n.name, shared);
        } else if VIEWS.split_whitespace().any(|v| v == base(&n.op)) {
            root.insert(&n.name, shared);
        }
    }
    let to = |name: &str| rename(&now, name);
    let outputs: Vec<Argument> = graph.outputs.iter().map(|a| a.renamed(&to)).collect();
    let mut needed: BTreeSet<String> = BTreeSet::new();
    for output in &outputs {
        let mut names = Vec::new();
        output.names(&mut names);
        needed.extend(names.into_iter().map(str::to_owned));
    }
    let mut kept = Vec::new();
    for n in nodes.into_iter().rev() {
        if needed.contains(&n.name) {
            needed.extend(n.names().into_iter().map(str::to_owned));
            kept.push(n);
        }
    }
    kept.reverse();
    Ok((kept, outputs))
}
