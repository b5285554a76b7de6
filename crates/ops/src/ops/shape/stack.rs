//! `stack`.

use super::joined;
use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op, wrap_dim};
use crate::real::Real;

op! {
    /// Tensors joined along a new dimension.
    ///
    /// Shapes: equal; the result has one dimension more at `dim`.
    /// Errors: no tensors; shapes that differ; `dim` out of range; mixed element types.
    /// Source: `torch.stack`.
    "stack", eval, [Param::needed("tensors", Kind::Tensors), Param::int("dim", Kind::Int, 0)],
    plain("copy.cu", stacked)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let dim = args.int("dim")?;
    let Value::Tuple(all) = args.take("tensors") else {
        return Err(Fault::new("`tensors` takes a tuple of tensors"));
    };
    let shape = all.first().and_then(Value::shape).map(<[usize]>::to_vec).unwrap_or_default();
    let dim = wrap_dim(dim, shape.len() + 1)?;
    let mut one = shape.clone();
    one.insert(dim, 1);
    let all = all
        .into_iter()
        .map(|x| {
            if x.shape().is_some_and(|s| s != shape) {
                return Err(Fault::new("stacked tensors need equal shapes"));
            }
            Ok(per_dtype!(x, a => a.reshaped(one.clone())?, else other => return Err(Fault(format!(
                "a tensor is needed, not {}",
                other.what()
            )))))
        })
        .collect::<Result<Vec<_>, Fault>>()?;
    joined(all, dim)
}
