//! `permute`.

use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op, wrap_dim};
use crate::real::Real;

op! {
    /// Dimensions reordered: output dimension `i` is input dimension `dims[i]`.
    ///
    /// Shapes: any, reordered.
    /// Errors: `dims` is no permutation of the dimensions.
    /// Source: `torch.permute`.
    "permute", eval, [Param::tensor("input"), Param::needed("dims", Kind::Ints)],
    plain("copy.cu", permuted)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let axes =
        args.ints("dims")?.into_iter().map(|d| wrap_dim(d, shape.len())).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..shape.len()) {
        return Err(Fault(format!("`dims` must name each of the {} dimensions once", shape.len())));
    }
    Ok(
        per_dtype!(x, a => a.permuted(&axes), else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
