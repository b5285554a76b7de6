//! One problem through every stage: inputs, baseline, mutants, evaluations, witnesses; its kill matrix.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_judge::{EvaluationEnd, TrivialAnswer, TrivialAnswers};
use assay_measure::{
    ControlRun, Filtered, Graded, InputRow, KillMatrix, MatrixCell, MutantRow as Scored, Origin,
    Unrefereeable,
};
use assay_nvrtc::Compiler;
use assay_plain::PlainRunner;
use assay_problems::{Extents, OracleError, Problem, Recipe, search_recipes};
use rayon::prelude::*;

use crate::CampaignError;
use crate::audit::Context;
use crate::bench::{Bench, Way, cell, shape_name};
use crate::filter::{self, Candidate, Shapes, Sorted, Version};
use crate::harness::Harness;
use crate::huge::{self, Huge};
use crate::inputs::{self, Input};
use crate::judged::Judged;
use crate::plain::PLAIN;
use crate::store::{EvaluationRow, MutantRow};

/// Inputs tried for each mutant that the matrix leaves without a witness.
pub const SEARCH_BUDGET: usize = 24;

/// What a problem gave.
pub enum Outcome {
    /// Its matrix.
    Measured(Box<KillMatrix>),
    /// Its substrate failed its own reference; in words.
    BaselineFailed(String),
}

/// The file name under which a problem's mutants are known: unique over problems, so that ids are.
pub(crate) fn mutant_file(problem: &Problem) -> String {
    let file = problem.kernel_file.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy());
    format!("{}/{file}", problem.slug)
}

/// Inputs with their references, the compiled original, and all that evaluations share.
pub(crate) struct Prepared<'a> {
    pub(crate) bench: Bench<'a>,
    pub(crate) inputs: Vec<Input>,
    search: Vec<Recipe>,
    pub(crate) shapes: Shapes,
    original: Version,
    huge: Option<Huge>,
}

impl Prepared<'_> {
    /// Looks for extents beyond 2^32 elements on which width faults can be judged, and adds them to the shapes.
    fn enlarge(&mut self, compiler: &Compiler) -> Result<(), CampaignError> {
        let problem = self.bench.problem;
        let Some(exe) = &self.original.exe else { return Ok(()) };
        self.bench.context.progress.stage(&format!("{}: beyond 2^32 elements", self.bench.key), 0);
        let Some(huge) = huge::choose(problem, exe, self.bench.context.seed) else { return Ok(()) };
        let name = shape_name(&huge.dims);
        if self.shapes.iter().all(|(n, _)| *n != name) {
            self.shapes.push((name, huge.dims.clone()));
            let options = &self.bench.context.compile_options;
            let file = problem.kernel_file.display().to_string();
            // A version's identity is over its launches at all shapes.
            self.original =
                filter::compiled(problem, compiler, options, &file, &problem.kernel_source, &self.shapes)?;
        }
        self.huge = Some(huge);
        Ok(())
    }

    /// The baseline on every input; what is wrong with it, if anything is.
    pub(crate) fn gate(&mut self) -> Result<Option<String>, CampaignError> {
        self.bench.context.progress.stage(&format!("{}: baseline", self.bench.key), self.inputs.len() as u64);
        self.bench.gate(&self.original, &mut self.inputs)
    }
}

pub(crate) fn prepare<'a>(
    context: &'a Context<'a>,
    compiler: &Compiler,
    problem: &'a Problem,
) -> Result<Prepared<'a>, CampaignError> {
    let key = problem.key();
    let progress = context.progress;
    let recipes = context.recipes(problem)?;
    progress.stage(&format!("{key}: references"), recipes.len() as u64);
    let made: Vec<Option<Input>> = recipes
        .par_iter()
        .map(|asked| {
            context.check_interrupt()?;
            let (oracle, origin) = (context.oracle, asked.origin.clone());
            let input = match inputs::prepare(oracle, problem, &asked.recipe, origin, asked.targeted) {
                // Extents that are ours alone: the benchmark's own code may never have been meant for them.
                Err(CampaignError::Oracle(OracleError::Refused(why) | OracleError::Unsupported(why)))
                    if !asked.recipe.dims.is_empty() =>
                {
                    progress.note(&format!("{key}: `{}` is left out: {why}", asked.recipe));
                    None
                }
                made => Some(made?),
            };
            progress.step(1);
            Ok(input)
        })
        .collect::<Result<_, CampaignError>>()?;
    let inputs: Vec<Input> = made.into_iter().flatten().collect();
    let dims_at = |recipe: &Recipe, extents: Extents| {
        problem.dims_for(recipe, extents).map_err(|e| CampaignError::Input(format!("{key}: {e}")))
    };
    let official_dims = dims_at(&Recipe::official(0), Extents::Official)?;
    let search: Vec<Recipe> = search_recipes(problem, SEARCH_BUDGET)
        .into_iter()
        .filter(|r| recipes.iter().all(|a| a.recipe != *r))
        .collect();
    let mut shapes: Shapes = vec![(shape_name(&official_dims), official_dims.clone())];
    for recipe in recipes.iter().map(|a| &a.recipe).chain(&search) {
        let dims = dims_at(recipe, Extents::Desk)?;
        let name = shape_name(&dims);
        if shapes.iter().all(|(n, _)| *n != name) {
            shapes.push((name, dims));
        }
    }
    let file = problem.kernel_file.display().to_string();
    let original = filter::compiled(
        problem,
        compiler,
        &context.compile_options,
        &file,
        &problem.kernel_source,
        &shapes,
    )?;
    let official_plan = original.plans.get(&shapes[0].0).and_then(|p| p.as_ref().ok()).cloned();
    let bench = Bench {
        context,
        problem,
        known: context.store.evaluations(&key)?,
        key,
        harness: Harness { problem, official_dims, official_plan },
        instructions: Mutex::default(),
        executed: AtomicU64::new(0),
    };
    Ok(Prepared { bench, inputs, search, shapes, original, huge: None })
}

