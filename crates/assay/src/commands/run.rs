//! `assay run`: one kernel on the CPU device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use assay_nvrtc::{CompileError, CompileErrorKind, Compiler, Unit};
use assay_ptx::{Module, Param};
use assay_report::text;
use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Fill, Finding, Init, LaunchSpec, Loaded, Memory, Options, Outcome, Ptr,
    Role, Sanitize, Schedule, Session, SessionError, Status,
};
use assay_tensor::{DType, Generator, Tensor, safetensors_io};
use serde_json::{Map, Value, json};

use crate::argspec::{ArgKind, ArgSpec};
use crate::blockspec;
use crate::cli::{Common, EngineArg, FillArg, MemoryArg, RunArgs, ScheduleArg};
use crate::commands::sparse::{self, Lazy, Written};
use crate::commands::{list, tools};
use crate::diagnostic::Source;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Elements of a buffer shown in the JSON and in tables.
const HEAD: u64 = 8;

/// A buffer named by an `--arg`.
struct Buffer {
    name: String,
    tensor: Tensor,
    fresh: bool,
}

/// What one run gave.
struct Ran {
    outcome: Outcome,
    tensors: BTreeMap<String, Tensor>,
    /// Of the sparse buffers.
    written: BTreeMap<String, Written>,
    seconds: f64,
    seed: u64,
    engine: Engine,
}

/// Runs the command.
///
/// # Errors
/// Bad input (file, `--arg`, kernel), unsupported instructions, an unwritable `--save`.
pub fn run(common: &Common, args: &RunArgs) -> Result<Exit, Failure> {
    let blocks = blockspec::parse(&args.blocks, args.grid, common.seed).map_err(Failure::bad_input)?;
    let specs = specs(&args.args)?;
    let (buffers, lazy) = (buffers(&specs, &blocks)?, sparse::buffers(&specs, blocks == Blocks::All));
    let source = if args.file.extension().is_some_and(|e| e == "ptx") {
        list::read_source(&args.file)?
    } else {
        list::read_kernel(&args.file)?.text
    };
    let bar = Bar::new(common.quiet || common.json);
    let (module, entry) = compile(args, &source, &bar)?;
    bar.finish();
    let loaded = load(args, &source, &module, &entry, &specs)?;

    let seeds = args.seeds.clone().unwrap_or(common.seed..common.seed.saturating_add(1));
    let mut ran = None;
    for seed in seeds {
        let r = once(args, &specs, &buffers, &lazy, &blocks, &loaded, &entry, seed)?;
        let stop = r.outcome.status != Status::Ok;
        ran = Some(r);
        if stop {
            break;
        }
    }
    let mut ran = ran.ok_or_else(|| Failure::bad_input("--seeds names no seed"))?;
    if let Some(path) = &args.save {
        for (name, w) in &ran.written {
            w.save(name, &mut ran.tensors)?;
        }
        safetensors_io::write_atomic(path, &ran.tensors).map_err(Failure::cannot_write)?;
        ran.tensors.retain(|name, _| buffers.iter().any(|b| b.name == *name));
    }
    let exit = match ran.outcome.status {
        Status::Ok => Exit::Fine,
        Status::Finding => Exit::Wrong,
        Status::Unsupported => Exit::Unsupported,
        Status::Exhausted => Exit::Exhausted,
    };
    if common.json {
        output::json(&document(args, &ran))?;
    } else {
        output::text(&page(args, &source, &buffers, &ran))?;
    }
    if args.engine == EngineArg::Jit && ran.engine != Engine::Jit && !common.quiet {
        let why =
            if args.sanitize { "detectors need it" } else { "the kernel or this processor is not covered" };
        output::say(format_args!("note: the interpreter ran instead of the JIT, with the same bits: {why}"));
    }
    Ok(exit)
}

