//! A version's run against the reference, where the original's blocks wrote and where else the version did.

use assay_judge::{CompareOptions, compare};
use assay_ops::Variant;
use assay_ops::sampled::SampleError;
use assay_problems::Problem;
use serde::{Deserialize, Serialize};

use super::input::{Expected, OfficialInput, Points};
use super::run::{Ran, RunEnd};

/// Elements beyond the original's at which the reference is evaluated, spread over all of them.
const EXTRA: usize = 4096;

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Within tolerance.
    Pass,
    /// Out of tolerance.
    Mismatch,
    /// An access outside of a buffer, a trap, an invalid launch, a deadlock.
    Fault,
    /// Out of instructions or memory.
    Exhausted,
    /// The device cannot do it, or the sample does not tell.
    Unsupported,
}

impl Ending {
    /// Does a check that sees this reject? Nothing is known of the last two.
    pub fn rejects(self) -> Option<bool> {
        match self {
            Ending::Pass => Some(false),
            Ending::Mismatch | Ending::Fault => Some(true),
            Ending::Exhausted | Ending::Unsupported => None,
        }
    }

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Pass => "pass",
            Ending::Mismatch => "mismatch",
            Ending::Fault => "fault",
            Ending::Exhausted => "exhausted",
            Ending::Unsupported => "unsupported",
        }
    }
}

/// What an evaluation, or a check of several, came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How it ended.
    pub ending: Ending,
    /// The recipe that decided; none where all passed.
    pub input: Option<String>,
    /// Largest max |out - ref| / (1 + |ref|) seen; none where there were no values.
    pub threshold: Option<f64>,
    /// Why, in words; empty for a pass.
    pub note: String,
}

impl Verdict {
    /// A verdict without values.
    pub fn ended(ending: Ending, input: &str, note: String) -> Verdict {
        Verdict { ending, input: Some(input.to_owned()), threshold: None, note }
    }

    /// A check's verdict: the first evaluation that rejects, or else the first of which nothing is known, or
    /// a pass. Evaluations after a rejection are not asked for.
    pub fn first(each: impl IntoIterator<Item = Verdict>) -> Verdict {
        let mut all =
            Verdict { ending: Ending::Pass, input: None, threshold: Some(0.0), note: String::new() };
        let mut unknown = None;
        for v in each {
            match v.ending.rejects() {
                Some(true) => return v,
                Some(false) => {
                    let largest = all.threshold.unwrap_or(0.0).max(v.threshold.unwrap_or(0.0));
                    all.threshold = Some(largest);
                }
                None => unknown = unknown.or(Some(v)),
            }
        }
        unknown.unwrap_or(all)
    }
}

/// The largest threshold seen, and where.
struct Worst {
    threshold: f64,
    place: String,
}

impl Worst {
    /// Compares values at the same places.
    fn look(&mut self, problem: &Problem, name: &str, got: &Points, want: &Points) -> Result<(), String> {
        let options = CompareOptions { nan_ok: problem.nan_ok, exact_integers: false };
        let c = compare(&got.values, &want.values, &options).map_err(|e| e.to_string())?;
        if c.threshold > self.threshold {
            self.threshold = c.threshold;
            let at = c.index.and_then(|k| want.index.get(k as usize).copied());
            self.place = format!("`{name}`[{}]", at.unwrap_or(0));
        }
        Ok(())
    }
}

/// Judges a run at `atol = rtol = tolerance` against the float32 reference. `expected` holds it where the
/// original's blocks wrote; what a version left unwritten there counts with what lay in memory before.
pub fn judge(
    problem: &Problem,
    input: &OfficialInput,
    ran: &Ran,
    expected: &Expected,
    tolerance: f64,
) -> Verdict {
    match judged(problem, input, ran, expected, tolerance) {
        Ok(v) => v,
        Err(what) => Verdict::ended(Ending::Unsupported, &input.text, what),
    }
}

fn judged(
    problem: &Problem,
    input: &OfficialInput,
    ran: &Ran,
    expected: &Expected,
    tolerance: f64,
) -> Result<Verdict, String> {
    let ended = |ending, what: &String| Ok(Verdict::ended(ending, &input.text, what.clone()));
    match &ran.end {
        RunEnd::Fault(what) => return ended(Ending::Fault, what),
        RunEnd::Exhausted(what) => return ended(Ending::Exhausted, what),
        RunEnd::Unsupported(what) => return ended(Ending::Unsupported, what),
        RunEnd::Done => {}
    }
    let mut worst_of = Worst { threshold: 0.0, place: String::new() };
    for (name, want) in expected {
        let got = ran.outputs.get(name).ok_or_else(|| format!("output `{name}` is missing"))?;
        worst_of.look(problem, name, &got.at, want)?;
        // Where this version wrote and the original did not.
        let new = |k: &usize| want.index.binary_search(&got.points.index[*k]).is_err();
        let more: Vec<usize> = (0..got.points.index.len()).filter(new).collect();
        let step = more.len().div_ceil(EXTRA).max(1);
        let more: Vec<usize> = more.into_iter().step_by(step).collect();
        if !more.is_empty() && worst_of.threshold <= tolerance {
            let extra = got.points.only(&more);
            let reference = input
                .reference(name, &extra.index, &Variant::official())
                .map_err(|e: SampleError| e.to_string())?;
            worst_of.look(problem, name, &extra, &reference)?;
        }
    }
    let Worst { threshold, place } = worst_of;
    let passes = threshold <= tolerance;
    let missing: u64 = ran.outputs.values().map(|w| w.unwritten).sum();
    let note = match (passes, missing) {
        (true, _) => String::new(),
        (false, 0) => format!("off at {place}"),
        (false, n) => format!("off at {place}; {n} elements of the sample were not written"),
    };
    let ending = if passes { Ending::Pass } else { Ending::Mismatch };
    // JSON has no infinity.
    let threshold = Some(if threshold.is_finite() { threshold } else { f64::MAX });
    Ok(Verdict { ending, input: (!passes).then(|| input.text.clone()), threshold, note })
}

