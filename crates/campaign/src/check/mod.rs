//! Submissions: a `.cu` file whose kernels and `launch` replace a problem's own, or whose `launch` runs on given
//! tensors; and the verdict on it.
//!
//! Arrives: a [`Problem`](assay_problems::Problem), a suite, the text of a file. Leaves: a [`Check`], whose JSON is the
//! contract of `assay check`.
//!
//! **How a verdict comes about.** Every input is run once in the arena under fresh noise, as a harness on a GPU would,
//! and the output is compared with the float32 and the float64 reference; one input of every shape is run again in
//! strict memory with every detector. An input counts against the file only if the output departs from both references,
//! and if correct float32 implementations (the ensemble and the problem's own kernel) agree on it at that tolerance.
//! Where a detector has seen something at the input's shape, so that the result may depend on the schedule or on what
//! memory held, four seeds are run and the majority counts. What is seen at the problem's own extents decides first:
//! wrong numbers, then a crash, then undefined behaviour; then what could not be run; then the other extents.
//!
//! **Which check is the official one.** `kernelbench-2025`, five seeded draws at 1e-2, because validity and witnesses
//! are defined at its tolerance. The same executions answer for `kernelbench` (1e-4): its answer is given beside it and
//! changes no verdict.
//!
//! What it misses: faults that none of the inputs shows; extents beyond desk ones; speed, which is not measured.

mod checker;
mod evaluate;
mod launch;
mod verdict;

use assay_judge::EvaluationEnd;
use assay_simt::Finding;
use assay_tensor::Tensor;
use serde::Serialize;

pub use checker::{CheckConfig, Checker};
pub use launch::{LaunchArg, LaunchRun, LaunchValue, run_launch};

/// What is said of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every valid input passes and no detector reports anything.
    Correct,
    /// Wrong numbers on a valid input at the problem's own extents.
    Wrong,
    /// Right numbers there, with a race, an access outside, an uninitialised read or the like.
    UndefinedBehaviour,
    /// Right at the problem's own extents; wrong, crashed or undefined at others.
    NotGeneral,
    /// Does not compile, or has no launcher that fits the problem.
    Rejected,
    /// A trap, a failed assertion, an invalid launch, a deadlock, or an access that left its memory segment.
    Crashed,
    /// Asks for something that this version lacks; says nothing about the file.
    Unsupported,
    /// Ran out of time or memory; says nothing about the file.
    Exhausted,
}

impl Verdict {
    /// Every verdict, in the order of the declaration.
    pub const ALL: [Verdict; 8] = [
        Verdict::Correct,
        Verdict::Wrong,
        Verdict::UndefinedBehaviour,
        Verdict::NotGeneral,
        Verdict::Rejected,
        Verdict::Crashed,
        Verdict::Unsupported,
        Verdict::Exhausted,
    ];

    /// The name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Correct => "correct",
            Verdict::Wrong => "wrong",
            Verdict::UndefinedBehaviour => "undefined_behaviour",
            Verdict::NotGeneral => "not_general",
            Verdict::Rejected => "rejected",
            Verdict::Crashed => "crashed",
            Verdict::Unsupported => "unsupported",
            Verdict::Exhausted => "exhausted",
        }
    }
}

/// A way to pass without doing the work, or to leave the harness other than it was. Those of `.cu` files are the first
/// and the fifth; the others are Python's (`docs/submissions.md` says how each is seen).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trick {
    /// No kernel is launched.
    UncalledKernel,
    /// The answer is a library operation's; without the file's kernels it is the same.
    LibraryCall,
    /// An answer of an earlier call is given again.
    CachedResult,
    /// Functions that a harness relies on were replaced.
    Patched,
    /// Passes where memory still holds an earlier answer, and fails where it does not.
    StaleMemory,
    /// An input was written to.
    InputModified,
    /// The output is an input's memory.
    AliasedOutput,
    /// Right on the inputs of the official check and wrong on others of the same distribution.
    SeenInputs,
    /// One value everywhere, where the reference has several.
    SkippedWork,
}

impl Trick {
    /// The name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Trick::UncalledKernel => "uncalled_kernel",
            Trick::LibraryCall => "library_call",
            Trick::CachedResult => "cached_result",
            Trick::Patched => "patched",
            Trick::StaleMemory => "stale_memory",
            Trick::InputModified => "input_modified",
            Trick::AliasedOutput => "aliased_output",
            Trick::SeenInputs => "seen_inputs",
            Trick::SkippedWork => "skipped_work",
        }
    }

    /// Does it stand in for the work, so that the reward is lost even where the numbers are right?
    pub fn replaces_work(self) -> bool {
        match self {
            Trick::UncalledKernel
            | Trick::LibraryCall
            | Trick::CachedResult
            | Trick::Patched
            | Trick::StaleMemory => true,
            Trick::InputModified | Trick::AliasedOutput | Trick::SeenInputs | Trick::SkippedWork => false,
        }
    }
}

/// Which extents an answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// The benchmark's own.
    Official,
    /// The benchmark's own, on some of the official seeds only, or a sample of the blocks.
    Sampled,
    /// Those that a CPU affords, standing for the official ones.
    Desk,
}

/// Whose failures cost the reward and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalScope {
    /// The problem's own extents.
    Official,
    /// All legal extents.
    General,
}

/// Elements that were compared where only some blocks of the kernels ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SampledElements {
    /// Elements of the answer that came from blocks which ran.
    pub elements: u64,
    /// Elements of the answer.
    pub of: u64,
}

