//! The worker `torch_worker.py` as a value: tensors in, PyTorch's outputs back (`docs/torch-worker.md`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assay_ops::Precision;
use assay_tensor::{DType, Tensor, tensor};
use assay_worker::{Ended, Exchange, Script, Stop, Worker};
use serde_json::{Value, json};

use crate::error::TorchError;

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// Bytes of the exchange: what one request and one reply hold. Pages exist only where something was written.
pub(crate) const EXCHANGE_BYTES: u64 = 256 << 20;

/// A tensor as it lies in memory: a view of a storage.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The name in the program.
    pub name: String,
    /// Element type of the storage.
    pub dtype: DType,
    /// Extents of the view, outermost first.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, by dimension.
    pub strides: Vec<u64>,
    /// The view's first element.
    pub start: u64,
    /// The storage's elements, little-endian.
    pub storage: Vec<u8>,
}

impl Placed {
    /// A tensor that lies contiguously.
    pub fn contiguous(name: &str, t: &Tensor) -> Placed {
        Placed {
            name: name.to_owned(),
            dtype: t.dtype,
            shape: t.shape.clone(),
            strides: contiguous_strides(&t.shape),
            start: 0,
            storage: t.data.clone(),
        }
    }
}

/// Strides of a contiguous tensor, in elements.
pub fn contiguous_strides(shape: &[u64]) -> Vec<u64> {
    let mut out = vec![1u64; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        out[d] = out[d + 1].saturating_mul(shape[d + 1].max(1));
    }
    out
}

/// What PyTorch said to a program.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Its outputs, by name.
    Outputs(BTreeMap<String, Tensor>),
    /// It raised this.
    Raised(String),
}

/// What PyTorch, or a file that it executes, raised.
#[derive(Clone, Debug)]
pub struct Raised {
    /// Where: `forward`, `load`, `allocate`, …
    pub stage: String,
    /// The message.
    pub message: String,
}

/// How to start a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interpreter.
    pub python: PathBuf,
    /// PyTorch's threads.
    pub threads: usize,
    /// Seconds that one request may take; starting (importing PyTorch) has at least a minute.
    pub seconds: u64,
    /// Bytes of address space that it may have, so that a lack of memory is an answer; as much as there is where absent.
    pub memory: Option<u64>,
}

/// A running PyTorch.
pub struct Torch<'a> {
    settings: Settings,
    worker: Worker<'a>,
    exchange: Exchange,
    environment: Value,
    /// Holds the worker's files.
    _scratch: tempfile::TempDir,
}

