//! `max`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::kernels::reduce::{beats_max, extreme};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::math::maximum;
use crate::real::Real;

op! {
    /// Maximum. Over everything without `dim`; along an integer `dim` a tuple of (values, indices), the first index where
    /// several are equal; of two tensors element by element where the second argument is a tensor. NaN wins.
    ///
    /// Shapes: any; `dim` is dropped, or kept with size 1 by `keepdim`.
    /// Errors: a dimension out of range; no terms.
    /// Source: `torch.max`.
    "max", eval, [Param::tensor("input"), Param::none("dim", Kind::OptOperand), Param::flag("keepdim", false)],
    plain("max.cu", extreme)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (x, dim, keepdim) = (args.tensor("input")?, args.take("dim"), args.flag("keepdim")?);
    let dims = match dim {
        Value::None => None,
        Value::Scalar(s @ (Scalar::Int(_) | Scalar::Bool(_))) => s.to_i64().map(|d| vec![d]),
        Value::Scalar(Scalar::Float(_)) => {
            return Err(Fault::new("`dim` takes an integer, a tensor or None"));
        }
        other => return maximum::pair(x, other),
    };
    let whole = dims.is_none();
    let (values, index) = match x {
        Value::Float(x) => {
            let (v, i) = extreme(x, dims, keepdim, beats_max)?;
            (Value::Float(v), i)
        }
        Value::Int(x) => {
            let (v, i) = extreme(x, dims, keepdim, |x, y| x > y)?;
            (Value::Int(v), i)
        }
        Value::Bool(x) => {
            let (v, i) = extreme(x, dims, keepdim, |x, y| x & !y)?;
            (Value::Bool(v), i)
        }
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    };
    Ok(if whole { values } else { Value::Tuple(vec![values, Value::Int(index)]) })
}
