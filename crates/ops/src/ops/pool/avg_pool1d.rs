//! `avg_pool1d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::pool::{Pool, PoolParams, pool};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Mean over windows of 1 spatial dimension, summed in the variant's order over the window in row-major order.
    ///
    /// Shapes: as `max_pool1d`. The divisor counts padding with `count_include_pad`, but never what lies beyond it.
    /// Errors: padding beyond half the kernel; a window larger than the padded input; parameters out of range.
    /// Source: `torch.nn.functional.avg_pool1d`.
    "avg_pool1d", eval,
    [
        Param::tensor("input"),
        Param::needed("kernel_size", Kind::Ints),
        Param::none("stride", Kind::OptInts),
        Param::int("padding", Kind::Ints, 0),
        Param::flag("ceil_mode", false),
        Param::flag("count_include_pad", true),
    ],
    plain("avg_pool.cu", windows1)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let kernel = args.sizes("kernel_size", 1, 1)?;
    let p = PoolParams {
        stride: args.opt_sizes("stride", 1, 1)?.unwrap_or_else(|| kernel.clone()),
        padding: args.sizes("padding", 1, 0)?,
        dilation: vec![1; 1],
        ceil_mode: args.flag("ceil_mode")?,
        kernel,
    };
    let divisor = None;
    let kind = Pool::Average { count_include_pad: args.flag("count_include_pad")?, divisor };
    Ok(Value::Float(pool(cx, x, 1, &p, kind)?))
}
