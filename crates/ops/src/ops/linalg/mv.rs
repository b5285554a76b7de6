//! `mv`.

use super::matmul::{operands, product};
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Product of a matrix and a vector.
    ///
    /// Shapes: `[m, k]` and `[k]` give `[m]`.
    /// Errors: other ranks; sizes that differ; integer tensors.
    /// Source: `torch.mv`.
    "mv", eval, [Param::tensor("input"), Param::tensor("vec")],
    plain("contract.cu", product)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = operands(args, "input", "vec")?;
    if (a.rank(), b.rank()) != (2, 1) {
        return Err(Fault(format!(
            "tensors of 2 and 1 dimensions are needed, not {} and {}",
            a.rank(),
            b.rank()
        )));
    }
    Ok(Value::Float(product(cx, a, b)?))
}
