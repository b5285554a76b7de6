//! `relu`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::max_nan;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `max(x, 0)`; NaN stays NaN. Integers stay integers.
    ///
    /// Shapes: any, kept.
    /// Errors: a bool tensor.
    /// Source: `torch.nn.functional.relu`.
    "relu", eval, [Param::tensor("input")],
    plain("relu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    match args.tensor("input")? {
        Value::Float(x) => Ok(Value::Float(x.map(|x| max_nan(x, T::ZERO)))),
        Value::Int(x) => Ok(Value::Int(x.map(|x| x.max(0)))),
        other => Err(Fault(format!("relu is not defined for {}", other.what()))),
    }
}
