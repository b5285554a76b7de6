//! Pooling: the window of the input that a box of outputs reaches, with its padding written out.

use std::ops::Range;

use super::{How, Rule, Work, dims, with_whole};
use crate::error::Fault;
use crate::kernels::pool::{PoolParams, axis};
use crate::sampled::graph::Call;
use crate::sampled::region::{Edge, Window};

pub(super) static RULES: &[Rule] = &[
    Rule { names: &["max_pool1d", "max_pool2d", "max_pool3d"], shape, work: max },
    Rule { names: &["avg_pool1d", "avg_pool2d", "avg_pool3d"], shape, work: average },
    Rule {
        names: &["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"],
        shape: adaptive_shape,
        work: adaptive,
    },
];

/// Spatial dimensions, told by the operator's name.
fn spatial(c: &Call) -> usize {
    c.op.name.bytes().rev().nth(1).map_or(1, |b| usize::from(b.saturating_sub(b'0')))
}

/// Dimensions before the spatial ones.
fn lead(c: &Call) -> Result<usize, Fault> {
    let (rank, spatial) = (c.needed("input")?.len(), spatial(c));
    rank.checked_sub(spatial).filter(|l| (1..=2).contains(l)).ok_or_else(|| {
        Fault(format!("`input` needs {} or {} dimensions, not {rank}", spatial + 1, spatial + 2))
    })
}

fn params(c: &Call) -> Result<PoolParams, Fault> {
    let n = spatial(c);
    let mut args = c.numbers();
    let kernel = args.sizes("kernel_size", n, 1)?;
    let dilated = c.op.params.iter().any(|p| p.name == "dilation");
    Ok(PoolParams {
        stride: args.opt_sizes("stride", n, 1)?.unwrap_or_else(|| kernel.clone()),
        padding: args.sizes("padding", n, 0)?,
        dilation: if dilated { args.sizes("dilation", n, 1)? } else { vec![1; n] },
        ceil_mode: args.flag("ceil_mode")?,
        kernel,
    })
}

fn shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (x, p, lead) = (c.needed("input")?, params(c)?, lead(c)?);
    let mut out = x[..lead].to_vec();
    for (d, &size) in x[lead..].iter().enumerate() {
        out.push(axis(size as usize, d, &p)?.outputs as u64);
    }
    Ok((out, 1))
}

fn window(region: &[Range<u64>], lead: usize, p: &PoolParams, edge: Edge) -> Window {
    let mut w = Window::of(&region[..lead]);
    for (d, r) in region[lead..].iter().enumerate() {
        let stride = p.stride[d] as u64;
        w.start.push((r.start * stride) as i64 - p.padding[d] as i64);
        w.extent.push((r.end - 1 - r.start) * stride + (p.dilation[d] * (p.kernel[d] - 1) + 1) as u64);
    }
    w.edge = edge;
    w
}

fn max(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (p, lead) = (params(c)?, lead(c)?);
    let mut work = Work::on(vec![window(region, lead, &p, Edge::NegativeInfinity)]);
    work = work.setting_all("padding", &vec![0; p.kernel.len()]);
    // The last window of the box ends with the box's input.
    work.set.push(("ceil_mode", super::Known::Scalar(super::Scalar::Bool(false))));
    Ok(work)
}

fn average(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (p, lead) = (params(c)?, lead(c)?);
    let mut args = c.numbers();
    let include = args.flag("count_include_pad")?;
    let has_divisor = c.op.params.iter().any(|q| q.name == "divisor_override");
    let divisor = if has_divisor { args.opt_int("divisor_override")? } else { None };
    if divisor == Some(0) {
        return Err(Fault::new("`divisor_override` must not be zero"));
    }
    let sizes = &c.needed("input")?[lead..];
    let counts = (0..sizes.len()).map(|d| {
        let (size, padding, kernel) = (sizes[d] as i64, p.padding[d] as i64, p.kernel[d] as i64);
        let extent = |o: u64| {
            let start = (o * p.stride[d] as u64) as i64 - padding;
            let end = (start + kernel).min(size + padding);
            if include { end - start } else { end.min(size) - start.max(0) }
        };
        let fixed = divisor.map(|v| if d == 0 { v } else { 1 });
        region[lead + d].clone().map(|o| fixed.unwrap_or_else(|| extent(o))).collect()
    });
    let counts = counts.collect();
    let mut work = Work::on(vec![window(region, lead, &p, Edge::Zero)]);
    work.how = How::Average { kernel: p.kernel, stride: p.stride, counts };
    Ok(work)
}

fn adaptive_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let lead = lead(c)?;
    let mut out = c.needed("input")?[..lead].to_vec();
    out.extend(dims(&c.numbers().sizes("output_size", spatial(c), 0)?));
    Ok((out, 1))
}

/// All windows of the planes: their sizes differ with their place.
fn adaptive(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let lead = lead(c)?;
    let x = c.needed("input")?;
    let (input, _) = with_whole(region, x, |d| d >= lead);
    let (_, crop) = with_whole(region, &c.shape, |d| d >= lead);
    Ok(Work::on(vec![Window::of(&input)]).cropped(crop))
}
