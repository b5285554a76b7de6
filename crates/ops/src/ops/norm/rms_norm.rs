//! `rms_norm`.

use super::layer_norm::{check_tail, tail_of};
use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::moments::affine;
use crate::kernels::reduce::{Layout, fold};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::order::SumSquares;
use crate::real::Real;

op! {
    /// `x / sqrt(mean(x**2) + eps) * weight` over the last dimensions. `eps` is the precision's epsilon where absent.
    ///
    /// Shapes: `normalized_shape` is the tail of `input`'s shape and the shape of `weight`.
    /// Errors: shapes that differ.
    /// Source: `torch.nn.functional.rms_norm`.
    "rms_norm", eval,
    [
        Param::tensor("input"),
        Param::needed("normalized_shape", Kind::Ints),
        Param::none("weight", Kind::OptTensor),
        Param::none("eps", Kind::OptNumber),
    ],
    plain("rms_norm.cu", tail)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let tail = args.ints("normalized_shape")?;
    let (rows, terms) = tail_of(x.shape(), &tail)?;
    let weight = args.opt_float("weight")?;
    check_tail("weight", weight.as_ref(), &tail)?;
    let eps = args.opt_number("eps")?.map_or(T::EPSILON, |e| T::from_f64(e.to_f64()));
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    let squares = fold::<T, SumSquares>(cx, &data, Layout { outer: rows, terms, inner: 1 })?;
    let count = T::from_f64(terms as f64);
    for (row, sum) in data.chunks_exact_mut(terms.max(1)).zip(squares) {
        let scale = T::ONE / (sum / count + eps).sqrt();
        row.iter_mut().for_each(|v| *v *= scale);
    }
    affine(cx, &mut data, terms, 1, weight.as_ref().map(Array::data), None);
    Ok(Value::Float(Array::new(shape, data)?))
}
