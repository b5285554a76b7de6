//! Witnesses of width faults: extents at which a tensor has more than 2^32 elements, executed at chosen blocks over
//! sparse buffers (see [`crate::sampled`]).
//!
//! A fault of the family `width` computes an index in too few bits: at extents that a memory holds it changes
//! nothing. One dim is raised until the largest tensor passes 2^32 elements (2^31 where the launch or the reference
//! allows no more); the original must pass there, and correct float32 orders must agree, as at any other input.
//! Memory is strict: an access outside of its buffer is a fault, which at these sizes it is on a GPU too, or reads
//! another tensor.

use std::collections::BTreeMap;

use assay_judge::{CompareOptions, EvaluationEnd, compare};
use assay_measure::{MatrixCell, Origin};
use assay_ops::Variant;
use assay_problems::{Extents, Kind, Problem, Recipe};
use rayon::prelude::*;

use crate::CampaignError;
use crate::bench::{Bench, shape_name};
use crate::execute::Executable;
use crate::filter::Candidate;
use crate::inputs::Input;
use crate::judged::Judged;
use crate::sampled::study::{Ready, ready_from};
use crate::sampled::{Bounds, Ending, Expected, OfficialInput, Ran, Which, judge, run};
use crate::store::{EvaluationKey, EvaluationRow};

/// Elements that the largest tensor is to pass, the most telling first.
const TARGETS: [u64; 2] = [(1 << 32) + (1 << 20), (1 << 31) + (1 << 20)];
/// Elements that no tensor may have: buffers are sparse, but their sizes are multiplied on the way.
const MOST: u64 = 1 << 36;
/// Warp instructions that the original may take for the sample.
const INSTRUCTIONS: u64 = 30_000_000;
/// A mutant may take this many times the original's, and 100,000 more.
const BUDGET_FACTOR: u64 = 4;
/// Bytes that an evaluation may hold: many run at a time, and each written element is judged.
const MEMORY: u64 = 64 << 20;
/// Elements that the original may write in the sample: a grid-stride loop over everything is out of reach.
const MOST_WRITTEN: usize = 1 << 20;
/// Random blocks of a launch, beside the first, the last and those at boundaries.
const RANDOM: u64 = 4;
/// The name of these evaluations in the store.
const SCHEDULE: &str = "sampled";
const SEED: u64 = 2001;

/// Elements of the largest input or output at these dims.
fn largest(problem: &Problem, overrides: &BTreeMap<String, u64>) -> Option<u64> {
    let dims = problem.dims_with(overrides, Extents::Desk).ok()?;
    let mut most = 0;
    for i in &problem.inputs {
        most = most.max(assay_tensor::numel(&problem.shape_of(i, &dims).ok()?)?);
    }
    for name in &problem.outputs {
        if let Some(shape) = problem.output_shape(name, &dims).ok()? {
            most = most.max(assay_tensor::numel(&shape)?);
        }
    }
    Some(most)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The smallest extent of a dim, of those the problem may have, that takes the largest tensor past `target`.
fn extent(problem: &Problem, name: &str, target: u64) -> Option<u64> {
    let desk = problem.dims.iter().find(|d| d.name == name)?.desk;
    // Where all named extents share a divisor, the problem needs it.
    let named = problem.ragged.iter().filter_map(|s| s.get(name).copied());
    let step = named.fold(desk, gcd).max(1);
    let at = |steps: u64| {
        let v = steps.checked_mul(step)?;
        largest(problem, &BTreeMap::from([(name.to_owned(), v)]))
    };
    // Launchers take extents as `int`.
    let most = u64::from(i32::MAX.unsigned_abs()) / step;
    let (mut low, mut high) = (1, 1);
    while at(high).is_some_and(|n| n < target) {
        low = high;
        high = high.checked_mul(2).filter(|&h| h <= most)?;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle)? < target { low = middle + 1 } else { high = middle }
    }
    (at(high)? <= MOST).then(|| high * step)
}

/// Recipes that take a tensor of the problem past 2^32 or 2^31 elements by one dim, in the order of trial.
pub(crate) fn recipes(problem: &Problem) -> Vec<Recipe> {
    let parameters =
        problem.inputs.iter().any(|i| i.kind == assay_problems::InputKind::Parameter && i.dtype.is_float());
    let mut out = Vec::new();
    for target in TARGETS {
        for dim in &problem.dims {
            if let Some(v) = extent(problem, &dim.name, target) {
                let r = Recipe::new(Kind::Normal(1.0))
                    .with_dims(BTreeMap::from([(dim.name.clone(), v)]))
                    .with_seed(SEED);
                out.push(if parameters { r.with_params() } else { r });
            }
        }
    }
    out
}

/// A huge input on which the original passes, with all that mutants are judged by.
pub(crate) struct Huge {
    /// The recipe.
    pub(crate) recipe: Recipe,
    /// Its dims.
    pub(crate) dims: BTreeMap<String, u64>,
    ready: Ready,
    truth: Expected,
    /// Largest threshold over correct float32 orders and the original.
    variance: f64,
    seed: u64,
}

