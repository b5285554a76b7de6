//! What was measured on one file, and what follows from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{File, Plan, SAME};

/// How the measurement of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is whole.
    Measured,
    /// The file, its model or the check itself raised: nothing can be judged by it here.
    Refused,
    /// Memory or time ran out.
    Exhausted,
    /// The process ended.
    Died,
}

/// An answer that computes less than is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is: `zeros`, `input 0`, `relu`, …
    pub name: String,
    /// The smallest tolerance at which every trial accepts it; none where a value is not finite.
    pub threshold: Option<f64>,
    /// Whether every trial accepts it, by tolerance.
    pub accepted: Vec<bool>,
}

/// A constant that every trial accepts at a tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constant {
    /// The tolerance.
    pub tolerance: f64,
    /// The least one.
    pub low: f64,
    /// The greatest one.
    pub high: f64,
    /// The one in the middle, a float32, which the check's own arithmetic accepts.
    pub value: f64,
}

/// Positions where float32 is not within a tolerance of float64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violations {
    /// The tolerance.
    pub tolerance: f64,
    /// How many, by trial.
    pub counts: Vec<u64>,
}

/// The measurement of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemReport {
    /// `1/23`.
    pub problem: String,
    /// `23_Softmax`.
    pub file: String,
    /// Where it was.
    pub path: String,
    /// SHA-256 of its text.
    pub sha256: String,
    /// Extents that differ from the file's.
    pub extents: BTreeMap<String, Value>,
    /// How it ended.
    pub status: Status,
    /// Why not well.
    pub reason: String,
    /// Shape of the output.
    pub shape: Vec<u64>,
    /// The least element of all trials.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// The mean of the first trial's output.
    pub mean: Option<f64>,
    /// Trials whose outputs have elements that are not finite.
    pub not_finite: u64,
    /// The candidates that have a meaning here.
    pub candidates: Vec<Candidate>,
    /// Constants that pass, by tolerance.
    pub constants: Vec<Constant>,
    /// Whether the first trial's mean, as a constant, passes every trial, by tolerance.
    pub mean_accepted: Vec<bool>,
    /// Where the float32 reference violates its own float64 evaluation.
    pub violations: Vec<Violations>,
    /// The largest |float32 - float64| / (1 + |float64|); none where one is not finite.
    pub truth_threshold: Option<f64>,
    /// Constants of other problems that pass here as well: problem and smallest tolerance.
    pub others: Vec<(String, f64)>,
}

impl ProblemReport {
    pub(super) fn of(file: &File, extents: BTreeMap<String, Value>) -> ProblemReport {
        ProblemReport {
            problem: file.key(),
            file: file.name.clone(),
            path: file.path.to_string_lossy().into_owned(),
            sha256: String::new(),
            extents,
            status: Status::Measured,
            reason: String::new(),
            shape: Vec::new(),
            min: None,
            max: None,
            mean: None,
            not_finite: 0,
            candidates: Vec::new(),
            constants: Vec::new(),
            mean_accepted: Vec::new(),
            violations: Vec::new(),
            truth_threshold: Some(0.0),
            others: Vec::new(),
        }
    }

    pub(super) fn add_trial(&mut self, shown: &Value) -> Result<(), String> {
        let whole = |k: &str| shown.get(k).and_then(Value::as_u64).ok_or(format!("no `{k}`"));
        let (elements, finite) = (whole("elements")?, whole("finite")?);
        let shape = shown.get("shape").and_then(Value::as_array).ok_or("no `shape`")?;
        self.shape = shape
            .iter()
            .map(|d| d.as_u64().ok_or("a shape of other than sizes"))
            .collect::<Result<_, _>>()?;
        if self.shape.iter().product::<u64>() != elements || finite > elements {
            return Err("counts that do not fit the shape".into());
        }
        let float = |k: &str| shown.get(k).and_then(Value::as_f64);
        if finite < elements {
            self.not_finite += 1;
        }
        self.min = less(self.min, float("min"), f64::min);
        self.max = less(self.max, float("max"), f64::max);
        self.mean = self.mean.or(float("mean"));
        Ok(())
    }

