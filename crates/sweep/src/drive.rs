//! The sweep itself: phases in order, runs side by side, every record on disk before the next run begins, and a run folder
//! that an interrupted sweep continues from.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use assay_tensor::DType;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::backend::{Backend, hex, physical_memory};
use crate::error::SweepError;
use crate::plan::{Mode, Plan, Series};
use crate::point::{Phase, Point};
use crate::record::{self, Outcome, RECORDS, Record};
use crate::run::{Setting, exchange_bytes};
use crate::values::Kind;
use crate::worker::Exchange;

/// What to sweep and how.
pub struct Request<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The backend.
    pub backend: &'a Backend,
    /// The run folder.
    pub out: &'a Path,
    /// Whether to continue what is there.
    pub resume: bool,
    /// Runs at a time.
    pub jobs: usize,
    /// Whether full comparisons compare every element on emulated devices.
    pub whole: bool,
    /// Seconds of a sampled and of a full comparison.
    pub limits: (u64, u64),
    /// Bytes of memory to reckon with; what the system says where `None`.
    pub memory: Option<u64>,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// Told of every finished run: done, planned so far, the record.
    pub progress: &'a (dyn Fn(usize, usize, &Record) + Sync),
}

/// A change of outcome between neighbouring sizes of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// The last size (batches; leading batches in the offset mode) before it.
    pub below: u64,
    /// The first size after it.
    pub above: u64,
    /// The outcome at `below`.
    pub from: Outcome,
    /// The outcome at `above`.
    pub to: Outcome,
}

/// A series and where its outcome changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSummary {
    /// `M,K,N`, with the crossing tensor.
    pub shape: String,
    /// Element type.
    pub dtype: String,
    /// Layout.
    pub layout: String,
    /// Inputs.
    pub input: String,
    /// The changes, ascending.
    pub switch_points: Vec<Switch>,
    /// The outcome at every size that was run with random inputs.
    pub outcomes: Vec<(u64, Outcome)>,
}

/// What a sweep found; `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The plan's name.
    pub plan: String,
    /// The backend.
    pub backend: String,
    /// Runs, calibration among them.
    pub runs: usize,
    /// Calibration runs.
    pub calibration: usize,
    /// Different batch sizes.
    pub batch_sizes: usize,
    /// Runs by outcome.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Tolerance by dtype: ten times the largest calibration error, with its floor.
    pub tolerance: BTreeMap<String, f64>,
    /// The series.
    pub series: Vec<SeriesSummary>,
}

/// The smallest tolerance of a dtype (boundary paper, Eq. 2 and its plan).
pub fn floor(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 1e-6,
        DType::F16 => 1e-3,
        _ => 1e-2,
    }
}

/// Runs a sweep, or what is left of it.
///
/// # Errors
/// A run folder of another sweep or in use, a device that is wrong at the small point, a worker that breaks the protocol,
/// a disk that cannot be written, an interrupt.
pub fn sweep(request: &Request<'_>) -> Result<Summary, SweepError> {
    let plan = request.plan;
    let id = identity(request)?;
    let folder =
        Folder::open(request.out, request.resume, &id, &manifest_of(request, id.clone(), &BTreeMap::new()))?;
    let scratch = tempfile::tempdir().map_err(SweepError::writing(&std::env::temp_dir()))?;
    let mut boundaries: Vec<u64> = vec![1 << 31, 1 << 32];
    for dtype in plan.series()?.iter().map(|s| s.dtype) {
        boundaries.extend(plan.boundaries_in(dtype)?);
    }
    boundaries.sort_unstable();
    boundaries.dedup();
    let setting = Setting {
        backend: request.backend,
        scratch: scratch.path(),
        boundaries: &boundaries,
        whole: request.whole,
        limits: request.limits,
        threads: 1.max(std::thread::available_parallelism().map_or(1, usize::from) / request.jobs.max(1)),
        memory: request.backend.memory(request.memory),
        interrupted: request.interrupted,
    };
    let mut state = State { request, setting, folder, done: HashMap::new(), order: Vec::new(), next_id: 0 };
    state.take_over()?;

    let calibration = plan.calibration()?;
    let records = state.run_all(&calibration, None)?;
    let mut tolerance: BTreeMap<DType, f64> = BTreeMap::new();
    for (point, r) in calibration.iter().zip(&records) {
        if r.outcome()? == Outcome::Skipped {
            continue;
        }
        if r.outcome()? != Outcome::Ok {
            return Err(SweepError::bad(format!(
                "the baseline of {} is `{}`{}: a sweep needs a device that is right at the small point",
                point.series(),
                r.cls,
                r.message.as_ref().map_or(String::new(), |m| format!(" ({m})"))
            )));
        }
        // Largest over the tensors.
        let error = r.tensors.values().filter_map(|t| t.max_rel_err).fold(0.0, f64::max);
        let entry = tolerance.entry(point.dtype).or_insert_with(|| floor(point.dtype));
        *entry = entry.max(10.0 * error);
    }
    state.folder.manifest(&manifest_of(request, id, &tolerance))?;
    let tolerances = Some(&tolerance);

    let series = plan.series()?;
    let mut first = Vec::new();
    for s in &series {
        first.extend(plan.search(s)?);
    }
    state.run_all(&first, tolerances)?;
    if plan.mode != Mode::Points {
        loop {
            let mut between = Vec::new();
            for s in &series {
                between.extend(bisection(plan, s, &state.outcomes(plan, s)?)?);
            }
            if between.is_empty() {
                break;
            }
            state.run_all(&between, tolerances)?;
        }
    }
    let mut rest = Vec::new();
    for s in &series {
        rest.extend(plan.index(s)?);
    }
    state.run_all(&rest, tolerances)?;
    let mut last = Vec::new();
    for s in &series {
        let switches: Vec<(u64, u64, bool)> = switches(&state.outcomes(plan, s)?)
            .into_iter()
            .filter(|w| (w.from == Outcome::Ok) != (w.to == Outcome::Ok))
            .map(|w| (w.below, w.above, w.from == Outcome::Ok))
            .collect();
        last.extend(plan.finals(s, &switches)?);
    }
    state.run_all(&last, tolerances)?;

    let all = state.records();
    let mut summary = summarise(plan, request.backend, &all)?;
    summary.tolerance = tolerance.iter().map(|(d, t)| (d.name().to_owned(), *t)).collect();
    write_whole(&request.out.join("summary.json"), &pretty(&summary)?)?;
    crate::page::write(request.out, &summary, &all, &boundaries)?;
    Ok(summary)
}

