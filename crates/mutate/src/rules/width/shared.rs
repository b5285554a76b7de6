//! Readings of 64-bit arithmetic that several width rules share.

use tree_sitter::Node;

use crate::rules::shared::subscript;
use crate::site::Site;
use crate::syntax::{bare, binary, call};

/// A cast to an integer of 64 bits: the type as written, and the value.
pub(super) fn widening<'a>(at: &Site<'a>, node: Node<'a>) -> Option<(Node<'a>, Node<'a>)> {
    let (ty, value) = match node.kind() {
        "cast_expression" => (node.child_by_field_name("type")?, node.child_by_field_name("value")?),
        _ => {
            let call = call(node, at.source).filter(|c| c.name == "static_cast")?;
            (*call.template_args.first()?, *call.args.first()?)
        }
    };
    at.wide_type(ty).then_some((ty, value))
}

/// A cast that makes the arithmetic around the site one of 64 bits: its type and its value. Where the value or the
/// other operand is wide by itself, the cast decides nothing.
pub(super) fn widened_operand<'a>(at: &Site<'a>) -> Option<(Node<'a>, Node<'a>)> {
    let (ty, value) = widening(at, at.node)?;
    let around = at.parent().and_then(binary).filter(|b| matches!(b.op, "*" | "+" | "-" | "<<"))?;
    let other = if around.left == at.node { around.right } else { around.left };
    let decides = at.ty(value).is_int() && !at.wide(value) && !at.ty(other).is_pointer() && !at.wide(other);
    decides.then_some((ty, value))
}

/// The value before a cast to 64 bits, or the expression itself.
pub(super) fn unwidened<'a>(at: &Site<'a>, node: Node<'a>) -> Node<'a> {
    widening(at, bare(node)).map_or(node, |(_, value)| value)
}

/// `blockIdx.x` and its like, which are unsigned.
pub(super) fn is_launch_variable(at: &Site<'_>, node: Node<'_>) -> bool {
    let node = bare(node);
    node.kind() == "field_expression"
        && node
            .child_by_field_name("argument")
            .is_some_and(|n| matches!(at.text(n), "threadIdx" | "blockIdx" | "blockDim" | "gridDim"))
}

/// The type of a declaration whose variables are 64-bit sums or products: what indices and counts are made of. Loop
/// counters have a rule of their own; packed keys and literals are no indices.
pub(super) fn wide_index_declared<'a>(at: &Site<'a>) -> Option<Node<'a>> {
    let ty = at.node.child_by_field_name("type").filter(|ty| at.wide_type(*ty))?;
    if at.parent().is_some_and(|n| n.kind() == "for_statement") {
        return None;
    }
    let mut cursor = at.node.walk();
    let declarators: Vec<Node<'a>> = at.node.children_by_field_name("declarator", &mut cursor).collect();
    let computed = |declarator: &Node<'a>| {
        let plain = declarator.child_by_field_name("declarator").is_some_and(|n| n.kind() == "identifier");
        let value = declarator.child_by_field_name("value").map(bare);
        let arithmetic = value.and_then(binary).is_some_and(|b| matches!(b.op, "+" | "-" | "*" | "/"));
        plain && arithmetic && value.is_some_and(|n| at.wide(n))
    };
    (!declarators.is_empty() && declarators.iter().all(computed)).then_some(ty)
}

/// The offset of 64 bits that is added to a pointer on the device.
pub(super) fn wide_offset<'a>(at: &Site<'a>) -> Option<Node<'a>> {
    let sum = at.binary().filter(|b| b.op == "+" && !at.host())?;
    (at.ty(sum.left).is_pointer() && at.wide(sum.right)).then_some(sum.right)
}

/// A name that stands for memory of the whole grid: a pointer parameter of the kernel.
pub(super) fn is_global_array(at: &Site<'_>, node: Node<'_>) -> bool {
    node.kind() == "identifier"
        && at.symbol(at.text(node)).is_some_and(|s| s.parameter && s.ty.levels == 1 && !s.shared)
}

/// `array[index]` on the device, where the array is a pointer parameter and the index is computed.
pub(super) fn global_access<'a>(at: &Site<'a>) -> Option<(Node<'a>, Node<'a>)> {
    let array = at.node.child_by_field_name("argument").filter(|n| !at.host() && is_global_array(at, *n))?;
    let index = subscript(at.node).filter(|n| at.ty(*n).is_int() && at.int(*n).is_none())?;
    at.pure(index).then_some((array, index))
}
