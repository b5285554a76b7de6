//! Windows over up to three spatial dimensions: convolution and transposed convolution as matrix products whose right
//! panels are gathered on the fly, and the geometry that pooling shares.
//!
//! Lower ranks are the same with leading dimensions of size 1. The terms of one output run over
//! (input channel, taps in row-major order), as in PyTorch's im2col. Padding is a real zero element, so an infinite
//! weight over padding gives NaN.

use crate::array::{Array, numel};
use crate::error::Fault;
use crate::kernels::gemm::{PackedRows, multiply};
use crate::op::Cx;
use crate::real::Real;

/// One kernel position along an axis that a set of outputs uses.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    /// Index along the kernel.
    pub index: usize,
    /// Input coordinate of output position 0.
    pub offset: isize,
}

/// Outputs along one axis that share their taps.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Size of the input.
    pub input: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Input coordinates advance by this per output.
    pub stride: usize,
    /// The taps in ascending order.
    pub taps: Vec<Tap>,
    /// Coordinate of the first output in the whole result.
    pub first: usize,
    /// Distance of two outputs in the whole result.
    pub every: usize,
}

/// A box of outputs over three axes.
#[derive(Clone, Debug)]
pub struct Windows(pub [Axis; 3]);

impl Windows {
    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.0.iter().map(|a| a.outputs).product()
    }

    /// Number of taps.
    pub fn taps(&self) -> usize {
        self.0.iter().map(|a| a.taps.len()).product()
    }

    /// Gathers the windows of outputs `p0..p0 + width` (row-major) from `channels` consecutive images into a panel:
    /// `panel[(channel, tap) * columns + j]`, `fill` where a tap lies outside.
    pub fn gather<T: Real>(
        &self,
        images: &[T],
        channels: usize,
        fill: T,
        [p0, width, columns]: [usize; 3],
        panel: &mut [T],
    ) {
        let [z, y, x] = &self.0;
        let image = z.input * y.input * x.input;
        let inside = |i: isize, n: usize| usize::try_from(i).ok().filter(|&i| i < n);
        let mut done = 0;
        while done < width {
            // A segment of outputs along the last axis.
            let p = p0 + done;
            let x0 = p % x.outputs;
            let len = (x.outputs - x0).min(width - done);
            let (oz, oy) = (p / x.outputs / y.outputs, p / x.outputs % y.outputs);
            let mut k = 0;
            for c in 0..channels {
                let plane = &images[c * image..][..image];
                for tz in &z.taps {
                    let iz = inside((oz * z.stride) as isize + tz.offset, z.input);
                    for ty in &y.taps {
                        let iy = inside((oy * y.stride) as isize + ty.offset, y.input);
                        let row = match (iz, iy) {
                            (Some(iz), Some(iy)) => Some(&plane[(iz * y.input + iy) * x.input..][..x.input]),
                            _ => None,
                        };
                        for tx in &x.taps {
                            let out = &mut panel[k * columns + done..][..len];
                            k += 1;
                            let Some(row) = row else {
                                out.fill(fill);
                                continue;
                            };
                            copy_row(row, (x0 * x.stride) as isize + tx.offset, x.stride, fill, out);
                        }
                    }
                }
            }
            done += len;
        }
    }
}

/// `out[j] = row[from + j * stride]`, `fill` outside of the row.
#[inline]
fn copy_row<T: Copy>(row: &[T], from: isize, stride: usize, fill: T, out: &mut [T]) {
    let (n, step) = (row.len() as isize, stride as isize);
    let before = if from < 0 { ((-from + step - 1) / step).min(out.len() as isize) } else { 0 };
    let fits = if from < n { ((n - from + step - 1) / step).min(out.len() as isize) } else { 0 };
    let (before, fits) = (before as usize, (fits as usize).max(before as usize));
    out[..before].fill(fill);
    out[fits..].fill(fill);
    if before == fits {
        return;
    }
    let start = (from + before as isize * step) as usize;
    if stride == 1 {
        out[before..fits].copy_from_slice(&row[start..start + fits - before]);
    } else {
        for (o, x) in out[before..fits].iter_mut().zip(row[start..].iter().step_by(stride)) {
            *o = *x;
        }
    }
}

