//! One mutant's row of the matrix: its cells, its findings, its witness, and the search for one.

use std::collections::BTreeMap;

use assay_judge::EvaluationEnd;
use assay_measure::{MatrixCell, Origin, Tolerance, Unwitnessed, majority};
use assay_problems::{OracleError, Recipe};
use assay_simt::FindingKind;
use rayon::prelude::*;

use crate::CampaignError;
use crate::bench::{Bench, Way, cell, shape_name};
use crate::filter::{Candidate, Sorted, Version};
use crate::inputs::{self, Input};
use crate::store::{EvaluationKey, EvaluationRow};

/// Schedule seeds whose majority makes a cell where the result may depend on the schedule.
const SEEDS: u64 = 4;
/// Seeds tried under `run-ahead` before a hazard is given up.
const RUN_AHEAD_SEEDS: u64 = 2;
/// Searched inputs that become columns of the matrix, in the order of the search.
const SEARCHED_COLUMNS: usize = 4;

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

/// A mutant's row of the matrix in the making.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) cells: Vec<Option<MatrixCell>>,
    pub(crate) witness: Option<String>,
    pub(crate) schedule_witness: Option<String>,
    pub(crate) quarantined: Option<String>,
    /// Kinds of findings of the sanitized runs, sorted.
    pub(crate) findings: Vec<String>,
    /// Shapes (by name) at which the result may depend on the schedule.
    pub(crate) hazards: Vec<String>,
    pub(crate) found_by_search: Option<usize>,
    /// What the inputs tried showed.
    pub(crate) trace: Trace,
}

/// What a mutant's evaluations under `hardware` showed, over the inputs tried.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    /// Valid inputs on which it ended with a verdict.
    valid: u64,
    /// Inputs tried.
    tried: u64,
    /// Inputs on which every seed gave the original's bits.
    same: u64,
    /// Largest threshold on a valid input, of the smaller one against the two references.
    worst: f64,
    /// Largest threshold on a valid input, of the larger one.
    worst_of_one: f64,
    /// The first input that is not valid on which it fails.
    invalid: Option<String>,
    /// The first valid input on which it fails once.
    once: Option<String>,
}

impl Trace {
    pub(crate) fn take(&mut self, rows: &[EvaluationRow], c: &MatrixCell, input: &Input) {
        self.tried += 1;
        self.same += u64::from(input.baseline.is_some() && rows.iter().all(|r| r.digest == input.baseline));
        let valid = input.variance <= assay_judge::PAPER_TOLERANCE;
        if wrong(c) {
            let first = if valid { &mut self.once } else { &mut self.invalid };
            first.get_or_insert_with(|| input.text.clone());
        }
        if valid && c.end.is_decided() {
            self.valid += 1;
            let (a, b) = (c.official.threshold, c.truth.threshold);
            self.worst = self.worst.max(a.min(b));
            self.worst_of_one = self.worst_of_one.max(a.max(b));
        }
    }

    /// Takes in what a search tried beside.
    fn join(&mut self, other: Trace) {
        self.tried += other.tried;
        self.valid += other.valid;
        self.same += other.same;
        self.worst = self.worst.max(other.worst);
        self.worst_of_one = self.worst_of_one.max(other.worst_of_one);
        self.invalid = self.invalid.take().or(other.invalid);
        self.once = self.once.take().or(other.once);
    }
}

impl Judged {
    /// Schedule seeds whose majority makes a cell on this input.
    pub(crate) fn seeds(&self, input: &Input) -> u64 {
        if self.hazards.contains(&shape_name(&input.dims)) { SEEDS } else { 1 }
    }

    /// Why it has no witness.
    pub(crate) fn unwitnessed(&self) -> Option<Unwitnessed> {
        let t = &self.trace;
        Some(if self.quarantined.is_some() {
            Unwitnessed::Quarantined
        } else if self.witness.is_some() {
            return None;
        } else if self.schedule_witness.is_some() {
            Unwitnessed::ScheduleOnly
        } else if t.once.is_some() {
            Unwitnessed::OneSeed
        } else if t.invalid.is_some() {
            Unwitnessed::InvalidInputs
        } else if t.worst_of_one > assay_judge::PAPER_TOLERANCE {
            Unwitnessed::OneReference
        } else if t.same < t.tried {
            Unwitnessed::WithinTolerance
        } else if self.findings.is_empty() {
            Unwitnessed::Identical
        } else {
            Unwitnessed::SanitizerOnly
        })
    }

