//! `relu6`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{max_nan, min_nan, unary};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `min(max(x, 0), 6)`; NaN stays NaN. Integers stay integers.
    ///
    /// Shapes: any, kept. A number gives a number.
    /// Errors: none.
    /// Source: `torch.nn.functional.relu6`.
    "relu6", eval, [Param::needed("input", Kind::Operand)],
    plain("relu6.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    match args.take("input") {
        Value::Int(x) => Ok(Value::Int(x.map(|x| x.clamp(0, 6)))),
        other => unary(other, f::<T>, f::<f64>),
    }
}

fn f<R: Real>(x: R) -> R {
    min_nan(max_nan(x, R::ZERO), R::from_f64(6.0))
}