/// Decodes the module and compares the `--arg` with the kernel's parameters.
fn load(
    args: &RunArgs,
    source: &str,
    module: &Module,
    entry: &str,
    specs: &[ArgSpec],
) -> Result<Arc<Loaded>, Failure> {
    let loaded = Loaded::new(module).map_err(|e| load_failure(&args.file, &e))?;
    loaded.check(entry).map_err(|e| load_failure(&args.file, &e))?;
    let function = module.entry(entry).map(|(_, f)| f).ok_or_else(|| Failure::bug("the entry vanished"))?;
    let signature = assay_problems::kernel_parameters(source, &args.kernel);
    check_params(specs, &function.params, &args.kernel, signature.as_deref())?;
    Ok(Arc::new(loaded))
}

/// The findings of one sanitized run of a kernel in `source`; for `assay doctor`.
///
/// # Errors
/// As [`run`].
pub fn findings(args: &RunArgs, source: &str, compiler: &Compiler) -> Result<Vec<Finding>, Failure> {
    let blocks = blockspec::parse(&args.blocks, args.grid, 0).map_err(Failure::bad_input)?;
    let specs = specs(&args.args)?;
    let (buffers, lazy) = (buffers(&specs, &blocks)?, sparse::buffers(&specs, blocks == Blocks::All));
    let (module, entry) = compile_with(args, source, compiler)?;
    let loaded = load(args, source, &module, &entry, &specs)?;
    let ran = once(args, &specs, &buffers, &lazy, &blocks, &loaded, &entry, 0)?;
    match ran.outcome.status {
        Status::Ok | Status::Finding => Ok(ran.outcome.findings),
        Status::Unsupported | Status::Exhausted => {
            Err(Failure::unsupported(ran.outcome.reason.unwrap_or_else(|| "it did not end".into())))
        }
    }
}

/// The `--arg` of a command line.
///
/// # Errors
/// Bad input, with a mark under the character.
pub fn specs(texts: &[String]) -> Result<Vec<ArgSpec>, Failure> {
    texts.iter().map(|text| ArgSpec::parse(text).map_err(Failure::bad_input)).collect()
}

/// The tensors of the buffers among them: name, values, and whether they are fresh memory.
///
/// # Errors
/// As [`run`].
pub fn tensors(specs: &[ArgSpec]) -> Result<Vec<(String, Tensor, bool)>, Failure> {
    if let Some(b) = sparse::buffers(specs, true).first() {
        return Err(Failure::unsupported(format!(
            "`{}` has {} bytes; buffers over 1 GiB are for `assay run`, which keeps them sparse",
            b.name,
            b.size_bytes()
        )));
    }
    Ok(buffers(specs, &Blocks::All)?.into_iter().map(|b| (b.name, b.tensor, b.fresh)).collect())
}

fn load_failure(file: &Path, e: &assay_simt::LoadError) -> Failure {
    let message = format!("{}: {e}", file.display());
    match e {
        assay_simt::LoadError::Unsupported { .. } => Failure::unsupported(message),
        _ => Failure::bad_input(message),
    }
}

/// The PTX module and the entry's name in it.
fn compile(args: &RunArgs, source: &str, bar: &Bar) -> Result<(Module, String), Failure> {
    let file = args.file.display();
    if args.file.extension().is_some_and(|e| e == "ptx") {
        let module = parse(&file.to_string(), source)?;
        if module.entry(&args.kernel).is_none() {
            return Err(no_kernel(&args.kernel, &module));
        }
        return Ok((module, args.kernel.clone()));
    }
    compile_with(args, source, &tools::compiler(bar, 1)?)
}

fn compile_with(args: &RunArgs, source: &str, compiler: &Compiler) -> Result<(Module, String), Failure> {
    let options = tools::compile_options(&args.compile);
    let unit = Unit {
        name: "run".into(),
        file: args.file.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy().into_owned()),
        source: assay_problems::device_source(source),
        kernels: vec![args.kernel.clone()],
    };
    let image = compiler
        .compile(&options, std::slice::from_ref(&unit))
        .pop()
        .ok_or_else(|| Failure::bug("the compiler gave no answer"))?
        .map_err(|e| match unknown_name(&e) {
            Some(why) => {
                let names: Vec<String> =
                    assay_problems::kernel_names(source).iter().map(|n| format!("`{n}`")).collect();
                let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                Failure::bad_input(format!(
                    "no kernel `{}` in `{}`, which has {has}: {why}",
                    args.kernel,
                    args.file.display()
                ))
            }
            None => tools::refused(&args.file, &e),
        })?;
    let module = parse("the compiled PTX", &image.ptx)?;
    let entry = image.entries.get(&args.kernel).cloned().ok_or_else(|| no_kernel(&args.kernel, &module))?;
    Ok((module, entry))
}

