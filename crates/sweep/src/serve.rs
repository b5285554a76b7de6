//! The other side of the protocol, for emulated devices: this process is the worker.

use std::io::{BufRead as _, Write as _};

use memmap2::MmapMut;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::device::Device;
use assay_tensor::DType;

use crate::cases::Case;
use crate::emulate::{Computed, Emulated, EmulatedCase, Made, Selection};
use crate::error::SweepError;
use crate::point::Point;

#[derive(Deserialize)]
struct Run {
    version: u32,
    exchange: ExchangeText,
    #[serde(default)]
    point: Option<Point>,
    #[serde(default)]
    case: Option<CaseText>,
    emulated: Device,
}

/// A case as it travels to an emulated worker.
#[derive(Deserialize)]
struct CaseText {
    case: Case,
    batch: u64,
    dtype: DType,
    seed: u64,
}

/// What this process emulates: a product, or a case.
enum Served {
    Product(Box<Emulated>),
    Case(Box<EmulatedCase>),
}

#[derive(Deserialize)]
struct ExchangeText {
    path: std::path::PathBuf,
}

#[derive(Deserialize)]
struct ReadRequest {
    tensor: String,
    batches: Vec<u64>,
    rows: Option<Vec<u64>>,
    cols: Option<Vec<u64>>,
}

/// Serves requests from standard input until `quit` or its end. The answer is the exit status.
pub fn emulated_worker() -> i32 {
    let mut lines = std::io::stdin().lock().lines();
    let mut served: Option<(Served, MmapMut)> = None;
    while let Some(Ok(line)) = lines.next() {
        let reply = match answer(&line, &mut served) {
            Ok(Some(reply)) => reply,
            Ok(None) => return 0,
            Err(e) => json!({"type": "fault", "message": e.to_string()}),
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{reply}").and_then(|()| out.flush()).is_err() {
            return 1;
        }
    }
    0
}

fn answer(line: &str, served: &mut Option<(Served, MmapMut)>) -> Result<Option<Value>, SweepError> {
    let broken = |e: String| SweepError::Worker(e);
    let request: Value = serde_json::from_str(line).map_err(|e| broken(e.to_string()))?;
    let kind = request.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match (kind.as_str(), served.as_mut()) {
        ("quit", _) => Ok(None),
        ("run", None) => {
            let run: Run = serde_json::from_value(request).map_err(|e| broken(e.to_string()))?;
            if run.version != crate::worker::VERSION {
                return Err(broken(format!("version {} of the protocol", run.version)));
            }
            let path = &run.exchange.path;
            let file = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .map_err(SweepError::reading(path))?;
            // SAFETY: the sweep writes to it only when no request is open.
            let map = unsafe { MmapMut::map_mut(&file) }.map_err(SweepError::reading(path))?;
            let name = run.emulated.name.clone();
            let version = run.emulated.version.clone();
            let device = match (run.point, run.case) {
                (Some(point), None) => Served::Product(Box::new(Emulated::new(run.emulated, point))),
                (None, Some(c)) => {
                    Served::Case(Box::new(EmulatedCase::new(run.emulated, c.case, c.batch, c.dtype, c.seed)))
                }
                _ => return Err(broken("a run without a point or with a case beside it".into())),
            };
            *served = Some((device, map));
            Ok(Some(json!({
                "type": "ready",
                "generates": true,
                "environment": {"emulated": name, "torch": version},
            })))
        }
        ("compute", Some((device, _))) => {
            let (computed, dtype, outputs) = match device {
                Served::Product(d) => {
                    let batch = d.batch();
                    let shapes =
                        d.outputs().into_iter().map(|(n, r, c)| (n, vec![batch, r, c])).collect::<Vec<_>>();
                    (d.compute(), d.dtype(), shapes)
                }
                Served::Case(d) => (d.compute(), d.dtype(), vec![("out", d.shape())]),
            };
            Ok(Some(match computed {
                Computed::Done => {
                    let outputs: Vec<Value> = outputs
                        .into_iter()
                        .map(|(name, shape)| json!({"name": name, "dtype": dtype, "shape": shape}))
                        .collect();
                    json!({"type": "computed", "outputs": outputs, "operators": [], "seconds": 0.0})
                }
                Computed::Raised { stage, message } => {
                    json!({"type": "raised", "stage": stage, "message": message})
                }
                Computed::Aborts(message) => {
                    eprintln!("{message}");
                    std::process::abort();
                }
                Computed::Hangs => loop {
                    std::thread::park();
                },
            }))
        }
        ("read", Some((device, map))) => {
            let read: ReadRequest = serde_json::from_value(request).map_err(|e| broken(e.to_string()))?;
            let selection = match (read.rows, read.cols) {
                (Some(r), Some(c)) => Selection::Grid(r, c),
                _ => Selection::Whole,
            };
            let (dtype, made) = match device {
                Served::Product(d) => (d.dtype(), d.read(&read.tensor, &read.batches, &selection)?),
                Served::Case(d) => {
                    (d.dtype_of(&read.tensor)?, Made::Wide(d.read(&read.tensor, &read.batches)?))
                }
            };
            let bytes = made.encode(dtype, map)?;
            Ok(Some(json!({"type": "done", "bytes": bytes})))
        }
        (other, _) => Err(broken(format!("an unexpected request `{other}`"))),
    }
}
