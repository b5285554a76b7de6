//! The worker that holds the problem: inputs, init arguments, reference outputs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assay_extension::Value;
use assay_tensor::Tensor;
use assay_worker::{Ended, Exchange, Stop, Worker, WorkerError};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::error::SubmitError;
use crate::scripts;
use crate::wire::{self, Packer};

/// Bytes of tensors in one message.
const EXCHANGE: u64 = 1 << 30;

/// A problem at some extents and init arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// Other numbers for module-level names, as JSON.
    pub extents: BTreeMap<String, String>,
    /// Other init arguments by position, as JSON.
    pub init: BTreeMap<usize, String>,
}

impl Setting {
    fn json(map: impl Iterator<Item = (String, String)>) -> Json {
        map.map(|(k, v)| (k, serde_json::from_str(&v).unwrap_or(Json::Null)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// The module-level numbers.
    pub fn extents_json(&self) -> Json {
        Setting::json(self.extents.iter().map(|(k, v)| (k.clone(), v.clone())))
    }

    /// The init arguments.
    pub fn init_json(&self) -> Json {
        Setting::json(self.init.iter().map(|(k, v)| (k.to_string(), v.clone())))
    }
}

/// What a forward pass asks for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Cost {
    /// Floating-point operations of products and convolutions.
    pub flops: u64,
    /// Elements of all results.
    pub elements: u64,
    /// Elements of the inputs.
    pub inputs: u64,
    /// Elements of the outputs.
    pub outputs: u64,
    /// Elements of the parameters.
    pub parameters: u64,
    /// Inputs that are tensors and not floating-point.
    pub integers: u64,
}

impl Cost {
    /// In units of about one arithmetic instruction of one lane.
    pub fn work(&self) -> u64 {
        (self.flops / 2)
            .saturating_add(self.elements.saturating_mul(8))
            .saturating_add(self.inputs.saturating_mul(4))
    }

    /// Bytes that its tensors take in float32.
    pub fn bytes(&self) -> u64 {
        self.elements.saturating_add(self.inputs).saturating_add(self.parameters).saturating_mul(4)
    }
}

/// A model's parameter: name, shape, and the sum of its elements (a text where it is not finite).
pub type Parameter = (String, Vec<u64>, Json);

/// A setting as it was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Init arguments.
    pub init: Vec<Value>,
    /// How many of them the file gives.
    pub given: usize,
    /// The defaults of the model's init arguments that are numbers, by position.
    pub defaults: Vec<Json>,
    /// The model's parameters.
    pub parameters: Vec<Parameter>,
}

/// What the reference gave.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its tensors.
    pub tensors: Vec<Tensor>,
    /// Inputs that it wrote to.
    pub modified: Vec<u64>,
    /// Does an output share memory with an input?
    pub aliases: bool,
}

/// A request that PyTorch or the problem file answered by an exception.
#[derive(Debug)]
pub enum Refused {
    /// It raised: stage and message.
    Raised(String, String),
    /// The worker is of no use any more.
    Failed(SubmitError),
}

impl From<SubmitError> for Refused {
    fn from(e: SubmitError) -> Refused {
        Refused::Failed(e)
    }
}

/// The running worker.
pub struct Reference {
    /// Are integer inputs left as they are, where the benchmark's present harness casts them?
    pub keep_integers: bool,
    worker: Worker<'static>,
    exchange: Exchange,
    precision: String,
    seconds: u64,
    loaded: std::collections::BTreeSet<std::path::PathBuf>,
    _scratch: tempfile::TempDir,
}

impl Reference {
    /// Starts it.
    ///
    /// # Errors
    /// `Unusable`, `Io`, `Worker`, `Interrupted`.
    pub fn start(
        python: &Path,
        precision: &str,
        seconds: u64,
        interrupted: &'static AtomicBool,
    ) -> Result<Reference, SubmitError> {
        let scratch =
            tempfile::tempdir().map_err(|e| SubmitError::io("cannot make a folder for workers", e))?;
        let command = scripts::command(scripts::REFERENCE, python, scratch.path())
            .map_err(|e| SubmitError::io("cannot write the workers", e))?;
        let exchange = Exchange::new(EXCHANGE).map_err(|e| SubmitError::of(e.into(), "the exchange"))?;
        let mut worker = Worker::start(command, Duration::from_secs(120), interrupted)
            .map_err(|e| SubmitError::of(e.into(), "starting"))?;
        let hello = json!({
            "type": "hello", "version": crate::server::VERSION, "threads": 1,
            "exchange": {"path": exchange.path(), "bytes": exchange.len()},
        });
        worker.ask(&hello).map_err(|e| SubmitError::of(e, "the first word of the reference worker"))?;
        Ok(Reference {
            keep_integers: false,
            worker,
            exchange,
            precision: precision.to_owned(),
            seconds,
            loaded: Default::default(),
            _scratch: scratch,
        })
    }

    fn ask(&mut self, request: &Json, what: &str) -> Result<Json, Refused> {
        self.worker.allow(Duration::from_secs(self.seconds));
        self.worker.ask(request).map_err(|stop| match stop {
            Stop::Ended(Ended::Raised { stage, message }) => Refused::Raised(stage, message),
            // A file that is not there, or an init argument that no message can carry: the problem's, not the worker's.
            Stop::Failed(WorkerError::Fault(message)) => Refused::Failed(SubmitError::Input(message)),
            stop => Refused::Failed(SubmitError::of(stop, what)),
        })
    }