impl<'a> Torch<'a> {
    /// Starts a worker and waits until PyTorch is imported.
    ///
    /// # Errors
    /// `Unusable` where the interpreter cannot be started or has no PyTorch; `Died`, `Hung`, `Protocol`; `Io`.
    pub fn start(settings: &Settings, interrupted: &'a AtomicBool) -> Result<Torch<'a>, TorchError> {
        let scratch = tempfile::tempdir().map_err(|error| TorchError::Io {
            action: "write",
            path: std::env::temp_dir(),
            error,
        })?;
        let command = Script::Torch
            .command(&settings.python, scratch.path())
            .map_err(|error| TorchError::Io { action: "write", path: scratch.path().to_path_buf(), error })?;
        let exchange = Exchange::new(EXCHANGE_BYTES).map_err(|e| TorchError::of(e, ""))?;
        let seconds = settings.seconds.max(60);
        let mut worker = Worker::start(command, Duration::from_secs(seconds), interrupted)
            .map_err(|e| TorchError::of(e, ""))?;
        let hello = json!({
            "type": "hello",
            "version": VERSION,
            "exchange": {"path": exchange.path(), "bytes": exchange.len()},
            "threads": settings.threads,
            "memory": settings.memory,
        });
        let ready = worker.ask(&hello).map_err(|stop| match stop {
            Stop::Failed(e) => TorchError::of(e, ""),
            Stop::Ended(ended) => TorchError::ended(&ended, seconds, "a first word"),
        })?;
        let environment = ready.get("environment").filter(|e| e.is_object()).cloned().ok_or_else(|| {
            TorchError::Protocol(format!("the worker answered `hello` with `{ready}`"), String::new())
        })?;
        Ok(Torch { settings: settings.clone(), worker, exchange, environment, _scratch: scratch })
    }

    /// What runs: `torch`, `python`, `platform`, …
    pub fn environment(&self) -> &Value {
        &self.environment
    }

    /// PyTorch's version.
    pub fn version(&self) -> &str {
        self.environment.get("torch").and_then(Value::as_str).unwrap_or("unknown")
    }

    /// Executes a reference program by PyTorch's own functions. Floating-point tensors are converted to the precision
    /// first; a scalar whose value is whole counts as an integer, as in our language.
    ///
    /// # Errors
    /// The worker died, hung or broke the protocol, or the tensors do not fit the exchange; what PyTorch raises is an
    /// answer.
    pub fn evaluate(
        &mut self,
        program: &str,
        tensors: &[Placed],
        scalars: &BTreeMap<String, f64>,
        outputs: &[String],
        precision: Precision,
    ) -> Result<Answer, TorchError> {
        let what = describe(program, tensors, precision);
        let listed = self.place(tensors, &what)?;
        let scalars: BTreeMap<&String, Value> = scalars.iter().map(|(n, &x)| (n, python_number(x))).collect();
        let request = json!({
            "type": "evaluate",
            "program": program,
            "outputs": outputs,
            "precision": if precision == Precision::F64 { "f64" } else { "f32" },
            "scalars": scalars,
            "tensors": listed,
        });
        match self.ask(&request, &what)? {
            Ok(reply) => Ok(Answer::Outputs(self.outputs(&reply, "evaluated", outputs, &what)?)),
            Err(raised) => Ok(Answer::Raised(raised.message)),
        }
    }

    /// Writes tensors to the exchange; what a request lists of them.
    ///
    /// # Errors
    /// `Bad` where they do not fit.
    pub(crate) fn place(&mut self, tensors: &[Placed], what: &str) -> Result<Vec<Value>, TorchError> {
        let mut at = 0u64;
        let mut listed = Vec::with_capacity(tensors.len());
        for t in tensors {
            // Every storage begins where any element type may begin.
            at = at.next_multiple_of(16);
            let bytes = t.storage.len() as u64;
            let end = at.checked_add(bytes).filter(|&e| e <= self.exchange.len()).ok_or_else(|| {
                TorchError::Bad(format!("the tensors of {what} do not fit {EXCHANGE_BYTES} bytes"))
            })?;
            self.exchange.bytes()[at as usize..end as usize].copy_from_slice(&t.storage);
            listed.push(json!({
                "name": t.name, "dtype": t.dtype, "shape": t.shape, "strides": t.strides, "start": t.start,
                "offset": at, "count": bytes / t.dtype.size_bytes().max(1),
            }));
            at = end;
        }
        Ok(listed)
    }

    /// Tensors of the module that was exported last, by their targets.
    ///
    /// # Errors
    /// As [`Torch::evaluate`]; what PyTorch raises is the inner error.
    pub fn values(
        &mut self,
        names: &[String],
        what: &str,
    ) -> Result<Result<BTreeMap<String, Tensor>, Raised>, TorchError> {
        match self.ask(&json!({"type": "values", "names": names}), what)? {
            Ok(reply) => self.outputs(&reply, "values", names, what).map(Ok),
            Err(raised) => Ok(Err(raised)),
        }
    }

    /// One request; what PyTorch raised is the inner error, its stage before its message.
    pub(crate) fn ask(&mut self, request: &Value, what: &str) -> Result<Result<Value, Raised>, TorchError> {
        self.worker.allow(Duration::from_secs(self.settings.seconds));
        match self.worker.ask(request) {
            Ok(reply) => Ok(Ok(reply)),
            Err(Stop::Ended(Ended::Raised { stage, message })) => Ok(Err(Raised { stage, message })),
            Err(Stop::Ended(ended)) => Err(TorchError::ended(&ended, self.settings.seconds, what)),
            Err(Stop::Failed(e)) => Err(TorchError::of(e, what)),
        }
    }

    /// The tensors that a reply of `kind` lists, out of the exchange.
    pub(crate) fn outputs(
        &mut self,
        reply: &Value,
        kind: &str,
        wanted: &[String],
        what: &str,
    ) -> Result<BTreeMap<String, Tensor>, TorchError> {
        let broken = |why: String| {
            TorchError::Protocol(format!("the worker broke the protocol: {why}"), what.to_owned())
        };
        if reply.get("type").and_then(Value::as_str) != Some(kind) {
            return Err(broken(format!("`{reply}` instead of `{kind}`")));
        }
        let listed = reply.get("outputs").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut out = BTreeMap::new();
        for item in &listed {
            let text = |k: &str| item.get(k).and_then(Value::as_str);
            let shape: Option<Vec<u64>> = item
                .get("shape")
                .and_then(Value::as_array)
                .and_then(|s| s.iter().map(Value::as_u64).collect());
            let (Some(name), Some(dtype), Some(shape), Some(offset)) = (
                text("name"),
                text("dtype").and_then(|d| d.parse::<DType>().ok()),
                shape,
                item.get("offset").and_then(Value::as_u64),
            ) else {
                return Err(broken(format!("an output without name, dtype, shape and offset: `{item}`")));
            };
            let bytes = tensor::byte_len(dtype, &shape).map_err(|e| broken(format!("`{name}`: {e}")))? as u64;
            let end = offset.checked_add(bytes).filter(|&e| e <= self.exchange.len());
            let Some(end) = end else {
                return Err(broken(format!(
                    "`{name}` of shape {shape:?} at {offset} lies outside the exchange of {} bytes",
                    self.exchange.len()
                )));
            };
            let data = self.exchange.bytes()[offset as usize..end as usize].to_vec();
            let t = Tensor::from_bytes(dtype, &shape, data).map_err(|e| broken(format!("`{name}`: {e}")))?;
            out.insert(name.to_owned(), t);
        }
        if out.len() != wanted.len() || !wanted.iter().all(|w| out.contains_key(w)) {
            return Err(broken(format!(
                "the outputs {:?} instead of {wanted:?}",
                out.keys().collect::<Vec<_>>()
            )));
        }
        Ok(out)
    }

    /// Ends the worker.
    pub fn quit(self) {
        self.worker.quit();
    }
}

/// A number as Python is to read it: whole ones as integers.
fn python_number(x: f64) -> Value {
    // 2^53: up to here every whole float is exactly that integer.
    if x.trunc() == x && x.abs() <= 9_007_199_254_740_992.0 { json!(x as i64) } else { json!(x) }
}

/// A request in words, for errors.
fn describe(program: &str, tensors: &[Placed], precision: Precision) -> String {
    let list: Vec<String> = tensors.iter().map(|t| format!("{} {} {:?}", t.name, t.dtype, t.shape)).collect();
    let precision = if precision == Precision::F64 { "float64" } else { "float32" };
    format!("`{}` in {precision} with {}", program.trim(), list.join(", "))
}
