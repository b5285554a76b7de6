//! One run: a fresh worker, its inputs, its result, the verdict, the record.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::backend::{Backend, over_memory};
use crate::emulate::Selection;
use crate::error::SweepError;
use crate::geometry::{Product, View};
use crate::judge::{Source, Stop, compare, grid, sampled_batches};
use crate::point::{Compare, Phase, Point};
use crate::record::{Outcome, Record, TensorResult};
use crate::values::{decode, encode};
use crate::worker::{Exchange, Worker};

/// What every run of a sweep shares.
pub struct Setting<'a> {
    /// What runs it.
    pub backend: &'a Backend,
    /// A folder for the worker's file.
    pub scratch: &'a Path,
    /// Element counts at which an index may wrap.
    pub boundaries: &'a [u64],
    /// Whether full comparisons of an emulated device compare every element.
    pub whole: bool,
    /// Seconds of a sampled and of a full comparison.
    pub limits: (u64, u64),
    /// Threads of a worker.
    pub threads: usize,
    /// Bytes of memory to reckon with; see [`over_memory`].
    pub memory: Option<u64>,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
}

/// Bytes of an exchange for these points: a batch of the largest tensor at least.
pub fn exchange_bytes(points: &[Point]) -> u64 {
    let batch = points.iter().map(|p| p.shape.crossing_elements() * p.dtype.size_bytes()).max().unwrap_or(0);
    batch.max(64 << 20)
}

/// Largest error that a calibration may have: more is no rounding.
fn calibration_ceiling(dtype: assay_tensor::DType) -> f64 {
    match dtype {
        assay_tensor::DType::F64 => 1e-9,
        assay_tensor::DType::F32 => 1e-3,
        assay_tensor::DType::F16 => 3e-2,
        _ => 1e-1,
    }
}

