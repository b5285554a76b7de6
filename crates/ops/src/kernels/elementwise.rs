//! Element-wise functions of one, two or three operands, with broadcasting and type promotion.

use crate::array::{Array, Scalar, Value, broadcast_shapes, broadcast_steps, numel};
use crate::error::Fault;
use crate::real::Real;

/// `f` of two arrays, broadcast against each other.
///
/// # Errors
/// A fault where the shapes do not broadcast.
pub fn zip<A: Copy, B: Copy, C>(
    a: &Array<A>,
    b: &Array<B>,
    f: impl Fn(A, B) -> C,
) -> Result<(Vec<usize>, Vec<C>), Fault> {
    if a.shape() == b.shape() {
        let out = a.data().iter().zip(b.data()).map(|(&x, &y)| f(x, y)).collect();
        return Ok((a.shape().to_vec(), out));
    }
    let shape = broadcast_shapes(a.shape(), b.shape())?;
    let total = numel(&shape)?;
    let mut out = Vec::with_capacity(total);
    if total == 0 {
        return Ok((shape, out));
    }
    let merged = merge(&shape, &broadcast_steps(a.shape(), &shape), &broadcast_steps(b.shape(), &shape));
    let (outer, inner) = merged.split_at(merged.len() - 1);
    let (inner, sa, sb) = inner[0];
    let mut index = vec![0usize; outer.len()];
    let (mut at, mut bt) = (0usize, 0usize);
    loop {
        let (x, y) = (&a.data()[at..], &b.data()[bt..]);
        match (sa, sb) {
            (1, 1) => out.extend(x[..inner].iter().zip(&y[..inner]).map(|(&x, &y)| f(x, y))),
            (1, 0) => out.extend(x[..inner].iter().map(|&x| f(x, y[0]))),
            (0, 1) => out.extend(y[..inner].iter().map(|&y| f(x[0], y))),
            _ => out.extend((0..inner).map(|i| f(x[i * sa], y[i * sb]))),
        }
        let mut d = outer.len();
        loop {
            if d == 0 {
                return Ok((shape, out));
            }
            d -= 1;
            let (size, pa, pb) = outer[d];
            index[d] += 1;
            at += pa;
            bt += pb;
            if index[d] < size {
                break;
            }
            at -= pa * size;
            bt -= pb * size;
            index[d] = 0;
        }
    }
}

/// Dimensions as (size, step of a, step of b), neighbours merged where both operands walk through them evenly.
fn merge(shape: &[usize], a: &[usize], b: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut out: Vec<(usize, usize, usize)> = Vec::with_capacity(shape.len().max(1));
    for ((&n, &sa), &sb) in shape.iter().zip(a).zip(b) {
        match out.last_mut() {
            Some(last) if last.0 == 1 => *last = (n, sa, sb),
            Some(_) if n == 1 => {}
            Some(last) if last.1 == sa * n && last.2 == sb * n => *last = (last.0 * n, sa, sb),
            _ => out.push((n, sa, sb)),
        }
    }
    if out.is_empty() {
        out.push((1, 0, 0));
    }
    out
}

/// `f` of two float arrays, in place where the first is ours and has the result's shape.
///
/// # Errors
/// A fault where the shapes do not broadcast.
pub fn zip_same<E: Copy>(a: Array<E>, b: &Array<E>, f: impl Fn(E, E) -> E) -> Result<Array<E>, Fault> {
    if b.len() == 1 && b.rank() <= a.rank() {
        let y = b.data()[0];
        return Ok(a.map(|x| f(x, y)));
    }
    let (shape, data) = zip(&a, b, f)?;
    Array::new(shape, data)
}

/// Two operands after type promotion.
pub enum Pair<T> {
    /// Both float.
    Float(Array<T>, Array<T>),
    /// Both integer.
    Int(Array<i64>, Array<i64>),
    /// Both bool.
    Bool(Array<bool>, Array<bool>),
    /// Two numbers.
    Scalars(Scalar, Scalar),
}

/// Promotes two operands as PyTorch does: tensors decide over numbers of the same or a lower category
/// (bool < integer < float), numbers of a higher category lift an integer or bool tensor.
///
/// # Errors
/// A fault where one is neither tensor nor number.
pub fn promote<T: Real>(a: Value<T>, b: Value<T>) -> Result<Pair<T>, Fault> {
    if let (Value::Scalar(x), Value::Scalar(y)) = (&a, &b) {
        return Ok(Pair::Scalars(*x, *y));
    }
    let category = |v: &Value<T>| match v {
        Value::Bool(_) | Value::Scalar(Scalar::Bool(_)) => Ok(0),
        Value::Int(_) | Value::Scalar(Scalar::Int(_)) => Ok(1),
        Value::Float(_) | Value::Scalar(Scalar::Float(_)) => Ok(2),
        other => Err(Fault(format!("a tensor or a number is needed, not {}", other.what()))),
    };
    match category(&a)?.max(category(&b)?) {
        2 => Ok(Pair::Float(a.into_float()?, b.into_float()?)),
        1 => Ok(Pair::Int(to_int(a)?, to_int(b)?)),
        _ => Ok(Pair::Bool(to_bool(a)?, to_bool(b)?)),
    }
}