/// Why the compiler does not know the kernel's name, if that is all: such a complaint stands in no line of the file.
fn unknown_name(e: &CompileError) -> Option<&str> {
    let only = e.log.contains("name expression") && e.lines.iter().all(|l| l.line.is_none());
    e.lines.first().filter(|_| only && e.kind == CompileErrorKind::Rejected).map(|l| l.message.as_str())
}

fn parse(what: &str, text: &str) -> Result<Module, Failure> {
    assay_ptx::parse_module(text).map_err(|e| {
        let message = format!("{what}: {e}");
        match e {
            assay_ptx::PtxError::Unsupported { .. } => Failure::unsupported(message),
            _ => Failure::bad_input(message),
        }
    })
}

fn no_kernel(kernel: &str, module: &Module) -> Failure {
    let names: Vec<String> = module
        .functions
        .iter()
        .filter(|f| f.kind == assay_ptx::FunctionKind::Entry)
        .map(|f| format!("`{}`", f.name))
        .collect();
    Failure::bad_input(format!("no kernel `{kernel}` in the file; it has {}", names.join(", ")))
}

/// The buffers that are held as a whole.
fn buffers(specs: &[ArgSpec], blocks: &Blocks) -> Result<Vec<Buffer>, Failure> {
    let mut out: Vec<Buffer> = Vec::new();
    for s in specs {
        if specs.iter().filter(|o| o.name == s.name).count() > 1 {
            return Err(Failure::bad_input(s.fault(0, format!("two --arg have the name `{}`", s.name))));
        }
        let (tensor, fresh) = match &s.kind {
            kind if sparse::is_sparse(kind, *blocks == Blocks::All) => continue,
            ArgKind::Buffer { dtype, shape, generator } => {
                (generator.fill(*dtype, shape).map_err(Failure::bad_input)?, *generator == Generator::Uninit)
            }
            ArgKind::File { path, tensor } => {
                let mut all = safetensors_io::read(path)
                    .map_err(|e| Failure::bad_input(s.fault(s.value_at() + 1, e.to_string())))?;
                let names: Vec<String> = all.keys().map(|k| format!("`{k}`")).collect();
                let t = all.remove(tensor).ok_or_else(|| {
                    let what =
                        format!("no tensor `{tensor}` in `{}`; it has {}", path.display(), names.join(", "));
                    Failure::bad_input(s.fault(s.text.rfind('#').map_or(0, |h| h + 1), what))
                })?;
                (t, false)
            }
            _ => continue,
        };
        out.push(Buffer { name: s.name.clone(), tensor, fresh });
    }
    for s in specs {
        if let ArgKind::Alias { of, .. } = &s.kind
            && specs
                .iter()
                .all(|b| b.name != *of || !matches!(b.kind, ArgKind::Buffer { .. } | ArgKind::File { .. }))
        {
            return Err(Failure::bad_input(
                s.fault(s.value_at() + 1, format!("`{of}` is no buffer among the --arg")),
            ));
        }
    }
    Ok(out)
}

