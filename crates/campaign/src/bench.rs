//! The evaluations of one problem: a version of its kernels on an input, from the store or executed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_judge::EvaluationEnd;
use assay_measure::MatrixCell;
use assay_problems::Problem;
use assay_simt::{Engine, Fill, Memory, Sanitize, Schedule};

use crate::CampaignError;
use crate::audit::Context;
use crate::execute::{End, Mode, Run};
use crate::filter::Version;
use crate::harness::Harness;
use crate::inputs::{self, Input, Tensors};
use crate::store::{EvaluationKey, EvaluationRow};

/// A mutant may execute this many times the baseline's warp instructions on the same input, and 100,000 more.
const BUDGET_FACTOR: u64 = 10;
/// Warp instructions that the baseline may execute on one input; desk extents ask for less than a million.
const BASELINE_BUDGET: u64 = 50_000_000;

/// A cell's key without the mutant: schedule and seed.
#[derive(Clone, Copy)]
pub(crate) enum Way {
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
        Mode { memory, fill: Fill::Noise, sanitize, schedule, seed, instructions, engine: Engine::Auto }
    }
}

/// Everything that evaluations of one problem share.
pub(crate) struct Bench<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) problem: &'a Problem,
    pub(crate) key: String,
    pub(crate) known: HashMap<EvaluationKey, EvaluationRow>,
    pub(crate) harness: Harness<'a>,
    /// The baseline's instructions for a recipe, from which a mutant's budget follows.
    pub(crate) instructions: Mutex<HashMap<String, u64>>,
    pub(crate) executed: AtomicU64,
}

impl Bench<'_> {
    /// One evaluation: from the store, or executed and put into `fresh`.
    pub(crate) fn evaluation(
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
        let run = self.execute(version, input, way)?;
        let row = self.judge(input, &run, matches!(way, Way::Sanitize | Way::Races));
        fresh.push((key, row.clone()));
        Ok(row)
    }

    /// Executes an evaluation, within the budget that the baseline's instructions give.
    pub(crate) fn execute(&self, version: &Version, input: &Input, way: Way) -> Result<Run, CampaignError> {
        self.context.check_interrupt()?;
        let budget = match self.instructions.lock() {
            Ok(known) => known.get(&input.text).map_or(BASELINE_BUDGET, |&n| {
                n.saturating_mul(BUDGET_FACTOR).saturating_add(100_000).min(BASELINE_BUDGET)
            }),
            Err(_) => return Err(CampaignError::Internal("the instruction counts' lock is poisoned".into())),
        };
        let run = self.harness.run(version, input, &way.mode(budget, self.context.seed), None);
        self.count_executed();
        Ok(run)
    }

    /// One evaluation more that was executed and not taken from the store.
    pub(crate) fn count_executed(&self) {
        self.executed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn judge(&self, input: &Input, run: &Run, sanitized: bool) -> EvaluationRow {
        let mut row = EvaluationRow {
            end: String::new(),
            official: f64::INFINITY,
            truth: f64::INFINITY,
            max_abs: f64::INFINITY,
            max_rel: f64::INFINITY,
            at: 0,
            instructions: run.instructions,
            note: String::new(),
            digest: None,
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
                row.digest = Some(digest(self.problem, out));
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

    /// A version on an input, once, under `hardware` with the first seed; nothing is stored.
    pub(crate) fn once(&self, version: &Version, input: &Input) -> Result<MatrixCell, CampaignError> {
        self.context.check_interrupt()?;
        let mode = Way::Hardware(0).mode(BASELINE_BUDGET, self.context.seed);
        let run = self.harness.run(version, input, &mode, None);
        Ok(cell(&self.judge(input, &run, false)))
    }
}

/// XXH64 of the outputs' bytes in the problem's order.
fn digest(problem: &Problem, out: &Tensors) -> u64 {
    let all = problem.outputs.iter().filter_map(|name| out.get(name));
    all.fold(0, |seed, t| twox_hash::XxHash64::oneshot(seed, &t.data))
}

/// The name of the shape at which an input stands, among the shapes of [`Shapes`].
pub fn shape_name(dims: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = dims.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(",")
}

/// The stored row as a cell of the matrix.
pub(crate) fn cell(row: &EvaluationRow) -> MatrixCell {
    row.cell()
}
