//! Values during an evaluation: contiguous arrays and Python-like scalars.

use std::sync::Arc;

use assay_tensor::{DType, Tensor};

use crate::error::Fault;
use crate::real::Real;

/// Elements that one intermediate may have. Beyond it an operator refuses instead of exhausting the host.
pub const MAX_ELEMENTS: usize = 1 << 31;

/// Number of elements of a shape.
///
/// # Errors
/// A fault where it overflows or passes [`MAX_ELEMENTS`].
pub fn numel(shape: &[usize]) -> Result<usize, Fault> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= MAX_ELEMENTS)
        .ok_or_else(|| Fault(format!("a tensor of shape {shape:?} is too large to evaluate")))
}

/// Row-major strides, in elements.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut s = vec![1usize; shape.len()];
    for i in (1..shape.len()).rev() {
        s[i - 1] = s[i].saturating_mul(shape[i].max(1));
    }
    s
}

/// A contiguous row-major array; the elements are shared until someone writes.
#[derive(Clone, Debug)]
pub struct Array<E> {
    shape: Vec<usize>,
    data: Arc<Vec<E>>,
}

impl<E: Copy> Array<E> {
    /// An array over elements already at hand.
    ///
    /// # Errors
    /// A fault where the shape holds another number of elements: a fault of the operator that calls.
    pub fn new(shape: Vec<usize>, data: Vec<E>) -> Result<Self, Fault> {
        if numel(&shape)? != data.len() {
            return Err(Fault(format!("{} values do not fill shape {shape:?}", data.len())));
        }
        Ok(Array { shape, data: Arc::new(data) })
    }

    /// An array of one value everywhere.
    ///
    /// # Errors
    /// A fault where the shape is too large.
    pub fn full(shape: Vec<usize>, value: E) -> Result<Self, Fault> {
        let n = numel(&shape)?;
        Ok(Array { shape, data: Arc::new(vec![value; n]) })
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The elements in row-major order.
    pub fn data(&self) -> &[E] {
        &self.data
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The elements, copied only where they are still shared.
    pub fn into_data(self) -> Vec<E> {
        Arc::try_unwrap(self.data).unwrap_or_else(|shared| shared.as_ref().clone())
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// A fault where the number of elements differs.
    pub fn reshaped(self, shape: Vec<usize>) -> Result<Self, Fault> {
        if numel(&shape)? != self.len() {
            return Err(Fault(format!(
                "shape {shape:?} is invalid for a tensor of {} elements (shape {:?})",
                self.len(),
                self.shape
            )));
        }
        Ok(Array { shape, data: self.data })
    }

    /// Every element replaced by `f` of it; in place where this is the only owner.
    pub fn map(mut self, f: impl Fn(E) -> E) -> Self {
        match Arc::get_mut(&mut self.data) {
            Some(own) => {
                for x in own.iter_mut() {
                    *x = f(*x);
                }
                self
            }
            None => Array { shape: self.shape, data: Arc::new(self.data.iter().map(|&x| f(x)).collect()) },
        }
    }

    /// An array of another element type, element by element.
    pub fn map_to<F>(&self, f: impl Fn(E) -> F) -> Array<F> {
        Array { shape: self.shape.clone(), data: Arc::new(self.data.iter().map(|&x| f(x)).collect()) }
    }

    /// Dimensions reordered: output dimension `i` is input dimension `axes[i]`.
    ///
    /// `axes` must be a permutation of the dimensions.
    pub fn permuted(self, axes: &[usize]) -> Self {
        if axes.iter().enumerate().all(|(i, &a)| i == a) {
            return self;
        }
        let from = strides(&self.shape);
        let shape: Vec<usize> = axes.iter().map(|&a| self.shape[a]).collect();
        let step: Vec<usize> = axes.iter().map(|&a| from[a]).collect();
        let data = gather_strided(&self.data, &shape, &step);
        Array { shape, data: Arc::new(data) }
    }

    /// Broadcast to `shape`, which must be compatible (see [`broadcast_shapes`]).
    pub fn broadcast(self, shape: &[usize]) -> Self {
        if self.shape == shape {
            return self;
        }
        let step = broadcast_steps(&self.shape, shape);
        let data = gather_strided(&self.data, shape, &step);
        Array { shape: shape.to_vec(), data: Arc::new(data) }
    }
}

/// Elements at `sum(index[i] * step[i])` over all indices of `shape`, row-major.
fn gather_strided<E: Copy>(data: &[E], shape: &[usize], step: &[usize]) -> Vec<E> {
    let total: usize = if shape.contains(&0) { 0 } else { shape.iter().product() };
    let mut out = Vec::with_capacity(total);
    if total == 0 {
        return out;
    }
    let Some((&inner, &inner_step)) = shape.last().zip(step.last()) else {
        out.push(data[0]);
        return out;
    };
    let outer = shape.len() - 1;
    let mut index = vec![0usize; outer];
    let mut base = 0usize;
    loop {
        match inner_step {
            1 => out.extend_from_slice(&data[base..base + inner]),
            0 => out.extend(std::iter::repeat_n(data[base], inner)),
            s => out.extend((0..inner).map(|i| data[base + i * s])),
        }
        let mut d = outer;
        loop {
            if d == 0 {
                return out;
            }
            d -= 1;
            index[d] += 1;
            base += step[d];
            if index[d] < shape[d] {
                break;
            }
            base -= step[d] * shape[d];
            index[d] = 0;
        }
    }
}

/// Strides of `from` when read under the broadcast shape `to`: 0 along broadcast dimensions.
pub fn broadcast_steps(from: &[usize], to: &[usize]) -> Vec<usize> {
    let own = strides(from);
    let lead = to.len() - from.len();
    (0..to.len())
        .map(|i| if i < lead || (from[i - lead] == 1 && to[i] != 1) { 0 } else { own[i - lead] })
        .collect()
}

/// The shape two shapes broadcast to.
///
/// # Errors
/// A fault that names the first dimension, from the right, where they differ and neither is 1.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Fault> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            (x, y) => {
                Err(Fault(format!("sizes {x} and {y} at dimension {i} do not broadcast ({a:?} with {b:?})")))
            }
        })
        .collect()
}

