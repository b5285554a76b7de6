//! `adaptive_avg_pool3d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::pool::adaptive_average;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Mean over windows that cut every spatial dimension into `output_size` parts: part `i` of size `n` begins at
    /// `floor(i*n/output)` and ends before `ceil((i+1)*n/output)`. Sums in the variant's order over the window in
    /// row-major order.
    ///
    /// Shapes: `[N, C, D, H, W]` or `[C, D, H, W]`; the spatial sizes become `output_size`.
    /// Errors: another rank; an empty spatial dimension; sizes out of range.
    /// Source: `torch.nn.functional.adaptive_avg_pool3d`.
    "adaptive_avg_pool3d", eval, [Param::tensor("input"), Param::needed("output_size", Kind::Ints)],
    plain("adaptive_avg_pool.cu", windows3)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let sizes = args.sizes("output_size", 3, 0)?;
    Ok(Value::Float(adaptive_average(cx, x, &sizes)?))
}
