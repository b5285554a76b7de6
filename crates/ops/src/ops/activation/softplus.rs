//! `softplus`.

use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `log(1 + exp(beta * x)) / beta`, `x` itself where `beta * x > threshold`.
    ///
    /// Shapes: any, kept.
    /// Errors: none.
    /// Source: `torch.nn.functional.softplus`.
    "softplus", eval, [Param::tensor("input"), Param::float("beta", 1.0), Param::float("threshold", 20.0)],
    plain("softplus.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let (beta, threshold) = (args.real("beta")?, args.real("threshold")?);
    Ok(Value::Float(x.map(|x| if x * beta > threshold { x } else { (x * beta).exp().log1p() / beta })))
}
