//! One question: the model made for it, the pass, whether the answer counts, and what the detectors saw.

use std::sync::Arc;

use super::*;

impl Run<'_, '_> {
    /// A problem that refuses one of our own variations of it is no question; one that fails is an error.
    pub(super) fn case(&mut self, question: &Question) -> Result<Option<Arc<Case>>, SubmitError> {
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
    pub(super) fn make(&mut self, setting: &Setting) -> Result<Result<(), Look>, SubmitError> {
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

    pub(super) fn note_patched(&mut self, answer: &Json) {
        if answer.get("patched").and_then(Json::as_array).is_some_and(|p| !p.is_empty()) {
            self.tricks.insert(Trick::Patched);
        }
    }

    /// Asks a question; its index in `asked`, none where it is no question here.
    pub(super) fn question(
        &mut self,
        question: &Question,
        place: Place,
    ) -> Result<Option<usize>, SubmitError> {
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
        self.asked.push(Asked { case, place, look, counts, invalid, sampled: None });
        Ok(Some(self.asked.len() - 1))
    }

    /// Does an answer count against the submission, and if not, is that because the input is not valid?
    pub(super) fn counts(&mut self, case: &Case, look: &mut Look) -> (bool, bool) {
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
    pub(super) fn wrong_in_proportion(&mut self, case: &Case, look: &mut Look) -> bool {
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

    pub(super) fn note_findings(&mut self, findings: &[Finding], case: &Case, own: bool) {
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

    /// A question, where there is time for one.
    pub(super) fn one(&mut self, question: &Question, place: Place) -> Result<(), SubmitError> {
        if !self.over() {
            self.question(question, place)?;
        }
        Ok(())
    }

    pub(super) fn load(&mut self) -> Option<Early> {
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
    pub(super) fn sanitize(&mut self, question: &Question, own: bool) -> Result<(), SubmitError> {
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
}
