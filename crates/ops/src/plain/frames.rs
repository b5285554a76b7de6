//! Frames of element-wise operators, reductions, scans, softmax and normalisations.

use super::space::{Space, Step, Strided, contiguous};
use super::{Call, Lowered};
use crate::array::Value;
use crate::error::Fault;
use crate::kernels::reduce::reduced_dims;
use crate::op::wrap_dim;
use crate::ops::math::{maximum, minimum};

/// Every tensor argument broadcast to the result, one thread per element (`count`).
///
/// # Errors
/// A fault where one does not broadcast.
pub fn each(call: &Call<'_>) -> Result<Lowered, Fault> {
    let mut step = Step::new(call);
    space_of_result(call)?.bind(&mut step)?;
    at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

/// As [`each`], and `matrix_rows` and `matrix_columns`, the last two sizes.
///
/// # Errors
/// A fault where there are fewer than two dimensions.
pub fn matrix(call: &Call<'_>) -> Result<Lowered, Fault> {
    let shape = wide(&call.result_shape());
    let [.., rows, columns] = shape[..] else { return Err(Fault::new("2 dimensions are needed")) };
    let Lowered::Steps(mut steps) = each(call)? else { return Err(Fault::new("no steps")) };
    for step in &mut steps {
        step.size("matrix_rows", rows)?;
        step.size("matrix_columns", columns)?;
    }
    Ok(Lowered::Steps(steps))
}

fn space_of_result(call: &Call<'_>) -> Result<Space, Fault> {
    let shape = wide(&call.result_shape());
    let mut space = Space::new(shape.clone(), shape.len());
    for p in call.op.params {
        if let Some(x) = call.tensor(p.name)? {
            // A parameter such as `alpha` is a number and no operand: it moves with no index all the same.
            space.tensor(p.name, x.broadcast(&shape)?)?;
        }
    }
    space.tensor("y", contiguous(&shape)?)?;
    Ok(space)
}

/// Moves the pointers of tensor arguments to their first elements.
pub(super) fn at_their_offsets(call: &Call<'_>, step: &mut Step) -> Result<(), Fault> {
    for (k, p) in call.op.params.iter().enumerate() {
        if let Some(x) = call.tensor(p.name)?
            && step.tensors.contains_key(p.name)
        {
            step.point(p.name, k, None, x.offset);
        }
    }
    Ok(())
}

pub(super) fn wide(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|&n| n as u64).collect()
}

/// The dimensions in `dim` (all where absent) last, a row of terms per thread. A result of the input's own shape
/// (softmax, scans) has its `y_strides`; another has one element per row.
///
/// # Errors
/// A fault where a dimension is out of range.
pub fn dims(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let named = match call.arg("dim") {
        None | Some(Value::None) => None,
        Some(_) => Some(call.ints("dim")),
    };
    let last = match (named, call.result_shape() == narrow(&x.shape)?) {
        // A softmax or a scan of a tensor without dimensions has one term.
        (Some(d), true) if x.shape.is_empty() => {
            d.iter().try_for_each(|&d| wrap_dim(d, 0).map(|_| ()))?;
            Vec::new()
        }
        (named, _) => reduced_dims(named, x.shape.len())?,
    };
    rows(call, &x, &last, &[])
}

/// As [`dims`]; where `dim` is a tensor, the element-wise operator is meant.
///
/// # Errors
/// As [`dims`].
pub fn extreme(call: &Call<'_>) -> Result<Lowered, Fault> {
    match call.arg("dim") {
        Some(Value::Float(_) | Value::Int(_) | Value::Bool(_)) => {
            Ok(Lowered::As(if call.op.name == "max" { &maximum::OP } else { &minimum::OP }))
        }
        _ => dims(call),
    }
}

fn narrow(shape: &[u64]) -> Result<Vec<usize>, Fault> {
    shape.iter().map(|&n| usize::try_from(n).map_err(|_| Fault::new("a size is too large"))).collect()
}