struct State<'a> {
    request: &'a Request<'a>,
    setting: Setting<'a>,
    folder: Folder,
    done: HashMap<String, Record>,
    order: Vec<String>,
    next_id: u64,
}

impl State<'_> {
    /// The records of an earlier start.
    fn take_over(&mut self) -> Result<(), SweepError> {
        for r in record::read(&self.request.out.join(RECORDS))? {
            self.next_id = self.next_id.max(r.run_id.as_u64().map_or(0, |v| v + 1));
            let key = r.fingerprint.as_str().unwrap_or_default().to_owned();
            self.done.insert(key, r);
        }
        Ok(())
    }

    /// The records of `points`, those that are missing run now, in their order.
    fn run_all(
        &mut self,
        points: &[Point],
        tolerances: Option<&BTreeMap<DType, f64>>,
    ) -> Result<Vec<Record>, SweepError> {
        let keys: Vec<String> = points.iter().map(Point::fingerprint).collect();
        let mut missing: Vec<(usize, u64)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (i, key) in keys.iter().enumerate() {
            if !self.order.contains(key) && !seen.contains(key) {
                self.order.push(key.clone());
            }
            if !self.done.contains_key(key) && seen.insert(key.clone()) {
                missing.push((i, self.next_id));
                self.next_id += 1;
            }
        }
        let planned = self.order.len();
        let already = self.order.len() - missing.len();
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<SweepError>> = Mutex::new(None);
        let fresh: Mutex<Vec<(String, Record)>> = Mutex::new(Vec::new());
        let file = Mutex::new(&mut self.folder.records);
        let path = self.request.out.join(RECORDS);
        let setting = &self.setting;
        std::thread::scope(|scope| {
            for _ in 0..self.request.jobs.max(1).min(missing.len().max(1)) {
                scope.spawn(|| {
                    // One exchange for all runs of a thread: the system clears its pages once.
                    let mut exchange = match Exchange::new(exchange_bytes(points)) {
                        Ok(exchange) => exchange,
                        Err(e) => {
                            lock(&failed).get_or_insert(e.into());
                            return;
                        }
                    };
                    loop {
                        if lock(&failed).is_some() {
                            return;
                        }
                        let Some(&(i, id)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            return;
                        };
                        let point = &points[i];
                        let tolerance = tolerances
                            .map(|t| t.get(&point.dtype).copied().unwrap_or_else(|| floor(point.dtype)));
                        let outcome = setting.run(point, tolerance, id, &mut exchange).and_then(|r| {
                            append(&mut lock(&file), &path, &r)?;
                            Ok(r)
                        });
                        match outcome {
                            Ok(r) => {
                                let mut fresh = lock(&fresh);
                                (self.request.progress)(already + fresh.len() + 1, planned, &r);
                                fresh.push((keys[i].clone(), r));
                            }
                            Err(e) => {
                                lock(&failed).get_or_insert(e);
                                return;
                            }
                        }
                    }
                });
            }
        });
        if let Some(e) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(e);
        }
        self.done.extend(fresh.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(keys.iter().filter_map(|k| self.done.get(k).cloned()).collect())
    }

    /// The outcomes of a series with random inputs and the seed of the search, by size, ascending.
    fn outcomes(&self, plan: &Plan, series: &Series) -> Result<Vec<(u64, Outcome)>, SweepError> {
        let mut out = Vec::new();
        for r in self.done.values() {
            if matches!(r.phase.as_str(), "search" | "bisect") && belongs(plan, series, r) {
                let size = if plan.mode == Mode::Offset { r.pad_batches.unwrap_or(0) } else { r.b };
                out.push((size, r.outcome()?));
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    fn records(&self) -> Vec<Record> {
        self.order.iter().filter_map(|k| self.done.get(k).cloned()).collect()
    }
}

fn belongs(plan: &Plan, series: &Series, r: &Record) -> bool {
    r.m == series.shape.m
        && r.k == series.shape.k
        && r.n == series.shape.n
        && r.dtype == series.dtype.name()
        && r.layout == series.layout.name()
        && r.kind == Kind::Random.name()
        && r.backward() == plan.backward
}

/// Halfway between neighbours that differ and are more than one step apart.
pub fn between(outcomes: &[(u64, Outcome)]) -> Vec<u64> {
    let apart = switches(outcomes).into_iter().filter(|w| w.above - w.below > 1);
    apart.map(|w| w.below + (w.above - w.below) / 2).collect()
}

/// The points of a bisection, as the search runs them.
fn bisection(plan: &Plan, series: &Series, outcomes: &[(u64, Outcome)]) -> Result<Vec<Point>, SweepError> {
    let first = plan.search(series)?;
    let like = first.first().ok_or_else(|| SweepError::bad("a series without points"))?;
    let point = |size| plan.point(series, size, Phase::Bisect, Kind::Random, 0, like.compare);
    between(outcomes).into_iter().map(point).collect()
}

/// The changes of outcome between neighbours.
pub fn switches(outcomes: &[(u64, Outcome)]) -> Vec<Switch> {
    outcomes
        .windows(2)
        .filter(|p| p[0].1 != p[1].1 && p[0].1 != Outcome::Skipped && p[1].1 != Outcome::Skipped)
        .map(|p| Switch { below: p[0].0, above: p[1].0, from: p[0].1, to: p[1].1 })
        .collect()
}

/// The summary of the records of a plan; tolerances are the caller's.
fn summarise(plan: &Plan, backend: &Backend, records: &[Record]) -> Result<Summary, SweepError> {
    let outcomes = record::counts(records)?;
    let mut series = Vec::new();
    for s in plan.series()? {
        let mut found: Vec<(u64, Outcome)> = Vec::new();
        for r in records.iter().filter(|r| !r.calibration() && belongs(plan, &s, r)) {
            let size = if plan.mode == Mode::Offset { r.pad_batches.unwrap_or(0) } else { r.b };
            found.push((size, r.outcome()?));
        }
        found.sort_unstable();
        found.dedup();
        series.push(SeriesSummary {
            shape: Point {
                ..plan.point(&s, 1, Phase::Search, Kind::Random, 0, crate::point::Compare::Sample)?
            }
            .shape_id(),
            dtype: s.dtype.name().into(),
            layout: s.layout.name().into(),
            input: Kind::Random.name().into(),
            switch_points: switches(&found),
            outcomes: found,
        });
    }
    let sizes: BTreeSet<u64> = records.iter().map(|r| r.b).collect();
    Ok(Summary {
        plan: plan.name.clone(),
        backend: backend.name(),
        runs: records.len(),
        calibration: records.iter().filter(|r| r.calibration()).count(),
        batch_sizes: sizes.len(),
        outcomes,
        tolerance: BTreeMap::new(),
        series,
    })
}

/// The open run folder: its records, and a lock so that no second process writes here.
pub struct Folder {
    path: PathBuf,
    records: File,
    _lock: File,
}

impl Folder {
    /// Opens `out`, made where it is not there. `identity` is what makes two starts the same sweep; `manifest` is written
    /// first and must hold it under that name.
    ///
    /// # Errors
    /// A folder in use, one that holds a sweep where `resume` is not set, a sweep of another identity, an unwritable one.
    pub fn open(out: &Path, resume: bool, identity: &Value, manifest: &Value) -> Result<Folder, SweepError> {
        let path = out.to_path_buf();
        std::fs::create_dir_all(&path).map_err(SweepError::writing(&path))?;
        let lock_path = path.join(".lock");
        let lock_file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(SweepError::writing(&lock_path))?;
        if lock_file.try_lock().is_err() {
            return Err(SweepError::bad(format!("{} is in use by another sweep", path.display())));
        }
        let file = path.join(RECORDS);
        let at = path.join("manifest.json");
        // A start that recorded nothing, of a mistyped interpreter say, left nothing to continue.
        if std::fs::metadata(&file).is_ok_and(|m| m.is_file() && m.len() > 0) {
            if !resume {
                return Err(SweepError::bad(format!(
                    "{} holds a sweep already; --resume continues it, or give another --out",
                    path.display()
                )));
            }
            let text = std::fs::read_to_string(&at).map_err(SweepError::reading(&at))?;
            let there: Value =
                serde_json::from_str(&text).map_err(|e| SweepError::bad(format!("{}: {e}", at.display())))?;
            if there.get("identity") != Some(identity) {
                return Err(SweepError::bad(format!(
                    "{} is a sweep of another plan, backend or version; give another --out",
                    path.display()
                )));
            }
        } else {
            write_whole(&at, &pretty(manifest)?)?;
        }
        let mut records = OpenOptions::new()
            .create(true)
            .read(true)
            .truncate(false)
            .write(true)
            .open(&file)
            .map_err(SweepError::writing(&file))?;
        cut_torn_line(&mut records, &file)?;
        Ok(Folder { path, records, _lock: lock_file })
    }

    /// Writes the manifest again.
    ///
    /// # Errors
    /// An unwritable folder.
    pub fn manifest(&self, manifest: &Value) -> Result<(), SweepError> {
        write_whole(&self.path.join("manifest.json"), &pretty(manifest)?)
    }

    /// Adds a record; it is on disk when this returns.
    ///
    /// # Errors
    /// A full or failing disk.
    pub fn append(&mut self, r: &Record) -> Result<(), SweepError> {
        append(&mut self.records, &self.path.join(RECORDS), r)
    }
}

/// Cuts off what a killed process left of a line, so that the next record begins a line.
fn cut_torn_line(file: &mut File, path: &Path) -> Result<(), SweepError> {
    let text = std::fs::read(path).map_err(SweepError::reading(path))?;
    let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    file.set_len(whole as u64).map_err(SweepError::writing(path))?;
    file.seek(SeekFrom::End(0)).map_err(SweepError::writing(path))?;
    Ok(())
}

fn append(file: &mut File, path: &Path, r: &Record) -> Result<(), SweepError> {
    let mut line = serde_json::to_vec(r).map_err(|e| SweepError::bad(e.to_string()))?;
    line.push(b'\n');
    file.write_all(&line).and_then(|()| file.sync_data()).map_err(SweepError::writing(path))
}

/// What makes two starts the same sweep.
fn identity(request: &Request<'_>) -> Result<Value, SweepError> {
    let plan = serde_json::to_string(request.plan).map_err(|e| SweepError::bad(e.to_string()))?;
    Ok(json!({
        "schema": 1,
        "plan": request.plan.name,
        "plan_sha256": hex(&Sha256::digest(plan.as_bytes())),
        "backend": request.backend.name(),
        "device": request.backend.device(),
        "worker_sha256": request.backend.sha256(),
        "full": request.whole,
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

fn manifest_of(request: &Request<'_>, identity: Value, tolerance: &BTreeMap<DType, f64>) -> Value {
    let tolerance: BTreeMap<&str, f64> = tolerance.iter().map(|(d, t)| (d.name(), *t)).collect();
    let mut all = machine(request.memory);
    if let Some(map) = all.as_object_mut() {
        map.insert("identity".into(), identity);
        map.insert("plan".into(), serde_json::to_value(request.plan).unwrap_or(Value::Null));
        map.insert("tolerance".into(), json!(tolerance));
        map.insert("limits_seconds".into(), json!({"sample": request.limits.0, "full": request.limits.1}));
    }
    all
}

/// What a manifest says of the machine.
pub fn machine(memory: Option<u64>) -> Value {
    json!({
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "os_build": os_build(),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_bytes": memory.or_else(physical_memory),
    })
}

/// The system's own description of itself, empty where it has none.
fn os_build() -> String {
    let read = |program: &str, args: &[&str]| {
        let out = std::process::Command::new(program).args(args).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    read("sw_vers", &[]).or_else(|| read("uname", &["-srm"])).unwrap_or_default()
}

/// JSON for a file.
///
/// # Errors
/// A value that is no JSON.
pub fn pretty(value: &impl Serialize) -> Result<String, SweepError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| SweepError::bad(e.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// Writes a file whole or not at all.
///
/// # Errors
/// A folder that cannot be written.
pub fn write_whole(path: &Path, text: &str) -> Result<(), SweepError> {
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(SweepError::writing(path))
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
