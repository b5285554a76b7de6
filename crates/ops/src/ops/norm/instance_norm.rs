//! `instance_norm`.

use super::batch_norm::with_running;
use super::group_norm::grouped;
use crate::array::Value;
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Normalises every channel of every sample by its own mean and biased variance, or by the running ones without
    /// `use_input_stats`; the running statistics are not updated.
    ///
    /// Shapes: `[n, c, ..]` with a spatial dimension, the others `[c]`.
    /// Errors: shapes that differ; one element per channel; no running statistics where they are used.
    /// Source: `torch.nn.functional.instance_norm`.
    "instance_norm", eval,
    [
        Param::tensor("input"),
        Param::none("running_mean", Kind::OptTensor),
        Param::none("running_var", Kind::OptTensor),
        Param::none("weight", Kind::OptTensor),
        Param::none("bias", Kind::OptTensor),
        Param::flag("use_input_stats", true),
        Param::float("momentum", 0.1),
        Param::float("eps", 1e-5),
    ],
    plain("normalise.cu", instances)
}

fn eval<T: Real>(args: &mut Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    let x = args.float("input")?;
    let (weight, bias, eps) = (args.opt_float("weight")?, args.opt_float("bias")?, args.real("eps")?);
    if x.rank() < 3 {
        return Err(Fault::new("`input` needs at least 3 dimensions"));
    }
    if !args.flag("use_input_stats")? {
        let (mean, var) = (args.opt_float("running_mean")?, args.opt_float("running_var")?);
        return Ok(Value::Float(with_running(cx, x, mean, var, weight, bias, eps)?));
    }
    if x.shape()[2..].iter().all(|&d| d == 1) {
        return Err(Fault::new("more than 1 element per channel is needed"));
    }
    let channels = x.shape()[1];
    if channels == 0 {
        return Ok(Value::Float(x));
    }
    Ok(Value::Float(grouped(cx, x, channels, weight, bias, eps)?))
}