/// `input` with the dimensions `last` as terms; `others` have strides over its dimensions.
fn rows(call: &Call<'_>, x: &Strided, last: &[usize], others: &[(&str, Vec<i64>)]) -> Result<Lowered, Fault> {
    let order: Vec<usize> =
        (0..x.shape.len()).filter(|d| !last.contains(d)).chain(last.iter().copied()).collect();
    let pick = |of: &[i64]| order.iter().map(|&d| of[d]).collect::<Vec<i64>>();
    let mut space = Space::new(order.iter().map(|&d| x.shape[d]).collect(), order.len() - last.len());
    space.tensor("input", pick(&x.strides))?;
    for (name, strides) in others {
        space.tensor(name, pick(strides))?;
    }
    if wide(&call.result_shape()) == x.shape {
        space.tensor("y", pick(&contiguous(&x.shape)?))?;
    }
    let mut step = Step::new(call);
    space.bind(&mut step)?;
    at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

/// The last dimensions, as many as `normalized_shape` has, are a row; `weight` and `bias` lie along them. The row's
/// own moments count (`own` is 1).
///
/// # Errors
/// A fault where the shapes differ.
pub fn tail(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let lead = x.shape.len().checked_sub(call.ints("normalized_shape").len());
    let lead = lead.ok_or_else(|| Fault::new("`normalized_shape` has more dimensions than `input`"))?;
    let last: Vec<usize> = (lead..x.shape.len()).collect();
    let mut others = Vec::new();
    for name in ["weight", "bias"] {
        if let Some(p) = call.tensor(name)? {
            others.push((name, p.broadcast(&x.shape)?));
        }
    }
    normalised(call, &x, &last, &others, true)
}

/// Every sample's group of channels is a row: the channels are split in `num_groups`.
///
/// # Errors
/// A fault where the channels do not divide.
pub fn groups(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let parts = call.ints("num_groups").first().and_then(|&g| u64::try_from(g).ok()).unwrap_or(0);
    let (channels, step) = x.dim(1)?;
    let Some(per) = channels.checked_div(parts).filter(|per| per.checked_mul(parts) == Some(channels)) else {
        return Err(Fault(format!("{channels} channels do not divide into {parts} groups")));
    };
    let split = |shape: &[u64], strides: &[i64], step: i64| -> Result<Strided, Fault> {
        let wide = i64::try_from(per).ok().and_then(|p| p.checked_mul(step));
        let wide = wide.ok_or_else(|| Fault::new("a stride is too large"))?;
        Ok(Strided {
            shape: [&shape[..1], &[parts, per], &shape[2..]].concat(),
            strides: [&strides[..1], &[wide, step], &strides[2..]].concat(),
            offset: x.offset,
        })
    };
    let whole = split(&x.shape, &x.strides, step)?;
    let mut others = Vec::new();
    for (name, along) in along_channels(call, x.shape.len())? {
        others.push((name, split(&x.shape, &along, along[1])?.strides));
    }
    let y = contiguous(&x.shape)?;
    others.push(("y", split(&x.shape, &y, y[1])?.strides));
    let last: Vec<usize> = (2..whole.shape.len()).collect();
    normalised(call, &whole, &last, &others, true)
}

/// Every channel over all samples is a row; the running statistics count unless `training`.
///
/// # Errors
/// A fault where there is no channel dimension.
pub fn batch(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let last: Vec<usize> = [0].into_iter().chain(2..x.shape.len()).collect();
    let others = along_channels(call, x.shape.len())?;
    normalised(call, &x, &last, &others, call.flag("training"))
}

/// Every channel of every sample is a row; the running statistics count without `use_input_stats`.
///
/// # Errors
/// A fault where there is no channel dimension.
pub fn instances(call: &Call<'_>) -> Result<Lowered, Fault> {
    let x = call.needed("input")?;
    let last: Vec<usize> = (2..x.shape.len()).collect();
    let others = along_channels(call, x.shape.len())?;
    normalised(call, &x, &last, &others, call.flag("use_input_stats"))
}

/// Strides of the parameters that have one element per channel, dimension 1 of `rank`.
fn along_channels(call: &Call<'_>, rank: usize) -> Result<Vec<(&'static str, Vec<i64>)>, Fault> {
    if rank < 2 {
        return Err(Fault::new("`input` needs at least 2 dimensions"));
    }
    let mut out = Vec::new();
    for name in ["weight", "bias", "running_mean", "running_var"] {
        if let Some(p) = call.tensor(name)? {
            let mut strides = vec![0; rank];
            strides[1] = p.dim(0)?.1;
            out.push((name, strides));
        }
    }
    Ok(out)
}

fn normalised(
    call: &Call<'_>,
    x: &Strided,
    last: &[usize],
    others: &[(&str, Vec<i64>)],
    own: bool,
) -> Result<Lowered, Fault> {
    let Lowered::Steps(mut steps) = rows(call, x, last, others)? else { return Err(Fault::new("no steps")) };
    for step in &mut steps {
        step.int("own", i64::from(own));
    }
    Ok(Lowered::Steps(steps))
}
