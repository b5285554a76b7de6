//! The verdict on a run: every written element against float64, what was not written, what the device saw, and which
//! misreading explains it.

use std::collections::BTreeMap;

use assay_problems::PlanArg;
use assay_simt::{Finding, FindingKind};
use assay_sweep::record::Outcome;
use assay_sweep::text::grouped;
use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::plan::calibration_size;
use crate::run::{End, Ran};
use crate::work::{Family, Inputs, Work, decode};

const WRAP: u64 = 1 << 32;
/// Wrong elements for which hypotheses are computed, evenly among all.
const ASKED: usize = 1000;
/// A sample that writes less than this part of what a right size's sample writes leaves elements out.
const SHARE: f64 = 0.5;

/// Why a size is not right, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mechanism {
    /// One sentence, lower case.
    pub sentence: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

/// What a right size of the series shows of the sample, by which missing elements are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// The last element was written.
    pub last: bool,
    /// Elements written, as a part of what the blocks' share of the grid would be.
    pub share: f64,
}

/// The verdict.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How the run ended.
    pub outcome: Outcome,
    /// The finding, or why it was not run.
    pub message: Option<String>,
    /// The explanation, where it is not right.
    pub mechanism: Option<Mechanism>,
    /// Largest |out - ref| / max|ref|; infinite where a value is not finite.
    pub error: f64,
    /// Elements compared and wrong; of the output, by rows of it.
    pub compared: u64,
    /// See above.
    pub wrong: u64,
    /// The wrong elements, the first and evenly chosen ones.
    pub wrong_at: Vec<u64>,
    /// Part of the wrong elements asked about that each hypothesis reproduces.
    pub hypotheses: BTreeMap<String, f64>,
    /// Which of them, and whether right elements speak against it.
    hits: BTreeMap<String, (Vec<bool>, bool)>,
    /// The operand of the best hypothesis, where it is one about loads.
    pub misread: Option<usize>,
    /// What the sample wrote.
    pub seen: Reference,
    /// The largest element written, if any.
    pub highest: Option<u64>,
}

/// How an index is misread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Modulo 2^32.
    Modulo,
    /// As a signed number of 32 bits; negative ones lead outside.
    Signed,
    /// The byte offset modulo 2^32.
    Bytes,
    /// The offset of the row or matrix modulo 2^32, the place within in 64 bits.
    Base,
}

impl Reading {
    const ALL: [Reading; 4] = [Reading::Modulo, Reading::Base, Reading::Bytes, Reading::Signed];

    fn words(self) -> &'static str {
        match self {
            Reading::Modulo => "index modulo 2^32",
            Reading::Signed => "index as a signed 32-bit number",
            Reading::Bytes => "byte offset modulo 2^32",
            Reading::Base => "offset of the row or matrix modulo 2^32",
        }
    }

    /// Where element `i` is read.
    fn of(self, i: u64, row: u64, element_bytes: u64) -> Option<u64> {
        match self {
            Reading::Modulo => Some(i % WRAP),
            Reading::Signed => u64::try_from(i as u32 as i32).ok(),
            Reading::Bytes => Some(i % (WRAP / element_bytes)),
            Reading::Base => {
                let row = row.max(1);
                Some(i / row * row % WRAP + i % row)
            }
        }
    }
}

/// A supposed mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hypothesis {
    /// Loads of these operands.
    Load(Vec<usize>, Reading),
    /// Stores: the value belongs to an element that many elements, or a multiple, further.
    Store(u64),
    /// Loads and stores, modulo 2^32.
    All,
}

struct Judge<'a> {
    work: &'a Work,
    inputs: &'a Inputs,
    /// Largest difference that is no mistake.
    allowed: f64,
}