/// Parameters of a (transposed) convolution, one entry per spatial dimension.
#[derive(Clone, Debug)]
pub struct ConvParams {
    /// Stride, at least 1.
    pub stride: Vec<usize>,
    /// Zero padding.
    pub padding: Vec<usize>,
    /// Dilation, at least 1.
    pub dilation: Vec<usize>,
    /// Extra size of a transposed convolution's output.
    pub output_padding: Vec<usize>,
    /// Groups, at least 1.
    pub groups: usize,
}

/// Adds leading spatial dimensions of size 1 up to three.
pub fn three(sizes: &[usize], lead: usize) -> [usize; 3] {
    let mut out = [lead; 3];
    for (o, &s) in out.iter_mut().rev().zip(sizes.iter().rev()) {
        *o = s;
    }
    out
}

/// The input `[N, C, spatial]`, with a batch dimension added where it has none; true where it had none.
///
/// # Errors
/// A fault where the rank is neither `spatial + 1` nor `spatial + 2`.
pub fn batched<T: Real>(x: Array<T>, spatial: usize) -> Result<(Array<T>, bool), Fault> {
    if x.rank() == spatial + 2 {
        return Ok((x, false));
    }
    if x.rank() != spatial + 1 {
        return Err(Fault(format!(
            "`input` needs {} or {} dimensions, not {}",
            spatial + 1,
            spatial + 2,
            x.rank()
        )));
    }
    let shape: Vec<usize> = std::iter::once(1).chain(x.shape().iter().copied()).collect();
    Ok((x.reshaped(shape)?, true))
}

/// Convolution (cross-correlation) of `x` `[N, C, spatial]` with `weight` `[O, C / groups, kernel]`.
///
/// # Errors
/// A fault where shapes, groups or sizes disagree, or the kernel is larger than the padded input.
pub fn conv<T: Real>(
    cx: &Cx,
    x: Array<T>,
    weight: &Array<T>,
    bias: Option<&Array<T>>,
    spatial: usize,
    p: &ConvParams,
) -> Result<Array<T>, Fault> {
    let (x, unbatched) = batched(x, spatial)?;
    check_weight(weight, spatial)?;
    let (n, c, o, per_group) = (x.shape()[0], x.shape()[1], weight.shape()[0], weight.shape()[1]);
    let groups = p.groups;
    if c != per_group * groups || o % groups != 0 {
        return Err(Fault(format!(
            "with groups={groups}, `weight` {:?} needs {} input channels and output channels divisible by groups, \
             but `input` has {c} channels",
            weight.shape(),
            per_group * groups
        )));
    }
    check_bias(bias, o)?;
    let mut axes = Vec::new();
    for d in 0..spatial {
        let (size, kernel) = (x.shape()[2 + d], weight.shape()[2 + d]);
        let padded = size + 2 * p.padding[d];
        let reach = p.dilation[d] * (kernel.max(1) - 1) + 1;
        if kernel == 0 || reach > padded {
            return Err(Fault(format!(
                "kernel of reach {reach} does not fit the padded input of size {padded} in spatial dimension {d}"
            )));
        }
        axes.push(Axis {
            input: size,
            outputs: (padded - reach) / p.stride[d] + 1,
            stride: p.stride[d],
            taps: (0..kernel)
                .map(|t| Tap { index: t, offset: (t * p.dilation[d]) as isize - p.padding[d] as isize })
                .collect(),
            first: 0,
            every: 1,
        });
    }
    let windows = whole(axes);
    let spatial_out: Vec<usize> = windows.0[3 - spatial..].iter().map(|a| a.outputs).collect();
    let shape: Vec<usize> = [n, o].into_iter().chain(spatial_out).collect();
    let kernel = windows.taps();
    let out = products(cx, &x, bias, shape, groups, &[windows], |_, oc, c, tap| {
        weight.data()[(oc * per_group + c) * kernel + tap]
    })?;
    unbatch(out, unbatched)
}