/// The first of [`recipes`] on which the original can be sampled, passes, and correct orders agree; none where there
/// is none.
pub(crate) fn choose(problem: &Problem, exe: &Executable, seed: u64) -> Option<Huge> {
    recipes(problem).into_iter().find_map(|recipe| at(problem, exe, recipe, seed).ok())
}

fn at(problem: &Problem, exe: &Executable, recipe: Recipe, seed: u64) -> Result<Huge, String> {
    let input = OfficialInput::at(problem, &recipe, Extents::Desk).map_err(|e| e.to_string())?;
    let dims = input.dims.clone();
    let plan = problem.plan(&dims).map_err(|e| e.to_string())?;
    let which = Which::Sample { seed, random: RANDOM };
    let bounds = Bounds { seed, instructions: INSTRUCTIONS, memory_bytes: MEMORY };
    let ran = run(problem, exe, &plan, &input, which, bounds, &BTreeMap::new());
    if ran.outputs.values().map(|w| w.points.index.len()).sum::<usize>() > MOST_WRITTEN {
        return Err("the sample is too large to be judged".into());
    }
    let ready = ready_from(problem, input, ran)?;
    let mut variance = ready.threshold;
    let mut truth = Expected::new();
    let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: false };
    for (name, index) in &ready.asked {
        let reference = |v: &Variant| ready.input.reference(name, index, v).map_err(|e| e.to_string());
        let exact = reference(&Variant::truth())?;
        let official = &ready.expected[name];
        let mut distance = |out: &assay_tensor::Tensor, from: &assay_tensor::Tensor| {
            let c = compare(out, from, &options).map_err(|e| e.to_string())?;
            variance = variance.max(c.threshold);
            Ok::<(), String>(())
        };
        distance(&official.values, &exact.values)?;
        for v in Variant::ensemble() {
            distance(&reference(v)?.values, &official.values)?;
        }
        truth.insert(name.clone(), exact);
    }
    if variance > assay_judge::PAPER_TOLERANCE {
        return Err("correct float32 orders disagree there".into());
    }
    Ok(Huge { recipe, dims, ready, truth, variance, seed })
}

impl Huge {
    /// A version there, judged against both references. Elements that only the version writes are compared with the
    /// float32 reference alone.
    fn evaluate(&self, bench: &Bench<'_>, candidate: &Candidate, seed: u64) -> EvaluationRow {
        let mut row = EvaluationRow {
            end: EvaluationEnd::Unsupported.name().to_owned(),
            official: f64::INFINITY,
            truth: f64::INFINITY,
            max_abs: f64::INFINITY,
            max_rel: f64::INFINITY,
            at: 0,
            instructions: 0,
            note: String::new(),
            digest: None,
        };
        let plan = candidate.version.as_ref().and_then(|v| v.plans.get(&shape_name(&self.dims)));
        let exe = candidate.version.as_ref().and_then(|v| v.exe.as_ref());
        let (Some(plan), Some(exe)) = (plan, exe) else {
            row.note = "no plan for this shape".into();
            return row;
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(e) => {
                let own = matches!(
                    e,
                    assay_problems::HostError::Unsupported { .. }
                        | assay_problems::HostError::Exhausted { .. }
                );
                let end = if own { EvaluationEnd::Unsupported } else { EvaluationEnd::Fault };
                row.end = end.name().to_owned();
                row.note = e.to_string();
                return row;
            }
        };
        let budget = self.ready.instructions.saturating_mul(BUDGET_FACTOR).saturating_add(100_000);
        let seed = self.seed.wrapping_add(seed);
        let bounds = Bounds { seed, instructions: budget, memory_bytes: MEMORY };
        let like = Which::Like(&self.ready.launches);
        let ran = run(bench.problem, exe, plan, &self.ready.input, like, bounds, &self.ready.asked);
        bench.count_executed();
        row.instructions = ran.instructions;
        let verdict =
            judge(bench.problem, &self.ready.input, &ran, &self.ready.expected, assay_judge::PAPER_TOLERANCE);
        row.note.clone_from(&verdict.note);
        row.end = match verdict.ending {
            Ending::Pass => EvaluationEnd::Pass,
            Ending::Mismatch => EvaluationEnd::Mismatch,
            Ending::Fault => EvaluationEnd::Fault,
            Ending::Exhausted => EvaluationEnd::Exhausted,
            Ending::Unsupported => EvaluationEnd::Unsupported,
        }
        .name()
        .to_owned();
        if let (Ending::Pass | Ending::Mismatch, Some(t)) = (verdict.ending, verdict.threshold) {
            row.official = if t == f64::MAX { f64::INFINITY } else { t };
            let (truth, abs, rel, at) = self.against_truth(bench.problem, &ran);
            // Where the asked elements are right, what is wrong was written elsewhere.
            let elsewhere = verdict.ending == Ending::Mismatch && truth <= assay_judge::PAPER_TOLERANCE;
            row.truth = if elsewhere { row.official } else { truth };
            (row.max_abs, row.max_rel, row.at) = (abs, rel, at);
            row.digest = Some(digest(&ran));
        }
        row
    }

