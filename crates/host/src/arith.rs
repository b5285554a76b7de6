//! C++'s arithmetic on the scalars of `types.rs`, without variables or places: what the interpreters of host code
//! share.
//!
//! What C++ leaves undefined is decided here as `types.rs` says.

use crate::ast::{Builtin, Op, Unary};
use crate::types::{Scalar, Value, round};

/// A value, and for a signed integer that did not fit its type the exact result.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// What the operation gives.
    pub value: Value,
    /// The exact result, where it wrapped.
    pub wrapped: Option<i128>,
}

/// Why an operation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No compiler would take it.
    Invalid(String),
    /// It goes wrong when it runs.
    Fault(String),
}

impl From<Value> for Computed {
    fn from(value: Value) -> Computed {
        Computed { value, wrapped: None }
    }
}

/// An exact integer result in its type.
fn int(exact: i128, s: Scalar) -> Computed {
    let (v, wrapped) = s.wrap(exact);
    Computed { value: Value::Int(v, s), wrapped: (wrapped && s.is_signed()).then_some(exact) }
}

/// A unary operator on a scalar (`!` on pointers too).
///
/// # Errors
/// `Invalid` for operands that have no such operator.
pub fn unary(op: Unary, v: &Value) -> Result<Computed, Wrong> {
    let bad = || Wrong::Invalid(format!("a unary operator on a `{}`", v.ty()));
    match (op, v) {
        (Unary::Not, _) => v.truth().map(|t| Value::bool(!t).into()).ok_or_else(bad),
        (Unary::Plus, Value::Int(x, s)) => Ok(Value::Int(*x, s.promoted()).into()),
        (Unary::Plus, Value::Float(..)) => Ok(v.clone().into()),
        (Unary::Minus, Value::Int(x, s)) => Ok(int(-*x, s.promoted())),
        (Unary::Minus, Value::Float(x, s)) => Ok(Value::Float(-x, *s).into()),
        (Unary::BitNot, Value::Int(x, s)) => {
            let s = s.promoted();
            Ok(Value::Int(s.wrap(!*x).0, s).into())
        }
        _ => Err(bad()),
    }
}

/// A binary operator on two scalars; not `&&`, `||` and the comma, which decide what is evaluated.
///
/// # Errors
/// `Invalid` for operands that have no such operator, `Fault` for a division by zero or a shift too wide.
pub fn binary(op: Op, a: &Value, b: &Value) -> Result<Computed, Wrong> {
    let bad = || Wrong::Invalid(format!("an operator on `{}` and `{}`", a.ty(), b.ty()));
    let fault = |what: &str| Wrong::Fault(what.to_owned());
    let (Some(x), Some(y)) = (a.scalar(), b.scalar()) else { return Err(bad()) };
    if matches!(op, Op::Shl | Op::Shr) {
        let (Value::Int(v, _), Value::Int(n, _)) = (a, b) else { return Err(bad()) };
        let s = x.promoted();
        let n = u32::try_from(*n).ok().filter(|n| *n < s.bits());
        let Some(n) = n else {
            return Err(Wrong::Fault(format!("a shift of a `{}` by its width or more", s.name())));
        };
        let exact = if op == Op::Shl { *v << n } else { *v >> n };
        return Ok(int(exact, s));
    }
    let s = Scalar::common(x, y);
    let (Some(a), Some(b)) = (a.to_scalar(s), b.to_scalar(s)) else { return Err(bad()) };
    match (a, b) {
        (Value::Float(a, _), Value::Float(b, _)) => {
            let v = match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                Op::Lt => return Ok(Value::bool(a < b).into()),
                Op::Gt => return Ok(Value::bool(a > b).into()),
                Op::Le => return Ok(Value::bool(a <= b).into()),
                Op::Ge => return Ok(Value::bool(a >= b).into()),
                Op::Eq => return Ok(Value::bool(a == b).into()),
                Op::Ne => return Ok(Value::bool(a != b).into()),
                _ => return Err(Wrong::Invalid("an integer operator on floating-point values".into())),
            };
            // Each float operation in double and then rounded is the float operation: 53 >= 2*24 + 2.
            Ok(Value::Float(round(v, s), s).into())
        }
        (Value::Int(a, _), Value::Int(b, _)) => {
            let exact = match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a.checked_mul(b).unwrap_or_else(|| a.wrapping_mul(b)),
                Op::Div | Op::Rem => {
                    if b == 0 {
                        return Err(fault("a division by zero"));
                    }
                    if s.is_signed() && s.wrap(a / b).1 {
                        return Err(fault("a division whose result does not fit"));
                    }
                    if op == Op::Div { a / b } else { a % b }
                }
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::Lt => return Ok(Value::bool(a < b).into()),
                Op::Gt => return Ok(Value::bool(a > b).into()),
                Op::Le => return Ok(Value::bool(a <= b).into()),
                Op::Ge => return Ok(Value::bool(a >= b).into()),
                Op::Eq => return Ok(Value::bool(a == b).into()),
                Op::Ne => return Ok(Value::bool(a != b).into()),
                Op::Shl | Op::Shr | Op::LogicalAnd | Op::LogicalOr | Op::Comma => return Err(bad()),
            };
            Ok(int(exact, s))
        }
        _ => Err(bad()),
    }
}

