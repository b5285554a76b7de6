//! One file on one input: as a harness would run it, and with every detector.

use assay_judge::{CompareOptions, EvaluationEnd, allclose, first_mismatch};
use assay_measure::Tolerance;
use assay_simt::{Engine, Fill, Finding, FindingKind, Memory, Sanitize, Schedule};

use super::checker::{Asked, Checker};
use super::{Verdict, WrongElement};
use crate::execute::{End, Mode, Run};
use crate::filter::Version;
use crate::inputs::{self, Tensors};

/// Seeds whose majority decides where a detector saw something.
const SEEDS: u64 = 4;

/// Findings that end a block in strict memory, so that what follows was not looked at.
const CUT_SHORT: [FindingKind; 3] =
    [FindingKind::OobRead, FindingKind::OobWrite, FindingKind::MisalignedAccess];

/// What one run came to.
#[derive(Clone)]
pub(super) struct Look {
    /// How it ended, judged at the tolerance that rejects, or the last one where none does.
    pub(super) end: EvaluationEnd,
    /// Against the float32 reference.
    pub(super) threshold: f64,
    tolerance: Tolerance,
    /// Does the float32 reference reject it, and does float64 as well?
    rejected: bool,
    wrong: bool,
    pub(super) first_wrong: Option<WrongElement>,
    pub(super) message: Option<String>,
    pub(super) instructions: u64,
}

impl Look {
    pub(super) fn undecided(&self) -> Option<(Verdict, String)> {
        let verdict = match self.end {
            EvaluationEnd::Exhausted => Verdict::Exhausted,
            EvaluationEnd::Unsupported => Verdict::Unsupported,
            EvaluationEnd::Pass
            | EvaluationEnd::Mismatch
            | EvaluationEnd::NonFinite
            | EvaluationEnd::Fault => return None,
        };
        Some((verdict, self.message.clone().unwrap_or_default()))
    }

    pub(super) fn rejected(&self) -> bool {
        self.rejected
    }

    /// Wrong against both references?
    pub(super) fn wrong(&self) -> bool {
        self.rejected && self.wrong
    }

    pub(super) fn has_output(&self) -> bool {
        matches!(self.end, EvaluationEnd::Pass | EvaluationEnd::Mismatch | EvaluationEnd::NonFinite)
    }

    pub(super) fn judged_at(&self) -> Tolerance {
        self.tolerance
    }

    pub(super) fn describe(&self) -> String {
        match &self.message {
            Some(m) => format!("{}: {m}", self.end.name()),
            None => format!("threshold {:.3e}", self.threshold),
        }
    }
}

/// What the detectors saw at one shape.
pub(super) struct Sanitized {
    pub(super) findings: Vec<Finding>,
    /// Why they could not look to the end.
    pub(super) undecided: Option<(Verdict, String)>,
    pub(super) instructions: u64,
}

impl Sanitized {
    pub(super) fn unwritten(&self) -> bool {
        self.findings.iter().any(|f| f.kind == FindingKind::UnwrittenOutput)
    }
}

