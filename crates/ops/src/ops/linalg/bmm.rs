//! `bmm`.

use super::matmul::{operands, product};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Products of two batches of matrices, without broadcasting.
    ///
    /// Shapes: `[b, m, k]` and `[b, k, n]` give `[b, m, n]`.
    /// Errors: other ranks; sizes that differ; integer tensors.
    /// Source: `torch.bmm`.
    "bmm", eval, [Param::tensor("input"), Param::tensor("mat2")],
    plain("contract.cu", product)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = operands(args, "input", "mat2")?;
    if (a.rank(), b.rank()) != (3, 3) {
        return Err(Fault(format!(
            "tensors of 3 and 3 dimensions are needed, not {} and {}",
            a.rank(),
            b.rank()
        )));
    }
    if a.shape()[0] != b.shape()[0] {
        return Err(Fault(format!("batch sizes {} and {} differ", a.shape()[0], b.shape()[0])));
    }
    Ok(Value::Float(product(cx, a, b)?))
}