/// Transposed convolution of `x` `[N, C, spatial]` with `weight` `[C, O / groups, kernel]`.
///
/// Outputs are grouped by their residue modulo the stride, since those share their taps; the terms of an output run
/// over (input channel, taps that reach it).
///
/// # Errors
/// A fault where shapes, groups or sizes disagree, or the output would be empty in a dimension.
pub fn conv_transpose<T: Real>(
    cx: &Cx,
    x: Array<T>,
    weight: &Array<T>,
    bias: Option<&Array<T>>,
    spatial: usize,
    p: &ConvParams,
) -> Result<Array<T>, Fault> {
    let (x, unbatched) = batched(x, spatial)?;
    check_weight(weight, spatial)?;
    let (n, c, per_group) = (x.shape()[0], x.shape()[1], weight.shape()[1]);
    let groups = p.groups;
    if c != weight.shape()[0] || c % groups != 0 {
        return Err(Fault(format!(
            "`weight` {:?} needs as many input channels as `input` has ({c}), divisible by groups={groups}",
            weight.shape()
        )));
    }
    let o = per_group * groups;
    check_bias(bias, o)?;
    let mut shape = vec![n, o];
    for d in 0..spatial {
        let (size, kernel, stride, dilation) =
            (x.shape()[2 + d], weight.shape()[2 + d], p.stride[d], p.dilation[d]);
        if p.output_padding[d] >= stride.max(dilation) {
            return Err(Fault(format!(
                "`output_padding` {} must be smaller than stride {stride} or dilation {dilation}",
                p.output_padding[d]
            )));
        }
        if kernel == 0 || size == 0 {
            return Err(Fault(format!("spatial dimension {d} of `input` or `weight` is empty")));
        }
        let full = (size - 1) * stride + dilation * (kernel - 1) + p.output_padding[d] + 1;
        let total = full.checked_sub(2 * p.padding[d]).filter(|&t| t > 0).ok_or_else(|| {
            Fault(format!(
                "output of spatial dimension {d} would be empty (full size {full}, padding {} on both sides)",
                p.padding[d]
            ))
        })?;
        shape.push(total);
    }
    // Before anything is made per output.
    numel(&shape)?;
    numel(&shape[2..])?;
    let mut phases: Vec<Vec<Axis>> = Vec::new();
    for d in 0..spatial {
        let (size, kernel, stride, dilation, total) =
            (x.shape()[2 + d], weight.shape()[2 + d], p.stride[d], p.dilation[d], shape[2 + d]);
        phases.push(
            (0..stride.min(total))
                .map(|first| Axis {
                    input: size,
                    outputs: (total - first).div_ceil(stride),
                    stride: 1,
                    taps: (0..kernel)
                        .filter_map(|t| {
                            // Output `o` reads input `i` through tap `t` where o + padding = i * stride + t * dilation.
                            let reach = (first + p.padding[d]) as isize - (t * dilation) as isize;
                            let step = stride as isize;
                            (reach.rem_euclid(step) == 0)
                                .then(|| Tap { index: t, offset: reach.div_euclid(step) })
                        })
                        .collect(),
                    first,
                    every: stride,
                })
                .collect(),
        );
    }
    let kernel: Vec<usize> = weight.shape()[2..].to_vec();
    let mut boxes = vec![Vec::new()];
    for axis in phases {
        boxes = boxes
            .into_iter()
            .flat_map(|b| axis.iter().map(move |a| b.iter().cloned().chain([a.clone()]).collect::<Vec<_>>()))
            .collect();
    }
    let windows: Vec<Windows> = boxes.into_iter().map(whole).collect();
    let [kz, ky, kx] = three(&kernel, 1);
    let out = products(cx, &x, bias, shape, groups, &windows, |w, oc, ic, tap| {
        let [z, y, x] = &w.0;
        let tx = x.taps[tap % x.taps.len()].index;
        let ty = y.taps[tap / x.taps.len() % y.taps.len()].index;
        let tz = z.taps[tap / x.taps.len() / y.taps.len()].index;
        let (group, o) = (oc / per_group, oc % per_group);
        let channel = group * (c / groups) + ic;
        weight.data()[(channel * per_group + o) * (kz * ky * kx) + (tz * ky + ty) * kx + tx]
    })?;
    unbatch(out, unbatched)
}

