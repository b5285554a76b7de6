//! Comparison of an output with its reference.

use assay_tensor::{DType, Tensor, numel};
use serde::{Deserialize, Serialize};

use crate::JudgeError;
use crate::kernel::{Maxima, errors, maxima, walk};

/// How outputs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareOptions {
    /// A NaN matches where the reference is NaN too (the problem says so). Otherwise NaN equals nothing.
    #[serde(default)]
    pub nan_ok: bool,
    /// Integers and bools must be equal (`truth`); otherwise PyTorch's formula judges them (`official`).
    #[serde(default)]
    pub exact_integers: bool,
}

/// What an output's comparison with one reference came to.
///
/// Only the threshold decides; the rest explains it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// max |out - ref| / (1 + |ref|), in float64: the smallest t at which `atol = rtol = t` passes. Infinity where
    /// a NaN or an infinity stands on one side and not on the other, or where exact integers differ.
    #[serde(with = "crate::serde_float")]
    pub threshold: f64,
    /// Row-major index of the threshold, the lowest of equals; none where every element is equal.
    pub index: Option<u64>,
    /// Largest |out - ref| over pairs of finite values (saturated at the largest float64).
    #[serde(with = "crate::serde_float")]
    pub max_abs: f64,
    /// Index of `max_abs`.
    pub max_abs_index: Option<u64>,
    /// Largest |out - ref| / |ref| over pairs of finite values where ref is not zero (saturated likewise).
    #[serde(with = "crate::serde_float")]
    pub max_rel: f64,
    /// Index of `max_rel`.
    pub max_rel_index: Option<u64>,
    /// Elements where a NaN or an infinity on either side has no match on the other.
    pub non_finite: u64,
    /// Elements compared.
    pub elements: u64,
    /// Which output of a problem with several this is; 0 for the first or only one.
    #[serde(default)]
    pub output: u32,
}

impl Comparison {
    /// The comparison of nothing, or of equal tensors of `elements` elements.
    pub fn equal(elements: u64) -> Comparison {
        Comparison::from_maxima(&Maxima::ZERO, elements)
    }

    fn from_maxima(m: &Maxima, elements: u64) -> Comparison {
        Comparison {
            threshold: m.threshold,
            index: (m.threshold > 0.0).then_some(m.threshold_at),
            max_abs: m.abs,
            max_abs_index: (m.abs > 0.0).then_some(m.abs_at),
            max_rel: m.rel,
            max_rel_index: (m.rel > 0.0).then_some(m.rel_at),
            non_finite: m.non_finite,
            elements,
            output: 0,
        }
    }

    /// Does `atol = rtol = t` accept this output?
    pub fn passes(&self, t: f64) -> bool {
        self.threshold <= t
    }

    /// The comparison of a problem's several outputs, given in their order: the worst threshold (the first of
    /// equals) with its output and index, the largest errors, the sums of the counts. The indices of the errors
    /// count within the output where they stand, which need not be `output`. None gives none.
    pub fn worst(comparisons: impl IntoIterator<Item = Comparison>) -> Option<Comparison> {
        let mut joined: Option<Comparison> = None;
        for (output, mut c) in (0u32..).zip(comparisons) {
            c.output = output;
            let Some(j) = &mut joined else {
                joined = Some(c);
                continue;
            };
            if c.threshold > j.threshold {
                (j.threshold, j.index, j.output) = (c.threshold, c.index, c.output);
            }
            if c.max_abs > j.max_abs {
                (j.max_abs, j.max_abs_index) = (c.max_abs, c.max_abs_index);
            }
            if c.max_rel > j.max_rel {
                (j.max_rel, j.max_rel_index) = (c.max_rel, c.max_rel_index);
            }
            j.non_finite = j.non_finite.saturating_add(c.non_finite);
            j.elements = j.elements.saturating_add(c.elements);
        }
        joined
    }
}