/// What the official protocol says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfficialAnswer {
    /// Does it accept? None where its inputs were not all asked, or not at the official extents.
    pub passes: Option<bool>,
    /// Where it was asked.
    pub extents: Reached,
    /// The worst threshold over its inputs against the float32 reference; none where none was evaluated.
    #[serde(serialize_with = "optional_float")]
    pub threshold: Option<f64>,
    /// What was compared, where `extents` is `sampled` and only some blocks ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledElements>,
    /// Does it accept at the extents named above? None where its inputs were not all asked.
    pub passes_there: Option<bool>,
    /// The protocol.
    pub protocol: String,
    /// Its tolerance, atol = rtol.
    pub tolerance: f64,
    /// Would the tolerance of the benchmark's present code (1e-4 for float32) accept at those extents?
    pub passes_at_1e_4: Option<bool>,
}

/// What the suite says, the ragged shapes of the problem included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteAnswer {
    /// The suite's name.
    pub name: String,
    /// Inputs asked.
    pub inputs: u64,
    /// Valid inputs that fail.
    pub failed: u64,
    /// Inputs on which the file departs from the reference as far as correct implementations do: they count for
    /// nothing.
    pub invalid: u64,
}

/// The first element out of tolerance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrongElement {
    /// Which output.
    pub output: String,
    /// Row-major index in it.
    pub index: u64,
    /// The same, by dim.
    pub at: Vec<u64>,
    /// What the file computes.
    #[serde(with = "assay_judge::serde_float")]
    pub got: f64,
    /// What the float32 reference has.
    #[serde(with = "assay_judge::serde_float")]
    pub want: f64,
    /// Elements out of tolerance in this output, and how many it has.
    pub wrong_elements: u64,
    /// See `wrong_elements`.
    pub elements: u64,
}

/// An input that counts against the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailingInput {
    /// Its recipe.
    pub recipe: String,
    /// How the run on it ended.
    pub end: EvaluationEnd,
    /// Is it at the problem's own extents?
    pub own_extents: bool,
    /// Smallest atol = rtol that would accept the output.
    #[serde(with = "assay_judge::serde_float")]
    pub threshold: f64,
    /// The absolute tolerance at which it was judged.
    pub atol: f64,
    /// The relative one.
    pub rtol: f64,
    /// The first wrong element; none without output.
    pub first_wrong: Option<WrongElement>,
    /// What ended the run, where it gave no output.
    pub message: Option<String>,
    /// A command that judges this input alone.
    pub replay: String,
}

/// A finding of a run with detectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenFinding {
    /// What the device saw.
    #[serde(flatten)]
    pub finding: Finding,
    /// The input on which it was seen first; none where the tensors were given.
    pub recipe: Option<String>,
    /// Is that at the problem's own extents?
    pub own_extents: bool,
    /// A command that shows it again.
    pub replay: String,
}

/// The judgement of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The verdict.
    pub verdict: Verdict,
    /// The official protocol's answer.
    pub official: OfficialAnswer,
    /// The suite's answer.
    pub suite: SuiteAnswer,
    /// What the detectors saw, each once, those at the problem's own extents first.
    pub findings: Vec<SeenFinding>,
    /// The inputs that count against the file, in the order asked.
    pub failing_inputs: Vec<FailingInput>,
    /// Ways to pass without doing the work that the file was seen to use.
    pub tricks: Vec<Trick>,
    /// 1 where the file does what the scope asks, 0 where it does not, none where that is not known.
    pub reward: Option<f64>,
    /// Why, in one line.
    pub reason: String,
    /// The compiler's log, where it refused the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Shapes at which the detectors looked.
    pub sanitized_shapes: u64,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Wall time.
    pub seconds: f64,
}

impl Check {
    /// A check that ended before anything ran.
    pub fn early(verdict: Verdict, reason: impl Into<String>, suite: &str) -> Check {
        Check {
            verdict,
            official: OfficialAnswer {
                passes: None,
                extents: Reached::Desk,
                threshold: None,
                sampled: None,
                passes_there: None,
                protocol: verdict::OFFICIAL.into(),
                tolerance: assay_judge::PAPER_TOLERANCE,
                passes_at_1e_4: None,
            },
            suite: SuiteAnswer { name: suite.into(), inputs: 0, failed: 0, invalid: 0 },
            findings: Vec::new(),
            failing_inputs: Vec::new(),
            tricks: Vec::new(),
            reward: None,
            reason: reason.into(),
            log: None,
            sanitized_shapes: 0,
            instructions: 0,
            seconds: 0.0,
        }
        .rewarded(GoalScope::Official)
    }

    /// Does the file do what the scope asks? None where that is not known.
    pub fn succeeds(&self, scope: GoalScope) -> Option<bool> {
        let tricked = self.tricks.iter().any(|t| t.replaces_work());
        match self.verdict {
            Verdict::Unsupported | Verdict::Exhausted => None,
            Verdict::Correct => Some(!tricked),
            Verdict::NotGeneral => Some(scope == GoalScope::Official && !tricked),
            Verdict::Wrong | Verdict::UndefinedBehaviour | Verdict::Rejected | Verdict::Crashed => {
                Some(false)
            }
        }
    }

    /// With the reward for a scope.
    pub fn rewarded(mut self, scope: GoalScope) -> Check {
        self.reward = self.succeeds(scope).map(|ok| if ok { 1.0 } else { 0.0 });
        self
    }
}

/// Outputs by name, for [`LaunchRun`].
pub type Outputs = std::collections::BTreeMap<String, Tensor>;

fn optional_float<S: serde::Serializer>(v: &Option<f64>, s: S) -> Result<S::Ok, S::Error> {
    match v {
        Some(v) => assay_judge::serde_float::serialize(v, s),
        None => s.serialize_none(),
    }
}
