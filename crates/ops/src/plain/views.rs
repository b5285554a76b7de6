//! Frames of shape operators: a view of the input, copied element by element into a contiguous result.

use super::frames::wide;
use super::space::{Space, Step, Strided, contiguous};
use super::{Call, Lowered};
use crate::array::Value;
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::op::wrap_dim;

/// Copies a view of the argument at `param`; the result begins at element 0 and has `y_strides` over the view.
fn copied(
    call: &Call<'_>,
    param: usize,
    item: Option<usize>,
    view: &Strided,
    (y, y_offset): (Vec<i64>, i64),
) -> Result<Step, Fault> {
    let mut step = Step::new(call);
    let mut space = Space::new(view.shape.clone(), view.shape.len());
    space.tensor("input", view.strides.clone())?;
    space.tensor("y", y)?;
    space.bind(&mut step)?;
    step.point("input", param, item, view.offset);
    step.int("y_offset", y_offset);
    Ok(step)
}

fn one(call: &Call<'_>, view: &Strided) -> Result<Lowered, Fault> {
    let y = contiguous(&view.shape)?;
    Ok(Lowered::Steps(vec![copied(call, 0, None, view, (y, 0))?]))
}

/// The elements in the order of the input's own indices: `reshape` and its kin, whose result is contiguous.
///
/// # Errors
/// A fault where offsets do not fit.
pub fn as_it_lies(call: &Call<'_>) -> Result<Lowered, Fault> {
    one(call, &call.needed("input")?)
}

fn reordered(x: &Strided, axes: &[usize]) -> Result<Strided, Fault> {
    let picked = axes.iter().map(|&d| x.dim(d)).collect::<Result<Vec<_>, _>>()?;
    let (shape, strides) = picked.into_iter().unzip();
    Ok(Strided { shape, strides, offset: x.offset })
}

/// Two dimensions swapped.
///
/// # Errors
/// A fault where one is out of range.
pub fn transposed(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let mut axes: Vec<usize> = (0..x.shape.len()).collect();
    let (a, b) = (dim(call, "dim0", axes.len())?, dim(call, "dim1", axes.len())?);
    if !axes.is_empty() {
        axes.swap(a, b);
    }
    one(call, &reordered(&x, &axes)?)
}

fn dim(call: &Call<'_>, name: &str, rank: usize) -> Result<usize, Fault> {
    let d = call.ints(name).first().copied().ok_or_else(|| Fault(format!("`{name}` is no integer")))?;
    wrap_dim(d, rank)
}

/// Dimensions in the order of `dims`.
///
/// # Errors
/// A fault where one is out of range.
pub fn permuted(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let axes =
        call.ints("dims").into_iter().map(|d| wrap_dim(d, x.shape.len())).collect::<Result<Vec<_>, _>>()?;
    one(call, &reordered(&x, &axes)?)
}

/// Repeated dimensions.
///
/// # Errors
/// A fault where the shapes do not broadcast.
pub fn expanded(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let shape = wide(&call.result_shape());
    let strides = x.broadcast(&shape)?;
    one(call, &Strided { shape, strides, offset: x.offset })
}

/// Reversed dimensions: negative strides from the last element.
///
/// # Errors
/// A fault where a dimension is out of range.
pub fn flipped(call: &Call<'_>) -> Result<Lowered, Fault> {
    let mut x = call.needed("input")?;
    let dims = call.ints("dims");
    let dims = if dims.is_empty() { Vec::new() } else { reduced_dims(Some(dims), x.shape.len())? };
    for d in dims {
        let (n, s) = x.dim(d)?;
        x.offset = moved(x.offset, n.saturating_sub(1), s)?;
        x.strides[d] = -s;
    }
    one(call, &x)
}

/// `offset + n * stride`.
fn moved(offset: i64, n: u64, stride: i64) -> Result<i64, Fault> {
    i64::try_from(n)
        .ok()
        .and_then(|n| n.checked_mul(stride))
        .and_then(|far| far.checked_add(offset))
        .ok_or_else(|| Fault::new("an offset does not fit in 63 bits"))
}

/// Index `i` of a dimension of size `n`, negative ones from the end.
fn wrapped(i: i64, n: u64) -> Result<u64, Fault> {
    let size = i64::try_from(n).map_err(|_| Fault::new("a size is too large"))?;
    let i = if i < 0 { i.saturating_add(size) } else { i };
    u64::try_from(i).map_err(|_| Fault(format!("index {i} is out of range for size {n}")))
}

/// A range of a dimension.
///
/// # Errors
/// A fault where it is out of range.
pub fn narrowed(call: &Call<'_>) -> Result<Lowered, Fault> {
    let mut x = call.needed("input")?;
    let d = dim(call, "dim", x.shape.len())?;
    let (n, s) = x.dim(d)?;
    let start = call.ints("start").first().copied().unwrap_or(0);
    x.offset = moved(x.offset, wrapped(start, n)?, s)?;
    x.shape = wide(&call.result_shape());
    one(call, &x)
}

/// One index of a dimension.
///
/// # Errors
/// A fault where it is out of range.
pub fn selected(call: &Call<'_>) -> Result<Lowered, Fault> {
    let mut x = call.needed("input")?;
    let d = dim(call, "dim", x.shape.len())?;
    let (n, s) = x.dim(d)?;
    let index = call.ints("index").first().copied().unwrap_or(0);
    x.offset = moved(x.offset, wrapped(index, n)?, s)?;
    x.shape.remove(d);
    x.strides.remove(d);
    one(call, &x)
}

/// Tensors one after the other along `dim`: one step each.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn joined(call: &Call<'_>) -> Result<Lowered, Fault> {
    join(call, false)
}

/// As [`joined`], along a new dimension.
///
/// # Errors
/// A fault where the shapes do not fit.
pub fn stacked(call: &Call<'_>) -> Result<Lowered, Fault> {
    join(call, true)
}

fn join(call: &Call<'_>, new: bool) -> Result<Lowered, Fault> {
    let Some(Value::Tuple(all)) = call.arg("tensors") else {
        return Err(Fault::new("`tensors` takes a tuple of tensors"));
    };
    let y = contiguous(&wide(&call.result_shape()))?;
    let d = dim(call, "dim", y.len())?;
    let mut steps = Vec::new();
    let mut at = 0u64;
    for (item, v) in all.iter().enumerate() {
        let mut x = call.placed(v)?.ok_or_else(|| Fault::new("an item is no tensor"))?;
        if new {
            x.shape.insert(d, 1);
            x.strides.insert(d, 0);
        }
        let (n, _) = x.dim(d)?;
        if !x.shape.contains(&0) {
            steps.push(copied(call, 0, Some(item), &x, (y.clone(), moved(0, at, y[d])?))?);
        }
        at = at.saturating_add(n);
    }
    Ok(Lowered::Steps(steps))
}
