//! Small readers of syntax nodes, shared by the rules.

use tree_sitter::Node;

/// The node's text.
pub(crate) fn text<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    source.get(node.byte_range()).unwrap_or("")
}

/// Named children, comments left out.
pub(crate) fn named_children<'a>(node: Node<'a>) -> Vec<Node<'a>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|n| n.kind() != "comment").collect()
}

/// `left op right`.
#[derive(Clone, Copy)]
pub(crate) struct Binary<'a> {
    pub left: Node<'a>,
    /// The operator's spelling.
    pub op: &'a str,
    pub op_node: Node<'a>,
    pub right: Node<'a>,
}

/// Reads a binary expression.
pub(crate) fn binary<'a>(node: Node<'a>) -> Option<Binary<'a>> {
    if node.kind() != "binary_expression" {
        return None;
    }
    let op_node = node.child_by_field_name("operator")?;
    Some(Binary {
        left: node.child_by_field_name("left")?,
        op: op_node.kind(),
        op_node,
        right: node.child_by_field_name("right")?,
    })
}

/// Reads `left op= right` (also plain `=`).
pub(crate) fn assignment<'a>(node: Node<'a>) -> Option<Binary<'a>> {
    if node.kind() != "assignment_expression" {
        return None;
    }
    let op_node = node.child_by_field_name("operator")?;
    Some(Binary {
        left: node.child_by_field_name("left")?,
        op: op_node.kind(),
        op_node,
        right: node.child_by_field_name("right")?,
    })
}

/// A call by name, with or without template arguments and launch configuration.
pub(crate) struct Call<'a, 's> {
    pub name: &'s str,
    pub name_node: Node<'a>,
    pub template_args: Vec<Node<'a>>,
    /// `grid, block, shared, stream` of a kernel launch; empty for a plain call.
    pub config: Vec<Node<'a>>,
    pub args: Vec<Node<'a>>,
}

/// Reads a call whose callee is a name (not a member, lambda or type).
pub(crate) fn call<'a, 's>(node: Node<'a>, source: &'s str) -> Option<Call<'a, 's>> {
    if node.kind() != "call_expression" {
        return None;
    }
    let function = node.child_by_field_name("function")?;
    let (name_node, template_args) = match function.kind() {
        "identifier" | "qualified_identifier" => (function, Vec::new()),
        "template_function" => (
            function.child_by_field_name("name")?,
            function.child_by_field_name("arguments").map(named_children).unwrap_or_default(),
        ),
        _ => return None,
    };
    let args = node.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    let config = named_children(node)
        .into_iter()
        .find(|n| n.kind() == "kernel_call_syntax")
        .map(named_children)
        .unwrap_or_default();
    Some(Call { name: text(name_node, source), name_node, template_args, config, args })
}

/// A `for` loop over one variable.
pub(crate) struct ForLoop<'a> {
    /// Start value of the first variable, where the loop declares or assigns one.
    pub start: Option<Node<'a>>,
    /// Name of that variable.
    pub variable: Option<Node<'a>>,
    pub condition: Option<Node<'a>>,
    pub update: Option<Node<'a>>,
    pub body: Node<'a>,
}

/// Reads a `for` statement.
pub(crate) fn for_loop<'a>(node: Node<'a>) -> Option<ForLoop<'a>> {
    if node.kind() != "for_statement" {
        return None;
    }
    let body = node.child_by_field_name("body")?;
    let (mut start, mut variable) = (None, None);
    if let Some(init) = node.child_by_field_name("initializer") {
        match init.kind() {
            "declaration" => {
                if let Some(declarator) = init.child_by_field_name("declarator") {
                    start = declarator.child_by_field_name("value");
                    variable = declarator.child_by_field_name("declarator");
                }
            }
            "assignment_expression" => {
                start = init.child_by_field_name("right");
                variable = init.child_by_field_name("left");
            }
            _ => {}
        }
    }
    Some(ForLoop {
        start,
        variable,
        condition: node.child_by_field_name("condition"),
        update: node.child_by_field_name("update"),
        body,
    })
}

/// The expression without the parentheses around it.
pub(crate) fn bare<'a>(node: Node<'a>) -> Node<'a> {
    let mut at = node;
    while at.kind() == "parenthesized_expression" {
        match named_children(at).first() {
            Some(inner) => at = *inner,
            None => break,
        }
    }
    at
}

/// Value of an integer literal: decimal, hexadecimal, octal or binary, any suffix.
pub(crate) fn int_literal(literal: &str) -> Option<u64> {
    let clean: String = literal.chars().filter(|c| *c != '\'').collect();
    let lower = clean.to_ascii_lowercase();
    let body = lower.trim_end_matches(['u', 'l']);
    if body.is_empty() {
        return None;
    }
    if let Some(hex) = body.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(bits) = body.strip_prefix("0b") {
        return u64::from_str_radix(bits, 2).ok();
    }
    if !body.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if body.len() > 1 && body.starts_with('0') {
        return u64::from_str_radix(body, 8).ok();
    }
    body.parse().ok()
}