/// Elements of both, where shapes and dtypes allow a comparison.
fn checked_len(out: &Tensor, reference: &Tensor) -> Result<u64, JudgeError> {
    if out.shape != reference.shape {
        return Err(JudgeError::ShapeMismatch { out: out.shape.clone(), reference: reference.shape.clone() });
    }
    let wider = if out.dtype.is_float() {
        matches!(reference.dtype, DType::F32 | DType::F64)
            && reference.dtype.size_bytes() >= out.dtype.size_bytes()
    } else {
        matches!(reference.dtype, DType::I64 | DType::F64)
    };
    if out.dtype != reference.dtype && !wider {
        return Err(JudgeError::DTypeMismatch { out: out.dtype, reference: reference.dtype });
    }
    for t in [out, reference] {
        // The fields are public, so that a tensor can lie about its length.
        let want = numel(&t.shape).and_then(|n| n.checked_mul(t.dtype.size_bytes()));
        if want != Some(t.data.len() as u64) {
            return Err(JudgeError::BadLength {
                dtype: t.dtype,
                shape: t.shape.clone(),
                bytes: t.data.len() as u64,
            });
        }
    }
    Ok(out.len())
}

/// Are both integers (or bools), to be compared without rounding?
fn integers(out: &Tensor, reference: &Tensor) -> bool {
    !out.dtype.is_float() && !reference.dtype.is_float()
}

/// An integer output judged exactly against a float64 reference: unequal where the values differ.
fn exact_against_float(out: &Tensor, options: &CompareOptions) -> bool {
    options.exact_integers && !out.dtype.is_float()
}

fn widened(out: &Tensor, reference: &Tensor, options: &CompareOptions) -> Maxima {
    let mut m = Maxima::ZERO;
    let exact = exact_against_float(out, options);
    for i in 0..out.len() {
        let (o, r) = (out.get_f64(i), reference.get_f64(i));
        m.step(i, o, r, options.nan_ok);
        if exact && o != r {
            m.raise_to_infinity(i);
        }
    }
    m
}

/// Compares an output with its reference.
///
/// Shapes: equal. Dtypes: equal, or a float output against a `f32`/`f64` reference at least as wide, or an integer
/// or bool output against `i64`/`f64`. Equal infinities match, a finite value never matches an infinite one, NaN
/// matches NaN only with `nan_ok`. Integers are compared without rounding; with `exact_integers` any difference
/// makes the threshold infinite. Empty tensors are equal.
///
/// # Errors
/// `ShapeMismatch`, `DTypeMismatch`, `BadLength`.
///
/// Source: the formula of `torch.allclose`, |out - ref| <= atol + rtol * |ref|, solved for atol = rtol.
pub fn compare(out: &Tensor, reference: &Tensor, options: &CompareOptions) -> Result<Comparison, JudgeError> {
    let elements = checked_len(out, reference)?;
    if integers(out, reference) {
        if out.dtype == reference.dtype && out.data == reference.data {
            return Ok(Comparison::equal(elements));
        }
        return Ok(Comparison::from_maxima(&integer_maxima(out, reference, options), elements));
    }
    let nan_ok = options.nan_ok;
    // A slice is refused where the bytes happen to lie at an odd address: then the slow way is right as well.
    let m = match (out.as_f32(), out.as_f64(), reference.as_f32(), reference.as_f64()) {
        (Some(o), _, Some(r), _) => maxima(o, r, nan_ok),
        (Some(o), _, _, Some(r)) => maxima(o, r, nan_ok),
        // Two float64 can overflow in their difference, which the fast loop does not handle.
        (_, Some(o), _, Some(r)) => {
            let mut m = Maxima::ZERO;
            walk(&mut m, 0, o, r, nan_ok);
            m
        }
        _ => widened(out, reference, options),
    };
    Ok(Comparison::from_maxima(&m, elements))
}

fn integer_maxima(out: &Tensor, reference: &Tensor, options: &CompareOptions) -> Maxima {
    let mut m = Maxima::ZERO;
    for i in 0..out.len() {
        // Both dtypes are integers or bools, so both values exist.
        if let (Some(o), Some(r)) = (out.get_i128(i), reference.get_i128(i)) {
            m.step_integer(i, o, r, options.exact_integers);
        }
    }
    m
}

/// [`compare`] one element at a time, through no typed slice and no block test: the definition that the fast
/// version is tested against.
///
/// # Errors
/// As [`compare`].
pub fn compare_slowly(
    out: &Tensor,
    reference: &Tensor,
    options: &CompareOptions,
) -> Result<Comparison, JudgeError> {
    let elements = checked_len(out, reference)?;
    let m = if integers(out, reference) {
        integer_maxima(out, reference, options)
    } else {
        widened(out, reference, options)
    };
    Ok(Comparison::from_maxima(&m, elements))
}

