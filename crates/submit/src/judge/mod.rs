//! A submission against a problem: which questions are asked in which order, and what its answers come to.
//!
//! **Order.** The first trial of the official check at desk extents, and at smaller ones as long as a pass is dear; the
//! other trials; draws from the same distribution that no trial has; the suite; ragged extents; other init arguments; one
//! pass with every detector at desk and at ragged extents; the passes that show tricks; then the official extents: first
//! what failed elsewhere, then as many trials as the time allows; where it allows none, a sample of the blocks.
//!
//! **What counts.** An answer counts against a submission if it departs from the reference in the precision asked for
//! and from float64, by more than 1e-2, and if the reference itself is far closer to float64 there (the validity gate).
//! Where the official extents were run they alone can make it `wrong`; where they were not, desk extents stand for
//! them, unless the source has an official extent written into it that was cut: then a failure there says nothing of the
//! official ones, and the check is `exhausted`.

mod asking;
mod official;
mod sampled;
mod tricks;
mod verdict;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_campaign::check::{
    Check, FailingInput, GoalScope, OfficialAnswer, Reached, SampledElements, SeenFinding, SuiteAnswer,
    Trick, Verdict,
};
use assay_judge::EvaluationEnd;
use assay_problems::Recipe;
use assay_simt::{Fill, Finding, FindingKind};
use serde_json::{Value as Json, json};

use crate::error::SubmitError;
use crate::host::{Device, Host, Seen};
use crate::look::{
    Ask, Look, against, constant, distance, distance_in_proportion, failure, identical, look,
    nearly_identical, stale, varies,
};
use crate::problem::{Case, Extents, Prepared};
use crate::question::{Question, TRIALS};
use crate::reference::{Cost, Made, Reference, Refused, Setting};
use crate::server::{Ending, Gone, Limits, Server};
use crate::session::{Reply, Session};
use verdict::Parts;

/// The official check's name and its tolerance in the checker paper, which decides.
const PROTOCOL: &str = "kernelbench-2025";
/// The float32 tolerance of the benchmark's present code.
const PRESENT_TOLERANCE: f64 = 1e-4;
/// How much closer than the tolerance the reference must be to float64: room for other orders of accumulation.
const ROOM: f64 = 64.0;
/// The same on the problem's own distribution, and in half precision, where the reference's own rounding is most of it.
const OWN_ROOM: f64 = 16.0;
const HALF_ROOM: f64 = 2.0;
/// Warp instructions of a forward pass at desk extents, with detectors, and at the official ones: nothing else ends an
/// endless kernel. A good kernel asks for less than a million at desk extents, one that works in a single thread for
/// some hundred.
const DESK_INSTRUCTIONS: u64 = 250_000_000;
const DETECTOR_INSTRUCTIONS: u64 = 100_000_000;
const OFFICIAL_INSTRUCTIONS: u64 = 6_000_000_000;
/// The same where nothing smaller can be asked.
const DEAR_DETECTORS: u64 = 500_000_000;
const PATIENT_INSTRUCTIONS: u64 = 2_500_000_000;
/// Beyond this, desk extents are made smaller: a submission may do far more work than the reference, as a softmax that
/// sums its row again for each element.
const DEAR_INSTRUCTIONS: u64 = 12_000_000;
/// What one core of a plain machine does in a second, rather less than more: warp instructions, the reference's work,
/// bytes that go to and from a worker.
const INSTRUCTIONS_A_SECOND: f64 = 1e8;
const WORK_A_SECOND: f64 = 1e9;
const BYTES_A_SECOND: f64 = 5e8;
/// Shares of a submission's time after which no more trials, suite inputs, other shapes are begun.
const TRIAL_SHARE: f64 = 0.25;
const SUITE_SHARE: f64 = 0.45;
const OTHER_SHARE: f64 = 0.6;
/// Inputs far from those of a normal distribution around zero.
const SHIFTED: [&str; 2] = ["uniform(-2,-1)#104", "shifted(10,0.5)#108"];
/// How much closer than a constant an answer has to be where the reference's answers hardly differ.
const FOLLOWS: f64 = 8.0;
/// Failures after which no more of a kind are asked.
const ENOUGH: usize = 3;