/// Compares the `--arg` with the kernel's parameters before anything runs.
///
/// `signature` are the parameters as the source has them, where it is at hand.
fn check_params(
    specs: &[ArgSpec],
    params: &[Param],
    kernel: &str,
    signature: Option<&str>,
) -> Result<(), Failure> {
    if specs.len() != params.len() {
        let sizes: Vec<String> = params.iter().map(|p| p.size_bytes.to_string()).collect();
        let them = signature
            .map_or_else(|| format!("of {} bytes", sizes.join(", ")), |s| format!("`{}`", text::clean(s)));
        return Err(Failure::bad_input(format!(
            "kernel `{kernel}` has {} parameters ({them}), {} --arg were given",
            params.len(),
            specs.len()
        )));
    }
    for (k, (s, p)) in specs.iter().zip(params).enumerate() {
        let size = match &s.kind {
            ArgKind::Buffer { .. } | ArgKind::File { .. } | ArgKind::Null | ArgKind::Alias { .. } => 8,
            ArgKind::Scalar { bytes, .. } | ArgKind::Bytes(bytes) => bytes.len() as u64,
        };
        if size != p.size_bytes {
            let them = signature.map_or_else(String::new, |s| format!(" (`{}`)", text::clean(s)));
            let what = format!(
                "`{}` passes {size} bytes, parameter {} of `{kernel}` has {}{them}",
                s.name,
                k + 1,
                p.size_bytes
            );
            return Err(Failure::bad_input(s.fault(s.value_at(), what)));
        }
    }
    Ok(())
}

/// Warp instructions that a launch of `executed` blocks may execute: a fixed part, by which a small kernel that never ends
/// is known within seconds, and more for every warp and every byte that there may be work for. Of a sample less: its
/// loops are seldom long, unless an index wraps in one.
fn instruction_budget(args: &RunArgs, buffers: &[Buffer], blocks: &Blocks, executed: u64) -> u64 {
    // Minutes: whatever the grid, a kernel that never ends is found out.
    const MOST: u64 = 20_000_000_000;
    let (fixed, per_warp, per_byte) =
        if *blocks == Blocks::All { (100_000_000, 1_000_000, 16) } else { (20_000_000, 50_000, 0) };
    let threads = args.block.into_iter().fold(1u64, u64::saturating_mul);
    let warps = threads.div_ceil(32).saturating_mul(executed);
    let bytes = buffers.iter().fold(0u64, |sum, b| sum.saturating_add(b.tensor.data.len() as u64));
    let more = warps.saturating_mul(per_warp).saturating_add(bytes.saturating_mul(per_byte));
    more.saturating_add(fixed).min(MOST)
}

