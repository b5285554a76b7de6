//! What all that was seen comes to.

use super::*;

/// Everything that was seen.
pub(super) struct Parts {
    pub(super) extents: Arc<Extents>,
    pub(super) rounding: bool,
    /// Why nothing was asked at the official extents.
    pub(super) unreached: Option<String>,
    pub(super) asked: Vec<Asked>,
    pub(super) findings: Vec<SeenFinding>,
    pub(super) tricks: BTreeSet<Trick>,
    pub(super) shapes: u64,
    pub(super) undecided_shape: Option<String>,
    pub(super) instructions: u64,
    pub(super) official_trials: usize,
}

impl Parts {
    pub(super) fn verdict(
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
            let all = trials.iter().all(|a| a.look.threshold <= t);
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
                sampled: self
                    .asked
                    .iter()
                    .filter(|a| is_own(a.place))
                    .find_map(|a| a.sampled)
                    .map(|c| SampledElements { elements: c.elements, of: c.of }),
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
        let at = match (extents, &self.unreached) {
            (Reached::Official | Reached::Sampled, _) => "at the official extents".to_owned(),
            (Reached::Desk, None) => "at desk extents, which stand for the official ones".into(),
            (Reached::Desk, Some(why)) => {
                format!("at desk extents, which stand for the official ones ({why})")
            }
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
            && own.last().is_none_or(|a| a.look.output.is_none() && a.sampled.is_none())
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
        if let Some(c) = own.iter().find_map(|a| a.sampled) {
            reason.push_str(&format!(
                "; of the official extents a sample of blocks ran: {} of {} elements compared",
                c.elements, c.of
            ));
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
        Gone::Closed | Gone::Broken(_) | Gone::Hoards(_) | Gone::Interrupted => Verdict::Crashed,
    }
}

fn process(gone: &Gone, ending: &Ending) -> String {
    let how = match gone {
        Gone::TimedOut => "it did not answer within its time limit".to_owned(),
        Gone::Broken(what) => format!("its process broke the protocol: {what}"),
        Gone::Hoards(what) => format!("its process was ended: {what}"),
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
