//! Per operator: the shape of its result, and what a box of the result needs.
//!
//! A rule knows no numbers. It turns a box of the result into windows of the arguments and a call of the
//! operator itself on those windows, so that a box has the bits of the whole: an accumulation's terms and
//! their order are those of the whole evaluation, because every dimension that is accumulated over is taken
//! whole.

mod conv;
mod linalg;
mod loss;
mod norm;
mod pointwise;
mod pool;
mod reduce;
mod shape;

use std::ops::Range;

use super::graph::{Call, Known};
use super::region::Window;
use crate::array::{Scalar, broadcast_shapes};
use crate::error::Fault;

/// Shape of every result of a call and how many there are.
pub(crate) type ShapeOf = fn(&Call) -> Result<(Vec<u64>, usize), Fault>;
/// What a box of the results needs. The box is not empty and inside of the shape.
pub(crate) type WorkOf = fn(&Call, &[Range<u64>]) -> Result<Work, Fault>;

/// How operators of some names are evaluated at boxes.
pub(crate) struct Rule {
    /// The operators.
    pub(crate) names: &'static [&'static str],
    /// Shapes.
    pub(crate) shape: ShapeOf,
    /// Needs.
    pub(crate) work: WorkOf,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What is done for a box.
#[derive(Debug)]
pub(crate) struct Work {
    /// One per tensor argument; `None` where it is not needed, only in tuples.
    pub(crate) windows: Vec<Option<Window>>,
    /// Arguments other than tensors that differ from the call's.
    pub(crate) set: Vec<(&'static str, Known)>,
    /// How the windows become a result.
    pub(crate) how: How,
    /// Where the box starts within that result.
    pub(crate) crop: Vec<u64>,
}

/// How windows become a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By the operator itself.
    Operator,
    /// The only window in its own order, with the box's extents.
    Reshape,
    /// Element `i` of the box is element `lookup[i]` of the only window.
    Lookup(Vec<usize>),
    /// Means over windows of an input that holds its padding.
    Average {
        /// Window size per spatial dimension.
        kernel: Vec<usize>,
        /// Step per spatial dimension.
        stride: Vec<usize>,
        /// Per spatial dimension the window's extent at every output; the divisor is their product.
        counts: Vec<Vec<i64>>,
    },
}

impl Work {
    /// The operator on those windows; the box is its whole result.
    pub(crate) fn on(windows: Vec<Window>) -> Work {
        let windows = windows.into_iter().map(Some).collect();
        Work { windows, set: Vec::new(), how: How::Operator, crop: Vec::new() }
    }

    /// With another number in an argument's place.
    pub(crate) fn setting(mut self, name: &'static str, value: i64) -> Work {
        self.set.push((name, Known::Scalar(Scalar::Int(value))));
        self
    }

    /// With other numbers in an argument's place.
    pub(crate) fn setting_all(mut self, name: &'static str, values: &[u64]) -> Work {
        let all = values.iter().map(|&v| Known::Scalar(Scalar::Int(v as i64))).collect();
        self.set.push((name, Known::Tuple(all)));
        self
    }

    /// With the box not at the start of the result.
    pub(crate) fn cropped(mut self, crop: Vec<u64>) -> Work {
        self.crop = crop;
        self
    }
}

/// Everything whole: right for every operator, and all that can be done where every result depends on
/// everything.
pub(crate) fn everything(c: &Call, region: &[Range<u64>]) -> Result<Work, Fault> {
    let windows = c.tensors.iter().map(|t| Window::whole(&t.shape)).collect();
    Ok(Work::on(windows).cropped(region.iter().map(|r| r.start).collect()))
}

/// An operator without a rule.
static UNKNOWN: Rule = Rule { names: &[], shape: unknown, work: everything };

fn unknown(c: &Call) -> Result<(Vec<u64>, usize), Fault> {
    Err(Fault(format!("`{}` has no rule for its shape in `sampled::rules`", c.op.name)))
}

/// Every rule.
static RULES: &[&[Rule]] = &[
    pointwise::RULES,
    linalg::RULES,
    conv::RULES,
    pool::RULES,
    norm::RULES,
    reduce::RULES,
    loss::RULES,
    shape::RULES,
];

/// The rule of an operator.
pub(crate) fn rule_of(name: &str) -> &'static Rule {
    RULES.iter().copied().flatten().find(|r| r.names.contains(&name)).unwrap_or(&UNKNOWN)
}

/// Does every element of the operator's result depend on the elements at the same place alone?
pub fn is_pointwise(name: &str) -> bool {
    pointwise::NAMES.contains(&name)
}

/// A shape in the crate's own sizes.
pub(crate) fn sizes(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|&d| d as usize).collect()
}

/// And back.
pub(crate) fn dims(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|&d| d as u64).collect()
}

/// The shape that two broadcast to.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Fault> {
    Ok(dims(&broadcast_shapes(&sizes(a), &sizes(b))?))
}

/// The shape that all tensors broadcast to.
pub(crate) fn broadcast_all(c: &Call) -> Result<Vec<u64>, Fault> {
    c.tensors.iter().try_fold(Vec::new(), |s, t| broadcast(&s, &t.shape))
}

/// The box with these dimensions whole, and where the original lies in it.
pub(crate) fn with_whole(
    region: &[Range<u64>],
    shape: &[u64],
    whole: impl Fn(usize) -> bool,
) -> (Vec<Range<u64>>, Vec<u64>) {
    region
        .iter()
        .zip(shape)
        .enumerate()
        .map(|(d, (r, &n))| if whole(d) { (0..n, r.start) } else { (r.clone(), 0) })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::OPS;

    #[test]
    fn every_operator_has_one_rule_and_every_rule_an_operator() {
        for op in OPS {
            let count = RULES.iter().copied().flatten().filter(|r| r.names.contains(&op.name)).count();
            assert_eq!(count, 1, "`{}`", op.name);
        }
        for name in RULES.iter().copied().flatten().flat_map(|r| r.names) {
            assert!(OPS.iter().any(|op| op.name == *name), "`{name}` is no operator");
        }
    }
}
