//! Softmax statistics of every row: maximum and sum of exponentials.

use super::elementwise::max_nan;
use super::reduce::{self, Layout};
use crate::array::Array;
use crate::error::Fault;
use crate::op::Cx;
use crate::order::Sum;
use crate::real::Real;
use crate::variant::Softmax;

/// Softmax, or its logarithm, along a dimension.
///
/// # Errors
/// A fault where the array is too large.
pub fn along<T: Real>(cx: &Cx, x: Array<T>, dim: usize, log: bool) -> Result<Array<T>, Fault> {
    if x.rank() == 0 {
        let shape = x.shape().to_vec();
        let mut data = x.into_data();
        softmax_rows(cx, &mut data, 1, 1, log)?;
        return Array::new(shape, data);
    }
    // Swapping with the last dimension is its own inverse.
    let mut axes: Vec<usize> = (0..x.rank()).collect();
    axes.swap(dim, x.rank() - 1);
    let x = x.permuted(&axes);
    let (shape, terms) = (x.shape().to_vec(), x.shape()[x.rank() - 1]);
    let rows = x.len().checked_div(terms).unwrap_or(0);
    let mut data = x.into_data();
    softmax_rows(cx, &mut data, rows, terms, log)?;
    Ok(Array::new(shape, data)?.permuted(&axes))
}

/// Replaces every row of a contiguous `[rows, terms]` array by its softmax, or its logarithm.
///
/// The maximum is subtracted first, so large values do not overflow. A row of only negative infinities, one with a
/// positive infinity and one with a NaN are NaN throughout, as in PyTorch.
///
/// # Errors
/// A fault where the rows are too many.
pub fn softmax_rows<T: Real>(
    cx: &Cx,
    data: &mut [T],
    rows: usize,
    terms: usize,
    log: bool,
) -> Result<(), Fault> {
    if terms == 0 || rows == 0 {
        return Ok(());
    }
    match cx.variant.softmax {
        Softmax::TwoPass => two_pass(cx, data, rows, terms, log),
        Softmax::Online => {
            let plan = cx.plan(terms);
            for x in data.chunks_exact_mut(terms) {
                let (max, sum) = plan
                    .fold(
                        |run| {
                            let (mut max, mut sum) = (T::NEG_INFINITY, T::ZERO);
                            let mut k = run.start;
                            for _ in 0..run.len {
                                (max, sum) = online_step(max, sum, x[k]);
                                k = k.wrapping_add(run.step);
                            }
                            (max, sum)
                        },
                        online_merge,
                    )
                    .unwrap_or((T::NEG_INFINITY, T::ZERO));
                if log {
                    let shift = sum.log();
                    x.iter_mut().for_each(|v| *v = (*v - max) - shift);
                } else {
                    x.iter_mut().for_each(|v| *v = (*v - max).exp() / sum);
                }
            }
            Ok(())
        }
    }
}

fn two_pass<T: Real>(cx: &Cx, data: &mut [T], rows: usize, terms: usize, log: bool) -> Result<(), Fault> {
    let layout = Layout { outer: rows, terms, inner: 1 };
    if log {
        let mut exps = Vec::with_capacity(data.len());
        for x in data.chunks_exact_mut(terms) {
            let max = x.iter().copied().fold(T::NEG_INFINITY, max_nan);
            x.iter_mut().for_each(|v| *v = *v - max);
            exps.extend(x.iter().map(|v| v.exp()));
        }
        let sums = reduce::fold::<T, Sum>(cx, &exps, layout)?;
        for (x, sum) in data.chunks_exact_mut(terms).zip(sums) {
            let shift = sum.log();
            x.iter_mut().for_each(|v| *v = *v - shift);
        }
        return Ok(());
    }
    for x in data.chunks_exact_mut(terms) {
        let max = x.iter().copied().fold(T::NEG_INFINITY, max_nan);
        x.iter_mut().for_each(|v| *v = (*v - max).exp());
    }
    let sums = reduce::fold::<T, Sum>(cx, data, layout)?;
    for (x, sum) in data.chunks_exact_mut(terms).zip(sums) {
        x.iter_mut().for_each(|v| *v = *v / sum);
    }
    Ok(())
}

/// One term more: the sum is rescaled where the maximum grows.
#[inline(always)]
fn online_step<T: Real>(max: T, sum: T, x: T) -> (T, T) {
    if x > max {
        // exp(x - x): 1 for a finite maximum, NaN for an infinite one, as in two passes.
        let first = if x == T::INFINITY { T::NAN } else { T::ONE };
        let kept = if sum == T::ZERO { T::ZERO } else { sum * (max - x).exp() };
        (x, kept + first)
    } else if x == T::NEG_INFINITY && !max.is_nan() {
        // Weighs nothing; the difference of two negative infinities would be NaN.
        (max, sum)
    } else {
        (max_nan(max, x), sum + (x - max).exp())
    }
}

/// Two partial results, brought to the larger maximum.
#[inline(always)]
fn online_merge<T: Real>((ma, sa): (T, T), (mb, sb): (T, T)) -> (T, T) {
    let max = max_nan(ma, mb);
    let scale = |m: T, s: T| if s == T::ZERO { T::ZERO } else { s * (m - max).exp() };
    (max, scale(ma, sa) + scale(mb, sb))
}
