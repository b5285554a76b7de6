//! `var`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::moments::moments;
use crate::kernels::reduce::{arrange, reduced_dims, reduced_shape};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Variance: the sum of squared differences from the mean over `max(0, terms - correction)`, by the
    /// variant's variance algorithm and order.
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice.
    /// Source: `torch.var`.
    "var", eval,
    [
        Param::tensor("input"),
        Param::none("dim", Kind::OptInts),
        Param::int("correction", Kind::Number, 1),
        Param::flag("keepdim", false),
    ],
    plain("var.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    Ok(Value::Float(variance(args, cx)?))
}

/// The variance by the arguments of `var`.
pub(crate) fn variance<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Array<T>, Fault> {
    let x = args.float("input")?;
    let dims = reduced_dims(args.opt_ints("dim")?, x.rank())?;
    let correction = args.number("correction")?.to_f64();
    let shape = reduced_shape(x.shape(), &dims, args.flag("keepdim")?);
    // Reduced dimensions last, so that every output has a contiguous row.
    let kept: Vec<usize> = (0..x.rank()).filter(|d| !dims.contains(d)).collect();
    let axes: Vec<usize> = kept.iter().chain(&dims).copied().collect();
    let (x, layout) = arrange(x.permuted(&axes), &(kept.len()..axes.len()).collect::<Vec<_>>())?;
    let m = moments(cx, x.data(), layout.outer, layout.terms)?;
    let count = T::from_f64((layout.terms as f64 - correction).max(0.0));
    Array::new(shape, m.m2.into_iter().map(|v| v / count).collect())
}
