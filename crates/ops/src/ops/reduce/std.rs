//! `std`.

use super::var::variance;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Standard deviation: the square root of `var`, by the
    /// variant's variance algorithm and order.
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice.
    /// Source: `torch.std`.
    "std", eval,
    [
        Param::tensor("input"),
        Param::none("dim", Kind::OptInts),
        Param::int("correction", Kind::Number, 1),
        Param::flag("keepdim", false),
    ],
    plain("std.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    Ok(Value::Float(variance(args, cx)?.map(T::sqrt)))
}
