//! A parsed source: its functions, and the names that they use.

use tree_sitter::{Node, Parser, Tree};

use crate::error::MutateError;
use crate::syntax::{any_below, float_literal, int_literal, named_children, text};
use crate::types::{Base, Symbol, Symbols, Ty, declare, declared_name, written_type};

/// Longest source accepted, in bytes: spans are `u32`, and mutants copy their source.
const LIMIT_BYTES: u64 = 64 << 20;

/// One function of the source.
pub(crate) struct Function<'t> {
    pub name: String,
    pub node: Node<'t>,
    /// Runs on the host.
    pub host: bool,
    /// Whether its body is mutated at all.
    pub mutated: bool,
    pub symbols: Symbols,
    /// Start of the outermost item around it (`template`, `extern "C"`, namespace): where a helper
    /// function can be put in front.
    pub item_start: u32,
}

/// Parses `source` with the CUDA grammar.
pub(crate) fn parse(source: &str, file: &str) -> Result<Tree, MutateError> {
    let len_bytes = source.len() as u64;
    if len_bytes > LIMIT_BYTES {
        return Err(MutateError::TooLarge { file: file.to_owned(), len_bytes, limit_bytes: LIMIT_BYTES });
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_cuda::LANGUAGE.into())
        .map_err(|error| MutateError::Grammar { file: file.to_owned(), reason: error.to_string() })?;
    parser.parse(source, None).ok_or_else(|| MutateError::NoTree { file: file.to_owned() })
}

/// Every function definition outside syntax errors, in order, and the names at file scope.
pub(crate) fn functions<'t>(
    tree: &'t Tree,
    source: &str,
    file: &str,
) -> Result<(Vec<Function<'t>>, Symbols), MutateError> {
    let root = tree.root_node();
    let mut globals = Symbols::default();
    let mut found: Vec<(Node<'t>, u32)> = Vec::new();
    let mut first_error: Option<u32> = None;

    let mut cursor = root.walk();
    let mut ancestors: Vec<Node<'t>> = Vec::new();
    'walk: loop {
        let node = cursor.node();
        let mut descend = true;
        match node.kind() {
            "ERROR" => {
                first_error.get_or_insert(node.start_position().row as u32 + 1);
            }
            "function_definition" => {
                if let (Some(name), Some(ty)) = (function_name(node), node.child_by_field_name("type")) {
                    let ty = written_type(ty, source);
                    globals.declare(
                        text(name, source),
                        Symbol { ty, shared: false, parameter: false, wide: false, spelling: 0 },
                    );
                }
                found.push((node, item_start(&ancestors, node)));
                descend = false;
            }
            "declaration" => {
                let known = globals.clone();
                declare(node, source, &known, &mut globals, false);
                descend = false;
            }
            "preproc_def" => {
                if let (Some(name), Some(value)) =
                    (node.child_by_field_name("name"), node.child_by_field_name("value"))
                {
                    let value = text(value, source).trim();
                    let base = if int_literal(value).is_some() {
                        Base::Int
                    } else if float_literal(value).is_some() {
                        if value.ends_with(['f', 'F']) { Base::Float } else { Base::Double }
                    } else {
                        Base::Unknown
                    };
                    let ty = Ty { base, levels: 0 };
                    globals.declare(
                        text(name, source),
                        Symbol { ty, shared: false, parameter: false, wide: false, spelling: 0 },
                    );
                }
                descend = false;
            }
            _ => {}
        }
        if descend && cursor.goto_first_child() {
            ancestors.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'walk;
            }
            ancestors.pop();
        }
    }

    if found.is_empty() {
        return Err(MutateError::NoFunction { file: file.to_owned(), line: first_error.unwrap_or(1) });
    }
    let functions =
        found.into_iter().map(|(node, item_start)| describe(node, item_start, source, &globals)).collect();
    Ok((functions, globals))
}

fn function_name(node: Node<'_>) -> Option<Node<'_>> {
    declared_name(node.child_by_field_name("declarator")?).map(|(name, _)| name)
}

fn item_start(ancestors: &[Node<'_>], node: Node<'_>) -> u32 {
    let outermost = ancestors
        .iter()
        .find(|n| n.kind() != "translation_unit" && !n.kind().starts_with("preproc_"))
        .unwrap_or(&node);
    outermost.start_byte() as u32
}

fn describe<'t>(node: Node<'t>, item_start: u32, source: &str, globals: &Symbols) -> Function<'t> {
    let mut cursor = node.walk();
    let (mut device, mut constant) = (false, false);
    for child in node.children(&mut cursor) {
        match child.kind() {
            "__global__" | "__device__" => device = true,
            "type_qualifier" if text(child, source) == "constexpr" => constant = true,
            _ => {}
        }
    }
    let name = function_name(node).map_or("(unnamed)", |name| text(name, source)).to_owned();
    let launches = || any_below(node, |n| n.kind() == "kernel_call_syntax");
    let mutated = device || constant || name == "launch" || launches();

    let mut symbols = Symbols::default();
    if let Some(parameters) = node.child_by_field_name("declarator").and_then(parameter_list) {
        for parameter in named_children(parameters) {
            declare(parameter, source, globals, &mut symbols, true);
        }
    }
    // Value parameters of a template are names like any other: `template <bool CAUSAL>`.
    let template = node.parent().filter(|n| n.kind() == "template_declaration");
    if let Some(parameters) = template.and_then(|n| n.child_by_field_name("parameters")) {
        for parameter in named_children(parameters) {
            declare(parameter, source, globals, &mut symbols, false);
        }
    }
    if mutated && let Some(body) = node.child_by_field_name("body") {
        any_below(body, |n| {
            if matches!(n.kind(), "declaration" | "parameter_declaration") {
                declare(n, source, globals, &mut symbols, false);
            }
            false
        });
    }
    Function { name, node, host: !device && !constant, mutated, symbols, item_start }
}

fn parameter_list(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut at = declarator;
    loop {
        if let Some(list) = at.child_by_field_name("parameters") {
            return Some(list);
        }
        at = at.child_by_field_name("declarator")?;
    }
}
