//! `masked_fill`.

use super::where_op::pick;
use crate::array::{Array, Scalar, Value};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `value` where `mask` is true, `input` elsewhere. Into integers it goes without its fraction, into bools as whether it
    /// is other than zero: the result has the element type of `input`.
    ///
    /// Shapes: `mask` broadcasts to `input`.
    /// Errors: no broadcast; a mask that is not bool; a value that no 64-bit integer holds, into integers.
    /// Source: `torch.Tensor.masked_fill`.
    "masked_fill", eval,
    [Param::tensor("input"), Param::tensor("mask"), Param::needed("value", Kind::Number)],
    plain("masked_fill.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (x, value) = (args.tensor("input")?, args.number("value")?);
    let value = match &x {
        Value::Int(_) => Value::Scalar(Scalar::Int(whole(value)?)),
        Value::Bool(_) => Value::Bool(Array::full(Vec::new(), value.to_f64() != 0.0)?),
        _ => Value::Scalar(value),
    };
    match args.tensor("mask")? {
        Value::Bool(mask) => pick(mask, value, x),
        other => Err(Fault(format!("`mask` must be a bool tensor, not {}", other.what()))),
    }
}

/// A number without its fraction.
fn whole(value: Scalar) -> Result<i64, Fault> {
    if let Some(i) = value.to_i64() {
        return Ok(i);
    }
    let x = value.to_f64().trunc();
    // 2^63 is the first float beyond the type.
    if x.is_nan() || x.abs() >= 9_223_372_036_854_775_808.0 {
        return Err(Fault(format!("`value` {x} does not fit in a 64-bit integer")));
    }
    Ok(x as i64)
}
