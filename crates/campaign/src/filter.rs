//! Mutants of a substrate, compiled and sorted: non-compiling, duplicate, equivalent, distinct.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_mutate::{Family, Mutant};
use assay_nvrtc::{CompileError, CompileErrorKind, Compiler, Image, Unit};
use assay_problems::{HostError, HostProgram, Plan, Problem};
use assay_simt::Loaded;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::CampaignError;
use crate::execute::Executable;

/// Dims at which launchers are traced, by a name that is unique among them.
pub type Shapes = Vec<(String, BTreeMap<String, u64>)>;

/// Units in one NVRTC call: measured in `benches/`, more gain little and a failing unit costs a recompile of its batch.
const BATCH: usize = 16;

/// A version of the substrate: the original or a mutant.
#[derive(Clone)]
pub struct Version {
    /// The compiled kernels; none where nothing could be compiled or launched.
    pub exe: Option<Executable>,
    /// What the launcher does at each shape, by the shape's name.
    pub plans: Arc<BTreeMap<String, Result<Plan, HostError>>>,
    /// Identity: machine code of every kernel launched, the launcher's text, and its traces.
    pub identity: String,
    /// Identities of the kernels alone.
    pub kernels: BTreeMap<String, String>,
}

/// Where a mutant went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sorted {
    /// To be evaluated.
    Distinct,
    /// The compiler, or the launcher's parser, refused it.
    Noncompiling(String),
    /// The same image and launcher as that earlier mutant's.
    Duplicate(String),
    /// The same image as the original's, and a launcher that does the same at every shape tried.
    Equivalent(String),
    /// Neither refused nor runnable: what is missing, in words.
    Quarantined(String),
}

/// A mutant with its fate.
pub struct Candidate {
    /// The mutant.
    pub mutant: Mutant,
    /// Its compiled version.
    pub version: Option<Version>,
    /// Where it went.
    pub sorted: Sorted,
}

/// A source whose launcher was understood, waiting for its kernels to be compiled.
struct Parsed {
    host: HostProgram,
    device: String,
    kernels: Vec<String>,
}

fn parse(source: &str) -> Result<Parsed, HostError> {
    let host = HostProgram::parse(source)?;
    let device = host.device_source();
    let kernels = host.kernels().to_vec();
    Ok(Parsed { host, device, kernels })
}

fn version(problem: &Problem, parsed: &Parsed, exe: Executable, image: &Image, shapes: &Shapes) -> Version {
    let plans: BTreeMap<String, Result<Plan, HostError>> =
        shapes.iter().map(|(name, dims)| (name.clone(), parsed.host.plan(&problem.bindings(dims)))).collect();
    let kernels = image.identity.clone();
    let mut hash = Sha256::new();
    let mut put = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    for (name, identity) in &kernels {
        put(name);
        put(identity);
    }
    put(parsed.host.normalised());
    for (shape, plan) in &plans {
        put(shape);
        put(&trace(plan));
    }
    let identity = assay_tensor::tensor::hex(&hash.finalize()[..16]);
    Version { exe: Some(exe), plans: Arc::new(plans), identity, kernels }
}

/// What a launcher does at a shape, as text.
pub fn trace(plan: &Result<Plan, HostError>) -> String {
    match plan {
        Ok(plan) => plan.trace(),
        Err(e) => format!("error: {e}"),
    }
}

/// Decodes images, each batch's PTX once.
#[derive(Default)]
struct Decoder {
    done: HashMap<usize, Result<Executable, String>>,
}

impl Decoder {
    fn decode(&mut self, image: &Image) -> Result<Executable, String> {
        // Units of a batch share one text, so its address tells batches apart while they are alive.
        let key = Arc::as_ptr(&image.ptx).cast::<u8>() as usize;
        let base = self.done.entry(key).or_insert_with(|| {
            let module = assay_ptx::parse_module(&image.ptx).map_err(|e| format!("PTX: {e}"))?;
            let loaded = Loaded::new(&module).map_err(|e| e.to_string())?;
            Ok(Executable { module: Arc::new(module), loaded: Arc::new(loaded), entries: Arc::default() })
        });
        let base = base.clone()?;
        for entry in image.entries.values() {
            base.loaded.check(entry).map_err(|e| e.to_string())?;
        }
        Ok(Executable { entries: Arc::new(image.entries.clone()), ..base })
    }
}

