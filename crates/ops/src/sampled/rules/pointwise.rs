//! Operators whose element depends on the elements at the same place, and softmax and scans along one
//! dimension.

use std::ops::Range;

use super::{Rule, Work, broadcast_all, with_whole};
use crate::error::Fault;
use crate::op::wrap_dim;
use crate::sampled::graph::Call;
use crate::sampled::region::Window;

/// Operators whose element depends on the elements at the same place alone.
pub(super) const NAMES: &[&str] = &[
    "sigmoid",
    "tanh",
    "silu",
    "softsign",
    "hardsigmoid",
    "hardswish",
    "relu6",
    "mish",
    "selu",
    "logsigmoid",
    "leaky_relu",
    "elu",
    "hardtanh",
    "softplus",
    "relu",
    "gelu",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "erf",
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "neg",
    "abs",
    "pow",
    "clamp",
    "where",
    "masked_fill",
    "zeros_like",
    "ones_like",
];

pub(super) static RULES: &[Rule] = &[
    Rule { names: NAMES, shape: same, work: each },
    Rule { names: &["softmax", "log_softmax", "cumsum", "cumprod"], shape: same, work: along },
    Rule { names: &["tril", "triu"], shape: same, work: triangle },
];

fn same(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    Ok((broadcast_all(c)?, 1))
}

/// The same box of every tensor, broadcast. An operand of size 1 in a dimension stays so, and the result is
/// the box.
pub(super) fn each(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    Ok(Work::on(c.tensors.iter().map(|t| Window::broadcast(&t.shape, region)).collect()))
}

fn along(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let dim = wrap_dim(c.numbers().int("dim")?, c.shape.len())?;
    // A scan is taken whole too: in some orders what comes after a term decides how the terms before it are
    // added.
    let (input, crop) = with_whole(region, &c.shape, |d| d == dim);
    Ok(Work::on(vec![Window::of(&input)]).cropped(crop))
}

fn triangle(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let [.., rows, columns] = region else {
        return Err(Fault::new("at least 2 dimensions are needed"));
    };
    let moved = c.numbers().int("diagonal")?.saturating_add(rows.start as i64);
    let diagonal = moved.saturating_sub(columns.start as i64);
    Ok(each(c, region)?.setting("diagonal", diagonal))
}
