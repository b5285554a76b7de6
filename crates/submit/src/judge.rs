//! A submission against a problem: which questions are asked in which order, and what its answers come to.
//!
//! **Order.** The trials of the official check at desk extents; draws from the same distribution that no trial has; the
//! suite; ragged extents; other init arguments; one pass with every detector at desk and at ragged extents; the passes
//! that show tricks; then the official extents, on as many trials as the time allows, and there again what failed.
//!
//! **What counts.** An answer counts against a submission if it departs from the reference in the precision asked for
//! and from float64, by more than 1e-2, and if the reference itself is far closer to float64 there (the validity gate).
//! Where the official extents were run they alone can make it `wrong`; where they were not, desk extents stand for
//! them, unless the source has an official extent written into it that was cut: then a failure there says nothing of the
//! official ones, and the check is `exhausted`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_campaign::check::{
    Check, FailingInput, GoalScope, OfficialAnswer, Reached, SeenFinding, SuiteAnswer, Trick, Verdict,
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
    };
    let early = run.everything();
    let session = run.session;
    let gone = session.gone().cloned();
    let parts = Parts {
        extents: run.extents,
        rounding: run.rounding,
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
    let ended = gone.as_ref().map(|g| (g, &ending));
    let mut check = parts.verdict(problem, settings, submission, early, ended);
    check.seconds = began.elapsed().as_secs_f64();
    Ok(check.rewarded(settings.scope))
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
}

impl Run<'_, '_> {
    fn device(&self) -> Device {
        Device {
            fill: Fill::Noise,
            sanitize: false,
            seed: self.settings.seed,
            instructions: if self.patient { PATIENT_INSTRUCTIONS } else { DESK_INSTRUCTIONS },
            skip: false,
            stale: Vec::new(),
        }
    }

    fn ask(&self) -> Ask {
        let left = Duration::from_secs(self.settings.seconds).saturating_sub(self.began.elapsed());
        Ask {
            device: self.device(),
            held: false,
            limit: Duration::from_secs(self.settings.pass_seconds).min(left),
            tolerance: self.settings.tolerance(),
        }
    }

    fn over(&self) -> bool {
        self.session.gone().is_some()
            || self.began.elapsed() >= Duration::from_secs(self.settings.seconds)
            || self.refused > 0
    }

    /// Is more than a share of the time gone?
    fn beyond(&self, share: f64) -> bool {
        self.began.elapsed().as_secs_f64() > self.settings.seconds as f64 * share
    }

    /// Are the desk extents the official ones?
    fn desk_is_official(&self) -> bool {
        self.extents.desk.is_empty()
    }

    /// A problem that refuses one of our own variations of it is no question; one that fails is an error.
    fn case(&mut self, question: &Question) -> Result<Option<Arc<Case>>, SubmitError> {
        match self.problem.case(self.reference, question) {
            Ok(case) => Ok(case),
            Err(Refused::Raised(stage, message))
                if question.recipe.dims.is_empty()
                    && question.init.is_empty()
                    && question.is_official_kind() =>
            {
                if stage == "exchange" || stage == "allocate" {
                    return Ok(None);
                }
                Err(SubmitError::Input(format!(
                    "the problem `{}`: {stage}: {message}",
                    self.problem.path.display()
                )))
            }
            Err(Refused::Raised(..)) => Ok(None),
            Err(Refused::Failed(e)) => Err(e),
        }
    }

    /// Makes `ModelNew` for a setting, where it is not made for it already.
    fn make(&mut self, setting: &Setting) -> Result<Result<(), Look>, SubmitError> {
        if self.made_at.as_ref() == Some(setting) {
            return Ok(Ok(()));
        }
        let made: Arc<Made> = match self.problem.made(self.reference, setting) {
            Ok(made) => made,
            Err(Refused::Raised(stage, message)) => {
                return Err(SubmitError::Input(format!(
                    "the problem `{}`: {stage}: {message}",
                    self.problem.path.display()
                )));
            }
            Err(Refused::Failed(e)) => return Err(e),
        };
        let mut seen = Seen::default();
        let request = json!({"type": "make", "seed": 42, "extents": setting.extents_json()});
        let ask = self.ask();
        let reply = self.session.ask(request, Some(("init", &made.init)), &ask.device, ask.limit, &mut seen);
        self.made_at = None;
        match reply {
            Reply::Answer(answer) if answer.get("type").and_then(Json::as_str) == Some("made") => {
                self.made_at = Some(setting.clone());
                self.note_patched(&answer);
                Ok(Ok(()))
            }
            other => Ok(Err(failure(other, seen))),
        }
    }

