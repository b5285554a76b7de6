//! Maximum and average over windows.

use crate::array::{Array, numel, strides};
use crate::error::Fault;
use crate::kernels::conv::{Axis, Tap, Windows, batched, whole};
use crate::kernels::elementwise::max_nan;
use crate::kernels::reduce::{Layout, fold};
use crate::op::Cx;
use crate::order::{Plan, Sum, accumulate};
use crate::real::Real;
use crate::simd::{Kernel, MulAdd, dispatch};

/// Window parameters, one entry per spatial dimension.
#[derive(Clone, Debug)]
pub struct PoolParams {
    /// Window size, at least 1.
    pub kernel: Vec<usize>,
    /// Stride, at least 1.
    pub stride: Vec<usize>,
    /// Padding, at most half the window.
    pub padding: Vec<usize>,
    /// Dilation, at least 1.
    pub dilation: Vec<usize>,
    /// True where the number of windows is rounded up.
    pub ceil_mode: bool,
}

/// What is taken over a window.
#[derive(Clone, Copy, Debug)]
pub enum Pool {
    /// The maximum; NaN where the window holds one. Padding counts as negative infinity.
    Max,
    /// The mean.
    Average {
        /// True where padding counts as elements of the window.
        count_include_pad: bool,
        /// Divides by this instead.
        divisor: Option<i64>,
    },
}

/// Pools `[N, C, spatial]` or `[C, spatial]`.
///
/// # Errors
/// A fault where ranks or sizes disagree, padding passes half the window, or no window fits.
pub fn pool<T: Real>(
    cx: &Cx,
    x: Array<T>,
    spatial: usize,
    p: &PoolParams,
    kind: Pool,
) -> Result<Array<T>, Fault> {
    let (x, unbatched) = batched(x, spatial)?;
    let mut axes = Vec::new();
    for d in 0..spatial {
        axes.push(axis(x.shape()[2 + d], d, p)?);
    }
    let windows = whole(axes);
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(windows.0[3 - spatial..].iter().map(|a| a.outputs));
    let image = numel(&x.shape()[2..])?;
    let result = windows.outputs();
    let mut out = vec![T::ZERO; numel(&shape)?];
    if image > 0 && result > 0 {
        let plan = cx.plan(windows.taps());
        dispatch(
            cx.variant.fma,
            Windowed { data: x.data(), windows: &windows, plan: &plan, kind, out: &mut out },
        );
    }
    if let Pool::Average { count_include_pad, divisor } = kind {
        let divisors = divisors(&windows, spatial, p, count_include_pad, divisor);
        for plane in out.chunks_exact_mut(result.max(1)) {
            for (v, &d) in plane.iter_mut().zip(&divisors) {
                *v = *v / T::from_i64(d);
            }
        }
    }
    if unbatched {
        shape.remove(0);
    }
    Array::new(shape, out)
}

