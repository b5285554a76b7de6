//! `l1_loss`.

use super::{REDUCTIONS, pairwise};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `|input - target|` of every element, averaged, summed or as it is.
    ///
    /// Shapes: any two that broadcast; a tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: no broadcast.
    /// Source: `torch.nn.functional.l1_loss`.
    "l1_loss", eval, [Param::tensor("input"), Param::tensor("target"), Param::choice("reduction", REDUCTIONS)],
    plain("l1_loss.cu", pairs)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    pairwise(args, cx, |x, y| (x - y).abs())
}