    fn note_patched(&mut self, answer: &Json) {
        if answer.get("patched").and_then(Json::as_array).is_some_and(|p| !p.is_empty()) {
            self.tricks.insert(Trick::Patched);
        }
    }

    /// Asks a question; its index in `asked`, none where it is no question here.
    fn question(&mut self, question: &Question, place: Place) -> Result<Option<usize>, SubmitError> {
        let Some(case) = self.case(question)? else { return Ok(None) };
        let mut look = match self.make(&question.setting())? {
            Ok(()) => {
                let mut ask = self.ask();
                if place == Place::Official && !self.desk_is_official() {
                    ask.device.instructions = OFFICIAL_INSTRUCTIONS;
                }
                look(&mut self.session, &case, &ask)
            }
            Err(look) => look,
        };
        self.instructions = self.instructions.saturating_add(look.seen.instructions);
        if !look.patched.is_empty() {
            self.tricks.insert(Trick::Patched);
        }
        if look.refused {
            self.refused += 1;
        }
        let own = matches!(place, Place::DeskTrial | Place::Desk | Place::Official);
        self.note_findings(&look.seen.findings.clone(), &case, own);
        let (counts, invalid) = self.counts(&case, &mut look);
        self.asked.push(Asked { case, place, look, counts, invalid });
        Ok(Some(self.asked.len() - 1))
    }

    /// Does an answer count against the submission, and if not, is that because the input is not valid?
    fn counts(&mut self, case: &Case, look: &mut Look) -> (bool, bool) {
        match look.end {
            EvaluationEnd::Pass => (self.wrong_in_proportion(case, look), false),
            EvaluationEnd::Exhausted | EvaluationEnd::Unsupported => (false, false),
            EvaluationEnd::Fault => (true, false),
            EvaluationEnd::Mismatch | EvaluationEnd::NonFinite => {
                let t = self.settings.tolerance();
                let Some(truth) = self.problem.truth(self.reference, case) else { return (true, false) };
                let room = self.settings.room(&case.question);
                let own = distance(&case.official.tensors, truth);
                // Written so that a distance of NaN, which nothing here makes, would not count.
                let valid =
                    own * room <= t && self.problem.unrest(self.reference, case).0 * room.min(OWN_ROOM) <= t;
                if !valid || !finite(truth) {
                    return (false, true);
                }
                match &look.output {
                    Some(out) => {
                        let exact = against(out, truth, t, Seen::default());
                        // Another shape or number of outputs has no distance to measure.
                        let counts = !exact.passes();
                        (counts, !counts)
                    }
                    None => (true, false),
                }
            }
        }
    }

    /// Is an answer that passes within the tolerance wrong because all of it is smaller than that? The reference and its
    /// inputs' last bits then have to be as much closer as always.
    fn wrong_in_proportion(&mut self, case: &Case, look: &mut Look) -> bool {
        let t = self.settings.tolerance();
        let Some(out) = look.output.take() else { return false };
        let room = self.settings.room(&case.question);
        let wrong = self.settings.precision == "fp32"
            && distance_in_proportion(&out, &case.official.tensors) > t
            && self.problem.truth(self.reference, case).is_some_and(|truth| {
                finite(truth)
                    && distance_in_proportion(&case.official.tensors, truth) * room <= t
                    && distance_in_proportion(&out, truth) > t
            })
            && self.problem.unrest(self.reference, case).1 * room.min(OWN_ROOM) <= t;
        look.output = Some(out);
        if wrong {
            look.refuse(&case.official.tensors, t);
        }
        wrong
    }

