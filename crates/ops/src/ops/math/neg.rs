//! `neg`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `-input`; integers wrap.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: bools.
    /// Source: `torch.neg`.
    "neg", eval, [Param::needed("input", Kind::Operand)],
    plain("neg.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    Ok(match args.take("input") {
        Value::Float(x) => Value::Float(x.map(|x| -x)),
        Value::Int(x) => Value::Int(x.map(i64::wrapping_neg)),
        Value::Scalar(Scalar::Int(i)) => Value::Scalar(Scalar::Int(i.wrapping_neg())),
        Value::Scalar(Scalar::Float(x)) => Value::Scalar(Scalar::Float(-x)),
        other => return Err(Fault(format!("`-` is not defined for {}", other.what()))),
    })
}
