//! A whole audit: every problem through its stages, then the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_measure::{
    Environment, FailedBaseline, KillMatrix, Origin, Protocol, RuleInfo, Summary, SummaryInput, Timing,
    summarise,
};
use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand};
use assay_plain::PlainRunner;
use assay_problems::{Extents, Operators, Oracle, OracleError, Problem, Recipe, targeted_recipes};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::inputs;
use crate::stage::{self, Outcome};
use crate::store::Store;
use crate::verdict::{self, ProtocolVerdict};
use crate::{CampaignError, Progress};

/// Resamples of the bootstrap.
pub(crate) const RESAMPLES: u64 = 2000;

/// What an audit is asked to do.
pub struct AuditConfig<'a> {
    /// The problems, in the order of tables.
    pub problems: Vec<Problem>,
    /// Where their inputs and references come from.
    pub oracle: &'a dyn Oracle,
    /// The extents that they have as desk extents.
    pub extents: Extents,
    /// The protocols, the headline's first.
    pub protocols: Vec<Protocol>,
    /// The run folder.
    pub folder: PathBuf,
    /// Continue the run in it.
    pub resume: bool,
    /// Threads and compile workers.
    pub jobs: usize,
    /// Seed of schedules, fills and the bootstrap.
    pub seed: u64,
    /// The compiler.
    pub install: Install,
    /// How a compile worker is started.
    pub worker: WorkerCommand,
    /// Set from outside to stop; what is evaluated is committed.
    pub interrupt: Arc<AtomicBool>,
    /// What else a reader must know of the problems, for the summary.
    pub caveats: Vec<String>,
}

/// What the stages of all problems share.
pub struct Context<'a> {
    pub(crate) store: &'a Store,
    pub(crate) oracle: &'a dyn Oracle,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) compile_options: assay_nvrtc::Options,
    pub(crate) seed: u64,
    pub(crate) protocols: &'a [Protocol],
    interrupt: &'a AtomicBool,
    compile_nanos: AtomicU64,
    compiled: AtomicU64,
    evaluations: AtomicU64,
}

impl Context<'_> {
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    pub(crate) fn check_interrupt(&self) -> Result<(), CampaignError> {
        if self.interrupted() {
            return Err(CampaignError::Interrupted { path: self.store.folder().to_owned() });
        }
        Ok(())
    }

    pub(crate) fn add_compile_time(&self, elapsed: Duration, mutants: u64) {
        self.compile_nanos
            .fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.compiled.fetch_add(mutants, Ordering::Relaxed);
    }

    pub(crate) fn add_evaluations(&self, n: u64) {
        self.evaluations.fetch_add(n, Ordering::Relaxed);
    }

    /// The inputs of a problem's matrix: what the protocols ask, and its targeted recipes; each once, cheapest
    /// origin first.
    pub(crate) fn recipes(&self, problem: &Problem) -> Result<Vec<Asked>, CampaignError> {
        let targeted: Vec<String> =
            targeted_recipes(problem).into_iter().map(|(r, _)| r.to_string()).collect();
        let key = problem.key();
        let mut asked: Vec<String> = Vec::new();
        for p in self.protocols {
            asked.extend(p.recipes(&key, &targeted, |_| Vec::new()));
        }
        let targeted_texts: BTreeSet<String> = targeted.iter().cloned().collect();
        asked.extend(targeted);
        let mut seen: BTreeMap<String, ()> = BTreeMap::new();
        let mut out: Vec<Asked> = Vec::new();
        for text in asked {
            let recipe: Recipe = text
                .parse()
                .map_err(|e| CampaignError::Input(format!("recipe `{text}` of a protocol: {e}")))?;
            // A protocol may spell a recipe in its own way; the matrix knows the canonical text.
            let canonical = recipe.to_string();
            if seen.insert(canonical.clone(), ()).is_none() {
                let targeted = targeted_texts.contains(&canonical);
                let origin = match origin_of(&recipe) {
                    Origin::Targeted if !targeted => Origin::Protocol,
                    origin => origin,
                };
                out.push(Asked { recipe, origin, targeted });
            }
        }
        out.sort_by_key(|a| a.origin.rank());
        let first = Recipe::official(0);
        if out.first().is_none_or(|a| a.recipe != first) {
            out.retain(|a| a.recipe != first);
            out.insert(0, Asked { recipe: first, origin: Origin::Official, targeted: false });
        }
        Ok(out)
    }
}

/// An input of the matrix, before it is made.
pub(crate) struct Asked {
    /// Its recipe.
    pub recipe: Recipe,
    /// Where it comes from.
    pub origin: Origin,
    /// Is it one of the problem's targeted recipes?
    pub targeted: bool,
}

