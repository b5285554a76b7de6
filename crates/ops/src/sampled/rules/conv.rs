//! Convolutions: the window of the input that a box of outputs reaches, with its padding as zeros.

use std::ops::Range;

use super::{How, Rule, Work, dims};
use crate::error::Fault;
use crate::sampled::graph::Call;
use crate::sampled::region::{Edge, Window};

pub(super) static RULES: &[Rule] = &[
    Rule { names: &["conv1d", "conv2d", "conv3d"], shape: conv_shape, work: conv },
    Rule {
        names: &["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"],
        shape: transposed_shape,
        work: transposed,
    },
];

/// A call's sizes, one entry per spatial dimension.
struct Sizes {
    input: Vec<u64>,
    weight: Vec<u64>,
    /// 0 or 1 dimension before the channels.
    batch: usize,
    spatial: usize,
    stride: Vec<u64>,
    padding: Vec<u64>,
    dilation: Vec<u64>,
    output_padding: Vec<u64>,
    groups: u64,
}

fn sizes(c: &Call, transposed: bool) -> Result<Sizes, Fault> {
    let (input, weight) = (c.needed("input")?.to_vec(), c.needed("weight")?.to_vec());
    let spatial = weight.len().checked_sub(2).filter(|s| (1..=3).contains(s));
    let spatial = spatial.ok_or_else(|| Fault::new("`weight` needs 3 to 5 dimensions"))?;
    let batch = input.len().checked_sub(spatial + 1).filter(|&b| b < 2).ok_or_else(|| {
        Fault(format!("`input` needs {} or {} dimensions, not {}", spatial + 1, spatial + 2, input.len()))
    })?;
    let mut args = c.numbers();
    let mut of = |name, least| args.sizes(name, spatial, least).map(|s| dims(&s));
    let (stride, padding, dilation) = (of("stride", 1)?, of("padding", 0)?, of("dilation", 1)?);
    let output_padding = if transposed { of("output_padding", 0)? } else { vec![0; spatial] };
    let groups = args.sizes("groups", 1, 1)?[0] as u64;
    // Said here, where the whole shapes are known: a box would hide it.
    let channels = input[batch];
    let fits = if transposed {
        channels == weight[0] && channels % groups == 0
    } else {
        weight[1].checked_mul(groups) == Some(channels) && weight[0] % groups == 0
    };
    if !fits {
        return Err(Fault(format!(
            "with groups={groups}, {channels} channels do not fit `weight` {weight:?}"
        )));
    }
    Ok(Sizes { input, weight, batch, spatial, stride, padding, dilation, output_padding, groups })
}

impl Sizes {
    /// Size of the input in a spatial dimension.
    fn size(&self, d: usize) -> u64 {
        self.input[self.batch + 1 + d]
    }

    /// Distance of the first and the last tap.
    fn reach(&self, d: usize) -> u64 {
        self.dilation[d].saturating_mul(self.weight[2 + d].saturating_sub(1))
    }

    /// The whole groups that hold these output channels, or the part of one: (groups, channels of the
    /// output).
    fn groups_of(&self, channels: &Range<u64>, per_group: u64) -> (Range<u64>, Range<u64>) {
        let first = channels.start / per_group.max(1);
        let last = (channels.end - 1) / per_group.max(1);
        if first == last {
            return (first..first + 1, channels.clone());
        }
        (first..last + 1, first * per_group..(last + 1) * per_group)
    }
}

fn conv_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let s = sizes(c, false)?;
    let mut shape = s.input[..s.batch].to_vec();
    shape.push(s.weight[0]);
    for d in 0..s.spatial {
        let room = s.size(d).saturating_add(2 * s.padding[d]).checked_sub(s.reach(d) + 1);
        let room = room.filter(|_| s.weight[2 + d] > 0);
        let room = room.ok_or_else(|| Fault(format!("the kernel does not fit spatial dimension {d}")))?;
        shape.push(room / s.stride[d] + 1);
    }
    Ok((shape, 1))
}

