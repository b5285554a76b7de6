//! One line of a sweep's `records.jsonl`: what was run and what came of it. The fields are those of the boundary paper's
//! rows, with ours beside them; rows of the paper are read by the same type.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::dtype;
use crate::error::SweepError;
use crate::geometry::{Layout, Shape};
use crate::point::{Compare, Phase, Point};
use crate::values::Kind;
use crate::worker::Ended;

/// How a run ended (boundary paper, §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every compared element is right.
    Ok,
    /// An exception was raised.
    Error,
    /// The process ended without a result.
    Crash,
    /// No result within the limit.
    Timeout,
    /// Elements are wrong, and nobody said so.
    Wrong,
    /// Wrong, and at least 90% of the wrong elements are zero.
    Truncated,
    /// The inputs read back from the device are not those that were sent.
    InputCorrupt,
    /// Not run: more memory than allowed, or the allocation failed.
    #[serde(alias = "skipped_memory", alias = "skipped_budget")]
    Skipped,
}

impl Outcome {
    /// Every outcome, as the summary counts them.
    pub const ALL: [Outcome; 8] = [
        Outcome::Ok,
        Outcome::Error,
        Outcome::Crash,
        Outcome::Timeout,
        Outcome::Wrong,
        Outcome::Truncated,
        Outcome::InputCorrupt,
        Outcome::Skipped,
    ];

    /// The name in records and summaries.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Crash => "crash",
            Outcome::Timeout => "timeout",
            Outcome::Wrong => "wrong",
            Outcome::Truncated => "truncated",
            Outcome::InputCorrupt => "input_corrupt",
            Outcome::Skipped => "skipped",
        }
    }

    /// The outcome of that name.
    pub fn parse(name: &str) -> Option<Outcome> {
        match name {
            "skipped_memory" | "skipped_budget" => Some(Outcome::Skipped),
            _ => Outcome::ALL.into_iter().find(|o| o.name() == name),
        }
    }

    /// Wrong values without a word: what a guard must stop.
    pub fn silent(self) -> bool {
        matches!(self, Outcome::Wrong | Outcome::Truncated | Outcome::InputCorrupt)
    }
}

/// What one tensor's comparison found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorResult {
    /// `ok`, `wrong` or `truncated`.
    pub cls: String,
    /// Largest max|out - ref| / max|ref| of a batch; `null` where a value is not finite.
    pub max_rel_err: Option<f64>,
    /// Batches with a wrong element.
    pub n_batches_bad: u64,
    /// Batches compared.
    pub n_batches_compared: u64,
    /// The wrong batches among those compared, as first and last of each run; at most 64 runs.
    #[serde(default)]
    pub bad: Vec<[u64; 2]>,
    /// Elements compared.
    #[serde(default)]
    pub elements_compared: u64,
    /// Wrong elements.
    #[serde(default)]
    pub elements_wrong: u64,
    /// Wrong elements that are zero.
    #[serde(default)]
    pub elements_zero: u64,
    /// Which statements about the place of the wrong batches hold for all that were compared.
    #[serde(default)]
    pub extents: Vec<String>,
    /// For each hypothesis the fraction of wrong elements that it reproduces.
    #[serde(default)]
    pub hyp_match: BTreeMap<String, f64>,
    /// Of an index encoded by batch: read batch minus expected batch, and for how many wrong elements.
    #[serde(default)]
    pub shifts: BTreeMap<String, u64>,
    /// Of an index encoded by row and column: [expected row, column, read row, column] of the first wrong elements.
    #[serde(default)]
    pub misplaced: Vec<[u64; 4]>,
}

