//! Which inputs may be asked: validity, ceilings, problems that nobody can referee.

use assay_tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::{CompareOptions, JudgeError, compare, count_mismatches};

/// How far correct evaluations of one input are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// The largest threshold over the legitimate-variance ensemble.
    #[serde(with = "crate::serde_float")]
    pub threshold: f64,
}

impl Validity {
    /// From the ensemble's thresholds. An empty ensemble has shown nothing: never valid. NaN counts as infinity.
    pub fn of(thresholds: impl IntoIterator<Item = f64>) -> Validity {
        let mut largest: Option<f64> = None;
        for t in thresholds {
            let t = if t.is_nan() { f64::INFINITY } else { t };
            largest = Some(largest.map_or(t, |l| l.max(t)));
        }
        Validity { threshold: largest.unwrap_or(f64::INFINITY) }
    }

    /// May the input be used at `atol = rtol = t`? Only where no correct evaluation would be rejected.
    pub fn is_valid(self, t: f64) -> bool {
        self.threshold <= t
    }
}

/// Largest finite |x| of a tensor; 0 where there is none.
pub fn max_abs_finite(tensor: &Tensor) -> f64 {
    let largest =
        |xs: &mut dyn Iterator<Item = f64>| xs.map(f64::abs).filter(|x| x.is_finite()).fold(0.0f64, f64::max);
    match (tensor.as_f32(), tensor.as_f64()) {
        (Some(xs), _) => largest(&mut xs.iter().map(|&x| f64::from(x))),
        (_, Some(xs)) => largest(&mut xs.iter().copied()),
        _ => largest(&mut (0..tensor.len()).map(|i| tensor.get_f64(i))),
    }
}

/// A reference that fails its own float64 evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unrefereeable {
    /// Threshold of the float32 reference against float64.
    #[serde(with = "crate::serde_float")]
    pub threshold: f64,
    /// Its largest absolute error.
    #[serde(with = "crate::serde_float")]
    pub max_abs: f64,
    /// Elements out of tolerance.
    pub violations: u64,
    /// Elements compared.
    pub elements: u64,
}

/// Does the float32 reference violate `atol = rtol = t` against float64? Then no float32 implementation can be
/// judged there, the reference included. None where it does not.
///
/// # Errors
/// As [`compare`].
///
/// Source: "Measuring the Checker", section 7 ("Two problems no oracle can referee").
pub fn unrefereeable(
    official: &Tensor,
    truth: &Tensor,
    t: f64,
    options: &CompareOptions,
) -> Result<Option<Unrefereeable>, JudgeError> {
    let c = compare(official, truth, options)?;
    if c.passes(t) {
        return Ok(None);
    }
    // A threshold within rounding of t can leave no element beyond it; the one at `index` stands for it.
    let violations = count_mismatches(official, truth, t, t, options)?.max(1);
    Ok(Some(Unrefereeable { threshold: c.threshold, max_abs: c.max_abs, violations, elements: c.elements }))
}

/// Where inputs stop being valid as their magnitude grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Ceiling {
    /// Not even the smallest magnitude tried is valid.
    Below {
        /// The smallest magnitude.
        lo: f64,
    },
    /// The largest magnitude found valid, and the smallest found invalid.
    Between {
        /// Valid.
        valid: f64,
        /// Invalid.
        invalid: f64,
    },
    /// Every magnitude up to this one is valid.
    Above {
        /// The largest magnitude.
        hi: f64,
    },
}

impl Ceiling {
    /// The largest magnitude known to be valid; none where nothing is.
    pub fn valid(self) -> Option<f64> {
        match self {
            Ceiling::Below { .. } => None,
            Ceiling::Between { valid, .. } => Some(valid),
            Ceiling::Above { hi } => Some(hi),
        }
    }
}

/// Finds the largest magnitude in `lo..=hi` whose ensemble threshold `f(magnitude)` is at most t.
///
/// Both ends are tried, then the geometric middle `steps` times, so f is called `steps + 2` times at most and the
/// answer is within a factor (hi/lo)^(2^-steps). Supposes that the threshold grows with the magnitude; where it
/// does not, the answer is one crossing of several.
///
/// # Errors
/// `BadRange` unless 0 < lo < hi, both finite; whatever f returns.
pub fn bisect_ceiling<E: From<JudgeError>>(
    mut f: impl FnMut(f64) -> Result<f64, E>,
    t: f64,
    lo: f64,
    hi: f64,
    steps: u32,
) -> Result<Ceiling, E> {
    if !(lo > 0.0 && lo < hi && hi.is_finite()) {
        return Err(JudgeError::BadRange { lo, hi }.into());
    }
    let mut valid_at = |magnitude: f64| f(magnitude).map(|threshold| threshold <= t);
    if !valid_at(lo)? {
        return Ok(Ceiling::Below { lo });
    }
    if valid_at(hi)? {
        return Ok(Ceiling::Above { hi });
    }
    let (mut valid, mut invalid) = (lo, hi);
    for _ in 0..steps {
        // Two roots, since the product of the ends may overflow; the root is exact in IEEE arithmetic, no libm.
        let middle = valid.sqrt() * invalid.sqrt();
        if middle <= valid || middle >= invalid {
            break;
        }
        if valid_at(middle)? {
            valid = middle;
        } else {
            invalid = middle;
        }
    }
    Ok(Ceiling::Between { valid, invalid })
}
