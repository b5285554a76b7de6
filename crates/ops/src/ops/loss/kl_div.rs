//! `kl_div`.

use super::reduced;
use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::elementwise::zip;
use crate::op::{Args, Cx, Param, op};
use crate::ops::reduce::sum::total;
use crate::real::Real;

op! {
    /// Pointwise `target * (log(target) - input)`, or `exp(target) * (target - input)` with `log_target`: `input` holds
    /// logarithms. A target of zero counts `-0 * input`, without its logarithm. `'batchmean'` divides the sum by the
    /// first size of `input`, `'mean'` by the number of elements.
    ///
    /// Shapes: any two that broadcast; a tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: no broadcast.
    /// Source: `torch.nn.functional.kl_div`.
    "kl_div", eval,
    [
        Param::tensor("input"),
        Param::tensor("target"),
        Param::choice("reduction", &["mean", "batchmean", "sum", "none"]),
        Param::flag("log_target", false),
    ],
    plain("kl_div.cu", pairs)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (x, y) = (args.float("input")?, args.float("target")?);
    let batch = x.shape().first().copied();
    let reduction = args.text("reduction")?;
    let (shape, data) = if args.flag("log_target")? {
        zip(&x, &y, |x, y| y.exp() * (y - x))?
    } else {
        zip(&x, &y, |x, y| (if y == T::ZERO { T::ZERO } else { y * y.log() }) - y * x)?
    };
    let losses = Array::new(shape, data)?;
    if reduction != "batchmean" {
        return reduced(cx, losses, &reduction);
    }
    let (sum, _) = total(cx, losses, None, false)?;
    let count = T::from_i64(batch.unwrap_or(1) as i64);
    Ok(Value::Float(sum.map(|s| s / count)))
}
