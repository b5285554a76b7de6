//! From what was seen to what is said.

use assay_judge::EvaluationEnd;
use assay_measure::Tolerance;
use assay_simt::{Finding, FindingKind};

use super::checker::{Asked, Checker};
use super::evaluate::{Look, Sanitized};
use super::{Check, FailingInput, OfficialAnswer, Reached, SeenFinding, SuiteAnswer, Trick, Verdict};

/// The official protocol.
pub(super) const OFFICIAL: &str = "kernelbench-2025";
/// The float32 tolerance of KernelBench's present code (see `protocols/kernelbench.toml`).
const PRESENT_TOLERANCE: f64 = 1e-4;

/// Everything that was seen of one file.
pub(super) struct Evidence<'a> {
    pub(super) checker: &'a Checker<'a>,
    /// A look for each input asked.
    pub(super) looks: &'a [Look],
    /// Whether it counts against the file.
    pub(super) failing: &'a [bool],
    /// The first input of each shape, and what the detectors saw there.
    pub(super) shapes: &'a [&'a Asked],
    pub(super) sanitized: &'a [Sanitized],
    pub(super) tricks: Vec<Trick>,
    pub(super) command: &'a str,
}

/// Kinds on which a GPU stops the kernel, so that there is no output; an access outside may go unnoticed there.
pub(super) fn is_crash(kind: FindingKind) -> bool {
    kind.is_fault() && !matches!(kind, FindingKind::OobRead | FindingKind::OobWrite)
}