/// A mathematical function; `forced` is the type that its C name computes in.
///
/// # Errors
/// `Invalid` for arguments that are no scalars, or too many.
pub fn builtin(f: Builtin, args: &[Value], forced: Option<Scalar>) -> Result<Computed, Wrong> {
    let no_scalar = |a: &Value| Wrong::Invalid(format!("a mathematical function of a `{}`", a.ty()));
    let mut s = forced;
    if s.is_none() {
        for a in args {
            let x = a.scalar().ok_or_else(|| no_scalar(a))?;
            s = Some(s.map_or(x.promoted(), |s| Scalar::common(s, x)));
        }
    }
    let mut s = s.unwrap_or(Scalar::F64);
    // The functions of <cmath> take integers as double.
    if !s.is_float() && !matches!(f, Builtin::Min | Builtin::Max | Builtin::Abs) {
        s = Scalar::F64;
    }
    let mut values = Vec::with_capacity(args.len());
    for a in args {
        values.push(a.to_scalar(s).ok_or_else(|| no_scalar(a))?);
    }
    match values.as_slice() {
        [Value::Int(a, _)] => Ok(int(a.abs(), s)),
        [Value::Int(a, _), Value::Int(b, _)] => {
            Ok(Value::Int(if f == Builtin::Min { *a.min(b) } else { *a.max(b) }, s).into())
        }
        [Value::Float(a, _)] => Ok(Value::Float(real(f, *a, 0.0, s), s).into()),
        [Value::Float(a, _), Value::Float(b, _)] => Ok(Value::Float(real(f, *a, *b, s), s).into()),
        _ => Err(Wrong::Invalid("a mathematical function of these".into())),
    }
}

/// The pinned libm's value, in float or double.
fn real(f: Builtin, a: f64, b: f64, s: Scalar) -> f64 {
    if s == Scalar::F32 {
        let (a, b) = (a as f32, b as f32);
        return f64::from(match f {
            Builtin::Min => libm::fminf(a, b),
            Builtin::Max => libm::fmaxf(a, b),
            Builtin::Abs => libm::fabsf(a),
            Builtin::Ceil => libm::ceilf(a),
            Builtin::Floor => libm::floorf(a),
            Builtin::Sqrt => libm::sqrtf(a),
            Builtin::Rsqrt => 1.0 / libm::sqrtf(a),
            Builtin::Exp => libm::expf(a),
            Builtin::Log => libm::logf(a),
            Builtin::Log2 => libm::log2f(a),
            Builtin::Pow => libm::powf(a, b),
        });
    }
    match f {
        Builtin::Min => libm::fmin(a, b),
        Builtin::Max => libm::fmax(a, b),
        Builtin::Abs => libm::fabs(a),
        Builtin::Ceil => libm::ceil(a),
        Builtin::Floor => libm::floor(a),
        Builtin::Sqrt => libm::sqrt(a),
        Builtin::Rsqrt => 1.0 / libm::sqrt(a),
        Builtin::Exp => libm::exp(a),
        Builtin::Log => libm::log(a),
        Builtin::Log2 => libm::log2(a),
        Builtin::Pow => libm::pow(a, b),
    }
}
