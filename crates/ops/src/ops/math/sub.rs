//! `sub`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::kernels::elementwise::arithmetic;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::number;
use crate::real::Real;

op! {
    /// `input - alpha * other`; integers wrap.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast; bool tensors; a float `alpha` for integers.
    /// Source: `torch.sub`.
    "sub", eval,
    [
        Param::needed("input", Kind::Operand),
        Param::needed("other", Kind::Operand),
        Param::int("alpha", Kind::Number, 1),
    ],
    plain("sub.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, mut b) = (args.take("input"), args.take("other"));
    let alpha = args.number("alpha")?;
    if matches!(a, Value::Bool(_)) || matches!(b, Value::Bool(_)) {
        return Err(Fault::new("bool tensors are not supported here"));
    }
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
        |x, y| x - y,
        i64::wrapping_sub,
        |x, y| number(x, y, i64::checked_sub, |x, y| x - y),
        None,
    )
}
