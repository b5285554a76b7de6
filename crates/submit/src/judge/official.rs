//! The extents that a submission is asked at: desk extents that suit it, and the official ones as far as time allows.

use std::sync::Arc;
use std::time::Instant;

use super::*;

impl Run<'_, '_> {
    /// Asks the first trial at desk extents, and at smaller ones as long as a pass is dear. False where its inputs do not
    /// fit.
    pub(super) fn first_trial(&mut self) -> Result<bool, SubmitError> {
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
    pub(super) fn expected_seconds(&self, official: &Cost) -> f64 {
        let Some(&(_, own)) = self.measured.last() else { return f64::INFINITY };
        let growth = self.growth(official);
        let grown = self.desk_seconds * growth;
        let parts = own as f64 * growth / INSTRUCTIONS_A_SECOND
            + official.work() as f64 / WORK_A_SECOND
            + official.bytes() as f64 / BYTES_A_SECOND
            + self.desk_seconds;
        grown.min(2.0 * parts).max(0.001)
    }

    /// How many times the instructions of a desk pass one at the official extents takes: see [`Self::expected_seconds`].
    pub(super) fn growth(&self, official: &Cost) -> f64 {
        let Some(&(desk, own)) = self.measured.last() else { return f64::INFINITY };
        let ratio = official.work() as f64 / desk.max(1) as f64;
        let power = match self.measured.first() {
            Some(&(work, instructions)) if work > desk && own > 0 => {
                ((instructions as f64 / own as f64).ln() / (work as f64 / desk.max(1) as f64).ln()).max(1.0)
            }
            _ => 1.0,
        };
        ratio.powf(power)
    }

    /// Is the reference's answer rounding and nothing else: a mean of what was normalised to mean 0?
    pub(super) fn noise(&mut self) -> bool {
        let Some(first) = self.asked.first().map(|a| Arc::clone(&a.case)) else { return false };
        let t = self.settings.tolerance();
        let Some(truth) = self.problem.truth(self.reference, &first) else { return false };
        finite(truth) && distance_in_proportion(&first.official.tensors, truth) > t
    }

    /// The official extents, as far as time allows; longer where something failed that is to be confirmed.
    pub(super) fn official(&mut self) -> Result<(), SubmitError> {
        let before = self.asked.iter().filter(|a| a.place == Place::Official && !a.look.undecided()).count();
        self.official_trials = before;
        if self.desk_is_official() {
            return Ok(());
        }
        let Some(official) = self.problem.official_cost else {
            self.unreached = Some("shapes alone do not tell what it takes there".into());
            return Ok(());
        };
        if self.over() {
            return Ok(());
        }
        if !self.problem.official_fits() {
            self.unreached = Some(format!("its tensors take {:.1} GB there", official.bytes() as f64 / 1e9));
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
        let decided = |a: &Asked| a.place == Place::Official && !a.look.undecided();
        if !self.asked.iter().any(decided) {
            self.sampled(&official, &failing)?;
            if self.asked.iter().any(decided) {
                // What ran out as a whole is answered now.
                self.asked.retain(|a| a.place != Place::Official || decided(a));
            }
        }
        Ok(())
    }
}
