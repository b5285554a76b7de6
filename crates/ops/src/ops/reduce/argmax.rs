//! `argmax`.

use crate::array::{Array, Value};
use crate::error::Fault;
use crate::kernels::reduce::{beats_max, extreme};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// Index of the largest element as int64: the first where several are equal; the first NaN where there is one. Without
    /// `dim`, the index into the flattened tensor.
    ///
    /// Shapes: any; `dim` (all where absent) is dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range; no terms; bools.
    /// Source: `torch.argmax`.
    "argmax", eval, [Param::tensor("input"), Param::none("dim", Kind::OptInt), Param::flag("keepdim", false)],
    plain("argmax.cu", dims, Operands)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let x = args.tensor("input")?;
    let dims = args.opt_int("dim")?.map(|d| vec![d]);
    let keepdim = args.flag("keepdim")?;
    let index: Array<i64> = match x {
        Value::Float(x) => extreme(x, dims, keepdim, beats_max)?.1,
        Value::Int(x) => extreme(x, dims, keepdim, |x, y| x > y)?.1,
        other => return Err(Fault(format!("argmax is not defined for {}", other.what()))),
    };
    Ok(Value::Int(index))
}