impl Judge<'_> {
    fn hypotheses(&self) -> Vec<(String, Hypothesis)> {
        let op = self.work.family.op;
        let operands: Vec<usize> = (0..op.inputs().len()).filter(|&o| op.inputs()[o] != "index").collect();
        let mut out = Vec::new();
        for reading in Reading::ALL {
            for &o in &operands {
                let name = format!("`{}` read with its {}", op.inputs()[o], reading.words());
                out.push((name, Hypothesis::Load(vec![o], reading)));
            }
        }
        if operands.len() > 1 {
            let name = format!("every input read with its {}", Reading::Modulo.words());
            out.push((name, Hypothesis::Load(operands, Reading::Modulo)));
        }
        out.push(("`out` stored with its index modulo 2^32".into(), Hypothesis::Store(WRAP)));
        let bytes = WRAP / self.work.family.dtype.size_bytes();
        out.push(("`out` stored with its byte offset modulo 2^32".into(), Hypothesis::Store(bytes)));
        out.push(("every index modulo 2^32".into(), Hypothesis::All));
        out
    }

    /// Does it give `got` at element `t`?
    fn explains(&self, h: &Hypothesis, t: u64, got: f64) -> bool {
        let op = self.work.family.op;
        let size = self.work.family.dtype.size_bytes();
        let read = |t: u64, which: &dyn Fn(usize) -> Option<Reading>| {
            self.work.value(t, &mut |o, i| {
                let i = match which(o) {
                    Some(r) => r.of(i, self.work.row_of(op.inputs()[o]), size)?,
                    None => i,
                };
                Some(self.inputs.at(o, i))
            })
        };
        let near = |v: Option<f64>| v.is_some_and(|v| (v - got).abs() <= self.allowed);
        let elements = self.work.output_elements();
        let aliases = |step: u64| (1..).map(move |k| t.saturating_add(step.saturating_mul(k)));
        match h {
            Hypothesis::Load(operands, reading) => {
                near(read(t, &|o| operands.contains(&o).then_some(*reading)))
            }
            Hypothesis::Store(step) => {
                aliases(*step).take_while(|&u| u < elements).any(|u| near(Some(self.inputs.output(u))))
            }
            Hypothesis::All => {
                let modulo = |o: usize| (op.inputs()[o] != "index").then_some(Reading::Modulo);
                aliases(WRAP).take_while(|&u| u < elements).any(|u| near(read(u, &modulo)))
            }
        }
    }

    /// The first element that a load at output element `t` is led astray from, and where to.
    fn astray(&self, t: u64, operand: usize, reading: Reading) -> Option<(u64, u64)> {
        let op = self.work.family.op;
        let (row, size) = (self.work.row_of(op.inputs()[operand]), self.work.family.dtype.size_bytes());
        let mut found = None;
        self.work.value(t, &mut |o, i| {
            if o == operand && found.is_none() {
                found = reading.of(i, row, size).filter(|&j| j != i).map(|j| (i, j));
            }
            Some(self.inputs.at(o, i))
        });
        found
    }
}

/// Judges a run. `tolerance` is relative to the largest reference value; `like` what a right size shows.
pub fn judge(
    kernel: &Kernel,
    work: &Work,
    inputs: &Inputs,
    ran: &Ran,
    tolerance: f64,
    like: Option<Reference>,
) -> Verdict {
    let elements = work.output_elements();
    let expected = elements as f64 * ran.executed as f64 / (ran.total.max(1)) as f64;
    let mut v = Verdict {
        outcome: Outcome::Ok,
        message: None,
        mechanism: None,
        error: 0.0,
        compared: 0,
        wrong: 0,
        wrong_at: Vec::new(),
        hypotheses: BTreeMap::new(),
        hits: BTreeMap::new(),
        misread: None,
        seen: Reference {
            last: ran.written.last().is_some_and(|w| w.0 + 1 == elements),
            share: ran.written.len() as f64 / expected.max(1.0),
        },
        highest: ran.written.last().map(|w| w.0),
    };
    let at = |line: Option<u32>| (line.map(|_| kernel.file.clone()), line);
    match &ran.end {
        End::Done => {}
        End::Host(what, line) => {
            v.outcome = Outcome::Error;
            v.message = Some(what.clone());
            let (file, line) = at(*line);
            let cut = cut_argument(kernel, work, ran).map(|m| m.sentence);
            v.mechanism = Some(Mechanism { sentence: cut.unwrap_or_else(|| what.clone()), file, line });
            return v;
        }
        End::Fault(first) => {
            v.outcome = Outcome::Error;
            let faults = || ran.findings.iter().filter(|f| f.kind.is_fault());
            let telling = faults().find(|f| wrapped(work, f).is_some()).or(ran.findings.get(*first));
            if let Some(f) = telling {
                v.message = Some(told(f));
                v.mechanism = Some(of_fault(kernel, work, ran, f));
            }
            return v;
        }
        // What was found before it was stopped is no less true.
        End::Endless(..) | End::Unsupported(_) if !ran.findings.is_empty() => {
            v.outcome = Outcome::Error;
            object(kernel, work, ran, &mut v);
            return v;
        }
        End::Endless(reason, place) => {
            v.outcome = Outcome::Timeout;
            v.message = Some(reason.clone());
            v.mechanism = Some(Mechanism {
                sentence: passing(work, ran).unwrap_or_else(|| "it does not end".into()),
                file: place.as_ref().map(|p| p.file.clone().unwrap_or_else(|| kernel.file.clone())),
                line: place.as_ref().map(|p| p.line),
            });
            return v;
        }
        End::Unsupported(why) => {
            v.outcome = Outcome::Skipped;
            v.message = Some(why.clone());
            return v;
        }
    }
    compare(work, inputs, ran, tolerance, &mut v);
    let missing = like.is_some_and(|l| l.last && !v.seen.last || v.seen.share < SHARE * l.share);
    if v.wrong > 0 {
        v.outcome = Outcome::Wrong;
        v.message = ran.findings.first().map(told);
        explain(kernel, work, inputs, ran, &mut v);
    } else if missing {
        v.outcome = Outcome::Truncated;
        v.message = ran.findings.first().map(told);
        v.mechanism = Some(truncated(kernel, work, ran, &v));
    } else if !ran.findings.is_empty() {
        // Every value is right, and the device objects all the same.
        v.outcome = Outcome::Error;
        object(kernel, work, ran, &mut v);
    }
    v
}

