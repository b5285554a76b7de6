//! One walk over the syntax tree, offering each node to the rules that ask for its kind.

use std::collections::{BTreeSet, HashMap, HashSet};

use tree_sitter::Node;

use crate::edit::{Edit, slice};
use crate::error::MutateError;
use crate::mutant::{Mutant, describe, id_of};
use crate::rules::{RULES, Rule};
use crate::site::{Proposal, Proposals, Site};
use crate::source::{Function, functions, parse};
use crate::syntax::text;
use crate::types::Symbols;

/// Every mutant of `source` under every rule, in order of position, then of rule.
///
/// `file_name` goes into names, diffs and ids as it is; it is not opened. Two rules that propose
/// one change give one mutant, under the rule that comes first in [`RULES`].
///
/// # Errors
///
/// `NoFunction` where there is nothing to mutate; `TooLarge` over 64 MiB.
pub fn mutants_in(source: &str, file_name: &str) -> Result<Vec<Mutant>, MutateError> {
    mutants_by(source, file_name, RULES)
}

/// Like [`mutants_in`], for some rules only. Ids do not depend on which rules are asked.
///
/// # Errors
///
/// As [`mutants_in`].
pub fn mutants_by(source: &str, file_name: &str, rules: &[&dyn Rule]) -> Result<Vec<Mutant>, MutateError> {
    let tree = parse(source, file_name)?;
    let (functions, globals) = functions(&tree, source, file_name)?;
    let mut by_kind: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, rule) in rules.iter().enumerate() {
        for kind in rule.kinds() {
            by_kind.entry(kind).or_default().push(at);
        }
    }
    let has_half = source.contains("cuda_fp16.h");
    let mut walk =
        Walk { source, rules, by_kind, globals: &globals, has_half, keys: HashSet::new(), found: Vec::new() };
    walk.run(tree.root_node(), &functions);
    let kept = thin(walk.found, rules);
    Ok(finish(kept, source, file_name, rules))
}

/// Expressions longer than this are left alone: rules copy what they look at.
const LONGEST_BYTES: usize = 4096;

struct Found<'f> {
    rule: usize,
    proposal: Proposal,
    function: Option<&'f Function<'f>>,
}

struct Walk<'w> {
    source: &'w str,
    rules: &'w [&'w dyn Rule],
    by_kind: HashMap<&'static str, Vec<usize>>,
    globals: &'w Symbols,
    has_half: bool,
    /// (rule, function, key) of what was mutated already.
    keys: HashSet<(usize, usize, String)>,
    found: Vec<Found<'w>>,
}

impl<'w> Walk<'w> {
    fn run(&mut self, root: Node<'w>, functions: &'w [Function<'w>]) {
        let by_node: HashMap<usize, &'w Function<'w>> = functions.iter().map(|f| (f.node.id(), f)).collect();
        let mut cursor = root.walk();
        let mut ancestors: Vec<Node<'w>> = Vec::new();
        // The function around, with the depth at which it began.
        let mut function: Option<(&'w Function<'w>, usize)> = None;
        'walk: loop {
            let node = cursor.node();
            if function.is_none()
                && let Some(found) = by_node.get(&node.id())
            {
                function = Some((found, ancestors.len()));
            }
            let open = !is_closed(node, cursor.field_name(), &ancestors)
                && function.is_none_or(|(function, _)| function.mutated);
            if open {
                // Rules read only a node's own children, which an error would misplace.
                let endless = node.kind().ends_with("_expression") && node.byte_range().len() > LONGEST_BYTES;
                if !node.has_error() && node.is_named() && !endless {
                    self.offer(node, &ancestors, function.map(|(function, _)| function));
                }
                if cursor.goto_first_child() {
                    ancestors.push(node);
                    continue;
                }
            }
            loop {
                if function.is_some_and(|(_, depth)| depth == ancestors.len()) {
                    function = None;
                }
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    break 'walk;
                }
                ancestors.pop();
            }
        }
    }

    fn offer(&mut self, node: Node<'w>, ancestors: &[Node<'w>], function: Option<&'w Function<'w>>) {
        let Some(asking) = self.by_kind.get(node.kind()) else { return };
        let site = Site {
            node,
            ancestors,
            source: self.source,
            globals: self.globals,
            function,
            has_half: self.has_half,
        };
        if function.is_none() && !is_file_constant(&site) {
            return;
        }
        for &at in asking {
            let rule = self.rules[at];
            if function.is_none() && !rule.at_file_scope() {
                continue;
            }
            let mut out = Proposals::default();
            rule.visit(&site, &mut out);
            if out.list.is_empty() {
                continue;
            }
            if let Some(key) = rule.key(&site) {
                let scope = function.map_or(0, |f| f.node.id());
                if !self.keys.insert((at, scope, key)) {
                    continue;
                }
            }
            self.found.extend(out.list.into_iter().map(|proposal| Found { rule: at, proposal, function }));
        }
    }
}