fn to_int<T: Real>(v: Value<T>) -> Result<Array<i64>, Fault> {
    match v {
        Value::Int(a) => Ok(a),
        Value::Bool(a) => Ok(a.map_to(i64::from)),
        Value::Scalar(s) => Array::full(Vec::new(), s.to_i64().unwrap_or(0)),
        other => Err(Fault(format!("an integer is needed, not {}", other.what()))),
    }
}

fn to_bool<T: Real>(v: Value<T>) -> Result<Array<bool>, Fault> {
    match v {
        Value::Bool(a) => Ok(a),
        Value::Scalar(Scalar::Bool(b)) => Array::full(Vec::new(), b),
        other => Err(Fault(format!("a bool is needed, not {}", other.what()))),
    }
}

/// An arithmetic function of two operands: float, integer (wrapping, as PyTorch) or numbers. Bool tensors count as
/// integers where `bools` is `None`.
///
/// # Errors
/// A fault where the operands do not broadcast or promote.
pub fn arithmetic<T: Real>(
    a: Value<T>,
    b: Value<T>,
    float: impl Fn(T, T) -> T,
    int: impl Fn(i64, i64) -> i64,
    number: impl Fn(Scalar, Scalar) -> Result<Scalar, Fault>,
    bools: Option<fn(bool, bool) -> bool>,
) -> Result<Value<T>, Fault> {
    Ok(match (promote(a, b)?, bools) {
        (Pair::Float(a, b), _) => Value::Float(zip_same(a, &b, float)?),
        (Pair::Int(a, b), _) => Value::Int(zip_same(a, &b, int)?),
        (Pair::Bool(a, b), Some(f)) => Value::Bool(zip_same(a, &b, f)?),
        (Pair::Bool(_, _), None) => return Err(Fault::new("bool tensors are not supported here")),
        (Pair::Scalars(a, b), _) => Value::Scalar(number(a, b)?),
    })
}

/// A comparison of two operands, to a bool tensor or a bool.
///
/// # Errors
/// A fault where the operands do not broadcast or promote.
pub fn compare<T: Real>(
    a: Value<T>,
    b: Value<T>,
    float: impl Fn(T, T) -> bool,
    int: impl Fn(i64, i64) -> bool,
    number: impl Fn(f64, f64) -> bool,
) -> Result<Value<T>, Fault> {
    let (shape, data) = match promote(a, b)? {
        Pair::Float(a, b) => zip(&a, &b, float)?,
        Pair::Int(a, b) => zip(&a, &b, int)?,
        Pair::Bool(a, b) => zip(&a, &b, |x, y| int(i64::from(x), i64::from(y)))?,
        Pair::Scalars(a, b) => return Ok(Value::Scalar(Scalar::Bool(number(a.to_f64(), b.to_f64())))),
    };
    Ok(Value::Bool(Array::new(shape, data)?))
}

/// A function that has only float results: integers and bools are promoted; a number stays a number, computed in
/// float64 as Python's `math` does.
///
/// # Errors
/// A fault where the value is neither tensor nor number.
pub fn unary<T: Real>(
    v: Value<T>,
    f: impl Fn(T) -> T,
    number: impl Fn(f64) -> f64,
) -> Result<Value<T>, Fault> {
    match v {
        Value::Scalar(s) => Ok(Value::Scalar(Scalar::Float(number(s.to_f64())))),
        v => Ok(Value::Float(v.into_float()?.map(f))),
    }
}

/// The larger, NaN if either is NaN.
#[inline(always)]
pub fn max_nan<T: Real>(a: T, b: T) -> T {
    if b > a || b.is_nan() { b } else { a }
}

/// The smaller, NaN if either is NaN.
#[inline(always)]
pub fn min_nan<T: Real>(a: T, b: T) -> T {
    if b < a || b.is_nan() { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_pairs_every_element_with_its_own() {
        let a = Array::new(vec![2, 1, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let b = Array::new(vec![2, 1], vec![10, 20]).unwrap();
        let (shape, data) = zip(&a, &b, |x, y| x + y).unwrap();
        assert_eq!(shape, [2, 2, 3]);
        assert_eq!(data, [11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26]);
    }

    #[test]
    fn nan_wins_from_either_side() {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            assert!(max_nan(a, b).is_nan() && min_nan(a, b).is_nan());
        }
        assert_eq!((max_nan(1.0, 2.0), min_nan(1.0, 2.0)), (2.0, 1.0));
    }
}
