//! `add`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::kernels::elementwise::arithmetic;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::number;
use crate::real::Real;

op! {
    /// `input + alpha * other`; integers wrap, of two bools either one.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast; a float `alpha` for integers.
    /// Source: `torch.add`.
    "add", eval,
    [
        Param::needed("input", Kind::Operand),
        Param::needed("other", Kind::Operand),
        Param::int("alpha", Kind::Number, 1),
    ],
    plain("add.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, mut b) = (args.take("input"), args.take("other"));
    let alpha = args.number("alpha")?;
    if let Scalar::Float(_) = alpha
        && !(matches!(a, Value::Float(_)) || matches!(b, Value::Float(_)))
    {
        return Err(Fault::new("`alpha` must be an integer where both operands are"));
    }
    if alpha != Scalar::Int(1) {
        let mut scale = Args::new(super::mul::OP.params, vec![b, Value::Scalar(alpha)]);
        b = super::mul::eval(&mut scale, cx)?;
    }
    arithmetic(
        a,
        b,
        |x, y| x + y,
        i64::wrapping_add,
        |x, y| number(x, y, i64::checked_add, |x, y| x + y),
        Some(|x, y| x || y),
    )
}
