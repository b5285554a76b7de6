//! `flatten`.

use crate::array::{Value, numel, per_dtype};
use crate::error::Fault;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Dimensions `start_dim` to `end_dim` merged into one.
    ///
    /// Shapes: any; a tensor without dimensions gets one.
    /// Errors: dimensions out of range or in the wrong order.
    /// Source: `torch.flatten`.
    "flatten", eval, [Param::tensor("input"), Param::int("start_dim", Kind::Int, 0), Param::int("end_dim", Kind::Int, -1)],
    plain("copy.cu", as_it_lies)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let (start, end) = (args.dim("start_dim", shape.len())?, args.dim("end_dim", shape.len())?);
    if start > end {
        return Err(Fault::new("`start_dim` comes after `end_dim`"));
    }
    let target = if shape.is_empty() {
        vec![1]
    } else {
        let mut target = shape[..start].to_vec();
        target.push(numel(&shape[start..=end])?);
        target.extend(&shape[end + 1..]);
        target
    };
    Ok(
        per_dtype!(x, a => a.reshaped(target)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
