//! Mean and sum of squared differences of every row.

use crate::array::numel;
use crate::error::Fault;
use crate::op::Cx;
use crate::order::{Plan, Sum, accumulate};
use crate::real::Real;
use crate::simd::{Kernel, MulAdd, dispatch};
use crate::variant::Variance;

/// Mean and sum of squared differences from it, per row of a contiguous `[rows, terms]` array.
pub struct Moments<T> {
    /// Means; NaN for rows without terms.
    pub mean: Vec<T>,
    /// Sums of squared differences.
    pub m2: Vec<T>,
}

/// The moments of `rows` rows of `terms` elements, by the variant's algorithm and order.
///
/// # Errors
/// A fault where the rows are too many.
pub fn moments<T: Real>(cx: &Cx, data: &[T], rows: usize, terms: usize) -> Result<Moments<T>, Fault> {
    let n = numel(&[rows])?;
    let mut out = Moments { mean: vec![T::NAN; n], m2: vec![T::ZERO; n] };
    if terms == 0 {
        return Ok(out);
    }
    let plan = cx.plan(terms);
    dispatch(
        cx.variant.fma,
        Rows { data, terms, plan: &plan, welford: cx.variant.variance == Variance::Welford, out: &mut out },
    );
    Ok(out)
}

struct Rows<'a, T> {
    data: &'a [T],
    terms: usize,
    plan: &'a Plan,
    welford: bool,
    out: &'a mut Moments<T>,
}

impl<T: Real> Rows<'_, T> {
    #[inline(always)]
    fn rows<M: MulAdd, const N: usize>(&mut self, row: usize) {
        let terms = self.terms;
        let rows: [&[T]; N] = std::array::from_fn(|r| &self.data[(row + r) * terms..][..terms]);
        let (mean, m2) = if self.welford {
            welford::<T, M, N>(self.plan, rows)
        } else {
            two_pass::<T, M, N>(self.plan, rows)
        };
        self.out.mean[row..row + N].copy_from_slice(&mean);
        self.out.m2[row..row + N].copy_from_slice(&m2);
    }
}

impl<T: Real> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(mut self) {
        let rows = self.out.mean.len();
        let mut row = 0;
        while row + 8 <= rows {
            self.rows::<M, 8>(row);
            row += 8;
        }
        while row < rows {
            self.rows::<M, 1>(row);
            row += 1;
        }
    }
}

#[inline(always)]
fn two_pass<T: Real, M: MulAdd, const N: usize>(plan: &Plan, rows: [&[T]; N]) -> ([T; N], [T; N]) {
    let count = T::from_f64(rows[0].len() as f64);
    let sum = accumulate::<T, Sum, 1, N>(plan, |k, acc| {
        for r in 0..N {
            acc[0][r] += rows[r][k];
        }
    });
    let mean: [T; N] = std::array::from_fn(|r| sum[0][r] / count);
    let m2 = accumulate::<T, Sum, 1, N>(plan, |k, acc| {
        for r in 0..N {
            let d = rows[r][k] - mean[r];
            acc[0][r] = M::mul_add(d, d, acc[0][r]);
        }
    });
    (mean, m2[0])
}

/// Welford's update within a run (Welford 1962), runs merged by the formula of Chan, Golub and LeVeque 1983.
#[inline(always)]
fn welford<T: Real, M: MulAdd, const N: usize>(plan: &Plan, rows: [&[T]; N]) -> ([T; N], [T; N]) {
    let state = plan.fold(
        |run| {
            let mut mean = [T::ZERO; N];
            let mut m2 = [T::ZERO; N];
            let mut k = run.start;
            let mut count = T::ZERO;
            for _ in 0..run.len {
                count += T::ONE;
                for r in 0..N {
                    let x = rows[r][k];
                    let delta = x - mean[r];
                    mean[r] += delta / count;
                    m2[r] = M::mul_add(delta, x - mean[r], m2[r]);
                }
                k = k.wrapping_add(run.step);
            }
            (count, mean, m2)
        },
        |(na, mut mean, mut m2), (nb, mean_b, m2_b)| {
            let n = na + nb;
            for r in 0..N {
                let delta = mean_b[r] - mean[r];
                mean[r] = M::mul_add(delta, nb / n, mean[r]);
                m2[r] = M::mul_add(delta * delta, na * nb / n, m2[r] + m2_b[r]);
            }
            (n, mean, m2)
        },
    );
    state.map_or(([T::NAN; N], [T::ZERO; N]), |(_, mean, m2)| (mean, m2))
}

/// `(x - mean) * rstd` per row, where `rstd = 1 / sqrt(m2 / terms + eps)`.
///
/// # Errors
/// As [`moments`].
pub fn normalise<T: Real>(cx: &Cx, data: &mut [T], rows: usize, terms: usize, eps: T) -> Result<(), Fault> {
    let m = moments(cx, data, rows, terms)?;
    let count = T::from_f64(terms as f64);
    for (row, x) in data.chunks_exact_mut(terms.max(1)).enumerate().take(rows) {
        let mean = m.mean[row];
        let rstd = T::ONE / (m.m2[row] / count + eps).sqrt();
        for v in x {
            *v = (*v - mean) * rstd;
        }
    }
    Ok(())
}

/// `v * weight + bias`, contracted by the variant, where element `i` belongs to channel `i / inner % channels`.
pub fn affine<T: Real>(
    cx: &Cx,
    data: &mut [T],
    channels: usize,
    inner: usize,
    weight: Option<&[T]>,
    bias: Option<&[T]>,
) {
    if channels == 0 || inner == 0 {
        return;
    }
    dispatch(cx.variant.fma, Affine { data, channels, inner, weight, bias });
}

struct Affine<'a, T> {
    data: &'a mut [T],
    channels: usize,
    inner: usize,
    weight: Option<&'a [T]>,
    bias: Option<&'a [T]>,
}

impl<T: Real> Kernel for Affine<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(self) {
        if self.inner == 1 {
            for row in self.data.chunks_exact_mut(self.channels) {
                match (self.weight, self.bias) {
                    (Some(w), Some(b)) => {
                        for (v, (&w, &b)) in row.iter_mut().zip(w.iter().zip(b)) {
                            *v = M::mul_add(*v, w, b);
                        }
                    }
                    (Some(w), None) => row.iter_mut().zip(w).for_each(|(v, &w)| *v *= w),
                    (None, Some(b)) => row.iter_mut().zip(b).for_each(|(v, &b)| *v += b),
                    (None, None) => return,
                }
            }
            return;
        }
        for (i, plane) in self.data.chunks_exact_mut(self.inner).enumerate() {
            let c = i % self.channels;
            match (self.weight.map(|w| w[c]), self.bias.map(|b| b[c])) {
                (Some(w), Some(b)) => plane.iter_mut().for_each(|v| *v = M::mul_add(*v, w, b)),
                (Some(w), None) => plane.iter_mut().for_each(|v| *v *= w),
                (None, Some(b)) => plane.iter_mut().for_each(|v| *v += b),
                (None, None) => return,
            }
        }
    }
}