/// Regions that are never mutated: their nodes are neither offered nor entered.
fn is_closed(node: Node<'_>, field: Option<&str>, ancestors: &[Node<'_>]) -> bool {
    if node.is_error() || node.is_missing() {
        return true;
    }
    match node.kind() {
        "comment"
        | "preproc_include"
        | "preproc_call"
        | "preproc_function_def"
        | "string_literal"
        | "raw_string_literal"
        | "char_literal"
        | "concatenated_string"
        | "static_assert_declaration"
        | "template_argument_list"
        | "template_parameter_list"
        | "parameter_list"
        | "launch_bounds"
        | "attribute_declaration"
        | "attribute_specifier"
        | "gnu_asm_expression"
        | "type_descriptor"
        | "type_definition"
        | "alias_declaration"
        | "using_declaration"
        | "enum_specifier" => true,
        _ => {
            let parent = ancestors.last().map_or("", |n| n.kind());
            matches!(
                (parent, field),
                ("preproc_if" | "preproc_elif", Some("condition"))
                    | ("case_statement", Some("value"))
                    | ("array_declarator", Some("size"))
            )
        }
    }
}

/// A literal at file scope that is the value of a constant: `constexpr`, `const`, `__constant__`
/// or `#define NAME value`.
fn is_file_constant(site: &Site<'_>) -> bool {
    for at in site.outwards() {
        match at.kind() {
            "preproc_def" => return true,
            "declaration" => {
                let words = text(at, site.source);
                return ["constexpr", "const ", "__constant__"].iter().any(|word| words.contains(word));
            }
            "init_declarator"
            | "initializer_list"
            | "unary_expression"
            | "binary_expression"
            | "parenthesized_expression" => {}
            _ => return false,
        }
    }
    false
}

/// Keeps at most [`Rule::most`] proposals of a rule in a function, spread evenly over its sites.
fn thin<'f>(found: Vec<Found<'f>>, rules: &[&dyn Rule]) -> Vec<Found<'f>> {
    let group = |one: &Found<'_>| (one.rule, one.function.map_or(0, |f| f.node.id()));
    let mut sizes: HashMap<(usize, usize), usize> = HashMap::new();
    for one in &found {
        *sizes.entry(group(one)).or_default() += 1;
    }
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    let mut kept = Vec::with_capacity(found.len());
    for one in found {
        let key = group(&one);
        let place = places.entry(key).or_default();
        let (size, most) = (sizes[&key], rules[one.rule].most());
        if is_in_spread(*place, size, most) {
            kept.push(one);
        }
        *place += 1;
    }
    kept
}

/// Whether `place` is one of `most` evenly spread places below `size`.
fn is_in_spread(place: usize, size: usize, most: usize) -> bool {
    if size <= most {
        return true;
    }
    match most {
        0 => false,
        1 => place == 0,
        _ => (0..most).any(|k| k * (size - 1) / (most - 1) == place),
    }
}

