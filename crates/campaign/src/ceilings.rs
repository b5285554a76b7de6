//! Where a problem's inputs stop being valid as their magnitude grows.
//!
//! Two kinds at desk extents, sign-mixed (`normal`) and same-sign (`samesign`), each by bisection over the largest
//! threshold of the legitimate-variance ensemble, the float32 reference's own error among them. The substrate is not
//! run. An evaluation that is not finite in some order has no threshold and counts as invalid.
//!
//! Source: "Measuring the Checker", section 3 (obstacle 2).

pub use assay_judge::Ceiling;
use assay_judge::{JudgeError, PAPER_TOLERANCE, bisect_ceiling};
use assay_measure::Origin;
use assay_problems::{Kind, Problem, Recipe};
use serde::Serialize;

use crate::{CampaignError, inputs};

/// Magnitudes between which a ceiling is looked for.
const LOWEST: f64 = 1e-3;
const HIGHEST: f64 = 1e6;
/// Halvings of the nine decades: the ceiling is known within a factor of 1.1.
const STEPS: u32 = 8;

/// The ceilings of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ceilings {
    /// Standard deviation of normal inputs.
    pub sign_mixed: Ceiling,
    /// Largest value of inputs of one sign.
    pub same_sign: Ceiling,
}

struct Failed(CampaignError);

impl From<JudgeError> for Failed {
    fn from(e: JudgeError) -> Failed {
        Failed(CampaignError::Internal(e.to_string()))
    }
}

/// Finds them at the witness tolerance.
///
/// # Errors
/// `Input` where the reference cannot be evaluated.
pub fn ceilings(problem: &Problem) -> Result<Ceilings, CampaignError> {
    let find = |kind: fn(f64) -> Kind| {
        let threshold = |magnitude: f64| -> Result<f64, Failed> {
            let recipe = Recipe::new(kind(magnitude)).with_seed(1);
            let input = inputs::make(problem, &recipe, Origin::Protocol, false).map_err(Failed)?;
            input.spread(problem).map_err(Failed)
        };
        bisect_ceiling(threshold, PAPER_TOLERANCE, LOWEST, HIGHEST, STEPS).map_err(|Failed(e)| e)
    };
    Ok(Ceilings { sign_mixed: find(Kind::Normal)?, same_sign: find(Kind::SameSign)? })
}
