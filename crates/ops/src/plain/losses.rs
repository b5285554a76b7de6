//! Frames of losses.

use super::space::{Space, Step};
use super::{Call, Lowered};
use crate::array::broadcast_shapes;
use crate::error::Fault;

/// `input` and `target` broadcast: every pair is kept where nothing is reduced, else all are one row. `batch` is the
/// first size of `input`.
///
/// # Errors
/// A fault where they do not broadcast.
pub fn pairs(call: &Call<'_>) -> Result<Lowered, Fault> {
    let (x, y) = (call.needed("input")?, call.needed("target")?);
    let shape = common(&[&x.shape, &y.shape])?;
    let kept = if call.text("reduction") == "none" { shape.len() } else { 0 };
    let mut space = Space::new(shape.clone(), kept);
    space.tensor("input", x.broadcast(&shape)?)?;
    space.tensor("target", y.broadcast(&shape)?)?;
    let mut step = Step::new(call);
    space.bind(&mut step)?;
    step.size("batch", x.shape.first().copied().unwrap_or(1))?;
    super::frames::at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

fn common(shapes: &[&[u64]]) -> Result<Vec<u64>, Fault> {
    let mut out: Vec<usize> = Vec::new();
    for s in shapes {
        let s: Vec<usize> = s
            .iter()
            .map(|&n| usize::try_from(n).map_err(|_| Fault::new("a size is too large")))
            .collect::<Result<_, _>>()?;
        out = broadcast_shapes(&out, &s)?;
    }
    Ok(super::frames::wide(&out))
}

/// The three tensors of a triplet loss broadcast; the last dimension is a row.
///
/// # Errors
/// A fault where they do not broadcast or have no dimension.
pub fn distances(call: &Call<'_>) -> Result<Lowered, Fault> {
    let names = ["anchor", "positive", "negative"];
    let all = names.map(|n| call.needed(n));
    let mut placed = Vec::new();
    for x in all {
        placed.push(x?);
    }
    let shape = common(&placed.iter().map(|x| x.shape.as_slice()).collect::<Vec<_>>())?;
    let kept = shape.len().checked_sub(1).ok_or_else(|| Fault::new("a dimension is needed"))?;
    let mut space = Space::new(shape.clone(), kept);
    for (name, x) in names.iter().zip(&placed) {
        space.tensor(name, x.broadcast(&shape)?)?;
    }
    let mut step = Step::new(call);
    space.bind(&mut step)?;
    super::frames::at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

/// A position per row, its classes as terms: `input_strides`, `target_strides` (0 along the classes for a target of
/// class indices), `weight_stride`.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn classes(call: &Call<'_>) -> Result<Lowered, Fault> {
    let (x, target) = (call.needed("input")?, call.needed("target")?);
    let rank = x.shape.len();
    let class = usize::from(rank > 1);
    let order: Vec<usize> = (0..rank).filter(|&d| d != class).chain([class]).collect();
    let mut space = Space::new(
        order.iter().map(|&d| x.dim(d).map(|(n, _)| n)).collect::<Result<_, _>>()?,
        rank.saturating_sub(1),
    );
    space.tensor("input", order.iter().map(|&d| x.strides[d]).collect())?;
    let along = if target.shape.len() == rank {
        order.iter().map(|&d| target.strides[d]).collect()
    } else {
        target.strides.iter().copied().chain([0]).collect()
    };
    space.tensor("target", along)?;
    let mut step = Step::new(call);
    space.bind(&mut step)?;
    step.int("weight_stride", call.tensor("weight")?.map_or(Ok(0), |w| w.dim(0).map(|(_, s)| s))?);
    super::frames::at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}
