//! `squeeze`.

use crate::array::{Value, per_dtype};
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Dimensions of size 1 removed: those in `dim`, all where absent. Others in `dim` stay.
    ///
    /// Shapes: any.
    /// Errors: a dimension out of range.
    /// Source: `torch.squeeze`.
    "squeeze", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInts)],
    plain("copy.cu", as_it_lies)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let shape = x.shape().unwrap_or_default().to_vec();
    let dims = reduced_dims(args.opt_ints("dim")?, shape.len())?;
    let target: Vec<usize> =
        shape.iter().enumerate().filter(|&(i, &n)| n != 1 || !dims.contains(&i)).map(|(_, &n)| n).collect();
    Ok(
        per_dtype!(x, a => a.reshaped(target)?, else other => return Err(Fault(format!("a tensor is needed, not {}", other.what())))),
    )
}
