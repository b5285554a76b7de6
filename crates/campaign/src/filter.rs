//! Mutants of a substrate, compiled and sorted: non-compiling, duplicate, equivalent, distinct.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_mutate::{Family, Mutant};
use assay_nvrtc::{CompileError, CompileErrorKind, Compiler, Image, Unit};
use assay_problems::{HostError, HostProgram, KernelTexts, Plan, Problem, kernel_texts};
use assay_ptx::Module;
use assay_simt::Loaded;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::CampaignError;
use crate::execute::{Entry, Executable};

/// Dims at which launchers are traced, by a name that is unique among them.
pub type Shapes = Vec<(String, BTreeMap<String, u64>)>;

/// Mutants compiled at a time. Two workers share them, so that an NVRTC call has about 16 units: more gain little
/// (`benches/`), and a failing unit costs a recompile of its batch.
const BATCH: usize = 32;

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

fn version(problem: &Problem, parsed: &Parsed, compiled: Compiled, shapes: &Shapes) -> Version {
    let Compiled { exe, identity: kernels } = compiled;
    let plans: BTreeMap<String, Result<Plan, HostError>> =
        shapes.iter().map(|(name, dims)| (name.clone(), parsed.host.plan(&problem.bindings(dims)))).collect();
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

/// Kernels of a version, ready to run, with their identities by the launcher's names.
#[derive(Clone)]
struct Compiled {
    exe: Executable,
    identity: BTreeMap<String, String>,
}

impl Compiled {
    /// One version out of kernels that were compiled apart; `None` where the device must have them from one module.
    fn gathered(parts: &[Compiled]) -> Option<Compiled> {
        let mut entries = BTreeMap::new();
        let mut identity = BTreeMap::new();
        for part in parts {
            entries.extend(part.exe.entries.iter().map(|(k, v)| (k.clone(), v.clone())));
            identity.extend(part.identity.clone());
        }
        let kernels = parts
            .iter()
            .flat_map(|p| p.exe.entries.values().map(|entry| (p.exe.loaded.as_ref(), entry.name.as_str())));
        let loaded = Arc::new(Loaded::gathered(kernels)?);
        Some(Compiled { exe: Executable { loaded, entries: Arc::new(entries) }, identity })
    }

    /// Only what a launcher names; `None` where it names more.
    fn only(&self, kernels: &[String]) -> Option<Compiled> {
        let pick =
            |k: &String| Some((k.clone(), self.exe.entries.get(k)?.clone(), self.identity.get(k)?.clone()));
        let picked: Vec<_> = kernels.iter().map(pick).collect::<Option<_>>()?;
        let identity = picked.iter().map(|(k, _, i)| (k.clone(), i.clone())).collect();
        let entries = picked.into_iter().map(|(k, entry, _)| (k, entry)).collect();
        let loaded = Arc::clone(&self.exe.loaded);
        Some(Compiled { exe: Executable { loaded, entries: Arc::new(entries) }, identity })
    }
}

/// A batch's PTX, parsed and decoded; in words why it cannot be.
type Decoded = Result<(Arc<Module>, Arc<Loaded>), String>;

/// Decodes images, each batch's PTX once.
#[derive(Default)]
struct Decoder {
    done: HashMap<usize, Decoded>,
}

impl Decoder {
    fn decode(&mut self, image: &Image) -> Result<Compiled, String> {
        // Units of a batch share one text, so its address tells batches apart while they are alive.
        let key = Arc::as_ptr(&image.ptx).cast::<u8>() as usize;
        let base = self.done.entry(key).or_insert_with(|| {
            let module = assay_ptx::parse_module(&image.ptx).map_err(|e| format!("PTX: {e}"))?;
            let loaded = Loaded::new(&module).map_err(|e| e.to_string())?;
            Ok((Arc::new(module), Arc::new(loaded)))
        });
        let (module, loaded) = base.clone()?;
        for entry in image.entries.values() {
            loaded.check(entry).map_err(|e| e.to_string())?;
        }
        let entry = |name: &String| Entry { module: Arc::clone(&module), name: name.clone() };
        let entries = Arc::new(image.entries.iter().map(|(k, name)| (k.clone(), entry(name))).collect());
        let compiled = Compiled { exe: Executable { loaded, entries }, identity: image.identity.clone() };
        // Without the variables of the batch's other units, where that can be.
        Ok(Compiled::gathered(std::slice::from_ref(&compiled)).unwrap_or(compiled))
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
    let compiled = compile_unit(compiler, options, &unit("whole", file, &parsed))?.1;
    Ok(version(problem, &parsed, compiled, shapes))
}

/// Compiles and decodes one unit by itself.
pub(crate) fn executable(
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    unit: &Unit,
) -> Result<(Image, Executable), Refused> {
    compile_unit(compiler, options, unit).map(|(image, compiled)| (image, compiled.exe))
}

fn compile_unit(
    compiler: &Compiler,
    options: &assay_nvrtc::Options,
    unit: &Unit,
) -> Result<(Image, Compiled), Refused> {
    let image = compiler.compile(options, std::slice::from_ref(unit)).pop().ok_or(Refused::Lost)?;
    let image = image.map_err(Refused::Compile)?;
    let compiled = Decoder::default().decode(&image).map_err(Refused::Device)?;
    Ok((image, compiled))
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
    let bench =
        Filter { problem, compiler, options, shapes, known: Known::of(problem, compiler, options, original) };
    // Even chunks: a short last one would leave its calls with few units.
    let chunks: Vec<&[Mutant]> =
        mutants.chunks(mutants.len().div_ceil(mutants.len().div_ceil(BATCH).max(1)).max(1)).collect();
    let compiled: Vec<Vec<(Option<Version>, Sorted)>> = chunks
        .par_iter()
        .map(|chunk| {
            step(0)?;
            let done = bench.compile_chunk(chunk)?;
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

/// What the original's compilation answers for its mutants.
#[derive(Default)]
struct Known {
    /// The original's text without kernels; `None` where kernels are not compiled apart.
    rest: Option<String>,
    /// By the text of one kernel alone.
    kernels: HashMap<String, Compiled>,
}

impl Known {
    /// The original's kernels one by one: itself where it has one; else each is compiled by itself, which is kept only if
    /// all come out as they did in the whole file: then nothing there makes one kernel's code depend on another's text.
    fn of(
        problem: &Problem,
        compiler: &Compiler,
        options: &assay_nvrtc::Options,
        original: &Version,
    ) -> Known {
        Self::split(problem, compiler, options, original).unwrap_or_default()
    }

    fn split(
        problem: &Problem,
        compiler: &Compiler,
        options: &assay_nvrtc::Options,
        original: &Version,
    ) -> Option<Known> {
        let parsed = parse(&problem.kernel_source).ok()?;
        let texts = kernel_texts(&parsed.device)?;
        let split = apart(&texts, &parsed.kernels)?;
        let parts: Vec<Compiled> = if texts.kernels.len() == 1 {
            vec![Compiled { exe: original.exe.clone()?, identity: original.kernels.clone() }]
        } else {
            let units: Vec<Unit> = split.iter().map(|(text, names)| part_unit("part", text, names)).collect();
            let mut decoder = Decoder::default();
            let images = compiler.compile(options, &units).into_iter();
            images.map(|image| decoder.decode(&image.ok()?).ok()).collect::<Option<_>>()?
        };
        if parts.len() != split.len() || Compiled::gathered(&parts)?.identity != original.kernels {
            return None;
        }
        let kernels = split.into_iter().map(|(text, _)| text.to_owned()).zip(parts).collect();
        Some(Known { rest: Some(texts.rest), kernels })
    }
}

/// For each kernel that a launcher names: its text alone, and the name expressions for it. `None` where one is not found.
fn apart<'t>(texts: &'t KernelTexts, kernels: &[String]) -> Option<Vec<(&'t str, Vec<String>)>> {
    let mut out: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    for expression in kernels {
        let (base, text) = texts.kernels.get_key_value(KernelTexts::base(expression))?;
        out.entry(base).or_insert_with(|| (text, Vec::new())).1.push(expression.clone());
    }
    Some(out.into_values().collect())
}

fn part_unit(name: &str, text: &str, kernels: &[String]) -> Unit {
    Unit {
        name: name.to_owned(),
        file: UNIT_FILE.to_owned(),
        source: text.to_owned(),
        kernels: kernels.to_vec(),
    }
}

/// Where a mutant's kernels come from.
enum Source {
    /// The whole text: a unit.
    Whole(usize),
    /// Kernels as in the original, and units of one kernel each.
    Parts(Vec<Compiled>, Vec<usize>),
}

/// Everything that the chunks of a problem share.
struct Filter<'a> {
    problem: &'a Problem,
    compiler: &'a Compiler,
    options: &'a assay_nvrtc::Options,
    shapes: &'a Shapes,
    known: Known,
}

type Filtered = (Option<Version>, Sorted);

impl Filter<'_> {
    fn compile_chunk(&self, mutants: &[Mutant]) -> Result<Vec<Filtered>, CampaignError> {
        let parsed: Vec<Result<Parsed, HostError>> =
            mutants.iter().map(|m| parse(&m.apply(&self.problem.kernel_source))).collect();
        let mut units = Vec::new();
        let sources: Vec<Option<Source>> = mutants
            .iter()
            .zip(&parsed)
            .map(|(m, p)| p.as_ref().ok().map(|p| self.source(&m.id, p, &mut units)))
            .collect();
        let images = self.compiler.compile(self.options, &units);
        if images.len() != units.len() {
            return Err(CampaignError::Internal("the compiler lost a unit".into()));
        }
        let mut decoder = Decoder::default();
        let mut out = Vec::with_capacity(mutants.len());
        for (p, source) in parsed.iter().zip(sources) {
            out.push(match (p, source) {
                (Ok(p), Some(source)) => self.assemble(p, source, &images, &mut decoder)?,
                (Err(e @ HostError::Unsupported { .. }), _) => {
                    (None, Sorted::Quarantined(format!("launcher: {e}")))
                }
                (Err(e), _) => (None, Sorted::Noncompiling(format!("launcher: {e}"))),
                (Ok(_), None) => return Err(CampaignError::Internal("a mutant without a source".into())),
            });
        }
        Ok(out)
    }

    /// What must be compiled for a mutant, added to `units`.
    fn source(&self, name: &str, parsed: &Parsed, units: &mut Vec<Unit>) -> Source {
        let mut add = |unit: Unit| {
            units.push(unit);
            units.len() - 1
        };
        let texts = self.known.rest.as_ref().and_then(|rest| {
            // What lies outside of kernels may reach every one of them.
            kernel_texts(&parsed.device).filter(|texts| texts.rest == *rest)
        });
        let Some(split) = texts.as_ref().and_then(|texts| apart(texts, &parsed.kernels)) else {
            return Source::Whole(add(unit(name, UNIT_FILE, parsed)));
        };
        let (mut same, mut fresh) = (Vec::new(), Vec::new());
        for (text, kernels) in split {
            match self.known.kernels.get(text).and_then(|part| part.only(&kernels)) {
                Some(part) => same.push(part),
                None => fresh.push(add(part_unit(name, text, &kernels))),
            }
        }
        Source::Parts(same, fresh)
    }

    fn assemble(
        &self,
        parsed: &Parsed,
        source: Source,
        images: &[Result<Image, CompileError>],
        decoder: &mut Decoder,
    ) -> Result<Filtered, CampaignError> {
        let compiled = match source {
            Source::Whole(at) => match &images[at] {
                Err(e) => return refusal(e),
                Ok(image) => decoder.decode(image).ok(),
            },
            Source::Parts(mut parts, units) => {
                for at in &units {
                    parts.extend(images[*at].as_ref().ok().and_then(|image| decoder.decode(image).ok()));
                }
                Compiled::gathered(&parts).filter(|all| all.identity.len() == parsed.kernels.len())
            }
        };
        match compiled {
            Some(compiled) => {
                Ok((Some(version(self.problem, parsed, compiled, self.shapes)), Sorted::Distinct))
            }
            // One unit's instruction that the device lacks must not take its batch down, and the messages for a text
            // are those for all of it.
            None => self.alone(parsed),
        }
    }

    /// A mutant's whole text in a call of its own.
    fn alone(&self, parsed: &Parsed) -> Result<Filtered, CampaignError> {
        match compile_unit(self.compiler, self.options, &unit("alone", UNIT_FILE, parsed)) {
            Ok((_, compiled)) => {
                Ok((Some(version(self.problem, parsed, compiled, self.shapes)), Sorted::Distinct))
            }
            Err(Refused::Compile(e)) => refusal(&e),
            Err(Refused::Device(e)) => Ok((None, Sorted::Quarantined(e))),
            Err(Refused::Host(_) | Refused::Lost) => {
                Err(CampaignError::Internal("the compiler gave no answer".into()))
            }
        }
    }
}

/// Where a mutant goes that gave no image.
fn refusal(e: &CompileError) -> Result<Filtered, CampaignError> {
    match e.kind {
        CompileErrorKind::Rejected => Ok((None, Sorted::Noncompiling(e.to_string()))),
        CompileErrorKind::TimedOut | CompileErrorKind::Crashed => {
            Ok((None, Sorted::Quarantined(format!("compiler: {e}"))))
        }
        CompileErrorKind::Options | CompileErrorKind::Unavailable => Err(compile_fault("kernel.cu", e)),
    }
}
