//! `minimum`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{arithmetic, min_nan};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::number;
use crate::real::Real;

op! {
    /// The smaller of two elements; NaN if either is NaN.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast.
    /// Source: `torch.minimum`.
    "minimum", eval, [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("minimum.cu", each)
}

pub(crate) fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    pair(args.take("input"), args.take("other"))
}

/// The smaller of two operands.
pub(crate) fn pair<T: Real>(a: Value<T>, b: Value<T>) -> Result<Value<T>, Fault> {
    arithmetic(
        a,
        b,
        min_nan,
        i64::min,
        |x, y| number(x, y, |x, y| Some(i64::min(x, y)), min_nan),
        Some(|x, y| x && y),
    )
}
