//! Shapes and selections.

pub mod cat;
pub mod expand;
pub mod flatten;
pub mod flip;
pub mod narrow;
pub mod ones_like;
pub mod permute;
pub mod reshape;
pub mod select;
pub mod squeeze;
pub mod stack;
pub mod transpose;
pub mod tril;
pub mod triu;
pub mod unsqueeze;
pub mod view;
pub mod zeros_like;

use crate::array::{Array, Value, per_dtype};
use crate::error::Fault;
use crate::real::Real;

/// Elements of every matrix where `keep(row, column)`, zero elsewhere.
fn masked<T: Real>(x: Value<T>, keep: impl Fn(usize, usize) -> bool) -> Result<Value<T>, Fault> {
    fn apply<E: Copy>(a: Array<E>, zero: E, keep: impl Fn(usize, usize) -> bool) -> Result<Array<E>, Fault> {
        let shape = a.shape().to_vec();
        let [.., rows, columns] = shape[..] else {
            return Err(Fault::new("at least 2 dimensions are needed"));
        };
        let mut data = a.into_data();
        for (k, row) in data.chunks_exact_mut(columns.max(1)).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                if !keep(k % rows, j) {
                    *v = zero;
                }
            }
        }
        Array::new(shape, data)
    }
    Ok(match x {
        Value::Float(a) => Value::Float(apply(a, T::ZERO, keep)?),
        Value::Int(a) => Value::Int(apply(a, 0, keep)?),
        Value::Bool(a) => Value::Bool(apply(a, false, keep)?),
        other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
    })
}

/// Arrays joined along a dimension.
fn joined<T: Real>(all: Vec<Value<T>>, dim: usize) -> Result<Value<T>, Fault> {
    fn join<E: Copy>(all: &[Array<E>], dim: usize) -> Result<Array<E>, Fault> {
        let mut shape = all[0].shape().to_vec();
        shape[dim] = 0;
        for a in all {
            let same = a.rank() == shape.len()
                && a.shape().iter().zip(&shape).enumerate().all(|(i, (x, y))| i == dim || x == y);
            if !same {
                return Err(Fault(format!("sizes must agree but for dimension {dim}")));
            }
            shape[dim] = shape[dim].saturating_add(a.shape()[dim]);
        }
        let count = crate::array::numel(&shape)?;
        let outer: usize = shape[..dim].iter().product();
        let inner: usize = shape[dim + 1..].iter().product();
        let mut out = Vec::with_capacity(count);
        if count > 0 {
            for o in 0..outer {
                for a in all {
                    let len = a.shape()[dim] * inner;
                    out.extend_from_slice(&a.data()[o * len..][..len]);
                }
            }
        }
        Array::new(shape, out)
    }
    let (mut floats, mut ints, mut bools) = (Vec::new(), Vec::new(), Vec::new());
    let count = all.len();
    for x in all {
        match x {
            Value::Float(a) => floats.push(a),
            Value::Int(a) => ints.push(a),
            Value::Bool(a) => bools.push(a),
            other => return Err(Fault(format!("a tensor is needed, not {}", other.what()))),
        }
    }
    match count {
        0 => Err(Fault::new("at least one tensor is needed")),
        n if floats.len() == n => Ok(Value::Float(join(&floats, dim)?)),
        n if ints.len() == n => Ok(Value::Int(join(&ints, dim)?)),
        n if bools.len() == n => Ok(Value::Bool(join(&bools, dim)?)),
        _ => Err(Fault::new("joined tensors need one element type")),
    }
}

/// The range of a dimension; it must be within bounds.
fn part<E: Copy>(a: Array<E>, dim: usize, start: usize, length: usize) -> Result<Array<E>, Fault> {
    let mut shape = a.shape().to_vec();
    let (n, inner) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
    shape[dim] = length;
    let mut out = Vec::with_capacity(crate::array::numel(&shape)?);
    if n * inner > 0 {
        for block in a.data().chunks_exact(n * inner) {
            out.extend_from_slice(&block[start * inner..(start + length) * inner]);
        }
    }
    Array::new(shape, out)
}

/// The elements at one index of a dimension, negative indices from the end.
pub(crate) fn chosen<T: Real>(x: Value<T>, dim: usize, index: i64) -> Result<Value<T>, Fault> {
    let shape = x.shape().unwrap_or_default().to_vec();
    let size = shape[dim] as i64;
    if index < -size || index >= size {
        return Err(Fault(format!("index {index} is out of range for size {size}")));
    }
    let index = if index < 0 { index + size } else { index } as usize;
    let mut target = shape;
    target.remove(dim);
    Ok(per_dtype!(x, a => part(a, dim, index, 1)?.reshaped(target)?, else other => return Err(Fault(format!(
        "a tensor is needed, not {}",
        other.what()
    )))))
}
