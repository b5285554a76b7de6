//! The blind band against the length of a reduction, measured on correct kernels.
//!
//! A point is one substrate at one length: its kernel is executed on the CPU device on the problem's official kind of
//! input, its outputs are checked, and then the largest relative error is searched that the check accepts in all of
//! them at once. Beside it stands what the formula says. The lengths are the points' own, neither desk nor official
//! extents.
//!
//! Source: "Measuring the Checker", section 3: 0.39 at a length of 64, 2.5e3 at 393,216, at atol = rtol = 1e-2. It does
//! not say how many rows it drew; the largest of more rows is larger, so the band at small lengths depends on that.

use std::collections::BTreeMap;

use assay_judge::{
    CompareOptions, PAPER_TOLERANCE, allclose, blind_band, largest_accepted_error, max_abs_finite,
};
use assay_measure::{BlindPoint, Origin};
use assay_nvrtc::Compiler;
use assay_problems::{Extents, Problem, Recipe};
use assay_simt::{Engine, Fill, Memory, Sanitize, Schedule};
use assay_tensor::Tensor;

use crate::bench::shape_name;
use crate::execute::{End, Mode};
use crate::harness::Harness;
use crate::{CampaignError, filter, inputs};

/// An operator of the curve.
#[derive(Clone, Copy, Debug)]
pub struct CurveCase {
    /// Its name for readers.
    pub operator: &'static str,
    /// Its problem, `level/id`.
    pub problem: &'static str,
    /// The dim that is reduced.
    pub length: &'static str,
    /// The dim that counts independent reductions.
    pub rows: &'static str,
    /// Other dims that are not left at desk extents.
    pub fixed: &'static [(&'static str, u64)],
}

const fn case(
    operator: &'static str,
    problem: &'static str,
    length: &'static str,
    rows: &'static str,
    fixed: &'static [(&'static str, u64)],
) -> CurveCase {
    CurveCase { operator, problem, length, rows, fixed }
}

/// The operators, one row each.
pub const CURVE: &[CurveCase] = &[
    case("softmax", "1/23", "D", "B", &[]),
    case("KL divergence", "1/98", "D", "B", &[]),
    case("L2 norm", "1/39", "D", "B", &[]),
    case("mean", "1/48", "Y", "B", &[("X", 1)]),
    case("layer norm", "1/40", "W", "B", &[("C", 1), ("H", 1)]),
    case("log-softmax", "1/24", "D", "B", &[]),
    case("cross entropy", "1/95", "C", "B", &[]),
    case("sum", "1/47", "Y", "B", &[("X", 1)]),
    case("matrix product", "1/6", "K", "M", &[("N", 1)]),
];

/// The lengths: from the paper's smallest over its largest to 2^24.
pub const LENGTHS: &[u64] = &[64, 256, 1024, 4096, 16_384, 65_536, 393_216, 1 << 20, 1 << 22, 1 << 24];

/// Rows at most, and elements of an input at most.
const MOST_ROWS: u64 = 64;
const MOST_ELEMENTS: u64 = 1 << 24;

/// Measures one point. `problem` is the case's.
///
/// # Errors
/// `Input` where the problem does not take that length, its kernel gives no outputs there or wrong ones.
pub fn blind_point(
    case: &CurveCase,
    problem: &Problem,
    length: u64,
    compiler: &Compiler,
) -> Result<BlindPoint, CampaignError> {
    let rows = (MOST_ELEMENTS / length.max(1)).clamp(1, MOST_ROWS);
    let mut dims: BTreeMap<String, u64> = case.fixed.iter().map(|&(n, v)| (n.to_owned(), v)).collect();
    dims.insert(case.length.to_owned(), length);
    dims.insert(case.rows.to_owned(), rows);
    let recipe = Recipe::official(0).with_dims(dims);
    let fault = |what: String| CampaignError::Input(format!("`{}` on `{recipe}`: {what}", problem.key()));
    let input = inputs::make(problem, &recipe, Origin::Official, false)?;
    let dims_at = problem.dims_for(&recipe, Extents::Desk).map_err(|e| fault(e.to_string()))?;
    let shapes = vec![(shape_name(&dims_at), dims_at.clone())];
    let options = assay_nvrtc::Options::default();
    let version = filter::compiled(
        problem,
        compiler,
        &options,
        &problem.kernel_file.display().to_string(),
        &problem.kernel_source,
        &shapes,
    )?;
    let plan = version.plans.get(&shapes[0].0).and_then(|p| p.as_ref().ok()).cloned();
    let harness = Harness { problem, official_dims: dims_at, official_plan: plan };
    let mode = Mode {
        memory: Memory::Strict,
        fill: Fill::Noise,
        sanitize: Sanitize::OFF,
        schedule: Schedule::Hardware,
        seed: 0,
        instructions: u64::MAX,
        engine: Engine::Auto,
    };
    let run = harness.run(&version, &input, &mode, None);
    let outputs = match run.end {
        End::Outputs(outputs) => outputs,
        End::Fault(what) | End::Exhausted(what) | End::Unsupported(what) => return Err(fault(what)),
    };
    let t = PAPER_TOLERANCE;
    let itself = inputs::worst(problem, &outputs, &input.official, false).map_err(fault)?;
    if !itself.passes(t) {
        return Err(fault(format!("the kernel is wrong there: threshold {:.3e}", itself.threshold)));
    }
    let compared = CompareOptions { nan_ok: problem.nan_ok, exact_integers: false };
    let (mut max_abs, mut accepted, mut zeros_pass) = (0.0f64, f64::INFINITY, true);
    for name in &problem.outputs {
        let (Some(out), Some(want)) = (outputs.get(name), input.official.get(name)) else {
            return Err(fault(format!("output `{name}` is missing")));
        };
        let judged = |e: assay_judge::JudgeError| fault(e.to_string());
        max_abs = max_abs.max(max_abs_finite(want));
        accepted = accepted.min(largest_accepted_error(out, want, t, t, &compared).map_err(judged)?);
        let zeros = Tensor::zeros(want.dtype, &want.shape).map_err(|e| fault(e.to_string()))?;
        zeros_pass &= allclose(&zeros, want, t, t, &compared).map_err(judged)?;
    }
    Ok(BlindPoint {
        operator: case.operator.to_owned(),
        problem: problem.key(),
        recipe: recipe.to_string(),
        length,
        max_abs_reference: max_abs,
        band: blind_band(t, t, max_abs),
        accepted_error: accepted,
        threshold: itself.threshold,
        zeros_pass,
    })
}
