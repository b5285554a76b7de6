//! The kill matrix of one problem: mutants, inputs, and a threshold wherever one met the other.

use std::collections::{BTreeMap, BTreeSet};

use assay_judge::{Cell, EvaluationEnd};
use serde::{Deserialize, Serialize};

use crate::{MeasureError, Tolerance};

/// A threshold for one pair of unlike tolerances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledValue {
    /// The pair's atol.
    pub atol: f64,
    /// The pair's rtol.
    pub rtol: f64,
    /// max |out - ref| / (atol + rtol * |ref|): at most 1 where the pair accepts.
    #[serde(with = "assay_judge::serde_float")]
    pub value: f64,
}

/// How far an output is from a reference, for every tolerance that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graded {
    /// The smallest t at which `atol = rtol = t` accepts.
    #[serde(with = "assay_judge::serde_float")]
    pub threshold: f64,
    /// Thresholds for pairs of unlike tolerances, where a protocol has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaled: Vec<ScaledValue>,
}

impl Graded {
    /// A distance with no pair of unlike tolerances.
    pub fn at(threshold: f64) -> Graded {
        Graded { threshold, scaled: Vec::new() }
    }

    /// Does the tolerance reject this? None where atol and rtol differ and neither the threshold nor a scaled value
    /// decides: |d| <= min(atol, rtol) * (1 + |ref|) surely passes, |d| > max(atol, rtol) * (1 + |ref|) surely fails.
    pub fn rejected_by(&self, tolerance: Tolerance) -> Option<bool> {
        let Tolerance { atol, rtol } = tolerance;
        if atol == rtol {
            return Some(above(self.threshold, atol));
        }
        if let Some(s) = self.scaled.iter().find(|s| s.atol == atol && s.rtol == rtol) {
            return Some(above(s.value, 1.0));
        }
        if above(self.threshold, atol.max(rtol)) {
            Some(true)
        } else if above(self.threshold, atol.min(rtol)) {
            None
        } else {
            Some(false)
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.threshold).chain(self.scaled.iter().map(|s| s.value))
    }
}

/// A value of NaN is above everything: it has not been shown to pass.
fn above(value: f64, bound: f64) -> bool {
    !matches!(value.partial_cmp(&bound), Some(o) if o.is_le())
}

/// How one mutant fared on one input (over its schedule seeds, see [`majority`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixCell {
    /// How it ended.
    pub end: EvaluationEnd,
    /// Distance from the float32 reference; infinity without output.
    pub official: Graded,
    /// Distance from float64; infinity without output.
    pub truth: Graded,
}

impl MatrixCell {
    /// A cell with thresholds for `atol = rtol` only.
    pub fn new(end: EvaluationEnd, threshold_official: f64, threshold_truth: f64) -> MatrixCell {
        MatrixCell { end, official: Graded::at(threshold_official), truth: Graded::at(threshold_truth) }
    }

    /// Did a fault, without output, end it?
    fn faulted(&self) -> bool {
        self.end == EvaluationEnd::Fault
    }

    /// Does a protocol with this tolerance reject it? None where undecided (see [`Graded::rejected_by`]);
    /// exhausted and unsupported evaluations are not rejected, and not accepted either: ask `end`.
    pub fn rejected_by(&self, tolerance: Tolerance) -> Option<bool> {
        self.judged(&self.official, tolerance)
    }

    /// Is it wrong against float64 at this tolerance?
    pub fn wrong_in_truth(&self, tolerance: Tolerance) -> Option<bool> {
        self.judged(&self.truth, tolerance)
    }

    fn judged(&self, graded: &Graded, tolerance: Tolerance) -> Option<bool> {
        if self.faulted() {
            Some(true)
        } else if self.end.is_decided() {
            graded.rejected_by(tolerance)
        } else {
            Some(false)
        }
    }
}

impl From<&Cell> for MatrixCell {
    fn from(cell: &Cell) -> MatrixCell {
        MatrixCell::new(cell.end, cell.official_threshold(), cell.truth_threshold())
    }
}