/// A number, as Python has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Scalar {
    /// An integer where the value is whole, as dims are.
    pub fn from_whole(x: f64) -> Scalar {
        // 2^53: up to here every whole float is exactly that integer.
        let whole = x.trunc() == x && x.abs() <= 9_007_199_254_740_992.0;
        if whole { Scalar::Int(x as i64) } else { Scalar::Float(x) }
    }

    /// As a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
        }
    }

    /// As an integer, where it is one (a bool counts as 0 or 1).
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Scalar::Bool(b) => Some(i64::from(b)),
            Scalar::Int(i) => Some(i),
            Scalar::Float(_) => None,
        }
    }
}

/// What an expression evaluates to; `T` is the precision of every float.
#[derive(Clone, Debug)]
pub enum Value<T> {
    /// Floating-point tensor.
    Float(Array<T>),
    /// Integer tensor, as int64 whatever the input's width was.
    Int(Array<i64>),
    /// Boolean tensor.
    Bool(Array<bool>),
    /// A number.
    Scalar(Scalar),
    /// Several values: a literal tuple, or the results of an operator that has several.
    Tuple(Vec<Value<T>>),
    /// A string.
    Text(String),
    /// Python's `None`.
    None,
}

/// Runs an expression for the array inside a tensor value, whatever its element type, and wraps the result again.
macro_rules! per_dtype {
    ($value:expr, $a:ident => $body:expr, else $other:ident => $fault:expr) => {
        match $value {
            $crate::array::Value::Float($a) => $crate::array::Value::Float($body),
            $crate::array::Value::Int($a) => $crate::array::Value::Int($body),
            $crate::array::Value::Bool($a) => $crate::array::Value::Bool($body),
            $other => $fault,
        }
    };
}
pub(crate) use per_dtype;

