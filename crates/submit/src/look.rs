//! One forward pass of a submission on one question, and what it says.

use std::time::Duration;

use assay_campaign::check::WrongElement;
use assay_extension::{ExtensionError, Tensor as HostTensor};
use assay_judge::{CompareOptions, Comparison, EvaluationEnd, compare, first_mismatch};
use assay_tensor::Tensor;
use serde_json::{Value as Json, json};

use crate::host::{Device, Seen};
use crate::problem::Case;
use crate::server::Gone;
use crate::session::{Reply, Session};
use crate::wire;

/// Float comparisons as PyTorch has them; NaN equals NaN where the reference has one (there nothing is asked).
const OPTIONS: CompareOptions = CompareOptions { nan_ok: true, exact_integers: false };

/// Elements up to which outputs of another shape are broadcast.
const MOST_BROADCAST: u64 = 1 << 24;

/// How a forward pass ended.
#[derive(Clone, Debug)]
pub struct Look {
    /// The end, at the tolerance given.
    pub end: EvaluationEnd,
    /// The smallest atol = rtol that accepts.
    pub threshold: f64,
    /// The absolute tolerance that `end` stands for; the relative one is the one asked for.
    pub atol: f64,
    /// The first wrong element.
    pub first_wrong: Option<WrongElement>,
    /// What ended it, or why nothing can be compared.
    pub message: Option<String>,
    /// Was it refused by a compiler?
    pub refused: bool,
    /// Its output.
    pub output: Option<Vec<Tensor>>,
    /// Inputs that were written to.
    pub modified: Vec<u64>,
    /// Does an output share memory with an input?
    pub aliases: bool,
    /// Functions that were replaced.
    pub patched: Vec<String>,
    /// What the device saw.
    pub seen: Seen,
    /// The class of the exception, where there was one.
    pub raised: Option<String>,
}

impl Look {
    /// Without an output.
    pub fn ended(end: EvaluationEnd, message: impl Into<String>, seen: Seen) -> Look {
        Look {
            end,
            threshold: f64::INFINITY,
            atol: assay_judge::PAPER_TOLERANCE,
            first_wrong: None,
            message: Some(message.into()),
            refused: false,
            output: None,
            modified: Vec::new(),
            aliases: false,
            patched: Vec::new(),
            seen,
            raised: None,
        }
    }

    /// Passes at the tolerance it was judged at?
    pub fn passes(&self) -> bool {
        self.end == EvaluationEnd::Pass
    }

    /// Numbers that are not the reference's?
    pub fn mismatches(&self) -> bool {
        matches!(self.end, EvaluationEnd::Mismatch | EvaluationEnd::NonFinite)
    }

    /// Neither a pass nor a failure?
    pub fn undecided(&self) -> bool {
        matches!(self.end, EvaluationEnd::Exhausted | EvaluationEnd::Unsupported)
    }
}

/// What a reply that is no answer means.
pub fn failure(reply: Reply, seen: Seen) -> Look {
    match reply {
        Reply::Answer(other) => Look::ended(
            EvaluationEnd::Fault,
            format!("the submission's process answered `{}`", head(&other)),
            seen,
        ),
        Reply::Raised { stage, kind, message } => {
            let missing = matches!(kind.as_str(), "ModuleNotFoundError" | "ImportError");
            let end = match stage.as_str() {
                "allocate" | "exchange" => EvaluationEnd::Exhausted,
                _ if missing => EvaluationEnd::Unsupported,
                _ => EvaluationEnd::Fault,
            };
            let mut look = Look::ended(end, message, seen);
            look.raised = Some(kind);
            look
        }
        Reply::Stopped => {
            let (end, refused) = match &seen.stop {
                Some(ExtensionError::Rejected { .. }) => (EvaluationEnd::Fault, true),
                Some(ExtensionError::Unsupported { .. }) => (EvaluationEnd::Unsupported, false),
                Some(ExtensionError::Exhausted { .. }) => (EvaluationEnd::Exhausted, false),
                Some(ExtensionError::Raised { .. } | ExtensionError::Fault { .. }) | None => {
                    (EvaluationEnd::Fault, false)
                }
            };
            let message = seen.stop.as_ref().map_or_else(|| "stopped".to_owned(), ToString::to_string);
            let mut look = Look::ended(end, message, seen);
            look.refused = refused;
            look
        }
        Reply::Gone(Gone::TimedOut) => {
            Look::ended(EvaluationEnd::Exhausted, "no answer within the time limit", seen)
        }
        Reply::Gone(Gone::Broken(what)) => Look::ended(
            EvaluationEnd::Fault,
            format!("the submission's process broke the protocol: {what}"),
            seen,
        ),
        Reply::Gone(Gone::Hoards(what)) => {
            Look::ended(EvaluationEnd::Fault, format!("its process was ended: {what}"), seen)
        }
        Reply::Gone(Gone::Closed | Gone::Interrupted) => {
            Look::ended(EvaluationEnd::Fault, "the submission's process ended", seen)
        }
    }
}