/// Why there is no version of a source.
pub(crate) enum Refused {
    /// The launcher is not understood, or would not compile.
    Host(HostError),
    /// The compiler gave no image.
    Compile(CompileError),
    /// The device lacks something that the image asks for.
    Device(String),
    /// The compiler did not answer.
    Lost,
}

/// Compiles a source. `file` is its name in messages and line information.
pub(crate) fn try_compiled(
    problem: &Problem,
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    file: &str,
    source: &str,
    shapes: &Shapes,
) -> Result<Version, Refused> {
    let parsed = parse(source).map_err(Refused::Host)?;
    let (image, exe) = executable(compiler, options, &unit("whole", file, &parsed))?;
    Ok(version(problem, &parsed, exe, &image, shapes))
}

/// Compiles and decodes one unit by itself.
pub(crate) fn executable(
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    unit: &Unit,
) -> Result<(Image, Executable), Refused> {
    let image = compiler.compile(options, std::slice::from_ref(unit)).pop().ok_or(Refused::Lost)?;
    let image = image.map_err(Refused::Compile)?;
    let exe = Decoder::default().decode(&image).map_err(Refused::Device)?;
    Ok((image, exe))
}

/// Compiles a version that must compile: the original, or another implementation. `file` is for messages.
///
/// # Errors
/// `Input` where the launcher is not understood, the kernels do not compile, or the device lacks an instruction.
pub fn compiled(
    problem: &Problem,
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    file: &str,
    source: &str,
    shapes: &Shapes,
) -> Result<Version, CampaignError> {
    let fault = |e: String| CampaignError::Input(format!("{file}:{e}"));
    try_compiled(problem, compiler, options, UNIT_FILE, source, shapes).map_err(|e| match e {
        Refused::Host(e) => fault(e.to_string()),
        Refused::Compile(e) => compile_fault(file, &e),
        Refused::Device(e) => fault(e),
        Refused::Lost => CampaignError::Internal("the compiler gave no answer".into()),
    })
}

/// A compiler's refusal of a file that was to compile, with its log.
fn compile_fault(file: &str, e: &CompileError) -> CampaignError {
    CampaignError::Input(format!("`{file}` does not compile: {e}\n{}", e.log.trim_end()))
}

/// What the compiler calls a version of a problem's kernel file.
const UNIT_FILE: &str = "kernel.cu";

fn unit(name: &str, file: &str, parsed: &Parsed) -> Unit {
    Unit {
        name: name.to_owned(),
        file: file.to_owned(),
        source: parsed.device.clone(),
        kernels: parsed.kernels.clone(),
    }
}

/// Compiles every mutant and sorts it. The order of the answer is that of `mutants`; `step` is called with the number
/// of mutants done, before and after each batch, and may stop the work.
///
/// # Errors
/// `Input` where the compiler itself cannot be started; what `step` gives.
pub fn sort(
    problem: &Problem,
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    original: &Version,
    shapes: &Shapes,
    mutants: Vec<Mutant>,
    step: &(dyn Fn(u64) -> Result<(), CampaignError> + Sync),
) -> Result<Vec<Candidate>, CampaignError> {
    let chunks: Vec<&[Mutant]> = mutants.chunks(BATCH).collect();
    let compiled: Vec<Vec<(Option<Version>, Sorted)>> = chunks
        .par_iter()
        .map(|chunk| {
            step(0)?;
            let done = compile_chunk(problem, compiler, options, shapes, chunk)?;
            step(chunk.len() as u64)?;
            Ok(done)
        })
        .collect::<Result<_, CampaignError>>()?;
    let mut first: HashMap<String, String> = HashMap::new();
    let mut out = Vec::with_capacity(mutants.len());
    for (mutant, (version, mut sorted)) in mutants.into_iter().zip(compiled.into_iter().flatten()) {
        if let (Sorted::Distinct, Some(v)) = (&sorted, &version) {
            if v.identity == original.identity {
                sorted = Sorted::Equivalent("same machine code and launcher as the original".into());
            } else if v.kernels == original.kernels
                && same_traces(v, original)
                // A launcher's width fault shows beyond the extents tried, which prove nothing about it.
                && mutant.family != Family::Width
            {
                sorted = Sorted::Equivalent(format!(
                    "same machine code as the original, and the launcher does the same at all {} shapes tried",
                    shapes.len()
                ));
            } else if let Some(earlier) = first.get(&v.identity) {
                sorted = Sorted::Duplicate(earlier.clone());
            } else {
                first.insert(v.identity.clone(), mutant.id.clone());
            }
        }
        out.push(Candidate { mutant, version, sorted });
    }
    Ok(out)
}

