//! The oracle: where an evaluation's inputs and references come from.
//!
//! There is one seam. [`Operators`], our own reference on the catalogue's inputs, is one side of it; a benchmark's own
//! file, executed by PyTorch in a worker, is the other. What a campaign does with an input does not depend on which it is.

use std::collections::BTreeMap;

use assay_ops::Variant;
use assay_tensor::Tensor;

use crate::problem::{Extents, Problem};
use crate::recipe::Recipe;

/// The tensors of one evaluation, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// Inputs and parameters of the problem, in its dtypes and shapes.
    pub tensors: BTreeMap<String, Tensor>,
    /// Outputs of the float32 reference, which the official check compares with.
    pub official: BTreeMap<String, Tensor>,
    /// Outputs of the float64 reference.
    pub truth: BTreeMap<String, Tensor>,
}

/// Why an oracle gives nothing. None of these is a verdict on a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OracleError {
    /// The recipe does not fit the problem, or the reference cannot be evaluated at its shape.
    #[error("{0}")]
    Input(String),
    /// The benchmark's own check, or the file, raises on this input.
    #[error("{0}")]
    Refused(String),
    /// The file, or what it computes, is not what this version can set beside the problem.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Time or memory ran out.
    #[error("exhausted: {0}")]
    Exhausted(String),
    /// The process that was asked died or broke its protocol.
    #[error("{0}")]
    Died(String),
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
    /// Results cannot be kept.
    #[error("{0}")]
    CannotWrite(String),
}

/// Gives the inputs of a recipe for a problem, and what the references give on them.
pub trait Oracle: Sync {
    /// What it is, for reports and manifests; null for the catalogue's own.
    fn describe(&self) -> serde_json::Value;

    /// Inputs and references of a recipe at the problem's desk extents.
    ///
    /// # Errors
    /// See [`OracleError`]; the same each time for what the file or the recipe is to blame for.
    fn evaluate(&self, problem: &Problem, recipe: &Recipe) -> Result<Evaluated, OracleError>;
}

/// The catalogue's: inputs by the problem's initialisers, references by our operators.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operators;

impl Oracle for Operators {
    fn describe(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn evaluate(&self, problem: &Problem, recipe: &Recipe) -> Result<Evaluated, OracleError> {
        let input = |e: String| OracleError::Input(e);
        let dims = problem.dims_for(recipe, Extents::Desk).map_err(|e| input(e.to_string()))?;
        let tensors = problem.make_inputs(recipe, Extents::Desk).map_err(|e| input(e.to_string()))?;
        let scalars = problem.reference_scalars(&dims);
        let evaluate = |variant: &Variant| {
            problem
                .reference
                .evaluate(&tensors, &scalars, &problem.outputs, variant)
                .map_err(|e| input(format!("reference: {e}")))
        };
        let truth = evaluate(&Variant::truth())?;
        let official = evaluate(&Variant::official())?;
        Ok(Evaluated { tensors, official, truth })
    }
}