    /// Why it has no witness, in words with the figures.
    pub(crate) fn explanation(&self) -> Option<String> {
        let why = self.unwitnessed()?;
        let t = &self.trace;
        let text = |o: &Option<String>| o.clone().unwrap_or_default();
        let mut words = why.phrase().to_owned();
        match why {
            Unwitnessed::Quarantined => return self.quarantined.clone(),
            Unwitnessed::ScheduleOnly => words += &format!(": `{}`", text(&self.schedule_witness)),
            Unwitnessed::OneSeed => words += &format!(": `{}`", text(&t.once)),
            Unwitnessed::InvalidInputs => words += &format!(": `{}`", text(&t.invalid)),
            Unwitnessed::OneReference => {
                words += &format!(": {:.1e} against one, {:.1e} against both", t.worst_of_one, t.worst);
            }
            Unwitnessed::WithinTolerance => {
                words += &format!(": at most {:.1e} on {} valid inputs", t.worst_of_one, t.valid);
            }
            Unwitnessed::SanitizerOnly | Unwitnessed::Identical => {
                words += &format!(" ({} inputs)", t.tried);
            }
        }
        if !self.findings.is_empty() {
            words += &format!("; the sanitizer reports {}", self.findings.join(", "));
        }
        Some(words)
    }

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

impl Bench<'_> {
    /// A mutant on every input.
    pub(crate) fn evaluate(&self, candidate: &Candidate, inputs: &[Input]) -> Result<Judged, CampaignError> {
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
            let cell = self.cell_of(id, version, input, &mut judged, &mut fresh)?;
            judged.cells[k] = Some(cell);
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
    pub(crate) fn look(
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
    pub(crate) fn cell_of(
        &self,
        id: &str,
        version: &Version,
        input: &Input,
        judged: &mut Judged,
        fresh: &mut Vec<(EvaluationKey, EvaluationRow)>,
    ) -> Result<MatrixCell, CampaignError> {
        let rows = (0..judged.seeds(input))
            .map(|s| self.evaluation(id, version, input, Way::Hardware(s), fresh))
            .collect::<Result<Vec<_>, _>>()?;
        let cells: Vec<MatrixCell> = rows.iter().map(cell).collect();
        let made =
            majority(&cells).ok_or_else(|| CampaignError::Internal("a cell without evaluations".into()))?;
        judged.trace.take(&rows, &made, input);
        Ok(made)
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

    /// The inputs of these recipes that the problem can be judged on. A searched shape may be none that the reference
    /// or the substrate supports, and the problem never promised it: such an input is left out, and said.
    fn searchable(&self, original: &Version, recipes: &[Recipe]) -> Result<Vec<Input>, CampaignError> {
        let made: Vec<Option<Input>> = recipes
            .par_iter()
            .map(|recipe| {
                let origin = Origin::Searched { mutant: String::new() };
                let mut input =
                    match inputs::prepare(self.context.oracle, self.problem, recipe, origin, false) {
                        Ok(input) => input,
                        Err(CampaignError::Oracle(
                            OracleError::Refused(why) | OracleError::Unsupported(why),
                        ))
                        | Err(CampaignError::Input(why)) => {
                            self.context.progress.note(&why);
                            return Ok(None);
                        }
                        Err(e) => return Err(e),
                    };
                match self.gate(original, std::slice::from_mut(&mut input))? {
                    None => Ok(Some(input)),
                    Some(why) => {
                        self.context.progress.note(&why);
                        Ok(None)
                    }
                }
            })
            .collect::<Result<_, CampaignError>>()?;
        Ok(made.into_iter().flatten().collect())
    }

    /// Tries further inputs for the mutants that the matrix leaves without a witness; those that find one become
    /// columns of the matrix.
    pub(crate) fn search(
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
        self.context.progress.stage(&format!("{}: searched inputs", self.key), recipes.len() as u64);
        let extra = self.searchable(original, recipes)?;
        self.context.progress.stage(&format!("{}: search", self.key), open.len() as u64);
        let found: Vec<(usize, Option<usize>, Vec<String>, Trace)> = open
            .par_iter()
            .map(|&m| {
                let mut fresh = Vec::new();
                let mut findings = Vec::new();
                let mut trace = Trace::default();
                let Some(version) = &distinct[m].version else { return Ok((m, None, findings, trace)) };
                let id = &distinct[m].mutant.id;
                let mut witness = None;
                let mut look = Judged { hazards: judged[m].hazards.clone(), ..Judged::default() };
                let mut looked: Vec<&BTreeMap<String, u64>> = inputs.iter().map(|i| &i.dims).collect();
                for (k, input) in extra.iter().enumerate() {
                    if !looked.contains(&&input.dims) {
                        looked.push(&input.dims);
                        self.look(id, version, input, &mut look, &mut fresh)?;
                        findings.append(&mut look.findings);
                    }
                    let c = self.cell_of(id, version, input, &mut look, &mut fresh)?;
                    trace.join(std::mem::take(&mut look.trace));
                    if kills(&c, input) && self.confirm(id, version, input, &look, &mut fresh)? {
                        witness = Some(k);
                        break;
                    }
                }
                self.context.store.put_evaluations(&self.key, &fresh)?;
                self.context.progress.step(1);
                Ok((m, witness, findings, trace))
            })
            .collect::<Result<_, CampaignError>>()?;
        let mut used: BTreeMap<usize, String> = BTreeMap::new();
        for (m, witness, findings, trace) in found {
            judged[m].trace.join(trace);
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
        let mut extra: Vec<Option<Input>> = extra.into_iter().map(Some).collect();
        for (column, (k, mutant)) in used.into_iter().enumerate() {
            let Some(mut input) = extra[k].take() else { continue };
            input.origin = Origin::Searched { mutant };
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
                    let made = self.cell_of(id, version, &input, &mut look, &mut fresh)?;
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
}

/// Wrong against both references at the paper's tolerance, on an input valid there.
fn kills(c: &MatrixCell, input: &Input) -> bool {
    input.variance <= assay_judge::PAPER_TOLERANCE && wrong(c)
}

/// Wrong against both references at the paper's tolerance.
pub(crate) fn wrong(c: &MatrixCell) -> bool {
    c.rejected_by(Tolerance::PAPER) == Some(true) && c.wrong_in_truth(Tolerance::PAPER) == Some(true)
}
