//! `smooth_l1_loss`.

use super::{REDUCTIONS, pairwise};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// With `d = |input - target|`: `d**2 / (2*beta)` below `beta`, `d - beta/2` from there on; averaged, summed or as
    /// it is.
    ///
    /// Shapes: any two that broadcast; a tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: no broadcast; a negative `beta`.
    /// Source: `torch.nn.functional.smooth_l1_loss`.
    "smooth_l1_loss", eval,
    [
        Param::tensor("input"),
        Param::tensor("target"),
        Param::choice("reduction", REDUCTIONS),
        Param::float("beta", 1.0),
    ],
    plain("smooth_l1_loss.cu", pairs)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let beta = args.real("beta")?;
    if beta < T::ZERO {
        return Err(Fault::new("`beta` must not be negative"));
    }
    let half = T::from_f64(0.5);
    pairwise(args, cx, |x, y| {
        let d = (x - y).abs();
        if d < beta { half * d * d / beta } else { d - half * beta }
    })
}
