//! Normalisations: what shares its statistics is taken whole.

use std::ops::Range;

use super::{Rule, Work, with_whole};
use crate::error::Fault;
use crate::sampled::graph::Call;
use crate::sampled::region::Window;

pub(super) static RULES: &[Rule] = &[
    Rule { names: &["layer_norm", "rms_norm"], shape: kept, work: tail },
    Rule { names: &["group_norm"], shape: kept, work: grouped },
    Rule { names: &["instance_norm"], shape: kept, work: instance },
    Rule { names: &["batch_norm"], shape: kept, work: batch },
];

fn kept(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    Ok((c.needed("input")?.to_vec(), 1))
}

fn tail(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let lead = region.len().checked_sub(c.numbers().ints("normalized_shape")?.len());
    let lead = lead.ok_or_else(|| Fault::new("`normalized_shape` has more dimensions than `input`"))?;
    let (input, crop) = with_whole(region, &c.shape, |d| d >= lead);
    let windows = c.tensors.iter().map(|t| match t.param {
        "input" => Window::of(&input),
        _ => Window::whole(&t.shape),
    });
    Ok(Work::on(windows.collect()).cropped(crop))
}

/// A box of the input, and the same channels of everything that has one element per channel.
fn by_channel(c: &Call, input: &[Range<u64>], crop: Vec<u64>) -> Result<Work, Fault> {
    let channels = input.get(1).ok_or_else(|| Fault::new("`input` needs at least 2 dimensions"))?;
    let windows = c.tensors.iter().map(|t| match t.param {
        "input" => Window::of(input),
        _ => Window::of(std::slice::from_ref(channels)),
    });
    Ok(Work::on(windows.collect()).cropped(crop))
}

fn grouped(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let groups = c.numbers().sizes("num_groups", 1, 1)?[0] as u64;
    let channels = c.shape.get(1).copied().filter(|n| n % groups == 0);
    let size = channels.ok_or_else(|| Fault(format!("channels are not divisible by {groups}")))? / groups;
    let (mut input, mut crop) = with_whole(region, &c.shape, |d| d >= 2);
    let (first, last) = (region[1].start / size, (region[1].end - 1) / size);
    input[1] = first * size..(last + 1) * size;
    crop[1] = region[1].start - input[1].start;
    Ok(by_channel(c, &input, crop)?.setting("num_groups", (last + 1 - first) as i64))
}

fn instance(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let own = c.numbers().flag("use_input_stats")?;
    let (input, crop) = with_whole(region, &c.shape, |d| own && d >= 2);
    by_channel(c, &input, crop)
}

fn batch(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let training = c.numbers().flag("training")?;
    let (input, crop) = with_whole(region, &c.shape, |d| training && d != 1);
    by_channel(c, &input, crop)
}
