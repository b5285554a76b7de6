//! The device side of a module: images of its kernels, and the memory and launches of one call.
//!
//! A call has a session of the CPU device that lives as long as its image does; tensors are placed in it when a launch
//! first gets their pointer. Whoever looks at bytes on the host side calls [`Gpu::sync`] first; whoever changes them
//! calls [`Gpu::forget`], and the next launch starts from the bytes as they are.
//!
//! What it misses: which bytes of a storage are unwritten is not known across sessions (that some are is).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use assay_nvrtc::{CompileErrorKind, Compiler, Options, Unit};
use assay_simt::{
    Arg, Blocks, BufferSpec, Fill, Finding, FindingKind, Init, LaunchSpec, Loaded, Memory, Ptr, Role,
    Session, Status,
};
use assay_tensor::DType;

use crate::error::ExtensionError;
use crate::prelude::with_prelude;
use crate::run::Run;
use crate::tensor::{Contents, Device, Storage};

/// What the compiler calls the device text.
const FILE: &str = "extension.cu";

/// Bytes of dynamic shared memory that a launch may ask for without `cudaFuncSetAttribute`.
const PLAIN_SHARED: u64 = 48 << 10;

/// A compiled set of kernels.
pub(crate) struct Image {
    loaded: Arc<Loaded>,
    /// PTX name by name expression.
    entries: BTreeMap<String, String>,
}

/// The device text and what has been compiled of it; shared by all calls of a module.
pub(crate) struct Code {
    compiler: Arc<Compiler>,
    options: Options,
    text: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wanted: Vec<String>,
    image: Option<Arc<Image>>,
}

impl Code {
    pub fn new(compiler: Arc<Compiler>, options: Options, text: String) -> Code {
        // The text is as the file has it, host code blank.
        Code { compiler, options, text, state: Mutex::default() }
    }

    /// The image that has every kernel asked for so far, and these.
    ///
    /// # Errors
    /// `Rejected` with the compiler's first line; `Unsupported` where the device lacks an instruction.
    pub fn image(&self, kernels: &[String]) -> Result<Arc<Image>, ExtensionError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = &state.image
            && kernels.iter().all(|k| image.entries.contains_key(k))
        {
            return Ok(Arc::clone(image));
        }
        let mut wanted = state.wanted.clone();
        for k in kernels {
            if !wanted.contains(k) {
                wanted.push(k.clone());
            }
        }
        let image = Arc::new(self.compile(&wanted)?);
        state.wanted = wanted;
        state.image = Some(Arc::clone(&image));
        Ok(image)
    }

    fn compile(&self, kernels: &[String]) -> Result<Image, ExtensionError> {
        let halves = kernels.iter().any(|k| k.contains("c10::"));
        let source = with_prelude(&self.text, if halves { &["Half"] } else { &[] });
        let unit = Unit { name: "extension".into(), file: FILE.into(), source, kernels: kernels.to_vec() };
        let rejected = |message: String, line| ExtensionError::Rejected { message, line };
        let answer = self.compiler.compile(&self.options, &[unit]).pop();
        let image = match answer {
            Some(Ok(image)) => image,
            Some(Err(e)) => {
                // The first message about a line of the text, else the first.
                let first = e.lines.iter().find(|l| l.line.is_some()).or(e.lines.first());
                let line = first.and_then(|l| l.line);
                let message = first.map_or_else(|| e.to_string(), |l| l.message.clone());
                return Err(match e.kind {
                    CompileErrorKind::Rejected | CompileErrorKind::Options => rejected(message, line),
                    CompileErrorKind::TimedOut | CompileErrorKind::Crashed => {
                        ExtensionError::Exhausted { message, line }
                    }
                    CompileErrorKind::Unavailable => ExtensionError::Unsupported {
                        construct: format!("compiling without NVRTC ({message})"),
                        line: None,
                    },
                });
            }
            None => {
                return Err(ExtensionError::Exhausted {
                    message: "the compiler gave no answer".into(),
                    line: None,
                });
            }
        };
        let unsupported = |construct: String| ExtensionError::Unsupported { construct, line: None };
        let module = assay_ptx::parse_module(&image.ptx).map_err(|e| unsupported(format!("PTX: {e}")))?;
        let loaded = Loaded::new(&module).map_err(|e| unsupported(e.to_string()))?;
        Ok(Image { loaded: Arc::new(loaded), entries: image.entries })
    }
}

/// One argument of a launch.
pub(crate) enum KernelArg {
    Bytes(Vec<u8>),
    Pointer(Storage, Device, i64),
    /// Bytes with pointers in them: where each stands, and what it points to.
    Mixed(Vec<u8>, Vec<(usize, Storage, Device, i64)>),
}