/// One cell from the evaluations of one (mutant, input) under several schedule seeds: a tolerance rejects it where
/// it rejects more than half of them.
///
/// That is the (n/2 + 1)-th largest threshold, faults counting as infinite and undecided evaluations as no rejection.
/// Where the rejection would rest on undecided ones, the cell is undecided itself (exhausted before unsupported).
/// None for no evaluation.
pub fn majority(cells: &[MatrixCell]) -> Option<MatrixCell> {
    let first = cells.first()?;
    if cells.len() == 1 {
        return Some(first.clone());
    }
    let rank = cells.len() / 2;
    let value = |c: &MatrixCell, graded: fn(&MatrixCell) -> f64| {
        if c.faulted() {
            f64::INFINITY
        } else if c.end.is_decided() {
            let t = graded(c);
            if t.is_nan() { f64::INFINITY } else { t }
        } else {
            f64::NEG_INFINITY
        }
    };
    let ranked = |graded: fn(&MatrixCell) -> f64| {
        let mut order: Vec<(f64, &MatrixCell)> = cells.iter().map(|c| (value(c, graded), c)).collect();
        // Equal thresholds: the one with an output first, so that `fault` needs a majority of faults.
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1.end).cmp(&b.1.end)));
        order[rank]
    };
    let (official, at) = ranked(|c| c.official.threshold);
    if official == f64::NEG_INFINITY {
        let exhausted = cells.iter().any(|c| c.end == EvaluationEnd::Exhausted);
        let end = if exhausted { EvaluationEnd::Exhausted } else { EvaluationEnd::Unsupported };
        return Some(MatrixCell::new(end, f64::INFINITY, f64::INFINITY));
    }
    let faults = cells.iter().filter(|c| c.faulted()).count();
    let end = if faults > rank {
        EvaluationEnd::Fault
    } else if at.faulted() {
        // Faults and non-finite outputs together make the majority, neither alone.
        EvaluationEnd::NonFinite
    } else {
        at.end
    };
    let (truth, _) = ranked(|c| c.truth.threshold);
    let mut joined = MatrixCell::new(end, official, truth);
    for (side, pick) in [(&mut joined.official, 0usize), (&mut joined.truth, 1)] {
        side.scaled = majority_scaled(cells, rank, |c| if pick == 0 { &c.official } else { &c.truth });
    }
    Some(joined)
}

fn majority_scaled(
    cells: &[MatrixCell],
    rank: usize,
    side: impl Fn(&MatrixCell) -> &Graded,
) -> Vec<ScaledValue> {
    let with_output: Vec<&MatrixCell> = cells.iter().filter(|c| c.end.is_decided() && !c.faulted()).collect();
    let Some(first) = with_output.first() else { return Vec::new() };
    let mut joined = Vec::new();
    for s in &side(first).scaled {
        let mut values = Vec::with_capacity(cells.len());
        for c in cells {
            if c.faulted() {
                values.push(f64::INFINITY);
            } else if !c.end.is_decided() {
                values.push(f64::NEG_INFINITY);
            } else if let Some(v) = side(c).scaled.iter().find(|v| v.atol == s.atol && v.rtol == s.rtol) {
                values.push(if v.value.is_nan() { f64::INFINITY } else { v.value });
            }
        }
        // A pair that some evaluation lacks cannot be decided by majority.
        if values.len() == cells.len() {
            values.sort_by(|a, b| b.total_cmp(a));
            let value = values[rank].max(0.0);
            joined.push(ScaledValue { value, ..*s });
        }
    }
    joined
}

/// A mutant that stands in the matrix: it compiles, and no other image equals its own (*distinct*).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MutantRow {
    /// Its id, unique over all problems (the held-out split hashes it).
    pub id: String,
    /// Its name, such as `scale.cu:4:9: replace < with <= in scale`.
    #[serde(default)]
    pub name: String,
    /// The rule that made it.
    pub rule: String,
    /// The rule's family, as in [`crate::FAMILIES`].
    pub family: String,
    /// 1-based source line.
    #[serde(default)]
    pub line: u32,
    /// Does the edit stand in host code?
    #[serde(default)]
    pub host: bool,
    /// Has it a witness?
    #[serde(default)]
    pub witnessed: bool,
    /// Has it none under the `hardware` schedule, but one under `run-ahead`?
    #[serde(default)]
    pub schedule_witnessed: bool,
    /// Does it crash or exhaust every evaluation, so that nothing can be said of it?
    #[serde(default)]
    pub quarantined: bool,
    /// Did the sanitizer report a finding that the baseline does not have?
    #[serde(default)]
    pub flagged: bool,
    /// Why it has no witness; none where it has one, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwitnessed: Option<Unwitnessed>,
}

