//! `where`.

use crate::array::{Array, Value, broadcast_shapes};
use crate::error::Fault;
use crate::kernels::elementwise::{Pair, promote};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `input` where `condition` is true, `other` elsewhere.
    ///
    /// Shapes: any three that broadcast.
    /// Errors: no broadcast; a condition that is not bool.
    /// Source: `torch.where`.
    "where", eval,
    [Param::tensor("condition"), Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("where.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let condition = match args.tensor("condition")? {
        Value::Bool(c) => c,
        other => return Err(Fault(format!("`condition` must be a bool tensor, not {}", other.what()))),
    };
    pick(condition, args.take("input"), args.take("other"))
}

/// `a` where the condition holds, `b` elsewhere.
pub(crate) fn pick<T: Real>(condition: Array<bool>, a: Value<T>, b: Value<T>) -> Result<Value<T>, Fault> {
    Ok(match promote(a, b)? {
        Pair::Float(a, b) => Value::Float(select(condition, a, b)?),
        Pair::Int(a, b) => Value::Int(select(condition, a, b)?),
        Pair::Bool(a, b) => Value::Bool(select(condition, a, b)?),
        Pair::Scalars(a, b) => {
            let (a, b) = (T::from_f64(a.to_f64()), T::from_f64(b.to_f64()));
            Value::Float(condition.map_to(|c| if c { a } else { b }))
        }
    })
}

fn select<E: Copy>(condition: Array<bool>, a: Array<E>, b: Array<E>) -> Result<Array<E>, Fault> {
    let shape = broadcast_shapes(condition.shape(), &broadcast_shapes(a.shape(), b.shape())?)?;
    crate::array::numel(&shape)?;
    let (c, a, b) = (condition.broadcast(&shape), a.broadcast(&shape), b.broadcast(&shape));
    let data = c.data().iter().zip(a.data().iter().zip(b.data())).map(|(&c, (&a, &b))| if c { a } else { b });
    let data = data.collect();
    Array::new(shape, data)
}