/// Suffix of an integer literal, such as `u` or `ULL`.
pub(crate) fn int_suffix(literal: &str) -> &str {
    let hex = literal.starts_with("0x") || literal.starts_with("0X");
    let is_suffix = |c: char| matches!(c, 'u' | 'U' | 'l' | 'L');
    let start = literal.len() - literal.chars().rev().take_while(|c| is_suffix(*c)).count();
    debug_assert!(hex || start > 0);
    &literal[start..]
}

/// A decimal floating literal taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FloatLiteral<'s> {
    /// With its sign: the grammar reads `-1.0f` as one literal.
    pub value: f64,
    /// `-` or nothing.
    pub sign: &'s str,
    /// Digits with the point, without exponent and suffix: `0.7978845608`.
    pub digits: &'s str,
    /// Exponent with its letter, or nothing: `e-5`.
    pub exponent: &'s str,
    /// `f`, `F`, or nothing.
    pub suffix: &'s str,
}

/// Reads a decimal floating literal; `None` for integers and hexadecimal floats.
pub(crate) fn float_literal(literal: &str) -> Option<FloatLiteral<'_>> {
    if literal.starts_with("0x") || literal.starts_with("0X") {
        return None;
    }
    let (sign, literal) = literal.split_at(literal.len() - literal.trim_start_matches('-').len());
    let body = literal.strip_suffix(['f', 'F', 'l', 'L']).unwrap_or(literal);
    let suffix = &literal[body.len()..];
    let (digits, exponent) = match body.find(['e', 'E']) {
        Some(at) => body.split_at(at),
        None => (body, ""),
    };
    if !digits.contains('.') && exponent.is_empty() {
        return None;
    }
    let size: f64 = body.parse().ok()?;
    let value = if sign.is_empty() { size } else { -size };
    value.is_finite().then_some(FloatLiteral { value, sign, digits, exponent, suffix })
}

/// Whether evaluating the expression twice, or not at all, changes nothing else.
pub(crate) fn is_pure(node: Node<'_>, source: &str) -> bool {
    let mut cursor = node.walk();
    loop {
        let at = cursor.node();
        match at.kind() {
            "assignment_expression" | "update_expression" | "lambda_expression" | "comment" => return false,
            "call_expression" => match call(at, source) {
                Some(call) if is_pure_function(call.name) => {}
                _ => return false,
            },
            _ => {}
        }
        if cursor.goto_first_child() {
            continue;
        }
        loop {
            if cursor.node() == node {
                return true;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

fn is_pure_function(name: &str) -> bool {
    let name = name.strip_prefix("std::").unwrap_or(name);
    !(name.starts_with("atomic")
        || name.starts_with("__sync")
        || name.starts_with("__shfl")
        || name.starts_with("__threadfence")
        || name.starts_with("__ballot")
        || name.starts_with("__any")
        || name.starts_with("__all")
        || name == "printf"
        || name == "assert")
}

/// Whether any node below (or the node itself) satisfies `want`.
pub(crate) fn any_below<'a>(node: Node<'a>, mut want: impl FnMut(Node<'a>) -> bool) -> bool {
    let mut cursor = node.walk();
    loop {
        if want(cursor.node()) {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        loop {
            if cursor.node() == node {
                return false;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

/// Whether the name occurs as an identifier below the node.
pub(crate) fn mentions(node: Node<'_>, name: &str, source: &str) -> bool {
    any_below(node, |n| n.kind() == "identifier" && text(n, source) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_literals_are_read_in_every_base() {
        let cases = [
            ("0", Some(0)),
            ("16u", Some(16)),
            ("0xffffffffu", Some(0xffff_ffff)),
            ("0b101", Some(5)),
            ("017", Some(15)),
            ("1'000'000LL", Some(1_000_000)),
            ("1.0", None),
            ("1e5", None),
        ];
        for (literal, want) in cases {
            assert_eq!(int_literal(literal), want, "{literal}");
        }
    }

    #[test]
    fn float_literals_are_taken_apart() {
        let pi = float_literal("3.14159f").unwrap();
        assert_eq!((pi.digits, pi.exponent, pi.suffix), ("3.14159", "", "f"));
        let eps = float_literal("1e-5f").unwrap();
        assert_eq!((eps.value, eps.digits, eps.exponent, eps.suffix), (1e-5, "1", "e-5", "f"));
        let low = float_literal("-1e30f").unwrap();
        assert_eq!((low.value, low.sign, low.digits), (-1e30, "-", "1"));
        assert_eq!(float_literal("12"), None);
        assert_eq!(float_literal("0x1p3"), None);
        assert_eq!(float_literal("1e999"), None);
    }
}