    fn note_findings(&mut self, findings: &[Finding], case: &Case, own: bool) {
        for f in findings {
            let same = |g: &SeenFinding| {
                let g = &g.finding;
                (g.kind, g.line, &g.buffer, &g.kernel) == (f.kind, f.line, &f.buffer, &f.kernel)
            };
            if let Some(known) = self.findings.iter_mut().find(|g| same(g)) {
                known.own_extents |= own;
                continue;
            }
            let recipe = case.question.to_string();
            self.findings.push(SeenFinding {
                finding: f.clone(),
                replay: replay(self.submission, &recipe),
                recipe: Some(recipe),
                own_extents: own,
            });
        }
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

    /// Asks the first trial at desk extents, and at smaller ones as long as a pass is dear. False where its inputs do not
    /// fit.
    fn first_trial(&mut self) -> Result<bool, SubmitError> {
        for level in 1.. {
            let trial = Question::of(Recipe::official(0).with_dims(self.extents.desk.clone()));
            let place = if self.desk_is_official() { Place::Official } else { Place::DeskTrial };
            // The model is made and kernels are compiled in the first.
            let started = Instant::now();
            let Some(mut at) = self.question(&trial, place)? else { return Ok(false) };
            self.desk_seconds = started.elapsed().as_secs_f64();
            let work = self.extents.cost.map_or(0, |c| c.work());
            let dear = |asked: &Asked| asked.look.seen.instructions >= DEAR_INSTRUCTIONS;
            self.measured.push((work, self.asked[at].look.seen.instructions));
            if !dear(&self.asked[at]) || self.over() {
                return Ok(true);
            }
            let Some(smaller) = self.problem.extents(self.reference, level)? else {
                if self.asked[at].look.undecided() {
                    self.patient = true;
                    self.asked.pop();
                    let Some(again) = self.question(&trial, place)? else { return Ok(false) };
                    at = again;
                    self.measured.pop();
                    self.measured.push((work, self.asked[at].look.seen.instructions));
                }
                return Ok(true);
            };
            if self.asked[at].look.undecided() {
                // It says nothing yet: what ran out here is asked elsewhere.
                self.asked.pop();
            }
            self.extents = smaller;
        }
        Ok(true)
    }

    /// Seconds of a forward pass at the official extents, from those at desk extents: in proportion to the reference's
    /// work, or to the power of it that the submission's instructions have grown by. Where a desk pass is mostly what any
    /// pass costs, that is far too long, and instructions, work and bytes tell more.
    fn expected_seconds(&self, official: &Cost) -> f64 {
        let Some(&(desk, own)) = self.measured.last() else { return f64::INFINITY };
        let ratio = official.work() as f64 / desk.max(1) as f64;
        let power = match self.measured.first() {
            Some(&(work, instructions)) if work > desk && own > 0 => {
                ((instructions as f64 / own as f64).ln() / (work as f64 / desk.max(1) as f64).ln()).max(1.0)
            }
            _ => 1.0,
        };
        let grown = self.desk_seconds * ratio.powf(power);
        let parts = own as f64 * ratio.powf(power) / INSTRUCTIONS_A_SECOND
            + official.work() as f64 / WORK_A_SECOND
            + official.bytes() as f64 / BYTES_A_SECOND
            + self.desk_seconds;
        grown.min(2.0 * parts).max(0.001)
    }

    /// A question, where there is time for one.
    fn one(&mut self, question: &Question, place: Place) -> Result<(), SubmitError> {
        if !self.over() {
            self.question(question, place)?;
        }
        Ok(())
    }

    fn failed(&self, places: &[Place]) -> usize {
        self.asked.iter().filter(|a| a.counts && places.contains(&a.place)).count()
    }

    fn load(&mut self) -> Option<Early> {
        let mut seen = Seen::default();
        let request = json!({
            "type": "load", "source": self.submission.source, "name": self.submission.name,
            "problem": self.problem.source,
        });
        let ask = self.ask();
        let reply = self.session.ask(request, None, &ask.device, ask.limit, &mut seen);
        if let Reply::Answer(answer) = &reply
            && answer.get("type").and_then(Json::as_str) == Some("loaded")
        {
            let takes = answer.get("takes").cloned().unwrap_or(Json::Null);
            self.takes = takes.get(1).and_then(Json::as_u64);
            let least = takes.get(0).and_then(Json::as_u64).unwrap_or(0);
            if least > 0 && self.problem.without_init {
                return Some(Early {
                    verdict: Verdict::Unsupported,
                    reason: format!(
                        "`ModelNew` takes {least} init arguments, which the catalogue's problem does not know; give the \
                         benchmark's own file with --kernelbench or --problem FILE.py"
                    ),
                    log: None,
                });
            }
            self.note_patched(answer);
            return None;
        }
        let gone = matches!(reply, Reply::Gone(_));
        let look = failure(reply, seen);
        let message = look.message.clone().unwrap_or_default();
        let verdict = match look.end {
            EvaluationEnd::Unsupported => Verdict::Unsupported,
            EvaluationEnd::Exhausted => Verdict::Exhausted,
            _ if gone => Verdict::Crashed,
            _ => Verdict::Rejected,
        };
        let log = (verdict == Verdict::Rejected && message.contains('\n')).then(|| message.clone());
        let reason = match (&look.raised, verdict) {
            (Some(_), _) => format!("the file does not load: {}", first_line(&message)),
            _ => first_line(&message),
        };
        Some(Early { verdict, reason, log })
    }

    /// A pass with every detector.
    fn sanitize(&mut self, question: &Question, own: bool) -> Result<(), SubmitError> {
        if self.over() {
            return Ok(());
        }
        let Some(case) = self.case(question)? else { return Ok(()) };
        if self.make(&question.setting())?.is_err() {
            return Ok(());
        }
        let mut ask = self.ask();
        ask.device.sanitize = true;
        // Where nothing smaller can be asked, a pass may take more, as long as there is time.
        let usual = self.measured.last().map_or(0, |(_, instructions)| *instructions);
        let dear = if self.beyond(OTHER_SHARE) { 0 } else { usual.saturating_mul(2).min(DEAR_DETECTORS) };
        ask.device.instructions = DETECTOR_INSTRUCTIONS.max(dear);
        let look = look(&mut self.session, &case, &ask);
        self.instructions = self.instructions.saturating_add(look.seen.instructions);
        self.note_findings(&look.seen.findings.clone(), &case, own);
        if look.undecided() {
            self.undecided_shape = look.message;
        } else {
            self.shapes += 1;
        }
        Ok(())
    }

    /// Ways to pass without doing the work.
    fn tricks(&mut self, trials: &[Question]) -> Result<(), SubmitError> {
        let Some(first) = self.asked.first() else { return Ok(()) };
        let (case, look0) = (Arc::clone(&first.case), first.look.clone());
        // Where there is an output, it is known what it was made by.
        let ran: Vec<&Asked> = self.asked.iter().filter(|a| a.look.output.is_some()).collect();
        if !ran.is_empty() && ran.iter().all(|a| a.look.seen.launched() == 0) {
            let library = ran.iter().any(|a| !a.look.seen.library.is_empty());
            self.tricks.insert(if library { Trick::LibraryCall } else { Trick::UncalledKernel });
        }
        for a in &self.asked {
            if a.look.modified.iter().any(|i| !a.case.official.modified.contains(i)) {
                self.tricks.insert(Trick::InputModified);
            }
            if a.look.aliases && !a.case.official.aliases {
                self.tricks.insert(Trick::AliasedOutput);
            }
            if let Some(out) = &a.look.output
                && a.case.question.is_official_kind()
                && out
                    .iter()
                    .zip(&a.case.official.tensors)
                    .any(|(o, r)| constant(o) && o.shape == r.shape && varies(r))
            {
                self.tricks.insert(Trick::SkippedWork);
            }
        }
        self.cached_answers();
        let own = |a: &&Asked| matches!(a.place, Place::DeskTrial | Place::Official);
        let trial = |a: &Asked| a.case.question.recipe.seed < TRIALS;
        let official_pass = self.asked.iter().filter(own).filter(|a| trial(a)).all(|a| a.look.passes());
        let others_fail = self.asked.iter().any(|a| {
            a.place != Place::Elsewhere && a.case.question.is_official_kind() && !trial(a) && a.counts
        });
        if official_pass && others_fail && look0.passes() {
            self.tricks.insert(Trick::SeenInputs);
        }
        if self.over() || trials.len() < 2 {
            return Ok(());
        }
        let setting = trials[0].setting();
        if self.make(&setting)?.is_err() {
            return Ok(());
        }
        if !look0.passes() {
            // Where an earlier answer lies in fresh memory: right now?
            let mut ask = self.ask();
            ask.device.stale = stale(&case.official.tensors);
            ask.device.fill = Fill::Previous;
            let now = look_at(self, &case, &ask);
            // In proportion too: where all of the right answer is small, a wrong one passes by the tolerance alone.
            if now.passes()
                && now.output.as_ref().is_some_and(|out| {
                    distance_in_proportion(out, &case.official.tensors) <= self.settings.tolerance()
                })
            {
                self.tricks.insert(Trick::StaleMemory);
            }
            return Ok(());
        }
        // The same inputs again: is there still work?
        let ask = self.ask();
        let again = look_at(self, &case, &ask);
        if again.passes() && look0.seen.launched() > 0 && again.seen.launched() == 0 {
            self.tricks.insert(Trick::CachedResult);
        }
        // Other values in the same tensors.
        let mut depends = false;
        if let Some(other) = self.case(&trials[1])? {
            depends = !nearly_identical(&case.official.tensors, &other.official.tensors);
            let mut ask = self.ask();
            ask.held = true;
            let held = look_at(self, &other, &ask);
            if let (Some(out), Some(before)) = (&held.output, &again.output)
                && !held.passes()
                && identical(out, before)
                && distance(&case.official.tensors, &other.official.tensors) > self.settings.tolerance()
            {
                self.tricks.insert(Trick::CachedResult);
            }
        }
        // Without the kernels: is the answer still there? Where the reference's does not depend on its inputs (a class
        // token that never sees the image), that says nothing.
        if depends && look0.seen.launched() > 0 && !self.over() && !self.tricks.contains(&Trick::CachedResult)
        {
            let mut ask = self.ask();
            ask.device.skip = true;
            let without = look_at(self, &case, &ask);
            if let (Some(out), Some(with)) = (&without.output, &look0.output)
                && nearly_identical(out, with)
                && with.iter().any(varies)
            {
                self.tricks.insert(Trick::LibraryCall);
            }
        }
        Ok(())
    }

    /// Wrong answers that are an earlier one's, bit by bit.
    fn cached_answers(&mut self) {
        let wrong: Vec<usize> = (0..self.asked.len())
            .filter(|&i| self.asked[i].counts && self.asked[i].look.mismatches())
            .collect();
        for i in wrong {
            let (now, before) = (&self.asked[i], &self.asked[..i]);
            let Some(out) = &now.look.output else { continue };
            if out.iter().all(constant) {
                continue;
            }
            if before.iter().any(|b| b.look.output.as_ref().is_some_and(|o| identical(o, out))) {
                self.tricks.insert(Trick::CachedResult);
                return;
            }
        }
    }

    /// Is the reference's answer rounding and nothing else: a mean of what was normalised to mean 0?
    fn noise(&mut self) -> bool {
        let Some(first) = self.asked.first().map(|a| Arc::clone(&a.case)) else { return false };
        let t = self.settings.tolerance();
        let Some(truth) = self.problem.truth(self.reference, &first) else { return false };
        finite(truth) && distance_in_proportion(&first.official.tensors, truth) > t
    }

    /// The official extents, as far as time allows; longer where something failed that is to be confirmed.
    fn official(&mut self) -> Result<(), SubmitError> {
        let before = self.asked.iter().filter(|a| a.place == Place::Official && !a.look.undecided()).count();
        self.official_trials = before;
        if self.desk_is_official() {
            return Ok(());
        }
        let Some(official) = self.problem.official_cost else { return Ok(()) };
        if self.over() || !self.problem.official_fits() {
            return Ok(());
        }
        let failing: Vec<Question> = self
            .asked
            .iter()
            .filter(|a| a.counts && matches!(a.place, Place::DeskTrial | Place::Desk))
            .map(|a| a.case.question.at(&Default::default()))
            .collect();
        let each = self.expected_seconds(&official);
        let left = self.settings.seconds as f64 - self.began.elapsed().as_secs_f64();
        let budget = if failing.is_empty() { self.settings.official_seconds } else { left * 0.8 };
        let affordable = (budget.min(left) / each).floor().clamp(0.0, 5.0) as usize;
        let others: Vec<&Question> =
            failing.iter().filter(|q| !q.is_official_kind() || q.recipe.seed >= TRIALS).take(2).collect();
        let trials = self.problem.trials(&Default::default());
        // What failed elsewhere is asked first: it tells more than a trial, and one question may be all that there is
        // time for.
        let mut order: Vec<&Question> = trials.iter().skip(before).collect();
        for (k, other) in others.into_iter().enumerate() {
            order.insert((2 * k).min(order.len()), other);
        }
        for question in order.into_iter().take(affordable) {
            if self.over() {
                break;
            }
            let trial = question.is_official_kind() && question.recipe.seed < TRIALS;
            if self.question(question, Place::Official)?.is_some() && trial {
                self.official_trials += 1;
            }
            if self.asked.last().is_some_and(|a| a.look.undecided() || a.counts) {
                break;
            }
        }
        Ok(())
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

/// Everything that was seen.
struct Parts {
    extents: Arc<Extents>,
    rounding: bool,
    asked: Vec<Asked>,
    findings: Vec<SeenFinding>,
    tricks: BTreeSet<Trick>,
    shapes: u64,
    undecided_shape: Option<String>,
    instructions: u64,
    official_trials: usize,
}

impl Parts {
    fn verdict(
        mut self,
        problem: &Prepared,
        settings: &Settings,
        submission: &Submission<'_>,
        early: Option<Early>,
        gone: Option<(&Gone, &Ending)>,
    ) -> Check {
        if let Some(Early { verdict, reason, log }) = early {
            let reason = match gone {
                Some((gone, ending)) => process(gone, ending),
                None => reason,
            };
            let verdict = gone.map_or(verdict, |(g, e)| process_verdict(g, e));
            let mut check = Check::early(verdict, reason, &settings.suite);
            check.tricks = self.tricks.into_iter().collect();
            check.log = log;
            return check;
        }
        let reached = self.asked.iter().any(|a| a.place == Place::Official && !a.look.undecided());
        // A failure at smaller extents says nothing of the official ones where the source has those written into it.
        let failed_small =
            self.asked.iter().any(|a| a.counts && matches!(a.place, Place::DeskTrial | Place::Desk));
        let hard_coded =
            !reached && failed_small && names_an_extent(submission.source, problem, &self.extents);
        let is_own = |place: Place| match place {
            Place::Official => true,
            Place::DeskTrial | Place::Desk => !reached && !hard_coded,
            Place::Elsewhere => false,
        };
        for f in &mut self.findings {
            // What was seen at desk extents is undefined behaviour at all extents that run the same lines.
            f.own_extents &= !hard_coded;
        }
        self.findings.sort_by_key(|f| !f.own_extents);
        let own: Vec<&Asked> = self.asked.iter().filter(|a| is_own(a.place)).collect();
        let extents = match (reached, self.official_trials >= 5) {
            (true, true) => Reached::Official,
            (true, false) => Reached::Sampled,
            (false, _) => Reached::Desk,
        };
        let failing_inputs: Vec<FailingInput> = self
            .asked
            .iter()
            .filter(|a| a.counts)
            .map(|a| {
                let recipe = a.case.question.to_string();
                FailingInput {
                    end: a.look.end,
                    own_extents: is_own(a.place),
                    threshold: a.look.threshold,
                    atol: a.look.atol,
                    rtol: settings.tolerance(),
                    first_wrong: a.look.first_wrong.clone(),
                    message: a.look.message.clone(),
                    replay: replay(submission, &recipe),
                    recipe,
                }
            })
            .collect();
        let (verdict, reason) = self.decide(&own, &failing_inputs, extents, gone);
        let log = self.asked.iter().find(|a| a.look.refused).and_then(|a| a.look.message.clone());
        let trial = |a: &&Asked| {
            a.case.question.is_official_kind()
                && a.case.question.init.is_empty()
                && a.case.question.recipe.seed < TRIALS
                && a.place == if reached { Place::Official } else { Place::DeskTrial }
        };
        let trials: Vec<&Asked> = self.asked.iter().filter(trial).collect();
        let worst = trials
            .iter()
            .map(|a| a.look.threshold)
            .fold(None, |w: Option<f64>, t| Some(w.map_or(t, |w| if t > w || t.is_nan() { t } else { w })));
        let decided = !trials.is_empty() && trials.iter().all(|a| !a.look.undecided());
        let accepts = |t: f64| {
            let all = trials.iter().all(|a| a.look.output.is_some() && a.look.threshold <= t);
            // One failure is enough; a pass takes all five.
            if !decided {
                None
            } else if all {
                (trials.len() >= 5).then_some(true)
            } else {
                Some(false)
            }
        };
        let there = accepts(settings.tolerance());
        let suite: Vec<&Asked> = self
            .asked
            .iter()
            .filter(|a| !(a.case.question.is_official_kind() && a.place != Place::Elsewhere))
            .collect();
        let count = |f: &dyn Fn(&&&Asked) -> bool| suite.iter().filter(f).count() as u64;
        Check {
            verdict,
            official: OfficialAnswer {
                passes: there.filter(|_| reached),
                extents,
                threshold: worst,
                passes_there: there,
                protocol: PROTOCOL.into(),
                tolerance: settings.tolerance(),
                passes_at_1e_4: accepts(PRESENT_TOLERANCE),
            },
            suite: SuiteAnswer {
                name: settings.suite.clone(),
                inputs: suite.len() as u64,
                failed: count(&|a| a.counts),
                invalid: count(&|a| a.invalid),
            },
            findings: self.findings,
            failing_inputs,
            tricks: self.tricks.into_iter().collect(),
            reward: None,
            reason,
            log,
            sanitized_shapes: self.shapes,
            instructions: self.instructions,
            seconds: 0.0,
        }
    }

    /// Would a constant have been as good an answer on all that was asked at the same extents?
    fn blind(&self) -> bool {
        if self.rounding {
            return true;
        }
        // Parameters are drawn anew at other extents: only what was asked at the same ones can be compared.
        let mut firsts: Vec<&Asked> = Vec::new();
        let (mut spread, mut residual, mut compared) = (0.0f64, 0.0f64, false);
        for a in self.asked.iter().filter(|a| !a.invalid) {
            let Some(out) = &a.look.output else { continue };
            residual = residual.max(distance_in_proportion(out, &a.case.official.tensors));
            let setting = a.case.question.setting();
            match firsts.iter().find(|b| b.case.question.setting() == setting) {
                Some(b) => {
                    compared = true;
                    let (a, b) = (&a.case.official.tensors, &b.case.official.tensors);
                    spread = spread.max(distance_in_proportion(a, b));
                }
                None => firsts.push(a),
            }
        }
        // A deep model's answers may differ by less than the tolerance; a submission that follows them is no constant.
        compared && spread <= assay_judge::PAPER_TOLERANCE && (spread <= 0.0 || residual * FOLLOWS > spread)
    }

    fn decide(
        &self,
        own: &[&Asked],
        failing: &[FailingInput],
        extents: Reached,
        gone: Option<(&Gone, &Ending)>,
    ) -> (Verdict, String) {
        let at = match extents {
            Reached::Official | Reached::Sampled => "at the official extents",
            Reached::Desk => "at desk extents, which stand for the official ones",
        };
        if let Some(a) = self.asked.iter().find(|a| a.look.refused) {
            return (Verdict::Rejected, first_line(a.look.message.as_deref().unwrap_or_default()));
        }
        let wrong = own.iter().filter(|a| a.counts && a.look.mismatches()).count();
        if wrong > 0 {
            let here: Vec<&SeenFinding> = self.findings.iter().filter(|f| f.own_extents).collect();
            let seen = if here.is_empty() {
                String::new()
            } else {
                format!("; the detectors report {}", kinds(&here))
            };
            return (Verdict::Wrong, format!("wrong on {wrong} of {} inputs {at}{seen}", own.len()));
        }
        if let Some((gone, ending)) = gone
            && own.last().is_none_or(|a| a.look.output.is_none())
        {
            return (process_verdict(gone, ending), process(gone, ending));
        }
        let crashed: Vec<&&Asked> = own.iter().filter(|a| a.counts).collect();
        let stopped =
            |k: FindingKind| k.is_fault() && !matches!(k, FindingKind::OobRead | FindingKind::OobWrite);
        if let Some(a) = crashed.first() {
            let what = first_line(a.look.message.as_deref().unwrap_or_default());
            return (
                Verdict::Crashed,
                format!("no output on {} of {} inputs {at}: {what}", crashed.len(), own.len()),
            );
        }
        let here: Vec<&SeenFinding> = self.findings.iter().filter(|f| f.own_extents).collect();
        if let Some(f) = here.iter().find(|f| stopped(f.finding.kind)) {
            return (Verdict::Crashed, f.finding.message.clone());
        }
        if !here.is_empty() {
            return (
                Verdict::UndefinedBehaviour,
                format!("right numbers on {} inputs, but the detectors report {}", own.len(), kinds(&here)),
            );
        }
        if let Some(a) = own.iter().find(|a| a.look.undecided()) {
            let verdict = match a.look.end {
                EvaluationEnd::Exhausted => Verdict::Exhausted,
                _ => Verdict::Unsupported,
            };
            let why = first_line(a.look.message.as_deref().unwrap_or_default());
            return (verdict, format!("on input `{}`: {why}", a.case.question));
        }
        if own.is_empty() {
            if failing.is_empty() {
                return (Verdict::Exhausted, "nothing was asked at the problem's own extents".into());
            }
            return (
                Verdict::Exhausted,
                format!(
                    "wrong or without output on {} of {} inputs at smaller extents; the source has official extents \
                     written into it, and those were not reached",
                    failing.len(),
                    self.asked.len()
                ),
            );
        }
        if let Some(f) = failing.first() {
            let what = if f.end == EvaluationEnd::Fault { "no output" } else { "wrong" };
            let others = self.asked.len() - own.len();
            return (
                Verdict::NotGeneral,
                format!(
                    "right {at}, {what} on {} of {others} inputs at other extents or init arguments",
                    failing.len()
                ),
            );
        }
        if !self.findings.is_empty() {
            let all: Vec<&SeenFinding> = self.findings.iter().collect();
            return (
                Verdict::NotGeneral,
                format!("right numbers, but at other extents the detectors report {}", kinds(&all)),
            );
        }
        if self.blind() {
            return (
                Verdict::Unsupported,
                "the reference's answer does not depend on its inputs by more than rounding, or this one does not follow \
                 it: nothing tells it from a constant"
                    .into(),
            );
        }
        let passed = self.asked.iter().filter(|a| a.look.passes()).count();
        let open = self.asked.iter().filter(|a| a.look.undecided()).count();
        let invalid = self.asked.iter().filter(|a| a.invalid).count();
        let shapes = if self.shapes == 1 { "shape" } else { "shapes" };
        let mut reason = format!("{passed} inputs pass, {at}; no findings at {} {shapes}", self.shapes);
        if invalid > 0 {
            reason.push_str(&format!("; {invalid} on which float32 itself is not close enough do not count"));
        }
        if open > 0 {
            reason.push_str(&format!("; {open} at other extents could not be run"));
        }
        if let Some(why) = &self.undecided_shape {
            reason.push_str(&format!("; the detectors could not look everywhere: {}", first_line(why)));
        }
        (Verdict::Correct, reason)
    }
}

fn kinds(findings: &[&SeenFinding]) -> String {
    let names: BTreeSet<&str> = findings.iter().map(|f| f.finding.kind.name()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// What a process that is gone says of the submission.
fn process_verdict(gone: &Gone, ending: &Ending) -> Verdict {
    match gone {
        Gone::TimedOut => Verdict::Exhausted,
        // Processor time.
        Gone::Closed if ending.status == -24 => Verdict::Exhausted,
        Gone::Closed | Gone::Broken(_) | Gone::Interrupted => Verdict::Crashed,
    }
}

fn process(gone: &Gone, ending: &Ending) -> String {
    let how = match gone {
        Gone::TimedOut => "it did not answer within its time limit".to_owned(),
        Gone::Broken(what) => format!("its process broke the protocol: {what}"),
        Gone::Closed | Gone::Interrupted => match ending.status {
            -24 => "it used up its processor time".into(),
            s if s < 0 => format!("its process was ended by signal {}", -s),
            s => format!("its process ended with status {s}"),
        },
    };
    match ending.words.lines().last().map(str::trim) {
        Some(words) if !words.is_empty() => format!("{how}; its last words: {words}"),
        _ => how,
    }
}

/// Does a source have a number in it that is an official extent which desk extents cut? Small numbers say nothing.
fn names_an_extent(source: &str, problem: &Prepared, extents: &Extents) -> bool {
    let cut: Vec<String> = extents
        .desk
        .keys()
        .filter_map(|name| problem.numbers.get(name))
        .filter(|n| **n >= 48)
        .map(u64::to_string)
        .collect();
    source.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| cut.iter().any(|n| n == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_has_a_verdict() {
        let ending = |status: i64| Ending { status, killed: false, words: "a\nlast line\n".into() };
        assert_eq!(process_verdict(&Gone::Closed, &ending(3)), Verdict::Crashed);
        assert_eq!(process_verdict(&Gone::Closed, &ending(-24)), Verdict::Exhausted);
        assert_eq!(process_verdict(&Gone::TimedOut, &ending(-9)), Verdict::Exhausted);
        assert_eq!(
            process(&Gone::Closed, &ending(-11)),
            "its process was ended by signal 11; its last words: last line"
        );
    }
}