impl Evidence<'_> {
    fn asked(&self) -> impl Iterator<Item = (&Asked, &Look, bool)> {
        self.checker.asked.iter().zip(self.looks).zip(self.failing).map(|((a, l), f)| (a, l, *f))
    }

    /// Findings, each once, those at the problem's own extents first.
    fn findings(&self) -> Vec<SeenFinding> {
        let mut out: Vec<SeenFinding> = Vec::new();
        for own in [true, false] {
            for (a, s) in self.shapes.iter().zip(self.sanitized).filter(|(a, _)| a.own_extents == own) {
                for f in &s.findings {
                    let same = |g: &SeenFinding| {
                        let g = &g.finding;
                        (g.kind, g.line, &g.buffer, &g.kernel) == (f.kind, f.line, &f.buffer, &f.kernel)
                    };
                    if !out.iter().any(same) {
                        out.push(SeenFinding {
                            finding: f.clone(),
                            recipe: Some(a.input.text.clone()),
                            own_extents: own,
                            replay: self.replay(&a.input.text),
                        });
                    }
                }
            }
        }
        out
    }

    fn replay(&self, recipe: &str) -> String {
        format!("{} --input '{recipe}'", self.command)
    }

    fn failing_inputs(&self) -> Vec<FailingInput> {
        self.asked()
            .filter(|(.., failing)| *failing)
            .map(|(a, look, _)| {
                let Tolerance { atol, rtol } = look.judged_at();
                FailingInput {
                    recipe: a.input.text.clone(),
                    end: look.end,
                    own_extents: a.own_extents,
                    threshold: look.threshold,
                    atol,
                    rtol,
                    first_wrong: look.first_wrong.clone(),
                    message: look.message.clone(),
                    replay: self.replay(&a.input.text),
                }
            })
            .collect()
    }

    fn official(&self) -> OfficialAnswer {
        let protocol = &self.checker.official;
        let tolerance = protocol.tolerance().atol;
        let looks: Vec<&Look> = self.asked().filter(|(a, ..)| a.official).map(|(_, l, _)| l).collect();
        let complete = looks.len() == protocol.inputs.len() && looks.iter().all(|l| l.undecided().is_none());
        let threshold = looks.iter().map(|l| l.threshold).fold(None, |worst: Option<f64>, t| {
            Some(worst.map_or(t, |w| if t > w || t.is_nan() { t } else { w }))
        });
        // As the benchmark has it: no question of validity, and the float32 reference alone.
        let accepts = |t: f64| complete.then(|| looks.iter().all(|l| l.has_output() && l.threshold <= t));
        let extents = self.checker.extents;
        let passes_there = accepts(tolerance);
        OfficialAnswer {
            passes: passes_there.filter(|_| extents == Reached::Official),
            extents,
            threshold,
            sampled: None,
            passes_there,
            protocol: protocol.name.clone(),
            tolerance,
            passes_at_1e_4: accepts(PRESENT_TOLERANCE),
        }
    }

    fn suite(&self) -> SuiteAnswer {
        let asked: Vec<_> = self.asked().filter(|(a, ..)| a.suite).collect();
        let count = |f: &dyn Fn(&Look, bool) -> bool| {
            asked.iter().filter(|(_, look, failing)| f(look, *failing)).count() as u64
        };
        SuiteAnswer {
            name: self.checker.config.suite.name.clone(),
            inputs: asked.len() as u64,
            failed: count(&|_, failing| failing),
            invalid: count(&|look, failing| look.rejected() && !failing),
        }
    }

    pub(super) fn verdict(self) -> Check {
        let findings = self.findings();
        let failing_inputs = self.failing_inputs();
        let (verdict, reason) = self.decide(&findings, &failing_inputs);
        Check {
            verdict,
            official: self.official(),
            suite: self.suite(),
            reason,
            sanitized_shapes: self.sanitized.iter().filter(|s| s.undecided.is_none()).count() as u64,
            instructions: self
                .looks
                .iter()
                .map(|l| l.instructions)
                .chain(self.sanitized.iter().map(|s| s.instructions))
                .fold(0, u64::saturating_add),
            findings,
            failing_inputs,
            tricks: self.tricks,
            reward: None,
            log: None,
            seconds: 0.0,
        }
    }

    fn decide(&self, findings: &[SeenFinding], failing: &[FailingInput]) -> (Verdict, String) {
        let inputs = self.looks.len();
        let own: Vec<&FailingInput> = failing.iter().filter(|f| f.own_extents).collect();
        let asked_there = self.asked().filter(|(a, ..)| a.own_extents).count();
        let numbers = own.iter().filter(|f| f.end != EvaluationEnd::Fault).count();
        if numbers > 0 {
            return (
                Verdict::Wrong,
                format!(
                    "wrong on {} of {}",
                    own.len(),
                    counted(
                        asked_there,
                        "input at the problem's own extents",
                        "inputs at the problem's own extents"
                    )
                ),
            );
        }
        if let Some(f) = own.first() {
            let what = f.message.clone().unwrap_or_default();
            return (
                Verdict::Crashed,
                format!(
                    "no output on {} of {}: {what}",
                    own.len(),
                    counted(
                        asked_there,
                        "input at the problem's own extents",
                        "inputs at the problem's own extents"
                    )
                ),
            );
        }
        let here: Vec<&SeenFinding> = findings.iter().filter(|f| f.own_extents).collect();
        if let Some(f) = here.iter().find(|f| is_crash(f.finding.kind)) {
            return (Verdict::Crashed, f.finding.message.clone());
        }
        if !here.is_empty() {
            let kinds = kinds(here.iter().map(|f| &f.finding));
            return (
                Verdict::UndefinedBehaviour,
                if inputs == 1 {
                    format!("right numbers, but the detectors report {kinds}")
                } else {
                    format!("right numbers on {asked_there} inputs, but the detectors report {kinds}")
                },
            );
        }
        let undecided = |own: bool| {
            let looks = self.asked().filter(|(a, ..)| a.own_extents == own);
            let looks = looks.filter_map(|(a, l, _)| l.undecided().map(|u| (a, u)));
            let shapes = self.shapes.iter().zip(self.sanitized).filter(|(a, _)| a.own_extents == own);
            let shapes = shapes.filter_map(|(a, s)| s.undecided.clone().map(|u| (*a, u)));
            looks.chain(shapes).next().map(|(a, (v, why))| (v, format!("on input `{}`: {why}", a.input.text)))
        };
        if let Some(u) = undecided(true) {
            return u;
        }
        if let Some(f) = failing.first() {
            let what = match f.end {
                EvaluationEnd::Fault => "no output",
                _ => "wrong",
            };
            let others = inputs - asked_there;
            let right = if asked_there > 0 { "right at the problem's own extents, " } else { "" };
            return (
                Verdict::NotGeneral,
                format!(
                    "{right}{what} on {} of {}",
                    failing.len(),
                    counted(others, "input at other extents", "inputs at other extents")
                ),
            );
        }
        if !findings.is_empty() {
            let kinds = kinds(findings.iter().map(|f| &f.finding));
            return (
                Verdict::NotGeneral,
                format!("right numbers, but at other extents the detectors report {kinds}"),
            );
        }
        if let Some(u) = undecided(false) {
            return u;
        }
        let invalid = self.asked().filter(|(_, l, f)| l.rejected() && !f).count();
        let mut reason = format!(
            "{} pass, no findings at {}",
            counted(inputs - invalid, "input", "inputs"),
            counted(self.sanitized.len(), "shape", "shapes")
        );
        if invalid > 0 {
            reason.push_str(&format!("; {invalid} on which correct kernels differ as much do not count"));
        }
        (Verdict::Correct, reason)
    }
}

/// The kinds of findings, each once.
pub(super) fn kinds<'f>(findings: impl Iterator<Item = &'f Finding>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for f in findings {
        if !names.contains(&f.kind.name()) {
            names.push(f.kind.name());
        }
    }
    names.join(", ")
}

pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