/// Where a recipe belongs, read off the recipe itself.
fn origin_of(recipe: &Recipe) -> Origin {
    let text = recipe.to_string();
    if text.starts_with("loguniform") {
        Origin::CiFuzz
    } else if !text.starts_with("official") || text.contains('@') || text.contains('+') {
        Origin::Targeted
    } else if text.contains('*') {
        Origin::Kbv
    } else {
        Origin::Official
    }
}

/// A finished audit.
pub struct Finished {
    /// What it measured.
    pub summary: Summary,
    /// The matrices behind it.
    pub matrices: Vec<KillMatrix>,
    /// The substrates that failed their reference, and the problems whose oracle gave nothing.
    pub baselines_failed: Vec<FailedBaseline>,
    /// Why their oracle gave nothing, by problem; these stand in `baselines_failed` too.
    pub oracle_failures: BTreeMap<String, OracleError>,
}

/// Runs an audit and writes its folder: `manifest.json`, `run.db`, `summary.json`.
///
/// # Errors
/// `BadRun`, `Busy`, `CannotWrite` about the folder; `Input` about a problem; `Interrupted`.
pub fn audit(config: &AuditConfig<'_>, progress: &dyn Progress) -> Result<Finished, CampaignError> {
    let started = Instant::now();
    let store = Store::open(&config.folder, config.resume)?;
    let manifest = manifest(config);
    check_manifest(&store, &manifest, config)?;
    store.put_protocols(&config.protocols)?;
    let compiler =
        Compiler::new(config.install.clone(), config.worker.clone(), config.jobs, Limits::default());
    let plain = PlainRunner::new(&compiler);
    let context = Context {
        store: &store,
        oracle: config.oracle,
        progress,
        compile_options: assay_nvrtc::Options::default(),
        seed: config.seed,
        protocols: &config.protocols,
        interrupt: &config.interrupt,
        compile_nanos: AtomicU64::new(0),
        compiled: AtomicU64::new(0),
        evaluations: AtomicU64::new(0),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.jobs)
        .build()
        .map_err(|e| CampaignError::Internal(format!("threads: {e}")))?;
    let mut matrices = Vec::new();
    let mut baselines_failed = Vec::new();
    let mut oracle_failures = BTreeMap::new();
    for problem in &config.problems {
        let measured = match affordable(problem, config.extents) {
            Ok(()) => pool.install(|| stage::measure(&context, &compiler, &plain, problem)),
            Err(e) => Err(e),
        };
        let reason = match measured {
            Ok(Outcome::Measured(matrix)) => {
                matrices.push(*matrix);
                continue;
            }
            Ok(Outcome::BaselineFailed(reason)) => reason,
            Err(CampaignError::Oracle(OracleError::Interrupted)) => {
                return Err(CampaignError::Interrupted { path: store.folder().to_owned() });
            }
            Err(CampaignError::Oracle(OracleError::CannotWrite(what))) => {
                return Err(CampaignError::write(store.folder(), what));
            }
            Err(CampaignError::Oracle(e)) => {
                let reason = e.to_string();
                oracle_failures.insert(problem.key(), e);
                reason
            }
            Err(e) => return Err(e),
        };
        progress.note(&format!("{}: {reason}", problem.key()));
        let (problem, name) = (problem.key(), problem.name.clone());
        baselines_failed.push(FailedBaseline { problem, name, reason });
    }
    let wall = started.elapsed().as_secs_f64();
    let evaluations = context.evaluations.load(Ordering::Relaxed);
    let compile = Duration::from_nanos(context.compile_nanos.load(Ordering::Relaxed)).as_secs_f64();
    let compiled = context.compiled.load(Ordering::Relaxed);
    let timing = Timing {
        compile_ms_per_mutant: round(if compiled == 0 { 0.0 } else { compile * 1e3 / compiled as f64 }),
        evaluations,
        evaluations_per_second: round(evaluations as f64 / (wall - compile).max(1e-9)),
        wall_seconds: round(wall),
    };
    let rules = catalogue();
    let summary = summarise(SummaryInput {
        matrices: &matrices,
        protocols: &config.protocols,
        rules: &rules,
        baselines_failed: &baselines_failed,
        timing,
        environment: environment(config),
        caveats: caveats(config),
        seed: config.seed,
        resamples: RESAMPLES,
    })
    .map_err(|e| CampaignError::Internal(e.to_string()))?;
    let mut text = serde_json::to_vec_pretty(&summary).map_err(|e| CampaignError::Internal(e.to_string()))?;
    text.push(b'\n');
    store.write_file("summary.json", &text)?;
    store.set_meta("finished", "yes")?;
    Ok(Finished { summary, matrices, baselines_failed, oracle_failures })
}