fn head(v: &Json) -> String {
    v.to_string().chars().take(100).collect()
}

/// How a forward pass is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The device.
    pub device: Device,
    /// The tensors of the pass before are used again, with these values in them.
    pub held: bool,
    /// Time for it.
    pub limit: Duration,
    /// Absolute and relative tolerance at once.
    pub tolerance: f64,
    /// Does the check compare other shapes too, see [`broadcast`]?
    pub broadcasts: bool,
}

/// A forward pass that gave an output.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The output.
    pub tensors: Vec<Tensor>,
    /// Inputs that were written to.
    pub modified: Vec<u64>,
    /// Does an output share memory with an input?
    pub aliases: bool,
    /// Functions that were replaced.
    pub patched: Vec<String>,
    /// What the device saw.
    pub seen: Seen,
}

impl Pass {
    /// Its output against a reference.
    pub fn judged(self, reference: &[Tensor], tolerance: f64, broadcasts: bool) -> Look {
        let tensors = self.tensors;
        let mut look = if broadcasts {
            let (outputs, reference) = broadcast(&tensors, reference);
            against(&outputs, &reference, tolerance, self.seen)
        } else {
            against(&tensors, reference, tolerance, self.seen)
        };
        look.output = Some(tensors);
        (look.modified, look.aliases, look.patched) = (self.modified, self.aliases, self.patched);
        look
    }
}

/// Runs a case and compares its output with the reference in the precision asked for.
pub fn look(session: &mut Session<'_>, case: &Case, ask: &Ask) -> Look {
    match pass(session, case, ask) {
        Ok(pass) => pass.judged(&case.official.tensors, ask.tolerance, ask.broadcasts),
        Err(look) => *look,
    }
}

/// Runs a case; where it gives no output, how it ended.
pub fn pass(session: &mut Session<'_>, case: &Case, ask: &Ask) -> Result<Pass, Box<Look>> {
    let mut seen = Seen::default();
    // Other inputs find other noise in fresh memory, or what is never written would look like an answer kept.
    let mut device = ask.device.clone();
    device.seed = device.seed.wrapping_add(case.seed.wrapping_mul(0x9E37_79B9));
    let request = json!({"type": "forward", "seed": case.seed, "held": ask.held, "stale": null});
    let reply = session.ask(request, Some(("inputs", &case.inputs)), &device, ask.limit, &mut seen);
    let answer = match reply {
        Reply::Answer(answer) if answer.get("type").and_then(Json::as_str) == Some("output") => answer,
        other => return Err(Box::new(failure(other, seen))),
    };
    let value = match session.output(&answer) {
        Ok(value) => value,
        Err(e) => return Err(Box::new(failure(Reply::Gone(Gone::Broken(e)), seen))),
    };
    let list = |key: &str| answer.get(key).and_then(Json::as_array).into_iter().flatten();
    let mut tensors: Vec<Tensor> = wire::tensors(&value).into_iter().map(wire::dense).collect();
    if ask.broadcasts {
        let wanted = case.official.tensors.iter().map(|t| Some(&t.shape)).chain(std::iter::repeat(None));
        tensors = tensors
            .into_iter()
            .zip(wanted)
            .map(|(t, want)| match want {
                Some(shape) => reshaped(t, shape),
                None => t,
            })
            .collect();
    }
    Ok(Pass {
        tensors,
        modified: list("modified").filter_map(Json::as_u64).collect(),
        aliases: answer.get("aliases").and_then(Json::as_bool).unwrap_or(false),
        patched: list("patched").filter_map(Json::as_str).map(str::to_owned).collect(),
        seen,
    })
}

