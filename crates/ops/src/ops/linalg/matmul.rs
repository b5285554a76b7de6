//! `matmul`.

use crate::array::{Array, Value, broadcast_shapes, numel};
use crate::error::Fault;
use crate::kernels::gemm::{self, Matrix};
use crate::op::{Args, Cx, Param, op};
use crate::real::Real;

op! {
    /// Matrix product; the sum over the inner dimension in the variant's order.
    ///
    /// Shapes: `[.., m, k]` and `[.., k, n]` with leading dimensions that broadcast give `[.., m, n]`; a vector on the
    /// left is a row and on the right a column, and its dimension is dropped from the result.
    /// Errors: inner sizes that differ; tensors without dimensions; integer tensors.
    /// Source: `torch.matmul`.
    "matmul", eval, [Param::tensor("input"), Param::tensor("other")],
    plain("contract.cu", product)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = operands(args, "input", "other")?;
    Ok(Value::Float(product(cx, a, b)?))
}

/// Two float tensors out of the arguments.
pub(crate) fn operands<T: Real>(
    args: &mut Args<T>,
    a: &'static str,
    b: &'static str,
) -> Result<(Array<T>, Array<T>), Fault> {
    match (args.tensor(a)?, args.tensor(b)?) {
        (Value::Float(a), Value::Float(b)) => Ok((a, b)),
        (a, b) => Err(Fault(format!("only float tensors are supported, not {} and {}", a.what(), b.what()))),
    }
}

/// The matrix product with PyTorch's rules for vectors and batches.
pub(crate) fn product<T: Real>(cx: &Cx, a: Array<T>, b: Array<T>) -> Result<Array<T>, Fault> {
    if a.rank() == 0 || b.rank() == 0 {
        return Err(Fault::new("both operands need at least one dimension"));
    }
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let a = if row {
        let k = a.len();
        a.reshaped(vec![1, k])?
    } else {
        a
    };
    let b = if column {
        let k = b.len();
        b.reshaped(vec![k, 1])?
    } else {
        b
    };
    let (ra, rb) = (a.rank(), b.rank());
    let (m, k, n) = (a.shape()[ra - 2], a.shape()[ra - 1], b.shape()[rb - 1]);
    if b.shape()[rb - 2] != k {
        return Err(Fault(format!("inner sizes {k} and {} differ", b.shape()[rb - 2])));
    }
    let batch = broadcast_shapes(&a.shape()[..ra - 2], &b.shape()[..rb - 2])?;
    let mut shape = batch.clone();
    shape.extend([m, n]);
    let mut out = vec![T::ZERO; numel(&shape)?];
    let plan = cx.plan(k);
    let fma = cx.variant.fma;
    if rb == 2 {
        // One matrix on the right: the batches are rows.
        let rows = numel(&a.shape()[..ra - 1])?;
        gemm::matmul(
            fma,
            &plan,
            [rows, k, n],
            Matrix::rows(a.data(), k),
            Matrix::rows(b.data(), n),
            &mut out,
        )?;
    } else if !out.is_empty() {
        let with = |x: &[usize], s: [usize; 2]| x.iter().copied().chain(s).collect::<Vec<_>>();
        numel(&with(&batch, [m, k]))?;
        numel(&with(&batch, [k, n]))?;
        let (a, b) = (a.broadcast(&with(&batch, [m, k])), b.broadcast(&with(&batch, [k, n])));
        for (i, out) in out.chunks_exact_mut(m * n).enumerate() {
            let (a, b) = (&a.data()[i * m * k..][..m * k], &b.data()[i * k * n..][..k * n]);
            gemm::matmul(fma, &plan, [m, k, n], Matrix::rows(a, k), Matrix::rows(b, n), out)?;
        }
    }
    if column {
        shape.pop();
    }
    if row {
        shape.remove(shape.len() - if column { 1 } else { 2 });
    }
    Array::new(shape, out)
}
