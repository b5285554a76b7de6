//! `transpose`.

use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Two dimensions swapped.
    ///
    /// Shapes: any, the two sizes swapped.
    /// Errors: a dimension out of range.
    /// Source: `torch.transpose`.
    "transpose", eval, [Param::tensor("input"), Param::needed("dim0", Kind::Int), Param::needed("dim1", Kind::Int)],
    plain("copy.cu", transposed)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    let (a, b) = (args.dim("dim0", shape.len())?, args.dim("dim1", shape.len())?);
    if !axes.is_empty() {
        axes.swap(a, b);
    }
    Ok(
        per_dtype!(x, a => a.permuted(&axes), else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
