//! `unsqueeze`.

use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// A dimension of size 1 inserted before dimension `dim`.
    ///
    /// Shapes: any, one dimension more.
    /// Errors: `dim` out of range.
    /// Source: `torch.unsqueeze`.
    "unsqueeze", eval, [Param::tensor("input"), Param::needed("dim", Kind::Int)],
    plain("copy.cu", as_it_lies)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let dim = args.dim("dim", shape.len() + 1)?;
    let mut target = shape;
    target.insert(dim, 1);
    Ok(
        per_dtype!(x, a => a.reshaped(target)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