    /// Largest threshold, absolute and relative error against float64 at the elements asked for, and where.
    fn against_truth(&self, problem: &Problem, ran: &Ran) -> (f64, f64, f64, u64) {
        let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: true };
        let mut worst = (0.0, 0.0, 0.0, 0);
        for (name, want) in &self.truth {
            let got = ran.outputs.get(name).map(|w| compare(&w.at.values, &want.values, &options));
            let Some(Ok(c)) = got else { return (f64::INFINITY, f64::INFINITY, f64::INFINITY, 0) };
            if c.threshold > worst.0 {
                let k = usize::try_from(c.index.unwrap_or(0)).unwrap_or(0);
                worst = (c.threshold, c.max_abs, c.max_rel, want.index.get(k).copied().unwrap_or(0));
            }
        }
        worst
    }
}

/// XXH64 of the values at the elements asked for.
fn digest(ran: &Ran) -> u64 {
    ran.outputs.values().fold(0, |seed, w| twox_hash::XxHash64::oneshot(seed, &w.at.values.data))
}

impl Bench<'_> {
    /// Tries the width mutants that are without a witness on the huge input, which becomes a column of the matrix for
    /// them where it witnesses one.
    pub(crate) fn search_huge(
        &self,
        huge: &Huge,
        distinct: &[&Candidate],
        judged: &mut [Judged],
        inputs: &mut Vec<Input>,
    ) -> Result<(), CampaignError> {
        let open: Vec<usize> = (0..judged.len())
            .filter(|&m| {
                distinct[m].mutant.family == assay_mutate::Family::Width
                    && judged[m].witness.is_none()
                    && judged[m].quarantined.is_none()
            })
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let text = huge.recipe.to_string();
        let mut input = Input::unmade(huge.recipe.clone(), huge.dims.clone(), huge.variance);
        input.baseline = Some(digest(&huge.ready.original));
        self.context.progress.stage(&format!("{}: beyond 2^32 elements", self.key), open.len() as u64);
        let rows: Vec<(usize, EvaluationRow, bool)> = open
            .par_iter()
            .map(|&m| {
                self.context.check_interrupt()?;
                let mut fresh = Vec::new();
                let mut evaluation = |seed: u64| {
                    let key = EvaluationKey {
                        mutant: distinct[m].mutant.id.clone(),
                        recipe: text.clone(),
                        schedule: SCHEDULE.into(),
                        seed,
                    };
                    if let Some(row) = self.known.get(&key) {
                        return row.clone();
                    }
                    let row = huge.evaluate(self, distinct[m], seed);
                    fresh.push((key, row.clone()));
                    row
                };
                let row = evaluation(0);
                let kills = |r: &EvaluationRow| crate::judged::wrong(&crate::bench::cell(r));
                let witnessed = kills(&row) && kills(&evaluation(1));
                self.context.store.put_evaluations(&self.key, &fresh)?;
                self.context.progress.step(1);
                Ok((m, row, witnessed))
            })
            .collect::<Result<_, CampaignError>>()?;
        let mut cells: Vec<Option<MatrixCell>> = vec![None; judged.len()];
        let mut first = None;
        for (m, row, witnessed) in rows {
            let c = crate::bench::cell(&row);
            judged[m].trace.take(std::slice::from_ref(&row), &c, &input);
            cells[m] = Some(c);
            if witnessed {
                judged[m].witness = Some(text.clone());
                judged[m].schedule_witness = None;
                first.get_or_insert_with(|| distinct[m].mutant.id.clone());
            }
        }
        if let Some(mutant) = first {
            input.origin = Origin::Searched { mutant };
            for (j, c) in judged.iter_mut().zip(cells) {
                j.cells.push(c);
            }
            inputs.push(input);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use assay_problems::{Root, discover};

    use super::*;

    #[test]
    fn one_dim_takes_the_largest_tensor_past_two_to_the_32_and_no_further_than_it_must() {
        for key in ["1/19", "1/1", "1/50", "2/1"] {
            let p = &discover(&[key], &Root::Embedded).unwrap()[0];
            let all = recipes(p);
            assert!(!all.is_empty(), "{key}");
            let (name, &v) = all[0].dims.iter().next().unwrap();
            let n = largest(p, &all[0].dims).unwrap();
            assert!((TARGETS[0]..=MOST).contains(&n), "{key}: {} has {n}", all[0]);
            let one_less = BTreeMap::from([(name.clone(), v - 1)]);
            let step = p.ragged.iter().filter_map(|s| s.get(name).copied()).fold(v, gcd);
            assert!(step > 1 || largest(p, &one_less).unwrap() < TARGETS[0], "{key}: {}", all[0]);
        }
    }
}
