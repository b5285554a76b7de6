//! The sweep: calibration, sizes, bisection, both sides of each switch point; every record on disk before it counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_sweep::SweepError;
use assay_sweep::backend::hex;
use assay_sweep::drive::{Folder, Switch, floor, machine, pretty, switches, write_whole};
use assay_sweep::record::{self, Outcome, Record, TensorResult};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::blame::blame;
use crate::judge::{Mechanism, Reference, Verdict, judge};
use crate::kernel::Kernel;
use crate::plan::{boundaries, calibration_size, families, sizes};
use crate::run::{Job, Ran, Which, run};
use crate::work::{Family, Inputs, Op};

/// Seeds of the calibration; the first is that of the search, the others those of the runs beside a switch point.
const SEEDS: [u64; 3] = [0, 1, 2];
/// Switch points of a series that get runs with other seeds.
const MOST_SWITCHES: usize = 6;
/// A calibration may err by this much, relative to the largest value: more is no rounding.
const CEILING: f64 = 3e-2;

/// What to sweep and how.
pub struct Request<'a> {
    /// The kernels.
    pub kernel: &'a Kernel,
    /// The backend as the command line has it.
    pub backend: &'a str,
    /// Boundaries in place of the usual ones.
    pub boundaries: &'a [String],
    /// Shapes in place of the usual ones.
    pub shapes: &'a [String],
    /// The run folder.
    pub out: &'a Path,
    /// Whether to continue what is there.
    pub resume: bool,
    /// Runs at a time.
    pub jobs: usize,
    /// Added to every seed.
    pub seed: u64,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// Told of every finished run: done, planned so far, the record.
    pub progress: &'a (dyn Fn(usize, usize, &Record) + Sync),
}

/// A series: where its outcome changes, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The crossing tensor and what is fixed.
    pub shape: String,
    /// Element type.
    pub dtype: String,
    /// Always `contig`.
    pub layout: String,
    /// Always `random`.
    pub input: String,
    /// The extent that grows.
    pub extent: String,
    /// Elements of the crossing tensor for each step of it.
    pub elements_per_step: u64,
    /// The changes, ascending.
    pub switch_points: Vec<SwitchPoint>,
    /// The outcome at every size that was run.
    pub outcomes: Vec<(u64, Outcome)>,
    /// Why sizes were skipped, the first of each kind of reason.
    pub skipped: Vec<String>,
}

/// A change of outcome between neighbouring sizes, the second with its explanation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwitchPoint {
    /// The sizes and outcomes.
    #[serde(flatten)]
    pub switch: Switch,
    /// Elements of the crossing tensor at `below`.
    pub elements_below: u64,
    /// Elements of the crossing tensor at `above`.
    pub elements_above: u64,
    /// Why the side that is not right is not: of `above` unless that is right.
    pub mechanism: Option<Mechanism>,
}

/// What a sweep found; `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The operation.
    pub op: String,
    /// The backend.
    pub backend: String,
    /// Runs, calibration among them.
    pub runs: usize,
    /// Calibration runs.
    pub calibration: usize,
    /// Different sizes.
    pub batch_sizes: usize,
    /// Runs by outcome.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Tolerance by dtype.
    pub tolerance: BTreeMap<String, f64>,
    /// The series.
    pub series: Vec<Series>,
}

impl Summary {
    /// Every run that could be made is right.
    pub fn right(&self) -> bool {
        self.outcomes.iter().all(|(name, n)| *n == 0 || ["ok", "skipped"].contains(name))
    }

    /// Runs that were not made or that tell nothing.
    pub fn skipped(&self) -> usize {
        self.outcomes.get("skipped").copied().unwrap_or(0)
    }
}

/// Why a sweep ended without a summary.
#[derive(Debug)]
pub enum Ended {
    /// As other sweeps.
    Sweep(SweepError),
    /// The kernel is not right at the small size: what is wrong.
    Baseline(String),
}

impl From<SweepError> for Ended {
    fn from(e: SweepError) -> Ended {
        Ended::Sweep(e)
    }
}

/// A run of a series.
#[derive(Clone, Debug)]
struct Point {
    phase: &'static str,
    size: u64,
    seed: u64,
}