/// How submissions are judged.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `fp32`, `fp16`, `bf16`.
    pub precision: String,
    /// Seconds for one forward pass.
    pub pass_seconds: u64,
    /// Seconds for one submission; what is not asked by then is `exhausted`, or left out.
    pub seconds: u64,
    /// Seconds that the official extents may take.
    pub official_seconds: f64,
    /// Seed of schedules and fills.
    pub seed: u64,
    /// Whose failures cost the reward.
    pub scope: GoalScope,
    /// Only these questions.
    pub only: Vec<Question>,
    /// What one process may use.
    pub limits: Limits,
    /// Recipes that an audit selected for the problem, and the suite's name.
    pub shipped: Vec<String>,
    /// See `shipped`.
    pub suite: String,
}

impl Settings {
    fn tolerance(&self) -> f64 {
        assay_judge::PAPER_TOLERANCE
    }

    fn room(&self, question: &Question) -> f64 {
        if self.precision != "fp32" {
            HALF_ROOM
        } else if question.is_official_kind() {
            OWN_ROOM
        } else {
            ROOM
        }
    }
}

/// The two workers of one thread.
pub struct Slot {
    /// Where submissions run.
    pub server: Server,
    /// Where references run.
    pub reference: Reference,
}

/// Where a question belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A trial of the official check, at desk extents.
    DeskTrial,
    /// Another question at desk extents.
    Desk,
    /// Other extents or init arguments.
    Elsewhere,
    /// The official extents.
    Official,
}

/// A question that was asked.
struct Asked {
    case: Arc<Case>,
    place: Place,
    look: Look,
    /// Counts against the submission?
    counts: bool,
    /// The reference disagrees with itself as much.
    invalid: bool,
    /// What was compared, where not all of it.
    sampled: Option<sampled::Compared>,
}

/// A submission's text and what it is called.
pub struct Submission<'s> {
    /// Python.
    pub source: &'s str,
    /// For tracebacks and messages.
    pub name: &'s str,
    /// The command that judges it again; `--input` is added.
    pub command: &'s str,
}

/// Judges a submission.
///
/// # Errors
/// What says nothing about the submission: workers that died, a problem that cannot be used.
pub fn judge(
    slot: &mut Slot,
    host: &dyn Host,
    problem: &Prepared,
    settings: &Settings,
    submission: &Submission<'_>,
) -> Result<Check, SubmitError> {
    let began = Instant::now();
    loop {
        // Host code that met what the interpreter does not have is compiled from now on: all is asked again, of a new
        // process, so that nothing of what was half done is left. Each extension turns at most once.
        if let Some(mut check) = judge_once(slot, host, problem, settings, submission)? {
            check.seconds = began.elapsed().as_secs_f64();
            return Ok(check);
        }
    }
}

