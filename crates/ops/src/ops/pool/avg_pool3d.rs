//! `avg_pool3d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::pool::{Pool, PoolParams, pool};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Mean over windows of 3 spatial dimensions, summed in the variant's order over the window in row-major order.
    ///
    /// Shapes: as `max_pool3d`. The divisor counts padding with `count_include_pad`, but never what lies beyond it.
    /// Errors: padding beyond half the kernel; a window larger than the padded input; parameters out of range.
    /// Source: `torch.nn.functional.avg_pool3d`.
    "avg_pool3d", eval,
    [
        Param::tensor("input"),
        Param::needed("kernel_size", Kind::Ints),
        Param::none("stride", Kind::OptInts),
        Param::int("padding", Kind::Ints, 0),
        Param::flag("ceil_mode", false),
        Param::flag("count_include_pad", true),
        Param::none("divisor_override", Kind::OptInt),
    ],
    plain("avg_pool.cu", windows3)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let kernel = args.sizes("kernel_size", 3, 1)?;
    let p = PoolParams {
        stride: args.opt_sizes("stride", 3, 1)?.unwrap_or_else(|| kernel.clone()),
        padding: args.sizes("padding", 3, 0)?,
        dilation: vec![1; 3],
        ceil_mode: args.flag("ceil_mode")?,
        kernel,
    };
    let divisor = args.opt_int("divisor_override")?;
    if divisor == Some(0) {
        return Err(Fault::new("`divisor_override` must not be zero"));
    }
    let kind = Pool::Average { count_include_pad: args.flag("count_include_pad")?, divisor };
    Ok(Value::Float(pool(cx, x, 3, &p, kind)?))
}
