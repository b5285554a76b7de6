//! `max_pool3d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::pool::{Pool, PoolParams, pool};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Maximum over windows of 3 spatial dimensions; padding counts as negative infinity, a NaN in the window wins.
    ///
    /// Shapes: `[n, c, depth, height, width]` or without `n`; an output size is
    /// `(size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`, rounded up with `ceil_mode`, but no window starts
    /// in the right padding. `stride` is the kernel size where absent.
    /// Errors: padding beyond half the kernel; a window larger than the padded input; parameters out of range.
    /// Source: `torch.nn.functional.max_pool3d`.
    "max_pool3d", eval,
    [
        Param::tensor("input"),
        Param::needed("kernel_size", Kind::Ints),
        Param::none("stride", Kind::OptInts),
        Param::int("padding", Kind::Ints, 0),
        Param::int("dilation", Kind::Ints, 1),
        Param::flag("ceil_mode", false),
    ],
    plain("max_pool.cu", windows3)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let kernel = args.sizes("kernel_size", 3, 1)?;
    let p = PoolParams {
        stride: args.opt_sizes("stride", 3, 1)?.unwrap_or_else(|| kernel.clone()),
        padding: args.sizes("padding", 3, 0)?,
        dilation: args.sizes("dilation", 3, 1)?,
        ceil_mode: args.flag("ceil_mode")?,
        kernel,
    };
    Ok(Value::Float(pool(cx, x, 3, &p, Pool::Max)?))
}
