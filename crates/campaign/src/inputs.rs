//! Inputs of a problem: values, references, validity and the runs of correct controls.

use std::collections::BTreeMap;

use assay_judge::{CompareOptions, Comparison, compare, max_abs_finite, unrefereeable};
use assay_measure::{Origin, REFEREE_TOLERANCES, ReferenceRow, Violations};
use assay_ops::Variant;
use assay_problems::{Evaluated, Extents, Operators, Oracle, Problem, Recipe};
use assay_tensor::Tensor;

use crate::CampaignError;
use crate::store::EvaluationRow;

/// Tensors by name.
pub type Tensors = BTreeMap<String, Tensor>;

/// One input recipe made concrete for a problem at desk extents.
pub struct Input {
    /// The recipe.
    pub recipe: Recipe,
    /// Its text.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Is it one of the problem's targeted recipes?
    pub targeted: bool,
    /// Dims and derived dims at which it stands.
    pub dims: BTreeMap<String, u64>,
    /// Inputs and parameters.
    pub tensors: Tensors,
    /// Outputs of the float32 reference.
    pub official: Tensors,
    /// Outputs of the float64 reference.
    pub truth: Tensors,
    /// Threshold of the float32 reference against float64: above the tolerance, the input cannot be refereed.
    pub reference_error: f64,
    /// Largest threshold over the float32 evaluations with other accumulation orders, the float32 reference against
    /// float64 among them; the substrate's own is added when the baseline has run.
    pub variance: f64,
    /// Thresholds of the held-out float32 evaluations against the float32 reference, by name.
    pub controls: Vec<(String, f64)>,
    /// The reference itself: its size, and where its float32 evaluation strays from float64; none of an input that was
    /// never made whole.
    pub reference: Option<ReferenceRow>,
    /// Digest of the original's outputs (see [`EvaluationRow::digest`]), once its baseline has run.
    pub baseline: Option<u64>,
    /// How the reference's chain of plain kernels was judged, where it was run.
    pub plain: Option<EvaluationRow>,
}

/// Makes the input and evaluates every reference on it.
///
/// # Errors
/// As [`make_by`].
pub fn prepare(
    oracle: &dyn Oracle,
    problem: &Problem,
    recipe: &Recipe,
    origin: Origin,
    targeted: bool,
) -> Result<Input, CampaignError> {
    let mut input = make_by(oracle, problem, recipe, origin, targeted)?;
    input.variance = input.spread(problem)?;
    for variant in Variant::held_out() {
        let distance = input.distance(problem, variant)?;
        input.controls.push((variant.name(), distance));
    }
    Ok(input)
}

/// Elements of all inputs and outputs of one input that a recipe from a file may ask for; desk extents have at most a few
/// millions.
const MOST_ELEMENTS: u64 = 1 << 25;

/// Has the input of a recipe a size that an evaluation can have? A recipe from elsewhere may ask for any.
///
/// # Errors
/// `Input` where it has not, or the recipe does not fit the problem.
pub fn affordable(problem: &Problem, recipe: &Recipe) -> Result<(), CampaignError> {
    let fault = |what: String| CampaignError::Input(format!("input `{recipe}` of {}: {what}", problem.key()));
    let dims = problem.dims_for(recipe, Extents::Desk).map_err(|e| fault(e.to_string()))?;
    let mut shapes = Vec::new();
    for i in &problem.inputs {
        shapes.push(problem.shape_of(i, &dims).map_err(|e| fault(e.to_string()))?);
    }
    for o in &problem.outputs {
        shapes.extend(problem.output_shape(o, &dims).map_err(|e| fault(e.to_string()))?);
    }
    let total = shapes
        .iter()
        .try_fold(0u64, |sum, shape| sum.checked_add(shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?));
    match total {
        Some(n) if n <= MOST_ELEMENTS => Ok(()),
        Some(n) => Err(fault(format!("{n} elements, at most {MOST_ELEMENTS} are made"))),
        None => Err(fault(format!("more than 2^64 elements, at most {MOST_ELEMENTS} are made"))),
    }
}

/// The input with the two references by our own operators, see [`make_by`].
///
/// # Errors
/// `Input` where the recipe does not fit the problem or the reference cannot be evaluated at these shapes.
pub fn make(
    problem: &Problem,
    recipe: &Recipe,
    origin: Origin,
    targeted: bool,
) -> Result<Input, CampaignError> {
    make_by(&Operators, problem, recipe, origin, targeted)
}

