//! `linear`.

use super::matmul::operands;
use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::gemm::{self, Matrix};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `input @ weight.T + bias`, the bias added last.
    ///
    /// Shapes: `[.., in]`, `[out, in]`, `[out]` give `[.., out]`.
    /// Errors: sizes that differ; integer tensors.
    /// Source: `torch.nn.functional.linear`.
    "linear", eval,
    [Param::tensor("input"), Param::tensor("weight"), Param::none("bias", Kind::OptTensor)],
    plain("contract.cu", linear)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (x, w) = operands(args, "input", "weight")?;
    let bias = args.opt_float("bias")?;
    if w.rank() != 2 || x.rank() == 0 {
        return Err(Fault::new("`weight` needs 2 dimensions and `input` at least 1"));
    }
    let (n, k) = (w.shape()[0], w.shape()[1]);
    let (&last, lead) = x.shape().split_last().ok_or_else(|| Fault::new("`input` needs a dimension"))?;
    if last != k {
        return Err(Fault(format!("the last size {last} of `input` and {k} of `weight` differ")));
    }
    let m = numel(lead)?;
    let shape: Vec<usize> = lead.iter().copied().chain([n]).collect();
    let mut out = vec![T::ZERO; numel(&shape)?];
    let plan = cx.plan(k);
    gemm::matmul(
        cx.variant.fma,
        &plan,
        [m, k, n],
        Matrix::rows(x.data(), k),
        Matrix::rows(w.data(), k).t(),
        &mut out,
    )?;
    if let Some(bias) = bias {
        if bias.shape() != [n] {
            return Err(Fault(format!("`bias` needs shape [{n}], not {:?}", bias.shape())));
        }
        for row in out.chunks_exact_mut(n.max(1)) {
            row.iter_mut().zip(bias.data()).for_each(|(v, &b)| *v += b);
        }
    }
    Ok(Value::Float(Array::new(shape, out)?))
}
