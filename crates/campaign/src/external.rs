//! External checkers: a program that judges tensors in a folder, as a protocol.
//!
//! For each output that a protocol with a `checker` asks about, a folder of its own is made, with `inputs.safetensors`
//! (inputs and parameters), `expected.safetensors` (the float32 reference's outputs), `actual.safetensors` (what the
//! kernel gave) and `meta.json`, and the command is run by `/bin/sh -c` with the folder in the place of `{dir}`. Exit
//! code 0 accepts and 1 rejects; another code, a signal, too much output or too much time is the checker's own failure,
//! which is neither a kill nor a pass. As many run at once as the audit has jobs. Every verdict goes into the store, so
//! that no run is repeated when the audit is resumed.
//!
//! A kernel without output (a fault) is rejected without asking, as any harness would; where the result may depend on
//! the schedule, the verdict is the majority over the same seeds as a cell's. Mutants are asked about up to the first
//! rejection on a valid input; correct implementations on every input.
//!
//! What it misses: where the audit itself is killed, a checker at work goes on to its own end.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_measure::{CHECKER_FOLDER, CHECKER_SECONDS, CheckVerdict, CheckerRuns, Protocol};
use assay_ops::Variant;
use assay_plain::PlainRunner;
use assay_problems::{Problem, Recipe};
use assay_tensor::safetensors_io::to_bytes;
use rayon::prelude::*;
use serde_json::json;

use crate::CampaignError;
use crate::bench::{Bench, Way};
use crate::execute::End;
use crate::filter::Candidate;
use crate::inputs::{Input, Tensors};
use crate::judged::Judged;
use crate::plain::PLAIN;
use crate::stage::unrefereeable;
use crate::store::CheckKey;

/// What a checker may write to stderr before it counts as failed.
const MOST_OUTPUT_BYTES: u64 = 16 << 20;
/// What of it is kept: the last line, cut to this.
const NOTE_BYTES: usize = 300;
/// The shell's answers to a command that it cannot start.
const NOT_STARTED: [i32; 2] = [126, 127];

type Known = HashMap<CheckKey, (CheckVerdict, String)>;
type Fresh = Vec<(CheckKey, (CheckVerdict, String))>;

/// A checker on one problem.
struct Asking<'a> {
    bench: &'a Bench<'a>,
    protocol: &'a Protocol,
    command: &'a str,
    patience: Duration,
    known: &'a Known,
}

/// How a run of a checker ended.
struct Ended {
    verdict: CheckVerdict,
    /// Exit code, where there is one.
    code: Option<i32>,
    /// What it said, where it failed.
    note: String,
}

impl Bench<'_> {
    /// What the external checkers among the protocols say of witnessed mutants and of correct implementations.
    pub(crate) fn run_checkers(
        &self,
        plain: &PlainRunner<'_>,
        distinct: &[&Candidate],
        judged: &[Judged],
        inputs: &[Input],
    ) -> Result<BTreeMap<String, CheckerRuns>, CampaignError> {
        let mut out = BTreeMap::new();
        // Nothing is scored where float32 fails its own float64 evaluation.
        if unrefereeable(inputs).is_some() || self.context.protocols.iter().all(|p| p.checker.is_none()) {
            return Ok(out);
        }
        let known = self.context.store.checks(&self.key)?;
        for protocol in self.context.protocols {
            let Some(command) = &protocol.checker else { continue };
            let seconds = protocol.checker_seconds.unwrap_or(CHECKER_SECONDS);
            let asking = Asking {
                bench: self,
                protocol,
                command,
                patience: Duration::from_secs(u64::from(seconds)),
                known: &known,
            };
            out.insert(protocol.name.clone(), asking.run(plain, distinct, judged, inputs)?);
        }
        Ok(out)
    }
}