/// A checked proposal, with the start of its main edit.
struct Ordered<'f> {
    main: u32,
    rule: usize,
    edits: Vec<Edit>,
    what: String,
    function: Option<&'f Function<'f>>,
}

fn finish(found: Vec<Found<'_>>, source: &str, file_name: &str, rules: &[&dyn Rule]) -> Vec<Mutant> {
    let lines = LineStarts::of(source);
    let mut ordered: Vec<Ordered<'_>> = Vec::new();
    for Found { rule, proposal, function } in found {
        let Some((main, old, new)) = proposal.edits.first().map(|(range, new)| {
            let main = range.start as u32;
            (main, slice(source, main, range.end as u32), new.as_str())
        }) else {
            continue;
        };
        let what = proposal.what.clone().unwrap_or_else(|| describe(old, new));
        let mut edits: Vec<Edit> = proposal
            .edits
            .into_iter()
            .map(|(range, new)| Edit::keeping_lines(source, range.start as u32, range.end as u32, new))
            .filter(|edit| slice(source, edit.start, edit.end) != edit.replacement)
            .collect();
        edits.sort();
        let apart = edits.windows(2).all(|pair| pair[0].end <= pair[1].start);
        if edits.is_empty() || !apart || !edits.iter().all(|edit| edit.fits(source)) {
            continue;
        }
        ordered.push(Ordered { main, rule, edits, what, function });
    }
    // Stable: proposals of one rule at one place keep the rule's order.
    ordered.sort_by_key(|one| (one.main, one.rule));

    // One change, one mutant: the first rule of the list has it, wherever another would place it.
    let mut owner: HashMap<Vec<(u32, u32, Vec<u8>)>, usize> = HashMap::new();
    let change = |edits: &[Edit]| edits.iter().map(|e| e.canonical(source)).collect::<Vec<_>>();
    for Ordered { rule, edits, .. } in &ordered {
        let first = owner.entry(change(edits)).or_insert(*rule);
        *first = (*first).min(*rule);
    }
    let mut seen = HashSet::new();
    let mut ids = BTreeSet::new();
    let mut mutants = Vec::with_capacity(ordered.len());
    for Ordered { main, rule, edits, what, function } in ordered {
        let key = change(&edits);
        if owner.get(&key) != Some(&rule) || !seen.insert(key) {
            continue;
        }
        let info = rules[rule].info();
        let id = id_of(file_name, info.id, &edits);
        if !ids.insert(id.clone()) {
            continue;
        }
        let (line, column) = lines.place(source, main);
        let function_name = function.map(|f| f.name.clone());
        let within = function_name.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
        mutants.push(Mutant {
            id,
            rule: info.id,
            family: info.family,
            edits,
            line,
            column,
            host: function.is_some_and(|f| f.host),
            name: format!("{file_name}:{line}:{column}: {what}{within}"),
            function: function_name,
            file: file_name.to_owned(),
        });
    }
    mutants
}

struct LineStarts(Vec<u32>);

impl LineStarts {
    fn of(source: &str) -> LineStarts {
        let ends = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at as u32 + 1);
        LineStarts(std::iter::once(0).chain(ends).collect())
    }

    /// 1-based line, and column in characters.
    fn place(&self, source: &str, at: u32) -> (u32, u32) {
        let line = self.0.partition_point(|start| *start <= at);
        let start = self.0[line - 1];
        (line as u32, slice(source, start, at).chars().count() as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::is_in_spread;

    #[test]
    fn a_spread_has_the_first_the_last_and_just_as_many_as_wanted() {
        for size in 1..40 {
            for most in 1..10 {
                let kept: Vec<usize> = (0..size).filter(|p| is_in_spread(*p, size, most)).collect();
                assert_eq!(kept.len(), size.min(most), "{size} {most}");
                assert_eq!(kept[0], 0);
                assert!(most == 1 || kept.last() == Some(&(size - 1)), "{size} {most}");
            }
        }
    }
}
