//! `amax`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::reduce::{beats_max, extreme};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Maximum over dimensions; NaN where a term is NaN.
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice; no terms.
    /// Source: `torch.amax`.
    "amax", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInts), Param::flag("keepdim", false)],
    plain("amax.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let (dims, keepdim) = (args.opt_ints("dim")?, args.flag("keepdim")?);
    Ok(match x {
        Value::Float(x) => Value::Float(extreme(x, dims, keepdim, beats_max)?.0),
        Value::Int(x) => Value::Int(extreme(x, dims, keepdim, |x, y| x > y)?.0),
        Value::Bool(x) => Value::Bool(extreme(x, dims, keepdim, |x, y| x & !y)?.0),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}
