//! Matrix products: rows of the left, columns of the right, the inner dimension whole.

use std::ops::Range;

use super::{Rule, Work, broadcast};
use crate::error::Fault;
use crate::sampled::graph::Call;
use crate::sampled::region::{Region, Window};

pub(super) static RULES: &[Rule] = &[
    Rule { names: &["matmul", "mm", "mv", "bmm"], shape: product_shape, work: product },
    Rule { names: &["linear"], shape: linear_shape, work: linear },
    Rule { names: &["einsum"], shape: einsum_shape, work: einsum },
    Rule { names: &["scaled_dot_product_attention"], shape: attention_shape, work: attention },
];

fn two(c: &Call) -> Result<(&[u64], &[u64]), Fault> {
    match c.tensors.as_slice() {
        [a, b] if !a.shape.is_empty() && !b.shape.is_empty() => Ok((&a.shape, &b.shape)),
        _ => Err(Fault::new("two tensors with at least one dimension are needed")),
    }
}

fn product_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (a, b) = two(c)?;
    let (row, column) = (a.len() == 1, b.len() == 1);
    let inner = if column { b[0] } else { b[b.len() - 2] };
    if a[a.len() - 1] != inner {
        return Err(Fault(format!("inner sizes {} and {inner} differ", a[a.len() - 1])));
    }
    let lead = |s: &[u64]| s[..s.len().saturating_sub(2)].to_vec();
    let mut shape = broadcast(&lead(a), &lead(b))?;
    if !row {
        shape.push(a[a.len() - 2]);
    }
    if !column {
        shape.push(b[b.len() - 1]);
    }
    Ok((shape, 1))
}

/// A box of leading dimensions followed by these ranges.
fn matrix(lead: &[u64], batch: &[Range<u64>], last: impl IntoIterator<Item = Range<u64>>) -> Window {
    let batch = Window::broadcast(lead, batch);
    let mut region: Region =
        batch.start.iter().zip(&batch.extent).map(|(&s, &n)| s as u64..s as u64 + n).collect();
    region.extend(last);
    Window::of(&region)
}

fn product(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (a, b) = two(c)?;
    let (row, column) = (a.len() == 1, b.len() == 1);
    let inner = a[a.len() - 1];
    let mut rest = region;
    let mut last = |absent: bool| -> Result<Option<Range<u64>>, Fault> {
        if absent {
            return Ok(None);
        }
        let (r, lead) = rest.split_last().ok_or_else(|| Fault::new("a dimension is missing"))?;
        rest = lead;
        Ok(Some(r.clone()))
    };
    let columns = last(column)?;
    let rows = last(row)?;
    let lead = |s: &[u64]| s[..s.len().saturating_sub(2)].to_vec();
    Ok(Work::on(vec![
        matrix(&lead(a), rest, rows.into_iter().chain(std::iter::once(0..inner))),
        matrix(&lead(b), rest, std::iter::once(0..inner).chain(columns)),
    ]))
}

fn linear_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (x, w) = (c.needed("input")?, c.needed("weight")?);
    match (x.split_last(), w) {
        (Some((last, lead)), [out, inner]) if last == inner => {
            Ok((lead.iter().copied().chain([*out]).collect(), 1))
        }
        _ => Err(Fault::new("`weight` needs 2 dimensions, the last as the last of `input`")),
    }
}

fn linear(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let inner = *c.needed("weight")?.last().ok_or_else(|| Fault::new("`weight` needs 2 dimensions"))?;
    let (columns, lead) = region.split_last().ok_or_else(|| Fault::new("`input` needs a dimension"))?;
    let windows = c.tensors.iter().map(|t| match t.param {
        "input" => Window::of(&[lead, std::slice::from_ref(&(0..inner))].concat()),
        "weight" => Window::of(&[columns.clone(), 0..inner]),
        _ => Window::of(std::slice::from_ref(columns)),
    });
    Ok(Work::on(windows.collect()))
}

