//! One evaluation: the launches of a plan on the CPU device, over the tensors of an input.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_problems::{Plan, PlanArg, PlanOp};
use assay_ptx::{Function, Module, Param};
use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Fill, Finding, Init, LaunchSpec, Loaded, Memory, Options, Ptr, Role,
    Sanitize, Schedule, Session, Status,
};
use assay_tensor::{DType, Tensor};

/// A compiled and decoded version of a problem's kernels.
#[derive(Clone)]
pub struct Executable {
    /// Ready to run.
    pub loaded: Arc<Loaded>,
    /// By the name that the launcher uses.
    pub entries: Arc<BTreeMap<String, Entry>>,
}

/// Where a kernel is declared.
#[derive(Clone)]
pub struct Entry {
    /// The PTX it was decoded from; kernels of one version may come from several.
    pub module: Arc<Module>,
    /// Its name there.
    pub name: String,
}

impl Executable {
    /// The entry, and its declaration, of the kernel that the launcher calls `kernel`.
    pub fn kernel(&self, kernel: &str) -> Option<(&str, &Function)> {
        let entry = self.entries.get(kernel)?;
        Some((&entry.name, entry.module.entry(&entry.name)?.1))
    }
}

/// A tensor to be put into device memory.
pub struct Buffer<'a> {
    /// Its name in the launcher.
    pub name: &'a str,
    /// What it is to the problem; buffers are laid out in the order of roles.
    pub role: Role,
    /// Element type.
    pub dtype: DType,
    /// Bytes here.
    pub size_bytes: u64,
    /// Bytes at official extents, which decide the layout in `arena`.
    pub official_bytes: u64,
    /// Its values; none for what the kernel must write.
    pub values: Option<&'a [u8]>,
    /// What lay there before, where it has no values: seen under [`Fill::Previous`].
    pub previous: Option<&'a [u8]>,
    /// May kernels write it although it is an input?
    pub may_write: bool,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Strict or arena.
    pub memory: Memory,
    /// What fresh memory holds.
    pub fill: Fill,
    /// Detectors.
    pub sanitize: Sanitize,
    /// Which warps go first.
    pub schedule: Schedule,
    /// Seed of the schedule and of the fill.
    pub seed: u64,
    /// Warp instructions over all launches.
    pub instructions: u64,
    /// What executes: results do not depend on it.
    pub engine: Engine,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Every launch ran; these are the buffers asked for.
    Outputs(BTreeMap<String, Tensor>),
    /// A trap, an invalid launch, a deadlock, or an access that left its segment: no usable output.
    Fault(String),
    /// The instruction or memory budget ran out.
    Exhausted(String),
    /// The device lacks something.
    Unsupported(String),
}

/// A run and what the device saw on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// How it ended.
    pub end: End,
    /// Every finding, also those that do not end a run.
    pub findings: Vec<Finding>,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Text that kernels printed, one entry per call and thread.
    pub printf: Vec<String>,
}

impl Run {
    /// A run that ended before anything was executed.
    pub(crate) fn ended(end: End) -> Run {
        Run { end, findings: Vec::new(), instructions: 0, printf: Vec::new() }
    }
}