/// A launch.
pub(crate) struct Launch {
    pub kernel: String,
    pub grid: [u64; 3],
    pub block: [u64; 3],
    pub shared: u64,
    pub args: Vec<KernelArg>,
    pub line: u32,
}

struct Placed {
    storage: Storage,
    ptr: Ptr,
    dtype: DType,
    /// A launch may have written it since it was last looked at.
    dirty: bool,
}

struct Live {
    image: Arc<Image>,
    session: Session,
    placed: Vec<Placed>,
    /// How many of the writes to variables have been done.
    written: usize,
}

/// A write from the host to a `__constant__` or `__device__` variable.
#[derive(Clone, Debug)]
pub(crate) struct SymbolWrite {
    pub name: String,
    pub offset: u64,
    pub bytes: Vec<u8>,
    pub line: Option<u32>,
}

/// The device during one call.
pub(crate) struct Gpu<'m> {
    code: &'m Code,
    live: Option<Live>,
    /// Kernels that may have more dynamic shared memory, by base name.
    large_shared: Vec<String>,
    /// What names tensors in findings: storage and variable.
    names: Vec<(Storage, DType, String)>,
    /// Writes to variables, in order; they outlive the call.
    pub symbols: Vec<SymbolWrite>,
    /// Unwritten outputs of sessions that are over.
    unwritten: Vec<(Storage, Finding)>,
}

