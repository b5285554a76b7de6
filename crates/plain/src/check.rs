//! A problem's reference as a chain, against float64.

use std::collections::BTreeMap;

use assay_judge::{CompareOptions, Comparison, compare};
use assay_ops::Variant;
use assay_problems::{Extents, Problem, Recipe};
use assay_tensor::Tensor;

use crate::{Chain, PlainError, PlainRunner, Settings};

/// A chain and how far it lies from the float64 reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What the chain gave.
    pub chain: Chain,
    /// Its worst output against float64, integers exactly.
    pub truth: Comparison,
    /// The threshold of the float32 reference against float64: what rounding alone makes.
    pub reference: f64,
}

/// Runs a problem's reference as a chain on one input at these dims.
///
/// # Errors
/// As [`PlainRunner::run`]; `Unsupported` where the recipe does not fit the problem.
pub fn check(
    runner: &PlainRunner<'_>,
    problem: &Problem,
    recipe: &Recipe,
    dims: &BTreeMap<String, u64>,
    settings: &Settings,
) -> Result<Checked, PlainError> {
    let other = |e: String| PlainError::Unsupported(e);
    let own: BTreeMap<String, u64> =
        problem.dims.iter().filter_map(|d| Some((d.name.clone(), *dims.get(&d.name)?))).collect();
    let recipe = recipe.clone().with_dims(own);
    let inputs = problem.make_inputs(&recipe, Extents::Desk).map_err(|e| other(e.to_string()))?;
    let scalars = problem.reference_scalars(dims);
    let evaluate = |v: &Variant| problem.reference.evaluate(&inputs, &scalars, &problem.outputs, v);
    let (truth, float32) = (evaluate(&Variant::truth())?, evaluate(&Variant::official())?);
    let chain = runner.run(&problem.reference, &inputs, &scalars, &problem.outputs, settings)?;
    let worst = |out: &BTreeMap<String, Tensor>| -> Result<Comparison, PlainError> {
        let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: true };
        let all = problem.outputs.iter().map(|name| match (out.get(name), truth.get(name)) {
            (Some(out), Some(want)) => {
                compare(out, want, &options).map_err(|e| other(format!("output `{name}`: {e}")))
            }
            _ => Err(other(format!("output `{name}` is missing"))),
        });
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Comparison::worst(all).ok_or_else(|| other("the problem has no outputs".to_owned()))
    };
    Ok(Checked { truth: worst(&chain.outputs)?, reference: worst(&float32)?.threshold, chain })
}
