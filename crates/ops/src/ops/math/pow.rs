//! `pow`.

use crate::array::{Array, Scalar, Value};
use crate::error::Fault;
use crate::kernels::elementwise::{Pair, promote, zip_same};
use crate::op::{Args, Cx, Kind, Param, op};
use crate::real::Real;

op! {
    /// `input ** exponent`. The exponents 2, 3, 0.5, -0.5, -1 and -2 given as numbers are computed by products, square
    /// root and reciprocal, as PyTorch does.
    ///
    /// Shapes: any two that broadcast. Two numbers give a number.
    /// Errors: no broadcast; bool tensors; an integer tensor to a negative number; a result out of range.
    /// Source: `torch.pow`.
    "pow", eval, [Param::needed("input", Kind::Operand), Param::needed("exponent", Kind::Operand)],
    plain("pow.cu", each)
}

fn eval<T: Real>(args: &mut Args<T>, _: &Cx) -> Result<Value<T>, Fault> {
    let (base, exponent) = (args.take("input"), args.take("exponent"));
    let fixed = match &exponent {
        Value::Scalar(s) => Some(s.to_f64()),
        _ => None,
    };
    Ok(match promote(base, exponent)? {
        Pair::Float(x, e) => Value::Float(match fixed {
            Some(e) => power(x, e),
            None => zip_same(x, &e, T::pow)?,
        }),
        Pair::Int(x, e) => {
            if fixed.is_some_and(|e| e < 0.0) {
                return Err(Fault::new("integers to negative integer powers are not allowed"));
            }
            Value::Int(zip_same(x, &e, whole)?)
        }
        Pair::Scalars(x, e) => Value::Scalar(numbers(x, e)?),
        Pair::Bool(..) => return Err(Fault::new("bool tensors are not supported here")),
    })
}

/// A power of integers: wrapping; to a negative power only 1 and -1 are other than zero.
fn whole(x: i64, e: i64) -> i64 {
    match x {
        1 => 1,
        -1 => 1 - 2 * (e & 1),
        _ if e < 0 => 0,
        _ => x.wrapping_pow(u32::try_from(e).unwrap_or(u32::MAX)),
    }
}

fn power<T: Real>(x: Array<T>, e: f64) -> Array<T> {
    if e == 2.0 {
        x.map(|x| x * x)
    } else if e == 3.0 {
        x.map(|x| x * x * x)
    } else if e == 0.5 {
        x.map(T::sqrt)
    } else if e == -0.5 {
        x.map(|x| T::ONE / x.sqrt())
    } else if e == -1.0 {
        x.map(|x| T::ONE / x)
    } else if e == -2.0 {
        x.map(|x| T::ONE / (x * x))
    } else {
        let e = T::from_f64(e);
        x.map(|x| x.pow(e))
    }
}

fn numbers(x: Scalar, e: Scalar) -> Result<Scalar, Fault> {
    match (x.to_i64(), e.to_i64().map(u32::try_from)) {
        (Some(x), Some(Ok(e))) => x
            .checked_pow(e)
            .map(Scalar::Int)
            .ok_or_else(|| Fault(format!("{x} ** {e} does not fit in 64 bits"))),
        _ => Ok(Scalar::Float(libm::pow(x.to_f64(), e.to_f64()))),
    }
}