fn same_traces(a: &Version, b: &Version) -> bool {
    a.plans.len() == b.plans.len()
        && a.plans.iter().all(|(shape, plan)| b.plans.get(shape).map(trace) == Some(trace(plan)))
}

fn compile_chunk(
    problem: &Problem,
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    shapes: &Shapes,
    mutants: &[Mutant],
) -> Result<Vec<(Option<Version>, Sorted)>, CampaignError> {
    let parsed: Vec<Result<Parsed, HostError>> =
        mutants.iter().map(|m| parse(&m.apply(&problem.kernel_source))).collect();
    let units: Vec<Unit> = mutants
        .iter()
        .zip(&parsed)
        .filter_map(|(m, p)| p.as_ref().ok().map(|p| unit(&m.id, UNIT_FILE, p)))
        .collect();
    let mut images = compiler.compile(options, &units).into_iter();
    let mut decoder = Decoder::default();
    let mut out = Vec::with_capacity(mutants.len());
    for p in &parsed {
        let p = match p {
            Ok(p) => p,
            Err(e @ HostError::Unsupported { .. }) => {
                out.push((None, Sorted::Quarantined(format!("launcher: {e}"))));
                continue;
            }
            Err(e) => {
                out.push((None, Sorted::Noncompiling(format!("launcher: {e}"))));
                continue;
            }
        };
        let image =
            images.next().ok_or_else(|| CampaignError::Internal("the compiler lost a unit".into()))?;
        out.push(match image {
            Err(e) => match e.kind {
                CompileErrorKind::Rejected => (None, Sorted::Noncompiling(e.to_string())),
                CompileErrorKind::TimedOut | CompileErrorKind::Crashed => {
                    (None, Sorted::Quarantined(format!("compiler: {e}")))
                }
                CompileErrorKind::Options | CompileErrorKind::Unavailable => {
                    return Err(compile_fault("kernel.cu", &e));
                }
            },
            Ok(image) => match decoder.decode(&image) {
                Ok(exe) => (Some(version(problem, p, exe, &image, shapes)), Sorted::Distinct),
                // One unit's instruction that the device lacks must not take its batch down.
                Err(_) if units.len() > 1 => alone(problem, compiler, options, shapes, p)?,
                Err(e) => (None, Sorted::Quarantined(e)),
            },
        });
    }
    Ok(out)
}

/// A unit compiled by itself, after its batch could not be decoded.
fn alone(
    problem: &Problem,
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    shapes: &Shapes,
    parsed: &Parsed,
) -> Result<(Option<Version>, Sorted), CampaignError> {
    let image = compiler
        .compile(options, &[unit("alone", UNIT_FILE, parsed)])
        .pop()
        .ok_or_else(|| CampaignError::Internal("the compiler gave no answer".into()))?;
    Ok(match image {
        Err(e) => (None, Sorted::Quarantined(format!("compiler: {e}"))),
        Ok(image) => match Decoder::default().decode(&image) {
            Ok(exe) => (Some(version(problem, parsed, exe, &image, shapes)), Sorted::Distinct),
            Err(e) => (None, Sorted::Quarantined(e)),
        },
    })
}