/// The baseline on every input; what is wrong with it, if anything is.
///
/// # Errors
/// As [`measure`].
pub fn gate_only(
    context: &Context<'_>,
    compiler: &Compiler,
    problem: &Problem,
) -> Result<Option<String>, CampaignError> {
    prepare(context, compiler, problem)?.gate()
}

/// Runs every stage for one problem.
///
/// # Errors
/// Bad input (its files), a compiler or disk that fails, an interrupt.
pub fn measure(
    context: &Context<'_>,
    compiler: &Compiler,
    plain: &PlainRunner<'_>,
    problem: &Problem,
) -> Result<Outcome, CampaignError> {
    let mut prepared = prepare(context, compiler, problem)?;
    if let Some(what) = prepared.gate()? {
        return Ok(Outcome::BaselineFailed(what));
    }
    prepared.bench.run_plain(plain, &mut prepared.inputs)?;
    let progress = context.progress;
    let mutants = assay_mutate::mutants_in(&problem.kernel_source, &mutant_file(problem))
        .map_err(|e| CampaignError::Input(format!("{}: {e}", problem.kernel_file.display())))?;
    if mutants.iter().any(|m| m.family == assay_mutate::Family::Width) {
        prepared.enlarge(compiler)?;
    }
    let Prepared { bench, mut inputs, search, shapes, original, huge } = prepared;

    progress.stage(&format!("{}: compile", bench.key), mutants.len() as u64);
    let started = std::time::Instant::now();
    let compiled = mutants.len() as u64;
    let candidates =
        filter::sort(problem, compiler, &context.compile_options, &original, &shapes, mutants, &|n| {
            context.check_interrupt()?;
            progress.step(n);
            Ok(())
        })?;
    // Ctrl-C also reaches the compile workers; what they then failed to compile must not count.
    context.check_interrupt()?;
    context.add_compile_time(started.elapsed(), compiled);

    let distinct: Vec<&Candidate> =
        candidates.iter().filter(|c| matches!(c.sorted, Sorted::Distinct | Sorted::Quarantined(_))).collect();
    progress.stage(&format!("{}: evaluate", bench.key), distinct.len() as u64);
    let mut judged: Vec<Judged> = distinct
        .par_iter()
        .map(|c| {
            let j = bench.evaluate(c, &inputs);
            progress.step(1);
            j
        })
        .collect::<Result<_, CampaignError>>()?;

    bench.search(&original, &distinct, &mut judged, &mut inputs, &search)?;
    if let Some(huge) = &huge {
        bench.search_huge(huge, &distinct, &mut judged, &mut inputs)?;
    }
    bench.store_mutants(&candidates, &distinct, &judged)?;
    context.store.put_source(&bench.key, "kernel.cu", &problem.kernel_source)?;
    for i in &inputs {
        context.store.put_input(&bench.key, &i.text, origin_name(&i.origin), i.variance, &i.controls)?;
    }
    let checkers = bench.run_checkers(plain, &distinct, &judged, &inputs)?;
    context.add_evaluations(bench.executed.load(Ordering::Relaxed));
    let mut matrix = bench.matrix(&candidates, &distinct, judged, &inputs)?;
    matrix.checkers = checkers;
    context.store.put_matrix(&bench.key, &matrix)?;
    Ok(Outcome::Measured(Box::new(matrix)))
}

