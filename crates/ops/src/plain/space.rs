//! The space of indices that a kernel walks, and the values bound to its parameters.

use std::collections::BTreeMap;

use super::Call;
use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::op::Kind;

/// A tensor as it lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
    /// Distance of neighbours along each dimension, in elements.
    pub strides: Vec<i64>,
    /// Place of the first element, in elements.
    pub offset: i64,
}

impl Strided {
    /// Strides under a shape that this one broadcasts to: 0 along repeated dimensions.
    ///
    /// # Errors
    /// A fault where it does not broadcast.
    pub fn broadcast(&self, to: &[u64]) -> Result<Vec<i64>, Fault> {
        let lead = to.len().checked_sub(self.shape.len());
        let lead = lead.ok_or_else(|| Fault(format!("{:?} does not broadcast to {to:?}", self.shape)))?;
        (0..to.len())
            .map(|i| match i.checked_sub(lead).map(|j| (self.shape[j], self.strides[j])) {
                None => Ok(0),
                Some((n, s)) if n == to[i] => Ok(s),
                Some((1, _)) => Ok(0),
                Some(_) => Err(Fault(format!("{:?} does not broadcast to {to:?}", self.shape))),
            })
            .collect()
    }

    /// A dimension that must be there: its size and stride.
    ///
    /// # Errors
    /// A fault where it is not.
    pub fn dim(&self, d: usize) -> Result<(u64, i64), Fault> {
        match (self.shape.get(d), self.strides.get(d)) {
            (Some(&n), Some(&s)) => Ok((n, s)),
            _ => Err(Fault(format!("a tensor of shape {:?} has no dimension {d}", self.shape))),
        }
    }

    /// Sizes and strides without the last `n` dimensions.
    ///
    /// # Errors
    /// A fault where there are fewer.
    pub fn lead(&self, n: usize) -> Result<Strided, Fault> {
        let keep = self.shape.len().checked_sub(n);
        let keep =
            keep.ok_or_else(|| Fault(format!("shape {:?} has fewer than {n} dimensions", self.shape)))?;
        Ok(Strided {
            shape: self.shape[..keep].to_vec(),
            strides: self.strides[..keep].to_vec(),
            offset: self.offset,
        })
    }
}

/// Row-major strides of a contiguous tensor.
///
/// # Errors
/// A fault where they do not fit in 63 bits.
pub(super) fn contiguous(shape: &[u64]) -> Result<Vec<i64>, Fault> {
    let mut strides = vec![1i64; shape.len()];
    for d in (1..shape.len()).rev() {
        let n = i64::try_from(shape[d].max(1)).ok();
        strides[d - 1] = n
            .and_then(|n| strides[d].checked_mul(n))
            .ok_or_else(|| Fault(format!("a tensor of shape {shape:?} is too large for 63-bit offsets")))?;
    }
    Ok(strides)
}

/// Number of elements.
pub(super) fn numel(shape: &[u64]) -> Result<i64, Fault> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1u64, |n, &d| n.checked_mul(d))
        .and_then(|n| i64::try_from(n).ok())
        .ok_or_else(|| Fault(format!("shape {shape:?} has too many elements for 63 bits")))
}

/// A tensor argument that a parameter of `launch` points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which of the operator's parameters.
    pub param: usize,
    /// Which tensor of a tuple.
    pub item: Option<usize>,
    /// The pointer's distance from the tensor's first element, in elements.
    pub offset: i64,
}

/// The values of `launch`'s parameters for one run, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Pointers to tensor arguments.
    pub tensors: BTreeMap<String, Source>,
    /// Lists of integers.
    pub lists: BTreeMap<String, Vec<i64>>,
    /// Integers and flags.
    pub ints: BTreeMap<String, i64>,
    /// Floats.
    pub floats: BTreeMap<String, f64>,
}