#[expect(clippy::too_many_arguments, reason = "one run, from arguments to results")]
fn once(
    args: &RunArgs,
    specs: &[ArgSpec],
    buffers: &[Buffer],
    lazy: &[Lazy],
    blocks: &Blocks,
    loaded: &Arc<Loaded>,
    entry: &str,
    seed: u64,
) -> Result<Ran, Failure> {
    let mut session = Session::new(
        Arc::clone(loaded),
        Options {
            memory: match args.memory {
                MemoryArg::Strict => Memory::Strict,
                MemoryArg::Arena => Memory::Arena,
            },
            fill: match args.fill {
                FillArg::Noise => Fill::Noise,
                FillArg::Zeros => Fill::Zeros,
                FillArg::Nan => Fill::Nan,
                FillArg::Previous => Fill::Previous,
            },
            sanitize: if args.sanitize { Sanitize::ALL } else { Sanitize::OFF },
            engine: match args.engine {
                EngineArg::Auto => Engine::Auto,
                EngineArg::Interp => Engine::Interp,
                EngineArg::Jit => Engine::Jit,
            },
            schedule: match args.schedule {
                ScheduleArg::Hardware => Schedule::Hardware,
                ScheduleArg::RunAhead => Schedule::RunAhead,
            },
            seed,
            fill_seed: seed,
            ..Options::default()
        },
    );
    let mut pointers: BTreeMap<&str, Ptr> = BTreeMap::new();
    for b in buffers {
        // Any buffer may be written; those given as `uninit` are what the kernel is expected to fill.
        let (role, init) =
            if b.fresh { (Role::Output, Init::Uninit) } else { (Role::Scratch, Init::Bytes(&b.tensor.data)) };
        let mut spec = BufferSpec::new(&b.name, b.tensor.data.len() as u64, role, b.tensor.dtype, init);
        spec.shape = &b.tensor.shape;
        pointers.insert(&b.name, session.alloc(spec).map_err(Failure::bad_input)?);
    }
    for b in lazy {
        let (role, init) = match &b.values {
            Some(g) => (Role::Scratch, Init::Generated(g)),
            None => (Role::Output, Init::Uninit),
        };
        let mut spec = BufferSpec::new(&b.name, b.size_bytes(), role, b.dtype, init);
        spec.sparse = true;
        spec.shape = &b.shape;
        let ptr = session.alloc(spec).map_err(|e| match e {
            SessionError::TooLarge { .. } | SessionError::SparseArena { .. } => Failure::unsupported(e),
            _ => Failure::bad_input(e),
        })?;
        pointers.insert(&b.name, ptr);
    }
    let pointer = |name: &str| pointers.get(name).copied().ok_or_else(|| Failure::bug("a buffer was lost"));
    let mut values = Vec::new();
    for s in specs {
        values.push(match &s.kind {
            ArgKind::Buffer { .. } | ArgKind::File { .. } => Arg::Pointer(pointer(&s.name)?, 0),
            ArgKind::Alias { of, offset_bytes } => {
                let offset = i64::try_from(*offset_bytes)
                    .map_err(|_| Failure::bad_input("the byte offset is too large"))?;
                Arg::Pointer(pointer(of)?, offset)
            }
            ArgKind::Null => Arg::Bytes(vec![0; 8]),
            ArgKind::Scalar { bytes, .. } | ArgKind::Bytes(bytes) => Arg::Bytes(bytes.clone()),
        });
    }
    let spec = LaunchSpec {
        kernel: entry,
        grid: args.grid,
        block: args.block,
        dynamic_shared: args.shared,
        args: &values,
        blocks,
    };
    session.set_instruction_budget(instruction_budget(args, buffers, blocks, session.count_blocks(&spec)));
    let started = Instant::now();
    let mut outcome = session.launch(&spec);
    let seconds = started.elapsed().as_secs_f64();
    // As the command line has it, not as the compiler mangled it.
    for f in &mut outcome.findings {
        f.kernel = Some(args.kernel.clone());
    }
    if args.sanitize && !outcome.faulted() && matches!(outcome.status, Status::Ok | Status::Finding) {
        outcome.findings.extend(session.finish());
        if !outcome.findings.is_empty() {
            outcome.status = Status::Finding;
        }
    }
    let mut tensors = BTreeMap::new();
    for b in buffers {
        let bytes = session.read(pointer(&b.name)?).to_vec();
        let t = Tensor::from_bytes(b.tensor.dtype, &b.tensor.shape, bytes).map_err(Failure::bug)?;
        tensors.insert(b.name.clone(), t);
    }
    let mut written = BTreeMap::new();
    for b in lazy {
        written.insert(b.name.clone(), Written::take(&session, pointer(&b.name)?, b)?);
    }
    Ok(Ran { outcome, tensors, written, seconds, seed, engine: session.engine() })
}

fn schedule_name(args: &RunArgs) -> &'static str {
    match args.schedule {
        ScheduleArg::Hardware => "hardware",
        ScheduleArg::RunAhead => "run-ahead",
    }
}

/// Buffers as in the JSON of the contract.
pub fn outputs_json(tensors: &BTreeMap<String, Tensor>) -> Map<String, Value> {
    tensors
        .iter()
        .map(|(name, t)| {
            let o = json!({
                "dtype": t.dtype, "shape": t.shape, "sha256": t.sha256_hex(), "head": t.head(HEAD),
            });
            (name.clone(), o)
        })
        .collect()
}

fn document(args: &RunArgs, ran: &Ran) -> Value {
    let mut outputs = outputs_json(&ran.tensors);
    outputs.extend(sparse::outputs(&ran.written));
    json!({
        "status": ran.outcome.status,
        "outputs": outputs,
        "findings": ran.outcome.findings,
        "printf": ran.outcome.printf,
        "instructions": ran.outcome.instructions,
        "seconds": ran.seconds,
        "schedule": schedule_name(args),
        "seed": ran.seed,
        "engine": if ran.engine == Engine::Jit { "jit" } else { "interp" },
        "reason": ran.outcome.reason,
        "blocks": ran.outcome.blocks,
        "coverage": ran.outcome.coverage,
        "replay": (!ran.outcome.findings.is_empty()).then(|| replay(args, ran.seed)),
    })
}