/// Runs a sweep, or what is left of it.
///
/// # Errors
/// A run folder of another sweep or in use, a kernel that is wrong at the small size, a disk that cannot be written, an
/// interrupt.
pub fn sweep(request: &Request<'_>) -> Result<Summary, Ended> {
    let kernel = request.kernel;
    let boundaries = boundaries(request.boundaries, kernel.dtype)?;
    let families = families(kernel.op, kernel.dtype, kernel.index_dtype, request.shapes)?;
    let manifest = manifest(request, &families, &boundaries);
    let folder = Folder::open(request.out, request.resume, &manifest["identity"], &manifest)?;
    let mut state =
        State { request, folder, done: HashMap::new(), order: Vec::new(), next_id: 0, tolerance: None };
    state.take_over()?;
    let mut setups = Vec::new();
    for family in families {
        setups.push(state.calibrate(family)?);
    }
    let tolerance = setups.iter().map(|s| s.tolerance).fold(0.0, f64::max);
    state.tolerance = Some(tolerance);
    for setup in &mut setups {
        state.series(setup, &boundaries)?;
    }
    let summary = state.summary(&setups)?;
    write_whole(&request.out.join("summary.json"), &pretty(&summary)?)?;
    Ok(summary)
}

/// A series and what its calibration showed.
struct Setup {
    family: Family,
    tolerance: f64,
    /// Warp instructions for an element, times 1024.
    per_1024: u64,
    /// What the small point shows of a sample.
    like: Option<Reference>,
}

struct State<'a> {
    request: &'a Request<'a>,
    folder: Folder,
    done: HashMap<String, Record>,
    order: Vec<String>,
    next_id: u64,
    tolerance: Option<f64>,
}