impl Step {
    /// What every frame begins with: tensors, numbers, flags and choices by the operator's names.
    pub fn new(call: &Call<'_>) -> Step {
        let mut step = Step::default();
        for (k, (p, v)) in call.op.params.iter().zip(call.args).enumerate() {
            let optional = matches!(
                p.kind,
                Kind::OptTensor | Kind::OptInt | Kind::OptInts | Kind::OptNumber | Kind::OptOperand
            );
            if optional {
                step.int(&format!("has_{}", p.name), i64::from(!matches!(v, Value::None)));
            }
            let operand = matches!(p.kind, Kind::Operand | Kind::OptOperand | Kind::Tensor | Kind::OptTensor);
            match v {
                Value::Float(_) | Value::Int(_) | Value::Bool(_) => step.point(p.name, k, None, 0),
                Value::Scalar(s) => {
                    if operand {
                        step.point(p.name, k, None, 0);
                    }
                    step.number(p.name, *s);
                }
                Value::None => step.number(p.name, Scalar::Int(0)),
                Value::Text(t) => {
                    if let Kind::Choice(all) = p.kind
                        && let Some(at) = all.iter().position(|c| c == t)
                    {
                        step.int(p.name, at as i64);
                    }
                }
                Value::Tuple(_) => {}
            }
        }
        step
    }

    /// Binds a pointer.
    pub fn point(&mut self, name: &str, param: usize, item: Option<usize>, offset: i64) {
        self.tensors.insert(name.to_owned(), Source { param, item, offset });
    }

    /// Binds an integer.
    pub fn int(&mut self, name: &str, value: i64) {
        self.ints.insert(name.to_owned(), value);
    }

    /// Binds a size.
    ///
    /// # Errors
    /// A fault where it does not fit in 63 bits.
    pub fn size(&mut self, name: &str, value: u64) -> Result<(), Fault> {
        let value = i64::try_from(value).map_err(|_| Fault(format!("size {value} is too large")))?;
        self.int(name, value);
        Ok(())
    }

    /// Binds a list of sizes.
    ///
    /// # Errors
    /// A fault where one does not fit in 63 bits.
    pub fn sizes(&mut self, name: &str, values: &[u64]) -> Result<(), Fault> {
        let list =
            values.iter().map(|&n| i64::try_from(n).map_err(|_| Fault(format!("size {n} is too large"))));
        let list = list.collect::<Result<Vec<i64>, Fault>>()?;
        self.lists.insert(name.to_owned(), list);
        Ok(())
    }

    /// Binds a list.
    pub fn list(&mut self, name: &str, values: Vec<i64>) {
        self.lists.insert(name.to_owned(), values);
    }

    /// Binds a number as a float, and as an integer where it is one.
    fn number(&mut self, name: &str, value: Scalar) {
        self.floats.insert(name.to_owned(), value.to_f64());
        if let Some(i) = value.to_i64() {
            self.int(name, i);
        }
    }
}

/// The indices that a kernel walks: kept dimensions, one thread each, then those that a thread loops over.
///
/// Bound are `shape` and per tensor `NAME_strides` (in elements, 0 where an index does not move it), kept dimensions
/// first; `rank`, `kept` (how many are kept), `rows` and `terms` (indices of the kept and of the other dimensions),
/// `count` (their product), and `inner` (size of the last dimension). Neighbouring dimensions that every tensor
/// walks through evenly are merged; the order of indices stays row-major.
#[derive(Clone, Debug)]
pub struct Space {
    shape: Vec<u64>,
    kept: usize,
    tensors: Vec<(String, Vec<i64>)>,
}

impl Space {
    /// A space whose first `kept` dimensions are kept.
    pub fn new(shape: Vec<u64>, kept: usize) -> Space {
        Space { shape, kept, tensors: Vec::new() }
    }

    /// The strides of a tensor, one per dimension of the space.
    ///
    /// # Errors
    /// A fault where their number differs: a fault of the frame.
    pub fn tensor(&mut self, name: &str, strides: Vec<i64>) -> Result<(), Fault> {
        if strides.len() != self.shape.len() {
            return Err(Fault(format!("{} strides of `{name}` for shape {:?}", strides.len(), self.shape)));
        }
        self.tensors.push((name.to_owned(), strides));
        Ok(())
    }