/// Why a distinct mutant has no witness. Of several reasons the first one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unwitnessed {
    /// It could not be compiled or evaluated within the budgets.
    Quarantined,
    /// It fails under the schedule `run-ahead` alone.
    ScheduleOnly,
    /// It fails on a valid input, and not again under a second seed of noise.
    OneSeed,
    /// It fails only on inputs on which correct float32 implementations differ as much.
    InvalidInputs,
    /// On no valid input is it beyond the tolerance against both the float32 reference and float64, but against one.
    OneReference,
    /// Its outputs differ from the original's, on every valid input within the tolerance.
    WithinTolerance,
    /// The same bits as the original on every input tried; the sanitizer reports a finding.
    SanitizerOnly,
    /// The same bits as the original on every input tried, and no finding: equivalent, or out of reach of the budget.
    Identical,
}

impl Unwitnessed {
    /// Every reason, in the order of tables.
    pub const ALL: [Unwitnessed; 8] = [
        Unwitnessed::Identical,
        Unwitnessed::WithinTolerance,
        Unwitnessed::SanitizerOnly,
        Unwitnessed::ScheduleOnly,
        Unwitnessed::InvalidInputs,
        Unwitnessed::OneReference,
        Unwitnessed::OneSeed,
        Unwitnessed::Quarantined,
    ];

    /// As a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Unwitnessed::Identical => "same bits as the original on every input tried",
            Unwitnessed::WithinTolerance => "differs, within the tolerance on every valid input",
            Unwitnessed::SanitizerOnly => "same bits, but the sanitizer reports a finding",
            Unwitnessed::ScheduleOnly => "fails under the schedule `run-ahead` only",
            Unwitnessed::InvalidInputs => "fails only where correct float32 implementations differ as much",
            Unwitnessed::OneReference => "beyond the tolerance against one of the two references only",
            Unwitnessed::OneSeed => "fails under one seed of noise only",
            Unwitnessed::Quarantined => "not compiled or not evaluated within the budgets",
        }
    }
}

/// Where an input comes from. The order is that of cost: what needs no thought first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// The problem's own inputs, seeded.
    Official,
    /// The constant scalings of KernelBench-Verified.
    Kbv,
    /// Log-uniform fuzzing.
    CiFuzz,
    /// A targeted recipe of the problem.
    Targeted,
    /// Found by searching for one mutant.
    Searched {
        /// That mutant's id.
        mutant: String,
    },
    /// Asked by a protocol alone. Last, so that which protocols an audit scores decides no tie between inputs.
    Protocol,
}

impl Origin {
    /// Position in the order of cost.
    pub fn rank(&self) -> u8 {
        match self {
            Origin::Official => 0,
            Origin::Kbv => 1,
            Origin::CiFuzz => 2,
            Origin::Targeted => 3,
            Origin::Searched { .. } => 4,
            Origin::Protocol => 5,
        }
    }
}

/// One run of a correct implementation that the validity gate did not use, on one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlRun {
    /// Which implementation, such as `plain-kernel` or `held-out:reversed`.
    pub control: String,
    /// How it ended.
    pub end: EvaluationEnd,
    /// Distance from the float32 reference.
    pub official: Graded,
}

impl ControlRun {
    /// Is this correct implementation rejected? None where undecided.
    pub fn rejected_by(&self, tolerance: Tolerance) -> Option<bool> {
        MatrixCell { end: self.end, official: self.official.clone(), truth: Graded::at(0.0) }
            .rejected_by(tolerance)
    }
}