impl<T: Real> Value<T> {
    /// A tensor's value: floats converted to `T`, integers to int64.
    ///
    /// # Errors
    /// A fault where the tensor is malformed, too large, or holds a u64 beyond int64.
    pub fn from_tensor(t: &Tensor) -> Result<Self, Fault> {
        let shape: Vec<usize> = t
            .shape
            .iter()
            .map(|&d| usize::try_from(d).map_err(|_| Fault(format!("shape {:?} is too large", t.shape))))
            .collect::<Result<_, _>>()?;
        if numel(&shape)? as u64 != t.len() {
            return Err(Fault(format!("{} elements do not fill shape {:?}", t.len(), t.shape)));
        }
        Ok(match t.dtype {
            DType::Bool => Value::Bool(Array::new(shape, t.data.iter().map(|&b| b != 0).collect())?),
            d if d.is_float() => Value::Float(Array::new(shape, T::read(t))?),
            _ => {
                let ints = (0..t.len())
                    .map(|i| {
                        t.get_i128(i)
                            .and_then(|v| i64::try_from(v).ok())
                            .ok_or_else(|| Fault(format!("element {i} does not fit in int64")))
                    })
                    .collect::<Result<_, _>>()?;
                Value::Int(Array::new(shape, ints)?)
            }
        })
    }

    /// The value as a tensor: floats as f64 or f32 by precision, integers as i64, bools as bool; `None` where it is
    /// not a tensor.
    ///
    /// # Errors
    /// As `Tensor::from_f64`.
    pub fn to_tensor(&self) -> Option<Result<Tensor, assay_tensor::TensorError>> {
        let dims = |s: &[usize]| s.iter().map(|&d| d as u64).collect::<Vec<u64>>();
        match self {
            Value::Float(a) => Some(T::write(&dims(a.shape()), a.data())),
            Value::Int(a) => Some(Tensor::from_i64(&dims(a.shape()), a.data())),
            Value::Bool(a) => Some(Tensor::from_bytes(
                DType::Bool,
                &dims(a.shape()),
                a.data().iter().map(|&b| u8::from(b)).collect(),
            )),
            _ => None,
        }
    }

    /// Shape, where it is a tensor.
    pub fn shape(&self) -> Option<&[usize]> {
        match self {
            Value::Float(a) => Some(a.shape()),
            Value::Int(a) => Some(a.shape()),
            Value::Bool(a) => Some(a.shape()),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Value::Float(_) => "a float tensor",
            Value::Int(_) => "an integer tensor",
            Value::Bool(_) => "a bool tensor",
            Value::Scalar(_) => "a number",
            Value::Tuple(_) => "a tuple",
            Value::Text(_) => "a string",
            Value::None => "None",
        }
    }

    /// A tensor promoted to float; numbers become a tensor without dimensions.
    ///
    /// # Errors
    /// A fault where it is neither.
    pub fn into_float(self) -> Result<Array<T>, Fault> {
        match self {
            Value::Float(a) => Ok(a),
            Value::Int(a) => Ok(a.map_to(T::from_i64)),
            Value::Bool(a) => Ok(a.map_to(|b| if b { T::ONE } else { T::ZERO })),
            Value::Scalar(s) => Array::full(Vec::new(), T::from_f64(s.to_f64())),
            other => Err(Fault(format!("a tensor is needed, not {}", other.what()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permuting_and_broadcasting_follow_strides() {
        let a = Array::new(vec![2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let t = a.clone().permuted(&[1, 0]);
        assert_eq!((t.shape(), t.data()), (&[3, 2][..], &[1, 4, 2, 5, 3, 6][..]));
        let b = Array::new(vec![2, 1], vec![7, 8]).unwrap().broadcast(&[2, 2, 2]);
        assert_eq!(b.data(), &[7, 7, 8, 8, 7, 7, 8, 8]);
        assert_eq!(broadcast_shapes(&[3, 1], &[2]).unwrap(), [3, 2]);
        assert!(broadcast_shapes(&[3], &[2]).is_err());
        assert_eq!(broadcast_shapes(&[0, 1], &[1, 4]).unwrap(), [0, 4]);
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(numel(&[1 << 40, 1 << 40]).is_err());
        assert_eq!(numel(&[1 << 60, 0, 1 << 60]), Ok(0));
    }
}
