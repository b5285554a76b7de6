//! Reductions over some dimensions of an array.

use crate::array::{Array, numel};
use crate::error::Fault;
use crate::op::{Cx, wrap_dim};
use crate::order::{Fold, Plan, accumulate};
use crate::real::Real;
use crate::simd::{Kernel, MulAdd, dispatch};

/// An array seen as `[outer, terms, inner]`, reduced over `terms`.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Product of the dimensions before the reduced ones.
    pub outer: usize,
    /// Product of the reduced dimensions.
    pub terms: usize,
    /// Product of the dimensions after the reduced ones.
    pub inner: usize,
}

/// The dimensions to reduce: all where `dims` is absent or empty, sorted.
///
/// # Errors
/// A fault where one is out of range or named twice.
pub fn reduced_dims(dims: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, Fault> {
    let mut out: Vec<usize> = match dims {
        Some(d) if !d.is_empty() => d.into_iter().map(|d| wrap_dim(d, rank)).collect::<Result<_, _>>()?,
        _ => (0..rank).collect(),
    };
    if rank == 0 {
        return Ok(Vec::new());
    }
    out.sort_unstable();
    if out.windows(2).any(|w| w[0] == w[1]) {
        return Err(Fault::new("a dimension appears twice in `dim`"));
    }
    Ok(out)
}

/// The shape that is left after reducing.
pub fn reduced_shape(shape: &[usize], dims: &[usize], keepdim: bool) -> Vec<usize> {
    shape
        .iter()
        .enumerate()
        .filter(|(i, _)| keepdim || !dims.contains(i))
        .map(|(i, &n)| if dims.contains(&i) { 1 } else { n })
        .collect()
}

/// Brings the reduced dimensions together (a copy only where they are not neighbours), ascending `dims`.
///
/// # Errors
/// A fault where the array is too large.
pub fn arrange<E: Copy>(a: Array<E>, dims: &[usize]) -> Result<(Array<E>, Layout), Fault> {
    let neighbours = dims.windows(2).all(|w| w[0] + 1 == w[1]);
    if neighbours {
        let (first, last) =
            (dims.first().copied().unwrap_or(a.rank()), dims.last().map_or(a.rank(), |d| d + 1));
        let layout = Layout {
            outer: numel(&a.shape()[..first])?,
            terms: numel(&a.shape()[first..last])?,
            inner: numel(&a.shape()[last..])?,
        };
        return Ok((a, layout));
    }
    let kept: Vec<usize> = (0..a.rank()).filter(|d| !dims.contains(d)).collect();
    let axes: Vec<usize> = kept.iter().chain(dims).copied().collect();
    let a = a.permuted(&axes);
    let layout =
        Layout { outer: numel(&a.shape()[..kept.len()])?, terms: numel(&a.shape()[kept.len()..])?, inner: 1 };
    Ok((a, layout))
}

/// Folds the terms of every output, `outer * inner` of them, in the plan's order.
///
/// # Errors
/// A fault where the outputs are too many.
pub fn fold<T: Real, F: Fold>(cx: &Cx, data: &[T], layout: Layout) -> Result<Vec<T>, Fault> {
    let mut out = vec![F::start::<T>(); numel(&[layout.outer, layout.inner])?];
    if layout.terms == 0 || out.is_empty() {
        return Ok(out);
    }
    let plan = cx.plan(layout.terms);
    dispatch(
        cx.variant.fma,
        FoldKernel::<T, F> { data, layout, plan: &plan, out: &mut out, fold: std::marker::PhantomData },
    );
    Ok(out)
}

struct FoldKernel<'a, T, F> {
    data: &'a [T],
    layout: Layout,
    plan: &'a Plan,
    out: &'a mut [T],
    fold: std::marker::PhantomData<F>,
}

impl<T: Real, F: Fold> FoldKernel<'_, T, F> {
    /// `N` neighbouring rows, each a contiguous reduction: the rows are independent, so their chains overlap.
    #[inline(always)]
    fn rows<M: MulAdd, const N: usize>(&mut self, row: usize) {
        let terms = self.layout.terms;
        let rows: [&[T]; N] = std::array::from_fn(|r| &self.data[(row + r) * terms..][..terms]);
        let acc = accumulate::<T, F, 1, N>(self.plan, |k, acc| {
            for r in 0..N {
                acc[0][r] = F::step::<T, M>(acc[0][r], rows[r][k]);
            }
        });
        self.out[row..row + N].copy_from_slice(&acc[0]);
    }

    /// `N` neighbouring columns of one outer index.
    #[inline(always)]
    fn columns<M: MulAdd, const N: usize>(&mut self, outer: usize, column: usize) {
        let Layout { terms, inner, .. } = self.layout;
        let block = &self.data[outer * terms * inner..][..terms * inner];
        let acc = accumulate::<T, F, 1, N>(self.plan, |k, acc| {
            let x: &[T] = &block[k * inner + column..][..N];
            for j in 0..N {
                acc[0][j] = F::step::<T, M>(acc[0][j], x[j]);
            }
        });
        self.out[outer * inner + column..][..N].copy_from_slice(&acc[0]);
    }
}

