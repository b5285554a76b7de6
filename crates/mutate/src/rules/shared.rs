//! Readings of kernel code that several rules share.

use tree_sitter::Node;

use crate::site::{Proposal, Site};
use crate::syntax::{
    FloatLiteral, any_below, assignment, bare, call, float_literal, for_loop, named_children,
};
use crate::types::Base;

/// Array of a subscript and whether it is written: one key per kind of access.
pub(super) fn access_key(at: &Site<'_>) -> Option<String> {
    let array = at.node.child_by_field_name("argument")?;
    let written = at.parent().and_then(assignment).is_some_and(|b| b.left == at.node);
    Some(format!("{} {written}", at.flat(array)))
}

/// First index expression between the brackets of a subscript.
pub(super) fn subscript<'a>(node: Node<'a>) -> Option<Node<'a>> {
    node.child_by_field_name("indices").and_then(|list| list.named_child(0))
}

/// Whether two arguments can be exchanged without a type error: pointers to one type, or integers,
/// or floats, and neither a literal.
pub(super) fn may_trade_places(at: &Site<'_>, one: Node<'_>, other: Node<'_>) -> bool {
    let (a, b) = (at.ty(one), at.ty(other));
    let literal = |n: Node<'_>| n.kind() == "number_literal";
    if a != b || a.base == Base::Unknown || at.same(one, other) || literal(one) || literal(other) {
        return false;
    }
    // Values convert, pointers do not: those must be declared alike, `const` included.
    let spelling = |n: Node<'_>| at.symbol(at.text(n)).map(|symbol| symbol.spelling);
    !a.is_pointer() || (spelling(one).is_some() && spelling(one) == spelling(other))
}

/// `dim3` variables of a declaration with their arguments.
pub(super) fn dim3_declared<'a>(at: &Site<'a>) -> Vec<(&'a str, Vec<Node<'a>>)> {
    if at.node.child_by_field_name("type").is_none_or(|ty| at.text(ty) != "dim3") {
        return Vec::new();
    }
    let mut cursor = at.node.walk();
    at.node
        .children_by_field_name("declarator", &mut cursor)
        .filter_map(|declarator| {
            let name = at.text(declarator.child_by_field_name("declarator")?);
            // `dim3 grid(n, m);` reads like a function that takes an `n` and an `m`.
            if let Some(parameters) = declarator.child_by_field_name("parameters") {
                return Some((name, named_children(parameters)));
            }
            let value = declarator.child_by_field_name("value")?;
            let args = match value.kind() {
                "argument_list" | "initializer_list" => named_children(value),
                _ => call(value, at.source).filter(|c| c.name == "dim3")?.args,
            };
            Some((name, args))
        })
        .collect()
}

/// Extents of the grid that a launch or a `dim3` declaration gives, `x` first.
pub(super) fn grid_extents<'a>(at: &Site<'a>) -> Vec<Node<'a>> {
    if at.node.kind() == "declaration" {
        let declared = dim3_declared(at).into_iter();
        return declared.filter(|(name, _)| at.is_launch_shape(name, 0)).flat_map(|(_, args)| args).collect();
    }
    let Some(grid) = named_children(at.node).first().copied() else { return Vec::new() };
    match call(grid, at.source) {
        Some(call) if call.name == "dim3" => call.args,
        // A variable has its extents where it is declared.
        _ if at.ty(grid).is(Base::Dim3) => Vec::new(),
        _ => vec![grid],
    }
}

/// The number one, as an integer or a float.
pub(super) fn is_one(at: &Site<'_>, node: Node<'_>) -> bool {
    let text = at.text(bare(node));
    bare(node).kind() == "number_literal"
        && float_literal(text).map_or_else(|| text == "1", |literal| literal.value == 1.0)
}

/// The comparison drives a loop whose variable is halved or doubled: with `>=` it might not end.
pub(super) fn steps_by_factor(at: &Site<'_>) -> bool {
    let factor = |n: Node<'_>| assignment(n).is_some_and(|b| matches!(b.op, ">>=" | "<<=" | "/=" | "*="));
    if let Some(parts) = at.for_condition().and_then(for_loop) {
        return parts.update.is_some_and(factor);
    }
    at.outwards()
        .take_while(|n| !n.kind().ends_with("_statement") || n.kind() == "while_statement")
        .any(|n| n.kind() == "while_statement" && any_below(n, factor))
}

/// A replacement in parentheses where the surrounding expression would bind tighter.
pub(super) fn fitting(at: &Site<'_>, new: String) -> String {
    match at.parent().map(|p| p.kind()) {
        Some("binary_expression" | "unary_expression" | "cast_expression" | "field_expression") => {
            format!("({new})")
        }
        _ => new,
    }
}

/// Names that authors give to remainders.
pub(super) fn names_tail(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["tail", "rem", "aligned", "vec_end", "n4", "vec4"].iter().any(|word| name.contains(word))
}