/// One input of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRow {
    /// Its recipe's text, canonical, unique within the problem.
    pub recipe: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Is it one of the problem's targeted recipes? Also true where such a recipe has a cheaper origin as well.
    #[serde(default)]
    pub targeted: bool,
    /// Has it the shapes of the problem's own inputs (no `@DIM=V` in the recipe)?
    pub official_shape: bool,
    /// The largest distance over the legitimate-variance ensemble.
    pub validity: Graded,
    /// Runs of correct implementations, for false kills.
    #[serde(default)]
    pub controls: Vec<ControlRun>,
    /// The reference itself; none in runs before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceRow>,
}

impl InputRow {
    /// An input without control runs; shape and `targeted` are read off recipe and origin.
    pub fn new(recipe: impl Into<String>, origin: Origin, validity_threshold: f64) -> InputRow {
        let recipe = recipe.into();
        let official_shape = !recipe.contains('@');
        InputRow {
            recipe,
            targeted: origin == Origin::Targeted,
            origin,
            official_shape,
            validity: Graded::at(validity_threshold),
            controls: Vec::new(),
            reference: None,
        }
    }

    /// Is it valid at this tolerance? An undecided one has not been shown to be.
    pub fn is_valid(&self, tolerance: Tolerance) -> bool {
        self.validity.rejected_by(tolerance) == Some(false)
    }
}

/// Tolerances (atol = rtol) at which it is stated whether a problem can be refereed: the checker paper's official one,
/// that of KernelBench-Verified, and that of the benchmark's code.
pub const REFEREE_TOLERANCES: [f64; 3] = [1e-2, 1e-3, 1e-4];

/// How far a float32 reference strays from its own float64 evaluation at one tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violations {
    /// atol = rtol.
    pub tolerance: f64,
    /// Positions out of tolerance.
    pub positions: u64,
}

/// The reference on one input: how large it is, and how far its float32 evaluation strays from float64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceRow {
    /// Elements of all outputs.
    pub elements: u64,
    /// Largest finite |ref| over all outputs.
    pub max_abs: f64,
    /// Threshold of the float32 reference against float64.
    #[serde(with = "assay_judge::serde_float")]
    pub error: f64,
    /// Its largest absolute error.
    #[serde(with = "assay_judge::serde_float")]
    pub max_abs_error: f64,
    /// Violations at each of [`REFEREE_TOLERANCES`].
    pub violations: Vec<Violations>,
}

/// Why nothing can be refereed on a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unrefereeable {
    /// The float32 reference fails its own float64 evaluation at the witness tolerance on an official input.
    ReferenceStrays,
    /// A kernel that stores zeros passes on every input that was tried.
    ZerosPass,
    /// A kernel that stores one constant passes on every input that was tried.
    ConstantPasses,
}

impl Unrefereeable {
    /// As a clause.
    pub fn clause(self) -> &'static str {
        match self {
            Unrefereeable::ReferenceStrays => {
                "the float32 reference fails its own float64 evaluation on official inputs"
            }
            Unrefereeable::ZerosPass => "a kernel that stores zeros passes on every input tried",
            Unrefereeable::ConstantPasses => "a kernel that stores one constant passes on every input tried",
        }
    }
}

/// What an external checker said of one output, or why it was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// It accepted (exit 0).
    Accepts,
    /// It rejected (exit 1).
    Rejects,
    /// The kernel ended without output, which every harness sees: rejected without asking.
    Fault,
    /// It failed itself: another exit code or a signal. Neither a kill nor a pass.
    Failed,
    /// It did not end in time: its own failure too.
    TimedOut,
    /// The evaluation ran out of its budget, so that there was nothing to show.
    Exhausted,
    /// The device lacks something that the evaluation needs.
    Unsupported,
}

impl CheckVerdict {
    /// Every verdict.
    pub const ALL: [CheckVerdict; 7] = [
        CheckVerdict::Accepts,
        CheckVerdict::Rejects,
        CheckVerdict::Fault,
        CheckVerdict::Failed,
        CheckVerdict::TimedOut,
        CheckVerdict::Exhausted,
        CheckVerdict::Unsupported,
    ];