/// Other writers put `null` where nothing was measured.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of these fields.
    #[serde(default)]
    pub schema: Value,
    /// Unique within the file.
    #[serde(default)]
    pub run_id: Value,
    /// Identifies the run across files.
    #[serde(default)]
    pub fingerprint: Value,
    /// Seconds since 1970.
    #[serde(default)]
    pub ts: Value,
    /// Why it was run.
    #[serde(default, deserialize_with = "or_default")]
    pub phase: String,
    /// The series.
    #[serde(default)]
    pub series_id: Value,
    /// The operation.
    #[serde(default, deserialize_with = "or_default")]
    pub op: String,
    /// What ran it.
    #[serde(default, deserialize_with = "or_default")]
    pub backend: String,
    /// The device.
    #[serde(default, deserialize_with = "or_default")]
    pub device: String,
    /// The shape's name.
    #[serde(default, deserialize_with = "or_default")]
    pub shape_id: String,
    /// Rows of `a`.
    #[serde(rename = "M")]
    pub m: u64,
    /// Reduction length.
    #[serde(rename = "K")]
    pub k: u64,
    /// Columns of `b`.
    #[serde(rename = "N")]
    pub n: u64,
    /// The crossing tensor.
    #[serde(default)]
    pub cross: Value,
    /// Element type.
    pub dtype: String,
    /// How operands are stored.
    pub layout: String,
    /// What they hold.
    pub kind: String,
    /// Batches.
    #[serde(rename = "B")]
    pub b: u64,
    /// Seed of the values.
    #[serde(default, deserialize_with = "or_default")]
    pub seed: u64,
    /// `sample` or `full`.
    #[serde(default, deserialize_with = "or_default")]
    pub compare: String,
    /// Relative error from which a batch is wrong.
    #[serde(default)]
    pub tol: Option<f64>,
    /// Leading batches (offset layout).
    #[serde(default)]
    pub pad_batches: Option<u64>,
    /// Elements of `a`.
    #[serde(default, deserialize_with = "or_default")]
    pub numel_a: u64,
    /// Elements of `b`.
    #[serde(default, deserialize_with = "or_default")]
    pub numel_b: u64,
    /// Elements of the output.
    #[serde(default, deserialize_with = "or_default")]
    pub numel_out: u64,
    /// Elements of the crossing tensor.
    #[serde(default, deserialize_with = "or_default")]
    pub crossing_numel: u64,
    /// The framework's version.
    #[serde(default, deserialize_with = "or_default")]
    pub torch: String,
    /// How it ended.
    pub cls: String,
    /// Exit status of the worker where it crashed; negative: the signal.
    #[serde(default)]
    pub rc: Option<i64>,
    /// The exception or the last words of a crash.
    #[serde(default)]
    pub message: Option<String>,
    /// Where it was raised: `forward`, `backward`, ….
    #[serde(default)]
    pub stage: Option<String>,
    /// As in the first wrong tensor, else the first.
    #[serde(default)]
    pub max_rel_err: Option<f64>,
    /// Likewise.
    #[serde(default, deserialize_with = "or_default")]
    pub n_batches_bad: u64,
    /// Likewise.
    #[serde(default, deserialize_with = "or_default")]
    pub n_batches_compared: u64,
    /// Likewise.
    #[serde(default, deserialize_with = "or_default")]
    pub hyp_match: BTreeMap<String, f64>,
    /// How the elements of a compared batch were chosen.
    #[serde(default, deserialize_with = "or_default")]
    pub elements: String,
    /// Class of the output in a backward run.
    #[serde(default)]
    pub cls_out: Option<String>,
    /// Class of the gradient of `a`.
    #[serde(default)]
    pub cls_grad_a: Option<String>,
    /// Class of the gradient of `b`.
    #[serde(default)]
    pub cls_grad_b: Option<String>,
    /// Every tensor's comparison.
    #[serde(default, deserialize_with = "or_default")]
    pub tensors: BTreeMap<String, TensorResult>,
    /// Operators that the framework dispatched.
    #[serde(default, deserialize_with = "or_default")]
    pub operators: Vec<String>,
    /// What the worker says of itself.
    #[serde(default)]
    pub environment: Value,
    /// Seconds from start to end.
    #[serde(default)]
    pub wall_sec: Value,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

impl Record {
    /// The outcome.
    ///
    /// # Errors
    /// A class that is none.
    pub fn outcome(&self) -> Result<Outcome, SweepError> {
        Outcome::parse(&self.cls).ok_or_else(|| SweepError::bad(format!("`{}` is not an outcome", self.cls)))
    }

    /// Records that the run ended before it was done.
    pub(crate) fn end(&mut self, ended: Ended) {
        let outcome = match ended {
            Ended::TimedOut => Outcome::Timeout,
            Ended::Crashed { status, words } => {
                self.rc = Some(status);
                self.message = (!words.is_empty()).then_some(words);
                Outcome::Crash
            }
            Ended::Raised { stage, message } => {
                let skipped = stage == "allocate";
                self.stage = Some(stage);
                self.message = Some(message);
                if skipped { Outcome::Skipped } else { Outcome::Error }
            }
        };
        outcome.name().clone_into(&mut self.cls);
    }

