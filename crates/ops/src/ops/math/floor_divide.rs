//! `floor_divide`.

use crate::array::Value;
use crate::error::Fault;
use crate::kernels::elementwise::{Pair, promote, zip, zip_same};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::ops::{floor_div_mod, number, python_mod};
use crate::real::Real;

op! {
    /// The quotient rounded down.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast; bool tensors; an integer divided by zero.
    /// Source: `torch.floor_divide`.
    "floor_divide", eval, [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("floor_divide.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    Ok(match promote(args.take("input"), args.take("other"))? {
        Pair::Float(a, b) => Value::Float(zip_same(a, &b, |x, y| python_mod(x, y).0)?),
        Pair::Int(a, b) => {
            if b.data().contains(&0) {
                return Err(Fault::new("integer division by zero"));
            }
            let (shape, data) = zip(&a, &b, |x, y| floor_div_mod(x, y).0)?;
            Value::Int(crate::array::Array::new(shape, data)?)
        }
        Pair::Scalars(a, b) => {
            if b.to_f64() == 0.0 {
                return Err(Fault::new("division by zero"));
            }
            Value::Scalar(number(a, b, |x, y| Some(floor_div_mod(x, y).0), |x, y| python_mod(x, y).0)?)
        }
        Pair::Bool(..) => return Err(Fault::new("bool tensors are not supported here")),
    })
}
