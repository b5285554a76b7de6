//! A substrate against the outputs of the program that it stands for: the gate of what was generated from a module.
//!
//! The tensors are the module's own, and so are the outputs in float32 and float64. Three things must agree: the
//! substrate's outputs with both, and the reference's float64 evaluation with the module's.

use std::collections::BTreeMap;

use assay_judge::PAPER_TOLERANCE;
use assay_measure::Origin;
use assay_nvrtc::Compiler;
use assay_ops::Variant;
use assay_problems::{Problem, Recipe};
use assay_simt::{Engine, Fill, Memory, Sanitize, Schedule};

use crate::CampaignError;
use crate::execute::{End, Mode};
use crate::filter;
use crate::harness::Harness;
use crate::inputs::{Input, Tensors, worst};

/// Largest threshold of our float64 evaluation against the module's own: both round at 1e-16, so what is above comes
/// from another meaning.
pub const SAME_MEANING: f64 = 1e-6;

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// All three agree.
    Pass,
    /// Something differs, or the substrate faults.
    Fail,
    /// The device or the reference lacks something.
    Unsupported,
    /// A budget ended.
    Exhausted,
}

impl Gate {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Gate::Pass => "pass",
            Gate::Fail => "fail",
            Gate::Unsupported => "unsupported",
            Gate::Exhausted => "exhausted",
        }
    }
}

/// A gate with its numbers. A threshold is the smallest `atol = rtol` that accepts, infinite where none does.
#[derive(Clone, Debug)]
pub struct GateReport {
    /// How it ended.
    pub gate: Gate,
    /// Why, where it is no pass.
    pub reason: String,
    /// The substrate against the module's float32 outputs.
    pub official: f64,
    /// The substrate against its float64 outputs.
    pub truth: f64,
    /// The module's float32 outputs against its float64 ones: what rounding alone makes.
    pub module: f64,
    /// Our reference in float64 against the module's float64 outputs.
    pub reference: f64,
    /// Warp instructions of the substrate.
    pub instructions: u64,
    /// Kernels launched.
    pub launches: u64,
}

/// Runs the gate. `instructions` is the budget in warp instructions.
///
/// # Errors
/// `Input` where the substrate does not compile; an internal fault.
pub fn gate(
    problem: &Problem,
    tensors: Tensors,
    official: Tensors,
    truth: Tensors,
    compiler: &Compiler,
    instructions: u64,
) -> Result<GateReport, CampaignError> {
    let mut report = GateReport {
        gate: Gate::Fail,
        reason: String::new(),
        official: f64::INFINITY,
        truth: f64::INFINITY,
        module: f64::INFINITY,
        reference: f64::INFINITY,
        instructions: 0,
        launches: 0,
    };
    let threshold =
        |out: &Tensors, want: &Tensors, exact: bool| worst(problem, out, want, exact).map(|c| c.threshold);
    let end = |gate: Gate, reason: String, report: &GateReport| GateReport { gate, reason, ..report.clone() };
    report.module = match threshold(&official, &truth, false) {
        Ok(t) => t,
        Err(e) => return Ok(end(Gate::Fail, format!("the module's own outputs: {e}"), &report)),
    };
    if !report.module.is_finite() {
        return Ok(end(
            Gate::Fail,
            "the module's own float32 outputs are not finite or miss its float64 ones".into(),
            &report,
        ));
    }
    let dims = BTreeMap::new();
    let shapes = vec![(crate::shape_name(&dims), dims.clone())];
    let options = assay_nvrtc::Options::default();
    let file = problem.kernel_file.display().to_string();
    let version = filter::compiled(problem, compiler, &options, &file, &problem.kernel_source, &shapes)?;
    let recipe = Recipe::official(0);
    let input = Input {
        text: recipe.to_string(),
        recipe,
        origin: Origin::Official,
        targeted: false,
        dims: dims.clone(),
        tensors,
        official,
        truth,
        reference_error: 0.0,
        variance: 0.0,
        controls: Vec::new(),
        reference: None,
        baseline: None,
        plain: None,
    };
    match input.evaluated(problem, &Variant::truth()) {
        Ok(ours) => match threshold(&ours, &input.truth, true) {
            Ok(t) => report.reference = t,
            Err(e) => return Ok(end(Gate::Fail, format!("the reference: {e}"), &report)),
        },
        Err(e) => return Ok(end(Gate::Unsupported, format!("the reference: {e}"), &report)),
    }
    let harness = Harness { problem, official_dims: dims, official_plan: None };
    let mode = Mode {
        memory: Memory::Strict,
        fill: Fill::Noise,
        sanitize: Sanitize::OFF,
        schedule: Schedule::Hardware,
        seed: 0,
        instructions,
        engine: Engine::Auto,
    };
    let run = harness.run(&version, &input, &mode, None);
    report.instructions = run.instructions;
    report.launches = version
        .plans
        .values()
        .next()
        .and_then(|p| p.as_ref().ok())
        .map_or(0, |p| p.launches().count() as u64);
    let out = match run.end {
        End::Outputs(out) => out,
        End::Fault(what) => return Ok(end(Gate::Fail, what, &report)),
        End::Unsupported(what) => return Ok(end(Gate::Unsupported, what, &report)),
        End::Exhausted(what) => return Ok(end(Gate::Exhausted, what, &report)),
    };
    if let Some(finding) = run.findings.first() {
        return Ok(end(Gate::Fail, finding.message.clone(), &report));
    }
    match (threshold(&out, &input.official, false), threshold(&out, &input.truth, false)) {
        (Ok(official), Ok(truth)) => (report.official, report.truth) = (official, truth),
        (Err(e), _) | (_, Err(e)) => return Ok(end(Gate::Fail, e, &report)),
    }
    let far: Vec<String> = [
        ("the reference in float64 from the module's", report.reference, SAME_MEANING),
        ("the substrate from the module's float32 outputs", report.official, PAPER_TOLERANCE),
        ("the substrate from the module's float64 outputs", report.truth, PAPER_TOLERANCE),
    ]
    .into_iter()
    .filter(|(_, t, most)| t.is_nan() || t > most)
    .map(|(what, t, most)| format!("{what} by {t:.1e} > {most:.0e}"))
    .collect();
    report.gate = if far.is_empty() { Gate::Pass } else { Gate::Fail };
    report.reason = far.join("; ");
    Ok(report)
}