    /// Its name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            CheckVerdict::Accepts => "accepts",
            CheckVerdict::Rejects => "rejects",
            CheckVerdict::Fault => "fault",
            CheckVerdict::Failed => "failed",
            CheckVerdict::TimedOut => "timed_out",
            CheckVerdict::Exhausted => "exhausted",
            CheckVerdict::Unsupported => "unsupported",
        }
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<CheckVerdict> {
        CheckVerdict::ALL.into_iter().find(|v| v.name() == name)
    }

    /// Is the output rejected?
    pub fn is_rejection(self) -> bool {
        matches!(self, CheckVerdict::Rejects | CheckVerdict::Fault)
    }

    /// Did the checker itself fail?
    pub fn is_own_failure(self) -> bool {
        matches!(self, CheckVerdict::Failed | CheckVerdict::TimedOut)
    }

    /// One verdict from those under several schedule seeds: a rejection where more than half reject (a rejection by
    /// the checker, if one was); the first that is no verdict where the rest would depend on it; else acceptance.
    /// None of none.
    pub fn majority(verdicts: &[CheckVerdict]) -> Option<CheckVerdict> {
        let rejecting = verdicts.iter().filter(|v| v.is_rejection()).count();
        let open: Vec<&CheckVerdict> =
            verdicts.iter().filter(|v| !v.is_rejection() && **v != CheckVerdict::Accepts).collect();
        let half = verdicts.len() / 2;
        if rejecting > half {
            let asked = verdicts.contains(&CheckVerdict::Rejects);
            return Some(if asked { CheckVerdict::Rejects } else { CheckVerdict::Fault });
        }
        match open.first() {
            Some(&&first) if rejecting + open.len() > half => Some(first),
            _ => verdicts.first().map(|_| CheckVerdict::Accepts),
        }
    }
}

/// What one external checker said, on the inputs that it was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckerRuns {
    /// Its inputs, by recipe, in the order in which they are asked.
    pub recipes: Vec<String>,
    /// By mutant (id): its verdicts on the first 1, 2, … inputs, up to the first rejection on a valid one. Only
    /// witnessed mutants are asked.
    pub mutants: BTreeMap<String, Vec<CheckVerdict>>,
    /// By correct implementation: its verdicts on every input.
    pub controls: BTreeMap<String, Vec<CheckVerdict>>,
    /// The first run that failed by itself, if one did: on what, and what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
}

/// What the filter took out before the matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filtered {
    /// Mutants generated.
    pub generated: u64,
    /// Refused by the compiler.
    pub noncompiling: u64,
    /// Image equal to another mutant's.
    pub duplicate_image: u64,
    /// Image equal to the original's.
    pub equivalent: u64,
}

/// Everything measured of one problem whose baseline held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillMatrix {
    /// KernelBench level.
    pub level: u32,
    /// Number within the level.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Can no kernel be judged on it? Then the problem is reported, not scored.
    #[serde(default)]
    pub unrefereeable: bool,
    /// Why not, where it cannot; none also in runs before the reason was kept, which knew the float32 reference's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrefereeable_why: Option<Unrefereeable>,
    /// What the filter took out.
    pub filtered: Filtered,
    /// The distinct mutants.
    pub mutants: Vec<MutantRow>,
    /// The inputs.
    pub inputs: Vec<InputRow>,
    /// A row for each mutant, a place for each input; rows may be shorter than the inputs.
    cells: Vec<Vec<Option<MatrixCell>>>,
    /// What external checkers said, by the name of their protocol.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkers: BTreeMap<String, CheckerRuns>,
}

impl KillMatrix {
    /// An empty matrix.
    pub fn new(level: u32, id: u32, name: impl Into<String>) -> KillMatrix {
        KillMatrix { level, id, name: name.into(), ..KillMatrix::default() }
    }

    /// `level/id`, the key of `[problems]` in a protocol.
    pub fn key(&self) -> String {
        format!("{}/{}", self.level, self.id)
    }

    /// The cell of a mutant and an input, by index; none where they never met.
    pub fn cell(&self, mutant: usize, input: usize) -> Option<&MatrixCell> {
        self.cells.get(mutant)?.get(input)?.as_ref()
    }

