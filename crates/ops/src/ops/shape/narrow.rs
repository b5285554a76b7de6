//! `narrow`.

use super::part;
use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The elements `start` to `start + length` along a dimension.
    ///
    /// Shapes: any, `dim` becomes `length`.
    /// Errors: a dimension or range out of bounds.
    /// Source: `torch.narrow`.
    "narrow", eval, [Param::tensor("input"), Param::needed("dim", Kind::Int), Param::needed("start", Kind::Int), Param::needed("length", Kind::Int)],
    plain("copy.cu", narrowed)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    if shape.is_empty() {
        return Err(Fault::new("a tensor without dimensions cannot be narrowed"));
    }
    let dim = args.dim("dim", shape.len())?;
    let (start, length) = (args.int("start")?, args.int("length")?);
    let size = shape[dim] as i64;
    let start = if start < 0 { start.saturating_add(size) } else { start };
    if start < 0 || length < 0 || start.saturating_add(length) > size {
        return Err(Fault(format!("range of {length} from {start} is outside of size {size}")));
    }
    Ok(
        per_dtype!(x, a => part(a, dim, start as usize, length as usize)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
