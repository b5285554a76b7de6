//! `conv3d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::conv::{ConvParams, conv};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Cross-correlation over 3 spatial dimensions, zero padding, the bias added last. The terms of an output run
    /// over (input channel, kernel position) in the variant's order.
    ///
    /// Shapes: `[n, c, depth, height, width]` (or without `n`), `[o, c / groups, kernel]`, `[o]`; an output size is
    /// `(size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`, rounded down.
    /// Errors: sizes that disagree; a kernel larger than the padded input; parameters out of range.
    /// Source: `torch.nn.functional.conv3d`.
    "conv3d", eval,
    [
        Param::tensor("input"),
        Param::tensor("weight"),
        Param::none("bias", Kind::OptTensor),
        Param::int("stride", Kind::Ints, 1),
        Param::int("padding", Kind::Ints, 0),
        Param::int("dilation", Kind::Ints, 1),
        Param::int("groups", Kind::Int, 1),
    ],
    plain("conv.cu", windows3)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (x, weight, bias) = (args.float("input")?, args.float("weight")?, args.opt_float("bias")?);
    let p = ConvParams {
        stride: args.sizes("stride", 3, 1)?,
        padding: args.sizes("padding", 3, 0)?,
        dilation: args.sizes("dilation", 3, 1)?,
        output_padding: vec![0; 3],
        groups: args.sizes("groups", 1, 1)?[0],
    };
    Ok(Value::Float(conv(cx, x, &weight, bias.as_ref(), 3, &p)?))
}
