//! Which input proves a mutant wrong, read off the run's evaluations.

use std::collections::HashMap;

use assay_campaign::store::{EvaluationKey, EvaluationRow};
use assay_judge::EvaluationEnd;
use assay_measure::{KillMatrix, Tolerance};

/// The original's name among the mutants of evaluations.
const BASELINE: &str = "baseline";

/// What the evaluations of one cell add to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CellRuns {
    /// Runs under `hardware`, or of sampled blocks where the input is a huge one.
    pub seeds: u64,
    /// Rejected ones of them.
    pub seeds_rejected: u64,
    /// Are they of sampled blocks?
    pub sampled: bool,
    /// Does the second seed show the fault against both references?
    confirmed: bool,
    /// Runs under `run-ahead`.
    pub ahead: u64,
    /// Rejected ones of them.
    pub ahead_rejected: u64,
    /// The first of them that is wrong against both references: its seed and thresholds.
    ahead_wrong: Option<(u64, f64, f64)>,
    /// What the sanitizer saw, where it looked: a place in [`Runs::findings`].
    findings: Option<u32>,
    /// Warp instructions of the first run under `hardware`.
    pub instructions: u64,
}

/// The evaluations of one problem by cell.
pub struct Runs<'a> {
    matrix: &'a KillMatrix,
    mutants: HashMap<&'a str, usize>,
    inputs: HashMap<&'a str, usize>,
    cells: Vec<CellRuns>,
    findings: Vec<String>,
}

/// A run that proves a mutant wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The input, by its place in the matrix.
    pub input: usize,
    /// `hardware` or `run-ahead`.
    pub schedule: &'static str,
    /// Seed of schedule and fill.
    pub seed: u64,
    /// Threshold against the float32 reference.
    pub official: f64,
    /// Against float64.
    pub truth: f64,
}

impl<'a> Runs<'a> {
    /// None yet.
    pub fn new(matrix: &'a KillMatrix) -> Runs<'a> {
        Runs {
            mutants: matrix.mutants.iter().enumerate().map(|(k, m)| (m.id.as_str(), k)).collect(),
            inputs: matrix.inputs.iter().enumerate().map(|(k, i)| (i.recipe.as_str(), k)).collect(),
            cells: vec![CellRuns::default(); matrix.mutants.len().saturating_mul(matrix.inputs.len())],
            findings: Vec::new(),
            matrix,
        }
    }

    fn place(&self, mutant: usize, input: usize) -> usize {
        mutant * self.matrix.inputs.len() + input
    }

    /// Takes in an evaluation; one of the original, or on an input outside the matrix, is none of a cell.
    pub fn add(&mut self, key: &EvaluationKey, row: &EvaluationRow) {
        if key.mutant == BASELINE {
            return;
        }
        let (Some(&m), Some(&i)) =
            (self.mutants.get(key.mutant.as_str()), self.inputs.get(key.recipe.as_str()))
        else {
            return;
        };
        let cell = row.cell();
        let valid = self.matrix.inputs[i].is_valid(Tolerance::PAPER);
        let rejected = cell.rejected_by(Tolerance::PAPER) == Some(true);
        let wrong = valid && rejected && cell.wrong_in_truth(Tolerance::PAPER) == Some(true);
        let place = self.place(m, i);
        let findings = match key.schedule.as_str() {
            "sanitize" => {
                let known = self.findings.iter().position(|f| *f == row.note);
                let at = known.unwrap_or_else(|| {
                    self.findings.push(row.note.clone());
                    self.findings.len() - 1
                });
                u32::try_from(at).ok()
            }
            _ => None,
        };
        let c = &mut self.cells[place];
        match key.schedule.as_str() {
            schedule @ ("hardware" | "sampled") => {
                c.sampled = schedule == "sampled";
                c.seeds += 1;
                c.seeds_rejected += u64::from(rejected);
                if key.seed == 0 {
                    c.instructions = row.instructions;
                } else if key.seed == 1 {
                    c.confirmed = wrong;
                }
            }
            "run-ahead" => {
                c.ahead += 1;
                c.ahead_rejected += u64::from(rejected);
                if wrong && c.ahead_wrong.is_none() {
                    c.ahead_wrong = Some((key.seed, row.official, row.truth));
                }
            }
            "sanitize" => c.findings = findings,
            _ => {}
        }
    }

    /// The runs of a cell.
    pub fn cell(&self, mutant: usize, input: usize) -> CellRuns {
        self.cells.get(self.place(mutant, input)).copied().unwrap_or_default()
    }

    /// What the sanitizer saw on a cell; none where it did not look.
    pub fn findings(&self, mutant: usize, input: usize) -> Option<&str> {
        let at = self.cell(mutant, input).findings?;
        self.findings.get(at as usize).map(String::as_str)
    }

    /// Is the mutant wrong there against both references, on an input valid at the paper's tolerance?
    pub fn wrong(&self, mutant: usize, input: usize) -> bool {
        self.matrix.kills(mutant, input, Tolerance::PAPER)
            && self
                .matrix
                .cell(mutant, input)
                .is_some_and(|c| c.wrong_in_truth(Tolerance::PAPER) == Some(true))
    }

    /// The first input, in the order of cost, that the run took for a witness: the cell is wrong, and it is either a
    /// majority over seeds or confirmed by a second one. For a schedule-witnessed mutant the first run under
    /// `run-ahead` that is wrong.
    pub fn witness(&self, mutant: usize) -> Option<Witness> {
        let row = self.matrix.mutants.get(mutant)?;
        let all = 0..self.matrix.inputs.len();
        if row.schedule_witnessed {
            return all.into_iter().find_map(|input| {
                let (seed, official, truth) = self.cell(mutant, input).ahead_wrong?;
                Some(Witness { input, schedule: "run-ahead", seed, official, truth })
            });
        }
        if !row.witnessed {
            return None;
        }
        all.into_iter().find_map(|input| {
            let runs = self.cell(mutant, input);
            let cell = self.matrix.cell(mutant, input)?;
            let held = self.wrong(mutant, input) && (runs.seeds > 2 || runs.confirmed);
            let (official, truth) = match cell.end {
                EvaluationEnd::Fault => (f64::INFINITY, f64::INFINITY),
                _ => (cell.official.threshold, cell.truth.threshold),
            };
            let schedule = if runs.sampled { "sampled" } else { "hardware" };
            held.then_some(Witness { input, schedule, seed: 0, official, truth })
        })
    }
}
