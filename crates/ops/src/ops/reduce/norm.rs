//! `norm`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::{arrange, fold, reduced_dims, reduced_shape};
use crate::kernels::reduce::{beats_max, beats_min, extreme};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::{Sum, SumSquares};
use crate::real::Real;

op! {
    /// Vector norm of order `p` (2 by default, which is also the Frobenius norm of a matrix); infinity gives the largest
    /// magnitude. Sums in the variant's order.
    ///
    /// Shapes: any; the dimensions in `dim` (all where absent) are dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range or named twice; no terms where `p` is infinite.
    /// Source: `torch.norm`; `torch.linalg.vector_norm`.
    "norm", eval,
    [
        Param::tensor("input"),
        Param::float("p", 2.0),
        Param::none("dim", Kind::OptInts),
        Param::flag("keepdim", false),
    ],
    plain("norm.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let p = args.number("p")?.to_f64();
    let (dims, keepdim) = (args.opt_ints("dim")?, args.flag("keepdim")?);
    Ok(Value::Float(vector_norm(cx, x, p, dims, keepdim)?))
}

/// The norm of order `p` over dimensions (all where absent).
pub(crate) fn vector_norm<T: Real>(
    cx: &Cx,
    x: Array<T>,
    p: f64,
    dims: Option<Vec<i64>>,
    keepdim: bool,
) -> Result<Array<T>, Fault> {
    if p.is_infinite() {
        let beats = if p > 0.0 { beats_max } else { beats_min };
        return Ok(extreme(x.map(T::abs), dims, keepdim, beats)?.0);
    }
    let dims = reduced_dims(dims, x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, keepdim);
    let (x, layout) = arrange(x, &dims)?;
    let out: Vec<T> = if p == 1.0 {
        fold::<T, Sum>(cx, x.map(T::abs).data(), layout)?
    } else if p == 2.0 {
        fold::<T, SumSquares>(cx, x.data(), layout)?.into_iter().map(T::sqrt).collect()
    } else if p == 0.0 {
        let nonzero = x.map(|v| if v == T::ZERO { T::ZERO } else { T::ONE });
        fold::<T, Sum>(cx, nonzero.data(), layout)?
    } else {
        let (e, root) = (T::from_f64(p), T::from_f64(1.0 / p));
        let powers = x.map(|v| v.abs().pow(e));
        fold::<T, Sum>(cx, powers.data(), layout)?.into_iter().map(|s| s.pow(root)).collect()
    };
    Array::new(shape, out)
}
