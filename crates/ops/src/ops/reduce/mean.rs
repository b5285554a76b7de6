//! `mean`.

use super::sum::total;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The sum in the variant's order, divided by the number of terms; NaN over no terms.
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice; an integer or bool tensor.
    /// Source: `torch.mean`.
    "mean", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInts), Param::flag("keepdim", false)],
    plain("mean.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = match args.tensor("input")? {
        Value::Float(x) => x,
        other => return Err(Fault(format!("the mean of {} is not defined, convert it first", other.what()))),
    };
    let (sum, terms) = total(cx, x, args.opt_ints("dim")?, args.flag("keepdim")?)?;
    let count = T::from_f64(terms as f64);
    Ok(Value::Float(sum.map(|s| s / count)))
}