    /// Whether it is a calibration run.
    pub fn calibration(&self) -> bool {
        self.phase.starts_with("calib")
    }

    /// Whether it ran a backward pass.
    pub fn backward(&self) -> bool {
        self.cls_out.is_some()
            || self.op.contains("back")
            || self.op.contains("grad")
            || self.op.contains("bwd")
    }

    /// The kind of its inputs; kinds of other writers by what their names say.
    pub fn input(&self) -> Kind {
        let k = self.kind.to_ascii_lowercase();
        if k.contains("rand") || k.is_empty() {
            return Kind::Random;
        }
        let batch = k.contains("batch");
        let of_b = k.starts_with('b') && !k.starts_with("batch") || k.ends_with("_b") || k.contains("_b_");
        match (of_b, batch) {
            (false, true) => Kind::ABatch,
            (false, false) => Kind::ARc,
            (true, true) => Kind::BBatch,
            (true, false) => Kind::BRc,
        }
    }

    /// The run that it records.
    ///
    /// # Errors
    /// Extents, dtypes and layouts that are none.
    pub fn point(&self) -> Result<Point, SweepError> {
        let layout: Layout = match self.layout.as_str() {
            "contiguous" => Layout::Contig,
            "sliced" => Layout::Slice,
            other => other.parse()?,
        };
        let shape: Shape = format!("{},{},{}", self.m, self.k, self.n).parse()?;
        let phase = if self.calibration() { Phase::Calibration } else { Phase::Search };
        Point {
            phase,
            shape,
            dtype: dtype(&self.dtype)
                .ok_or_else(|| SweepError::bad(format!("`{}` is not a dtype", self.dtype)))?,
            layout,
            kind: self.input(),
            batch: self.b,
            offset: if layout == Layout::Offset { self.pad_batches.unwrap_or(0) } else { 0 },
            seed: self.seed,
            compare: if self.compare == "full" { Compare::Full } else { Compare::Sample },
            backward: self.backward(),
        }
        .checked()
    }

    /// The version of the backend.
    pub fn version(&self) -> String {
        if !self.torch.is_empty() {
            return self.torch.clone();
        }
        for key in ["torch_req", "torch_version"] {
            if let Some(v) = self.other.get(key).and_then(Value::as_str) {
                return v.to_owned();
            }
        }
        String::new()
    }
}

/// Runs by outcome, every outcome among them.
///
/// # Errors
/// A class that is none.
pub fn counts<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<BTreeMap<&'static str, usize>, SweepError> {
    let mut out: BTreeMap<&'static str, usize> = Outcome::ALL.iter().map(|o| (o.name(), 0)).collect();
    for r in records {
        *out.entry(r.outcome()?.name()).or_insert(0) += 1;
    }
    Ok(out)
}

/// The longest line that is read.
const MAX_LINE: usize = 4 << 20;

/// The records of a run folder or of a file of JSON lines. A last line that was cut by a killed run is left out.
///
/// # Errors
/// Files that cannot be read, and lines that are no records, with their number.
pub fn read(path: &Path) -> Result<Vec<Record>, SweepError> {
    let file = if path.is_dir() { path.join(RECORDS) } else { path.to_path_buf() };
    let open = std::fs::File::open(&file).map_err(SweepError::reading(&file))?;
    let mut reader = BufReader::new(open);
    let mut out = Vec::new();
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let n = std::io::Read::take(&mut reader, MAX_LINE as u64)
            .read_until(b'\n', &mut line)
            .map_err(SweepError::reading(&file))?;
        if n == 0 {
            break;
        }
        let whole = line.last() == Some(&b'\n');
        if !whole && n >= MAX_LINE {
            return Err(SweepError::bad(format!("{}: line {number} is longer than 4 MiB", file.display())));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let parsed = serde_json::from_slice::<Record>(&line).or_else(|e| {
            // Python writes numbers that JSON does not have.
            without_special_numbers(&line).map_or(Err(e), |text| serde_json::from_slice(&text))
        });
        match parsed {
            Ok(r) => out.push(r),
            // What a kill cut off was never finished; it is run again.
            Err(_) if !whole => break,
            Err(e) => {
                return Err(SweepError::bad(format!(
                    "{}: line {number} is no record of a sweep: {e}",
                    file.display()
                )));
            }
        }
    }
    Ok(out)
}

