//! Boxes of tensors, and windows that may reach beyond a tensor's edge.

use std::ops::Range;

use crate::array::{Array, numel};
use crate::error::Fault;

/// A box: the indices of a range in every dimension, outermost first. Empty for a tensor without dimensions.
pub type Region = Vec<Range<u64>>;

/// Elements of a box.
pub fn region_len(region: &[Range<u64>]) -> Option<u64> {
    region.iter().try_fold(1u64, |n, r| n.checked_mul(r.end.saturating_sub(r.start)))
}

/// Extents of a box.
pub fn extents(region: &[Range<u64>]) -> Vec<u64> {
    region.iter().map(|r| r.end.saturating_sub(r.start)).collect()
}

/// The box that is a whole tensor.
pub fn whole_region(shape: &[u64]) -> Region {
    shape.iter().map(|&n| 0..n).collect()
}

/// The smallest box that holds both.
pub(crate) fn hull(a: &mut Region, b: &[Range<u64>]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = a.start.min(b.start)..a.end.max(b.end);
    }
}

/// What stands where a window lies outside of its tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Nothing: the window is inside.
    Inside,
    /// Zeros.
    Zero,
    /// Negative infinity.
    NegativeInfinity,
}

/// What an operator reads of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// First index per dimension; below 0 in the padding.
    pub(crate) start: Vec<i64>,
    /// Indices per dimension.
    pub(crate) extent: Vec<u64>,
    /// What stands outside of the tensor.
    pub(crate) edge: Edge,
}

impl Window {
    /// The whole tensor.
    pub(crate) fn whole(shape: &[u64]) -> Window {
        Window { start: vec![0; shape.len()], extent: shape.to_vec(), edge: Edge::Inside }
    }

    /// A box inside of the tensor.
    pub(crate) fn of(region: &[Range<u64>]) -> Window {
        Window {
            start: region.iter().map(|r| r.start as i64).collect(),
            extent: extents(region),
            edge: Edge::Inside,
        }
    }

    /// What a tensor of `shape` gives to a box of the shape that it is broadcast to.
    pub(crate) fn broadcast(shape: &[u64], region: &[Range<u64>]) -> Window {
        let lead = region.len().saturating_sub(shape.len());
        let own: Region =
            shape.iter().zip(&region[lead..]).map(|(&n, r)| if n == 1 { 0..1 } else { r.clone() }).collect();
        Window::of(&own)
    }

    /// The part that lies inside of a tensor of `shape`; `None` where none does.
    pub(crate) fn inside(&self, shape: &[u64]) -> Option<Region> {
        self.start
            .iter()
            .zip(&self.extent)
            .zip(shape)
            .map(|((&start, &extent), &n)| {
                let end = i128::from(start) + i128::from(extent);
                let from = u64::try_from(start).unwrap_or(0);
                let to = u64::try_from(end.clamp(0, i128::from(n))).unwrap_or(0);
                (from < to).then_some(from..to)
            })
            .collect()
    }

    /// Elements, padding included.
    pub(crate) fn len(&self) -> Option<u64> {
        self.extent.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }
}