/// The shape that two broadcast to by PyTorch's rules.
fn common(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let extent = |s: &[u64], k: usize| (k + s.len()).checked_sub(rank).and_then(|i| s.get(i)).copied();
    (0..rank)
        .map(|k| match (extent(a, k).unwrap_or(1), extent(b, k).unwrap_or(1)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

/// A tensor in a shape to which it broadcasts with not an element more: a loss of the shape `[1]` for one of `[]`.
fn reshaped(t: Tensor, shape: &[u64]) -> Tensor {
    let len = assay_tensor::numel(shape);
    let same = common(&t.shape, shape).is_some_and(|c| len.is_some() && assay_tensor::numel(&c) == len);
    if same && len == Some(t.len()) { Tensor { shape: shape.to_vec(), ..t } } else { t }
}

/// Outputs and reference as a check compares them that leaves shapes to `torch.allclose`: both in the shape to which they
/// broadcast. What does not broadcast, or to more than [`MOST_BROADCAST`] elements, stays as it is.
fn broadcast(outputs: &[Tensor], reference: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
    let mut both = (outputs.to_vec(), reference.to_vec());
    for (out, want) in both.0.iter_mut().zip(&mut both.1) {
        let shape = common(&out.shape, &want.shape).filter(|_| out.shape != want.shape);
        if let Some(shape) = shape.filter(|s| assay_tensor::numel(s).is_some_and(|n| n <= MOST_BROADCAST)) {
            (*out, *want) = (expanded(out, &shape), expanded(want, &shape));
        }
    }
    both
}

/// A tensor with its elements repeated along the extents of 1 that a shape, which it broadcasts to, has more of.
fn expanded(t: &Tensor, shape: &[u64]) -> Tensor {
    let size = usize::try_from(t.dtype.size_bytes()).unwrap_or(1);
    let mut data: Vec<u8> = Vec::new();
    for index in 0..assay_tensor::numel(shape).unwrap_or(0) {
        let at = coordinates(shape, index);
        let own = t.shape.iter().zip(at.iter().skip(shape.len() - t.shape.len()));
        let from = own.fold(0u64, |flat, (&n, &i)| flat * n + if n == 1 { 0 } else { i });
        let from = usize::try_from(from).unwrap_or(usize::MAX).saturating_mul(size);
        data.extend(t.data.get(from..from.saturating_add(size)).unwrap_or_default());
    }
    Tensor { dtype: t.dtype, shape: shape.to_vec(), data }
}

/// Outputs against a reference.
pub fn against(outputs: &[Tensor], reference: &[Tensor], tolerance: f64, seen: Seen) -> Look {
    if outputs.len() != reference.len() {
        let message = format!("{} tensors where the reference gives {}", outputs.len(), reference.len());
        return Look::ended(EvaluationEnd::Mismatch, message, seen);
    }
    let mut all = Vec::with_capacity(outputs.len());
    for (k, (out, want)) in outputs.iter().zip(reference).enumerate() {
        match compare(out, want, &OPTIONS) {
            Ok(c) => all.push(c),
            Err(e) => return Look::ended(EvaluationEnd::Mismatch, format!("{}: {e}", name(k)), seen),
        }
    }
    let Some(worst) = Comparison::worst(all) else {
        return Look::ended(EvaluationEnd::Mismatch, "no output", seen);
    };
    let mut look = Look::ended(EvaluationEnd::of(&worst, tolerance), "", seen);
    look.message = None;
    look.atol = tolerance;
    look.threshold = worst.threshold;
    if !look.passes() {
        look.first_wrong = first_wrong(outputs, reference, tolerance, |_| 1.0);
    }
    look
}

fn name(k: usize) -> String {
    if k == 0 { "output".into() } else { format!("output{k}") }
}

fn first_wrong(
    outputs: &[Tensor],
    reference: &[Tensor],
    t: f64,
    part: impl Fn(&Tensor) -> f64,
) -> Option<WrongElement> {
    for (k, (out, want)) in outputs.iter().zip(reference).enumerate() {
        if let Ok(Some((index, wrong))) = first_mismatch(out, want, t * part(want), t, &OPTIONS) {
            return Some(WrongElement {
                output: name(k),
                index,
                at: coordinates(&want.shape, index),
                got: out.get_f64(index),
                want: want.get_f64(index),
                wrong_elements: wrong,
                elements: out.len(),
            });
        }
    }
    None
}

fn coordinates(shape: &[u64], index: u64) -> Vec<u64> {
    let mut rest = index;
    let mut out: Vec<u64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        out.push(rest.checked_rem(*extent).unwrap_or(0));
        rest = rest.checked_div(*extent).unwrap_or(0);
    }
    out.reverse();
    out
}

/// The worst threshold of one set of tensors against another; infinite where they cannot be compared.
pub fn distance(a: &[Tensor], b: &[Tensor]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    a.iter().zip(b).map(|(x, y)| compare(x, y, &OPTIONS).map_or(f64::INFINITY, |c| c.threshold)).fold(
        0.0,
        |w, t| {
            if t > w || t.is_nan() { t } else { w }
        },
    )
}

/// What an absolute tolerance is multiplied by for an answer that is small all over: its largest magnitude, at most 1.
fn proportion(reference: &Tensor) -> f64 {
    if !reference.dtype.is_float() {
        return 1.0;
    }
    let largest = assay_judge::max_abs_finite(reference);
    if largest > 0.0 && largest < 1.0 { largest } else { 1.0 }
}

/// As [`distance`], with the absolute tolerance in proportion to answers that are small: a softmax over 16384 elements
/// is below 1e-2 everywhere, and zeros would be as good as any answer.
pub fn distance_in_proportion(a: &[Tensor], b: &[Tensor]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let mut worst = 0.0;
    for (x, y) in a.iter().zip(b) {
        let part = proportion(y);
        let own = if part < 1.0 && x.shape == y.shape {
            let (x, y) = (scaled(x, 1.0 / part), scaled(y, 1.0 / part));
            compare(&x, &y, &OPTIONS).map_or(f64::INFINITY, |c| c.threshold)
        } else {
            compare(x, y, &OPTIONS).map_or(f64::INFINITY, |c| c.threshold)
        };
        if own > worst || own.is_nan() {
            worst = own;
        }
    }
    worst
}

fn scaled(t: &Tensor, by: f64) -> Tensor {
    let values: Vec<f64> = (0..t.len()).map(|i| t.get_f64(i) * by).collect();
    Tensor::from_f64_values(assay_tensor::DType::F64, &t.shape, &values).unwrap_or_else(|_| t.clone())
}

impl Look {
    /// Makes a pass the mismatch that it is in proportion.
    pub fn refuse(&mut self, reference: &[Tensor], tolerance: f64) {
        self.end = EvaluationEnd::Mismatch;
        self.atol = tolerance * reference.iter().map(proportion).fold(1.0, f64::min);
        self.first_wrong =
            self.output.as_ref().and_then(|out| first_wrong(out, reference, tolerance, proportion));
    }
}

/// Equal bit by bit?
pub fn identical(a: &[Tensor], b: &[Tensor]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(x, y)| x.dtype == y.dtype && x.shape == y.shape && x.data == y.data)
}

/// As good as equal: to a millionth of the largest magnitude.
pub fn nearly_identical(a: &[Tensor], b: &[Tensor]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(x, y)| {
            let largest = assay_judge::max_abs_finite(y);
            compare(x, y, &OPTIONS).is_ok_and(|c| c.non_finite == 0 && c.max_abs <= 1e-6 * largest)
        })
}