    /// Binds what the space says.
    ///
    /// # Errors
    /// A fault where a size does not fit in 63 bits.
    pub fn bind(mut self, step: &mut Step) -> Result<(), Fault> {
        let (rows, terms) = (numel(&self.shape[..self.kept])?, numel(&self.shape[self.kept..])?);
        let count = rows.checked_mul(terms).ok_or_else(|| Fault::new("the space has too many indices"))?;
        if count > 0 {
            self.merge();
        }
        step.int("rows", rows);
        step.int("terms", terms);
        step.int("count", count);
        step.int("rank", self.shape.len() as i64);
        step.int("kept", self.kept as i64);
        let inner = if self.shape.len() > self.kept { self.shape.last().copied().unwrap_or(1) } else { 1 };
        step.size("inner", inner)?;
        step.sizes("shape", &self.shape)?;
        for (name, strides) in self.tensors {
            step.list(&format!("{name}_strides"), strides);
        }
        Ok(())
    }

    /// Drops dimensions of size 1 and merges neighbours, within the kept and within the other dimensions.
    fn merge(&mut self) {
        let mut order: Vec<usize> = Vec::new();
        let mut shape: Vec<u64> = Vec::new();
        let mut kept = 0;
        let mut strides: Vec<Vec<i64>> = vec![Vec::new(); self.tensors.len()];
        for (d, &n) in self.shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let joins = order.last().is_some_and(|&before| (before < self.kept) == (d < self.kept))
                && self.tensors.iter().zip(&strides).all(|((_, all), merged)| {
                    let wide = i64::try_from(n).ok().and_then(|n| all[d].checked_mul(n));
                    merged.last().copied() == wide
                });
            let grown = shape.last().and_then(|last| last.checked_mul(n));
            match (joins, grown, shape.last_mut()) {
                (true, Some(grown), Some(last)) => {
                    *last = grown;
                    for ((_, all), merged) in self.tensors.iter().zip(&mut strides) {
                        if let Some(last) = merged.last_mut() {
                            *last = all[d];
                        }
                    }
                }
                _ => {
                    shape.push(n);
                    kept += usize::from(d < self.kept);
                    for ((_, all), merged) in self.tensors.iter().zip(&mut strides) {
                        merged.push(all[d]);
                    }
                }
            }
            order.push(d);
        }
        self.shape = shape;
        self.kept = kept;
        for ((_, all), merged) in self.tensors.iter_mut().zip(strides) {
            *all = merged;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_only_where_every_tensor_walks_evenly() {
        let mut s = Space::new(vec![2, 3, 1, 4, 5], 3);
        s.tensor("a", vec![60, 20, 7, 5, 1]).unwrap();
        s.tensor("b", vec![3, 1, 0, 0, 0]).unwrap();
        let mut step = Step::default();
        s.bind(&mut step).unwrap();
        // The kept dimensions do not merge with the others although `a` is contiguous.
        assert_eq!(step.lists["shape"], [6, 20]);
        assert_eq!(step.lists["a_strides"], [20, 1]);
        assert_eq!(step.lists["b_strides"], [1, 0]);
        let of = |n: &str| step.ints[n];
        assert_eq!([of("rank"), of("kept"), of("rows"), of("terms"), of("inner")], [2, 1, 6, 20, 20]);
    }

    #[test]
    fn an_empty_space_keeps_its_dimensions() {
        let mut s = Space::new(vec![3, 0], 1);
        s.tensor("a", vec![1, 1]).unwrap();
        let mut step = Step::default();
        s.bind(&mut step).unwrap();
        assert_eq!((step.lists["shape"].clone(), step.ints["rows"], step.ints["terms"]), (vec![3, 0], 3, 0));
    }

    #[test]
    fn what_does_not_broadcast_is_refused() {
        let x = Strided { shape: vec![3, 1], strides: vec![1, 1], offset: 0 };
        assert_eq!(x.broadcast(&[2, 3, 4]).unwrap(), [0, 1, 0]);
        assert!(x.broadcast(&[2, 4, 4]).is_err() && x.broadcast(&[3]).is_err());
    }
}
