//! Shapes and selections: every element is an element of an argument, whose place is worked out.

use std::ops::Range;

use super::{How, Rule, Work, dims, sizes};
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::op::wrap_dim;
use crate::ops::shape::reshape::inferred;
use crate::sampled::graph::Call;
use crate::sampled::region::{Region, Window, extents, region_len};

pub(super) static RULES: &[Rule] = &[
    Rule { names: &["transpose", "permute"], shape: permuted_shape, work: permuted },
    Rule {
        names: &["reshape", "view", "flatten", "unsqueeze", "squeeze"],
        shape: reshaped_shape,
        work: reshaped,
    },
    Rule { names: &["expand"], shape: expanded_shape, work: expanded },
    Rule { names: &["cat"], shape: joined_shape, work: joined },
    Rule { names: &["stack"], shape: stacked_shape, work: stacked },
    Rule { names: &["flip"], shape: flipped_shape, work: flipped },
    Rule { names: &["narrow"], shape: narrowed_shape, work: narrowed },
    Rule { names: &["select"], shape: selected_shape, work: selected },
];

/// Input dimension of every output dimension.
fn axes(c: &Call) -> Result<Vec<usize>, Fault> {
    let rank = c.needed("input")?.len();
    let mut args = c.numbers();
    if c.op.name == "permute" {
        let axes: Vec<usize> =
            args.ints("dims")?.into_iter().map(|d| wrap_dim(d, rank)).collect::<Result<_, _>>()?;
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..rank) {
            return Err(Fault(format!("`dims` must name each of the {rank} dimensions once")));
        }
        return Ok(axes);
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    let (a, b) = (args.dim("dim0", rank)?, args.dim("dim1", rank)?);
    if rank > 0 {
        axes.swap(a, b);
    }
    Ok(axes)
}

fn permuted_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let x = c.needed("input")?;
    Ok((axes(c)?.into_iter().map(|a| x[a]).collect(), 1))
}

fn permuted(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let mut input: Region = vec![0..0; region.len()];
    for (r, a) in region.iter().zip(axes(c)?) {
        input[a] = r.clone();
    }
    Ok(Work::on(vec![Window::of(&input)]))
}

fn reshaped_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let x = c.needed("input")?;
    let mut args = c.numbers();
    let target = match c.op.name {
        "flatten" => {
            let (start, end) = (args.dim("start_dim", x.len())?, args.dim("end_dim", x.len())?);
            if start > end {
                return Err(Fault::new("`start_dim` comes after `end_dim`"));
            }
            if x.is_empty() {
                vec![1]
            } else {
                let merged = x[start..=end].iter().try_fold(1u64, |n, &d| n.checked_mul(d));
                let merged = merged.ok_or_else(|| Fault::new("the shape is too large"))?;
                [&x[..start], &[merged], &x[end + 1..]].concat()
            }
        }
        "unsqueeze" => {
            let mut shape = x.to_vec();
            shape.insert(args.dim("dim", x.len() + 1)?, 1);
            shape
        }
        "squeeze" => {
            let gone = reduced_dims(args.opt_ints("dim")?, x.len())?;
            let kept = x.iter().enumerate().filter(|(d, n)| **n != 1 || !gone.contains(d));
            kept.map(|(_, &n)| n).collect()
        }
        _ => {
            let name = if c.op.name == "view" { "size" } else { "shape" };
            dims(&inferred(&args.ints(name)?, sizes(x).iter().product())?)
        }
    };
    let count = |s: &[u64]| s.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    if count(x) != count(&target) {
        return Err(Fault(format!("shape {target:?} is invalid for a tensor of shape {x:?}")));
    }
    Ok((target, 1))
}

/// Dimensions of two shapes with the same number of elements, cut into groups that have as many each.
fn groups(a: &[u64], b: &[u64]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (i0, j0) = (i, j);
        let take = |s: &[u64], k: &mut usize| {
            let n = s.get(*k).copied().unwrap_or(1);
            *k = (*k + 1).min(s.len());
            n
        };
        let (mut x, mut y) = (take(a, &mut i), take(b, &mut j));
        while x != y {
            if x < y {
                x *= take(a, &mut i);
            } else {
                y *= take(b, &mut j);
            }
        }
        out.push((i0..i, j0..j));
    }
    out
}

/// Row-major index of a place in a shape.
fn linear(at: impl Iterator<Item = u64>, shape: &[u64]) -> u64 {
    at.zip(shape).fold(0, |n, (i, d)| n * d + i)
}