/// Averages `[N, C, spatial]` or `[C, spatial]` over windows that cut every spatial dimension into `sizes` parts.
///
/// # Errors
/// A fault where the rank is another, a spatial dimension is empty, or the result is too large.
pub fn adaptive_average<T: Real>(cx: &Cx, x: Array<T>, sizes: &[usize]) -> Result<Array<T>, Fault> {
    let spatial = sizes.len();
    let (x, unbatched) = batched(x, spatial)?;
    let input = &x.shape()[2..];
    if input.contains(&0) {
        return Err(Fault(format!("`input` of shape {:?} has an empty spatial dimension", x.shape())));
    }
    let planes = numel(&x.shape()[..2])?;
    let image = numel(input)?;
    let step = strides(input);
    let cells = numel(sizes)?;
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(sizes);
    let mut out = vec![T::ZERO; numel(&shape)?];
    for cell in 0..if planes == 0 { 0 } else { cells } {
        // Offsets of the window's elements in a plane, row-major.
        let mut offsets = vec![0usize];
        let mut rest = cell;
        let mut index = vec![0usize; spatial];
        for d in (0..spatial).rev() {
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        for d in 0..spatial {
            let (i, n, parts, step) = (index[d], input[d], sizes[d], step[d]);
            let (from, to) = (i * n / parts, ((i + 1) * n).div_ceil(parts));
            offsets = offsets.iter().flat_map(|&o| (from..to).map(move |k| o + k * step)).collect();
        }
        let terms = offsets.len();
        let mut windows = Vec::with_capacity(numel(&[planes, terms])?);
        for plane in x.data().chunks_exact(image) {
            windows.extend(offsets.iter().map(|&o| plane[o]));
        }
        let sums = fold::<T, Sum>(cx, &windows, Layout { outer: planes, terms, inner: 1 })?;
        let count = T::from_i64(terms as i64);
        for (plane, sum) in sums.into_iter().enumerate() {
            out[plane * cells + cell] = sum / count;
        }
    }
    if unbatched {
        shape.remove(0);
    }
    Array::new(shape, out)
}

pub(crate) fn axis(size: usize, d: usize, p: &PoolParams) -> Result<Axis, Fault> {
    let (kernel, stride, padding, dilation) = (p.kernel[d], p.stride[d], p.padding[d], p.dilation[d]);
    if padding > kernel / 2 {
        return Err(Fault(format!("`padding` {padding} must be at most half of the kernel size {kernel}")));
    }
    let reach = dilation * (kernel - 1) + 1;
    let padded = size + 2 * padding;
    if reach > padded {
        return Err(Fault(format!(
            "window of reach {reach} does not fit the padded input of size {padded} in spatial dimension {d}"
        )));
    }
    let room = padded - reach;
    let mut outputs = if p.ceil_mode { room.div_ceil(stride) } else { room / stride } + 1;
    // A window that would start in the right padding is dropped.
    if p.ceil_mode && (outputs - 1) * stride >= size + padding {
        outputs -= 1;
    }
    Ok(Axis {
        input: size,
        outputs,
        stride,
        taps: (0..kernel)
            .map(|t| Tap { index: t, offset: (t * dilation) as isize - padding as isize })
            .collect(),
        first: 0,
        every: 1,
    })
}

fn divisors(
    w: &Windows,
    spatial: usize,
    p: &PoolParams,
    count_include_pad: bool,
    divisor: Option<i64>,
) -> Vec<i64> {
    // Elements of window `o` along an axis: with padding up to its right end, or real ones only.
    let extent = |a: &Axis, d: Option<usize>, o: usize| -> i64 {
        let Some(d) = d else { return 1 };
        let (padding, kernel, size) = (p.padding[d] as i64, p.kernel[d] as i64, a.input as i64);
        let start = (o * a.stride) as i64 - padding;
        let end = (start + kernel).min(size + padding);
        if count_include_pad { end - start } else { end.min(size) - start.max(0) }
    };
    let [z, y, x] = &w.0;
    let dim = |axis: usize| (axis + spatial).checked_sub(3);
    let mut out = Vec::with_capacity(w.outputs());
    for oz in 0..z.outputs {
        for oy in 0..y.outputs {
            let zy = extent(z, dim(0), oz) * extent(y, dim(1), oy);
            for ox in 0..x.outputs {
                out.push(divisor.unwrap_or_else(|| zy * extent(x, dim(2), ox)));
            }
        }
    }
    out
}

struct Windowed<'a, T> {
    data: &'a [T],
    windows: &'a Windows,
    plan: &'a Plan,
    kind: Pool,
    out: &'a mut [T],
}

/// Outputs per panel.
const N: usize = 16;

impl<T: Real> Kernel for Windowed<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(self) {
        let image: usize = self.windows.0.iter().map(|a| a.input).product();
        let (result, taps) = (self.windows.outputs(), self.windows.taps());
        let fill = if matches!(self.kind, Pool::Max) { T::NEG_INFINITY } else { T::ZERO };
        let mut panel = vec![fill; taps * N];
        for (plane, out) in self.data.chunks_exact(image).zip(self.out.chunks_exact_mut(result)) {
            let mut p0 = 0;
            while p0 < result {
                let width = N.min(result - p0);
                self.windows.gather(plane, 1, fill, [p0, width, N], &mut panel);
                let values = match self.kind {
                    Pool::Max => {
                        let mut best = [T::NEG_INFINITY; N];
                        for row in panel.chunks_exact(N) {
                            for j in 0..N {
                                best[j] = max_nan(best[j], row[j]);
                            }
                        }
                        best
                    }
                    Pool::Average { .. } => accumulate::<T, Sum, 1, N>(self.plan, |k, acc| {
                        let row: &[T] = &panel[k * N..k * N + N];
                        for j in 0..N {
                            acc[0][j] += row[j];
                        }
                    })[0],
                };
                out[p0..p0 + width].copy_from_slice(&values[..width]);
                p0 += N;
            }
        }
    }
}