/// The header of a table of buffers.
pub const BUFFER_HEADER: [&str; 4] = ["Buffer", "Type", "", "First values"];

/// A buffer's row: what it holds, and whether that differs from what it held `before` (none for fresh memory).
pub fn buffer_row(name: &str, t: &Tensor, before: Option<&Tensor>) -> Vec<String> {
    let state = match before {
        None => "output",
        Some(b) if b.data == t.data => "unchanged",
        Some(_) => "changed",
    };
    let values: Vec<String> = (0..t.len().min(HEAD)).map(|i| show(t, i)).collect();
    let dots = if t.len() > HEAD { " …" } else { "" };
    let shape: Vec<String> = t.shape.iter().map(u64::to_string).collect();
    vec![name.to_owned(), format!("{}[{}]", t.dtype, shape.join(",")), state.into(), values.join(" ") + dots]
}

fn page(args: &RunArgs, source: &str, buffers: &[Buffer], ran: &Ran) -> String {
    let mut s = String::new();
    for line in &ran.outcome.printf {
        s.push_str(line);
        if !line.ends_with('\n') {
            s.push('\n');
        }
    }
    let rows = buffers.iter().filter_map(|b| {
        let after = ran.tensors.get(&b.name)?;
        Some(buffer_row(&b.name, after, (!b.fresh).then_some(&b.tensor)))
    });
    let sparse = ran.written.iter().map(|(name, w)| w.row(name, show));
    s.push_str(&list::table(&BUFFER_HEADER, rows.chain(sparse)));
    s.push_str(&sparse::summary(&ran.outcome));
    let quoted = Source { path: &args.file, text: source };
    for f in &ran.outcome.findings {
        s.push_str(&quoted.finding(f, output::width()));
        s.push('\n');
    }
    if !ran.outcome.findings.is_empty() {
        s.push_str(&format!("replay: {}\n\n", replay(args, ran.seed)));
    }
    let rate = ran.outcome.instructions as f64 / ran.seconds.max(1e-9) / 1e6;
    let what = match ran.outcome.status {
        Status::Ok => "ok".to_owned(),
        Status::Finding => {
            format!("{} finding{}", ran.outcome.findings.len(), plural(ran.outcome.findings.len()))
        }
        Status::Unsupported | Status::Exhausted => {
            let word = if ran.outcome.status == Status::Exhausted { "exhausted" } else { "unsupported" };
            format!("{word}: {}", ran.outcome.reason.clone().unwrap_or_default())
        }
    };
    // The seed that ended a search, or all of them where none did.
    let seeds = match &args.seeds {
        Some(range) if ran.outcome.status == Status::Ok => format!("seeds {}..{}", range.start, range.end),
        _ => format!("seed {}", ran.seed),
    };
    s.push_str(&format!(
        "{what}; {} warp instructions in {:.3} s ({rate:.0} M/s), schedule {} {seeds}\n",
        ran.outcome.instructions,
        ran.seconds,
        schedule_name(args),
    ));
    s
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn show(t: &Tensor, i: u64) -> String {
    match (t.dtype, t.get_i128(i)) {
        (DType::Bool, Some(v)) => (v != 0).to_string(),
        (_, Some(v)) => v.to_string(),
        (DType::F64, None) => format!("{}", t.get_f64(i)),
        (_, None) => format!("{}", t.get_f64(i) as f32),
    }
}

/// This command line with its schedule and seed, so that a run can be repeated to the bit.
fn replay(args: &RunArgs, seed: u64) -> String {
    let mut words: Vec<String> = vec!["assay".into()];
    let mut skip = false;
    for a in std::env::args().skip(1) {
        if skip {
            skip = false;
        } else if matches!(a.as_str(), "--seed" | "--seeds" | "--schedule") {
            skip = true;
        } else if !["--seed=", "--seeds=", "--schedule="].iter().any(|p| a.starts_with(p)) {
            words.push(text::shell(&a));
        }
    }
    format!("{} --schedule {} --seed {seed}", words.join(" "), schedule_name(args))
}