impl Asking<'_> {
    fn run(
        &self,
        plain: &PlainRunner<'_>,
        distinct: &[&Candidate],
        judged: &[Judged],
        inputs: &[Input],
    ) -> Result<CheckerRuns, CampaignError> {
        let asked = self.inputs(inputs)?;
        let mut runs =
            CheckerRuns { recipes: asked.iter().map(|i| i.text.clone()).collect(), ..CheckerRuns::default() };
        let mut failures: Vec<String> = Vec::new();
        let mut controls: Vec<(String, Option<&Variant>)> =
            Variant::held_out().iter().map(|v| (format!("held-out:{}", v.name()), Some(v))).collect();
        controls.push((PLAIN.to_owned(), None));
        let progress = self.bench.context.progress;
        let about = format!("{}: {}", self.bench.key, self.protocol.name);
        let pairs: Vec<(usize, &Input)> =
            (0..controls.len()).flat_map(|c| asked.iter().map(move |&input| (c, input))).collect();
        progress.stage(&about, pairs.len() as u64);
        let one = |&(c, input): &(usize, &Input), first: bool| {
            let (name, variant) = &controls[c];
            let answer = self.control(plain, name, *variant, input, first);
            progress.step(1);
            answer
        };
        // One alone first: a command that cannot be started is a slip of the pen, and no measurement.
        let (first, rest) = pairs.split_at(pairs.len().min(1));
        let mut answers = first.iter().map(|p| one(p, true)).collect::<Result<Vec<_>, CampaignError>>()?;
        answers.extend(rest.par_iter().map(|p| one(p, false)).collect::<Result<Vec<_>, CampaignError>>()?);
        for (&(c, input), (verdict, note)) in pairs.iter().zip(answers) {
            if verdict.is_own_failure() {
                failures.push(format!("`{}` on `{}`: {note}", controls[c].0, input.text));
            }
            runs.controls.entry(controls[c].0.clone()).or_default().push(verdict);
        }

        let witnessed: Vec<(&Candidate, &Judged)> = distinct
            .iter()
            .copied()
            .zip(judged)
            .filter(|(c, j)| j.witness.is_some() && c.version.is_some())
            .collect();
        progress.stage(&about, witnessed.len() as u64);
        let answers: Vec<(Vec<CheckVerdict>, Option<String>)> = witnessed
            .par_iter()
            .map(|(candidate, judged)| {
                let answer = self.mutant(candidate, judged, &asked);
                progress.step(1);
                answer
            })
            .collect::<Result<_, CampaignError>>()?;
        for ((candidate, _), (verdicts, failure)) in witnessed.iter().zip(answers) {
            failures.extend(failure.map(|f| format!("mutant {}: {f}", candidate.mutant.id)));
            runs.mutants.insert(candidate.mutant.id.clone(), verdicts);
        }
        runs.first_failure = failures.into_iter().next();
        Ok(runs)
    }

    /// The inputs that the protocol asks, in its order.
    fn inputs<'i>(&self, inputs: &'i [Input]) -> Result<Vec<&'i Input>, CampaignError> {
        let targeted: Vec<String> = inputs.iter().filter(|i| i.targeted).map(|i| i.text.clone()).collect();
        let mut asked: Vec<&Input> = Vec::new();
        for text in self.protocol.recipes(&self.bench.problem.key(), &targeted, |_| Vec::new()) {
            let canonical = Recipe::parse(&text)
                .map_err(|e| CampaignError::Input(format!("recipe `{text}` of a protocol: {e}")))?
                .to_string();
            let input = inputs.iter().find(|i| i.text == canonical).ok_or_else(|| {
                CampaignError::Internal(format!(
                    "input `{canonical}` of `{}` was not made",
                    self.protocol.name
                ))
            })?;
            if asked.iter().all(|other| other.text != input.text) {
                asked.push(input);
            }
        }
        Ok(asked)
    }

    fn control(
        &self,
        plain: &PlainRunner<'_>,
        name: &str,
        variant: Option<&Variant>,
        input: &Input,
        first: bool,
    ) -> Result<(CheckVerdict, String), CampaignError> {
        let key = self.key(name, input, 0);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        self.bench.context.check_interrupt()?;
        let end = match variant {
            Some(variant) => End::Outputs(input.evaluated(self.bench.problem, variant)?),
            None => {
                let run = self.bench.chain(plain, input);
                // Ctrl-C also reaches the compile workers; a kernel that then failed to compile must not count.
                self.bench.context.check_interrupt()?;
                run.end
            }
        };
        let answer = self.judge(input, &end, first)?;
        self.bench.context.store.put_checks(&self.bench.key, &[(key, answer.clone())])?;
        Ok(answer)
    }

    /// Its verdicts up to the first rejection on a valid input, and the first failure of the checker.
    fn mutant(
        &self,
        candidate: &Candidate,
        judged: &Judged,
        asked: &[&Input],
    ) -> Result<(Vec<CheckVerdict>, Option<String>), CampaignError> {
        let tolerance = self.protocol.tolerance();
        let (mut verdicts, mut failure) = (Vec::new(), None);
        let mut fresh = Fresh::new();
        let Some(version) = &candidate.version else { return Ok((verdicts, failure)) };
        for &input in asked {
            let mut seeds = Vec::new();
            for seed in 0..judged.seeds(input) {
                let key = self.key(&candidate.mutant.id, input, seed);
                let (verdict, note) = match self.known.get(&key) {
                    Some(known) => known.clone(),
                    None => {
                        let run = self.bench.execute(version, input, Way::Hardware(seed))?;
                        let answer = self.judge(input, &run.end, false)?;
                        fresh.push((key, answer.clone()));
                        answer
                    }
                };
                if verdict.is_own_failure() && failure.is_none() {
                    failure = Some(format!("`{}`: {note}", input.text));
                }
                seeds.push(verdict);
            }
            let verdict = CheckVerdict::majority(&seeds)
                .ok_or_else(|| CampaignError::Internal("a verdict without a run".into()))?;
            verdicts.push(verdict);
            if verdict.is_rejection() && input.variance <= tolerance.atol.min(tolerance.rtol) {
                break;
            }
        }
        self.bench.context.store.put_checks(&self.bench.key, &fresh)?;
        Ok((verdicts, failure))
    }

    fn key(&self, subject: &str, input: &Input, seed: u64) -> CheckKey {
        CheckKey {
            checker: self.protocol.name.clone(),
            subject: subject.to_owned(),
            recipe: input.text.clone(),
            seed,
        }
    }

    /// The verdict on how a run ended. Where it is the `first` of a problem, a command that the shell cannot start is
    /// bad input.
    fn judge(&self, input: &Input, end: &End, first: bool) -> Result<(CheckVerdict, String), CampaignError> {
        let outputs = match end {
            End::Outputs(outputs) => outputs,
            End::Fault(what) => return Ok((CheckVerdict::Fault, what.clone())),
            End::Exhausted(what) => return Ok((CheckVerdict::Exhausted, what.clone())),
            End::Unsupported(what) => return Ok((CheckVerdict::Unsupported, what.clone())),
        };
        let place = tempfile::Builder::new()
            .prefix("assay-check-")
            .tempdir()
            .map_err(|e| CampaignError::write(std::env::temp_dir(), e))?;
        let folder = place.path().join("case");
        fill(&folder, self.bench.problem, self.protocol, input, outputs)?;
        let interrupted = || self.bench.context.interrupted();
        let ended = ask(self.command, &folder, &place.path().join("stderr"), self.patience, &interrupted)?;
        self.bench.context.check_interrupt()?;
        if first && ended.code.is_some_and(|code| NOT_STARTED.contains(&code)) {
            return Err(CampaignError::Input(format!(
                "the checker `{}` cannot be started: {}; give a command that runs in this folder",
                self.command, ended.note
            )));
        }
        Ok((ended.verdict, ended.note))
    }
}

