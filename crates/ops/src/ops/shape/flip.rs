//! `flip`.

use crate::array::{Array, Value, per_dtype};
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The order of the elements reversed along dimensions.
    ///
    /// Shapes: any, kept.
    /// Errors: a dimension out of range or named twice.
    /// Source: `torch.flip`.
    "flip", eval, [Param::tensor("input"), Param::needed("dims", Kind::Ints)],
    plain("copy.cu", flipped)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let dims = args.ints("dims")?;
    let dims = if dims.is_empty() { Vec::new() } else { reduced_dims(Some(dims), shape.len())? };
    Ok(
        per_dtype!(x, a => dims.iter().try_fold(a, |a, &d| reversed(a, d))?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}

fn reversed<E: Copy>(a: Array<E>, dim: usize) -> Result<Array<E>, Fault> {
    let shape = a.shape().to_vec();
    let (n, inner) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
    if a.is_empty() {
        return Ok(a);
    }
    let mut out = Vec::with_capacity(a.len());
    for block in a.data().chunks_exact(n * inner) {
        block.chunks_exact(inner).rev().for_each(|row| out.extend_from_slice(row));
    }
    Array::new(shape, out)
}
