//! `view`.

use super::reshape::inferred;
use crate::array::{Value, numel, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// As `reshape`: every tensor here is contiguous.
    ///
    /// Shapes: any to any with as many elements.
    /// Errors: another number of elements; more than one -1.
    /// Source: `torch.Tensor.view`.
    "view", eval, [Param::tensor("input"), Param::needed("size", Kind::Ints)],
    plain("copy.cu", as_it_lies)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let target = inferred(&args.ints("size")?, numel(&shape)?)?;
    Ok(
        per_dtype!(x, a => a.reshaped(target)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
