//! `group_norm`.

use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::moments::{affine, normalise};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Normalises every sample's groups of channels by their own mean and biased variance, then scales and shifts per
    /// channel.
    ///
    /// Shapes: `[n, c, ..]`, `weight` and `bias` `[c]`.
    /// Errors: channels not divisible by `num_groups`; shapes that differ.
    /// Source: `torch.nn.functional.group_norm`.
    "group_norm", eval,
    [
        Param::tensor("input"),
        Param::needed("num_groups", Kind::Int),
        Param::none("weight", Kind::OptTensor),
        Param::none("bias", Kind::OptTensor),
        Param::float("eps", 1e-5),
    ],
    plain("normalise.cu", groups)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let groups = args.sizes("num_groups", 1, 1)?[0];
    if x.rank() < 2 || x.shape()[1] % groups != 0 {
        return Err(Fault(format!("`input` needs 2 dimensions and channels divisible by {groups}")));
    }
    let (weight, bias) = (args.opt_float("weight")?, args.opt_float("bias")?);
    let eps = args.real("eps")?;
    Ok(Value::Float(grouped(cx, x, groups, weight, bias, eps)?))
}

/// Normalises groups of channels, then scales and shifts per channel.
pub(crate) fn grouped<T: Real>(
    cx: &Cx,
    x: Array<T>,
    groups: usize,
    weight: Option<Array<T>>,
    bias: Option<Array<T>>,
    eps: T,
) -> Result<Array<T>, Fault> {
    let channels = x.shape()[1];
    check_channels("weight", weight.as_ref(), channels)?;
    check_channels("bias", bias.as_ref(), channels)?;
    let spatial = numel(&x.shape()[2..])?;
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    normalise(cx, &mut data, shape[0] * groups, channels / groups * spatial, eps)?;
    affine(
        cx,
        &mut data,
        channels,
        spatial,
        weight.as_ref().map(Array::data),
        bias.as_ref().map(Array::data),
    );
    Array::new(shape, data)
}

/// A parameter must have one element per channel.
pub(crate) fn check_channels<T: Real>(
    name: &str,
    p: Option<&Array<T>>,
    channels: usize,
) -> Result<(), Fault> {
    match p {
        Some(p) if p.shape() != [channels] => {
            Err(Fault(format!("`{name}` needs shape [{channels}], not {:?}", p.shape())))
        }
        _ => Ok(()),
    }
}
