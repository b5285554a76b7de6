//! Losses.

pub mod cross_entropy;
pub mod huber_loss;
pub mod kl_div;
pub mod l1_loss;
pub mod mse_loss;
pub mod smooth_l1_loss;
pub mod triplet_margin_loss;

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::op::{Args, Cx};
use crate::ops::reduce::sum::total;
use crate::real::Real;

/// What is done with the losses of all elements: the first is PyTorch's default.
pub(crate) const REDUCTIONS: &[&str] = &["mean", "sum", "none"];

/// All losses as they are, their sum in the variant's order, or that sum divided by their number (NaN over none).
pub(crate) fn reduced<T: Real>(cx: &Cx, losses: Array<T>, reduction: &str) -> Result<Value<T>, Fault> {
    if reduction == "none" {
        return Ok(Value::Float(losses));
    }
    let (sum, terms) = total(cx, losses, None, false)?;
    Ok(Value::Float(match reduction {
        "sum" => sum,
        _ => {
            let count = T::from_i64(terms as i64);
            sum.map(|s| s / count)
        }
    }))
}

/// `loss` of every pair of elements of `input` and `target`, broadcast, reduced as `reduction` says.
pub(crate) fn pairwise<T: Real>(
    args: &mut Args<T>,
    cx: &Cx,
    loss: impl Fn(T, T) -> T,
) -> Result<Value<T>, Fault> {
    let (x, y) = (args.float("input")?, args.float("target")?);
    let (shape, data) = crate::kernels::elementwise::zip(&x, &y, loss)?;
    let reduction = args.text("reduction")?;
    reduced(cx, Array::new(shape, data)?, &reduction)
}
