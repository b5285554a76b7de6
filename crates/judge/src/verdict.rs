//! How an evaluation ended, and what that means for a mutant.

use serde::{Deserialize, Serialize};

use crate::{Comparison, Validity};

/// How one evaluation (a mutant on an input) ended.
///
/// `Pass` and `Mismatch` hold for the tolerance at which the end was taken; at another tolerance the threshold
/// decides ([`EvaluationEnd::is_kill`]). `Exhausted` and `Unsupported` are neither a kill nor a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationEnd {
    /// The output is within tolerance.
    Pass,
    /// A finite element is out of tolerance.
    Mismatch,
    /// A NaN or an infinity where the reference has another value, or the reverse.
    NonFinite,
    /// A trap, or an access that left the memory segment: there is no output.
    Fault,
    /// The instruction or memory budget ended it.
    Exhausted,
    /// The device cannot do it.
    Unsupported,
}

impl EvaluationEnd {
    /// Every end, in the order of the declaration.
    pub const ALL: [EvaluationEnd; 6] = [
        EvaluationEnd::Pass,
        EvaluationEnd::Mismatch,
        EvaluationEnd::NonFinite,
        EvaluationEnd::Fault,
        EvaluationEnd::Exhausted,
        EvaluationEnd::Unsupported,
    ];

    /// The end of an evaluation that has an output, judged at `atol = rtol = t`.
    pub fn of(comparison: &Comparison, t: f64) -> EvaluationEnd {
        if comparison.non_finite > 0 {
            EvaluationEnd::NonFinite
        } else if comparison.passes(t) {
            EvaluationEnd::Pass
        } else {
            EvaluationEnd::Mismatch
        }
    }

    /// Is this a kill at `atol = rtol = tolerance`, with the threshold measured against the reference in question?
    /// A fault always is; `Exhausted` and `Unsupported` never are; else the threshold is compared.
    pub fn is_kill(self, threshold: f64, tolerance: f64) -> bool {
        match self {
            EvaluationEnd::Fault => true,
            EvaluationEnd::Exhausted | EvaluationEnd::Unsupported => false,
            // Written so that a threshold of NaN, which nothing here makes, would count as a failure.
            EvaluationEnd::Pass | EvaluationEnd::Mismatch | EvaluationEnd::NonFinite => {
                !matches!(threshold.partial_cmp(&tolerance), Some(o) if o.is_le())
            }
        }
    }

    /// Did the evaluation come to a verdict (kill or pass)?
    pub fn is_decided(self) -> bool {
        !matches!(self, EvaluationEnd::Exhausted | EvaluationEnd::Unsupported)
    }

    /// The name as in JSON and in the run store.
    pub fn name(self) -> &'static str {
        match self {
            EvaluationEnd::Pass => "pass",
            EvaluationEnd::Mismatch => "mismatch",
            EvaluationEnd::NonFinite => "non_finite",
            EvaluationEnd::Fault => "fault",
            EvaluationEnd::Exhausted => "exhausted",
            EvaluationEnd::Unsupported => "unsupported",
        }
    }

    /// The end of that name, if there is one.
    pub fn from_name(name: &str) -> Option<EvaluationEnd> {
        EvaluationEnd::ALL.into_iter().find(|e| e.name() == name)
    }
}

/// One evaluation's record: how it ended, and its comparisons where there was an output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// How it ended, judged at the tolerance given to [`Cell::judged`].
    pub end: EvaluationEnd,
    /// Against the float32 reference, as the benchmark does; none without output.
    pub official: Option<Comparison>,
    /// Against float64, integers exactly; none without output.
    pub truth: Option<Comparison>,
}

impl Cell {
    /// The cell of an evaluation with outputs, its end taken from `official` at `atol = rtol = t`.
    pub fn judged(official: Comparison, truth: Comparison, t: f64) -> Cell {
        Cell { end: EvaluationEnd::of(&official, t), official: Some(official), truth: Some(truth) }
    }

    /// The cell of an evaluation without outputs: a fault, exhausted or unsupported.
    pub fn without_output(end: EvaluationEnd) -> Cell {
        Cell { end, official: None, truth: None }
    }

    /// Threshold against `official`; infinity without output.
    pub fn official_threshold(&self) -> f64 {
        self.official.map_or(f64::INFINITY, |c| c.threshold)
    }

    /// Threshold against `truth`; infinity without output.
    pub fn truth_threshold(&self) -> f64 {
        self.truth.map_or(f64::INFINITY, |c| c.threshold)
    }

    /// Does a protocol with `atol = rtol = t` reject this? Judged against `official` alone, as benchmarks do.
    pub fn rejected_at(&self, t: f64) -> bool {
        self.end.is_kill(self.official_threshold(), t)
    }

    /// Is it wrong at t against both references? What a witness asks: a mutant that only departs from the float32
    /// reference, or only from float64, has not been proved faulty.
    pub fn kills_at(&self, t: f64) -> bool {
        self.rejected_at(t) && self.end.is_kill(self.truth_threshold(), t)
    }
}

/// Is this input a witness against the mutant? `cells` are the mutant's evaluations on it, one for each noise seed
/// (at least two): every one must fail at t against both references, and the input must be valid at t.
pub fn is_witness(cells: &[Cell], validity: Validity, t: f64) -> bool {
    cells.len() >= 2 && validity.is_valid(t) && cells.iter().all(|c| c.kills_at(t))
}
