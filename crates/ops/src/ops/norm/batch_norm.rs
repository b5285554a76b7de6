//! `batch_norm`.

use super::group_norm::check_channels;
use crate::array::{Array, Value, numel};
use crate::error::Fault;
use crate::kernels::moments::{affine, normalise};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Normalises every channel over all samples: in training by the batch's mean and biased variance, else by the running
    /// ones. The running statistics are not updated: they are no output.
    ///
    /// Shapes: `[n, c, ..]`, the others `[c]`.
    /// Errors: shapes that differ; in training fewer than 2 elements per channel.
    /// Source: `torch.nn.functional.batch_norm`.
    "batch_norm", eval,
    [
        Param::tensor("input"),
        Param::needed("running_mean", Kind::OptTensor),
        Param::needed("running_var", Kind::OptTensor),
        Param::none("weight", Kind::OptTensor),
        Param::none("bias", Kind::OptTensor),
        Param::flag("training", false),
        Param::float("momentum", 0.1),
        Param::float("eps", 1e-5),
    ],
    plain("normalise.cu", batch)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let (mean, var) = (args.opt_float("running_mean")?, args.opt_float("running_var")?);
    let (weight, bias, eps) = (args.opt_float("weight")?, args.opt_float("bias")?, args.real("eps")?);
    if x.rank() < 2 {
        return Err(Fault::new("`input` needs at least 2 dimensions"));
    }
    if !args.flag("training")? {
        return Ok(Value::Float(with_running(cx, x, mean, var, weight, bias, eps)?));
    }
    let channels = x.shape()[1];
    check_channels("running_mean", mean.as_ref(), channels)?;
    check_channels("running_var", var.as_ref(), channels)?;
    check_channels("weight", weight.as_ref(), channels)?;
    check_channels("bias", bias.as_ref(), channels)?;
    let terms = numel(&x.shape()[2..])?.saturating_mul(x.shape()[0]);
    if terms == 1 {
        return Err(Fault::new("more than 1 value per channel is needed in training"));
    }
    // Channels first, so that every one is a contiguous row.
    let swap: Vec<usize> = [1, 0].into_iter().chain(2..x.rank()).collect();
    let x = x.permuted(&swap);
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    normalise(cx, &mut data, channels, terms, eps)?;
    affine(cx, &mut data, channels, terms, weight.as_ref().map(Array::data), bias.as_ref().map(Array::data));
    Ok(Value::Float(Array::new(shape, data)?.permuted(&swap)))
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` per channel with given statistics.
pub(crate) fn with_running<T: Real>(
    cx: &Cx,
    x: Array<T>,
    mean: Option<Array<T>>,
    var: Option<Array<T>>,
    weight: Option<Array<T>>,
    bias: Option<Array<T>>,
    eps: T,
) -> Result<Array<T>, Fault> {
    let channels = x.shape()[1];
    let (Some(mean), Some(var)) = (mean, var) else {
        return Err(Fault::new(
            "`running_mean` and `running_var` are needed where the input's own are not used",
        ));
    };
    let all = [
        ("running_mean", Some(&mean)),
        ("running_var", Some(&var)),
        ("weight", weight.as_ref()),
        ("bias", bias.as_ref()),
    ];
    for (name, p) in all {
        check_channels(name, p, channels)?;
    }
    let spatial = numel(&x.shape()[2..])?;
    let shape = x.shape().to_vec();
    let mut data = x.into_data();
    for (i, plane) in data.chunks_exact_mut(spatial.max(1)).enumerate() {
        let (m, scale) = (mean.data()[i % channels], T::ONE / (var.data()[i % channels] + eps).sqrt());
        plane.iter_mut().for_each(|v| *v = (*v - m) * scale);
    }
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