impl<T: Real, F: Fold> Kernel for FoldKernel<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(mut self) {
        let Layout { outer, inner, .. } = self.layout;
        if inner == 1 {
            let mut row = 0;
            while row + 8 <= outer {
                self.rows::<M, 8>(row);
                row += 8;
            }
            while row < outer {
                self.rows::<M, 1>(row);
                row += 1;
            }
            return;
        }
        for o in 0..outer {
            let mut column = 0;
            while column + 32 <= inner {
                self.columns::<M, 32>(o, column);
                column += 32;
            }
            while column + 4 <= inner {
                self.columns::<M, 4>(o, column);
                column += 4;
            }
            while column < inner {
                self.columns::<M, 1>(o, column);
                column += 1;
            }
        }
    }
}

/// For every output, the index of the first term that no later term beats (`beats(candidate, best)`).
pub fn select<E: Copy>(data: &[E], layout: Layout, beats: impl Fn(E, E) -> bool) -> Vec<usize> {
    let Layout { outer, terms, inner } = layout;
    let mut out = vec![0usize; outer * inner];
    if terms == 0 || inner == 0 {
        return out;
    }
    for o in 0..outer {
        let block = &data[o * terms * inner..][..terms * inner];
        let best = &mut out[o * inner..][..inner];
        if inner == 1 {
            let mut b = 0;
            for (k, &x) in block.iter().enumerate().skip(1) {
                if beats(x, block[b]) {
                    b = k;
                }
            }
            best[0] = b;
            continue;
        }
        for (k, row) in block.chunks_exact(inner).enumerate().skip(1) {
            for (j, b) in best.iter_mut().enumerate() {
                if beats(row[j], block[*b * inner + j]) {
                    *b = k;
                }
            }
        }
    }
    out
}

/// The terms at the selected indices.
pub fn selected<E: Copy>(data: &[E], layout: Layout, index: &[usize]) -> Vec<E> {
    let Layout { terms, inner, .. } = layout;
    if terms == 0 {
        return Vec::new();
    }
    index.iter().enumerate().map(|(i, &k)| data[((i / inner) * terms + k) * inner + i % inner]).collect()
}

/// True where `x` replaces `best` in a maximum: larger, or the first NaN.
pub fn beats_max<T: Real>(x: T, best: T) -> bool {
    !best.is_nan() && (x > best || x.is_nan())
}

/// True where `x` replaces `best` in a minimum: smaller, or the first NaN.
pub fn beats_min<T: Real>(x: T, best: T) -> bool {
    !best.is_nan() && (x < best || x.is_nan())
}

/// The extreme terms by `beats` and their indices, both reduced: the first of equals.
///
/// # Errors
/// A fault where a dimension is out of range or there are no terms.
pub fn extreme<E: Copy>(
    x: Array<E>,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    beats: impl Fn(E, E) -> bool,
) -> Result<(Array<E>, Array<i64>), Fault> {
    let dims = reduced_dims(dims, x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, keepdim);
    let (x, layout) = arrange(x, &dims)?;
    if layout.terms == 0 {
        return Err(Fault::new("there are no terms to reduce"));
    }
    let index = select(x.data(), layout, beats);
    let values = selected(x.data(), layout, &index);
    Ok((
        Array::new(shape.clone(), values)?,
        Array::new(shape, index.into_iter().map(|i| i as i64).collect())?,
    ))
}

/// Wrapping integer sums.
///
/// # Errors
/// A fault where a dimension is out of range.
pub fn whole_sum(x: Array<i64>, dims: Option<Vec<i64>>, keepdim: bool) -> Result<Array<i64>, Fault> {
    let dims = reduced_dims(dims, x.rank())?;
    let shape = reduced_shape(x.shape(), &dims, keepdim);
    let (x, layout) = arrange(x, &dims)?;
    let mut out = vec![0i64; numel(&shape)?];
    for (i, &v) in x.data().iter().enumerate() {
        let slot = &mut out[i / (layout.terms * layout.inner) * layout.inner + i % layout.inner];
        *slot = slot.wrapping_add(v);
    }
    Array::new(shape, out)
}