/// Reads a window out of an array that holds the box `have` of its tensor; `edge` stands outside of the
/// tensor.
///
/// # Errors
/// A fault where the window is too large, or reaches outside of `have` without an edge: a bug of the caller.
pub(crate) fn read<E: Copy>(
    array: &Array<E>,
    have: &[Range<u64>],
    window: &Window,
    edge: Option<E>,
) -> Result<Array<E>, Fault> {
    let same = window.start.iter().zip(have).all(|(&s, r)| i64::try_from(r.start) == Ok(s))
        && window.extent == extents(have);
    if same {
        return Ok(array.clone());
    }
    let shape: Vec<usize> = window.extent.iter().map(|&d| d as usize).collect();
    let total = numel(&shape)?;
    // Per dimension: where the window starts in the array (maybe outside) and the array's size.
    let at: Vec<(i64, i64)> =
        window.start.iter().zip(have).map(|(&s, r)| (s - r.start as i64, (r.end - r.start) as i64)).collect();
    let outside = || Fault::new("a window reaches outside of what was evaluated");
    let crosses = at.iter().zip(&shape).any(|(&(from, n), &len)| from < 0 || from + len as i64 > n);
    let mut out = match edge {
        Some(e) => vec![e; total],
        None if crosses => return Err(outside()),
        None => match array.data().first() {
            Some(&any) => vec![any; total],
            None if total == 0 => Vec::new(),
            None => return Err(outside()),
        },
    };
    if total == 0 {
        return Array::new(shape, out);
    }
    let Some((&(from, n), &len)) = at.last().zip(shape.last()) else {
        return Ok(array.clone());
    };
    // The part of every row that is there.
    let (left, right) = ((-from).clamp(0, len as i64) as usize, (n - from).clamp(0, len as i64) as usize);
    let steps = crate::array::strides(array.shape());
    let outer = shape.len() - 1;
    let mut index = vec![0usize; outer];
    for row in out.chunks_exact_mut(len) {
        let mut base = Some(0usize);
        for d in 0..outer {
            let i = at[d].0 + index[d] as i64;
            base = base.filter(|_| i >= 0 && i < at[d].1).map(|b| b + i as usize * steps[d]);
        }
        if let Some(base) = base.filter(|_| left < right) {
            let first = base + (from + left as i64) as usize;
            row[left..right].copy_from_slice(&array.data()[first..first + right - left]);
        }
        for d in (0..outer).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Array::new(shape, out)
}

/// Boxes that together hold exactly the elements of these row-major indices of a tensor of `shape`: runs
/// along the last dimension, joined along the others where they match.
///
/// `indices` ascend without repetition; those beyond the tensor are left out.
pub fn boxes(shape: &[u64], indices: impl IntoIterator<Item = u64>) -> Vec<Region> {
    let total = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).unwrap_or(0);
    let last = shape.last().copied().unwrap_or(1).max(1);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for i in indices.into_iter().take_while(|&i| i < total) {
        match runs.last_mut() {
            // A run ends with its row.
            Some(r) if r.end == i && i % last != 0 => r.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    let mut all: Vec<Region> = runs.iter().map(|r| row_of(shape, r)).collect();
    for d in (0..shape.len().saturating_sub(1)).rev() {
        all = joined(all, d);
    }
    all
}

/// The box of a run that lies within one row.
fn row_of(shape: &[u64], run: &Range<u64>) -> Region {
    let mut rest = run.start;
    let mut out: Region = vec![0..0; shape.len()];
    for (d, &n) in shape.iter().enumerate().rev() {
        let i = rest % n.max(1);
        rest /= n.max(1);
        out[d] = i..i + 1;
    }
    if let Some(r) = out.last_mut() {
        r.end = r.start + (run.end - run.start);
    }
    out
}

/// Boxes that differ only by adjoining in dimension `d` made one, in the order of their first.
fn joined(all: Vec<Region>, d: usize) -> Vec<Region> {
    // What a box must have in common, and where it has to begin in `d`, to the box that it goes on.
    let mut open: std::collections::BTreeMap<(Vec<(u64, u64)>, u64), usize> =
        std::collections::BTreeMap::new();
    let mut out: Vec<Region> = Vec::new();
    for r in all {
        let others: Vec<(u64, u64)> =
            r.iter().enumerate().filter(|(k, _)| *k != d).map(|(_, r)| (r.start, r.end)).collect();
        let (start, end) = (r[d].start, r[d].end);
        let place = match open.remove(&(others.clone(), start)) {
            Some(place) => {
                out[place][d].end = end;
                place
            }
            None => {
                out.push(r);
                out.len() - 1
            }
        };
        open.insert((others, end), place);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reads_what_is_there_and_its_edge_elsewhere() {
        // Rows 1..3 and columns 2..5 of a tensor, value 10 * row + column.
        let have = vec![1..3, 2..5];
        let array = Array::new(vec![2, 3], vec![12, 13, 14, 22, 23, 24]).unwrap();
        let window = Window { start: vec![0, 3], extent: vec![4, 3], edge: Edge::Zero };
        let got = read(&array, &have, &window, Some(0)).unwrap();
        assert_eq!(got.data(), [0, 0, 0, 13, 14, 0, 23, 24, 0, 0, 0, 0]);
        let inner = Window { start: vec![2, 2], extent: vec![1, 2], edge: Edge::Inside };
        assert_eq!(read(&array, &have, &inner, None).unwrap().data(), [22, 23]);
        let far = Window { start: vec![5, 9], extent: vec![2, 2], edge: Edge::Zero };
        assert_eq!(read(&array, &have, &far, Some(7)).unwrap().data(), [7; 4]);
        assert!(read(&array, &have, &far, None).is_err());
    }

    #[test]
    fn boxes_hold_every_index_once() {
        let tile = |rows: Range<u64>, columns: Range<u64>| {
            rows.flat_map(move |r| columns.clone().map(move |c| r * 10 + c)).collect::<Vec<_>>()
        };
        assert_eq!(boxes(&[8, 10], tile(2..5, 4..7)), vec![vec![2..5, 4..7]]);
        assert_eq!(boxes(&[8, 10], tile(0..8, 0..10)), vec![vec![0..8, 0..10]]);
        assert_eq!(boxes(&[80], [0, 1, 2, 7, 79, 80, 81]), vec![vec![0..3], vec![7..8], vec![79..80]]);
        assert_eq!(boxes(&[], [0]), vec![Region::new()]);
        let odd = [0u64, 1, 5, 6, 7, 8, 9, 10, 11, 30, 31, 40, 41, 79];
        let mut seen: Vec<u64> = boxes(&[2, 4, 10], odd)
            .iter()
            .flat_map(|r| {
                let [z, y, x] = [r[0].clone(), r[1].clone(), r[2].clone()];
                z.flat_map(move |z| {
                    let x = x.clone();
                    y.clone().flat_map(move |y| x.clone().map(move |x| (z * 4 + y) * 10 + x))
                })
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, odd);
    }
}