/// Calls `visit(index, |d|, |ref|)` for every element: `None` for a pair that no tolerance accepts.
fn visit_errors(
    out: &Tensor,
    reference: &Tensor,
    options: &CompareOptions,
    mut visit: impl FnMut(Option<(f64, f64)>) -> bool,
) -> Result<(), JudgeError> {
    let elements = checked_len(out, reference)?;
    let exact = exact_against_float(out, options);
    let both_integers = integers(out, reference);
    for i in 0..elements {
        let pair = if both_integers {
            match (out.get_i128(i), reference.get_i128(i)) {
                (Some(o), Some(r)) if o != r && exact => None,
                (Some(o), Some(r)) => Some(((o - r).unsigned_abs() as f64, r.unsigned_abs() as f64)),
                _ => None,
            }
        } else {
            let (o, r) = (out.get_f64(i), reference.get_f64(i));
            if o == r || (options.nan_ok && o.is_nan() && r.is_nan()) {
                Some((0.0, 0.0))
            } else if !o.is_finite() || !r.is_finite() || exact {
                None
            } else {
                Some((errors(o, r).0, r.abs()))
            }
        };
        if !visit(pair) {
            break;
        }
    }
    Ok(())
}

fn accepts(pair: Option<(f64, f64)>, atol: f64, rtol: f64) -> bool {
    pair.is_some_and(|(d, size)| d <= atol + rtol * size)
}

/// Is |out - ref| <= atol + rtol * |ref| everywhere? Equal infinities and, with `nan_ok`, equal NaNs match.
///
/// For `atol = rtol = t` this is [`Comparison::passes`] but for t within rounding (two ULPs) of the threshold.
///
/// # Errors
/// As [`compare`].
pub fn allclose(
    out: &Tensor,
    reference: &Tensor,
    atol: f64,
    rtol: f64,
    options: &CompareOptions,
) -> Result<bool, JudgeError> {
    let mut all = true;
    visit_errors(out, reference, options, |pair| {
        all = accepts(pair, atol, rtol);
        all
    })?;
    Ok(all)
}

/// How many elements [`allclose`] refuses.
///
/// # Errors
/// As [`compare`].
pub fn count_mismatches(
    out: &Tensor,
    reference: &Tensor,
    atol: f64,
    rtol: f64,
    options: &CompareOptions,
) -> Result<u64, JudgeError> {
    let mut count = 0u64;
    visit_errors(out, reference, options, |pair| {
        count += u64::from(!accepts(pair, atol, rtol));
        true
    })?;
    Ok(count)
}

/// Row-major index of the first element that [`allclose`] refuses, and how many it refuses; none where it accepts.
///
/// # Errors
/// As [`compare`].
pub fn first_mismatch(
    out: &Tensor,
    reference: &Tensor,
    atol: f64,
    rtol: f64,
    options: &CompareOptions,
) -> Result<Option<(u64, u64)>, JudgeError> {
    let (mut at, mut first, mut count) = (0u64, None, 0u64);
    visit_errors(out, reference, options, |pair| {
        if !accepts(pair, atol, rtol) {
            first = first.or(Some(at));
            count += 1;
        }
        at += 1;
        true
    })?;
    Ok(first.map(|i| (i, count)))
}

/// max |out - ref| / (atol + rtol * |ref|), for tolerances with atol unlike rtol: at most 1 where [`allclose`]
/// accepts (but for rounding), infinity where no multiple of the tolerance would.
///
/// # Errors
/// As [`compare`].
pub fn scaled_threshold(
    out: &Tensor,
    reference: &Tensor,
    atol: f64,
    rtol: f64,
    options: &CompareOptions,
) -> Result<f64, JudgeError> {
    let mut worst = 0.0f64;
    visit_errors(out, reference, options, |pair| {
        match pair {
            None => worst = f64::INFINITY,
            // 0/0 is an equal pair.
            Some((d, size)) if d > 0.0 => worst = worst.max(d / (atol + rtol * size)),
            Some(_) => {}
        }
        worst < f64::INFINITY
    })?;
    Ok(worst)
}
