//! Losses: element by element without a reduction, else everything.

use std::ops::Range;

use super::{Rule, Work, broadcast_all, everything, pointwise};
use crate::error::Fault;
use crate::sampled::graph::Call;
use crate::sampled::region::{Region, Window};

pub(super) static RULES: &[Rule] = &[
    Rule {
        names: &["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"],
        shape: each_shape,
        work: each,
    },
    Rule { names: &["cross_entropy"], shape: classes_shape, work: classes },
    Rule { names: &["triplet_margin_loss"], shape: triplet_shape, work: triplet },
];

fn reduces(c: &Call) -> Result<bool, Fault> {
    Ok(c.numbers().text("reduction")? != "none")
}

fn each_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    Ok((if reduces(c)? { Vec::new() } else { broadcast_all(c)? }, 1))
}

fn each(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    if reduces(c)? { everything(c, region) } else { pointwise::each(c, region) }
}

/// The class dimension.
fn class_dim(c: &Call) -> Result<usize, Fault> {
    Ok(usize::from(c.needed("input")?.len() > 1))
}

fn classes_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    if reduces(c)? {
        return Ok((Vec::new(), 1));
    }
    let mut shape = c.needed("input")?.to_vec();
    let dim = class_dim(c)?;
    if dim >= shape.len() {
        return Err(Fault::new("`input` needs at least one dimension"));
    }
    shape.remove(dim);
    Ok((shape, 1))
}

fn classes(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    if reduces(c)? {
        return everything(c, region);
    }
    let (x, dim) = (c.needed("input")?, class_dim(c)?);
    let mut input: Region = region.to_vec();
    input.insert(dim, 0..x[dim]);
    let windows = c.tensors.iter().map(|t| match t.param {
        "input" => Window::of(&input),
        // Classes lack the class dimension, probabilities have it.
        "target" if t.shape.len() == x.len() => Window::of(&input),
        "target" => Window::of(region),
        _ => Window::whole(&t.shape),
    });
    Ok(Work::on(windows.collect()))
}

fn triplet_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    if reduces(c)? {
        return Ok((Vec::new(), 1));
    }
    let mut shape = broadcast_all(c)?;
    shape.pop();
    Ok((shape, 1))
}

fn triplet(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    if reduces(c)? {
        return everything(c, region);
    }
    let mut windows = Vec::new();
    for t in &c.tensors {
        let (&last, lead) = t.shape.split_last().ok_or_else(|| Fault::new("a dimension is needed"))?;
        let mut w = Window::broadcast(lead, region);
        w.start.push(0);
        w.extent.push(last);
        windows.push(w);
    }
    Ok(Work::on(windows))
}
