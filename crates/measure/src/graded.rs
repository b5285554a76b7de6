//! What the tolerance leaves unseen: blind bands of an audit's problems, the measured curve over reduction lengths, and
//! the problems that float32 itself cannot be judged on.

use serde::{Deserialize, Serialize};

use crate::{InputRow, KillMatrix, MeasureError, Origin, REFEREE_TOLERANCES, ReferenceRow, Tolerance};

/// The largest relative error that the official inputs of a problem let through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlindBandRow {
    /// `level/id`.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// The official input that lets least through.
    pub recipe: String,
    /// Elements of its outputs.
    pub elements: u64,
    /// Largest |ref| there.
    pub max_abs_reference: f64,
    /// atol / max|ref| + rtol: every element off by less than this passes. Infinite for a reference of zeros.
    #[serde(with = "assay_judge::serde_float")]
    pub band: f64,
    /// Does it let zeros through (a band of at least 1)?
    pub zeros_pass: bool,
}

/// Can the problems be refereed at one tolerance?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefereeRow {
    /// atol = rtol.
    pub tolerance: f64,
    /// The extents at which it was looked at.
    pub extents: String,
    /// Problems looked at.
    pub problems: u64,
    /// Those whose float32 reference fails its own float64 evaluation on an official input.
    pub strays: Vec<StrayRow>,
}

/// A float32 reference that fails its own float64 evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrayRow {
    /// `level/id`.
    pub problem: String,
    /// The official input with the most violations.
    pub recipe: String,
    /// Positions out of tolerance there.
    pub violations: u64,
    /// Positions compared.
    pub elements: u64,
    /// Largest absolute error there.
    #[serde(with = "assay_judge::serde_float")]
    pub max_abs_error: f64,
}

/// The official inputs whose reference was kept.
fn official(matrix: &KillMatrix) -> impl Iterator<Item = (&InputRow, &ReferenceRow)> {
    matrix
        .inputs
        .iter()
        .filter(|i| i.origin == Origin::Official)
        .filter_map(|i| i.reference.as_ref().map(|r| (i, r)))
}

/// Blind bands of problems at a tolerance, widest first; a problem whose references were not kept has none.
///
/// Source: "Measuring the Checker", section 3.
pub fn blind_bands(matrices: &[KillMatrix], tolerance: Tolerance) -> Vec<BlindBandRow> {
    let mut rows: Vec<BlindBandRow> = matrices
        .iter()
        .filter_map(|m| {
            // A kernel is rejected where one input rejects it: what counts is the largest reference of all.
            let (input, reference) =
                official(m).reduce(|a, b| if b.1.max_abs > a.1.max_abs { b } else { a })?;
            let band = assay_judge::blind_band(tolerance.atol, tolerance.rtol, reference.max_abs);
            Some(BlindBandRow {
                problem: m.key(),
                name: m.name.clone(),
                recipe: input.recipe.clone(),
                elements: reference.elements,
                max_abs_reference: reference.max_abs,
                band,
                zeros_pass: band >= 1.0,
            })
        })
        .collect();
    rows.sort_by(|a, b| b.band.total_cmp(&a.band));
    rows
}

/// Which problems float32 itself fails on, at each of [`REFEREE_TOLERANCES`].
///
/// Source: "Measuring the Checker", section 7.
pub fn referee(matrices: &[KillMatrix], extents: &str) -> Vec<RefereeRow> {
    let seen = matrices.iter().filter(|m| official(m).next().is_some()).count() as u64;
    if seen == 0 {
        return Vec::new();
    }
    let row = |&tolerance: &f64| {
        let strays = matrices
            .iter()
            .filter_map(|m| {
                let counted = official(m).filter_map(|(i, r)| {
                    let v = r.violations.iter().find(|v| v.tolerance == tolerance)?;
                    (v.positions > 0).then_some((i, r, v.positions))
                });
                let (input, reference, violations) = counted.reduce(|a, b| if b.2 > a.2 { b } else { a })?;
                Some(StrayRow {
                    problem: m.key(),
                    recipe: input.recipe.clone(),
                    violations,
                    elements: reference.elements,
                    max_abs_error: reference.max_abs_error,
                })
            })
            .collect();
        RefereeRow { tolerance, extents: extents.to_owned(), problems: seen, strays }
    };
    REFEREE_TOLERANCES.iter().map(row).collect()
}

/// The blind band against the length of a reduction, measured once on correct kernels and shipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlindCurve {
    /// The command that measures it again.
    pub command: String,
    /// atol = rtol.
    pub tolerance: f64,
    /// The points, by operator and then by length.
    pub points: Vec<BlindPoint>,
}

/// One point of the curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlindPoint {
    /// The operator.
    pub operator: String,
    /// The problem whose kernel and reference were taken, `level/id`.
    pub problem: String,
    /// The input.
    pub recipe: String,
    /// Length of the reduction.
    pub length: u64,
    /// Largest |ref|.
    pub max_abs_reference: f64,
    /// atol / max|ref| + rtol.
    pub band: f64,
    /// The largest relative error that the check accepts in all of the kernel's outputs at once, by bisection.
    pub accepted_error: f64,
    /// Threshold of the correct kernel itself.
    pub threshold: f64,
    /// Does a kernel that stores zeros pass?
    pub zeros_pass: bool,
}

/// The shipped curve, of `docs/results/blind-band.json`.
///
/// # Errors
/// `Shipped`, which a test of this crate excludes.
pub fn blind_curve() -> Result<BlindCurve, MeasureError> {
    let text = include_str!("../../../docs/results/blind-band.json");
    serde_json::from_str(text)
        .map_err(|e| MeasureError::Shipped { file: "blind-band.json".to_owned(), message: e.to_string() })
}
