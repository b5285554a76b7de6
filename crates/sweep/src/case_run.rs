//! Sweeps of cases: one run a dtype and size, a fresh worker each, every compared batch against the reference in float64.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_tensor::DType;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::backend::{Backend, hex, over_memory};
use crate::cases::{Answers, Case, sizes};
use crate::condition::dtype as dtype_named;
use crate::drive::{Folder, SeriesSummary, Summary, between, machine, pretty, switches, write_whole};
use crate::error::SweepError;
use crate::judge::{Stop, Tally};
use crate::record::{self, Outcome, RECORDS, Record, TensorResult};
use crate::values::{Kind, decode, encode};
use crate::worker::{Exchange, VERSION, Worker};

/// What to sweep and how.
pub struct Request<'a> {
    /// The cases.
    pub cases: &'a [Case],
    /// The backend.
    pub backend: &'a Backend,
    /// The run folder.
    pub out: &'a Path,
    /// Whether to continue what is there.
    pub resume: bool,
    /// Boundaries of the crossing tensor.
    pub boundaries: &'a [String],
    /// Only these element types; all of a case where empty.
    pub dtypes: &'a [DType],
    /// Seconds of a run.
    pub limit: u64,
    /// Bytes of memory to reckon with.
    pub memory: Option<u64>,
    /// Threads of a worker.
    pub threads: usize,
    /// The seed of the values.
    pub seed: u64,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// Told of every finished run.
    pub progress: &'a dyn Fn(usize, usize, &Record),
}

/// The smallest tolerance of an output: rounding of the operation itself is measured at the small size.
fn floor(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 1e-5,
        DType::F16 => 5e-3,
        DType::BF16 => 4e-2,
        _ => 0.0,
    }
}