impl State<'_> {
    fn take_over(&mut self) -> Result<(), SweepError> {
        for r in record::read(self.request.out)? {
            self.next_id = self.next_id.max(r.run_id.as_u64().map_or(0, |v| v + 1));
            self.done.insert(r.fingerprint.as_str().unwrap_or_default().to_owned(), r);
        }
        Ok(())
    }

    /// Every block of a small size, under three seeds.
    fn calibrate(&mut self, family: Family) -> Result<Setup, Ended> {
        let size = calibration_size(&family);
        let points: Vec<Point> =
            SEEDS.map(|s| Point { phase: "calibration", size, seed: self.seed(s) }).to_vec();
        let tolerance = if family.op == Op::Bmm { CEILING } else { 0.0 };
        let mut setup = Setup { family, tolerance, per_1024: u64::MAX, like: None };
        let records = self.run_all(&setup, &points)?;
        let elements = setup.family.at(size).output_elements().max(1);
        let (mut error, mut per) = (0.0f64, 1u64);
        for r in &records {
            let compared = r.tensors.get("out").map_or(0, |t| t.elements_compared);
            if r.outcome()? != Outcome::Ok || compared != elements {
                let why = mechanism(r).map_or_else(
                    || {
                        r.message
                            .clone()
                            .unwrap_or_else(|| format!("{compared} of {elements} elements are written"))
                    },
                    |m| m.sentence,
                );
                return Err(Ended::Baseline(format!(
                    "the baseline of {} at {} = {size} is {} ({why}): a sweep needs a kernel that is right at the small \
                     size",
                    setup.family.shape_id(),
                    extent(&setup.family),
                    if r.cls == Outcome::Ok.name() { "incomplete".into() } else { format!("`{}`", r.cls) }
                )));
            }
            error = error.max(r.max_rel_err.unwrap_or(f64::INFINITY));
            let instructions = r.other.get("instructions").and_then(Value::as_u64).unwrap_or(0);
            per = per.max(instructions.saturating_mul(1024) / elements);
        }
        // What is only moved has to arrive as it is.
        setup.tolerance =
            if setup.family.op == Op::Bmm { floor(setup.family.dtype).max(10.0 * error) } else { 0.0 };
        setup.per_1024 = per;
        Ok(setup)
    }

    /// The runs of a series.
    fn series(&mut self, setup: &mut Setup, boundaries: &[u64]) -> Result<(), SweepError> {
        let sizes = sizes(&setup.family, boundaries);
        let seed = self.seed(SEEDS[0]);
        let search = |size: u64| Point { phase: "search", size, seed };
        // The small point first: it tells what a sample of a right size writes.
        let first = self.run_all(setup, &sizes.iter().take(1).map(|&s| search(s)).collect::<Vec<_>>())?;
        if let Some(r) = first.first().filter(|r| r.cls == Outcome::Ok.name()) {
            setup.like = reference(r);
        }
        self.run_all(setup, &sizes.iter().map(|&s| search(s)).collect::<Vec<_>>())?;
        loop {
            let outcomes = self.outcomes(&setup.family)?;
            let between: Vec<Point> = switches(&outcomes)
                .iter()
                .filter(|w| w.above - w.below > 1 && !budget_decides(w))
                .map(|w| Point { phase: "bisect", size: w.below + (w.above - w.below) / 2, seed })
                .collect();
            if between.is_empty() {
                break;
            }
            self.run_all(setup, &between)?;
        }
        let beside: BTreeSet<u64> = switches(&self.outcomes(&setup.family)?)
            .iter()
            .take(MOST_SWITCHES)
            .flat_map(|w| [w.below, w.above])
            .collect();
        let last: Vec<Point> = (beside.iter())
            .flat_map(|&size| SEEDS.iter().skip(1).map(move |&s| (size, s)))
            .map(|(size, s)| Point { phase: "final", size, seed: self.seed(s) })
            .collect();
        self.run_all(setup, &last)?;
        Ok(())
    }

    fn seed(&self, of_plan: u64) -> u64 {
        self.request.seed.wrapping_add(of_plan)
    }

    /// The records of `points`, those that are missing run now, in their order.
    fn run_all(&mut self, setup: &Setup, points: &[Point]) -> Result<Vec<Record>, SweepError> {
        let keys: Vec<String> = points.iter().map(|p| fingerprint(&setup.family, p)).collect();
        let mut missing: Vec<(usize, u64)> = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            if !self.order.contains(key) {
                self.order.push(key.clone());
            }
            let again = keys[..i].contains(key);
            if !self.done.contains_key(key) && !again {
                missing.push((i, self.next_id));
                self.next_id += 1;
            }
        }
        let planned = self.order.len();
        let already = planned - missing.len();
        let next = AtomicUsize::new(0);
        let count = AtomicUsize::new(0);
        let failed: Mutex<Option<SweepError>> = Mutex::new(None);
        let fresh: Mutex<Vec<(String, Record)>> = Mutex::new(Vec::new());
        let request = self.request;
        let folder = Mutex::new(&mut self.folder);
        std::thread::scope(|scope| {
            for _ in 0..request.jobs.max(1).min(missing.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        if lock(&failed).is_some() {
                            return;
                        }
                        let Some(&(i, id)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            return;
                        };
                        if request.interrupted.load(Ordering::Relaxed) {
                            lock(&failed).get_or_insert(SweepError::Interrupted);
                            return;
                        }
                        let r = one(request, setup, &points[i], id);
                        if let Err(e) = lock(&folder).append(&r) {
                            lock(&failed).get_or_insert(e);
                            return;
                        }
                        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
                        (request.progress)(already + n, planned, &r);
                        lock(&fresh).push((keys[i].clone(), r));
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.done.extend(fresh.into_inner().unwrap_or_else(PoisonError::into_inner));
        if let Some(e) = failed {
            return Err(e);
        }
        Ok(keys.iter().filter_map(|k| self.done.get(k).cloned()).collect())
    }

    /// The records of a series, in the order of their runs.
    fn of<'s>(&'s self, family: &'s Family) -> impl Iterator<Item = &'s Record> {
        let id = family.shape_id();
        self.order.iter().filter_map(|k| self.done.get(k)).filter(move |r| r.shape_id == id)
    }

    /// The outcomes of a series by size, ascending: of several seeds the first that is not right.
    fn outcomes(&self, family: &Family) -> Result<Vec<(u64, Outcome)>, SweepError> {
        let mut out: BTreeMap<u64, Outcome> = BTreeMap::new();
        for r in self.of(family).filter(|r| !r.calibration()) {
            let outcome = r.outcome()?;
            out.entry(r.b)
                .and_modify(|o| *o = if *o == Outcome::Ok { outcome } else { *o })
                .or_insert(outcome);
        }
        Ok(out.into_iter().collect())
    }

    fn summary(&self, setups: &[Setup]) -> Result<Summary, SweepError> {
        let records: Vec<&Record> = self.order.iter().filter_map(|k| self.done.get(k)).collect();
        let outcomes = record::counts(records.iter().copied())?;
        let mut series = Vec::new();
        for s in setups {
            let family = &s.family;
            let found = self.outcomes(family)?;
            let per = family.per_step();
            let explained = |size: u64| self.of(family).filter(|r| r.b == size).find_map(mechanism);
            let switch_points = switches(&found)
                .into_iter()
                .map(|w| SwitchPoint {
                    elements_below: w.below.saturating_mul(per),
                    elements_above: w.above.saturating_mul(per),
                    mechanism: explained(if w.to == Outcome::Ok { w.below } else { w.above }),
                    switch: w,
                })
                .collect();
            // Reasons differ by their numbers.
            let mut skipped: Vec<String> = Vec::new();
            let plain = |t: &str| t.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
            for r in self.of(family).filter(|r| r.cls == Outcome::Skipped.name()) {
                let why = r.message.as_deref().unwrap_or("");
                if !skipped.iter().any(|s| plain(s) == plain(why)) {
                    skipped.push(why.to_owned());
                }
            }
            series.push(Series {
                shape: family.shape_id(),
                dtype: family.dtype.name().into(),
                layout: "contig".into(),
                input: "random".into(),
                extent: extent(family).into(),
                elements_per_step: per,
                switch_points,
                outcomes: found,
                skipped,
            });
        }
        let sizes: BTreeSet<u64> = records.iter().map(|r| r.b).collect();
        Ok(Summary {
            op: self.request.kernel.op.name().into(),
            backend: self.request.backend.to_owned(),
            runs: records.len(),
            calibration: records.iter().filter(|r| r.calibration()).count(),
            batch_sizes: sizes.len(),
            outcomes,
            tolerance: [(self.request.kernel.dtype.name().to_owned(), self.tolerance.unwrap_or(0.0))].into(),
            series,
        })
    }
}

/// Whether a change is between runs that the device stopped and runs that it gave up: where, depends on the budget.
fn budget_decides(w: &Switch) -> bool {
    let stopped = |o: Outcome| matches!(o, Outcome::Error | Outcome::Timeout);
    stopped(w.from) && stopped(w.to)
}

fn extent(family: &Family) -> &'static str {
    family.op.extents().get(family.grows).copied().unwrap_or("N")
}

