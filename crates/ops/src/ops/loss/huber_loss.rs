//! `huber_loss`.

use super::{REDUCTIONS, pairwise};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// With `d = |input - target|`: `d**2 / 2` up to `delta`, `delta * (d - delta/2)` beyond; averaged, summed or as it
    /// is.
    ///
    /// Shapes: any two that broadcast; a tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: no broadcast; a `delta` that is not positive.
    /// Source: `torch.nn.functional.huber_loss`.
    "huber_loss", eval,
    [
        Param::tensor("input"),
        Param::tensor("target"),
        Param::choice("reduction", REDUCTIONS),
        Param::float("delta", 1.0),
    ],
    plain("huber_loss.cu", pairs)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let delta = args.real("delta")?;
    if delta <= T::ZERO {
        return Err(Fault::new("`delta` must be positive"));
    }
    let half = T::from_f64(0.5);
    pairwise(args, cx, |x, y| {
        let d = (x - y).abs();
        if d <= delta { half * d * d } else { delta * (d - half * delta) }
    })
}