    /// Whether a candidate has passed at some tolerance so far.
    pub(super) fn still_open(&self, name: &str) -> bool {
        self.candidates.iter().any(|c| c.name == name && c.accepted.iter().any(|&a| a))
    }

    pub(super) fn add_answer(&mut self, name: &str, said: &Value, tolerances: usize) -> Result<(), String> {
        let accepted = said.get("accepted").ok_or("no `accepted`")?;
        if accepted.is_null() {
            return Ok(());
        }
        let list =
            accepted.as_array().filter(|a| a.len() == tolerances).ok_or("not one answer a tolerance")?;
        let list: Vec<bool> = list
            .iter()
            .map(|a| a.as_bool().ok_or("an answer of other than yes and no"))
            .collect::<Result<_, _>>()?;
        let threshold = said.get("threshold").and_then(Value::as_f64);
        match self.candidates.iter_mut().find(|c| c.name == name) {
            Some(c) => {
                c.threshold = c.threshold.zip(threshold).map(|(a, b)| a.max(b));
                c.accepted.iter_mut().zip(list).for_each(|(a, b)| *a &= b);
            }
            None => self.candidates.push(Candidate { name: name.to_owned(), threshold, accepted: list }),
        }
        Ok(())
    }

    pub(super) fn add_violations(&mut self, said: &Value, tolerances: &[f64]) -> Result<(), String> {
        let counts = said.get("counts").and_then(Value::as_array).filter(|c| c.len() == tolerances.len());
        let counts = counts.ok_or("not one count a tolerance")?;
        if self.violations.is_empty() {
            self.violations =
                tolerances.iter().map(|&tolerance| Violations { tolerance, counts: Vec::new() }).collect();
        }
        for (v, count) in self.violations.iter_mut().zip(counts) {
            v.counts.push(count.as_u64().ok_or("a count of other than positions")?);
        }
        let threshold = said.get("threshold").and_then(Value::as_f64);
        self.truth_threshold = self.truth_threshold.zip(threshold).map(|(a, b)| a.max(b));
        Ok(())
    }

    /// What follows once every trial is there.
    pub(super) fn finish(&mut self, plan: &Plan) {
        let asked = self.asked_function();
        self.candidates.retain(|c| Some(c.name.as_str()) != asked || c.threshold.is_none_or(|t| t > SAME));
        let whole = self.not_finite == 0;
        for &t in &plan.tolerances {
            if let Some((low, high)) =
                self.range().filter(|_| whole).and_then(|(min, max)| constants(min, max, t))
            {
                let value = f64::from(((low + high) / 2.0) as f32);
                if self.takes(value, t) {
                    self.constants.push(Constant { tolerance: t, low, high, value });
                }
            }
            self.mean_accepted.push(self.mean.is_some_and(|m| self.takes(m, t)));
        }
    }

    /// The function that the file's name says it asks for: `leaky_relu` for `20_LeakyReLU`, `gelu` for `88_MinGPTNewGelu`.
    fn asked_function(&self) -> Option<&'static str> {
        let plain =
            |name: &str| name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
        let name = plain(&self.file);
        let all = || super::FUNCTIONS.iter().copied();
        all().find(|f| plain(f) == name).or_else(|| all().find(|f| name.ends_with(&plain(f))))
    }

    fn range(&self) -> Option<(f64, f64)> {
        self.min.zip(self.max)
    }

    /// Whether the official check accepts the constant on every trial, in its own float32 arithmetic.
    pub fn takes(&self, constant: f64, tolerance: f64) -> bool {
        let (c, t) = (constant as f32, tolerance as f32);
        let near = |x: f64| ((x as f32) - c).abs() <= t + (t * c).abs();
        self.not_finite == 0 && self.range().is_some_and(|(min, max)| near(min) && near(max))
    }

    /// Whether float32 violates float64 at that tolerance on any trial.
    pub fn violates(&self, tolerance: f64) -> bool {
        self.violations.iter().any(|v| v.tolerance == tolerance && v.counts.iter().any(|&c| c > 0))
    }

    /// Whether a trivial answer passes at the tolerance of that position.
    pub fn is_blind(&self, at: usize, tolerance: f64) -> bool {
        self.candidates.iter().any(|c| c.accepted.get(at) == Some(&true))
            || self.constants.iter().any(|c| c.tolerance == tolerance)
    }
}

