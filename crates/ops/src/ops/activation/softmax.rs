//! `softmax`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::softmax::along;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `exp(x) / sum(exp(x))` along `dim`, the maximum subtracted first; the variant's softmax algorithm and order.
    /// A row of negative infinities only, or with a positive one or a NaN, is NaN.
    ///
    /// Shapes: any, kept.
    /// Errors: `dim` out of range.
    /// Source: `torch.nn.functional.softmax`.
    "softmax", eval, [Param::tensor("input"), Param::needed("dim", Kind::Int)],
    plain("softmax.cu", dims)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let dim = args.dim("dim", x.rank())?;
    Ok(Value::Float(along(cx, x, dim, false)?))
}
