//! `gelu`.

use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Gaussian error linear unit: `0.5 * x * (1 + erf(x / sqrt(2)))`, or with `approximate='tanh'`
    /// `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`.
    ///
    /// Shapes: any, kept.
    /// Errors: another `approximate`.
    /// Source: `torch.nn.functional.gelu`.
    "gelu", eval, [Param::tensor("input"), Param::choice("approximate", &["none", "tanh"])],
    plain("gelu.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let half = T::from_f64(0.5);
    Ok(Value::Float(if args.text("approximate")? == "tanh" {
        let beta = T::from_f64(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
        let kappa = T::from_f64(0.044_715);
        x.map(|x| {
            let inner = beta * (x + kappa * (x * x * x));
            half * x * (T::ONE + inner.tanh())
        })
    } else {
        let scale = T::from_f64(std::f64::consts::FRAC_1_SQRT_2);
        x.map(|x| x * half * (T::ONE + (x * scale).erf()))
    }))
}
