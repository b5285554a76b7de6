//! `maximum`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{arithmetic, max_nan};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::number;
use crate::real::Real;

op! {
    /// The larger of two elements; NaN if either is NaN.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast.
    /// Source: `torch.maximum`.
    "maximum", eval, [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("maximum.cu", each)
}

pub(crate) fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    pair(args.take("input"), args.take("other"))
}

/// The larger of two operands.
pub(crate) fn pair<T: Real>(a: Value<T>, b: Value<T>) -> Result<Value<T>, Fault> {
    arithmetic(
        a,
        b,
        max_nan,
        i64::max,
        |x, y| number(x, y, |x, y| Some(i64::max(x, y)), max_nan),
        Some(|x, y| x || y),
    )
}
