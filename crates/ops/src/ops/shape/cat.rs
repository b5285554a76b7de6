//! `cat`.

use super::joined;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op, wrap_dim};
use crate::real::Real;

op! {
    /// Tensors joined along a dimension.
    ///
    /// Shapes: equal but for `dim`, whose sizes add up.
    /// Errors: no tensors; shapes that differ elsewhere; `dim` out of range; mixed element types.
    /// Source: `torch.cat`.
    "cat", eval, [Param::needed("tensors", Kind::Tensors), Param::int("dim", Kind::Int, 0)],
    plain("copy.cu", joined)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let dim = args.int("dim")?;
    let Value::Tuple(all) = args.take("tensors") else {
        return Err(Fault::new("`tensors` takes a tuple of tensors"));
    };
    let rank = all.first().and_then(Value::shape).map_or(0, <[usize]>::len);
    if rank == 0 {
        return Err(Fault::new("tensors with at least one dimension are needed"));
    }
    joined(all, wrap_dim(dim, rank)?)
}
