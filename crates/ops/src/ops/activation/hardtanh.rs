//! `hardtanh`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{max_nan, min_nan};
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// `min(max(x, min_val), max_val)`; NaN stays NaN.
    ///
    /// Shapes: any, kept.
    /// Errors: none.
    /// Source: `torch.nn.functional.hardtanh`.
    "hardtanh", eval, [Param::tensor("input"), Param::float("min_val", -1.0), Param::float("max_val", 1.0)],
    plain("hardtanh.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let (low, high) = (args.real("min_val")?, args.real("max_val")?);
    Ok(Value::Float(x.map(|x| min_nan(max_nan(x, low), high))))
}