impl Bench<'_> {
    /// The baseline on every input, sanitized once at each shape. Adds its thresholds to the inputs' validity.
    /// Gives what is wrong with the substrate, if anything is.
    pub(crate) fn gate(
        &self,
        original: &Version,
        inputs: &mut [Input],
    ) -> Result<Option<String>, CampaignError> {
        let mut first_rows = Vec::new();
        if let Some(first) = inputs.first() {
            // A substrate that does not end on one input would take the whole budget on every other as well.
            let row = self.evaluation("baseline", original, first, Way::Hardware(0), &mut first_rows)?;
            self.context.store.put_evaluations(&self.key, &first_rows)?;
            if let Some(what) = self.without_output(first, &row) {
                return Ok(Some(what));
            }
        }
        let rows: Vec<(EvaluationRow, Option<EvaluationRow>)> = inputs
            .par_iter()
            .enumerate()
            .map(|(k, input)| {
                let mut fresh = if k == 0 { first_rows.clone() } else { Vec::new() };
                let row = self.evaluation("baseline", original, input, Way::Hardware(0), &mut fresh)?;
                if let Ok(mut known) = self.instructions.lock() {
                    known.insert(input.text.clone(), row.instructions);
                }
                let first_of_shape = inputs[..k].iter().all(|other| other.dims != input.dims);
                let clean = if first_of_shape {
                    Some(self.evaluation("baseline", original, input, Way::Sanitize, &mut fresh)?)
                } else {
                    None
                };
                self.context.store.put_evaluations(&self.key, &fresh)?;
                self.context.progress.step(1);
                Ok((row, clean))
            })
            .collect::<Result<_, CampaignError>>()?;
        let tolerance = assay_judge::PAPER_TOLERANCE;
        for (input, (row, clean)) in inputs.iter_mut().zip(&rows) {
            let place = format!("`{}` on input `{}`", self.key, input.text);
            if let Some(what) = self.without_output(input, row) {
                return Ok(Some(what));
            }
            // An input on which float32 itself strays is no ground to fail the substrate.
            if input.variance <= tolerance && (row.official > tolerance || row.truth > tolerance) {
                return Ok(Some(format!(
                    "{place}: wrong: threshold {:.3e} against float32, {:.3e} against float64 (element {}), tolerance {tolerance:.0e}",
                    row.official, row.truth, row.at
                )));
            }
            if let Some(clean) = clean
                && !clean.note.is_empty()
            {
                return Ok(Some(format!("{place}: the sanitizer reports {}", clean.note)));
            }
            input.variance = input.variance.max(row.official);
            input.baseline = row.digest;
        }
        Ok(None)
    }

    /// What kept an evaluation of the baseline from giving outputs, if anything did.
    fn without_output(&self, input: &Input, row: &EvaluationRow) -> Option<String> {
        let end = cell(row).end;
        matches!(end, EvaluationEnd::Fault | EvaluationEnd::Exhausted | EvaluationEnd::Unsupported)
            .then(|| format!("`{}` on input `{}`: {}: {}", self.key, input.text, end.name(), row.note))
    }

    fn store_mutants(
        &self,
        candidates: &[Candidate],
        distinct: &[&Candidate],
        judged: &[Judged],
    ) -> Result<(), CampaignError> {
        let quarantined: HashMap<&str, &str> = distinct
            .iter()
            .zip(judged)
            .filter_map(|(c, j)| j.quarantined.as_deref().map(|why| (c.mutant.id.as_str(), why)))
            .collect();
        let unwitnessed: HashMap<&str, String> = distinct
            .iter()
            .zip(judged)
            .filter_map(|(c, j)| j.explanation().map(|why| (c.mutant.id.as_str(), why)))
            .collect();
        let rows: Vec<MutantRow> = candidates
            .iter()
            .map(|c| {
                let (status, reason) = match &c.sorted {
                    Sorted::Noncompiling(why) => ("noncompiling", why.as_str()),
                    Sorted::Duplicate(of) => ("duplicate", of.as_str()),
                    Sorted::Equivalent(why) => ("equivalent", why.as_str()),
                    Sorted::Distinct | Sorted::Quarantined(_) => {
                        match (quarantined.get(c.mutant.id.as_str()), unwitnessed.get(c.mutant.id.as_str())) {
                            (Some(why), _) => ("quarantined", *why),
                            (None, Some(why)) => ("distinct", why.as_str()),
                            (None, None) => ("distinct", ""),
                        }
                    }
                };
                MutantRow {
                    id: c.mutant.id.clone(),
                    rule: c.mutant.rule.to_owned(),
                    family: c.mutant.family.name().to_owned(),
                    host: c.mutant.host,
                    line: u64::from(c.mutant.line),
                    name: c.mutant.name.clone(),
                    diff: c.mutant.diff(&self.problem.kernel_source),
                    status: status.to_owned(),
                    reason: reason.to_owned(),
                    identity: c.version.as_ref().map(|v| v.identity.clone()).unwrap_or_default(),
                }
            })
            .collect();
        self.context.store.put_mutants(&self.key, &rows)
    }

    fn matrix(
        &self,
        candidates: &[Candidate],
        distinct: &[&Candidate],
        judged: Vec<Judged>,
        inputs: &[Input],
    ) -> Result<KillMatrix, CampaignError> {
        let count = |f: fn(&Sorted) -> bool| candidates.iter().filter(|c| f(&c.sorted)).count() as u64;
        let problem = self.problem;
        let mut m = KillMatrix::new(problem.level, problem.id, problem.name.clone());
        m.filtered = Filtered {
            generated: candidates.len() as u64,
            noncompiling: count(|s| matches!(s, Sorted::Noncompiling(_))),
            duplicate_image: count(|s| matches!(s, Sorted::Duplicate(_))),
            equivalent: count(|s| matches!(s, Sorted::Equivalent(_))),
        };
        m.unrefereeable_why = unrefereeable(inputs);
        m.unrefereeable = m.unrefereeable_why.is_some();
        m.inputs = inputs
            .iter()
            .map(|i| InputRow {
                targeted: i.targeted,
                controls: i
                    .controls
                    .iter()
                    .map(|(name, t)| ControlRun {
                        control: format!("held-out:{name}"),
                        end: if *t <= assay_judge::PAPER_TOLERANCE {
                            EvaluationEnd::Pass
                        } else {
                            EvaluationEnd::Mismatch
                        },
                        official: Graded::at(*t),
                    })
                    .chain(i.plain.iter().map(|row| {
                        let MatrixCell { end, official, .. } = cell(row);
                        ControlRun { control: PLAIN.to_owned(), end, official }
                    }))
                    .collect(),
                reference: i.reference.clone(),
                ..InputRow::new(i.text.clone(), i.origin.clone(), i.variance)
            })
            .collect();
        m.mutants = distinct
            .iter()
            .zip(&judged)
            .map(|(c, j)| Scored {
                id: c.mutant.id.clone(),
                name: c.mutant.name.clone(),
                rule: c.mutant.rule.to_owned(),
                family: c.mutant.family.name().to_owned(),
                line: c.mutant.line,
                host: c.mutant.host,
                witnessed: j.witness.is_some(),
                schedule_witnessed: j.witness.is_none() && j.schedule_witness.is_some(),
                quarantined: j.quarantined.is_some(),
                flagged: !j.findings.is_empty(),
                unwitnessed: j.unwitnessed(),
            })
            .collect();
        for (row, j) in judged.into_iter().enumerate() {
            for (column, c) in j.cells.into_iter().enumerate() {
                if let Some(c) = c {
                    m.set_cell(row, column, c).map_err(|e| CampaignError::Internal(e.to_string()))?;
                }
            }
        }
        m.validate().map_err(|e| CampaignError::Internal(e.to_string()))?;
        Ok(m)
    }
}