    /// Reads a problem file; its digest and the module-level numbers that may be changed.
    ///
    /// # Errors
    /// `Raised` where it is no Python; `Failed`.
    pub fn problem(&mut self, path: &Path) -> Result<(String, BTreeMap<String, Json>), Refused> {
        let reply = self.ask(&json!({"type": "problem", "path": path}), "a problem file")?;
        self.loaded.insert(path.to_owned());
        let sha = reply.get("sha256").and_then(Json::as_str).unwrap_or_default().to_owned();
        let numbers = reply.get("numbers").and_then(Json::as_object);
        let numbers = numbers.into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok((sha, numbers))
    }

    /// Has this worker read the file?
    pub fn knows(&self, path: &Path) -> bool {
        self.loaded.contains(path)
    }

    /// What a forward pass at a setting would ask for.
    ///
    /// # Errors
    /// `Raised` where shapes alone do not run, or do not fit each other.
    pub fn cost(&mut self, path: &Path, setting: &Setting) -> Result<Cost, Refused> {
        let request = json!({"type": "cost", "path": path, "extents": setting.extents_json()});
        let reply = self.ask(&request, "the cost of a problem")?;
        serde_json::from_value(reply)
            .map_err(|e| SubmitError::Worker(format!("the cost of a problem: {e}")).into())
    }

    fn request(&self, kind: &str, path: &Path, setting: &Setting) -> Json {
        json!({
            "type": kind, "path": path, "extents": setting.extents_json(), "init": setting.init_json(),
            "precision": self.precision, "keep_integers": self.keep_integers,
        })
    }

    fn values(&mut self, list: Option<&Json>, message: &Json) -> Result<Vec<Value>, Refused> {
        let bad = |e: wire::WireError| Refused::Failed(SubmitError::Worker(e.to_string()));
        let storages = wire::storages(self.exchange.bytes(), message).map_err(bad)?;
        list.and_then(Json::as_array)
            .into_iter()
            .flatten()
            .map(|v| wire::value(v, &storages).map_err(bad))
            .collect()
    }

    /// Makes a setting's model.
    ///
    /// # Errors
    /// `Raised` where the problem refuses the setting.
    pub fn setting(&mut self, path: &Path, setting: &Setting) -> Result<Made, Refused> {
        let reply = self.ask(&self.request("setting", path, setting), "a setting")?;
        let init = self.values(reply.get("init"), &reply)?;
        let parameters = reply.get("parameters").cloned().unwrap_or(Json::Null);
        Ok(Made {
            init,
            given: reply
                .get("given")
                .and_then(Json::as_u64)
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0),
            defaults: reply.get("defaults").and_then(Json::as_array).cloned().unwrap_or_default(),
            parameters: serde_json::from_value(parameters).unwrap_or_default(),
        })
    }

    /// The problem's own inputs: those of a trial of the benchmark, or of a seed.
    ///
    /// # Errors
    /// `Raised`, `Failed`.
    pub fn inputs(
        &mut self,
        path: &Path,
        setting: &Setting,
        draw: Draw,
    ) -> Result<(u64, Vec<Value>), Refused> {
        let mut request = self.request("inputs", path, setting);
        match draw {
            Draw::Trial(n) => request["trial"] = json!(n),
            Draw::Seed(n) => request["draw"] = json!(n),
        }
        let reply = self.ask(&request, "inputs")?;
        let values = self.values(reply.get("values"), &reply)?;
        Ok((reply.get("seed").and_then(Json::as_u64).unwrap_or(0), values))
    }

    /// The reference's output on inputs; in float64 where `exact`.
    ///
    /// # Errors
    /// `Raised`, `Failed`.
    pub fn output(
        &mut self,
        path: &Path,
        setting: &Setting,
        inputs: &[Value],
        seed: u64,
        exact: bool,
        perturb: Option<f64>,
    ) -> Result<Output, Refused> {
        let mut request = self.request("output", path, setting);
        let mut packer = Packer::new(self.exchange.bytes());
        let packed = inputs.iter().map(|v| packer.value(v, 0)).collect::<Result<Vec<_>, _>>();
        let packed = packed.map_err(|e| Refused::Raised("exchange".into(), e.to_string()))?;
        request["inputs"] = Json::Array(packed);
        request["storages"] = Json::Array(packer.places());
        request["seed"] = json!(seed);
        request["exact"] = json!(exact);
        if let Some(p) = perturb {
            request["perturb"] = json!(p);
        }
        let reply = self.ask(&request, "the reference")?;
        let value = reply.get("value").and_then(|v| v.get("list")).cloned();
        let values = self.values(value.as_ref(), &reply)?;
        Ok(Output {
            tensors: values.iter().flat_map(wire::tensors).map(wire::dense).collect(),
            modified: reply
                .get("modified")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .filter_map(Json::as_u64)
                .collect(),
            aliases: reply.get("aliases").and_then(Json::as_bool).unwrap_or(false),
        })
    }
}

/// Which of the problem's own inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Those of a trial of the official check.
    Trial(u64),
    /// Those of a seed.
    Seed(u64),
}