impl<'m> Gpu<'m> {
    pub fn new(code: &'m Code, symbols: Vec<SymbolWrite>) -> Gpu<'m> {
        let (large_shared, names, unwritten) = (Vec::new(), Vec::new(), Vec::new());
        Gpu { code, live: None, large_shared, names, symbols, unwritten }
    }

    /// Writes a variable of the device.
    pub fn write_symbol(&mut self, write: SymbolWrite) {
        // A later write of the same bytes takes the place of an earlier one, so that repeated calls do not add up.
        let same = |w: &SymbolWrite| {
            w.name == write.name && w.offset == write.offset && w.bytes.len() == write.bytes.len()
        };
        if self.symbols.iter().any(same) {
            self.symbols.retain(|w| !same(w));
            self.end_session();
        }
        self.symbols.push(write);
    }

    /// Gives a storage a name for findings, unless it has one.
    pub fn name(&mut self, storage: &Storage, dtype: DType, name: &str) {
        if !self.names.iter().any(|(s, ..)| s.same(storage)) {
            let taken =
                self.names.iter().filter(|(.., n)| n == name || n.starts_with(&format!("{name}#"))).count();
            let name = if taken == 0 { name.to_owned() } else { format!("{name}#{}", taken + 1) };
            self.names.push((storage.clone(), dtype, name));
        }
    }

    /// `cudaFuncSetAttribute` for more dynamic shared memory.
    pub fn allow_shared(&mut self, kernel: &str) {
        self.large_shared.push(kernel.to_owned());
    }

    /// Brings what kernels wrote back into the storages.
    pub fn sync(&mut self) {
        let Some(live) = &mut self.live else { return };
        for p in live.placed.iter_mut().filter(|p| p.dirty) {
            p.dirty = false;
            let bytes = live.session.read(p.ptr);
            if p.storage.read(|old| old != bytes) {
                let done = p.storage.contents() == Contents::Written || live.session.written(p.ptr);
                let contents = if done { Contents::Written } else { Contents::Partial };
                p.storage.write(contents, |old| {
                    let n = old.len().min(bytes.len());
                    old[..n].copy_from_slice(&bytes[..n]);
                });
            }
        }
    }

    /// The host changes a storage: the device's copies are no longer good.
    pub fn forget(&mut self, storage: &Storage) {
        self.sync();
        if self.live.as_ref().is_some_and(|l| l.placed.iter().any(|p| p.storage.same(storage))) {
            self.end_session();
        }
    }

    fn end_session(&mut self) {
        self.sync();
        let Some(mut live) = self.live.take() else { return };
        for f in live.session.finish() {
            let storage = self.names.iter().find(|(.., n)| Some(n) == f.buffer.as_ref());
            if let Some((s, ..)) = storage {
                self.unwritten.push((s.clone(), f));
            }
        }
    }

    /// Ends the call: findings about those of `results` that are not whole.
    pub fn finish(&mut self, results: &[Storage], run: &mut Run) {
        self.end_session();
        for (storage, finding) in std::mem::take(&mut self.unwritten) {
            if results.iter().any(|r| r.same(&storage)) {
                run.findings.push(finding);
            }
        }
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// `Fault`, `Unsupported` and `Exhausted` as the device has it; `Rejected` where the kernel does not compile.
    pub fn launch(&mut self, launch: &Launch, run: &mut Run) -> Result<(), ExtensionError> {
        let line = Some(launch.line);
        let kernels = [launch.kernel.clone()];
        let image = self.code.image(&kernels)?;
        if self.live.as_ref().is_some_and(|l| !Arc::ptr_eq(&l.image, &image)) {
            self.end_session();
        }
        *run.kernels.entry(launch.kernel.clone()).or_insert(0) += 1;
        let base = base_name(&launch.kernel);
        if launch.shared > PLAIN_SHARED && !self.large_shared.iter().any(|k| k == base) {
            let what = format!(
                "{} bytes of dynamic shared memory, the limit is {PLAIN_SHARED} without `cudaFuncSetAttribute`",
                launch.shared
            );
            let mut f = Finding::new(FindingKind::InvalidLaunch, what.clone());
            f.kernel = Some(launch.kernel.clone());
            f.line = line;
            run.findings.push(f);
            return Err(ExtensionError::Fault { message: what, line });
        }
        if run.memory == Memory::Arena {
            self.end_session();
        }
        let mut live = match self.live.take() {
            Some(live) => live,
            None => Live {
                session: Session::new(
                    Arc::clone(&image.loaded),
                    assay_simt::Options {
                        memory: run.memory,
                        // Fresh storages have their bytes already; this leaves them there, still uninitialised.
                        fill: if run.fill == Fill::Noise { Fill::Previous } else { run.fill },
                        sanitize: run.sanitize,
                        schedule: run.schedule,
                        seed: run.seed,
                        fill_seed: run.seed,
                        instruction_budget: run.instructions,
                        memory_cap_bytes: run.memory_bytes.saturating_mul(2),
                        engine: run.engine,
                        ..assay_simt::Options::default()
                    },
                ),
                image,
                placed: Vec::new(),
                written: 0,
            },
        };
        let outcome = self.run_in(&mut live, launch, run);
        // What a launch does with memory that is not known tells nothing.
        let known = run.sample.as_ref().is_none_or(|s| s.sampled == 0);
        if let (Some(sample), Ok(outcome)) = (&mut run.sample, &outcome) {
            sample.next = sample.next.saturating_add(1);
            let faulted = outcome.findings.iter().any(|f| f.kind.is_fault());
            if outcome.blocks.executed < outcome.blocks.total && !faulted {
                sample.sampled = sample.sampled.saturating_add(1);
                let dtypes: Vec<(Ptr, DType)> = live.placed.iter().map(|p| (p.ptr, p.dtype)).collect();
                live.session.settle(|ptr, at, bytes| {
                    let dtype = dtypes.iter().find(|(p, _)| *p == ptr).map_or(DType::F32, |(_, d)| *d);
                    sample.poison.fill(dtype, at, bytes);
                });
            }
        }
        self.live = Some(live);
        let outcome = outcome?;
        let product = |d: [u64; 3]| d.into_iter().fold(1u64, u64::saturating_mul);
        run.took(product(launch.grid).saturating_mul(product(launch.block)), outcome.instructions);
        run.printed.extend(outcome.printf);
        if !known && !outcome.findings.is_empty() {
            let what =
                format!("`{}` is given what blocks that were left out would have written", launch.kernel);
            return Err(ExtensionError::Exhausted { message: what, line });
        }
        let fault = outcome.findings.iter().find(|f| f.kind.is_fault()).map(|f| (f.message.clone(), f.line));
        for mut f in outcome.findings {
            f.kernel = Some(launch.kernel.clone());
            if f.kind == FindingKind::InvalidLaunch && f.line.is_none() {
                f.line = line;
            }
            run.findings.push(f);
        }
        let reason = outcome.reason.unwrap_or_default();
        match outcome.status {
            Status::Exhausted => {
                let line = outcome.stopped_at.map(|p| p.line).or(line);
                return Err(ExtensionError::Exhausted {
                    message: format!("`{}`: {reason}", launch.kernel),
                    line,
                });
            }
            Status::Unsupported => {
                return Err(ExtensionError::Unsupported {
                    construct: format!("in `{}`: {reason}", launch.kernel),
                    line,
                });
            }
            Status::Ok | Status::Finding => {}
        }
        if run.memory == Memory::Arena {
            self.end_session();
        }
        match fault {
            Some((message, at)) => Err(ExtensionError::Fault { message, line: at.or(line) }),
            None => Ok(()),
        }
    }

    fn run_in(
        &mut self,
        live: &mut Live,
        launch: &Launch,
        run: &mut Run,
    ) -> Result<assay_simt::Outcome, ExtensionError> {
        let line = Some(launch.line);
        // All are placed before an address is asked for: that fixes the layout of an arena.
        for a in &launch.args {
            match a {
                KernelArg::Bytes(_) => {}
                KernelArg::Pointer(s, d, _) => {
                    self.place(live, s, *d, launch, run)?;
                }
                KernelArg::Mixed(_, pointers) => {
                    for (_, s, d, _) in pointers {
                        self.place(live, s, *d, launch, run)?;
                    }
                }
            }
        }
        let mut args = Vec::with_capacity(launch.args.len());
        for a in &launch.args {
            args.push(match a {
                KernelArg::Bytes(b) => Arg::Bytes(b.clone()),
                KernelArg::Pointer(s, d, offset) => {
                    Arg::Pointer(self.place(live, s, *d, launch, run)?, *offset)
                }
                KernelArg::Mixed(bytes, pointers) => {
                    let mut bytes = bytes.clone();
                    for (at, s, d, offset) in pointers {
                        let ptr = self.place(live, s, *d, launch, run)?;
                        let address = live.session.address(ptr).wrapping_add_signed(*offset);
                        if let Some(slot) = bytes.get_mut(*at..at.saturating_add(8)) {
                            slot.copy_from_slice(&address.to_le_bytes());
                        }
                    }
                    Arg::Bytes(bytes)
                }
            });
        }
        let blocks = match &run.sample {
            Some(s) if !s.whole.contains(&s.next) => &Blocks::Sample { seed: s.seed, random: s.random },
            Some(_) => &Blocks::All,
            None => &run.blocks,
        };
        for w in self.symbols.iter().skip(live.written) {
            let Some(ptr) = live.session.variable(&w.name) else { continue };
            live.session
                .write(ptr, w.offset, &w.bytes)
                .map_err(|e| ExtensionError::Fault { message: e.to_string(), line: w.line })?;
        }
        live.written = self.symbols.len();
        let Some(entry) = live.image.entries.get(&launch.kernel) else {
            return Err(ExtensionError::Rejected { message: format!("no kernel `{}`", launch.kernel), line });
        };
        Ok(live.session.launch(&LaunchSpec {
            kernel: entry,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.shared,
            args: &args,
            blocks,
        }))
    }

    fn place(
        &mut self,
        live: &mut Live,
        storage: &Storage,
        device: Device,
        launch: &Launch,
        run: &mut Run,
    ) -> Result<Ptr, ExtensionError> {
        let line = Some(launch.line);
        if let Some(p) = live.placed.iter_mut().find(|p| p.storage.same(storage)) {
            p.dirty = true;
            return Ok(p.ptr);
        }
        let known = self.names.iter().find(|(s, ..)| s.same(storage));
        let (name, dtype) = match known {
            Some((_, d, n)) => (n.clone(), *d),
            None => (format!("allocation#{}", live.placed.len()), DType::F32),
        };
        if known.is_none() {
            self.names.push((storage.clone(), dtype, name.clone()));
        }
        if device == Device::Cpu {
            let message = format!("`{}` is given `{name}`, which lies in host memory", launch.kernel);
            let mut f = Finding::new(FindingKind::OobRead, message.clone());
            f.kernel = Some(launch.kernel.clone());
            f.buffer = Some(name);
            f.line = line;
            run.findings.push(f);
            return Err(ExtensionError::Fault { message, line });
        }
        let contents = storage.contents();
        let session = &mut live.session;
        let ptr = storage.read(|bytes| {
            let init = match (contents, run.fill) {
                (Contents::Fresh, Fill::Noise | Fill::Previous) => Init::Previous(bytes),
                (Contents::Fresh, Fill::Zeros | Fill::Nan) => Init::Uninit,
                (Contents::Partial | Contents::Written, _) => Init::Bytes(bytes),
            };
            let role = if contents == Contents::Fresh { Role::Output } else { Role::Scratch };
            session.alloc(BufferSpec::new(&name, bytes.len() as u64, role, dtype, init))
        });
        let ptr = ptr.map_err(|e| ExtensionError::Exhausted { message: e.to_string(), line })?;
        // An earlier session's word about it no longer holds.
        self.unwritten.retain(|(s, _)| !s.same(storage));
        live.placed.push(Placed { storage: storage.clone(), ptr, dtype, dirty: true });
        Ok(ptr)
    }
}

/// `k` of `n::k<float>`.
fn base_name(expression: &str) -> &str {
    let base = expression.split('<').next().unwrap_or(expression);
    base.rsplit("::").next().unwrap_or(base).trim()
}
