//! `select`.

use super::chosen;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The elements at one index of a dimension.
    ///
    /// Shapes: any, `dim` is dropped.
    /// Errors: a dimension or index out of range.
    /// Source: `torch.select`.
    "select", eval, [Param::tensor("input"), Param::needed("dim", Kind::Int), Param::needed("index", Kind::Int)],
    plain("copy.cu", selected)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    if shape.is_empty() {
        return Err(Fault::new("a tensor without dimensions cannot be indexed"));
    }
    let dim = args.dim("dim", shape.len())?;
    chosen(x, dim, args.int("index")?)
}
