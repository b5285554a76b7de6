//! One problem through every stage: inputs, baseline, mutants, evaluations, witnesses; its kill matrix.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_judge::EvaluationEnd;
use assay_measure::{
    ControlRun, Filtered, Graded, InputRow, KillMatrix, MatrixCell, MutantRow as Scored, Origin, Tolerance,
    majority,
};
use assay_nvrtc::Compiler;
use assay_problems::{Extents, HostError, InputKind, Plan, Problem, Recipe, Scratch, search_recipes};
use assay_simt::{Fill, FindingKind, Memory, Role, Sanitize, Schedule};
use assay_tensor::DType;
use rayon::prelude::*;

use crate::CampaignError;
use crate::audit::Context;
use crate::execute::{Buffer, End, Mode, Run, execute};
use crate::filter::{self, Candidate, Shapes, Sorted, Version};
use crate::inputs::{self, Input};
use crate::store::{EvaluationKey, EvaluationRow, MutantRow};

/// Schedule seeds whose majority makes a cell where the result may depend on the schedule.
const SEEDS: u64 = 4;
/// Seeds tried under `run-ahead` before a hazard is given up.
const RUN_AHEAD_SEEDS: u64 = 2;
/// Inputs tried for each mutant that the matrix leaves without a witness.
pub const SEARCH_BUDGET: usize = 12;
/// Searched inputs that become columns of the matrix, in the order of the search.
const SEARCHED_COLUMNS: usize = 4;
/// A mutant may execute this many times the baseline's warp instructions on the same input, and 100,000 more.
const BUDGET_FACTOR: u64 = 10;
/// Warp instructions that the baseline may execute on one input; desk extents ask for less than a million.
const BASELINE_BUDGET: u64 = 50_000_000;

/// Findings after which a result may depend on the schedule.
const HAZARDS: [FindingKind; 4] = [
    FindingKind::RaceShared,
    FindingKind::RaceGlobal,
    FindingKind::BarrierDivergence,
    FindingKind::BadShuffleMask,
];

/// Findings that end a block in strict memory but not in the matrix's, so that what follows was not looked at.
const CUT_SHORT: [FindingKind; 3] =
    [FindingKind::OobRead, FindingKind::OobWrite, FindingKind::MisalignedAccess];

/// What a problem gave.
pub enum Outcome {
    /// Its matrix.
    Measured(Box<KillMatrix>),
    /// Its substrate failed its own reference; in words.
    BaselineFailed(String),
}

/// A cell's key without the mutant: schedule and seed.
#[derive(Clone, Copy)]
enum Way {
    /// Strict memory and every detector.
    Sanitize,
    /// The memory of the matrix, and the race detector.
    Races,
    Hardware(u64),
    RunAhead(u64),
}

impl Way {
    fn name(self) -> (&'static str, u64) {
        match self {
            Way::Sanitize => ("sanitize", 0),
            Way::Races => ("races", 0),
            Way::Hardware(seed) => ("hardware", seed),
            Way::RunAhead(seed) => ("run-ahead", seed),
        }
    }

    fn mode(self, instructions: u64, base_seed: u64) -> Mode {
        let (memory, sanitize, schedule) = match self {
            Way::Sanitize => (Memory::Strict, Sanitize::ALL, Schedule::Hardware),
            Way::Races => (Memory::Arena, Sanitize { races: true, ..Sanitize::OFF }, Schedule::Hardware),
            Way::Hardware(_) => (Memory::Arena, Sanitize::OFF, Schedule::Hardware),
            Way::RunAhead(_) => (Memory::Arena, Sanitize::OFF, Schedule::RunAhead),
        };
        let seed = base_seed.wrapping_add(self.name().1);
        Mode { memory, fill: Fill::Noise, sanitize, schedule, seed, instructions }
    }
}

/// Everything that evaluations of one problem share.
pub(crate) struct Bench<'a> {
    context: &'a Context<'a>,
    problem: &'a Problem,
    key: String,
    known: HashMap<EvaluationKey, EvaluationRow>,
    official_dims: BTreeMap<String, u64>,
    official_plan: Option<Plan>,
    /// The baseline's instructions for a recipe, from which a mutant's budget follows.
    instructions: Mutex<HashMap<String, u64>>,
    executed: AtomicU64,
}

