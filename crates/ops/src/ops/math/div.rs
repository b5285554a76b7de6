//! `div`.

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::kernels::elementwise::zip_same;
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `input / other`, the true quotient: integers are promoted to float.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast; division of a number by the number zero.
    /// Source: `torch.div` with `rounding_mode=None`.
    "div", eval, [Param::needed("input", Kind::Operand), Param::needed("other", Kind::Operand)],
    plain("div.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (a, b) = (args.take("input"), args.take("other"));
    if let (Value::Scalar(x), Value::Scalar(y)) = (&a, &b) {
        if y.to_f64() == 0.0 {
            return Err(Fault::new("division by zero"));
        }
        return Ok(Value::Scalar(Scalar::Float(x.to_f64() / y.to_f64())));
    }
    let (a, b) = (a.into_float()?, b.into_float()?);
    Ok(Value::Float(zip_same(a, &b, |x, y| x / y)?))
}
