//! Frames of convolutions and pools: always three spatial dimensions, leading ones of size 1.

use super::space::{Step, Strided, numel};
use super::{Call, Lowered};
use crate::array::Scalar;
use crate::error::Fault;
use crate::op::{Kind, Literal};

/// One spatial dimension; see [`windows`].
///
/// # Errors
/// A fault where a rank is another.
pub fn windows1(call: &Call<'_>) -> Result<Lowered, Fault> {
    windows(call, 1)
}

/// Two spatial dimensions; see [`windows`].
///
/// # Errors
/// A fault where a rank is another.
pub fn windows2(call: &Call<'_>) -> Result<Lowered, Fault> {
    windows(call, 2)
}

/// Three spatial dimensions; see [`windows`].
///
/// # Errors
/// A fault where a rank is another.
pub fn windows3(call: &Call<'_>) -> Result<Lowered, Fault> {
    windows(call, 3)
}

/// Binds `input_shape`, `input_strides`, `weight_shape`, `weight_strides` and `y_shape` (five sizes each: sample or
/// output channel, channel, depth, height, width), `bias_stride`, `count` (elements of the result), and every list
/// among the operator's parameters (`stride`, `padding`, ...) with three entries.
fn windows(call: &Call<'_>, spatial: usize) -> Result<Lowered, Fault> {
    let mut step = Step::new(call);
    for name in ["input", "weight"] {
        if let Some(x) = call.tensor(name)? {
            let five = five(x, spatial)?;
            step.sizes(&format!("{name}_shape"), &five.shape)?;
            step.list(&format!("{name}_strides"), five.strides);
        }
    }
    let shape = super::frames::wide(&call.result_shape());
    step.int("count", numel(&shape)?);
    let y = five(Strided { strides: vec![0; shape.len()], shape, offset: 0 }, spatial)?;
    step.sizes("y_shape", &y.shape)?;
    step.int("bias_stride", call.tensor("bias")?.map_or(Ok(0), |b| b.dim(0).map(|(_, s)| s))?);
    for p in call.op.params {
        if !matches!(p.kind, Kind::Ints | Kind::OptInts) {
            continue;
        }
        let mut given = call.ints(p.name);
        if given.is_empty() && p.name == "stride" {
            given = call.ints("kernel_size");
        }
        if given.len() == 1 {
            given = vec![given[0]; spatial];
        }
        // What a dimension of size 1 has: no padding, and steps and windows of 1.
        let lead = match p.default {
            Some(Literal::Scalar(Scalar::Int(i))) => i,
            _ => 1,
        };
        let mut list = vec![lead; 3usize.saturating_sub(given.len())];
        list.extend(given);
        step.list(p.name, list);
    }
    // One dimension's average has no divisor of its own to choose.
    step.ints.entry("has_divisor_override".to_owned()).or_insert(0);
    step.ints.entry("divisor_override".to_owned()).or_insert(0);
    super::frames::at_their_offsets(call, &mut step)?;
    Ok(Lowered::Steps(vec![step]))
}

/// Five dimensions: a missing sample dimension and missing spatial ones have size 1 and never move.
fn five(x: Strided, spatial: usize) -> Result<Strided, Fault> {
    let (mut shape, mut strides) = (x.shape, x.strides);
    if shape.len() == spatial + 1 {
        shape.insert(0, 1);
        strides.insert(0, 0);
    }
    if shape.len() != spatial + 2 {
        return Err(Fault(format!("shape {shape:?} has not {spatial} spatial dimensions")));
    }
    for _ in spatial..3 {
        shape.insert(2, 1);
        strides.insert(2, 0);
    }
    Ok(Strided { shape, strides, offset: x.offset })
}