/// Leading axes of size 1 with the single tap 0, up to three.
pub fn whole(axes: Vec<Axis>) -> Windows {
    let unit = || Axis {
        input: 1,
        outputs: 1,
        stride: 1,
        taps: vec![Tap { index: 0, offset: 0 }],
        first: 0,
        every: 1,
    };
    let mut all = [unit(), unit(), unit()];
    for (slot, axis) in all.iter_mut().rev().zip(axes.into_iter().rev()) {
        *slot = axis;
    }
    Windows(all)
}

/// One matrix product per (group, box of outputs, sample); `weight(box, output channel, channel in group, tap)`.
fn products<T: Real>(
    cx: &Cx,
    x: &Array<T>,
    bias: Option<&Array<T>>,
    shape: Vec<usize>,
    groups: usize,
    boxes: &[Windows],
    weight: impl Fn(&Windows, usize, usize, usize) -> T,
) -> Result<Array<T>, Fault> {
    let (n, c, o) = (shape[0], x.shape()[1], shape[1]);
    let image: usize = numel(&x.shape()[2..])?;
    let result: usize = numel(&shape[2..])?;
    let mut out = vec![T::ZERO; numel(&shape)?];
    let [_, height, width] = three(&shape[2..], 1);
    let (ins, outs) = (c / groups, o / groups);
    for w in boxes {
        let (taps, terms) = (w.taps(), numel(&[ins, w.taps()])?);
        if terms == 0 || w.outputs() == 0 {
            continue;
        }
        let plan = cx.plan(terms);
        let [az, ay, ax] = &w.0;
        let dense = w.0.iter().all(|a| a.every == 1);
        // Where output `p` of the box stands in the whole result.
        let place = |p: usize| {
            let (px, py, pz) = (p % ax.outputs, p / ax.outputs % ay.outputs, p / ax.outputs / ay.outputs);
            ((az.first + pz * az.every) * height + ay.first + py * ay.every) * width
                + ax.first
                + px * ax.every
        };
        for g in 0..groups {
            let a = PackedRows::new(outs, terms, |i, k| weight(w, g * outs + i, k / taps, k % taps))?;
            for sample in 0..n {
                let images = &x.data()[(sample * c + g * ins) * image..][..ins * image];
                let target = &mut out[(sample * o + g * outs) * result..][..outs * result];
                multiply(
                    cx.variant.fma,
                    &plan,
                    &a,
                    w.outputs(),
                    &mut |p0, len, columns, panel| w.gather(images, ins, T::ZERO, [p0, len, columns], panel),
                    &mut |i, p0, values| {
                        let target = &mut target[i * result..][..result];
                        if dense {
                            target[p0..p0 + values.len()].copy_from_slice(values);
                        } else {
                            for (j, &v) in values.iter().enumerate() {
                                target[place(p0 + j)] = v;
                            }
                        }
                    },
                )?;
            }
        }
    }
    if let Some(bias) = bias {
        for (i, channel) in out.chunks_exact_mut(result.max(1)).enumerate() {
            let b = bias.data()[i % o];
            channel.iter_mut().for_each(|v| *v += b);
        }
    }
    Array::new(shape, out)
}

fn unbatch<T: Real>(out: Array<T>, unbatched: bool) -> Result<Array<T>, Fault> {
    if !unbatched {
        return Ok(out);
    }
    let shape = out.shape()[1..].to_vec();
    out.reshaped(shape)
}

fn check_weight<T: Real>(weight: &Array<T>, spatial: usize) -> Result<(), Fault> {
    if weight.rank() != spatial + 2 {
        return Err(Fault(format!("`weight` needs {} dimensions, not {}", spatial + 2, weight.rank())));
    }
    Ok(())
}

fn check_bias<T: Real>(bias: Option<&Array<T>>, channels: usize) -> Result<(), Fault> {
    match bias {
        Some(b) if b.shape() != [channels] => {
            Err(Fault(format!("`bias` needs shape [{channels}], not {:?}", b.shape())))
        }
        _ => Ok(()),
    }
}
