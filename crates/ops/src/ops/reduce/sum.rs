//! `sum`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::{arrange, fold, reduced_dims, reduced_shape, whole_sum};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::Sum;
use crate::real::Real;

op! {
    /// Sum over dimensions in the variant's order; integers and bools give int64 (wrapping).
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice.
    /// Source: `torch.sum`.
    "sum", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInts), Param::flag("keepdim", false)],
    plain("sum.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let (dims, keepdim) = (args.opt_ints("dim")?, args.flag("keepdim")?);
    Ok(match x {
        Value::Float(x) => Value::Float(total(cx, x, dims, keepdim)?.0),
        Value::Int(x) => Value::Int(whole_sum(x, dims, keepdim)?),
        Value::Bool(x) => Value::Int(whole_sum(x.map_to(i64::from), dims, keepdim)?),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}

/// The sum, and the number of terms of every output.
pub(crate) fn total<T: Real>(
    cx: &Cx,
    x: Array<T>,
    dims: Option<Vec<i64>>,
    keepdim: bool,
) -> Result<(Array<T>, usize), Fault> {
    let dims = reduced_dims(dims, x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, keepdim);
    let (x, layout) = arrange(x, &dims)?;
    let data = fold::<T, Sum>(cx, x.data(), layout)?;
    Ok((Array::new(shape, data)?, layout.terms))
}