fn told(f: &Finding) -> String {
    format!("{}: {}", f.kind.name(), f.message)
}

/// The first finding as message and mechanism.
fn object(kernel: &Kernel, work: &Work, ran: &Ran, v: &mut Verdict) {
    let Some(f) = ran.findings.first() else { return };
    let (file, line) = place(kernel, f);
    let sentence = passing(work, ran).unwrap_or_else(|| f.message.clone());
    v.message = Some(told(f));
    v.mechanism = Some(Mechanism { sentence, file, line });
}

/// Compares every written element.
fn compare(work: &Work, inputs: &Inputs, ran: &Ran, tolerance: f64, v: &mut Verdict) {
    // What is only moved has to be equal; values are below 1. Of what is computed the samples are small.
    let exact = tolerance == 0.0;
    let want: Vec<f64> =
        if exact { Vec::new() } else { ran.written.iter().map(|(i, _)| inputs.output(*i)).collect() };
    let largest = if exact { 1.0 } else { want.iter().fold(0.0f64, |m, w| m.max(w.abs())) };
    let allowed = tolerance * largest;
    let dtype = work.family.dtype;
    let mut wrong = Vec::new();
    for (k, (i, bytes)) in ran.written.iter().enumerate() {
        let w = want.get(k).copied().unwrap_or_else(|| inputs.output(*i));
        let got = decode(dtype, bytes);
        let d = (got - w).abs();
        // NaN is no number that is small enough.
        if d <= allowed {
            v.error = v.error.max(if largest > 0.0 { d / largest } else { 0.0 });
            continue;
        }
        v.error = if d.is_finite() { v.error.max(d / largest) } else { f64::INFINITY };
        wrong.push((*i, got));
    }
    v.compared = ran.written.len() as u64;
    v.wrong = wrong.len() as u64;
    if wrong.is_empty() {
        return;
    }
    let step = wrong.len().div_ceil(ASKED);
    let asked: Vec<(u64, f64)> = wrong.iter().copied().step_by(step).collect();
    let judge = Judge { work, inputs, allowed };
    // Right elements that a mistake would have changed speak against it.
    let is_wrong = |i: u64| wrong.binary_search_by_key(&i, |w| w.0).is_ok();
    let step = ran.written.len().div_ceil(ASKED * 4);
    let right: Vec<(u64, f64)> = (ran.written.iter().step_by(step))
        .filter(|(i, _)| !is_wrong(*i))
        .map(|(i, bytes)| (*i, decode(dtype, bytes)))
        .collect();
    for (name, h) in judge.hypotheses() {
        let hits: Vec<bool> = asked.iter().map(|(t, got)| judge.explains(&h, *t, *got)).collect();
        let loads = matches!(h, Hypothesis::Load(..));
        let against = loads && right.iter().any(|(t, got)| !judge.explains(&h, *t, *got));
        let part = hits.iter().filter(|h| **h).count() as f64 / asked.len() as f64;
        v.hypotheses.insert(name.clone(), part);
        v.hits.insert(name, (hits, against));
    }
    v.wrong_at = asked.iter().map(|a| a.0).collect();
}

