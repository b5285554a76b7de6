//! Ways to pass without doing the work: what is asked for them beside the questions, and what the answers show.

use std::sync::Arc;

use super::*;

impl Run<'_, '_> {
    /// Ways to pass without doing the work.
    pub(super) fn tricks(&mut self, trials: &[Question]) -> Result<(), SubmitError> {
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
    pub(super) fn cached_answers(&mut self) {
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
}