/// Makes the input with the two references that outputs are judged by; its variance is the float32 reference's error
/// alone, and it has no controls.
///
/// # Errors
/// `Input` where the recipe does not fit the problem or the reference cannot be evaluated at these shapes; `Oracle` where
/// the oracle gives nothing.
pub fn make_by(
    oracle: &dyn Oracle,
    problem: &Problem,
    recipe: &Recipe,
    origin: Origin,
    targeted: bool,
) -> Result<Input, CampaignError> {
    let text = recipe.to_string();
    let fault = |what: String| CampaignError::Input(format!("`{}` on input `{text}`: {what}", problem.key()));
    let dims = problem.dims_for(recipe, Extents::Desk).map_err(|e| fault(e.to_string()))?;
    let Evaluated { tensors, official, truth } =
        oracle.evaluate(problem, recipe).map_err(|e| CampaignError::of_oracle(e, &problem.key(), &text))?;
    for name in &problem.outputs {
        let stated = problem.output_shape(name, &dims).map_err(|e| fault(e.to_string()))?;
        if let (Some(stated), Some(t)) = (stated, truth.get(name))
            && stated != t.shape
        {
            return Err(fault(format!(
                "the reference gives `{name}` the shape {:?}, the file states {stated:?}",
                t.shape
            )));
        }
    }
    let reference = reference_row(problem, &official, &truth).map_err(fault)?;
    let reference_error = reference.error;
    Ok(Input {
        recipe: recipe.clone(),
        text,
        origin,
        targeted,
        dims,
        tensors,
        official,
        truth,
        reference_error,
        variance: reference_error,
        reference: Some(reference),
        controls: Vec::new(),
        baseline: None,
        plain: None,
    })
}

impl Input {
    /// A searched input whose tensors no memory holds: its recipe, place and validity alone.
    pub(crate) fn unmade(recipe: Recipe, dims: BTreeMap<String, u64>, variance: f64) -> Input {
        Input {
            text: recipe.to_string(),
            recipe,
            origin: Origin::Searched { mutant: String::new() },
            targeted: false,
            dims,
            tensors: Tensors::new(),
            official: Tensors::new(),
            truth: Tensors::new(),
            reference_error: variance,
            variance,
            reference: None,
            controls: Vec::new(),
            baseline: None,
            plain: None,
        }
    }

    /// Outputs of a float32 evaluation in another way.
    ///
    /// # Errors
    /// `Input` where the reference cannot be evaluated in it.
    pub fn evaluated(&self, problem: &Problem, variant: &Variant) -> Result<Tensors, CampaignError> {
        let scalars = problem.reference_scalars(&self.dims);
        problem.reference.evaluate(&self.tensors, &scalars, &problem.outputs, variant).map_err(|e| {
            CampaignError::Input(format!("`{}` on input `{}`: reference: {e}", problem.key(), self.text))
        })
    }

    /// Threshold of a float32 evaluation in another way against the float32 reference.
    fn distance(&self, problem: &Problem, variant: &Variant) -> Result<f64, CampaignError> {
        let fault = |what: String| {
            CampaignError::Input(format!("`{}` on input `{}`: reference: {what}", problem.key(), self.text))
        };
        let outputs = self.evaluated(problem, variant)?;
        Ok(worst(problem, &outputs, &self.official, false).map_err(fault)?.threshold)
    }

    /// Largest threshold over the legitimate ways of computing in float32, and of the float32 reference itself.
    ///
    /// # Errors
    /// `Input` where the reference cannot be evaluated in one of them.
    pub fn spread(&self, problem: &Problem) -> Result<f64, CampaignError> {
        let mut spread = self.reference_error;
        for variant in Variant::ensemble() {
            spread = spread.max(self.distance(problem, variant)?);
        }
        Ok(spread)
    }
}

/// The size of the float32 reference, and how far it strays from float64 at each tolerance.
fn reference_row(problem: &Problem, official: &Tensors, truth: &Tensors) -> Result<ReferenceRow, String> {
    let error = worst(problem, official, truth, true)?;
    let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: true };
    let mut max_abs = 0.0f64;
    let mut positions = [0u64; REFEREE_TOLERANCES.len()];
    for name in &problem.outputs {
        let (Some(f32s), Some(f64s)) = (official.get(name), truth.get(name)) else { continue };
        max_abs = max_abs.max(max_abs_finite(f32s));
        for (n, t) in positions.iter_mut().zip(REFEREE_TOLERANCES) {
            let found = unrefereeable(f32s, f64s, t, &options).map_err(|e| e.to_string())?;
            *n += found.map_or(0, |u| u.violations);
        }
    }
    Ok(ReferenceRow {
        elements: error.elements,
        max_abs,
        error: error.threshold,
        max_abs_error: error.max_abs,
        violations: REFEREE_TOLERANCES
            .iter()
            .zip(positions)
            .map(|(&tolerance, positions)| Violations { tolerance, positions })
            .collect(),
    })
}

/// The comparison with the largest threshold over a problem's outputs; integers exactly where `exact`.
///
/// # Errors
/// An output that is missing or of another shape or dtype, in words.
pub fn worst(
    problem: &Problem,
    outputs: &Tensors,
    reference: &Tensors,
    exact: bool,
) -> Result<Comparison, String> {
    let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: exact };
    let mut all = Vec::new();
    for name in &problem.outputs {
        let (Some(out), Some(want)) = (outputs.get(name), reference.get(name)) else {
            return Err(format!("output `{name}` is missing"));
        };
        all.push(compare(out, want, &options).map_err(|e| format!("output `{name}`: {e}"))?);
    }
    Comparison::worst(all).ok_or_else(|| "the problem has no outputs".to_owned())
}
