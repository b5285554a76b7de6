//! `masked_fill`.

use super::where_op::pick;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `value` where `mask` is true, `input` elsewhere.
    ///
    /// Shapes: `mask` broadcasts to `input`.
    /// Errors: no broadcast; a mask that is not bool.
    /// Source: `torch.Tensor.masked_fill`.
    "masked_fill", eval,
    [Param::tensor("input"), Param::tensor("mask"), Param::needed("value", Kind::Number)],
    plain("masked_fill.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (x, value) = (args.tensor("input")?, args.take("value"));
    match args.tensor("mask")? {
        Value::Bool(mask) => pick(mask, value, x),
        other => Err(Fault(format!("`mask` must be a bool tensor, not {}", other.what()))),
    }
}