/// One value everywhere?
pub fn constant(t: &Tensor) -> bool {
    let size = usize::try_from(t.dtype.size_bytes()).unwrap_or(1).max(1);
    t.len() > 1 && t.data.chunks_exact(size).all(|c| Some(c) == t.data.get(..size))
}

/// Does a reference vary by more than rounding?
pub fn varies(t: &Tensor) -> bool {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for i in 0..t.len() {
        let v = t.get_f64(i);
        if v.is_finite() {
            (low, high) = (low.min(v), high.max(v));
        }
    }
    high > low && high - low > 1e-5 * high.abs().max(low.abs())
}

/// Tensors to be left in fresh memory.
pub fn stale(tensors: &[Tensor]) -> Vec<HostTensor> {
    tensors.iter().cloned().map(wire::given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_tensor::DType;

    fn tensor(values: &[f64]) -> Tensor {
        Tensor::from_f64_values(DType::F32, &[values.len() as u64], values).unwrap()
    }

    #[test]
    fn an_output_is_judged_by_number_shape_dtype_and_values() {
        let want = [tensor(&[1.0, 2.0, 3.0])];
        let judge = |out: &[Tensor]| against(out, &want, 1e-2, Seen::default());
        assert!(judge(&[tensor(&[1.0, 2.0, 3.001])]).passes());
        let wrong = judge(&[tensor(&[1.0, 2.5, 4.0])]);
        let first = wrong.first_wrong.unwrap();
        assert_eq!((first.index, first.got, first.want, first.wrong_elements), (1, 2.5, 2.0, 2));
        assert!(judge(&[]).mismatches());
        assert!(judge(&[tensor(&[1.0, 2.0])]).message.unwrap().contains("shape"));
        let int = Tensor::from_f64_values(DType::I32, &[3], &[1.0, 2.0, 3.0]).unwrap();
        assert!(judge(&[int]).mismatches());
        assert_eq!(judge(&[tensor(&[1.0, f64::NAN, 3.0])]).end, EvaluationEnd::NonFinite);
    }

    #[test]
    fn a_check_that_broadcasts_compares_every_pair() {
        let of = |shape: &[u64], values: &[f64]| Tensor::from_f64_values(DType::F32, shape, values).unwrap();
        let judge = |out: Tensor, want: Tensor| {
            let out = reshaped(out, &want.shape);
            let (a, b) = broadcast(&[out], &[want]);
            against(&a, &b, 1e-2, Seen::default())
        };
        for (out, want, passes, elements) in [
            (of(&[1], &[2.0]), of(&[], &[2.0]), true, 1),
            (of(&[1, 1], &[2.5]), of(&[], &[2.0]), false, 1),
            (of(&[1, 3], &[1.0, 2.0, 3.0]), of(&[3], &[1.0, 2.0, 3.0]), true, 3),
            // Every element against every other.
            (of(&[2, 1], &[1.0, 2.0]), of(&[2], &[1.0, 2.0]), false, 4),
            (of(&[2, 1], &[1.0, 1.0]), of(&[2], &[1.0, 1.0]), true, 4),
            (of(&[], &[1.0]), of(&[2, 2], &[1.0, 1.0, 1.0, 1.5]), false, 4),
            (of(&[2, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), of(&[1, 3], &[1.0, 2.0, 3.0]), true, 6),
        ] {
            let said = format!("{:?} {:?}", out.shape, want.shape);
            let look = judge(out, want);
            assert_eq!(look.passes(), passes, "{said}");
            if let Some(wrong) = look.first_wrong {
                assert_eq!(wrong.elements, elements, "{said}");
            }
        }
        let other = judge(of(&[3], &[1.0; 3]), of(&[2], &[1.0; 2]));
        assert!(other.message.unwrap().contains("shape"));
        assert_eq!(reshaped(of(&[1], &[2.0]), &[]).shape, Vec::<u64>::new());
        assert_eq!(reshaped(of(&[2, 1], &[2.0, 3.0]), &[2]).shape, [2, 1]);
    }

    #[test]
    fn small_answers_are_compared_in_proportion() {
        let want = [tensor(&[6e-5, 3e-5, 0.0])];
        let half_more = [tensor(&[9e-5, 4.5e-5, 0.0])];
        assert!(distance(&half_more, &want) < 1e-4);
        let d = distance_in_proportion(&half_more, &want);
        assert!((d - 0.25).abs() < 1e-6, "{d}");
        // Where the answer is not small both are the same.
        let (a, b) = ([tensor(&[1.0, 2.0])], [tensor(&[1.5, 2.0])]);
        assert_eq!(distance(&a, &b), distance_in_proportion(&a, &b));
        assert_eq!(distance_in_proportion(&[tensor(&[0.0])], &[tensor(&[0.0])]), 0.0);
        let mut look = against(&half_more, &want, 1e-2, Seen::default());
        look.output = Some(half_more.to_vec());
        assert!(look.passes());
        look.refuse(&want, 1e-2);
        assert_eq!((look.passes(), look.first_wrong.unwrap().wrong_elements), (false, 2));
        assert!((look.atol - 6e-7).abs() < 1e-12);
    }

    #[test]
    fn constants_and_answers_that_are_as_good_as_equal_are_told() {
        assert!(constant(&tensor(&[2.0, 2.0, 2.0])) && !constant(&tensor(&[2.0, 2.0, 2.1])));
        assert!(!constant(&tensor(&[2.0])));
        assert!(varies(&tensor(&[0.0, 1e-9])) && !varies(&tensor(&[1.0, 1.0 + 1e-7])));
        // Close by the benchmark's tolerance, and not the same answer.
        assert!(!nearly_identical(&[tensor(&[0.0, 0.0])], &[tensor(&[2e-6, 3e-6])]));
        assert!(nearly_identical(&[tensor(&[2.0, 3.0])], &[tensor(&[2.0, 3.0])]));
    }
}
