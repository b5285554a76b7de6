//! What a tolerance cannot see: the largest relative error that it accepts, and answers that read nothing.
//!
//! Source: "Measuring the Checker", section 3 (obstacle 1: the oracle is graded) and section 2 (a softmax of zeros
//! passes).

use assay_tensor::Tensor;
use assay_tensor::tensor::write_element;
use serde::{Deserialize, Serialize};

use crate::{CompareOptions, JudgeError, allclose};

/// Largest relative error that a tolerance lets through on outputs of that size: atol / max|ref| + rtol.
/// Infinity where the reference is zero.
///
/// An output that is `1 + e` times the reference passes everywhere iff `e * |ref| <= atol + rtol * |ref|` at the largest
/// |ref|, so this is exact up to rounding; [`largest_accepted_error`] measures it.
///
/// Source: "Measuring the Checker", section 3 (0.39 at softmax over 64 columns, 2.5e3 over 393,216).
pub fn blind_band(atol: f64, rtol: f64, max_abs_reference: f64) -> f64 {
    if atol == 0.0 { rtol } else { atol / max_abs_reference.abs() + rtol }
}

/// Relative errors that [`largest_accepted_error`] looks between.
const SMALLEST_ERROR: f64 = 1e-12;
const LARGEST_ERROR: f64 = 1e15;

/// How close [`largest_accepted_error`] comes: the ratio of the smallest error refused to the largest accepted.
const CLOSENESS: f64 = 1.0 + 1e-4;

/// The largest relative error e, in every element at once, that the check accepts: `out * (1 + e)`, rounded to the
/// output's dtype, against the reference. Found by bisection over whole comparisons, within a factor of 1.0001.
///
/// Shapes: equal; `out` is a correct output of dtype f16, bf16, f32 or f64. 0 where not even 1e-12 is accepted,
/// infinity where 1e15 still is (a reference of zeros).
///
/// # Errors
/// As [`allclose`].
pub fn largest_accepted_error(
    out: &Tensor,
    reference: &Tensor,
    atol: f64,
    rtol: f64,
    options: &CompareOptions,
) -> Result<f64, JudgeError> {
    let size = usize::try_from(out.dtype.size_bytes()).unwrap_or(8);
    let mut scaled = out.clone();
    let mut accepted = |e: f64| {
        for (i, place) in (0..out.len()).zip(scaled.data.chunks_exact_mut(size)) {
            write_element(out.dtype, out.get_f64(i) * (1.0 + e), place);
        }
        allclose(&scaled, reference, atol, rtol, options)
    };
    if !accepted(SMALLEST_ERROR)? {
        return Ok(0.0);
    }
    if accepted(LARGEST_ERROR)? {
        return Ok(f64::INFINITY);
    }
    let (mut yes, mut no) = (SMALLEST_ERROR, LARGEST_ERROR);
    while no / yes > CLOSENESS {
        // A root is exact in IEEE arithmetic, no libm.
        let middle = (yes * no).sqrt();
        if accepted(middle)? {
            yes = middle;
        } else {
            no = middle;
        }
    }
    Ok(yes)
}

/// An answer of a kernel that reads nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrivialAnswer {
    /// Zeros everywhere.
    Zeros,
    /// One number everywhere, the same for every input.
    Constant,
}

/// Which answers that read nothing pass on all of some inputs: for each output, the interval of constants that the
/// tolerance accepts everywhere.
///
/// Source: "Measuring the Checker", section 2.
#[derive(Clone, Debug, Default)]
pub struct TrivialAnswers {
    windows: Vec<(f64, f64)>,
    inputs: u64,
}

impl TrivialAnswers {
    /// Takes the reference's outputs (in their order) on one more input into account. Integers pass only where they are
    /// equal; a NaN of the reference leaves no constant.
    pub fn narrow<'a>(&mut self, outputs: impl IntoIterator<Item = &'a Tensor>, atol: f64, rtol: f64) {
        self.inputs += 1;
        for (k, t) in outputs.into_iter().enumerate() {
            if self.windows.len() <= k {
                self.windows.push((f64::NEG_INFINITY, f64::INFINITY));
            }
            let (mut from, mut to) = self.windows[k];
            for i in 0..t.len() {
                // Nothing widens an empty interval again.
                if from > to {
                    break;
                }
                let v = t.get_f64(i);
                let slack = if t.dtype.is_float() { atol + rtol * v.abs() } else { 0.0 };
                if v.is_nan() {
                    (from, to) = (f64::INFINITY, f64::NEG_INFINITY);
                } else {
                    from = from.max(v - slack);
                    to = to.min(v + slack);
                }
            }
            self.windows[k] = (from, to);
        }
    }

    /// The least answer that passes on every input seen; none where no constant does, or where nothing was seen.
    pub fn least(&self) -> Option<TrivialAnswer> {
        if self.inputs == 0 || self.windows.is_empty() {
            return None;
        }
        if self.windows.iter().all(|&(from, to)| from <= 0.0 && 0.0 <= to) {
            return Some(TrivialAnswer::Zeros);
        }
        self.windows.iter().all(|&(from, to)| from <= to).then_some(TrivialAnswer::Constant)
    }
}
