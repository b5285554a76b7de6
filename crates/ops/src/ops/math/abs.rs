//! `abs`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Absolute value; integers stay integers (and wrap).
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: bools.
    /// Source: `torch.abs`.
    "abs", eval, [Param::needed("input", Kind::Operand)],
    plain("abs.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    Ok(match args.take("input") {
        Value::Float(x) => Value::Float(x.map(T::abs)),
        Value::Int(x) => Value::Int(x.map(i64::wrapping_abs)),
        Value::Scalar(Scalar::Int(i)) => Value::Scalar(Scalar::Int(i.wrapping_abs())),
        Value::Scalar(Scalar::Float(x)) => Value::Scalar(Scalar::Float(x.abs())),
        other => return Err(Fault(format!("abs is not defined for {}", other.what()))),
    })
}