impl Checker<'_> {
    /// Runs a version on an input as a harness would.
    pub(super) fn look(&self, version: &Version, asked: &Asked, seed: u64, instructions: u64) -> Look {
        let mode = Mode {
            memory: Memory::Arena,
            fill: Fill::Noise,
            sanitize: Sanitize::OFF,
            schedule: Schedule::Hardware,
            seed,
            instructions,
            engine: Engine::Auto,
        };
        self.compare(asked, &self.harness.run(version, &asked.input, &mode, None))
    }

    /// Does a version pass where the memory of its outputs still holds the right answer?
    pub(super) fn passes_on_stale_memory(&self, version: &Version, asked: &Asked, instructions: u64) -> bool {
        let mode = Mode {
            memory: Memory::Arena,
            fill: Fill::Previous,
            sanitize: Sanitize::OFF,
            schedule: Schedule::Hardware,
            seed: self.config.seed,
            instructions,
            engine: Engine::Auto,
        };
        let run = self.harness.run(version, &asked.input, &mode, Some(&asked.input.official));
        let look = self.compare(asked, &run);
        look.undecided().is_none() && !look.rejected
    }

    /// The majority of four seeds, the one of `first` among them; where it rejects, a run that shows why.
    pub(super) fn majority(&self, version: &Version, asked: &Asked, first: Look, instructions: u64) -> Look {
        let mut looks = vec![first];
        for k in 1..SEEDS {
            looks.push(self.look(version, asked, self.config.seed.wrapping_add(k), instructions));
        }
        let wrong = looks.iter().filter(|l| l.wrong()).count();
        let want = 2 * wrong > looks.len();
        match looks.iter().position(|l| l.wrong() == want && l.undecided().is_none()) {
            Some(k) => looks.swap_remove(k),
            None => looks.swap_remove(0),
        }
    }

    /// Runs a version at an input's shape with every detector, in strict memory; where an access outside ended a block,
    /// again in the arena, so that what follows it is looked at too.
    pub(super) fn sanitize(&self, version: &Version, asked: &Asked, instructions: u64) -> Sanitized {
        let mut mode = Mode {
            memory: Memory::Strict,
            fill: Fill::Noise,
            sanitize: Sanitize::ALL,
            schedule: Schedule::Hardware,
            seed: self.config.seed,
            instructions,
            engine: Engine::Auto,
        };
        let mut run = self.harness.run(version, &asked.input, &mode, None);
        if run.findings.iter().any(|f| CUT_SHORT.contains(&f.kind)) {
            mode.memory = Memory::Arena;
            let more = self.harness.run(version, &asked.input, &mode, None);
            run.instructions = run.instructions.saturating_add(more.instructions);
            for f in more.findings {
                // Bytes outside a buffer are nobody's; that they hold nothing is the same fault again.
                let again = |g: &Finding| {
                    g.kind == f.kind
                        || (g.kind == FindingKind::OobRead && f.kind == FindingKind::UninitReadGlobal)
                };
                let known = |g: &Finding| again(g) && g.line == f.line && g.buffer == f.buffer;
                if !f.kind.is_fault() && !run.findings.iter().any(known) {
                    run.findings.push(f);
                }
            }
        }
        let undecided = match run.end {
            End::Exhausted(why) => Some((Verdict::Exhausted, why)),
            End::Unsupported(why) => Some((Verdict::Unsupported, why)),
            End::Outputs(_) | End::Fault(_) => None,
        };
        Sanitized { findings: run.findings, undecided, instructions: run.instructions }
    }

    fn compare(&self, asked: &Asked, run: &Run) -> Look {
        let mut look = Look {
            end: EvaluationEnd::Fault,
            threshold: f64::INFINITY,
            tolerance: self.official.tolerance(),
            rejected: true,
            wrong: true,
            first_wrong: None,
            message: None,
            instructions: run.instructions,
        };
        let outputs = match &run.end {
            End::Fault(what) => {
                look.message = Some(what.clone());
                return look;
            }
            End::Exhausted(what) | End::Unsupported(what) => {
                look.end = if matches!(run.end, End::Exhausted(_)) {
                    EvaluationEnd::Exhausted
                } else {
                    EvaluationEnd::Unsupported
                };
                (look.rejected, look.wrong, look.message) = (false, false, Some(what.clone()));
                return look;
            }
            End::Outputs(outputs) => outputs,
        };
        let problem = self.config.problem;
        let input = &asked.input;
        let official = match inputs::worst(problem, outputs, &input.official, false) {
            Ok(c) => c,
            Err(what) => {
                look.message = Some(what);
                return look;
            }
        };
        look.threshold = official.threshold;
        look.rejected = false;
        look.wrong = false;
        for tolerance in self.tolerances(asked) {
            let Tolerance { atol, rtol } = tolerance;
            look.tolerance = tolerance;
            look.end = EvaluationEnd::of(&official, atol.min(rtol));
            if self.accepts(outputs, &input.official, tolerance, false) {
                if look.end == EvaluationEnd::Mismatch {
                    look.end = EvaluationEnd::Pass;
                }
                continue;
            }
            if look.end == EvaluationEnd::Pass {
                look.end = EvaluationEnd::Mismatch;
            }
            look.rejected = true;
            look.wrong = !self.accepts(outputs, &input.truth, tolerance, true);
            look.first_wrong = self.first_wrong(outputs, &input.official, tolerance);
            break;
        }
        look
    }

    fn options(&self, exact_integers: bool) -> CompareOptions {
        CompareOptions { nan_ok: self.config.problem.nan_ok, exact_integers }
    }

    fn accepts(&self, outputs: &Tensors, reference: &Tensors, t: Tolerance, exact: bool) -> bool {
        if t.atol == t.rtol {
            return inputs::worst(self.config.problem, outputs, reference, exact)
                .is_ok_and(|c| c.threshold <= t.atol);
        }
        self.config.problem.outputs.iter().all(|name| match (outputs.get(name), reference.get(name)) {
            (Some(out), Some(want)) => {
                allclose(out, want, t.atol, t.rtol, &self.options(exact)).unwrap_or(false)
            }
            _ => false,
        })
    }

    fn first_wrong(&self, outputs: &Tensors, reference: &Tensors, t: Tolerance) -> Option<WrongElement> {
        for name in &self.config.problem.outputs {
            let (out, want) = (outputs.get(name)?, reference.get(name)?);
            let Ok(Some((index, wrong))) = first_mismatch(out, want, t.atol, t.rtol, &self.options(false))
            else {
                continue;
            };
            return Some(WrongElement {
                output: name.clone(),
                index,
                at: coordinates(&want.shape, index),
                got: out.get_f64(index),
                want: want.get_f64(index),
                wrong_elements: wrong,
                elements: out.len(),
            });
        }
        None
    }
}

/// The index by dim of a row-major index.
fn coordinates(shape: &[u64], index: u64) -> Vec<u64> {
    let mut rest = index;
    let mut out: Vec<u64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let at = rest.checked_rem(*extent).unwrap_or(0);
            rest = rest.checked_div(*extent).unwrap_or(0);
            at
        })
        .collect();
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::coordinates;

    #[test]
    fn coordinates_are_row_major() {
        assert_eq!(coordinates(&[2, 3, 4], 23), [1, 2, 3]);
        assert_eq!(coordinates(&[2, 3, 4], 4), [0, 1, 0]);
        assert!(coordinates(&[], 0).is_empty());
    }
}