/// The line with `NaN`, `Infinity` and `-Infinity` outside strings replaced by `null`; `None` where it has none.
fn without_special_numbers(line: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut out = Vec::with_capacity(line.len());
    let (mut at, mut quoted, mut found) = (0, false, false);
    while at < line.len() {
        let rest = &line[at..];
        if !quoted && let Some(word) = WORDS.iter().find(|w| rest.starts_with(w)) {
            out.extend_from_slice(b"null");
            at += word.len();
            found = true;
            continue;
        }
        if quoted && rest[0] == b'\\' && rest.len() > 1 {
            out.extend_from_slice(&rest[..2]);
            at += 2;
            continue;
        }
        quoted ^= rest[0] == b'"';
        out.push(rest[0]);
        at += 1;
    }
    found.then_some(out)
}

/// The file of a run folder that holds the records.
pub const RECORDS: &str = "records.jsonl";

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with the fields of the paper's records, as Python writes them.
    const THEIRS: &str = r#"{"schema": 2, "run_id": "a1", "fingerprint": "f", "host_tag": "m2ultra", "ts": "2026-09-01T00:00:00", "phase": "search", "series_id": "s", "op": "bmm", "device": "mps", "shape_id": "in_base", "M": 256, "K": 256, "N": 64, "cross": "a", "dtype": "fp32", "layout": "aT", "kind": "random", "B": 32768, "seed": null, "compare": "sample", "tol": 1.5e-05, "pad_batches": null, "numel_a": 2147483648, "bytes_a": 8589934592, "crossing_log2": 31.0, "probe": null, "torch_req": "2.14.0", "cls": "error", "rc": 0, "max_rel_err": NaN, "n_batches_bad": null, "n_batches_compared": null, "hyp_match": null, "message": "a \"NaN\" in text", "wall_sec": 5.8}"#;

    #[test]
    fn rows_of_other_writers_are_read_with_their_nulls_and_special_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        let good = THEIRS.replace("\"error\"", "\"ok\"").replace("32768", "4096");
        std::fs::write(&path, format!("{THEIRS}\n{good}\n")).unwrap();
        let rows = read(&path).unwrap();
        assert_eq!(rows.len(), 2);
        let r = &rows[0];
        assert_eq!((r.outcome().unwrap(), r.version().as_str(), r.seed), (Outcome::Error, "2.14.0", 0));
        assert_eq!(r.message.as_deref(), Some("a \"NaN\" in text"));
        let p = r.point().unwrap();
        assert_eq!((p.layout, p.dtype, p.batch), (Layout::AT, assay_tensor::DType::F32, 32_768));
        // Rules, the guard and comparisons take them.
        let learned = crate::rules::learn(&rows).unwrap();
        assert_eq!(learned.rules.last().unwrap().outcome, Outcome::Ok);
        assert_eq!(crate::guard::evaluate(&rows, 1 << 31).unwrap()[0].runs, 2);
        assert!(crate::differ::compare(&rows, &rows).unwrap().equal());
    }

    #[test]
    fn sizes_that_64_bits_cannot_count_are_refused() {
        let r: Record = serde_json::from_str(&THEIRS.replace("NaN", "null")).unwrap();
        for (b, offset) in [(0, None), (1 << 40, None), (u64::MAX, None), (4096, Some(u64::MAX))] {
            let mut r = Record { b, pad_batches: offset, ..r.clone() };
            if offset.is_some() {
                r.layout = "offset".into();
            }
            assert!(r.point().unwrap_err().to_string().contains("no size to sweep"), "{b} {offset:?}");
        }
    }

    #[test]
    fn kinds_of_other_writers_are_told_by_their_names() {
        let mut r: Record = serde_json::from_str(&THEIRS.replace("NaN", "null")).unwrap();
        for (name, kind) in [
            ("random", Kind::Random),
            ("a_batch", Kind::ABatch),
            ("a_rc", Kind::ARc),
            ("b_batch", Kind::BBatch),
            ("b_rc", Kind::BRc),
            ("idx_b_rc", Kind::BRc),
            ("batch_b", Kind::BBatch),
            ("index_a_batch", Kind::ABatch),
        ] {
            name.clone_into(&mut r.kind);
            assert_eq!(r.input(), kind, "{name}");
        }
    }
}