/// And back.
fn place(mut index: u64, shape: &[u64]) -> Vec<u64> {
    let mut at = vec![0; shape.len()];
    for (i, &d) in at.iter_mut().zip(shape).rev() {
        *i = index % d;
        index /= d;
    }
    at
}

fn reshaped(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let x = c.needed("input")?;
    let groups = groups(x, &c.shape);
    let mut input: Region = Vec::new();
    for (from, to) in &groups {
        let (shape, own, out) = (&x[from.clone()], &c.shape[to.clone()], &region[to.clone()]);
        let lowest = place(linear(out.iter().map(|r| r.start), own), shape);
        let highest = place(linear(out.iter().map(|r| r.end - 1), own), shape);
        // The box around everything from the lowest to the highest element.
        let differ = lowest.iter().zip(&highest).position(|(a, b)| a != b).unwrap_or(shape.len());
        for (d, (&a, &b)) in lowest.iter().zip(&highest).enumerate() {
            input.push(if d <= differ { a..b + 1 } else { 0..shape[d] });
        }
    }
    // A box that fills its window has the window's order.
    let filled = region_len(region) == region_len(&input);
    let mut work = Work::on(vec![Window::of(&input)]);
    if filled {
        work.how = How::Reshape;
        return Ok(work);
    }
    // Where every element of the box stands in the window, group by group.
    let mut lookup = vec![0usize];
    for (from, to) in &groups {
        let (shape, own, out) = (&x[from.clone()], &c.shape[to.clone()], &region[to.clone()]);
        let window = &input[from.clone()];
        let (has, wants) = (extents(window), extents(out));
        let (size, count) = (has.iter().product::<u64>() as usize, wants.iter().product::<u64>());
        let offsets: Vec<usize> = if size as u64 == count {
            (0..size).collect()
        } else {
            (0..count)
                .map(|k| {
                    let at = place(k, &wants).into_iter().zip(out).map(|(i, r)| r.start + i);
                    let at = place(linear(at, own), shape).into_iter().zip(window).map(|(i, r)| i - r.start);
                    linear(at, &has) as usize
                })
                .collect()
        };
        lookup = lookup.iter().flat_map(|&base| offsets.iter().map(move |o| base * size + o)).collect();
    }
    work.how = How::Lookup(lookup);
    Ok(work)
}

fn expanded_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (x, size) = (c.needed("input")?, c.numbers().ints("size")?);
    let lead = size.len().checked_sub(x.len());
    let lead = lead.ok_or_else(|| Fault(format!("`size` {size:?} has fewer dimensions than the tensor")))?;
    let target = size.iter().enumerate().map(|(i, &s)| match i.checked_sub(lead).map(|j| x[j]) {
        Some(own) if s == -1 || i64::try_from(own) == Ok(s) => Ok(own),
        Some(1) | None if s >= 0 => Ok(s as u64),
        _ => Err(Fault(format!("shape {x:?} does not expand to {size:?}"))),
    });
    Ok((target.collect::<Result<_, _>>()?, 1))
}

fn expanded(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let window = Window::broadcast(c.needed("input")?, region);
    Ok(Work::on(vec![window]).setting_all("size", &extents(region)))
}

fn joined_dim(c: &Call, more: usize) -> Result<usize, Fault> {
    let first = c.tensors.first().ok_or_else(|| Fault::new("at least one tensor is needed"))?;
    wrap_dim(c.numbers().int("dim")?, first.shape.len() + more)
}

fn joined_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let dim = joined_dim(c, 0)?;
    let mut shape = c.tensors[0].shape.clone();
    if shape.is_empty() {
        return Err(Fault::new("tensors with at least one dimension are needed"));
    }
    shape[dim] = 0;
    for t in &c.tensors {
        let same = t.shape.len() == shape.len()
            && t.shape.iter().zip(&shape).enumerate().all(|(d, (a, b))| d == dim || a == b);
        if !same {
            return Err(Fault(format!("sizes must agree but for dimension {dim}")));
        }
        shape[dim] = shape[dim].saturating_add(t.shape[dim]);
    }
    Ok((shape, 1))
}

fn joined(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let dim = joined_dim(c, 0)?;
    let mut work = Work::on(Vec::new());
    let mut first = 0;
    for t in &c.tensors {
        let end = first + t.shape[dim];
        let (from, to) = (region[dim].start.max(first), region[dim].end.min(end));
        work.windows.push((from < to).then(|| {
            let mut part = region.to_vec();
            part[dim] = from - first..to - first;
            Window::of(&part)
        }));
        first = end;
    }
    Ok(work)
}