/// The best hypothesis in words.
fn explain(kernel: &Kernel, work: &Work, inputs: &Inputs, ran: &Ran, v: &mut Verdict) {
    let judge = Judge { work, inputs, allowed: 0.0 };
    let all = judge.hypotheses();
    let part = |name: &str| v.hypotheses.get(name).copied().unwrap_or(0.0);
    let against = |name: &str| v.hits.get(name).is_some_and(|h| h.1);
    // Those that no right element speaks against before others; of equals the first.
    let rank = |name: &str| (part(name) >= 0.5 && !against(name), part(name));
    let best = all.iter().rev().max_by(|a, b| {
        let (x, y) = (rank(&a.0), rank(&b.0));
        x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))
    });
    let race = ran.findings.iter().find(|f| f.kind == FindingKind::RaceGlobal).or(ran.findings.first());
    let mut sentence =
        format!("{} of {} elements are wrong, and no hypothesis explains them", v.wrong, v.compared);
    if let Some((name, h)) = best.filter(|b| part(&b.0) >= 0.5) {
        let percent = (part(name) * 1000.0).round() / 10.0;
        sentence = format!("{name}, which gives {percent}% of the {} wrong elements", grouped(v.wrong));
        if let Hypothesis::Load(operands, reading) = h {
            v.misread = operands.first().copied();
            let first = v.wrong_at.iter().find_map(|&t| judge.astray(t, operands[0], *reading));
            if let Some((from, to)) = first {
                sentence = format!("{sentence}: element {} is read at {}", grouped(from), grouped(to));
            }
        }
        if let Some((other, rest)) = remaining(v, name) {
            sentence = format!("{sentence}; of the rest {rest}% as {other}");
        }
    } else if let Some(cut) = cut_argument(kernel, work, ran) {
        v.mechanism = Some(cut);
        return;
    }
    let (file, line) = race.map_or((None, None), |f| place(kernel, f));
    v.mechanism = Some(Mechanism { sentence, file, line });
}

/// What explains most of the wrong elements that `best` does not, where it does of half of them: its name and the part
/// in percent.
fn remaining(v: &Verdict, best: &str) -> Option<(String, f64)> {
    let (known, _) = v.hits.get(best)?;
    let rest: Vec<usize> = (0..known.len()).filter(|&k| !known[k]).collect();
    let count = |hits: &[bool]| rest.iter().filter(|&&k| hits.get(k) == Some(&true)).count();
    let (name, (hits, _)) = v.hits.iter().max_by_key(|(_, (hits, _))| count(hits))?;
    let n = count(hits);
    (n > 0 && n * 2 >= rest.len())
        .then(|| (name.clone(), (n as f64 / rest.len() as f64 * 1000.0).round() / 10.0))
}

fn place(kernel: &Kernel, f: &Finding) -> (Option<String>, Option<u32>) {
    match f.line {
        Some(line) => (Some(f.file.clone().unwrap_or_else(|| kernel.file.clone())), Some(line)),
        None => (None, None),
    }
}

/// The element that a fault's access should have gone to, if a signed index of 32 bits wrapped: unit (`element`,
/// `vector`, `byte`), where it went and where it should have gone, in that unit.
fn wrapped(work: &Work, f: &Finding) -> Option<(&'static str, i64, i64)> {
    let t = work.tensors().into_iter().find(|t| Some(t.name) == f.buffer.as_deref())?;
    let (offset, width) = (f.offset_bytes?, f.size_bytes?);
    let units = [("element", t.dtype.size_bytes()), ("vector", width), ("byte", 1)];
    units.into_iter().find_map(|(name, unit)| {
        let unit = i64::try_from(unit).ok().filter(|u| *u > 0)?;
        let index = offset / unit;
        let right = index + (1 << 32);
        let end = u64::try_from(right.checked_mul(unit)?).ok()?.checked_add(width)?;
        let fits = offset % unit == 0 && (-(1 << 31)..0).contains(&index) && end <= t.bytes();
        fits.then_some((name, index, right))
    })
}

