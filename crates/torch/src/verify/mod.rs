//! Our operators against PyTorch: every operator of [`assay_ops::OPS`] over drawn shapes, layouts, dtypes and special
//! values, in float64 and float32.
//!
//! A case is a one-line program of the reference language, executed by both sides. Values that differ by more than the
//! operator's tolerance, another shape or element type, and a refusal of one side alone are differences. A difference is
//! explained where a row of `agreement.toml` gives its reason; everything else is a fault of ours until shown otherwise.
//!
//! What it misses: integer results are compared by value, since our integers have 64 bits whatever the input's width;
//! gradients; half-precision arithmetic (half-precision inputs are converted first, on both sides).

mod agreement;
mod compare;
mod draw;
mod operators;

use std::collections::BTreeMap;

use assay_ops::{OPS, Precision, Program, Variant};
use serde::Serialize;

use crate::client::{Answer, Placed, Torch};
use crate::error::TorchError;

pub use agreement::{Agreement, Difference, Place, Scale, Side, Tolerance};
pub use compare::{Bound, Compared, compare};
pub use draw::{Case, Draw, Values};
pub use operators::{Generator, generator};

/// Cases of each operator where nobody says otherwise.
pub const DEFAULT_CASES: u64 = 60;

/// Unexplained differences kept for each operator; all are counted.
const KEPT: usize = 5;

/// What is compared with what.
pub const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];

/// A difference that nothing explains.
#[derive(Clone, Debug, Serialize)]
pub struct Unexplained {
    /// The operator, or the problem's key.
    pub of: String,
    /// The number of the case: with the seed it is drawn again.
    pub case: u64,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// What was executed.
    pub program: String,
    /// Name, dtype, shape and strides of every input.
    pub inputs: Vec<String>,
    /// What differs.
    pub what: String,
}

/// How one operator fared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OperatorReport {
    /// Its name.
    pub name: String,
    /// Cases, each in both precisions.
    pub cases: u64,
    /// Elements compared.
    pub elements: u64,
    /// Cases that both sides refused.
    pub refused: u64,
    /// The largest error in epsilons of float64, relative to what its tolerance is relative to.
    pub worst_f64: f64,
    /// The same in epsilons of float32.
    pub worst_f32: f64,
    /// Legitimate differences: reason and count.
    pub explained: BTreeMap<String, u64>,
    /// Differences that nothing explains.
    pub unexplained: u64,
    /// The first of them.
    pub differences: Vec<Unexplained>,
}

/// The name of a precision in records.
pub fn precision_name(p: Precision) -> &'static str {
    if p == Precision::F64 { "f64" } else { "f32" }
}

/// The variant of ours that is compared in that precision.
pub fn variant(p: Precision) -> Variant {
    if p == Precision::F64 { Variant::truth() } else { Variant::official() }
}

/// The operators of these names; all where none is named.
///
/// # Errors
/// `Bad` for a name that is no operator.
pub fn chosen(names: &[String]) -> Result<Vec<&'static str>, TorchError> {
    if names.is_empty() {
        return Ok(OPS.iter().map(|op| op.name).collect());
    }
    names
        .iter()
        .map(|name| {
            OPS.iter().find(|op| op.name == name).map(|op| op.name).ok_or_else(|| {
                let all: Vec<&str> = OPS.iter().map(|op| op.name).collect();
                TorchError::Bad(format!("`{name}` is no operator; there are {}", all.join(", ")))
            })
        })
        .collect()
}

/// Compares one operator over `cases` cases.
///
/// # Errors
/// The worker's; and `Bad` where a drawn program does not parse, which is a fault of ours.
pub fn operator(
    torch: &mut Torch<'_>,
    name: &'static str,
    cases: u64,
    seed: u64,
    agreement: &Agreement,
) -> Result<OperatorReport, TorchError> {
    let generate =
        generator(name).ok_or_else(|| TorchError::Bad(format!("no generator draws for `{name}`")))?;
    let mut report = OperatorReport { name: name.to_owned(), cases, ..OperatorReport::default() };
    for number in 0..cases {
        let case = generate(Draw::new(seed, name, number), name);
        for precision in PRECISIONS {
            one(torch, &case, number, precision, agreement, &mut report)?;
        }
    }
    Ok(report)
}