/// Official extents may be beyond what a CPU can hold, let alone compute thousands of times.
fn affordable(problem: &Problem, extents: Extents) -> Result<(), CampaignError> {
    if extents == Extents::Desk {
        return Ok(());
    }
    match inputs::affordable(problem, &Recipe::official(0)) {
        Err(CampaignError::Input(what)) => Err(CampaignError::Oracle(OracleError::Exhausted(what))),
        other => other,
    }
}

/// The rules, as the summary lists them.
pub(crate) fn catalogue() -> Vec<RuleInfo> {
    assay_mutate::RULES
        .iter()
        .map(|r| r.info())
        .map(|r| RuleInfo { id: r.id.to_owned(), family: r.family.name().to_owned() })
        .collect()
}

/// A protocol whose recipes are spelt as the matrix spells them.
///
/// # Errors
/// `Input` with the recipe that is none.
pub fn canonical(protocol: &Protocol) -> Result<Protocol, CampaignError> {
    let list = |texts: &[String]| -> Result<Vec<String>, CampaignError> {
        let mut out: Vec<String> = Vec::with_capacity(texts.len());
        for text in texts {
            let recipe = Recipe::parse(text).map_err(|e| {
                CampaignError::Input(format!("recipe `{text}` of protocol `{}`: {e}", protocol.name))
            })?;
            let recipe = recipe.to_string();
            if !out.contains(&recipe) {
                out.push(recipe);
            }
        }
        Ok(out)
    };
    let mut made = Protocol {
        inputs: list(&protocol.inputs)?,
        extra_inputs: list(&protocol.extra_inputs)?,
        ..protocol.clone()
    };
    for recipes in made.problems.values_mut() {
        *recipes = list(recipes)?;
    }
    for of in made.digests.values_mut() {
        let spelt: Vec<(String, String)> = std::mem::take(of).into_iter().collect();
        for (recipe, digest) in spelt {
            of.extend(list(&[recipe])?.into_iter().map(|r| (r, digest.clone())));
        }
    }
    Ok(made)
}

