//! Another implementation of a problem against protocols: what `assay check` will build on.

use assay_measure::{MatrixCell, Protocol, Tolerance};
use assay_nvrtc::Compiler;
use assay_problems::Problem;
use serde::Serialize;

use crate::audit::Context;
use crate::stage;
use crate::{CampaignError, filter};

/// What one protocol says of an implementation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProtocolVerdict {
    /// The protocol.
    pub protocol: String,
    /// Does it accept the implementation?
    pub passes: bool,
    /// Inputs that it asked and that are valid at its tolerance.
    pub asked: Vec<String>,
    /// Those that reject, with the threshold against the float32 reference.
    pub rejected_by: Vec<(String, f64)>,
}

/// Judges `source`, the text of a whole `kernel.cu` with its `launch`, by each protocol, at desk extents and under the
/// `hardware` schedule with seed 0.
///
/// # Errors
/// `Input` where the source does not compile or its launcher is not understood, or where the problem's own substrate
/// fails its gate; as [`crate::audit`] otherwise.
pub(crate) fn verdicts(
    context: &Context<'_>,
    compiler: &Compiler,
    problem: &Problem,
    source: &str,
    protocols: &[Protocol],
) -> Result<Vec<ProtocolVerdict>, CampaignError> {
    let mut prepared = stage::prepare(context, compiler, problem)?;
    if let Some(what) = prepared.gate()? {
        return Err(CampaignError::Input(format!("the substrate fails its own gate: {what}")));
    }
    let options = &context.compile_options;
    let version = filter::compiled(problem, compiler, options, "kernel.cu", source, &prepared.shapes)?;
    let mut cells: Vec<(String, f64, bool, MatrixCell)> = Vec::new();
    for input in &prepared.inputs {
        let cell = prepared.bench.once(&version, input)?;
        cells.push((input.text.clone(), input.variance, input.targeted, cell));
    }
    let targeted: Vec<String> = cells.iter().filter(|c| c.2).map(|c| c.0.clone()).collect();
    let key = problem.key();
    Ok(protocols
        .iter()
        .map(|p| {
            let tolerance: Tolerance = p.tolerance();
            let asked = p.recipes(&key, &targeted, |_| Vec::new());
            let valid: Vec<&(String, f64, bool, MatrixCell)> = cells
                .iter()
                .filter(|c| asked.contains(&c.0) && c.1 <= tolerance.atol.min(tolerance.rtol))
                .collect();
            let rejected_by: Vec<(String, f64)> = valid
                .iter()
                .filter(|c| c.3.rejected_by(tolerance) == Some(true))
                .map(|c| (c.0.clone(), c.3.official.threshold))
                .collect();
            ProtocolVerdict {
                protocol: p.name.clone(),
                passes: rejected_by.is_empty(),
                asked: valid.iter().map(|c| c.0.clone()).collect(),
                rejected_by,
            }
        })
        .collect())
}
