//! The catalogue's references, executed as they stand by PyTorch's functions, against ours.
//!
//! Every ragged shape of a problem (its desk extents where it states none) on its official inputs, with noise on the
//! parameters, so that no weight is a constant. float64 must agree to [`F64_LIMIT`]; float32 to [`F32_LIMIT`], or to ten
//! times what our own orders of summation are away from float64, whichever is more: where the arithmetic itself is that
//! uncertain, PyTorch's order may be as far away.

use std::collections::BTreeMap;

use assay_ops::{Precision, Variant};
use assay_problems::{Extents, Problem, Recipe};
use assay_tensor::Tensor;
use serde::Serialize;

use crate::client::{Answer, Placed, Torch};
use crate::error::TorchError;
use crate::verify::{Agreement, Place};

/// Largest |ours - PyTorch| / (1 + |PyTorch|) in float64.
pub const F64_LIMIT: f64 = 1e-11;

/// The same in float32, where the arithmetic is not more uncertain.
pub const F32_LIMIT: f64 = 1e-5;

/// How a problem's reference fared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProblemReport {
    /// `1/23`.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// Shapes at which it was compared.
    pub shapes: u64,
    /// Elements compared, in both precisions.
    pub elements: u64,
    /// The largest |ours - PyTorch| / (1 + |PyTorch|) in float64.
    pub f64: f64,
    /// The same in float32.
    pub f32: f64,
    /// What our float32 is away from our float64 there, in the worst order of summation.
    pub uncertain: f64,
    /// Legitimate refusals: reason and count.
    pub explained: BTreeMap<String, u64>,
    /// What differs: dims, precision and values.
    pub differences: Vec<String>,
}

/// Compares one problem.
///
/// # Errors
/// The worker's. What PyTorch or we refuse, and inputs that cannot be made, are differences.
pub fn problem(
    torch: &mut Torch<'_>,
    p: &Problem,
    seed: u64,
    agreement: &Agreement,
) -> Result<ProblemReport, TorchError> {
    let mut report = ProblemReport { problem: p.key(), name: p.name.clone(), ..ProblemReport::default() };
    let desk = [BTreeMap::new()];
    let shapes: &[BTreeMap<String, u64>] = if p.ragged.is_empty() { &desk } else { &p.ragged };
    for overrides in shapes {
        report.shapes += 1;
        match at(torch, p, overrides, seed, &mut report)? {
            Ok(()) => {}
            Err(Refused(why)) => match explained(p, agreement, &why) {
                Some(reason) => *report.explained.entry(reason).or_default() += 1,
                None => report.differences.push(format!("{overrides:?}: {why}")),
            },
        }
    }
    Ok(report)
}

struct Refused(String);

/// The reason why PyTorch refuses an operator of the reference there, where the table has one.
fn explained(p: &Problem, agreement: &Agreement, why: &str) -> Option<String> {
    let message = why.strip_prefix(PYTORCH_REFUSES)?;
    p.reference.operators().iter().find_map(|operator| {
        let place =
            Place { operator, precision: Precision::F64, program: &p.reference_text, integers: false };
        agreement.explains_refusal(&place, true, message).map(|row| row.reason.clone())
    })
}

const PYTORCH_REFUSES: &str = "PyTorch refuses: ";

fn at(
    torch: &mut Torch<'_>,
    p: &Problem,
    overrides: &BTreeMap<String, u64>,
    seed: u64,
    report: &mut ProblemReport,
) -> Result<Result<(), Refused>, TorchError> {
    let recipe = Recipe::official(seed).with_params().with_dims(overrides.clone());
    let made =
        p.make_inputs(&recipe, Extents::Desk).and_then(|i| Ok((i, p.dims_for(&recipe, Extents::Desk)?)));
    let (inputs, dims) = match made {
        Ok(made) => made,
        Err(e) => return Ok(Err(Refused(e.to_string()))),
    };
    let scalars = p.reference_scalars(&dims);
    let placed: Vec<Placed> = inputs.iter().map(|(n, t)| Placed::contiguous(n, t)).collect();
    let mut exact = BTreeMap::new();
    for (precision, variant) in [(Precision::F64, Variant::truth()), (Precision::F32, Variant::official())] {
        let ours = match p.reference.evaluate(&inputs, &scalars, &p.outputs, &variant) {
            Ok(ours) => ours,
            Err(e) => return Ok(Err(Refused(format!("we refuse: {e}")))),
        };
        let theirs = match torch.evaluate(&p.reference_text, &placed, &scalars, &p.outputs, precision)? {
            Answer::Outputs(out) => out,
            Answer::Raised(why) => return Ok(Err(Refused(format!("{PYTORCH_REFUSES}{why}")))),
        };
        for (name, ours) in &ours {
            let Some(theirs) = theirs.get(name) else { continue };
            report.elements += ours.len();
            let off = match threshold(ours, theirs) {
                Ok(off) => off,
                Err(why) => return Ok(Err(Refused(format!("`{name}`: {why}")))),
            };
            let limit = if precision == Precision::F64 {
                report.f64 = report.f64.max(off);
                exact.insert(name.clone(), ours.clone());
                F64_LIMIT
            } else {
                report.f32 = report.f32.max(off);
                let uncertain = match exact.get(name) {
                    Some(truth) if off > F32_LIMIT => uncertainty(p, &inputs, &scalars, name, truth),
                    Some(truth) => threshold(ours, truth).unwrap_or(0.0),
                    None => 0.0,
                };
                report.uncertain = report.uncertain.max(uncertain);
                F32_LIMIT.max(10.0 * uncertain)
            };
            // A NaN is beyond every limit.
            if off.is_nan() || off > limit {
                return Ok(Err(Refused(format!(
                    "`{name}` in {}: a threshold of {off:.3e}, where {limit:.1e} is allowed",
                    crate::verify::precision_name(precision)
                ))));
            }
        }
    }
    Ok(Ok(()))
}

/// How far the worst order of summation of the ensemble is away from float64.
fn uncertainty(
    p: &Problem,
    inputs: &BTreeMap<String, Tensor>,
    scalars: &BTreeMap<String, f64>,
    name: &str,
    truth: &Tensor,
) -> f64 {
    let off = |v: &Variant| {
        let out = p.reference.evaluate(inputs, scalars, std::slice::from_ref(&name.to_owned()), v).ok()?;
        threshold(out.get(name)?, truth).ok()
    };
    Variant::ensemble().iter().filter_map(off).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

/// The largest |a - b| / (1 + |b|); infinite where one is not finite and the other differs.
fn threshold(a: &Tensor, b: &Tensor) -> Result<f64, String> {
    let float = |t: &Tensor| t.dtype.is_float();
    if a.shape != b.shape || float(a) != float(b) {
        return Err(format!("{} {:?} instead of PyTorch's {} {:?}", a.dtype, a.shape, b.dtype, b.shape));
    }
    let off = |(i, x): (u64, f64)| {
        let y = b.get_f64(i);
        if x == y || (x.is_nan() && y.is_nan()) {
            0.0
        } else if x.is_finite() && y.is_finite() {
            (x - y).abs() / (1.0 + y.abs())
        } else {
            f64::INFINITY
        }
    };
    Ok((0..a.len()).map(|i| off((i, a.get_f64(i)))).fold(0.0, f64::max))
}