fn round(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// What is said of a run whose oracle is not the catalogue's.
pub(crate) fn own_files(oracle: &Value) -> Option<String> {
    let name = oracle.get("name").and_then(Value::as_str)?;
    Some(format!(
        "Inputs of the official recipes, parameters and every reference are those of the benchmark's own files, run by {name}; \
         targeted inputs are the catalogue's."
    ))
}

fn caveats(config: &AuditConfig<'_>) -> Vec<String> {
    let cut = config.problems.iter().filter(|p| p.dims.iter().any(|d| d.desk != d.official)).count();
    let mut out = Vec::new();
    out.extend(own_files(&config.oracle.describe()));
    if cut > 0 {
        out.push(format!(
            "Desk extents: {cut} of {} problems run smaller than official so that a CPU affords them; shorter reductions \
             widen what a tolerance can see, and cut extents may gain or lose a remainder block (`assay problems` shows both).",
            config.problems.len()
        ));
    }
    out.extend(config.caveats.iter().cloned());
    out.push(
        "Synchronisation faults depend on the scheduler's model: `hardware` seldom loses a race, as on small GPU workloads."
            .into(),
    );
    out
}

fn sha(bytes: &[u8]) -> String {
    assay_tensor::tensor::hex(&Sha256::digest(bytes))
}

/// What decides the result of the run; a resumed one must have the same.
fn manifest(config: &AuditConfig<'_>) -> Value {
    let problems: BTreeMap<String, Value> = config
        .problems
        .iter()
        .map(|p| {
            let (toml, kernel) = p.digests();
            (p.key(), json!({ "problem_toml": toml, "kernel_cu": kernel }))
        })
        .collect();
    let protocols: BTreeMap<&str, String> =
        config.protocols.iter().map(|p| (p.name.as_str(), sha(p.to_toml().as_bytes()))).collect();
    let order: Vec<&str> = config.protocols.iter().map(|p| p.name.as_str()).collect();
    let rules: Vec<&str> = assay_mutate::RULES.iter().map(|r| r.info().id).collect();
    let mut out = json!({
        "tool": "assay",
        "version": env!("CARGO_PKG_VERSION"),
        "nvrtc": config.install.version.to_string(),
        "arch": assay_nvrtc::Options::default().arch,
        "seed": config.seed,
        "problems": problems,
        "protocols": protocols,
        "protocol_order": order,
        "rules": sha(rules.join(" ").as_bytes()),
    });
    // Neither is stated where it is the catalogue's, so that runs from before there were others can be resumed.
    let oracle = config.oracle.describe();
    if let Some(map) = out.as_object_mut() {
        if !oracle.is_null() {
            map.insert("oracle".into(), oracle);
        }
        if config.extents != Extents::Desk {
            map.insert("extents".into(), json!(config.extents));
        }
    }
    out
}

/// Writes the manifest of a new run; compares that of a resumed one.
fn check_manifest(store: &Store, manifest: &Value, config: &AuditConfig<'_>) -> Result<(), CampaignError> {
    let text = manifest.to_string();
    if let Some(old) = store.meta("manifest")? {
        if old == text {
            return Ok(());
        }
        let old: Value = serde_json::from_str(&old).unwrap_or(Value::Null);
        // A key may stand in one of them alone, such as another oracle.
        let keys =
            |v: &Value| v.as_object().map(|m| m.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let all: BTreeSet<String> = keys(manifest).into_iter().chain(keys(&old)).collect();
        let changed: Vec<String> =
            all.into_iter().filter(|k| old.get(k) != manifest.get(k)).map(|k| format!("`{k}`")).collect();
        return Err(CampaignError::BadRun {
            path: store.folder().to_owned(),
            what: format!(
                "cannot resume: {} changed since the run was started; restore it, or start a new run with --out",
                changed.join(", ")
            ),
        });
    }
    let mut file = manifest.clone();
    if let Some(map) = file.as_object_mut() {
        map.insert("host".into(), Value::Object(environment(config)));
    }
    let mut bytes = serde_json::to_vec_pretty(&file).map_err(|e| CampaignError::Internal(e.to_string()))?;
    bytes.push(b'\n');
    store.write_file("manifest.json", &bytes)?;
    store.set_meta("manifest", &text)
}

/// Versions and machine, for the summary; nothing that is measured depends on it.
fn environment(config: &AuditConfig<'_>) -> Environment {
    let mut e = Environment::new();
    e.insert("assay".into(), env!("CARGO_PKG_VERSION").into());
    e.insert("nvrtc".into(), config.install.version.to_string().into());
    e.insert("arch".into(), assay_nvrtc::Options::default().arch.into());
    e.insert("device".into(), "CPU (PTX interpreter)".into());
    e.insert("os".into(), std::env::consts::OS.into());
    e.insert("cpu".into(), std::env::consts::ARCH.into());
    e.insert("jobs".into(), config.jobs.into());
    e.insert("extents".into(), json!(config.extents));
    if let Some(name) = config.oracle.describe().get("name") {
        e.insert("oracle".into(), name.clone());
    }
    e
}

/// Runs `work` with a context that keeps nothing: in memory, the built-in protocols' inputs.
pub(crate) fn without_a_folder<T: Send>(
    jobs: usize,
    seed: u64,
    progress: &dyn Progress,
    protocols: &[Protocol],
    work: impl FnOnce(&Context<'_>) -> Result<T, CampaignError> + Send,
) -> Result<T, CampaignError> {
    let store = Store::in_memory()?;
    let never = AtomicBool::new(false);
    let context = Context {
        store: &store,
        oracle: &Operators,
        progress,
        compile_options: assay_nvrtc::Options::default(),
        seed,
        protocols,
        interrupt: &never,
        compile_nanos: AtomicU64::new(0),
        compiled: AtomicU64::new(0),
        evaluations: AtomicU64::new(0),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| CampaignError::Internal(format!("threads: {e}")))?;
    pool.install(|| work(&context))
}

/// The gate alone: every input of the protocols and the targeted ones, references, ragged shapes, sanitizer. Gives
/// what is wrong with the substrate, if anything is.
///
/// # Errors
/// As [`audit`], less what concerns a run folder: nothing is kept.
pub fn verify(
    problem: &Problem,
    compiler: &Compiler,
    jobs: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Option<String>, CampaignError> {
    let protocols = assay_measure::builtin().map_err(|e| CampaignError::Internal(e.to_string()))?;
    without_a_folder(jobs, seed, progress, &protocols, |context| stage::gate_only(context, compiler, problem))
}

/// What each built-in protocol says of another implementation of a problem: `source` is a whole `kernel.cu`.
///
/// # Errors
/// `Input` where the source does not compile or launch, or the problem's own substrate fails its gate.
pub fn judge_source(
    problem: &Problem,
    source: &str,
    compiler: &Compiler,
    jobs: usize,
) -> Result<Vec<ProtocolVerdict>, CampaignError> {
    let protocols = assay_measure::builtin().map_err(|e| CampaignError::Internal(e.to_string()))?;
    without_a_folder(jobs, 0, &crate::Silent, &protocols, |context| {
        verdict::verdicts(context, compiler, problem, source, &protocols)
    })
}
