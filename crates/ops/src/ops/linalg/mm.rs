//! `mm`.

use super::matmul::{operands, product};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Product of two matrices, without broadcasting.
    ///
    /// Shapes: `[m, k]` and `[k, n]` give `[m, n]`.
    /// Errors: other ranks; sizes that differ; integer tensors.
    /// Source: `torch.mm`.
    "mm", eval, [Param::tensor("input"), Param::tensor("mat2")],
    plain("contract.cu", product)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = operands(args, "input", "mat2")?;
    if (a.rank(), b.rank()) != (2, 2) {
        return Err(Fault(format!(
            "tensors of 2 and 2 dimensions are needed, not {} and {}",
            a.rank(),
            b.rank()
        )));
    }
    Ok(Value::Float(product(cx, a, b)?))
}