fn signed(n: i64) -> String {
    let digits = grouped(n.unsigned_abs());
    if n < 0 { format!("-{digits}") } else { digits }
}

fn of_fault(kernel: &Kernel, work: &Work, ran: &Ran, f: &Finding) -> Mechanism {
    let (mut file, mut line) = place(kernel, f);
    let buffer = f.buffer.as_deref().unwrap_or("?");
    let verb = f.access.map_or("access", |a| a.noun());
    let negative = f.offset_bytes.filter(|o| *o < 0);
    let sentence = match (wrapped(work, f), negative.and_then(|o| Some((o, passing(work, ran)?)))) {
        (Some((unit, index, right)), _) => {
            let index_is = if unit == "byte" { "byte offset" } else { "index" };
            format!(
                "a signed 32-bit {index_is} of `{buffer}` wraps at 2^31: the {verb} for {unit} {} goes to {unit} {}",
                signed(right),
                signed(index)
            )
        }
        (None, Some((offset, passing))) => {
            format!("{passing}: the {verb} goes to byte {} of `{buffer}`", signed(offset))
        }
        (None, None) => match (cut_argument(kernel, work, ran), ran.plan.notes.first()) {
            (Some(cut), _) => cut.sentence,
            (None, Some(note)) => format!("{}; in the host code, {note}", f.message),
            (None, None) => f.message.clone(),
        },
    };
    if line.is_none() {
        line = ran.launch_line();
        file = line.map(|_| kernel.file.clone());
    }
    Mechanism { sentence, file, line }
}

/// What a loop index does that the grid's threads move on from below the last element to beyond 2^31 or 2^32.
fn passing(work: &Work, ran: &Ran) -> Option<String> {
    let elements = work.output_elements();
    let threads =
        ran.plan.launches().map(|l| l.grid.iter().chain(&l.block).fold(1u64, |n, d| n.saturating_mul(*d)));
    let stride = threads.max().filter(|&s| s < elements)?;
    let passes = |b: u64| elements <= b && elements.saturating_add(stride) > b;
    let (name, kind, to) = if passes(WRAP) {
        ("2^32", "a 32-bit index", "0")
    } else if passes(1 << 31) {
        ("2^31", "a signed 32-bit index", "-2^31")
    } else {
        return None;
    };
    Some(format!(
        "{kind} that grows by the grid's {} threads passes {name} before it reaches the end, and goes on from {to}",
        grouped(stride)
    ))
}

fn truncated(kernel: &Kernel, work: &Work, ran: &Ran, v: &Verdict) -> Mechanism {
    if let Some(cut) = cut_argument(kernel, work, ran) {
        return cut;
    }
    let elements = grouped(work.output_elements());
    let sentence = match v.highest {
        None => format!("none of the {elements} elements is written by the sample"),
        Some(h) => format!("the sample writes nothing behind element {} of {elements}", grouped(h)),
    };
    let race = ran.findings.iter().find(|f| f.kind == FindingKind::RaceGlobal);
    if let (Some(f), Some(h)) = (race, v.highest)
        && h < WRAP
        && work.output_elements() > WRAP
    {
        let (file, line) = place(kernel, f);
        let sentence = format!("`out` stored with its index modulo 2^32: {sentence}, and {}", f.message);
        return Mechanism { sentence, file, line };
    }
    let line = ran.plan.launches().next().map(|l| l.line);
    Mechanism { sentence, file: line.map(|_| kernel.file.clone()), line }
}

/// The quantities of a work that a launcher may pass on.
fn quantities(family: &Family, work: &Work) -> Vec<(String, u64)> {
    let extents = family.op.extents().iter().zip(&work.extents).map(|(n, e)| (format!("`{n}`"), *e));
    let tensors = work.tensors().into_iter();
    extents
        .chain(tensors.map(|t| (format!("the number of elements of `{}`", t.name), t.elements())))
        .collect()
}