fn series_id(family: &Family) -> String {
    format!("{} {} {} contig", family.op.name(), family.shape_id(), family.dtype)
}

fn fingerprint(family: &Family, p: &Point) -> String {
    let compare = if p.phase == "calibration" { "full" } else { "sample" };
    let text = format!("{} {}={} seed={} {compare}", series_id(family), extent(family), p.size, p.seed);
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// Runs a point and makes its record.
fn one(request: &Request<'_>, setup: &Setup, point: &Point, id: u64) -> Record {
    let started = Instant::now();
    let work = setup.family.at(point.size);
    let inputs = Inputs::new(&work, point.seed);
    let whole = point.phase == "calibration";
    let job = Job {
        kernel: request.kernel,
        work: &work,
        inputs: &inputs,
        seed: point.seed,
        which: if whole { Which::All } else { Which::Sample },
        per_1024: (!whole).then_some(setup.per_1024),
        window: None,
    };
    let ran = run(&job);
    let mut verdict = judge(request.kernel, &work, &inputs, &ran, setup.tolerance, setup.like);
    if let (Some(operand), Some(m)) = (verdict.misread, &mut verdict.mechanism)
        && m.line.is_none()
        && let Some((file, line)) = verdict.wrong_at.first().and_then(|&t| blame(&job, &ran, t, operand))
    {
        (m.file, m.line) = (file, line);
    }
    let mut r = record_of(request, setup, point, id, &ran, verdict);
    r.wall_sec = json!((started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
    r
}

fn record_of(request: &Request<'_>, setup: &Setup, point: &Point, id: u64, ran: &Ran, v: Verdict) -> Record {
    let family = &setup.family;
    let work = family.at(point.size);
    let whole = point.phase == "calibration";
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
    let numel = |name: &str| work.tensor(name).map_or(0, |t| t.elements());
    let fixed = |name: &str| {
        let at = family.op.extents().iter().position(|e| *e == name);
        at.filter(|&k| k != family.grows).and_then(|k| work.extents.get(k).copied()).unwrap_or(1)
    };
    let (m, k, n) = match family.op {
        Op::Bmm => (fixed("M"), fixed("K"), fixed("N")),
        Op::Transpose => (1, 1, fixed("C")),
        Op::Gather => (1, 1, fixed("D")),
        Op::Copy => (1, 1, 1),
    };
    let row = work.row_of("out").max(1);
    let rows = |indices: &mut dyn Iterator<Item = u64>| {
        let mut out: Vec<[u64; 2]> = Vec::new();
        let (mut count, mut last) = (0u64, None);
        for r in indices.map(|i| i / row) {
            if last == Some(r) {
                continue;
            }
            count += 1;
            let runs = out.len();
            match out.last_mut() {
                Some(run) if run[1] + 1 == r => run[1] = r,
                _ if runs < 64 => out.push([r, r]),
                _ => {}
            }
            last = Some(r);
        }
        (count, out)
    };
    let (compared_rows, _) = rows(&mut ran.written.iter().map(|w| w.0));
    let (bad_rows, bad) = rows(&mut v.wrong_at.iter().copied());
    let finite = v.error.is_finite().then_some(v.error);
    let mut tensors = BTreeMap::new();
    if v.outcome != Outcome::Skipped {
        tensors.insert(
            "out".to_owned(),
            TensorResult {
                cls: v.outcome.name().into(),
                max_rel_err: finite,
                n_batches_bad: bad_rows,
                n_batches_compared: compared_rows,
                bad,
                elements_compared: v.compared,
                elements_wrong: v.wrong,
                hyp_match: v.hypotheses.clone(),
                ..TensorResult::default()
            },
        );
    }
    let mut other = Map::new();
    other.insert("blocks".into(), json!({"executed": ran.executed, "total": ran.total}));
    other.insert("instructions".into(), json!(ran.instructions));
    other.insert("elements_written".into(), json!(ran.written.len()));
    other.insert("highest_written".into(), json!(v.highest));
    other.insert("last_written".into(), json!(v.seen.last));
    other.insert("written_share".into(), json!(v.seen.share));
    other.insert("mechanism".into(), json!(v.mechanism));
    other.insert("findings".into(), json!(ran.findings));
    other.insert("notes".into(), json!(ran.plan.notes));
    Record {
        schema: json!(1),
        run_id: json!(id),
        fingerprint: json!(fingerprint(family, point)),
        ts: json!((now * 1000.0).round() / 1000.0),
        phase: point.phase.into(),
        series_id: json!(series_id(family)),
        op: family.op.name().into(),
        backend: request.backend.to_owned(),
        device: "cpu device".into(),
        shape_id: family.shape_id(),
        m,
        k,
        n,
        cross: json!(family.cross),
        dtype: family.dtype.name().into(),
        layout: "contig".into(),
        kind: "random".into(),
        b: point.size,
        seed: point.seed,
        compare: if whole { "full" } else { "sample" }.into(),
        tol: Some(setup.tolerance),
        pad_batches: None,
        numel_a: numel(family.op.inputs()[0]),
        numel_b: family.op.inputs().get(1).map_or(0, |n| numel(n)),
        numel_out: numel("out"),
        crossing_numel: numel(family.cross),
        torch: String::new(),
        cls: v.outcome.name().into(),
        rc: None,
        message: v.message,
        stage: (v.outcome == Outcome::Error).then(|| "forward".into()),
        max_rel_err: finite,
        n_batches_bad: bad_rows,
        n_batches_compared: compared_rows,
        hyp_match: v.hypotheses,
        elements: "every element that the blocks of the sample write".into(),
        cls_out: None,
        cls_grad_a: None,
        cls_grad_b: None,
        tensors,
        operators: ran.plan.launches().map(|l| l.kernel.clone()).collect(),
        environment: Value::Null,
        wall_sec: Value::Null,
        other,
    }
}

/// What a record says of the sample.
fn reference(r: &Record) -> Option<Reference> {
    let last = r.other.get("last_written")?.as_bool()?;
    Some(Reference { last, share: r.other.get("written_share")?.as_f64()? })
}

/// The mechanism in a record.
fn mechanism(r: &Record) -> Option<Mechanism> {
    serde_json::from_value(r.other.get("mechanism")?.clone()).ok().flatten()
}

fn manifest(request: &Request<'_>, families: &[Family], boundaries: &[u64]) -> Value {
    let kernel = request.kernel;
    let series: Vec<String> = families.iter().map(series_id).collect();
    json!({
        "identity": {
            "schema": 1,
            "op": kernel.op.name(),
            "backend": request.backend,
            "kernel_sha256": hex(&Sha256::digest(kernel.source.as_bytes())),
            "series": series,
            "boundaries": boundaries,
            "version": env!("CARGO_PKG_VERSION"),
        },
        "machine": machine(None),
    })
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
