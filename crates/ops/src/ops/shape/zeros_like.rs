//! `zeros_like`.

use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Zeros with the shape and the kind of elements of `input`.
    ///
    /// Shapes: any, kept.
    /// Errors: an input that is no tensor.
    /// Source: `torch.zeros_like`.
    "zeros_like", eval, [Param::tensor("input")],
    plain("zeros_like.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    Ok(match args.tensor("input")? {
        Value::Float(x) => Value::Float(x.map_to(|_| T::ZERO)),
        Value::Int(x) => Value::Int(x.map_to(|_| 0)),
        Value::Bool(x) => Value::Bool(x.map_to(|_| false)),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}