/// A value that stands for minus infinity: the macro, a lowest float, or a literal from -1e20 down.
///
/// `-1e30f` is one literal to the grammar, `- 1e30f` a minus before one.
pub(super) fn is_minus_infinity(at: &Site<'_>) -> bool {
    if at.node.kind() == "number_literal" {
        return float_literal(at.text(at.node)).is_some_and(|l| l.value <= -1e20);
    }
    let minus = at.node.child_by_field_name("operator").is_some_and(|op| op.kind() == "-");
    let argument = at.node.child_by_field_name("argument").filter(|_| minus);
    argument.is_some_and(|argument| match at.text(argument) {
        "INFINITY" | "FLT_MAX" | "DBL_MAX" | "CUDART_INF_F" => true,
        text => float_literal(text).is_some_and(|l| l.value >= 1e20),
    })
}

/// A small constant that keeps a divisor off zero, by its name or value.
pub(super) fn is_epsilon(at: &Site<'_>, node: Node<'_>) -> bool {
    let node = bare(node);
    match node.kind() {
        "identifier" => at.text(node).to_ascii_lowercase().contains("eps"),
        "number_literal" => float_literal(at.text(node)).is_some_and(|l| l.value > 0.0 && l.value <= 1e-3),
        _ => false,
    }
}

/// A float sum: target and term of `acc += term` on the device.
pub(super) fn accumulation(at: &Site<'_>) -> Option<(String, String)> {
    let b = at.assignment()?;
    let float = at.ty(b.left).is(Base::Float) && at.ty(b.right).is(Base::Float);
    let sums = b.op == "+=" && float && !at.host() && at.in_loop() && at.pure(b.left);
    sums.then(|| (at.flat(b.left), at.flat(b.right)))
}

/// The float value stored by `array[...] = value`, where the array is a parameter.
pub(super) fn global_store<'a>(at: &Site<'a>) -> Option<Node<'a>> {
    let b = at.assignment().filter(|b| b.op == "=" && !at.host())?;
    let array = b.left.child_by_field_name("argument")?;
    let global = b.left.kind() == "subscript_expression"
        && at.symbol(at.text(array)).is_some_and(|s| s.parameter)
        && at.ty(b.left).is(Base::Float)
        // The value 0 or 1 has no digits to lose.
        && bare(b.right).kind() != "number_literal";
    global.then_some(b.right)
}

/// Value with which `name` is declared somewhere in `body`.
pub(super) fn initial_value<'a>(at: &Site<'a>, body: Node<'a>, name: &str) -> Option<Node<'a>> {
    let mut found = None;
    any_below(body, |n| {
        if n.kind() == "init_declarator"
            && n.child_by_field_name("declarator").is_some_and(|d| at.text(d) == name)
        {
            found = n.child_by_field_name("value");
        }
        found.is_some()
    });
    found
}

/// The first `count` significant digits of `0.044715`, as `0.044`; `None` where nothing is cut.
pub(super) fn first_digits(digits: &str, count: usize) -> Option<String> {
    let mut seen = 0;
    let mut out = String::new();
    let mut cut = false;
    let mut past_point = false;
    for c in digits.chars() {
        match c {
            '.' => {
                past_point = true;
                out.push(c);
            }
            '0' if seen == 0 => out.push(c),
            _ if seen < count => {
                seen += 1;
                out.push(c);
            }
            // Digits before the point keep their place.
            _ => {
                cut |= c != '0';
                if !past_point {
                    out.push('0');
                }
            }
        }
    }
    cut.then_some(out)
}

/// `digits` with the third significant one raised by one (9 becomes 8); `None` with fewer.
pub(super) fn third_digit_off(digits: &str) -> Option<String> {
    let mut seen = 0;
    let mut out = String::with_capacity(digits.len());
    for c in digits.chars() {
        let significant = c.is_ascii_digit() && (seen > 0 || c != '0');
        seen += usize::from(significant);
        if significant && seen == 3 {
            out.push(if c == '9' { '8' } else { char::from(c as u8 + 1) });
        } else {
            out.push(c);
        }
    }
    (seen >= 3).then_some(out)
}

/// One percent more than a literal (0.01 for zero), as a literal of its type.
pub(super) fn one_percent_more(literal: &FloatLiteral<'_>) -> String {
    let value = if literal.value == 0.0 { 0.01 } else { literal.value * 1.01 };
    // Digits beyond the type's own would only show how the product was rounded.
    let text = match literal.suffix {
        "f" | "F" => format!("{:?}", value as f32),
        _ => format!("{value:.12e}").parse::<f64>().map_or_else(|_| value.to_string(), |v| format!("{v:?}")),
    };
    format!("{text}{}", literal.suffix)
}

/// Removes a node together with the space after it.
pub(super) fn without_space(at: &Site<'_>, node: Node<'_>, what: &str) -> Proposal {
    let range = node.byte_range();
    let after = at.source.get(range.end..).unwrap_or("");
    let space = after.len() - after.trim_start_matches([' ', '\t']).len();
    Proposal { edits: vec![(range.start..range.end + space, String::new())], what: Some(what.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_are_counted_from_the_first_that_is_not_zero() {
        assert_eq!(first_digits("0.044715", 2).as_deref(), Some("0.044"));
        assert_eq!(first_digits("12.75", 2).as_deref(), Some("12."));
        assert_eq!(first_digits("127.5", 2).as_deref(), Some("120."));
        assert_eq!(first_digits("0.50", 2), None);
        assert_eq!(third_digit_off("0.044715").as_deref(), Some("0.044815"));
        assert_eq!(third_digit_off("1.19").as_deref(), Some("1.18"));
        assert_eq!(third_digit_off("0.5"), None);
    }
}