/// The file name under which a problem's mutants are known: unique over problems, so that ids are.
fn mutant_file(problem: &Problem) -> String {
    let file = problem.kernel_file.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy());
    format!("{}/{file}", problem.slug)
}

/// The name of the shape at which an input stands, among the shapes of [`Shapes`].
fn shape_name(dims: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = dims.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(",")
}

/// Inputs with their references, the compiled original, and all that evaluations share.
pub(crate) struct Prepared<'a> {
    pub(crate) bench: Bench<'a>,
    pub(crate) inputs: Vec<Input>,
    search: Vec<Recipe>,
    pub(crate) shapes: Shapes,
    original: Version,
}

impl Prepared<'_> {
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
    let inputs: Vec<Input> = recipes
        .par_iter()
        .map(|asked| {
            context.check_interrupt()?;
            let input = inputs::prepare(problem, &asked.recipe, asked.origin.clone(), asked.targeted);
            progress.step(1);
            input
        })
        .collect::<Result<_, CampaignError>>()?;
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
        official_dims,
        official_plan,
        instructions: Mutex::default(),
        executed: AtomicU64::new(0),
    };
    Ok(Prepared { bench, inputs, search, shapes, original })
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
    problem: &Problem,
) -> Result<Outcome, CampaignError> {
    let mut prepared = prepare(context, compiler, problem)?;
    if let Some(what) = prepared.gate()? {
        return Ok(Outcome::BaselineFailed(what));
    }
    let Prepared { bench, mut inputs, search, shapes, original } = prepared;
    let progress = context.progress;

    let mutants = assay_mutate::mutants_in(&problem.kernel_source, &mutant_file(problem))
        .map_err(|e| CampaignError::Input(format!("{}: {e}", problem.kernel_file.display())))?;
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
    bench.store_mutants(&candidates, &distinct, &judged)?;
    context.store.put_source(&bench.key, "kernel.cu", &problem.kernel_source)?;
    for i in &inputs {
        context.store.put_input(&bench.key, &i.text, origin_name(&i.origin), i.variance, &i.controls)?;
    }
    context.add_evaluations(bench.executed.load(Ordering::Relaxed));
    let matrix = bench.matrix(&candidates, &distinct, judged, &inputs)?;
    context.store.put_matrix(&bench.key, &matrix)?;
    Ok(Outcome::Measured(Box::new(matrix)))
}

/// A mutant's row of the matrix in the making.
#[derive(Default)]
struct Judged {
    cells: Vec<Option<MatrixCell>>,
    witness: Option<String>,
    schedule_witness: Option<String>,
    quarantined: Option<String>,
    /// Kinds of findings of the sanitized runs, sorted.
    findings: Vec<String>,
    /// Shapes (by name) at which the result may depend on the schedule.
    hazards: Vec<String>,
    found_by_search: Option<usize>,
}

