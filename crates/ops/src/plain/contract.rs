//! Frames of matrix products: sums over shared indices.

use super::space::{Space, Step, Strided};
use super::{Call, Lowered};
use crate::array::{Value, broadcast_shapes};
use crate::error::Fault;

/// A sum of products of `left` and `right` over the dimensions that are not kept, `bias` added last.
fn contraction(
    call: &Call<'_>,
    space: Space,
    sources: &[(&str, usize, Option<usize>, i64)],
) -> Result<Lowered, Fault> {
    let mut step = Step::new(call);
    step.tensors.clear();
    for &(name, param, item, offset) in sources {
        step.point(name, param, item, offset);
    }
    space.bind(&mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

/// `matmul` and its kin: leading dimensions broadcast, a vector on the left is a row and on the right a column.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn product(call: &Call<'_>) -> Result<Lowered, Fault> {
    let name = |k: usize| call.op.params.get(k).map_or("", |p| p.name);
    let (a, b) = (call.needed(name(0))?, call.needed(name(1))?);
    let (ra, rb) = (a.shape.len(), b.shape.len());
    let batch = leading(&[&a, &b])?;
    let (ba, bb) = (spread(&a, &batch)?, spread(&b, &batch)?);
    let mut shape = batch.clone();
    let (mut left, mut right) = (ba, bb);
    if ra > 1 {
        let (m, s) = a.dim(ra - 2)?;
        shape.push(m);
        left.push(s);
        right.push(0);
    }
    if rb > 1 {
        let (n, s) = b.dim(rb - 1)?;
        shape.push(n);
        left.push(0);
        right.push(s);
    }
    let kept = shape.len();
    let (k, s) = a.dim(ra.checked_sub(1).ok_or_else(|| Fault::new("a dimension is needed"))?)?;
    shape.push(k);
    left.push(s);
    right.push(b.dim(rb.saturating_sub(2))?.1);
    let mut space = Space::new(shape, kept);
    space.tensor("left", left)?;
    space.tensor("right", right)?;
    contraction(call, space, &[("left", 0, None, a.offset), ("right", 1, None, b.offset)])
}

/// The broadcast of all dimensions but the last two.
fn leading(all: &[&Strided]) -> Result<Vec<u64>, Fault> {
    let mut out: Vec<usize> = Vec::new();
    for x in all {
        let lead = x.lead(x.shape.len().min(2))?;
        let lead: Vec<usize> = lead
            .shape
            .iter()
            .map(|&n| usize::try_from(n).map_err(|_| Fault::new("a size is too large")))
            .collect::<Result<_, _>>()?;
        out = broadcast_shapes(&out, &lead)?;
    }
    Ok(super::frames::wide(&out))
}

/// Strides of a tensor's leading dimensions under their broadcast.
fn spread(x: &Strided, batch: &[u64]) -> Result<Vec<i64>, Fault> {
    x.lead(x.shape.len().min(2))?.broadcast(batch)
}

/// `input` times the transpose of `weight`, plus `bias`.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn linear(call: &Call<'_>) -> Result<Lowered, Fault> {
    let (x, w, bias) = (call.needed("input")?, call.needed("weight")?, call.tensor("bias")?);
    let lead = x.lead(1)?;
    let ((n, sn), (k, sk)) = (w.dim(0)?, w.dim(1)?);
    let kept = lead.shape.len() + 1;
    let mut space = Space::new([&lead.shape[..], &[n, k]].concat(), kept);
    let zeros = vec![0i64; lead.shape.len()];
    space.tensor("left", [&lead.strides[..], &[0, x.dim(lead.shape.len())?.1]].concat())?;
    space.tensor("right", [&zeros[..], &[sn, sk]].concat())?;
    let mut sources = vec![("left", 0, None, x.offset), ("right", 1, None, w.offset)];
    if let Some(b) = bias {
        space.tensor("bias", [&zeros[..], &[b.dim(0)?.1, 0]].concat())?;
        sources.push(("bias", 2, None, b.offset));
    }
    contraction(call, space, &sources)
}