fn conv(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let s = sizes(c, false)?;
    let channels = &region[s.batch];
    let (groups, outputs) = s.groups_of(channels, s.weight[0] / s.groups);
    let per_group = s.weight[1];
    let inputs = groups.start * per_group..groups.end * per_group;
    let mut window = Window::of(&[&region[..s.batch], std::slice::from_ref(&inputs)].concat());
    for (d, r) in region[s.batch + 1..].iter().enumerate() {
        window.start.push((r.start * s.stride[d]) as i64 - s.padding[d] as i64);
        window.extent.push((r.end - 1 - r.start) * s.stride[d] + s.reach(d) + 1);
    }
    window.edge = Edge::Zero;
    let mut weight = Window::whole(&s.weight);
    (weight.start[0], weight.extent[0]) = (outputs.start as i64, outputs.end - outputs.start);
    let mut crop = vec![0; region.len()];
    crop[s.batch] = channels.start - outputs.start;
    Ok(finish(c, &s, [window, weight], &outputs, &groups, crop).setting_all("padding", &vec![0; s.spatial]))
}

/// The operator on these windows of input and weight, and the bias of these outputs.
fn finish(
    c: &Call,
    s: &Sizes,
    [input, weight]: [Window; 2],
    outputs: &Range<u64>,
    groups: &Range<u64>,
    crop: Vec<u64>,
) -> Work {
    let mut windows = vec![input, weight];
    if c.shape_of("bias").is_some() {
        windows.push(Window::of(std::slice::from_ref(outputs)));
    }
    let work = Work::on(windows).cropped(crop);
    debug_assert_eq!(work.how, How::Operator);
    if s.groups == 1 { work } else { work.setting("groups", (groups.end - groups.start) as i64) }
}

fn transposed_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let s = sizes(c, true)?;
    let mut shape = s.input[..s.batch].to_vec();
    shape.push(s.weight[1] * s.groups);
    for d in 0..s.spatial {
        let full = s.size(d).saturating_sub(1) * s.stride[d] + s.reach(d) + s.output_padding[d] + 1;
        let total = full.checked_sub(2 * s.padding[d]).filter(|&t| t > 0 && s.size(d) > 0);
        shape.push(total.ok_or_else(|| Fault(format!("spatial dimension {d} would be empty")))?);
    }
    Ok((shape, 1))
}

/// Output `o` reads input `i` through tap `t` where `o + padding = i * stride + t * dilation`. From the first
/// input that the box reaches on, with as much padding as brings the box to the start: the taps of every
/// output stay the same, and so do the zeros among its terms.
fn transposed(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let s = sizes(c, true)?;
    let channels = &region[s.batch];
    let per_group = s.weight[1];
    let (groups, outputs) = s.groups_of(channels, per_group);
    let inputs_per_group = s.weight[0] / s.groups;
    let inputs = groups.start * inputs_per_group..groups.end * inputs_per_group;
    let mut window = Window::of(&[&region[..s.batch], std::slice::from_ref(&inputs)].concat());
    let mut padding = Vec::new();
    for (d, r) in region[s.batch + 1..].iter().enumerate() {
        let (stride, reach) = (s.stride[d] as i64, s.reach(d) as i64);
        let first = (r.start + s.padding[d]) as i64 - reach;
        let from = first.div_euclid(stride);
        let pad = (r.start + s.padding[d]) as i64 - from * stride;
        let need = (r.end - 1 - r.start) as i64 + 2 * pad - reach;
        let inputs = need.max(0) as u64;
        window.start.push(from);
        window.extent.push(inputs.div_ceil(s.stride[d]) + 1);
        padding.push(pad as u64);
    }
    window.edge = Edge::Zero;
    let mut weight = Window::whole(&s.weight);
    (weight.start[0], weight.extent[0]) = (inputs.start as i64, inputs.end - inputs.start);
    if groups.end - groups.start == 1 {
        let from = outputs.start - groups.start * per_group;
        (weight.start[1], weight.extent[1]) = (from as i64, outputs.end - outputs.start);
    }
    let mut crop = vec![0; region.len()];
    crop[s.batch] = channels.start - outputs.start;
    Ok(finish(c, &s, [window, weight], &outputs, &groups, crop)
        .setting_all("padding", &padding)
        .setting_all("output_padding", &vec![0; s.spatial]))
}