/// The letters of every operand and of the result.
fn letters(c: &Call) -> Result<(Vec<Vec<char>>, Vec<char>), Fault> {
    let equation: String = c.numbers().text("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<Vec<char>> = left.split(',').map(|t| t.chars().collect()).collect();
    let fits =
        terms.len() == c.tensors.len() && terms.iter().zip(&c.tensors).all(|(l, t)| l.len() == t.shape.len());
    if !fits {
        return Err(Fault(format!("`{equation}` does not fit its operands")));
    }
    let result = match right {
        Some(r) => r.chars().collect(),
        None => {
            let all: Vec<char> = terms.iter().flatten().copied().collect();
            let mut once: Vec<char> =
                all.iter().filter(|c| all.iter().filter(|d| d == c).count() == 1).copied().collect();
            once.sort_unstable();
            once
        }
    };
    Ok((terms, result))
}

fn einsum_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (terms, result) = letters(c)?;
    let size = |l: &char| {
        let mut sizes = terms
            .iter()
            .zip(&c.tensors)
            .filter_map(|(t, x)| t.iter().position(|m| m == l).map(|d| x.shape[d]));
        let first = sizes.next().ok_or_else(|| Fault(format!("`{l}` in the result is in no operand")))?;
        if sizes.any(|n| n != first) {
            return Err(Fault(format!("index `{l}` has several sizes")));
        }
        Ok(first)
    };
    terms.iter().flatten().try_for_each(|l| size(l).map(drop))?;
    Ok((result.iter().map(size).collect::<Result<_, _>>()?, 1))
}

fn einsum(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let (terms, result) = letters(c)?;
    let windows = terms.iter().zip(&c.tensors).map(|(term, t)| {
        let ranges: Region = term
            .iter()
            .zip(&t.shape)
            .map(|(l, &n)| result.iter().position(|r| r == l).map_or(0..n, |d| region[d].clone()))
            .collect();
        Window::of(&ranges)
    });
    Ok(Work::on(windows.collect()))
}

/// Leading dimensions and the last two.
fn split(shape: &[u64]) -> Result<(&[u64], u64, u64), Fault> {
    match shape {
        [lead @ .., a, b] => Ok((lead, *a, *b)),
        _ => Err(Fault::new("`query`, `key` and `value` need at least 2 dimensions")),
    }
}

fn attention_shape(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    let (q, l, _) = split(c.needed("query")?)?;
    let (k, ..) = split(c.needed("key")?)?;
    let (v, _, width) = split(c.needed("value")?)?;
    let mut batch = broadcast(q, k)?;
    if let Some(mask) = c.shape_of("attn_mask") {
        batch = broadcast(&batch, &mask[..mask.len().saturating_sub(2)])?;
    }
    let mut shape = broadcast(&batch, v)?;
    shape.extend([l, width]);
    Ok((shape, 1))
}

fn attention(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let [batch @ .., rows, columns] = region else {
        return Err(Fault::new("at least 2 dimensions are needed"));
    };
    // A causal mask counts rows from the first.
    let causal = c.numbers().flag("is_causal")?;
    let rows_from = if causal { 0..rows.end } else { rows.clone() };
    let (_, keys, _) = split(c.needed("key")?)?;
    let mut windows = Vec::new();
    for t in &c.tensors {
        windows.push(match (t.param, split(&t.shape)) {
            ("query", Ok((lead, _, inner))) => matrix(lead, batch, [rows_from.clone(), 0..inner]),
            ("key", Ok((lead, n, inner))) => matrix(lead, batch, [0..n, 0..inner]),
            ("value", Ok((lead, n, _))) => matrix(lead, batch, [0..n, columns.clone()]),
            _ => {
                let full: Region = batch.iter().cloned().chain([rows_from.clone(), 0..keys]).collect();
                Window::broadcast(&t.shape, &full)
            }
        });
    }
    let mut crop = vec![0; region.len()];
    crop[batch.len()] = rows.start - rows_from.start;
    Ok(Work::on(windows).cropped(crop))
}