/// Writes the folder that a checker judges.
fn fill(
    folder: &Path,
    problem: &Problem,
    protocol: &Protocol,
    input: &Input,
    actual: &Tensors,
) -> Result<(), CampaignError> {
    fs::create_dir(folder).map_err(|e| CampaignError::write(folder, e))?;
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|e| CampaignError::write(&path, e))
    };
    for (name, tensors) in [
        ("inputs.safetensors", &input.tensors),
        ("expected.safetensors", &input.official),
        ("actual.safetensors", actual),
    ] {
        let bytes =
            to_bytes(&folder.join(name), tensors).map_err(|e| CampaignError::Internal(e.to_string()))?;
        put(name, &bytes)?;
    }
    let meta = json!({
        "problem": problem.key(),
        "level": problem.level,
        "id": problem.id,
        "name": problem.name,
        "recipe": input.text,
        "dims": input.dims,
        "outputs": problem.outputs,
        "nan_ok": problem.nan_ok,
        "atol": protocol.atol,
        "rtol": protocol.rtol,
    });
    let mut text = serde_json::to_vec_pretty(&meta).map_err(|e| CampaignError::Internal(e.to_string()))?;
    text.push(b'\n');
    put("meta.json", &text)
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    // A plain one stays as it is, so that a command may have its own quotes around `{dir}`.
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Runs a checker on a folder; `said` is where its stderr goes.
fn ask(
    command: &str,
    folder: &Path,
    said: &Path,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Ended, CampaignError> {
    let log = File::create(said).map_err(|e| CampaignError::write(said, e))?;
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command.replace(CHECKER_FOLDER, &quoted(folder)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        // A group of its own, so that all that the command starts can be ended.
        .process_group(0)
        .spawn()
        .map_err(|e| CampaignError::Input(format!("cannot start `/bin/sh` for the checker: {e}")))?;
    let group = i32::try_from(child.id()).map_err(|_| CampaignError::Internal("a process id".into()))?;
    let started = Instant::now();
    let mut pause = Duration::from_micros(500);
    let stopped = loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let ended = match status.code() {
                    Some(0) => Ended { verdict: CheckVerdict::Accepts, code: Some(0), note: String::new() },
                    Some(1) => Ended { verdict: CheckVerdict::Rejects, code: Some(1), note: String::new() },
                    Some(code) => {
                        let note = format!("exit code {code}{}", last_words(said));
                        Ended { verdict: CheckVerdict::Failed, code: Some(code), note }
                    }
                    None => {
                        let signal = status.signal().unwrap_or(0);
                        let note = format!("ended by signal {signal}{}", last_words(said));
                        Ended { verdict: CheckVerdict::Failed, code: None, note }
                    }
                };
                return Ok(ended);
            }
            Ok(None) => {}
            Err(e) => return Err(CampaignError::Internal(format!("waiting for the checker: {e}"))),
        }
        if interrupted() {
            break Ended { verdict: CheckVerdict::Failed, code: None, note: "interrupted".into() };
        }
        if started.elapsed() > patience {
            let note = format!("no end within {} s{}", patience.as_secs(), last_words(said));
            break Ended { verdict: CheckVerdict::TimedOut, code: None, note };
        }
        if fs::metadata(said).is_ok_and(|m| m.len() > MOST_OUTPUT_BYTES) {
            let note = format!("more than {MOST_OUTPUT_BYTES} bytes on stderr");
            break Ended { verdict: CheckVerdict::Failed, code: None, note };
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    // SAFETY: plain numbers; the group was made above and its leader is not yet waited for.
    unsafe {
        libc::kill(-group, libc::SIGKILL);
    }
    // It is dead; what waiting says of it is of no use.
    let _ = child.wait();
    Ok(stopped)
}

/// The last line that a checker wrote to stderr, after a colon; nothing where it wrote none.
fn last_words(said: &Path) -> String {
    let bytes = fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    let line = &line[..line.floor_char_boundary(NOTE_BYTES)];
    if line.is_empty() { String::new() } else { format!(": {line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str, patience: Duration) -> Ended {
        let dir = tempfile::tempdir().unwrap();
        ask(command, dir.path(), &dir.path().join("stderr"), patience, &|| false).unwrap()
    }

    #[test]
    fn only_zero_accepts_and_only_one_rejects() {
        let long = Duration::from_secs(30);
        for (command, verdict, note) in [
            ("exit 0", CheckVerdict::Accepts, ""),
            ("exit 1", CheckVerdict::Rejects, ""),
            ("echo first >&2; echo why >&2; exit 3", CheckVerdict::Failed, "exit code 3: why"),
            ("kill -9 $$", CheckVerdict::Failed, "ended by signal 9"),
            ("test -d {dir}", CheckVerdict::Accepts, ""),
            ("test -f '{dir}'", CheckVerdict::Rejects, ""),
        ] {
            let ended = asked(command, long);
            assert_eq!((ended.verdict, ended.note.as_str()), (verdict, note), "{command}");
        }
    }

    #[test]
    fn a_checker_out_of_time_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let late = dir.path().join("late");
        let command = format!("(sleep 1; touch {}) & sleep 30", late.display());
        let started = Instant::now();
        let ended =
            ask(&command, dir.path(), &dir.path().join("e"), Duration::from_millis(200), &|| false).unwrap();
        assert_eq!(ended.verdict, CheckVerdict::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1200));
        assert!(!late.exists(), "what it started lives on");
    }

    #[test]
    fn a_checker_that_floods_stderr_has_failed() {
        let ended = asked(
            "while :; do echo 0123456789012345678901234567890123456789 >&2; done",
            Duration::from_secs(60),
        );
        assert_eq!(ended.verdict, CheckVerdict::Failed);
        assert!(ended.note.contains("stderr"), "{}", ended.note);
    }

    #[test]
    fn paths_are_words_of_the_shell() {
        assert_eq!(quoted(Path::new("/tmp/a-b_1.x")), "/tmp/a-b_1.x");
        assert_eq!(quoted(Path::new("/tmp/it's here")), r"'/tmp/it'\''s here'");
    }
}
