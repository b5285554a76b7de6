//! One plain CUDA kernel per operator: real text in `cuda/`, and how the parameters of its `launch` are bound.
//!
//! A kernel is generic in shape and stride: inputs may be strided views, outputs are contiguous, every index has 64
//! bits. Arrives: a call of an operator (its arguments, the shape of its result, where tensors lie in memory).
//! Leaves: [`Step`]s, that is the values of `launch`'s parameters by name, one step per run of `launch`:
//!
//! - `NAME`: the tensor argument of that name; one declared twice, as `NAME` and `NAME_i64` or `NAME_bool`, is bound
//!   to the pointer that has its element type. A pointer that nothing is bound to is null;
//! - `y`: the result; `y_index`: its second tensor, where it is a pair;
//! - numbers, flags and choices (as their index among the choices) by the operator's names, `has_NAME` for those
//!   that may be absent;
//! - what the operator's *frame* makes of the shapes: see [`Space`] for `shape`, `NAME_strides`, `rank`, `kept`,
//!   `rows`, `terms`, `inner` and `count`, and each frame for more. Lists are `const long long*`.
//!
//! `T` in a text is the element type: that of the result, or of the operands where the row says so (comparisons,
//! positions of extremes). Tensors of another type are converted to what `launch` declares, as type promotion does.
//!
//! What it misses: what no frame tells apart is one kernel (`mm`, `bmm`, `einsum` are one contraction); arrays of
//! f16 and bf16; in-place work.

mod contract;
mod frames;
mod losses;
mod space;
mod spatial;
mod views;

pub use contract::{attention, linear, product, sum_of_products};
pub use frames::{batch, dims, each, extreme, groups, instances, matrix, tail};
pub use losses::{classes, distances, pairs};
pub use space::{Space, Step, Strided};
pub use spatial::{windows1, windows2, windows3};
pub use views::{as_it_lies, expanded, flipped, joined, narrowed, permuted, selected, stacked, transposed};

use crate::array::{Scalar, Value};
use crate::error::Fault;
use crate::op::Op;

/// Texts that kernels include by name, inlined by [`Plain::source`].
const SHARED: &[(&str, &str)] =
    &[("plain.cuh", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/cuda/plain.cuh")))];

/// What `T` stands for in a kernel's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The result's element type.
    Result,
    /// The highest of the operands' element types: bool, integer, float.
    Operands,
}

/// Binds the parameters of `launch` for one call.
pub type Frame = fn(&Call<'_>) -> Result<Lowered, Fault>;

/// The plain kernel of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    /// Its file in `crates/ops/cuda`.
    pub file: &'static str,
    /// The file's text.
    pub text: &'static str,
    /// What `T` stands for.
    pub element: Element,
    /// How its parameters are bound.
    pub frame: Frame,
}

impl Plain {
    /// The text with its includes inlined and `T` defined as `element` (`float`, `long long` or `bool`).
    pub fn source(&self, element: &str) -> String {
        let mut out = format!("#define T {element}\n");
        for line in self.text.lines() {
            let name = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
            match SHARED.iter().find(|(n, _)| Some(*n) == name) {
                Some((_, text)) => out.push_str(text),
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }

    /// What `T` stands for in a call's kernel: `float`, `long long` or `bool`.
    pub fn element_of(&self, args: &[Value<f32>], result: &Value<f32>) -> &'static str {
        let category = |v: &Value<f32>| match v {
            Value::Bool(_) | Value::Scalar(Scalar::Bool(_)) => 0,
            Value::Int(_) | Value::Scalar(Scalar::Int(_)) => 1,
            Value::Float(_) | Value::Scalar(Scalar::Float(_)) => 2,
            Value::Tuple(_) | Value::Text(_) | Value::None => 0,
        };
        let highest = match (self.element, result) {
            // Numbers such as `dim` are no operands, but where tensors are among the arguments they are no higher.
            (Element::Operands, _) => args.iter().map(category).max().unwrap_or(2),
            (Element::Result, Value::Tuple(all)) => all.first().map_or(2, category),
            (Element::Result, v) => category(v),
        };
        ["bool", "long long", "float"][highest]
    }
}

/// The text that kernels include.
pub fn shared_text() -> &'static str {
    SHARED[0].1
}

/// What a frame makes of a call.
#[derive(Clone, Debug)]
pub enum Lowered {
    /// Runs of `launch` in order, all over the same result.
    Steps(Vec<Step>),
    /// The call is that operator's, with as many of the arguments as it has parameters.
    As(&'static Op),
}

/// Where the elements of an argument lie, as a function of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Placement {
    /// Row-major without gaps.
    #[default]
    Contiguous,
    /// A view: the first dimension runs fastest, two elements apart, with a gap after every row and an offset
    /// before the first element.
    Strided,
}

impl Placement {
    /// The strides and the offset of a tensor of that shape.
    ///
    /// # Errors
    /// A fault where an offset does not fit in 63 bits.
    pub fn of(self, shape: &[usize]) -> Result<Strided, Fault> {
        let too_large = || Fault(format!("a tensor of shape {shape:?} is too large for 63-bit offsets"));
        let mut strides = vec![0i64; shape.len()];
        let order: Vec<usize> = match self {
            Placement::Contiguous => (0..shape.len()).rev().collect(),
            Placement::Strided => (0..shape.len()).collect(),
        };
        let (mut step, gap) = match self {
            Placement::Contiguous => (1i64, 0),
            Placement::Strided => (2, 1),
        };
        for d in order {
            strides[d] = step;
            let n = i64::try_from(shape[d].max(1)).map_err(|_| too_large())?;
            step = step.checked_mul(n).and_then(|s| s.checked_add(gap)).ok_or_else(too_large)?;
        }
        let shape = shape.iter().map(|&n| n as u64).collect();
        Ok(Strided { shape, strides, offset: if self == Placement::Strided { 3 } else { 0 } })
    }
}

/// A call to be lowered: arguments bound to parameters, defaults filled in.
pub struct Call<'a> {
    /// The operator.
    pub op: &'static Op,
    /// Its arguments in order of the parameters. Only shapes and numbers count here, no element of a tensor.
    pub args: &'a [Value<f32>],
    /// What the reference operator gives: shape and element type of the result.
    pub result: &'a Value<f32>,
    /// Where tensors among the arguments lie.
    pub placement: Placement,
}

