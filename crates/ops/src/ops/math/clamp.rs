//! `clamp`.

use super::{maximum, minimum};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `min(max(input, min), max)`; NaN in any of them gives NaN. A float bound lifts integers to float.
    ///
    /// Shapes: any that broadcast.
    /// Errors: no broadcast; neither bound given.
    /// Source: `torch.clamp`.
    "clamp", eval,
    [Param::tensor("input"), Param::none("min", Kind::OptOperand), Param::none("max", Kind::OptOperand)],
    plain("clamp.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (mut x, low, high) = (args.tensor("input")?, args.take("min"), args.take("max"));
    if matches!((&low, &high), (Value::None, Value::None)) {
        return Err(Fault::new("at least one of `min` and `max` must be given"));
    }
    if !matches!(low, Value::None) {
        x = maximum::pair(x, low)?;
    }
    if !matches!(high, Value::None) {
        x = minimum::pair(x, high)?;
    }
    Ok(x)
}