impl Points {
    /// The elements at these places of the list.
    fn only(&self, keep: &[usize]) -> Points {
        let size = self.values.dtype.size_bytes() as usize;
        let data = keep.iter().flat_map(|&k| self.values.data[k * size..(k + 1) * size].iter().copied());
        Points {
            index: keep.iter().map(|&k| self.index[k]).collect(),
            values: assay_tensor::Tensor {
                dtype: self.values.dtype,
                shape: vec![keep.len() as u64],
                data: data.collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_problems::{Recipe, Root, discover};

    use super::*;
    use crate::sampled::run::Written;

    /// What a kernel gives that computes the float32 reference, changed by `change`, where it writes `wrote`.
    fn verdict(wrote: &[u64], change: impl Fn(u64, f32) -> f32) -> Verdict {
        let problem = &discover(&["1/8"], &Root::Embedded).unwrap()[0];
        let input = OfficialInput::new(problem, &Recipe::official(3)).unwrap();
        assert_eq!(input.outputs.len(), 1);
        let last = assay_tensor::numel(&input.outputs[0].shape).unwrap() - 1;
        // Two pieces of rows and the very last element of 48 million.
        let asked: Vec<u64> = (10..20).chain(6_000..6_004).chain([last]).collect();
        let name = &input.outputs[0].name;
        let want = input.reference(name, &asked, &Variant::official()).unwrap();
        assert_eq!(want.index, asked);
        let all: Vec<u64> = wrote.iter().map(|&i| if i == u64::MAX { last } else { i }).collect();
        let values = input.reference(name, &all, &Variant::official()).unwrap();
        let element = |i: u64| {
            let value = match all.binary_search(&i) {
                Ok(k) => change(i, values.values.get_f64(k as u64) as f32),
                // What lay there before.
                Err(_) => 0.125,
            };
            let mut bytes = [0u8; 8];
            bytes[..4].copy_from_slice(&value.to_le_bytes());
            (i, bytes)
        };
        let of = |index: &[u64]| {
            let elements: Vec<(u64, [u8; 8])> = index.iter().map(|&i| element(i)).collect();
            Points::of(assay_tensor::DType::F32, &elements)
        };
        let unwritten = asked.iter().filter(|i| all.binary_search(i).is_err()).count() as u64;
        let written = Written { points: of(&all), at: of(&asked), unwritten };
        let ran = Ran {
            end: RunEnd::Done,
            instructions: 1,
            launches: Vec::new(),
            outputs: BTreeMap::from([(name.clone(), written)]),
        };
        judge(problem, &input, &ran, &Expected::from([(name.clone(), want)]), 1e-2)
    }

    fn everything() -> Vec<u64> {
        (10..20).chain(6_000..6_004).chain([u64::MAX]).collect()
    }

    #[test]
    fn the_reference_itself_passes_and_a_wrong_element_does_not() {
        let right = verdict(&everything(), |_, v| v);
        assert_eq!((right.ending, right.threshold), (Ending::Pass, Some(0.0)));
        let wrong = verdict(&everything(), |i, v| if i == 6_002 { v * 1.1 } else { v });
        assert_eq!((wrong.ending, wrong.note.as_str()), (Ending::Mismatch, "off at `C`[6002]"));
        assert_eq!(wrong.input.as_deref(), Some("official#3"));
        let nan = verdict(&everything(), |i, v| if i == 10 { f32::NAN } else { v });
        assert_eq!((nan.ending, nan.threshold), (Ending::Mismatch, Some(f64::MAX)));
    }

    #[test]
    fn what_is_not_written_counts_with_what_lay_there() {
        let wrote: Vec<u64> = everything().into_iter().filter(|i| *i != 6_003).collect();
        let v = verdict(&wrote, |_, v| v);
        assert_eq!(v.ending, Ending::Mismatch);
        assert!(v.note.contains("`C`[6003]; 1 elements of the sample were not written"), "{}", v.note);
    }

    #[test]
    fn writes_elsewhere_are_judged_too() {
        let mut wrote = everything();
        wrote.insert(14, 7_777);
        assert_eq!(verdict(&wrote, |_, v| v).ending, Ending::Pass);
        let v = verdict(&wrote, |i, v| if i == 7_777 { v + 100.0 } else { v });
        assert_eq!((v.ending, v.note.as_str()), (Ending::Mismatch, "off at `C`[7777]"));
    }

    #[test]
    fn a_check_rejects_by_its_first_rejection_and_knows_when_it_does_not_know() {
        let v = |ending| Verdict::ended(ending, "official#0", String::new());
        let first = |all: &[Ending]| Verdict::first(all.iter().map(|&e| v(e))).ending;
        assert_eq!(first(&[Ending::Pass, Ending::Pass]), Ending::Pass);
        assert_eq!(first(&[Ending::Exhausted, Ending::Mismatch, Ending::Fault]), Ending::Mismatch);
        assert_eq!(first(&[Ending::Pass, Ending::Unsupported, Ending::Exhausted]), Ending::Unsupported);
    }
}
