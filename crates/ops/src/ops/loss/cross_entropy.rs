//! `cross_entropy`.

use super::{REDUCTIONS, reduced};
use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::softmax::along;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::reduce::sum::total;
use crate::real::Real;

op! {
    /// `-log_softmax(input, dim=1)` at the target class, or averaged over the target's probabilities. With class
    /// indices `'mean'` divides by the sum of the targets' weights, and a target of `ignore_index` counts nothing; with
    /// probabilities it divides by the number of positions.
    ///
    /// Shapes: `[C]`, `[N, C]` or `[N, C, ..]`; a target of class indices (integers) lacks `C`, one of probabilities has
    /// the shape of `input`. `weight` is `[C]`. A tensor without dimensions unless `reduction` is `'none'`.
    /// Errors: shapes that differ; a class out of range; `label_smoothing` outside [0, 1].
    /// Source: `torch.nn.functional.cross_entropy`.
    "cross_entropy", eval,
    [
        Param::tensor("input"),
        Param::tensor("target"),
        Param::none("weight", Kind::OptTensor),
        Param::int("ignore_index", Kind::Int, -100),
        Param::choice("reduction", REDUCTIONS),
        Param::float("label_smoothing", 0.0),
    ],
    plain("cross_entropy.cu", classes)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let target = args.tensor("target")?;
    let weight = args.opt_float("weight")?;
    let ignore = args.int("ignore_index")?;
    let reduction = args.text("reduction")?;
    let smoothing = args.real("label_smoothing")?;
    if !(smoothing >= T::ZERO && smoothing <= T::ONE) {
        return Err(Fault::new("`label_smoothing` must be between 0 and 1"));
    }
    if x.rank() == 0 {
        return Err(Fault::new("`input` needs at least one dimension"));
    }
    let dim = usize::from(x.rank() > 1);
    let classes = x.shape()[dim];
    if let Some(w) = &weight
        && w.shape() != [classes]
    {
        return Err(Fault(format!("`weight` needs shape [{classes}], not {:?}", w.shape())));
    }
    let kept: Vec<usize> = x.shape().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, &n)| n).collect();
    let (outer, inner) = (numel(&x.shape()[..dim])?, numel(&x.shape()[dim + 1..])?);
    let shape = x.shape().to_vec();
    let logs = along(cx, x, dim, true)?;
    let at = |o: usize, c: usize, i: usize| logs.data()[(o * classes + c) * inner + i];
    let weight_of = |c: usize| weight.as_ref().map_or(T::ONE, |w| w.data()[c]);
    let positions = || (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i)));
    let share = smoothing / T::from_i64(classes as i64);
    match target {
        Value::Int(target) => {
            if target.shape() != kept {
                return Err(Fault(format!(
                    "a target of class indices needs shape {kept:?}, not {:?}",
                    target.shape()
                )));
            }
            let mut losses = Vec::with_capacity(target.len());
            let mut weights = Vec::with_capacity(target.len());
            for ((o, i), &class) in positions().zip(target.data()) {
                if class == ignore {
                    losses.push(T::ZERO);
                    weights.push(T::ZERO);
                    continue;
                }
                let Some(c) = usize::try_from(class).ok().filter(|&c| c < classes) else {
                    return Err(Fault(format!("target {class} is out of range for {classes} classes")));
                };
                let mut loss = -at(o, c, i) * weight_of(c);
                if smoothing > T::ZERO {
                    let all = (0..classes).fold(T::ZERO, |sum, c| sum - at(o, c, i) * weight_of(c));
                    loss = (T::ONE - smoothing) * loss + share * all;
                }
                losses.push(loss);
                weights.push(weight_of(c));
            }
            let losses = Array::new(kept.clone(), losses)?;
            if reduction != "mean" {
                return reduced(cx, losses, &reduction);
            }
            let (sum, _) = total(cx, losses, None, false)?;
            let (weights, _) = total(cx, Array::new(kept, weights)?, None, false)?;
            let by = weights.data()[0];
            Ok(Value::Float(sum.map(|s| s / by)))
        }
        Value::Float(target) => {
            if target.shape() != shape {
                return Err(Fault(format!(
                    "a target of probabilities needs shape {shape:?}, not {:?}",
                    target.shape()
                )));
            }
            let losses = positions()
                .map(|(o, i)| {
                    (0..classes).fold(T::ZERO, |sum, c| {
                        let p = target.data()[(o * classes + c) * inner + i];
                        let p = p * (T::ONE - smoothing) + share;
                        sum - at(o, c, i) * p * weight_of(c)
                    })
                })
                .collect();
            reduced(cx, Array::new(kept, losses)?, &reduction)
        }
        other => Err(Fault(format!("`target` holds classes or probabilities, not {}", other.what()))),
    }
}
