//! Where an extension's functions run: its sources become a module, its functions are called with tensors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assay_extension::compiled::{DeviceModule, host_text};
use assay_extension::{ExtensionError, LaunchCost, Library, Module, Run, Sample, Sources, Tensor, Value};
use assay_nvrtc::Compiler;
use assay_simt::{Blocks, Fill, Finding, Memory, Sanitize};

use crate::toolchain::{NotCompiled, Toolchain};

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

/// A module whose host part a C++ compiler has compiled.
pub struct Native {
    /// Its kernels.
    pub device: DeviceModule,
    /// The library, which only a submission's process may load.
    pub library: PathBuf,
    /// Names of the kernels of its sources, without namespaces.
    pub kernels: Vec<String>,
    /// The compiler's name and version.
    pub compiler: String,
}

/// A module that was built, either way.
pub enum Made {
    /// Its host part is interpreted.
    Interpreted(Box<dyn Built>),
    /// Its host part runs in the submission's process.
    Native(Box<Native>),
}

/// What builds modules.
pub trait Host: Sync {
    /// A module of these sources.
    ///
    /// # Errors
    /// `Rejected`, `Unsupported`, `Exhausted`.
    fn build(&self, sources: &Sources) -> Result<Made, ExtensionError>;

    /// A call of a module of these sources met something that is not supported. Where all is well, the next `build` of
    /// them makes something else, and the submission is to be asked again from its beginning.
    ///
    /// # Errors
    /// What was met, where nothing else is to be had.
    fn turn(&self, sources: &Sources, met: ExtensionError) -> Result<(), ExtensionError> {
        let _ = sources;
        Err(met)
    }
}

/// How the host part of extensions is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Interpreted; compiled where the interpreter meets what it does not have.
    #[default]
    Auto,
    /// Interpreted always.
    Interpreted,
    /// Compiled always.
    Compiled,
}

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(s: &str) -> Result<Way, String> {
        match s {
            "auto" => Ok(Way::Auto),
            "interpreted" => Ok(Way::Interpreted),
            "compiled" => Ok(Way::Compiled),
            _ => Err(format!("`{s}` is none of `auto`, `interpreted` and `compiled`")),
        }
    }
}

/// The CPU device, with host code that is interpreted or compiled.
pub struct CpuHost {
    compiler: Arc<Compiler>,
    python: PathBuf,
    way: Way,
    toolchain: OnceLock<Result<Toolchain, NotCompiled>>,
    /// Sources whose calls met what the interpreter does not have.
    turned: Mutex<Vec<Sources>>,
}

/// Sources that are remembered as beyond the interpreter.
const MOST_TURNED: usize = 4096;

impl CpuHost {
    /// Device code goes to this compiler; host code, where it is compiled, is compiled against the headers of this
    /// Python's PyTorch.
    pub fn new(compiler: Arc<Compiler>, python: PathBuf, way: Way) -> CpuHost {
        CpuHost { compiler, python, way, toolchain: OnceLock::new(), turned: Mutex::default() }
    }

    /// The module with its host part compiled.
    ///
    /// # Errors
    /// As [`Host::build`]; `met` with what stood in the way, where nothing could be compiled.
    fn native(&self, sources: &Sources, met: Option<ExtensionError>) -> Result<Native, ExtensionError> {
        let text = host_text(sources);
        let device = DeviceModule::new(sources, &text.kernels, &self.compiler)?;
        let made = self
            .toolchain
            .get_or_init(|| Toolchain::find(&self.python))
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|tools| Ok((tools.compile(&text)?, tools.name().to_owned())));
        match (made, met) {
            (Ok((library, compiler)), _) => Ok(Native { device, library, kernels: text.names, compiler }),
            (Err(e), Some(ExtensionError::Unsupported { construct, line })) => {
                let construct = format!("{construct} ({}{})", e.message, at(e.line));
                Err(ExtensionError::Unsupported { construct, line })
            }
            (Err(_), Some(met)) => Err(met),
            (Err(e), None) => Err(ExtensionError::Unsupported {
                construct: format!("compiling it ({})", e.message),
                line: e.line,
            }),
        }
    }
}

fn at(line: Option<u32>) -> String {
    line.map_or_else(String::new, |l| format!(", line {l}"))
}

/// Would the host part, compiled, meet the same?
fn of_the_device(construct: &str) -> bool {
    ["in `", "PTX", "compiling without NVRTC"].iter().any(|w| construct.starts_with(w))
}

impl Host for CpuHost {
    fn build(&self, sources: &Sources) -> Result<Made, ExtensionError> {
        let turned = || self.turned.lock().unwrap_or_else(PoisonError::into_inner).contains(sources);
        if self.way == Way::Compiled || (self.way == Way::Auto && turned()) {
            return Ok(Made::Native(Box::new(self.native(sources, None)?)));
        }
        match Module::build(sources, &self.compiler) {
            Ok(module) => Ok(Made::Interpreted(Box::new(Interpreter(module)))),
            Err(ExtensionError::Unsupported { construct, line })
                if self.way == Way::Auto && !of_the_device(&construct) =>
            {
                let met = ExtensionError::Unsupported { construct, line };
                Ok(Made::Native(Box::new(self.native(sources, Some(met))?)))
            }
            Err(e) => Err(e),
        }
    }

    fn turn(&self, sources: &Sources, met: ExtensionError) -> Result<(), ExtensionError> {
        let ours = matches!(&met, ExtensionError::Unsupported { construct, .. } if !of_the_device(construct));
        if self.way != Way::Auto || !ours {
            return Err(met);
        }
        self.native(sources, Some(met.clone()))?;
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        if turned.len() >= MOST_TURNED || turned.contains(sources) {
            return Err(met);
        }
        turned.push(sources.clone());
        Ok(())
    }
}

impl Device {
    /// The settings and budgets of one call.
    pub(crate) fn run(&self, seen: &Seen) -> Run {
        let strict = self.sanitize || self.skip || self.sample.is_some();
        Run {
            // What a harness on a GPU would see; the detectors look in strict memory, and a launch that leaves blocks out
            // needs it.
            memory: if strict { Memory::Strict } else { Memory::Arena },
            fill: self.fill,
            sanitize: if self.sanitize { Sanitize::ALL } else { Sanitize::OFF },
            seed: self.seed,
            instructions: self.instructions.saturating_sub(seen.instructions),
            blocks: if self.skip { Blocks::List(Vec::new()) } else { Blocks::All },
            sample: self.sample.clone().map(|s| Sample { next: seen.launched(), sampled: seen.sampled, ..s }),
            stale: self.stale.iter().map(|t| t.gather()).collect(),
            ..Run::default()
        }
    }
}

impl Seen {
    /// Adds what a call saw.
    pub(crate) fn add(&mut self, run: Run) {
        for (kernel, n) in run.kernels {
            let count = self.launches.entry(kernel).or_default();
            *count = count.saturating_add(n);
        }
        self.instructions = self.instructions.saturating_add(run.executed);
        let room = MOST_COSTS.saturating_sub(self.costs.len());
        self.costs.extend(run.costs.into_iter().take(room));
        self.sampled = run.sample.map_or(self.sampled, |s| s.sampled);
        for f in run.findings {
            let same = |g: &Finding| {
                (g.kind, g.line, &g.buffer, &g.kernel) == (f.kind, f.line, &f.buffer, &f.kernel)
            };
            if !self.findings.iter().any(same) {
                self.findings.push(f);
            }
        }
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
        let mut run = device.run(seen);
        let result = self.0.call(function, args, kwargs, &mut run, library);
        seen.add(run);
        result
    }
}