/// Why no kernel can be judged on the problem, if none can: its float32 reference fails its own float64 evaluation on
/// an official input, or no input tells it from a kernel that reads nothing.
pub(crate) fn unrefereeable(inputs: &[Input]) -> Option<Unrefereeable> {
    let t = assay_judge::PAPER_TOLERANCE;
    if inputs.iter().any(|i| i.origin == Origin::Official && i.reference_error > t) {
        return Some(Unrefereeable::ReferenceStrays);
    }
    let mut answers = TrivialAnswers::default();
    // An input found by searching for one mutant must not decide over all; those on which float32 itself strays tell
    // nothing from anything.
    let fixed = |i: &&Input| !matches!(i.origin, Origin::Searched { .. }) && i.variance <= t;
    for i in inputs.iter().filter(fixed) {
        answers.narrow(i.truth.values(), t, t);
    }
    answers.least().map(|answer| match answer {
        TrivialAnswer::Zeros => Unrefereeable::ZerosPass,
        TrivialAnswer::Constant => Unrefereeable::ConstantPasses,
    })
}

fn origin_name(o: &Origin) -> &'static str {
    match o {
        Origin::Official => "official",
        Origin::Kbv => "kbv",
        Origin::CiFuzz => "ci_fuzz",
        Origin::Targeted => "targeted",
        Origin::Searched { .. } => "searched",
        Origin::Protocol => "protocol",
    }
}
