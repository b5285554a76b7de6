//! `triplet_margin_loss`.

use super::{REDUCTIONS, reduced};
use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::elementwise::zip;
use crate::op::{Args, Cx, Param, op};
use crate::ops::reduce::norm;
use crate::real::Real;

op! {
    /// `max(margin + d(anchor, positive) - d(anchor, negative), 0)` with `d(a, b)` the norm of order `p` of
    /// `a - b + eps` over the last dimension; with `swap` the distance from positive to negative counts where it is
    /// smaller. Averaged, summed or as it is.
    ///
    /// Shapes: three that broadcast, `[D]` or `[.., D]`; a tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: no broadcast; no dimension; a `margin` that is not positive.
    /// Source: `torch.nn.functional.triplet_margin_loss`.
    "triplet_margin_loss", eval,
    [
        Param::tensor("anchor"),
        Param::tensor("positive"),
        Param::tensor("negative"),
        Param::float("margin", 1.0),
        Param::float("p", 2.0),
        Param::float("eps", 1e-6),
        Param::flag("swap", false),
        Param::choice("reduction", REDUCTIONS),
    ],
    plain("triplet_margin_loss.cu", distances)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (anchor, positive, negative) =
        (args.float("anchor")?, args.float("positive")?, args.float("negative")?);
    if anchor.rank() == 0 || anchor.rank() != positive.rank() || anchor.rank() != negative.rank() {
        return Err(Fault::new("the three tensors need the same number of dimensions, at least one"));
    }
    let (margin, eps, p) = (args.real("margin")?, args.real("eps")?, args.number("p")?.to_f64());
    let (swap, reduction) = (args.flag("swap")?, args.text("reduction")?);
    if margin <= T::ZERO {
        return Err(Fault::new("`margin` must be positive"));
    }
    let distance = |a: &Array<T>, b: &Array<T>| -> Result<Array<T>, Fault> {
        let (shape, data) = zip(a, b, |x, y| x - y + eps)?;
        norm::vector_norm(cx, Array::new(shape, data)?, p, Some(vec![-1]), false)
    };
    let to_positive = distance(&anchor, &positive)?;
    let mut to_negative = distance(&anchor, &negative)?;
    if swap {
        let (shape, data) = zip(&to_negative, &distance(&positive, &negative)?, |x, y| {
            crate::kernels::elementwise::min_nan(x, y)
        })?;
        to_negative = Array::new(shape, data)?;
    }
    let (shape, data) = zip(&to_positive, &to_negative, |x, y| {
        crate::kernels::elementwise::max_nan(margin + x - y, T::ZERO)
    })?;
    reduced(cx, Array::new(shape, data)?, &reduction)
}
