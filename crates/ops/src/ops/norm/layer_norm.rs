//! `layer_norm`.

use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::moments::{affine, normalise};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `(x - mean) / sqrt(var + eps) * weight + bias` with the biased variance over the last dimensions, by the variant's
    /// variance algorithm and order.
    ///
    /// Shapes: `normalized_shape` is the tail of `input`'s shape and the shape of `weight` and `bias`.
    /// Errors: shapes that differ.
    /// Source: `torch.nn.functional.layer_norm`.
    "layer_norm", eval,
    [
        Param::tensor("input"),
        Param::needed("normalized_shape", Kind::Ints),
        Param::none("weight", Kind::OptTensor),
        Param::none("bias", Kind::OptTensor),
        Param::float("eps", 1e-5),
    ],
    plain("normalise.cu", tail)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let tail = args.ints("normalized_shape")?;
    let (rows, terms) = tail_of(x.shape(), &tail)?;
    let (weight, bias) = (args.opt_float("weight")?, args.opt_float("bias")?);
    for (name, p) in [("weight", &weight), ("bias", &bias)] {
        check_tail(name, p.as_ref(), &tail)?;
    }
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    normalise(cx, &mut data, rows, terms, args.real("eps")?)?;
    affine(cx, &mut data, terms, 1, weight.as_ref().map(Array::data), bias.as_ref().map(Array::data));
    Ok(Value::Float(Array::new(shape, data)?))
}

/// Rows and terms per row where the normalised dimensions are the last.
pub(crate) fn tail_of(shape: &[usize], tail: &[i64]) -> Result<(usize, usize), Fault> {
    let lead = shape.len().checked_sub(tail.len()).filter(|_| !tail.is_empty());
    match lead {
        Some(lead) if shape[lead..].iter().zip(tail).all(|(&s, &t)| i64::try_from(s) == Ok(t)) => {
            Ok((numel(&shape[..lead])?, numel(&shape[lead..])?))
        }
        _ => {
            Err(Fault(format!("`normalized_shape` {tail:?} is not the tail of the input's shape {shape:?}")))
        }
    }
}

/// A weight or bias must have the normalised shape.
pub(crate) fn check_tail<T: Real>(name: &str, p: Option<&Array<T>>, tail: &[i64]) -> Result<(), Fault> {
    match p {
        Some(p) if !p.shape().iter().map(|&d| d as i64).eq(tail.iter().copied()) => {
            Err(Fault(format!("`{name}` needs shape {tail:?}, not {:?}", p.shape())))
        }
        _ => Ok(()),
    }
}
