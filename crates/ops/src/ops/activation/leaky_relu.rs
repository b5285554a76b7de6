//! `leaky_relu`.

use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `x` above 0, `negative_slope * x` otherwise.
    ///
    /// Shapes: any, kept.
    /// Errors: none.
    /// Source: `torch.nn.functional.leaky_relu`.
    "leaky_relu", eval, [Param::tensor("input"), Param::float("negative_slope", 0.01)],
    plain("leaky_relu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let slope = args.real("negative_slope")?;
    Ok(Value::Float(x.map(|x| if x > T::ZERO { x } else { x * slope })))
}