/// Runs a plan.
///
/// `outputs` are the names, dtypes and shapes to read back. A launcher that asks for what the device cannot give
/// (an unknown kernel, arguments that do not fit the kernel's parameters) ends as a fault: it is the mutant's doing.
pub fn execute(
    exe: &Executable,
    plan: &Plan,
    buffers: &[Buffer<'_>],
    outputs: &[(String, DType, Vec<u64>)],
    mode: &Mode,
) -> Run {
    let mut session = Session::new(
        Arc::clone(&exe.loaded),
        Options {
            memory: mode.memory,
            fill: mode.fill,
            sanitize: mode.sanitize,
            schedule: mode.schedule,
            seed: mode.seed,
            fill_seed: mode.seed,
            instruction_budget: mode.instructions,
            engine: mode.engine,
            ..Options::default()
        },
    );
    let mut run = Run::ended(End::Outputs(BTreeMap::new()));
    let mut pointers: BTreeMap<&str, Ptr> = BTreeMap::new();
    for b in buffers {
        let spec = BufferSpec {
            name: b.name,
            size_bytes: b.size_bytes,
            official_bytes: b.official_bytes,
            role: b.role,
            dtype: b.dtype,
            init: match (b.values, b.previous) {
                (Some(values), _) => Init::Bytes(values),
                (None, Some(before)) => Init::Previous(before),
                (None, None) => Init::Uninit,
            },
            may_write: b.may_write,
            sparse: false,
            shape: &[],
        };
        match session.alloc(spec) {
            Ok(p) => {
                pointers.insert(b.name, p);
            }
            Err(e) => {
                run.end = End::Exhausted(e.to_string());
                return run;
            }
        }
    }
    for step in &plan.ops {
        let outcome = match step {
            PlanOp::Memset { buffer, offset_bytes, value, len_bytes, .. } => {
                let Some(&p) = pointers.get(buffer.as_str()) else {
                    run.end = End::Fault(format!("cudaMemset of `{buffer}`, which is no buffer"));
                    return run;
                };
                if let Err(e) = session.memset(p, *offset_bytes, *value, *len_bytes) {
                    run.end = End::Fault(e.to_string());
                    return run;
                }
                continue;
            }
            PlanOp::Launch(launch) => {
                let Some((entry, function)) = exe.kernel(&launch.kernel) else {
                    run.end = End::Fault(format!("no kernel `{}` in the compiled image", launch.kernel));
                    return run;
                };
                let args = match bind(&function.params, &launch.args, &pointers) {
                    Ok(args) => args,
                    Err(what) => {
                        run.end = End::Fault(format!("launch of `{}`: {what}", launch.kernel));
                        return run;
                    }
                };
                let mut outcome = session.launch(&LaunchSpec {
                    kernel: entry,
                    grid: launch.grid,
                    block: launch.block,
                    dynamic_shared: launch.shared_bytes,
                    args: &args,
                    blocks: &Blocks::All,
                });
                // As the file has it, not as the compiler mangled it.
                for f in &mut outcome.findings {
                    f.kernel = Some(launch.kernel.clone());
                }
                outcome
            }
        };
        run.instructions = run.instructions.saturating_add(outcome.instructions);
        let faulted = outcome.findings.iter().find(|f| f.kind.is_fault()).map(|f| f.message.clone());
        let reason = outcome.reason.clone().unwrap_or_default();
        run.findings.extend(outcome.findings);
        run.printf.extend(outcome.printf);
        match outcome.status {
            Status::Exhausted => {
                run.end = End::Exhausted(reason);
                return run;
            }
            Status::Unsupported => {
                run.end = End::Unsupported(reason);
                return run;
            }
            Status::Ok | Status::Finding => {}
        }
        // After a fault a GPU has no output either: the launch failed or the context is gone.
        if let Some(what) = faulted {
            run.end = End::Fault(what);
            return run;
        }
    }
    // Gives nothing where it is not asked for; a plan without a launch has its buffers placed here.
    run.findings.extend(session.finish());
    let mut tensors = BTreeMap::new();
    for (name, dtype, shape) in outputs {
        let bytes = pointers.get(name.as_str()).map(|&p| session.read(p).to_vec());
        match bytes.map(|b| Tensor::from_bytes(*dtype, shape, b)) {
            Some(Ok(t)) => {
                tensors.insert(name.clone(), t);
            }
            Some(Err(e)) => {
                run.end = End::Fault(format!("output `{name}`: {e}"));
                return run;
            }
            None => {
                run.end = End::Fault(format!("output `{name}` was not allocated"));
                return run;
            }
        }
    }
    run.end = End::Outputs(tensors);
    run
}

/// Arguments of a launch as the kernel's parameters want them; the launcher has converted numbers to their types.
pub(crate) fn bind(
    params: &[Param],
    args: &[PlanArg],
    pointers: &BTreeMap<&str, Ptr>,
) -> Result<Vec<Arg>, String> {
    if params.len() != args.len() {
        return Err(format!("{} arguments for {} parameters", args.len(), params.len()));
    }
    params
        .iter()
        .zip(args)
        .map(|(p, a)| match (a, a.bytes()) {
            (PlanArg::Buffer { name, offset_bytes }, _) => pointers
                .get(name.as_str())
                .map(|&ptr| Arg::Pointer(ptr, *offset_bytes))
                .ok_or_else(|| format!("`{name}` is no buffer")),
            (_, Some(bytes)) if bytes.len() as u64 == p.size_bytes => Ok(Arg::Bytes(bytes)),
            (_, bytes) => Err(format!(
                "parameter `{}` has {} bytes, {} were passed",
                p.name,
                p.size_bytes,
                bytes.map_or(0, |b| b.len())
            )),
        })
        .collect()
}