/// Runs the cases.
///
/// # Errors
/// As `drive::sweep`.
pub fn sweep(request: &Request<'_>) -> Result<Summary, SweepError> {
    let text = serde_json::to_string(request.cases).map_err(|e| SweepError::bad(e.to_string()))?;
    let id = json!({
        "schema": 1,
        "plan": "cases",
        "plan_sha256": hex(&Sha256::digest(text.as_bytes())),
        "boundaries": request.boundaries,
        "seed": request.seed,
        "backend": request.backend.name(),
        "device": request.backend.device(),
        "worker_sha256": request.backend.sha256(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let mut manifest = machine(request.memory);
    if let Some(map) = manifest.as_object_mut() {
        map.insert("identity".into(), id.clone());
    }
    let mut folder = Folder::open(request.out, request.resume, &id, &manifest)?;
    let mut done: HashMap<String, Record> = record::read(&request.out.join(RECORDS))?
        .into_iter()
        .map(|r| (r.fingerprint.as_str().unwrap_or_default().to_owned(), r))
        .collect();
    let scratch = tempfile::tempdir().map_err(SweepError::writing(&std::env::temp_dir()))?;
    let mut exchange = Exchange::new(64 << 20)?;
    let mut plan = Vec::new();
    for case in request.cases {
        for name in &case.dtypes {
            let dtype =
                dtype_named(name).ok_or_else(|| SweepError::bad(format!("`{name}` is not a dtype")))?;
            if request.dtypes.is_empty() || request.dtypes.contains(&dtype) {
                plan.push((case, dtype, sizes(case, dtype, request.boundaries)?));
            }
        }
    }
    if plan.is_empty() {
        return Err(SweepError::bad("no case has these element types"));
    }
    let marks = crate::page::marks(request.boundaries, plan.iter().map(|p| p.1));
    let mut planned: usize = plan.iter().map(|p| p.2.len()).sum();
    let mut records: Vec<Record> = Vec::new();
    let mut series = Vec::new();
    let mut tolerances = BTreeMap::new();
    for (case, dtype, sizes) in plan {
        let mut outcomes: Vec<(u64, Outcome)> = Vec::new();
        let mut todo = sizes;
        let mut tolerance: Option<f64> = None;
        while !todo.is_empty() {
            for batch in std::mem::take(&mut todo) {
                let key = fingerprint(case, dtype, batch);
                let r = match done.remove(&key) {
                    Some(r) => r,
                    None => {
                        let run = Run { request, scratch: scratch.path(), case, dtype, batch };
                        let r = run.record(tolerance, records.len() as u64, &key, &mut exchange)?;
                        folder.append(&r)?;
                        r
                    }
                };
                let outcome = r.outcome()?;
                if tolerance.is_none() {
                    let error = r.max_rel_err.unwrap_or(0.0);
                    let t =
                        case.tolerance.unwrap_or_else(|| (10.0 * error).max(floor(case.output_dtype(dtype))));
                    tolerance = Some(t);
                    tolerances.insert(format!("{} {dtype}", case.name), t);
                }
                outcomes.push((batch, outcome));
                records.push(r);
                (request.progress)(records.len(), planned, &records[records.len() - 1]);
            }
            outcomes.sort_unstable();
            todo = between(&outcomes);
            planned += todo.len();
        }
        series.push(SeriesSummary {
            shape: case.name.clone(),
            dtype: dtype.name().into(),
            layout: "contig".into(),
            input: "random".into(),
            switch_points: switches(&outcomes),
            outcomes,
        });
    }
    let summary = Summary {
        plan: "cases".into(),
        backend: request.backend.name(),
        runs: records.len(),
        calibration: records.iter().filter(|r| r.calibration()).count(),
        batch_sizes: records.iter().map(|r| r.b).collect::<BTreeSet<_>>().len(),
        outcomes: record::counts(&records)?,
        tolerance: tolerances,
        series,
    };
    write_whole(&request.out.join("summary.json"), &pretty(&summary)?)?;
    crate::page::write(request.out, &summary, &records, &marks)?;
    Ok(summary)
}

fn fingerprint(case: &Case, dtype: DType, batch: u64) -> String {
    let text = format!("{}|{dtype}|{batch}|1", serde_json::to_string(case).unwrap_or_default());
    hex(&Sha256::digest(text.as_bytes())[..16])
}

/// The batches of a comparison: evenly spaced, the ends, and those around multiples of the boundaries in the crossing tensor
/// and the output.
fn batches(case: &Case, dtype: DType, operands: u64) -> Vec<u64> {
    let all = operands * case.output.times;
    let last = all - 1;
    let n = 64u64;
    let mut out: Vec<u64> = (0..n)
        .map(|x| u64::try_from(u128::from(x) * u128::from(last) / u128::from(n - 1)).unwrap_or(last))
        .collect();
    out.extend(0..4.min(all));
    out.extend(all.saturating_sub(8)..all);
    let size = case.output_dtype(dtype).size_bytes();
    for per in [case.crossing, case.output_elements()] {
        for step in [1u64 << 31, 1 << 32, (1 << 32) / size] {
            for multiple in 1..=64u64 {
                let at = step.saturating_mul(multiple) / per;
                if at > last + 2 {
                    break;
                }
                out.extend(at.saturating_sub(2)..=(at + 2).min(last));
            }
        }
    }
    out.retain(|&b| b <= last);
    out.sort_unstable();
    out.dedup();
    out
}

struct Run<'a> {
    request: &'a Request<'a>,
    scratch: &'a Path,
    case: &'a Case,
    dtype: DType,
    batch: u64,
}

impl Run<'_> {
    fn record(
        &self,
        tolerance: Option<f64>,
        id: u64,
        key: &str,
        exchange: &mut Exchange,
    ) -> Result<Record, SweepError> {
        let started = Instant::now();
        let mut r = self.blank(tolerance, id, key)?;
        match self.attempt(tolerance, &mut r, exchange) {
            Ok(()) => {}
            Err(Stop::Failed(e)) => return Err(e),
            Err(Stop::Ended(ended)) => r.end(ended),
        }
        r.wall_sec = json!((started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        Ok(r)
    }

    fn blank(&self, tolerance: Option<f64>, id: u64, key: &str) -> Result<Record, SweepError> {
        let case = self.case;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let fields = json!({
            "schema": 1,
            "run_id": id,
            "fingerprint": key,
            "ts": (now * 1000.0).round() / 1000.0,
            "phase": if tolerance.is_none() { "calibration" } else { "search" },
            "series_id": format!("{}/{}", case.name, self.dtype),
            "op": case.name,
            "backend": self.request.backend.name(),
            "device": self.request.backend.device(),
            "shape_id": case.name,
            "M": case.output_elements(),
            "K": 1,
            "N": 1,
            "cross": "out",
            "dtype": self.dtype,
            "layout": "contig",
            "kind": "random",
            "B": self.batch,
            "seed": self.request.seed,
            "compare": "sample",
            "tol": tolerance,
            "numel_out": self.batch * case.output.times * case.output_elements(),
            "crossing_numel": self.batch * case.crossing,
            "torch": self.request.backend.version(),
            "cls": "ok",
            "elements": "every element of each batch",
            "call": case.call_at(self.batch, self.dtype),
        });
        serde_json::from_value(fields).map_err(|e| SweepError::bad(e.to_string()))
    }

    fn attempt(&self, tolerance: Option<f64>, r: &mut Record, exchange: &mut Exchange) -> Result<(), Stop> {
        let (case, batch, dtype) = (self.case, self.batch, self.dtype);
        let request = self.request;
        if let Some(why) = over_memory(case.bytes(batch, dtype), request.backend.memory(request.memory)) {
            r.cls = Outcome::Skipped.name().into();
            r.message = Some(why);
            return Ok(());
        }
        let command = request.backend.command(self.scratch)?;
        let mut worker = Worker::start(command, Duration::from_secs(request.limit), request.interrupted)?;
        let ready = worker.ask(&self.first_request(exchange))?;
        r.environment = ready.get("environment").cloned().unwrap_or(Value::Null);
        if let Some(v) = r.environment.get("torch").and_then(Value::as_str) {
            v.clone_into(&mut r.torch);
        }
        let answers = Answers::new(case, batch, dtype, request.seed)?;
        if ready.get("generates").and_then(Value::as_bool) != Some(true) {
            self.send(&answers, &mut worker, exchange)?;
        }
        let computed = worker.ask(&json!({"type": "compute"}))?;
        r.operators = computed
            .get("operators")
            .and_then(Value::as_array)
            .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        self.check(&computed)?;
        let result = self.compare(&answers, tolerance, &mut worker, exchange)?;
        worker.quit();
        r.cls.clone_from(&result.cls);
        r.max_rel_err = result.max_rel_err;
        r.n_batches_bad = result.n_batches_bad;
        r.n_batches_compared = result.n_batches_compared;
        r.tensors.insert("out".into(), result);
        Ok(())
    }

    fn first_request(&self, exchange: &Exchange) -> Value {
        let (case, request) = (self.case, self.request);
        let operands: Vec<Value> = case
            .operands
            .iter()
            .map(|o| {
                let mut storage = vec![self.batch];
                storage.extend(&o.shape);
                json!({
                    "name": o.name,
                    "dtype": case.operand_dtype(o, self.dtype),
                    "storage": storage,
                    "skip": 0,
                    "transpose": false,
                    "place": o.place,
                })
            })
            .collect();
        let mut first = json!({
            "type": "run",
            "version": VERSION,
            "exchange": {"path": exchange.path(), "bytes": exchange.len()},
            "device": request.backend.device(),
            "threads": request.threads,
            "seed": request.seed,
            "call": case.call_at(self.batch, self.dtype),
            "operands": operands,
            "outputs": ["out"],
            "backward": Value::Null,
        });
        if let (Backend::Emulated(device), Some(map)) = (request.backend, first.as_object_mut()) {
            map.insert("emulated".into(), json!(device));
            map.insert(
                "case".into(),
                json!({"case": case, "batch": self.batch, "dtype": self.dtype, "seed": request.seed}),
            );
        }
        first
    }

    fn send(
        &self,
        answers: &Answers<'_>,
        worker: &mut Worker<'_>,
        exchange: &mut Exchange,
    ) -> Result<(), Stop> {
        let mut values = Vec::new();
        for (which, o) in self.case.operands.iter().enumerate() {
            let dtype = self.case.operand_dtype(o, self.dtype);
            let bytes = (o.shape.iter().product::<u64>() * dtype.size_bytes()) as usize;
            let chunk = (exchange.len() / bytes as u64).clamp(1, 1 << 20);
            let mut first = 0;
            while first < self.batch {
                let n = chunk.min(self.batch - first);
                for j in 0..n {
                    answers.operand(which, first + j, &mut values);
                    let at = j as usize * bytes;
                    let room = exchange.bytes().get_mut(at..at + bytes);
                    let room = room.ok_or_else(|| SweepError::bad("a batch does not fit the exchange"))?;
                    if o.values == "permutation" {
                        let wide: Vec<f64> = vec![answers.permuted_at(first + j)];
                        crate::values::encode_wide(dtype, &wide, room);
                    } else {
                        encode(dtype, &values, room);
                    }
                }
                worker.ask(&json!({"type": "write", "tensor": o.name, "first": first, "count": n}))?;
                first += n;
            }
        }
        Ok(())
    }

    fn check(&self, computed: &Value) -> Result<(), Stop> {
        let mut shape = vec![self.batch * self.case.output.times];
        shape.extend(&self.case.output.shape);
        let dtype = self.case.output_dtype(self.dtype);
        let out = computed.get("outputs").and_then(|o| o.get(0)).cloned().unwrap_or(Value::Null);
        if out.get("shape") != Some(&json!(shape)) || out.get("dtype") != Some(&json!(dtype)) {
            return Err(Stop::Failed(SweepError::Worker(format!(
                "the output of {} is not {shape:?} of {dtype}: {out}",
                self.case.name
            ))));
        }
        Ok(())
    }

    fn compare(
        &self,
        answers: &Answers<'_>,
        tolerance: Option<f64>,
        worker: &mut Worker<'_>,
        exchange: &mut Exchange,
    ) -> Result<TensorResult, Stop> {
        let dtype = self.case.output_dtype(self.dtype);
        let per = self.case.output_elements();
        let bytes = per * dtype.size_bytes();
        let all = batches(self.case, self.dtype, self.batch);
        let chunk = (exchange.len() / bytes).clamp(1, 4096) as usize;
        // An exact dtype has no rounding; a calibration accepts what a coarse rounding could be.
        let limit = tolerance.unwrap_or(match dtype {
            DType::F64 => 1e-6,
            DType::F32 => 1e-3,
            DType::F16 | DType::BF16 => 0.1,
            _ => 0.0,
        });
        let mut tally = Tally::default();
        let (mut values, mut expected) = (Vec::new(), Vec::new());
        for part in all.chunks(chunk) {
            let reply = worker.ask(
                &json!({"type": "read", "tensor": "out", "batches": part, "rows": null, "cols": null}),
            )?;
            if reply.get("bytes").and_then(Value::as_u64) != Some(part.len() as u64 * bytes) {
                return Err(Stop::Failed(SweepError::Worker(format!(
                    "a reply to `read` of another length: {reply}"
                ))));
            }
            for (i, &b) in part.iter().enumerate() {
                let at = i * bytes as usize;
                values.clear();
                decode(dtype, &exchange.bytes()[at..at + bytes as usize], &mut values);
                answers.output(b, &mut expected)?;
                tally.batch(b, &values, &expected, limit);
            }
        }
        Ok(tally.finish(&all, Kind::Random).0)
    }
}
