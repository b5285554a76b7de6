//! `triu`.

use super::masked;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// The upper triangle of every matrix, zero elsewhere; `diagonal` above 0 moves its edge to the right.
    ///
    /// Shapes: `[.., m, n]`, kept.
    /// Errors: fewer than 2 dimensions.
    /// Source: `torch.triu`.
    "triu", eval, [Param::tensor("input"), Param::int("diagonal", Kind::Int, 0)],
    plain("triu.cu", matrix)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let diagonal = args.int("diagonal")?;
    masked(x, |i, j| j as i64 - i as i64 >= diagonal)
}
