//! Reductions: the reduced dimensions whole, a box of the others.

use std::ops::Range;

use super::{Rule, Work, broadcast_all, pointwise};
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::sampled::graph::Call;
use crate::sampled::region::{Region, Window};

pub(super) static RULES: &[Rule] = &[
    Rule {
        names: &[
            "sum",
            "mean",
            "var",
            "std",
            "prod",
            "amax",
            "argmax",
            "amin",
            "argmin",
            "logsumexp",
            "norm",
        ],
        shape,
        work,
    },
    Rule { names: &["max", "min"], shape: extreme_shape, work: extreme },
];

/// The reduced dimensions, and whether they stay with size 1.
fn reduced(c: &Call) -> Result<(Vec<usize>, bool), Fault> {
    let mut args = c.numbers();
    let dims = args.opt_ints("dim")?;
    Ok((reduced_dims(dims, c.needed("input")?.len())?, args.flag("keepdim")?))
}

fn shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (dims, keep) = reduced(c)?;
    let x = c.needed("input")?.iter().enumerate();
    let out = x.filter(|(d, _)| keep || !dims.contains(d));
    Ok((out.map(|(d, &n)| if dims.contains(&d) { 1 } else { n }).collect(), 1))
}

fn work(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (dims, keep) = reduced(c)?;
    let mut kept = region.iter();
    let mut input = Region::new();
    for (d, &n) in c.needed("input")?.iter().enumerate() {
        let own = if keep || !dims.contains(&d) { kept.next() } else { None };
        input.push(match own {
            Some(r) if !dims.contains(&d) => r.clone(),
            _ => 0..n,
        });
    }
    Ok(Work::on(vec![Window::of(&input)]))
}

fn extreme_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    if c.tensors.len() == 2 {
        return Ok((broadcast_all(c)?, 1));
    }
    let results = if c.numbers().opt_int("dim")?.is_some() { 2 } else { 1 };
    Ok((shape(c)?.0, results))
}

fn extreme(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    if c.tensors.len() == 2 { pointwise::each(c, region) } else { work(c, region) }
}