fn stacked_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let dim = joined_dim(c, 1)?;
    let mut shape = c.tensors[0].shape.clone();
    if c.tensors.iter().any(|t| t.shape != shape) {
        return Err(Fault::new("stacked tensors need equal shapes"));
    }
    shape.insert(dim, c.tensors.len() as u64);
    Ok((shape, 1))
}

fn stacked(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let dim = joined_dim(c, 1)?;
    let mut part = region.to_vec();
    let wanted = part.remove(dim);
    let mut work = Work::on(Vec::new());
    work.windows =
        (0..c.tensors.len() as u64).map(|k| wanted.contains(&k).then(|| Window::of(&part))).collect();
    Ok(work)
}

fn flipped_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    Ok((c.needed("input")?.to_vec(), 1))
}

fn flipped(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let given = c.numbers().ints("dims")?;
    let dims = if given.is_empty() { Vec::new() } else { reduced_dims(Some(given), region.len())? };
    let mut input = region.to_vec();
    for d in dims {
        let n = c.shape[d];
        input[d] = n - region[d].end..n - region[d].start;
    }
    Ok(Work::on(vec![Window::of(&input)]))
}

/// Dimension, first index and length of a `narrow`.
fn part(c: &Call) -> Result<(usize, u64, u64), Fault> {
    let x = c.needed("input")?;
    let mut args = c.numbers();
    let dim = args.dim("dim", x.len())?;
    let size = *x.get(dim).ok_or_else(|| Fault::new("a tensor without dimensions cannot be narrowed"))?;
    let (start, length) = (args.int("start")?, args.int("length")?);
    let from = if start < 0 { start.saturating_add(size as i64) } else { start };
    match (u64::try_from(from), u64::try_from(length)) {
        (Ok(from), Ok(length)) if from.saturating_add(length) <= size => Ok((dim, from, length)),
        _ => Err(Fault(format!("range of {length} from {start} is outside of size {size}"))),
    }
}

fn narrowed_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (dim, _, length) = part(c)?;
    let mut shape = c.needed("input")?.to_vec();
    shape[dim] = length;
    Ok((shape, 1))
}

fn narrowed(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (dim, start, _) = part(c)?;
    let mut input = region.to_vec();
    input[dim] = start + region[dim].start..start + region[dim].end;
    let length = (region[dim].end - region[dim].start) as i64;
    Ok(Work::on(vec![Window::of(&input)]).setting("start", 0).setting("length", length))
}

/// Dimension and index of a `select`.
fn chosen(c: &Call) -> Result<(usize, u64), Fault> {
    let x = c.needed("input")?;
    let mut args = c.numbers();
    let dim = args.dim("dim", x.len())?;
    let size = *x.get(dim).ok_or_else(|| Fault::new("a tensor without dimensions cannot be indexed"))?;
    let index = args.int("index")?;
    let at = if index < 0 { index.saturating_add(size as i64) } else { index };
    match u64::try_from(at) {
        Ok(at) if at < size => Ok((dim, at)),
        _ => Err(Fault(format!("index {index} is out of range for size {size}"))),
    }
}

fn selected_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (dim, _) = chosen(c)?;
    let mut shape = c.needed("input")?.to_vec();
    shape.remove(dim);
    Ok((shape, 1))
}

fn selected(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (dim, at) = chosen(c)?;
    let mut input = region.to_vec();
    input.insert(dim, at..at + 1);
    Ok(Work::on(vec![Window::of(&input)]).setting("index", 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_cut_where_their_products_meet() {
        assert_eq!(groups(&[2, 3, 4], &[6, 4]), [(0..2, 0..1), (2..3, 1..2)]);
        assert_eq!(groups(&[4, 6], &[2, 2, 3, 2]), [(0..1, 0..2), (1..2, 2..4)]);
        assert_eq!(groups(&[6, 4], &[4, 6]), [(0..2, 0..2)]);
        assert_eq!(groups(&[5, 1], &[1, 5]), [(0..1, 0..2), (1..2, 2..2)]);
        assert_eq!(groups(&[5], &[5, 1, 1]), [(0..1, 0..1), (1..1, 1..2), (1..1, 2..3)]);
        assert_eq!(groups(&[], &[1]), [(0..0, 0..1)]);
    }
}