impl Call<'_> {
    /// The argument of that name.
    pub fn arg(&self, name: &str) -> Option<&Value<f32>> {
        self.args.get(self.op.params.iter().position(|p| p.name == name)?)
    }

    /// The tensor argument of that name as it lies in memory; a number counts as a tensor without dimensions.
    ///
    /// # Errors
    /// A fault where its offsets do not fit.
    pub fn tensor(&self, name: &str) -> Result<Option<Strided>, Fault> {
        match self.arg(name) {
            Some(v) => self.placed(v),
            None => Ok(None),
        }
    }

    /// A tensor that must be there.
    ///
    /// # Errors
    /// A fault where it is not, or its offsets do not fit.
    pub fn needed(&self, name: &str) -> Result<Strided, Fault> {
        self.tensor(name)?.ok_or_else(|| Fault(format!("`{name}` is no tensor")))
    }

    /// A value as it lies in memory, where it is a tensor or a number.
    pub(crate) fn placed(&self, v: &Value<f32>) -> Result<Option<Strided>, Fault> {
        match v {
            Value::Float(_) | Value::Int(_) | Value::Bool(_) => {
                self.placement.of(v.shape().unwrap_or_default()).map(Some)
            }
            Value::Scalar(_) => Placement::Contiguous.of(&[]).map(Some),
            Value::Tuple(_) | Value::Text(_) | Value::None => Ok(None),
        }
    }

    /// The result's shape; that of the first where there are several.
    pub fn result_shape(&self) -> Vec<usize> {
        match self.result {
            Value::Tuple(all) => all.first().and_then(Value::shape).unwrap_or_default().to_vec(),
            v => v.shape().unwrap_or_default().to_vec(),
        }
    }

    /// The integers of an argument; nothing where it is absent or something else.
    pub fn ints(&self, name: &str) -> Vec<i64> {
        let one = |v: &Value<f32>| match v {
            Value::Scalar(s) => s.to_i64(),
            _ => None,
        };
        match self.arg(name) {
            Some(Value::Tuple(all)) => all.iter().filter_map(one).collect(),
            Some(v) => one(v).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// A flag that is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.arg(name), Some(Value::Scalar(Scalar::Bool(true))))
    }

    /// A string argument.
    pub fn text(&self, name: &str) -> &str {
        match self.arg(name) {
            Some(Value::Text(s)) => s,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::OPS;

    #[test]
    fn every_operator_has_a_plain_kernel() {
        let missing: Vec<&str> = OPS.iter().filter(|op| op.plain.is_none()).map(|op| op.name).collect();
        assert!(missing.is_empty(), "no plain kernel for {missing:?}");
    }

    #[test]
    fn every_file_in_the_folder_is_some_operators_kernel_and_says_what_it_computes() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let of = OPS.iter().filter_map(|op| op.plain).find(|p| p.file == name);
            let text = match of {
                Some(p) => p.text,
                None => SHARED.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("{name}")).1,
            };
            assert!(text.starts_with("// "), "{name} begins without a comment");
            for line in text.lines() {
                assert!(line.chars().count() <= 110, "{name}: {line}");
            }
        }
    }

    #[test]
    fn placements_do_not_overlap_and_leave_gaps() {
        for shape in [vec![], vec![3], vec![2, 3], vec![4, 1, 2], vec![2, 0, 3]] {
            for placement in [Placement::Contiguous, Placement::Strided] {
                let s = placement.of(&shape).unwrap();
                let mut places: Vec<i64> = (0..shape.iter().product::<usize>())
                    .map(|mut i| {
                        let mut at = s.offset;
                        for d in (0..shape.len()).rev() {
                            at += (i % shape[d]) as i64 * s.strides[d];
                            i /= shape[d];
                        }
                        at
                    })
                    .collect();
                let row_major: Vec<i64> = (0..places.len() as i64).collect();
                assert!(placement == Placement::Strided || places == row_major, "{shape:?}");
                assert!(placement == Placement::Contiguous || places.first().is_none_or(|&p| p > 0));
                places.sort_unstable();
                assert!(places.windows(2).all(|w| w[0] < w[1]), "{shape:?} {placement:?}");
            }
        }
    }
}