    /// Stores a cell, over an earlier one if there is one.
    ///
    /// # Errors
    /// `Matrix` where there is no such mutant or input.
    pub fn set_cell(&mut self, mutant: usize, input: usize, cell: MatrixCell) -> Result<(), MeasureError> {
        if mutant >= self.mutants.len() || input >= self.inputs.len() {
            return Err(self.fault(format!("no place for mutant {mutant} on input {input}")));
        }
        if self.cells.len() <= mutant {
            self.cells.resize(self.mutants.len(), Vec::new());
        }
        let row = &mut self.cells[mutant];
        if row.len() <= input {
            row.resize(self.inputs.len(), None);
        }
        row[input] = Some(cell);
        Ok(())
    }

    /// Index of the input with that recipe.
    pub fn input(&self, recipe: &str) -> Option<usize> {
        self.inputs.iter().position(|i| i.recipe == recipe)
    }

    /// Does the input kill the mutant at this tolerance: valid there, and rejected?
    pub fn kills(&self, mutant: usize, input: usize, tolerance: Tolerance) -> bool {
        self.inputs.get(input).is_some_and(|i| i.is_valid(tolerance))
            && self.cell(mutant, input).is_some_and(|c| c.rejected_by(tolerance) == Some(true))
    }

    fn fault(&self, what: String) -> MeasureError {
        MeasureError::Matrix { problem: self.key(), what }
    }

    /// Checks what the rest of the crate relies on.
    ///
    /// # Errors
    /// `Matrix`: the filter's counts do not give the number of mutants; two mutants of one id, two inputs of one
    /// recipe; a mutant both witnessed and quarantined or schedule-witnessed; a threshold that is negative or NaN;
    /// cells without a mutant or an input.
    pub fn validate(&self) -> Result<(), MeasureError> {
        let f = &self.filtered;
        let gone = f.noncompiling.checked_add(f.duplicate_image).and_then(|n| n.checked_add(f.equivalent));
        let distinct = gone.and_then(|gone| f.generated.checked_sub(gone));
        if distinct != Some(self.mutants.len() as u64) {
            return Err(self.fault(format!(
                "{} generated - {} non-compiling - {} duplicate - {} equivalent is not the {} distinct mutants listed",
                f.generated,
                f.noncompiling,
                f.duplicate_image,
                f.equivalent,
                self.mutants.len()
            )));
        }
        if self.unrefereeable_why.is_some() && !self.unrefereeable {
            return Err(self.fault("it says why it is unrefereeable, and that it is not".to_owned()));
        }
        let mut ids = BTreeSet::new();
        for m in &self.mutants {
            if !ids.insert(&m.id) {
                return Err(self.fault(format!("two mutants have the id `{}`", m.id)));
            }
            if m.witnessed && (m.quarantined || m.schedule_witnessed) {
                return Err(self.fault(format!(
                    "mutant `{}` is witnessed and also quarantined or schedule-witnessed",
                    m.id
                )));
            }
        }
        let mut recipes = BTreeSet::new();
        for i in &self.inputs {
            if !recipes.insert(&i.recipe) {
                return Err(self.fault(format!("two inputs have the recipe `{}`", i.recipe)));
            }
            let controls = i.controls.iter().flat_map(|c| c.official.values());
            if i.validity.values().chain(controls).any(bad) {
                return Err(self.fault(format!("input `{}` has a threshold below zero or NaN", i.recipe)));
            }
        }
        if self.cells.len() > self.mutants.len() || self.cells.iter().any(|row| row.len() > self.inputs.len())
        {
            return Err(self.fault("there are cells without a mutant or an input".to_owned()));
        }
        for (m, row) in self.cells.iter().enumerate() {
            for (i, cell) in row.iter().enumerate() {
                if let Some(c) = cell
                    && c.official.values().chain(c.truth.values()).any(bad)
                {
                    return Err(self.fault(format!(
                        "mutant `{}` on input `{}` has a threshold below zero or NaN",
                        self.mutants[m].id, self.inputs[i].recipe
                    )));
                }
            }
        }
        Ok(())
    }
}

fn bad(threshold: f64) -> bool {
    threshold.is_nan() || threshold < 0.0
}
