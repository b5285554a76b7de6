//! `mul`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::arithmetic;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::number;
use crate::real::Real;

op! {
    /// `input * other`; integers wrap, bools are and-ed.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast.
    /// Source: `torch.mul`.
    "mul", eval,
    [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("mul.cu", each)
}

pub(super) fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = (args.take("input"), args.take("other"));
    arithmetic(
        a,
        b,
        |x, y| x * y,
        i64::wrapping_mul,
        |x, y| number(x, y, i64::checked_mul, |x, y| x * y),
        Some(|x, y| x && y),
    )
}
