//! `conv_transpose1d`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::conv::{ConvParams, conv_transpose};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Transposed convolution over 1 spatial dimension: the gradient of `conv1d` with respect to its input.
    ///
    /// Shapes: `[n, c, length]` (or without `n`), `[c, o / groups, kernel]`, `[o]`; an output size is
    /// `(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`.
    /// Errors: sizes that disagree; an output without elements; `output_padding` not below stride or dilation.
    /// Source: `torch.nn.functional.conv_transpose1d`.
    "conv_transpose1d", eval,
    [
        Param::tensor("input"),
        Param::tensor("weight"),
        Param::none("bias", Kind::OptTensor),
        Param::int("stride", Kind::Ints, 1),
        Param::int("padding", Kind::Ints, 0),
        Param::int("output_padding", Kind::Ints, 0),
        Param::int("groups", Kind::Int, 1),
        Param::int("dilation", Kind::Ints, 1),
    ],
    plain("conv_transpose.cu", windows1)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let (x, weight, bias) = (args.float("input")?, args.float("weight")?, args.opt_float("bias")?);
    let p = ConvParams {
        stride: args.sizes("stride", 1, 1)?,
        padding: args.sizes("padding", 1, 0)?,
        dilation: args.sizes("dilation", 1, 1)?,
        output_padding: args.sizes("output_padding", 1, 0)?,
        groups: args.sizes("groups", 1, 1)?[0],
    };
    Ok(Value::Float(conv_transpose(cx, x, &weight, bias.as_ref(), 1, &p)?))
}