impl Bench<'_> {
    /// One evaluation: from the store, or executed and put into `fresh`.
    fn evaluation(
        &self,
        mutant: &str,
        version: &Version,
        input: &Input,
        way: Way,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<EvaluationRow, CampaignError> {
        let (schedule, seed) = way.name();
        let key = EvaluationKey {
            mutant: mutant.into(),
            recipe: input.text.clone(),
            schedule: schedule.into(),
            seed,
        };
        if let Some(row) = self.known.get(&key) {
            return Ok(row.clone());
        }
        if let Some((_, row)) = fresh.iter().find(|(k, _)| *k == key) {
            return Ok(row.clone());
        }
        self.context.check_interrupt()?;
        let budget = match self.instructions.lock() {
            Ok(known) => known.get(&input.text).map_or(BASELINE_BUDGET, |&n| {
                n.saturating_mul(BUDGET_FACTOR).saturating_add(100_000).min(BASELINE_BUDGET)
            }),
            Err(_) => return Err(CampaignError::Internal("the instruction counts' lock is poisoned".into())),
        };
        let run = self.run(version, input, &way.mode(budget, self.context.seed));
        self.executed.fetch_add(1, Ordering::Relaxed);
        let row = self.judge(input, &run, matches!(way, Way::Sanitize | Way::Races));
        fresh.push((key, row.clone()));
        Ok(row)
    }

    /// Bytes of a tensor at official extents; none where the problem does not state its shape.
    fn official_bytes(&self, name: &str, dtype: DType) -> Option<u64> {
        let shape = match self.problem.input(name) {
            Some(input) => self.problem.shape_of(input, &self.official_dims).ok()?,
            None => self.problem.output_shape(name, &self.official_dims).ok()??,
        };
        assay_tensor::numel(&shape)?.checked_mul(dtype.size_bytes())
    }

    fn run(&self, version: &Version, input: &Input, mode: &Mode) -> Run {
        let fault = |what: String| Run { end: End::Fault(what), findings: Vec::new(), instructions: 0 };
        let Some(exe) = &version.exe else { return fault("nothing was compiled".into()) };
        let plan = match version.plans.get(&shape_name(&input.dims)) {
            Some(Ok(plan)) => plan,
            Some(Err(e)) => {
                let end = match e {
                    HostError::Unsupported { .. } => End::Unsupported(e.to_string()),
                    HostError::Exhausted { .. } => End::Exhausted(e.to_string()),
                    HostError::NoLaunch
                    | HostError::Invalid { .. }
                    | HostError::Fault { .. }
                    | HostError::Unbound { .. } => End::Fault(e.to_string()),
                };
                return Run { end, findings: Vec::new(), instructions: 0 };
            }
            None => return fault("no plan for this shape".into()),
        };
        let problem = self.problem;
        let mut buffers = Vec::new();
        let mut values: Vec<(&str, Role, bool)> = Vec::new();
        for i in &problem.inputs {
            let role = if i.kind == InputKind::Parameter { Role::Parameter } else { Role::Input };
            values.push((&i.name, role, i.kind == InputKind::Parameter));
        }
        // Parameters come first in memory: a module's weights are made before its inputs.
        values.sort_by_key(|v| !v.2);
        for (name, role, _) in values {
            let Some(t) = input.tensors.get(name) else { return fault(format!("no tensor `{name}`")) };
            buffers.push(Buffer {
                name,
                role,
                dtype: t.dtype,
                size_bytes: t.data.len() as u64,
                official_bytes: self.official_bytes(name, t.dtype).unwrap_or(t.data.len() as u64),
                values: Some(&t.data),
                may_write: problem.inplace.iter().any(|n| n == name),
            });
        }
        for s in &plan.scratch {
            let official =
                self.official_plan.as_ref().and_then(|p| p.scratch.iter().find(|o| o.name == s.name));
            let bytes = |s: &Scratch| s.len.checked_mul(s.dtype.size_bytes());
            let (Some(size), official) = (bytes(s), official.and_then(bytes)) else {
                return fault(format!("scratch `{}` is too large", s.name));
            };
            buffers.push(Buffer {
                name: &s.name,
                role: Role::Scratch,
                dtype: s.dtype,
                size_bytes: size,
                official_bytes: official.unwrap_or(size),
                values: None,
                may_write: true,
            });
        }
        let mut outputs: Vec<(String, DType, Vec<u64>)> = Vec::new();
        for name in &problem.outputs {
            let Some(t) = input.official.get(name) else {
                return fault(format!("no reference for `{name}`"));
            };
            outputs.push((name.clone(), t.dtype, t.shape.clone()));
            if buffers.iter().any(|b| b.name == name) {
                continue; // written in place
            }
            buffers.push(Buffer {
                name,
                role: Role::Output,
                dtype: t.dtype,
                size_bytes: t.data.len() as u64,
                official_bytes: self.official_bytes(name, t.dtype).unwrap_or(t.data.len() as u64),
                values: None,
                may_write: true,
            });
        }
        execute(exe, plan, &buffers, &outputs, mode)
    }

    fn judge(&self, input: &Input, run: &Run, sanitized: bool) -> EvaluationRow {
        let mut row = EvaluationRow {
            end: String::new(),
            official: f64::INFINITY,
            truth: f64::INFINITY,
            max_abs: f64::INFINITY,
            max_rel: f64::INFINITY,
            at: 0,
            instructions: run.instructions,
            note: String::new(),
        };
        let end = match &run.end {
            End::Fault(what) => {
                row.note.clone_from(what);
                EvaluationEnd::Fault
            }
            End::Exhausted(what) => {
                row.note.clone_from(what);
                EvaluationEnd::Exhausted
            }
            End::Unsupported(what) => {
                row.note.clone_from(what);
                EvaluationEnd::Unsupported
            }
            End::Outputs(out) => {
                let official = inputs::worst(self.problem, out, &input.official, false);
                let truth = inputs::worst(self.problem, out, &input.truth, true);
                match (official, truth) {
                    (Ok(o), Ok(t)) => {
                        row.official = o.threshold;
                        row.truth = t.threshold;
                        row.max_abs = t.max_abs;
                        row.max_rel = t.max_rel;
                        row.at = t.index.unwrap_or(0);
                        EvaluationEnd::of(&o, assay_judge::PAPER_TOLERANCE)
                    }
                    (Err(e), _) | (_, Err(e)) => {
                        row.note = e;
                        EvaluationEnd::Fault
                    }
                }
            }
        };
        row.end = end.name().to_owned();
        if sanitized {
            let mut kinds: Vec<&str> = run.findings.iter().map(|f| f.kind.name()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            row.note = kinds.join(" ");
        }
        row
    }

    /// The baseline on every input, sanitized once at each shape. Adds its thresholds to the inputs' validity.
    /// Gives what is wrong with the substrate, if anything is.
    fn gate(&self, original: &Version, inputs: &mut [Input]) -> Result<Option<String>, CampaignError> {
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
        }
        Ok(None)
    }

    /// What kept an evaluation of the baseline from giving outputs, if anything did.
    fn without_output(&self, input: &Input, row: &EvaluationRow) -> Option<String> {
        let end = cell(row).end;
        matches!(end, EvaluationEnd::Fault | EvaluationEnd::Exhausted | EvaluationEnd::Unsupported)
            .then(|| format!("`{}` on input `{}`: {}: {}", self.key, input.text, end.name(), row.note))
    }

    /// A mutant on every input.
    fn evaluate(&self, candidate: &Candidate, inputs: &[Input]) -> Result<Judged, CampaignError> {
        let mut judged = Judged { cells: vec![None; inputs.len()], ..Judged::default() };
        let Some(version) = &candidate.version else {
            if let Sorted::Quarantined(why) = &candidate.sorted {
                judged.quarantined = Some(why.clone());
            }
            return Ok(judged);
        };
        let id = &candidate.mutant.id;
        let mut fresh = Vec::new();
        // The first official input tells what cannot be evaluated at all.
        if let Some(first) = inputs.first() {
            let row = self.evaluation(id, version, first, Way::Hardware(0), &mut fresh)?;
            if let EvaluationEnd::Exhausted | EvaluationEnd::Unsupported = cell(&row).end {
                judged.quarantined = Some(format!("{} on `{}`: {}", row.end, first.text, row.note));
                self.context.store.put_evaluations(&self.key, &fresh)?;
                return Ok(judged);
            }
        }
        for (k, input) in inputs.iter().enumerate() {
            if inputs[..k].iter().any(|other| other.dims == input.dims) {
                continue;
            }
            self.look(id, version, input, &mut judged, &mut fresh)?;
        }
        for (k, input) in inputs.iter().enumerate() {
            judged.cells[k] = Some(self.cell_of(id, version, input, &judged, &mut fresh)?);
        }
        for (k, input) in inputs.iter().enumerate() {
            if judged.cells[k].as_ref().is_some_and(|c| kills(c, input))
                && self.confirm(id, version, input, &judged, &mut fresh)?
            {
                judged.witness = Some(input.text.clone());
                break;
            }
        }
        if judged.witness.is_none() {
            judged.schedule_witness = self.run_ahead(id, version, inputs, &judged, &mut fresh)?;
        }
        self.context.store.put_evaluations(&self.key, &fresh)?;
        Ok(judged)
    }

    /// The sanitized run at an input's shape: what it finds, and whether results there may depend on the schedule.
    fn look(
        &self,
        id: &str,
        version: &Version,
        input: &Input,
        judged: &mut Judged,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<(), CampaignError> {
        let shape = shape_name(&input.dims);
        let row = self.evaluation(id, version, input, Way::Sanitize, fresh)?;
        judged.note_findings(&row.note, &shape, true);
        let cut_short = row.note.split_whitespace().any(|kind| CUT_SHORT.iter().any(|k| k.name() == kind));
        if cut_short && !judged.hazards.contains(&shape) {
            let row = self.evaluation(id, version, input, Way::Races, fresh)?;
            judged.note_findings(&row.note, &shape, false);
        }
        Ok(())
    }

    /// A cell: one seed where the sanitizer saw no hazard at the shape, the majority of several elsewhere.
    fn cell_of(
        &self,
        id: &str,
        version: &Version,
        input: &Input,
        judged: &Judged,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<MatrixCell, CampaignError> {
        let seeds = if judged.hazards.contains(&shape_name(&input.dims)) { SEEDS } else { 1 };
        let cells = (0..seeds)
            .map(|s| self.evaluation(id, version, input, Way::Hardware(s), fresh).map(|r| cell(&r)))
            .collect::<Result<Vec<_>, _>>()?;
        majority(&cells).ok_or_else(|| CampaignError::Internal("a cell without evaluations".into()))
    }

    /// A version on an input, once, under `hardware` with the first seed; nothing is stored.
    pub(crate) fn once(&self, version: &Version, input: &Input) -> Result<MatrixCell, CampaignError> {
        self.context.check_interrupt()?;
        let run = self.run(version, input, &Way::Hardware(0).mode(BASELINE_BUDGET, self.context.seed));
        Ok(cell(&self.judge(input, &run, false)))
    }

    /// Does the mutant fail under a second noise seed too?
    fn confirm(
        &self,
        id: &str,
        version: &Version,
        input: &Input,
        judged: &Judged,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<bool, CampaignError> {
        if judged.hazards.contains(&shape_name(&input.dims)) {
            // The cell is already a majority over seeds, each with its own noise.
            return Ok(true);
        }
        let row = self.evaluation(id, version, input, Way::Hardware(1), fresh)?;
        Ok(kills(&cell(&row), input))
    }

    /// Looks for a failure under the schedule that lets one warp run ahead, at the shapes with a hazard.
    fn run_ahead(
        &self,
        id: &str,
        version: &Version,
        inputs: &[Input],
        judged: &Judged,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<Option<String>, CampaignError> {
        for (k, input) in inputs.iter().enumerate() {
            let first = inputs[..k].iter().all(|other| other.dims != input.dims);
            if !first || !judged.hazards.contains(&shape_name(&input.dims)) {
                continue;
            }
            for seed in 0..RUN_AHEAD_SEEDS {
                let row = self.evaluation(id, version, input, Way::RunAhead(seed), fresh)?;
                if kills(&cell(&row), input) {
                    return Ok(Some(input.text.clone()));
                }
            }
        }
        Ok(None)
    }

    /// Tries further inputs for the mutants that the matrix leaves without a witness; those that find one become
    /// columns of the matrix.
    fn search(
        &self,
        original: &Version,
        distinct: &[&Candidate],
        judged: &mut [Judged],
        inputs: &mut Vec<Input>,
        recipes: &[Recipe],
    ) -> Result<(), CampaignError> {
        let open: Vec<usize> = (0..judged.len())
            .filter(|&m| judged[m].witness.is_none() && judged[m].quarantined.is_none())
            .collect();
        if open.is_empty() || recipes.is_empty() {
            return Ok(());
        }
        self.context.progress.stage(&format!("{}: search", self.key), open.len() as u64);
        let mut extra: Vec<Input> = recipes
            .par_iter()
            .map(|r| inputs::prepare(self.problem, r, Origin::Searched { mutant: String::new() }, false))
            .collect::<Result<_, CampaignError>>()?;
        if let Some(what) = self.gate(original, &mut extra)? {
            // A searched input outside what the substrate supports is no input; the gate's own inputs have passed.
            return Err(CampaignError::Input(format!("a searched input breaks the substrate: {what}")));
        }
        let found: Vec<(usize, Option<usize>, Vec<String>)> = open
            .par_iter()
            .map(|&m| {
                let mut fresh = Vec::new();
                let mut findings = Vec::new();
                let Some(version) = &distinct[m].version else { return Ok((m, None, findings)) };
                let id = &distinct[m].mutant.id;
                let mut witness = None;
                for (k, input) in extra.iter().enumerate() {
                    let mut look = Judged { hazards: judged[m].hazards.clone(), ..Judged::default() };
                    self.look(id, version, input, &mut look, &mut fresh)?;
                    findings.extend(look.findings.iter().cloned());
                    let c = self.cell_of(id, version, input, &look, &mut fresh)?;
                    if kills(&c, input) && self.confirm(id, version, input, &look, &mut fresh)? {
                        witness = Some(k);
                        break;
                    }
                }
                self.context.store.put_evaluations(&self.key, &fresh)?;
                self.context.progress.step(1);
                Ok((m, witness, findings))
            })
            .collect::<Result<_, CampaignError>>()?;
        let mut used: BTreeMap<usize, String> = BTreeMap::new();
        for (m, witness, findings) in found {
            judged[m].findings.extend(findings);
            judged[m].findings.sort_unstable();
            judged[m].findings.dedup();
            if let Some(k) = witness {
                judged[m].witness = Some(extra[k].text.clone());
                judged[m].schedule_witness = None;
                judged[m].found_by_search = Some(k);
                used.entry(k).or_insert_with(|| distinct[m].mutant.id.clone());
            }
        }
        // Columns: every used input, the first few for every mutant, the rest for those that it was found for.
        for (column, (k, mutant)) in used.into_iter().enumerate() {
            let mut input =
                inputs::prepare(self.problem, &extra[k].recipe, Origin::Searched { mutant }, false)?;
            input.variance = extra[k].variance;
            let for_all = column < SEARCHED_COLUMNS;
            let cells: Vec<Option<MatrixCell>> = distinct
                .par_iter()
                .zip(judged.par_iter())
                .map(|(c, j)| {
                    let wanted = for_all || j.found_by_search == Some(k);
                    let (Some(version), None, true) = (&c.version, &j.quarantined, wanted) else {
                        return Ok(None);
                    };
                    let mut fresh = Vec::new();
                    let id = &c.mutant.id;
                    let mut look = Judged::default();
                    self.look(id, version, &input, &mut look, &mut fresh)?;
                    let made = self.cell_of(id, version, &input, &look, &mut fresh)?;
                    self.context.store.put_evaluations(&self.key, &fresh)?;
                    Ok(Some(made))
                })
                .collect::<Result<_, CampaignError>>()?;
            for (j, made) in judged.iter_mut().zip(cells) {
                j.cells.push(made);
            }
            inputs.push(input);
        }
        Ok(())
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
        let rows: Vec<MutantRow> = candidates
            .iter()
            .map(|c| {
                let (status, reason) = match &c.sorted {
                    Sorted::Noncompiling(why) => ("noncompiling", why.as_str()),
                    Sorted::Duplicate(of) => ("duplicate", of.as_str()),
                    Sorted::Equivalent(why) => ("equivalent", why.as_str()),
                    Sorted::Distinct | Sorted::Quarantined(_) => {
                        match quarantined.get(c.mutant.id.as_str()) {
                            Some(why) => ("quarantined", *why),
                            None => ("distinct", ""),
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
        m.unrefereeable = inputs
            .iter()
            .any(|i| i.origin == Origin::Official && i.reference_error > assay_judge::PAPER_TOLERANCE);
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
                    .collect(),
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

impl Judged {
    /// Takes in the kinds that a run with detectors reported at a shape; `flag` where they are the sanitizer's verdict.
    fn note_findings(&mut self, note: &str, shape: &str, flag: bool) {
        for kind in note.split_whitespace() {
            if HAZARDS.iter().any(|k| k.name() == kind) && !self.hazards.iter().any(|h| h == shape) {
                self.hazards.push(shape.to_owned());
            }
            if flag && !self.findings.iter().any(|k| k == kind) {
                self.findings.push(kind.to_owned());
            }
        }
    }
}

/// The stored row as a cell of the matrix.
fn cell(row: &EvaluationRow) -> MatrixCell {
    let end = EvaluationEnd::from_name(&row.end).unwrap_or(EvaluationEnd::Unsupported);
    MatrixCell::new(end, row.official, row.truth)
}

/// Wrong against both references at the paper's tolerance, on an input valid there.
fn kills(c: &MatrixCell, input: &Input) -> bool {
    input.variance <= assay_judge::PAPER_TOLERANCE
        && c.rejected_by(Tolerance::PAPER) == Some(true)
        && c.wrong_in_truth(Tolerance::PAPER) == Some(true)
}

fn origin_name(o: &Origin) -> &'static str {
    match o {
        Origin::Official => "official",
        Origin::Kbv => "kbv",
        Origin::CiFuzz => "ci_fuzz",
        Origin::Targeted => "targeted",
        Origin::Searched { .. } => "searched",
    }
}