/// As [`judge`]; none where it is to be asked again.
fn judge_once(
    slot: &mut Slot,
    host: &dyn Host,
    problem: &Prepared,
    settings: &Settings,
    submission: &Submission<'_>,
) -> Result<Option<Check>, SubmitError> {
    let began = Instant::now();
    let Some(extents) = problem.extents(&mut slot.reference, 0)? else {
        return Err(SubmitError::Input(format!("the problem `{}` has no extents", problem.path.display())));
    };
    let child = slot.server.fork(&settings.precision, &settings.limits)?;
    let mut run = Run {
        session: Session::new(child, host),
        reference: &mut slot.reference,
        problem,
        extents,
        measured: Vec::new(),
        patient: false,
        settings,
        submission,
        began,
        asked: Vec::new(),
        findings: Vec::new(),
        tricks: BTreeSet::new(),
        shapes: 0,
        undecided_shape: None,
        instructions: 0,
        made_at: None,
        takes: None,
        official_trials: 0,
        desk_seconds: 0.0,
        refused: 0,
        rounding: false,
        unreached: None,
    };
    let early = run.everything();
    let session = run.session;
    let gone = session.gone().cloned();
    let (again, compiled_by) = (session.again, session.compiled_by.clone());
    let parts = Parts {
        extents: run.extents,
        rounding: run.rounding,
        unreached: run.unreached,
        asked: run.asked,
        findings: run.findings,
        tricks: run.tricks,
        shapes: run.shapes,
        undecided_shape: run.undecided_shape,
        instructions: run.instructions,
        official_trials: run.official_trials,
    };
    let patience = if gone == Some(Gone::Closed) { 200 } else { 0 };
    let ending = slot.server.end(session.into_child(), patience)?;
    if gone == Some(Gone::Interrupted) {
        return Err(SubmitError::Interrupted);
    }
    let early = early?;
    if again {
        return Ok(None);
    }
    let ended = gone.as_ref().map(|g| (g, &ending));
    let mut check = parts.verdict(problem, settings, submission, early, ended);
    if let Some(compiler) = compiled_by {
        check.reason.push_str(&format!("; its host part was compiled by {compiler}"));
    }
    Ok(Some(check.rewarded(settings.scope)))
}

/// The answer of a submission that never came to a forward pass.
struct Early {
    verdict: Verdict,
    reason: String,
    log: Option<String>,
}

struct Run<'r, 'h> {
    session: Session<'h>,
    reference: &'r mut Reference,
    problem: &'r Prepared,
    /// The desk extents that suit this submission.
    extents: Arc<Extents>,
    /// Work of the reference and warp instructions of the submission, at the desk extents that were tried.
    measured: Vec<(u64, u64)>,
    /// Is a pass dear at all extents that can be asked?
    patient: bool,
    settings: &'r Settings,
    submission: &'r Submission<'r>,
    began: Instant,
    asked: Vec<Asked>,
    findings: Vec<SeenFinding>,
    tricks: BTreeSet<Trick>,
    shapes: u64,
    undecided_shape: Option<String>,
    instructions: u64,
    made_at: Option<Setting>,
    takes: Option<u64>,
    official_trials: usize,
    desk_seconds: f64,
    refused: usize,
    /// Is the reference's answer nothing but rounding?
    rounding: bool,
    /// Why nothing was asked at the official extents.
    unreached: Option<String>,
}

impl Run<'_, '_> {
    fn device(&self) -> Device {
        Device {
            fill: Fill::Noise,
            sanitize: false,
            seed: self.settings.seed,
            instructions: if self.patient { PATIENT_INSTRUCTIONS } else { DESK_INSTRUCTIONS },
            skip: false,
            sample: None,
            stale: Vec::new(),
        }
    }

    fn ask(&self) -> Ask {
        let left = Duration::from_secs(self.settings.seconds).saturating_sub(self.elapsed());
        Ask {
            device: self.device(),
            held: false,
            limit: Duration::from_secs(self.settings.pass_seconds).min(left),
            tolerance: self.settings.tolerance(),
            broadcasts: self.problem.broadcasts,
        }
    }