impl Setting<'_> {
    /// Runs `point`; `tolerance` is `None` for a calibration.
    ///
    /// # Errors
    /// The sweep cannot go on: a worker that breaks the protocol, no room for the exchange, an interrupt.
    pub fn run(
        &self,
        point: &Point,
        tolerance: Option<f64>,
        id: u64,
        exchange: &mut Exchange,
    ) -> Result<Record, SweepError> {
        let started = Instant::now();
        let mut record = blank(self.backend, point, tolerance, id);
        let end = self.attempt(point, tolerance, exchange, &mut record);
        record.wall_sec = json!((started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        match end {
            Ok(()) => {}
            Err(Stop::Failed(e)) => return Err(e),
            Err(Stop::Ended(ended)) => record.end(ended),
        }
        Ok(record)
    }

    fn attempt(
        &self,
        point: &Point,
        tolerance: Option<f64>,
        exchange: &mut Exchange,
        record: &mut Record,
    ) -> Result<(), Stop> {
        if let Some(why) = self.backend.refuses(point) {
            return Err(SweepError::Unsupported(why).into());
        }
        if let Some(why) = over_memory(point.device_bytes(), self.memory) {
            record.cls = Outcome::Skipped.name().into();
            record.message = Some(why);
            return Ok(());
        }
        let limit = if point.compare == Compare::Full { self.limits.1 } else { self.limits.0 };
        let command = self.backend.command(self.scratch)?;
        let mut worker = Worker::start(command, Duration::from_secs(limit), self.interrupted)?;
        let ready = worker.ask(&self.backend.run_request(point, exchange, self.threads))?;
        record.environment = ready.get("environment").cloned().unwrap_or(Value::Null);
        if let Some(v) = record.environment.get("torch").and_then(Value::as_str) {
            v.clone_into(&mut record.torch);
        }
        if ready.get("generates").and_then(Value::as_bool) != Some(true) {
            send_inputs(point, &mut worker, exchange)?;
        }
        let computed = worker.ask(&json!({"type": "compute"}))?;
        record.operators = computed
            .get("operators")
            .and_then(Value::as_array)
            .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        check_outputs(point, &computed)?;
        let mut source = FromWorker { worker: &mut worker, exchange, point };
        if let Some(operand) = corrupt_input(point, &mut source)? {
            record.cls = Outcome::InputCorrupt.name().into();
            record.message =
                Some(format!("`{operand}` read back from the device differs from what was sent"));
            worker.quit();
            return Ok(());
        }
        let sampled_elements =
            point.compare == Compare::Full && matches!(self.backend, Backend::Emulated(_)) && !self.whole;
        record.elements = if sampled_elements {
            "the corners and up to 44 seeded elements of each batch".into()
        } else {
            "every element of each batch".into()
        };
        let limit = tolerance.unwrap_or(calibration_ceiling(point.dtype));
        for product in point.products() {
            let selection = if sampled_elements {
                grid(product.left.rows, product.right.cols, point.seed)
            } else {
                Selection::Whole
            };
            let result = compare(point, &product, self.boundaries, limit, &selection, &mut source)?;
            record.tensors.insert(product.output.to_owned(), result);
        }
        worker.quit();
        conclude(point, record);
        Ok(())
    }
}

/// The record of a run before anything came of it.
fn blank(backend: &Backend, point: &Point, tolerance: Option<f64>, id: u64) -> Record {
    let g = point.geometry();
    let phase = match point.phase {
        Phase::Calibration => "calibration",
        Phase::Search => "search",
        Phase::Bisect => "bisect",
        Phase::Index => "index",
        Phase::Final => "final",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
    Record {
        schema: json!(1),
        run_id: json!(id),
        fingerprint: json!(point.fingerprint()),
        ts: json!((now * 1000.0).round() / 1000.0),
        phase: phase.into(),
        series_id: json!(point.series()),
        op: if point.backward { "bmm_backward".into() } else { "bmm".into() },
        backend: backend.name(),
        device: backend.device(),
        shape_id: point.shape_id(),
        m: point.shape.m,
        k: point.shape.k,
        n: point.shape.n,
        cross: json!(point.shape.crossing()),
        dtype: point.dtype.name().into(),
        layout: point.layout.name().into(),
        kind: point.kind.name().into(),
        b: point.batch,
        seed: point.seed,
        compare: if point.compare == Compare::Full { "full".into() } else { "sample".into() },
        tol: tolerance,
        pad_batches: (point.layout == crate::geometry::Layout::Offset).then_some(point.offset),
        numel_a: g.a.numel(),
        numel_b: g.b.numel(),
        numel_out: point.batch * point.shape.out(),
        crossing_numel: point.batch * point.shape.crossing_elements(),
        torch: match backend {
            Backend::Emulated(d) => d.version.clone(),
            Backend::Torch { version, .. } => version.clone(),
        },
        cls: Outcome::Ok.name().into(),
        rc: None,
        message: None,
        stage: None,
        max_rel_err: None,
        n_batches_bad: 0,
        n_batches_compared: 0,
        hyp_match: BTreeMap::new(),
        elements: String::new(),
        cls_out: None,
        cls_grad_a: None,
        cls_grad_b: None,
        tensors: BTreeMap::new(),
        operators: Vec::new(),
        environment: Value::Null,
        wall_sec: Value::Null,
        other: serde_json::Map::new(),
    }
}

/// The verdict of a run from those of its tensors: the first that is not right, else right.
fn conclude(point: &Point, record: &mut Record) {
    let order = ["out", "grad_a", "grad_b"];
    let tensors: Vec<&TensorResult> = order.iter().filter_map(|n| record.tensors.get(*n)).collect();
    let Some(&shown) = tensors.iter().find(|t| t.cls != "ok").or(tensors.first()) else { return };
    record.cls = shown.cls.clone();
    record.max_rel_err = shown.max_rel_err;
    record.n_batches_bad = shown.n_batches_bad;
    record.n_batches_compared = shown.n_batches_compared;
    record.hyp_match = shown.hyp_match.clone();
    if point.backward {
        let of = |n: &str| record.tensors.get(n).map(|t| t.cls.clone());
        (record.cls_out, record.cls_grad_a, record.cls_grad_b) = (of("out"), of("grad_a"), of("grad_b"));
    }
}

fn check_outputs(point: &Point, computed: &Value) -> Result<(), Stop> {
    let broken = |why: String| Stop::Failed(SweepError::Worker(why));
    let outputs = computed
        .get("outputs")
        .and_then(Value::as_array)
        .ok_or_else(|| broken(format!("a reply to `compute` without outputs: {computed}")))?;
    for product in point.products() {
        let found = outputs.iter().find(|o| o.get("name").and_then(Value::as_str) == Some(product.output));
        let Some(found) = found else { return Err(broken(format!("no output `{}`", product.output))) };
        let want = gradient_shape(point, &product);
        if found.get("shape") != Some(&json!(want)) || found.get("dtype") != Some(&json!(point.dtype)) {
            return Err(broken(format!("`{}` is not {want:?} of {}: {found}", product.output, point.dtype)));
        }
    }
    Ok(())
}

fn gradient_shape(point: &Point, product: &Product) -> [u64; 3] {
    [point.batch, product.left.rows, product.right.cols]
}

/// Streams every operand's storage to the worker, as many batches at a time as the exchange holds.
fn send_inputs(point: &Point, worker: &mut Worker<'_>, exchange: &mut Exchange) -> Result<(), Stop> {
    let g = point.geometry();
    let mut views = vec![g.a, g.b];
    if point.backward {
        views.push(g.g());
    }
    let size = point.dtype.size_bytes();
    let (mut values, mut scratch) = (Vec::new(), Vec::new());
    for view in views {
        let source = point.values(view.role);
        let per = view.per_batch();
        let all = view.skip + view.batches;
        let chunk = (exchange.len() / (per * size)).max(1);
        let mut first = 0;
        while first < all {
            let n = chunk.min(all - first);
            values.resize(per as usize, 0.0);
            for j in 0..n {
                source.storage_batch(&view, first + j, &mut values, &mut scratch);
                let at = (j * per * size) as usize;
                let room = exchange.bytes().get_mut(at..at + (per * size) as usize);
                let room =
                    room.ok_or_else(|| SweepError::Worker("a batch does not fit the exchange".into()))?;
                encode(point.dtype, &values, room);
            }
            worker.ask(&json!({"type": "write", "tensor": view.role.name(), "first": first, "count": n}))?;
            first += n;
        }
    }
    Ok(())
}

/// The operand that does not read back as it was sent, in the sampled batches.
fn corrupt_input(point: &Point, source: &mut FromWorker<'_, '_>) -> Result<Option<&'static str>, Stop> {
    let batches = sampled_batches(point);
    let g = point.geometry();
    for view in [g.a, g.b] {
        let values = point.values(view.role);
        let mut sent = vec![0.0f32; view.per_batch() as usize];
        let mut differs = false;
        source.operand(&view, &batches, &mut |batch, found| {
            if differs {
                return;
            }
            values.batch(batch as i64, &mut sent);
            differs = found.iter().zip(&sent).any(|(&f, &s)| f != f64::from(s));
        })?;
        if differs {
            return Ok(Some(view.role.name()));
        }
    }
    Ok(None)
}

/// Reads tensors from a worker, as many batches at a time as the exchange holds.
struct FromWorker<'w, 'i> {
    worker: &'w mut Worker<'i>,
    exchange: &'w mut Exchange,
    point: &'w Point,
}

impl FromWorker<'_, '_> {
    fn operand(
        &mut self,
        view: &View,
        batches: &[u64],
        sink: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), Stop> {
        self.pieces(view.role.name(), view.per_batch(), batches, &Selection::Whole, sink)
    }

    fn pieces(
        &mut self,
        tensor: &str,
        per: u64,
        batches: &[u64],
        selection: &Selection,
        sink: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), Stop> {
        let bytes = per * self.point.dtype.size_bytes();
        let chunk = (self.exchange.len() / bytes.max(1)).clamp(1, 16_384) as usize;
        let (rows, cols) = match selection {
            Selection::Whole => (Value::Null, Value::Null),
            Selection::Grid(r, c) => (json!(r), json!(c)),
        };
        let mut values = Vec::new();
        for part in batches.chunks(chunk) {
            let request =
                json!({"type": "read", "tensor": tensor, "batches": part, "rows": rows, "cols": cols});
            let reply = self.worker.ask(&request)?;
            let want = part.len() as u64 * bytes;
            if reply.get("bytes").and_then(Value::as_u64) != Some(want) {
                return Err(Stop::Failed(SweepError::Worker(format!(
                    "{want} bytes of `{tensor}` expected: {reply}"
                ))));
            }
            for (i, &batch) in part.iter().enumerate() {
                let at = i * bytes as usize;
                values.clear();
                decode(self.point.dtype, &self.exchange.bytes()[at..at + bytes as usize], &mut values);
                sink(batch, &values);
            }
        }
        Ok(())
    }
}

impl Source for FromWorker<'_, '_> {
    fn read(
        &mut self,
        tensor: &str,
        batches: &[u64],
        selection: &Selection,
        sink: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), Stop> {
        let dims =
            self.point.products().iter().find(|p| p.output == tensor).map(|p| (p.left.rows, p.right.cols));
        let Some((rows, cols)) = dims else {
            return Err(Stop::Failed(SweepError::Worker(format!("no tensor `{tensor}`"))));
        };
        self.pieces(tensor, selection.len(rows, cols), batches, selection, sink)
    }
}

/// Runs `point` on an emulated device within this process: for tests and for devices whose mechanisms neither abort nor
/// hang. The record is that of [`Setting::run`], but for times and the worker's environment.
///
/// # Errors
/// The device cannot be read.
pub fn in_process(
    device: &crate::device::Device,
    point: &Point,
    tolerance: Option<f64>,
    boundaries: &[u64],
) -> Result<Record, SweepError> {
    use crate::emulate::{Computed, Emulated};

    struct Direct<'a>(&'a Emulated, &'a Point);

    impl Source for Direct<'_> {
        fn read(
            &mut self,
            tensor: &str,
            batches: &[u64],
            selection: &Selection,
            sink: &mut dyn FnMut(u64, &[f64]),
        ) -> Result<(), Stop> {
            for &b in batches {
                let made = self.0.read(tensor, &[b], selection)?;
                let mut bytes = vec![0u8; made.bytes(self.1.dtype)];
                made.encode(self.1.dtype, &mut bytes)?;
                let mut wide = Vec::new();
                decode(self.1.dtype, &bytes, &mut wide);
                sink(b, &wide);
            }
            Ok(())
        }
    }

    let backend = Backend::Emulated(Box::new(device.clone()));
    let mut record = blank(&backend, point, tolerance, 0);
    let mut emulated = Emulated::new(device.clone(), point.clone());
    let ended = match emulated.compute() {
        Computed::Done => None,
        Computed::Raised { stage, message } => Some((Outcome::Error, Some(stage), message)),
        Computed::Aborts(message) => Some((Outcome::Crash, None, message)),
        Computed::Hangs => Some((Outcome::Timeout, None, String::new())),
    };
    if let Some((outcome, stage, message)) = ended {
        record.cls = outcome.name().into();
        record.stage = stage.map(str::to_owned);
        record.message = Some(message);
        return Ok(record);
    }
    for product in point.products() {
        let limit = tolerance.unwrap_or(calibration_ceiling(point.dtype));
        let mut source = Direct(&emulated, point);
        match compare(point, &product, boundaries, limit, &Selection::Whole, &mut source) {
            Ok(result) => {
                record.tensors.insert(product.output.to_owned(), result);
            }
            Err(Stop::Failed(e)) => return Err(e),
            Err(Stop::Ended(_)) => return Err(SweepError::bad("a device within this process cannot end")),
        }
    }
    conclude(point, &mut record);
    Ok(record)
}