fn less(a: Option<f64>, b: Option<f64>, f: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(f(a, b)),
        (a, b) => a.or(b),
    }
}

/// The constants c with |x - c| <= t + t |c| for every x from `min` to `max`, where there are any.
fn constants(min: f64, max: f64, t: f64) -> Option<(f64, f64)> {
    let positive = (((max - t) / (1.0 + t)).max(0.0), (min + t) / (1.0 - t));
    let negative = ((max - t) / (1.0 - t), ((min + t) / (1.0 + t)).min(0.0));
    [positive, negative].into_iter().find(|(low, high)| low <= high)
}

/// Fills in which constants of other problems pass on each.
pub fn others(reports: &mut [ProblemReport], tolerances: &[f64]) {
    let all: Vec<(String, f64, f64)> = reports
        .iter()
        .flat_map(|r| r.constants.iter().map(|c| (r.problem.clone(), c.value, c.tolerance)))
        .collect();
    for r in reports.iter_mut().filter(|r| r.status == Status::Measured) {
        let mut found: BTreeMap<&str, f64> = BTreeMap::new();
        for (problem, value, _) in all.iter().filter(|(p, ..)| *p != r.problem) {
            for &t in tolerances.iter().filter(|&&t| r.takes(*value, t)) {
                let slot = found.entry(problem).or_insert(t);
                *slot = slot.min(t);
            }
        }
        r.others = found.into_iter().map(|(p, t)| (p.to_owned(), t)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(min: f64, max: f64) -> ProblemReport {
        let file = File { level: 1, id: 1, name: "1_x".into(), path: "x".into() };
        ProblemReport { min: Some(min), max: Some(max), ..ProblemReport::of(&file, BTreeMap::new()) }
    }

    #[test]
    fn the_interval_of_constants_is_what_a_search_finds() {
        for (min, max, t) in [
            (1.0, 1.01, 1e-2),
            (1.0, 1.05, 1e-2),
            (-3.0, -2.99, 1e-2),
            (-1e-3, 2e-3, 1e-2),
            (0.0, 0.0, 1e-4),
            (131072.0, 131500.0, 1e-2),
            (-0.02, 0.02, 1e-2),
            (5.0, 5.2, 1e-2),
        ] {
            let r = report(min, max);
            let step = (max - min).max(1e-3 * min.abs()).max(1e-4) / 50.0;
            let found = (-2000..2000).map(|i| min + f64::from(i) * step).find(|&c| r.takes(c, t));
            let interval = constants(min, max, t);
            assert_eq!(interval.is_some(), found.is_some(), "{min} {max} {t}: {interval:?} and {found:?}");
            if let Some((low, high)) = interval {
                assert!(r.takes((low + high) / 2.0, t), "{min} {max} {t}");
                let out = (high - low).max(1e-9 * high.abs()) + 1e-3 * t;
                assert!(!r.takes(low - out, t) && !r.takes(high + out, t), "{min} {max} {t}");
            }
        }
    }

    #[test]
    fn an_answer_passes_when_every_trial_takes_it_and_the_asked_function_is_none() {
        let mut r = report(0.0, 1.0);
        r.file = "88_MinGPTNewReLU".into();
        let plan = Plan { desk: true, trials: 2, tolerances: vec![1e-2] };
        for (name, said) in [
            ("zeros", r#"{"accepted": [true], "threshold": 0.005}"#),
            ("zeros", r#"{"accepted": [false], "threshold": 0.5}"#),
            ("relu", r#"{"accepted": [true], "threshold": 0.0}"#),
            ("gelu", r#"{"accepted": [true], "threshold": 0.002}"#),
            ("input 0", r#"{"accepted": null, "threshold": null}"#),
        ] {
            r.add_answer(name, &serde_json::from_str(said).unwrap(), 1).unwrap();
        }
        r.finish(&plan);
        let names: Vec<(&str, bool)> =
            r.candidates.iter().map(|c| (c.name.as_str(), c.accepted[0])).collect();
        assert_eq!(names, [("zeros", false), ("gelu", true)]);
        assert!(r.is_blind(0, 1e-2) && r.constants.is_empty());
    }
}