    /// Time that counts as the submission's: building its extensions is not.
    fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.session.building)
    }

    fn over(&self) -> bool {
        self.session.gone().is_some()
            || self.session.again
            || self.elapsed() >= Duration::from_secs(self.settings.seconds)
            || self.refused > 0
    }

    /// Is more than a share of the time gone?
    fn beyond(&self, share: f64) -> bool {
        self.elapsed().as_secs_f64() > self.settings.seconds as f64 * share
    }

    /// Are the desk extents the official ones?
    fn desk_is_official(&self) -> bool {
        self.extents.desk.is_empty()
    }

    fn everything(&mut self) -> Result<Option<Early>, SubmitError> {
        if let Some(early) = self.load() {
            return Ok(Some(early));
        }
        if !self.settings.only.is_empty() {
            for question in &self.settings.only {
                let mut desk = false;
                for level in 0.. {
                    let Some(extents) = self.problem.extents(self.reference, level)? else { break };
                    if extents.desk == question.recipe.dims {
                        (desk, self.extents) = (question.init.is_empty(), extents);
                        break;
                    }
                }
                let own = question.recipe.dims.is_empty() && question.init.is_empty();
                let place = match (own, desk) {
                    (true, _) => Place::Official,
                    (_, true) => Place::Desk,
                    _ => Place::Elsewhere,
                };
                if self.question(question, place)?.is_none() {
                    return Err(SubmitError::Input(format!("the problem has no input `{question}`")));
                }
                self.sanitize(question, own || desk)?;
            }
            self.tricks(&self.settings.only)?;
            return Ok(None);
        }
        if !self.first_trial()? {
            return Ok(Some(Early {
                verdict: Verdict::Exhausted,
                reason: "the problem's inputs do not fit the memory that a check may use".into(),
                log: None,
            }));
        }
        let place = if self.desk_is_official() { Place::Official } else { Place::DeskTrial };
        let trials = self.problem.trials(&self.extents.desk);
        for question in trials.iter().skip(1) {
            if self.over() {
                return Ok(None);
            }
            if self.failed(&[place]) >= ENOUGH || self.beyond(TRIAL_SHARE) {
                break;
            }
            self.question(question, place)?;
        }
        let extents = Arc::clone(&self.extents);
        let passed = self.asked.iter().find(|a| a.place == place).is_some_and(|a| a.look.passes());
        let started = Instant::now();
        if passed {
            let desk = if self.desk_is_official() { Place::Official } else { Place::Desk };
            for question in self.problem.others(&extents.desk) {
                self.one(&question, desk)?;
            }
            self.desk_seconds = self.desk_seconds.min(started.elapsed().as_secs_f64() / 2.0);
            for question in self.problem.suite(&self.settings.shipped, &extents.desk) {
                if self.failed(&[desk]) < ENOUGH && !self.beyond(SUITE_SHARE) {
                    self.one(&question, desk)?;
                }
            }
            self.sanitize(&trials[0], true)?;
            let ragged = self.problem.ragged_questions(&extents);
            for question in &ragged {
                if !self.beyond(OTHER_SHARE) {
                    self.one(question, Place::Elsewhere)?;
                }
            }
            if let Some(question) = ragged.first() {
                self.sanitize(question, false)?;
            }
            if let Ok(made) = self.problem.made(self.reference, &trials[0].setting()) {
                let questions =
                    self.problem.init_questions(self.reference, &made, self.takes, &extents.desk)?;
                for question in questions {
                    if !self.beyond(OTHER_SHARE) {
                        self.one(&question, Place::Elsewhere)?;
                    }
                }
            }
        } else {
            if !self.desk_is_official() && self.asked.iter().any(|a| a.counts && a.look.mismatches()) {
                // Statistics over a smaller batch may be what fails. Other inputs that fail here are asked at the
                // official extents.
                for text in SHIFTED {
                    if let Ok(recipe) = text.parse::<Recipe>() {
                        let question = Question::of(recipe.with_dims(extents.desk.clone()));
                        self.one(&question, Place::Desk)?;
                    }
                }
            }
            self.sanitize(&trials[0], true)?;
        }
        self.tricks(&trials)?;
        self.official()?;
        self.rounding = !self.asked.iter().any(|a| a.counts) && self.noise();
        Ok(None)
    }

    fn failed(&self, places: &[Place]) -> usize {
        self.asked.iter().filter(|a| a.counts && places.contains(&a.place)).count()
    }
}

fn look_at(run: &mut Run<'_, '_>, case: &Case, ask: &Ask) -> Look {
    let look = look(&mut run.session, case, ask);
    run.instructions = run.instructions.saturating_add(look.seen.instructions);
    look
}

fn finite(all: &[assay_tensor::Tensor]) -> bool {
    all.iter().all(|t| !t.dtype.is_float() || (0..t.len()).all(|i| t.get_f64(i).is_finite()))
}

fn first_line(text: &str) -> String {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

fn replay(submission: &Submission<'_>, recipe: &str) -> String {
    format!("{} --input '{recipe}'", submission.command)
}
