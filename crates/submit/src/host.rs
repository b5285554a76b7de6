//! Where an extension's functions run: its sources become a module, its functions are called with tensors.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_extension::{ExtensionError, LaunchCost, Library, Module, Run, Sample, Sources, Tensor, Value};
use assay_nvrtc::Compiler;
use assay_simt::{Blocks, Fill, Finding, Memory, Sanitize};

/// Launches of a pass whose cost is noted.
const MOST_COSTS: usize = 4096;

/// How kernels are run during one forward pass.
#[derive(Clone, Debug)]
pub struct Device {
    /// What fresh memory holds.
    pub fill: Fill,
    /// With every detector?
    pub sanitize: bool,
    /// Of schedules and fills.
    pub seed: u64,
    /// Warp instructions that all launches together may take.
    pub instructions: u64,
    /// Are launches left out?
    pub skip: bool,
    /// Launches of which only a sample of blocks runs.
    pub sample: Option<Sample>,
    /// What fresh memory of as many elements holds instead, such as an earlier answer.
    pub stale: Vec<Tensor>,
}

/// What was seen during one forward pass.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Calls of the extensions' functions.
    pub calls: u64,
    /// Launches, by kernel.
    pub launches: BTreeMap<String, u64>,
    /// What each launch took, in order.
    pub costs: Vec<LaunchCost>,
    /// Launches of which a sample of blocks ran: what was computed afterwards may rest on what is not known.
    pub sampled: u64,
    /// Operations of PyTorch that host code asked for.
    pub library: Vec<String>,
    /// What the device saw, each once.
    pub findings: Vec<Finding>,
    /// Warp instructions.
    pub instructions: u64,
    /// The first thing that ended a call other than by an exception.
    pub stop: Option<ExtensionError>,
}

impl Seen {
    /// Kernels launched.
    pub fn launched(&self) -> u64 {
        self.launches.values().fold(0, |n, k| n.saturating_add(*k))
    }
}

/// A module that was built.
pub trait Built {
    /// The names of its functions in Python.
    fn functions(&self) -> Vec<String>;
    /// Calls one. What it writes to a tensor is written to that tensor's storage.
    ///
    /// # Errors
    /// See [`ExtensionError`].
    fn call(
        &mut self,
        function: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        device: &Device,
        seen: &mut Seen,
        library: &mut dyn Library,
    ) -> Result<Value, ExtensionError>;
}

/// What builds modules.
pub trait Host: Sync {
    /// A module of these sources.
    ///
    /// # Errors
    /// `Rejected`, `Unsupported`, `Exhausted`.
    fn build(&self, sources: &Sources) -> Result<Box<dyn Built>, ExtensionError>;
}

/// The CPU device, with host code that is interpreted.
pub struct Interpreted {
    compiler: Arc<Compiler>,
}

impl Interpreted {
    /// Device code goes to this compiler.
    pub fn new(compiler: Arc<Compiler>) -> Interpreted {
        Interpreted { compiler }
    }
}

impl Host for Interpreted {
    fn build(&self, sources: &Sources) -> Result<Box<dyn Built>, ExtensionError> {
        Ok(Box::new(Interpreter(Module::build(sources, &self.compiler)?)))
    }
}

struct Interpreter(Module);

impl Built for Interpreter {
    fn functions(&self) -> Vec<String> {
        self.0.functions().map(str::to_owned).collect()
    }

    fn call(
        &mut self,
        function: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        device: &Device,
        seen: &mut Seen,
        library: &mut dyn Library,
    ) -> Result<Value, ExtensionError> {
        let strict = device.sanitize || device.skip || device.sample.is_some();
        let mut run = Run {
            // What a harness on a GPU would see; the detectors look in strict memory, and a launch that leaves blocks out
            // needs it.
            memory: if strict { Memory::Strict } else { Memory::Arena },
            fill: device.fill,
            sanitize: if device.sanitize { Sanitize::ALL } else { Sanitize::OFF },
            seed: device.seed,
            instructions: device.instructions.saturating_sub(seen.instructions),
            blocks: if device.skip { Blocks::List(Vec::new()) } else { Blocks::All },
            sample: device.sample.clone().map(|s| Sample {
                next: seen.launched(),
                sampled: seen.sampled,
                ..s
            }),
            stale: device.stale.iter().map(|t| t.gather()).collect(),
            ..Run::default()
        };
        let result = self.0.call(function, args, kwargs, &mut run, library);
        for (kernel, n) in run.kernels {
            let count = seen.launches.entry(kernel).or_default();
            *count = count.saturating_add(n);
        }
        seen.instructions = seen.instructions.saturating_add(run.executed);
        let room = MOST_COSTS.saturating_sub(seen.costs.len());
        seen.costs.extend(run.costs.into_iter().take(room));
        seen.sampled = run.sample.map_or(seen.sampled, |s| s.sampled);
        for f in run.findings {
            let same = |g: &Finding| {
                (g.kind, g.line, &g.buffer, &g.kernel) == (f.kind, f.line, &f.buffer, &f.kernel)
            };
            if !seen.findings.iter().any(same) {
                seen.findings.push(f);
            }
        }
        result
    }
}