/// An argument of a launch that is an extent or a number of elements at the calibration's size, and here that number cut
/// to 32 bits.
fn cut_argument(kernel: &Kernel, work: &Work, ran: &Ran) -> Option<Mechanism> {
    let family = &work.family;
    let small = family.at(calibration_size(family));
    let plan = kernel.plan(&small).ok()?;
    for (now, then) in ran.plan.launches().zip(plan.launches()) {
        for (j, (a, b)) in now.args.iter().zip(&then.args).enumerate() {
            let (PlanArg::Int(a, _), PlanArg::Int(b, _)) = (a, b) else { continue };
            for ((name, q), (_, p)) in quantities(family, work).into_iter().zip(quantities(family, &small)) {
                let cut = i128::from(q as u32) == *a || i128::from(q as u32 as i32) == *a;
                if i128::from(p) == *b && i128::from(q) != *a && cut {
                    let got = i64::try_from(*a).map_or_else(|_| a.to_string(), signed);
                    return Some(Mechanism {
                        sentence: format!(
                            "{name}, {}, reaches `{}` as {got}: argument {} of the launch is cut to 32 bits",
                            grouped(q),
                            now.kernel,
                            j + 1
                        ),
                        file: Some(kernel.file.clone()),
                        line: Some(now.line),
                    });
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use assay_tensor::DType;

    use super::*;
    use crate::work::Op;

    fn copy(n: u64) -> Work {
        let f = Family {
            op: Op::Copy,
            dtype: DType::F32,
            index_dtype: DType::I64,
            cross: "x",
            fixed: vec![0],
            grows: 0,
        };
        f.at(n)
    }

    #[test]
    fn each_reading_leads_where_its_name_says() {
        let i = (1u64 << 32) + 5;
        assert_eq!(Reading::Modulo.of(i, 1, 4), Some(5));
        assert_eq!(Reading::Signed.of(i, 1, 4), Some(5));
        assert_eq!(Reading::Signed.of(1 << 31, 1, 4), None);
        assert_eq!(Reading::Bytes.of((1 << 30) + 7, 1, 4), Some(7));
        assert_eq!(Reading::Bytes.of((1 << 30) + 7, 1, 2), Some((1 << 30) + 7));
        // Rows of 1000: the row that holds 2^32 begins before it, and only the next is misplaced.
        assert_eq!(Reading::Base.of(1 << 32, 1000, 4), Some(1 << 32));
        assert_eq!(Reading::Base.of((1 << 32) + 704, 1000, 4), Some(704));
    }

    #[test]
    fn a_misread_value_is_explained_by_its_mechanism_alone() {
        let work = copy((1 << 33) + 10);
        let inputs = Inputs::new(&work, 0);
        let judge = Judge { work: &work, inputs: &inputs, allowed: 0.0 };
        let names = |t: u64, got: f64| -> Vec<String> {
            judge
                .hypotheses()
                .into_iter()
                .filter(|(_, h)| judge.explains(h, t, got))
                .map(|(n, _)| n)
                .collect()
        };
        let t = (1u64 << 32) + (1 << 30) + 3;
        assert_eq!(names(t, inputs.at(0, 3)), ["`x` read with its byte offset modulo 2^32"]);
        // Rows of a copy have one element.
        let modulo = [
            "index modulo 2^32",
            "offset of the row or matrix modulo 2^32",
            "index as a signed 32-bit number",
        ];
        let modulo: Vec<String> = modulo.iter().map(|m| format!("`x` read with its {m}")).collect();
        assert_eq!(names(t, inputs.at(0, (1 << 30) + 3)), modulo);
        assert_eq!(names(9, inputs.at(0, 9 + (1 << 32)))[0], "`out` stored with its index modulo 2^32");
        assert!(names(9, 0.123).is_empty());
    }

    #[test]
    fn an_offset_below_a_tensor_is_a_wrapped_index_if_2_to_the_32_further_is_inside() {
        let mut f = Finding::new(FindingKind::OobRead, "m");
        f.buffer = Some("x".into());
        f.size_bytes = Some(4);
        f.offset_bytes = Some(-(1i64 << 33));
        assert_eq!(wrapped(&copy((1 << 31) + 1), &f), Some(("element", -(1 << 31), 1 << 31)));
        assert_eq!(wrapped(&copy(1 << 31), &f), None);
        f.offset_bytes = Some(-(1i64 << 31));
        assert_eq!(wrapped(&copy(1 << 30), &f), Some(("byte", -(1 << 31), 1 << 31)));
    }
}