/// `einsum` of one or two operands: letters of the result are kept, the others are summed.
///
/// # Errors
/// A fault where there are more operands.
pub fn sum_of_products(call: &Call<'_>) -> Result<Lowered, Fault> {
    let equation: String = call.text("equation").chars().filter(|c| !c.is_whitespace()).collect();
    let (terms, result) = match equation.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (equation.as_str(), None),
    };
    let all: Vec<char> = terms.chars().filter(|&c| c != ',').collect();
    let kept: Vec<char> = match result {
        Some(r) => r.chars().collect(),
        None => {
            let mut once: Vec<char> =
                all.iter().copied().filter(|c| all.iter().filter(|d| *d == c).count() == 1).collect();
            once.sort_unstable();
            once
        }
    };
    let mut letters = kept.clone();
    for &c in &all {
        if !letters.contains(&c) {
            letters.push(c);
        }
    }
    let Some(Value::Tuple(operands)) = call.arg("operands") else {
        return Err(Fault::new("`operands` takes a tuple of tensors"));
    };
    let mut shape = vec![1u64; letters.len()];
    let mut strides = Vec::new();
    let mut sources = Vec::new();
    for ((item, (v, term)), name) in operands.iter().zip(terms.split(',')).enumerate().zip(["left", "right"])
    {
        let x = call.placed(v)?.ok_or_else(|| Fault::new("an operand is no tensor"))?;
        let mut own = vec![0i64; letters.len()];
        for (d, c) in term.chars().enumerate() {
            if let Some(at) = letters.iter().position(|l| *l == c) {
                (shape[at], own[at]) = x.dim(d)?;
            }
        }
        strides.push((name, own));
        sources.push((name, 1, Some(item), x.offset));
    }
    if operands.len() > 2 {
        return Err(Fault::new("more than two operands"));
    }
    let mut space = Space::new(shape, kept.len());
    for (name, own) in strides {
        space.tensor(name, own)?;
    }
    contraction(call, space, &sources)
}

/// A query per thread: `shape`, `rank`, `rows` and `NAME_strides` are over [.., L]; `queries` L, `keys` S, `width` E
/// and `values` V are the other sizes, `query_step`, `key_row`, `key_step`, `value_row`, `value_step` and `mask_step`
/// the strides along them.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn attention(call: &Call<'_>) -> Result<Lowered, Fault> {
    let all = [call.needed("query")?, call.needed("key")?, call.needed("value")?];
    let [q, k, v] = &all;
    let of = |x: &Strided, back: usize| x.dim(x.shape.len().wrapping_sub(back));
    let result = super::frames::wide(&call.result_shape());
    let Some((_, [.., l])) = result.split_last() else { return Err(Fault::new("2 dimensions are needed")) };
    let batch = &result[..result.len() - 2];
    let mut space = Space::new([batch, &[*l]].concat(), batch.len() + 1);
    let lead = |x: &Strided, row: i64| -> Result<Vec<i64>, Fault> {
        let mut strides = spread(x, batch)?;
        strides.push(row);
        Ok(strides)
    };
    space.tensor("query", lead(q, of(q, 2)?.1)?)?;
    space.tensor("key", lead(k, 0)?)?;
    space.tensor("value", lead(v, 0)?)?;
    let mut step = Step::new(call);
    step.int("mask_step", 0);
    if let Some(m) = call.tensor("attn_mask")? {
        let wide = [batch, &[*l, of(k, 2)?.0]].concat();
        let mut strides = m.broadcast(&wide)?;
        step.int("mask_step", strides.pop().unwrap_or(0));
        space.tensor("attn_mask", strides)?;
    }
    space.bind(&mut step)?;
    super::frames::at_their_offsets(call, &mut step)?;
    step.size("queries", *l)?;
    step.size("keys", of(k, 2)?.0)?;
    step.size("width", of(q, 1)?.0)?;
    step.size("values", of(v, 1)?.0)?;
    step.int("query_step", of(q, 1)?.1);
    step.int("key_row", of(k, 2)?.1);
    step.int("key_step", of(k, 1)?.1);
    step.int("value_row", of(v, 2)?.1);
    step.int("value_step", of(v, 1)?.1);
    Ok(Lowered::Steps(vec![step]))
}