fn one(
    torch: &mut Torch<'_>,
    case: &Case,
    number: u64,
    precision: Precision,
    agreement: &Agreement,
    report: &mut OperatorReport,
) -> Result<(), TorchError> {
    let names: Vec<&str> = case.inputs.iter().map(|(_, p)| p.name.as_str()).collect();
    let program = Program::parse(&case.program, &names, &[])
        .map_err(|e| TorchError::Bad(format!("the drawn program `{}`: {e}", case.program)))?;
    let inputs: BTreeMap<String, _> = case.inputs.iter().map(|(t, p)| (p.name.clone(), t.clone())).collect();
    let placed: Vec<Placed> = case.inputs.iter().map(|(_, p)| p.clone()).collect();
    let none = BTreeMap::new();
    let ours = program.evaluate(&inputs, &none, &case.outputs, &variant(precision));
    let theirs = torch.evaluate(&case.program, &placed, &none, &case.outputs, precision)?;
    let place = Place {
        operator: &report.name.clone(),
        precision,
        program: &case.program,
        integers: case.inputs.iter().any(|(t, _)| !t.dtype.is_float()),
    };
    let differ = |what: String, report: &mut OperatorReport| {
        report.unexplained += 1;
        if report.differences.len() < KEPT {
            report.differences.push(Unexplained {
                of: report.name.clone(),
                case: number,
                precision: precision_name(precision),
                program: case.program.clone(),
                inputs: placed
                    .iter()
                    .map(|p| format!("{} {} {:?} strides {:?}", p.name, p.dtype, p.shape, p.strides))
                    .collect(),
                what,
            });
        }
    };
    match (ours, theirs) {
        (Err(_), Answer::Raised(_)) => report.refused += 1,
        (Err(e), Answer::Outputs(_)) => match agreement.explains_refusal(&place, false, &e.to_string()) {
            Some(row) => *report.explained.entry(row.reason.clone()).or_default() += 1,
            None => differ(format!("we refuse what PyTorch computes: {e}"), report),
        },
        (Ok(_), Answer::Raised(why)) => match agreement.explains_refusal(&place, true, &why) {
            Some(row) => *report.explained.entry(row.reason.clone()).or_default() += 1,
            None => differ(format!("PyTorch refuses what we compute: {why}"), report),
        },
        (Ok(ours), Answer::Outputs(theirs)) => {
            let tolerance = agreement.tolerance(&report.name, &case.program);
            let terms = match tolerance {
                Some(t) if t.of == Scale::Terms => magnitudes(&program, &inputs, &case.outputs),
                _ => BTreeMap::new(),
            };
            let largest = case
                .inputs
                .iter()
                .flat_map(|(t, _)| t.to_f64_vec())
                .filter(|x| x.is_finite())
                .fold(1.0f64, |m, x| m.max(x.abs()));
            let mut variants: Option<Vec<BTreeMap<String, assay_tensor::Tensor>>> = None;
            for name in &case.outputs {
                let (Some(a), Some(b)) = (ours.get(name), theirs.get(name)) else { continue };
                let mut spread = |i: usize| {
                    let all =
                        variants.get_or_insert_with(|| ensemble(&program, &inputs, &case.outputs, precision));
                    let at = |out: &BTreeMap<String, assay_tensor::Tensor>| {
                        out.get(name).map(|t| t.get_f64(i as u64))
                    };
                    let own = a.get_f64(i as u64);
                    all.iter()
                        .filter_map(at)
                        .map(|x| (x - own).abs())
                        .filter(|d| d.is_finite())
                        .fold(0.0, f64::max)
                };
                let bound = Bound { precision, tolerance, terms: terms.get(name), inputs: largest };
                let compared = compare(a, b, &bound, &mut spread, &mut |x, y| {
                    agreement.explains(&place, x, y).map(|row| row.reason.clone())
                });
                report.elements += compared.elements;
                let worst =
                    if precision == Precision::F64 { &mut report.worst_f64 } else { &mut report.worst_f32 };
                *worst = worst.max(compared.worst);
                for (reason, count) in compared.explained {
                    *report.explained.entry(reason).or_default() += count;
                }
                if let Some(what) = compared.difference {
                    differ(format!("`{name}`: {what}"), report);
                }
            }
        }
    }
    Ok(())
}

/// The outputs of the program on the absolute values of its float inputs, in float64: what the terms of sums add up to.
fn magnitudes(
    program: &Program,
    inputs: &BTreeMap<String, assay_tensor::Tensor>,
    outputs: &[String],
) -> BTreeMap<String, Vec<f64>> {
    let absolute: BTreeMap<String, assay_tensor::Tensor> = inputs
        .iter()
        .filter_map(|(name, t)| {
            let values: Vec<f64> = t.to_f64_vec().iter().map(|x| x.abs()).collect();
            let positive = if t.dtype == assay_tensor::DType::Bool {
                t.clone()
            } else {
                assay_tensor::Tensor::from_f64_values(t.dtype, &t.shape, &values).ok()?
            };
            Some((name.clone(), positive))
        })
        .collect();
    program
        .evaluate(&absolute, &BTreeMap::new(), outputs, &Variant::truth())
        .map(|out| out.into_iter().map(|(n, t)| (n, t.to_f64_vec())).collect())
        .unwrap_or_default()
}

/// The outputs in every order of summation and algorithm of the ensemble, in that precision.
fn ensemble(
    program: &Program,
    inputs: &BTreeMap<String, assay_tensor::Tensor>,
    outputs: &[String],
    precision: Precision,
) -> Vec<BTreeMap<String, assay_tensor::Tensor>> {
    Variant::ensemble()
        .iter()
        .filter_map(|v| {
            program.evaluate(inputs, &BTreeMap::new(), outputs, &Variant { precision, ..*v }).ok()
        })
        .collect()
}
