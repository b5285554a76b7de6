//! `elu`.

use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `x` above 0, `alpha * (exp(x) - 1)` otherwise.
    ///
    /// Shapes: any, kept.
    /// Errors: none.
    /// Source: `torch.nn.functional.elu`.
    "elu", eval, [Param::tensor("input"), Param::float("alpha", 1.0)],
    plain("elu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let alpha = args.real("alpha")?;
    Ok(Value::Float(x.map(|x| if x <= T::ZERO { x.expm1() * alpha } else { x })))
}
