//! The command line: what `--help` prints and what is accepted.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli_sweep::{GuardEvalArgs, RulesArgs, SweepArgs};

/// Measures how strong a GPU kernel's correctness checker is, on a machine without a GPU.
#[derive(Debug, Parser)]
#[command(name = "assay", version, propagate_version = true, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 fine; 1 the thing judged is wrong (or below --fail-under); 2 usage or bad input; \
3 a baseline failed; 4 unsupported; 5 budget exhausted; 70 a bug of ours; 74 cannot write; 130 interrupted.";

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Print one JSON document on stdout
    #[arg(long, global = true, help_heading = "Common options")]
    pub json: bool,
    /// Print no progress
    #[arg(long, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Threads (and compile workers) at work [default: the cores of this machine]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Common options")]
    pub jobs: Option<u16>,
    /// Seed from which every other seed is derived
    #[arg(long, global = true, value_name = "N", default_value_t = 0, help_heading = "Common options")]
    pub seed: u64,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure checking protocols: which injected faults do they miss?
    Audit(AuditArgs),
    /// List the mutants of a CUDA file, as names and diffs
    Mutate(MutateArgs),
    /// List the mutation rules
    Mutators,
    /// List the problems
    Problems(ProblemsArgs),
    /// List the checking protocols
    Protocols,
    /// Run one kernel on the CPU device and print its outputs and findings
    Run(RunArgs),
    /// Print the suites that a finished audit selected, or write them with their tensors
    Suite(SuiteArgs),
    /// What must a generator of inputs know to catch what a finished audit's official inputs miss?
    Ladder(LadderArgs),
    /// Print a finished audit again
    Report(ReportArgs),
    /// Judge submissions with the strongest suite and the sanitizer
    Check(CheckArgs),
    /// Write the release of a finished audit: diffs, witnesses, kill matrix as Parquet, taxonomy, playbooks
    Export(ExportArgs),
    /// Sweep an operation across size boundaries
    Sweep(SweepArgs),
    /// Learn or apply the rules that explain a sweep
    Rules(RulesArgs),
    /// Compare two audits (which faults does a checker newly catch, and newly miss?) or two sweeps, run by run
    Compare(CompareArgs),
    /// Evaluate the guard against the records of a sweep
    GuardEval(GuardEvalArgs),
    /// Compare the operators, and the references of the problems, with PyTorch
    VerifyOps(VerifyOpsArgs),
    /// Find the trivial answers that a benchmark accepts
    Blindspots(BlindspotsArgs),
    /// Install or find what is needed and say versions
    Doctor,
    /// A compile worker; started by Assay itself
    #[command(name = COMPILE_WORKER, hide = true)]
    CompileWorker,
    /// The worker of an emulated device; started by Assay itself
    #[command(name = assay_sweep::backend::EMULATED_WORKER, hide = true)]
    SweepWorker,
}

/// The hidden command under which this binary starts itself as a compile worker.
pub const COMPILE_WORKER: &str = "__compile-worker";

/// `assay verify-ops`.
#[derive(Debug, Args)]
pub struct VerifyOpsArgs {
    /// An interpreter that has PyTorch
    #[arg(long, value_name = "P", default_value = "python3")]
    pub python: PathBuf,
    /// Only these operators, and no problem [default: all, and the reference of every problem]
    #[arg(long = "operator", value_name = "NAME")]
    pub operators: Vec<String>,
    /// Cases drawn for each operator, each in float64 and in float32
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cases: u64,
    /// Seconds that one request to PyTorch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

/// `assay blindspots`.
#[derive(Debug, Args)]
pub struct BlindspotsArgs {
    /// A checkout of KernelBench, or a folder of its levels
    #[arg(long, value_name = "DIR")]
    pub kernelbench: PathBuf,
    /// An interpreter that has PyTorch, and what the problem files import (einops for a few of level 3)
    #[arg(long, value_name = "P", default_value = "python3")]
    pub python: PathBuf,
    /// Only these levels [default: 1,2,3]
    #[arg(long = "level", value_name = "L,…", value_delimiter = ',')]
    pub levels: Vec<u32>,
    /// Only these numbers within each level
    #[arg(long, value_name = "I,…", value_delimiter = ',')]
    pub ids: Vec<u32>,
    /// Which extents: `desk` are those that a CPU affords
    #[arg(long, value_enum, default_value_t = ExtentsArg::Desk)]
    pub extents: ExtentsArg,
    /// Trials, each with inputs of its own; an answer has to pass all
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub trials: u64,
    /// Tolerances, each absolute and relative at once
    #[arg(long = "tolerance", value_name = "T,…", value_delimiter = ',', default_values_t = [1e-2, 1e-3, 1e-4], value_parser = tolerance)]
    pub tolerances: Vec<f64>,
    /// Seconds that one step of one problem may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Where results are kept by the content of file, extents and worker [default: below the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// A tolerance: between 0 and 1.
fn tolerance(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|t| (0.0..1.0).contains(t))
        .ok_or_else(|| "a tolerance is from 0 up to 1".to_owned())
}

/// `assay audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Problems to audit: globs such as `level1/19*`, a problem's folder, or a folder of them [default: the fourteen built in]
    #[arg(long, value_name = "GLOB|DIR")]
    pub problems: Vec<String>,
    /// Every built-in problem
    #[arg(long)]
    pub all: bool,
    /// Protocols to score: a built-in name or a TOML file; the first one is the headline's [default: all built in]
    #[arg(long = "protocol", value_name = "NAME|FILE")]
    pub protocols: Vec<String>,
    /// An external checker to score beside the protocols: a shell command in which `{dir}` is a folder with
    /// inputs.safetensors, expected.safetensors, actual.safetensors and meta.json; exit code 0 accepts, 1 rejects
    #[arg(long = "checker", value_name = "CMD")]
    pub checkers: Vec<String>,
    /// Seconds that one run of a checker may take
    #[arg(long, value_name = "SECONDS", default_value_t = assay_measure::CHECKER_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(assay_measure::MOST_CHECKER_SECONDS)))]
    pub checker_timeout: u32,
    /// The benchmark's own files as oracle, run by PyTorch: a checkout of KernelBench or of robust-kbench, a folder of
    /// levels, one problem file, or one task folder
    #[arg(long, value_name = "DIR|FILE.py")]
    pub kernelbench: Option<PathBuf>,
    /// With --kernelbench: only these levels [default: 1,2 where --ids or --all is given, else the fourteen problems]
    #[arg(long = "level", value_name = "L,…", value_delimiter = ',', requires = "kernelbench")]
    pub levels: Vec<u32>,
    /// With --kernelbench: only these numbers within each level
    #[arg(long, value_name = "I,…", value_delimiter = ',', requires = "kernelbench")]
    pub ids: Vec<u32>,
    /// With --kernelbench: an interpreter that has PyTorch
    #[arg(long, value_name = "P", default_value = "python3")]
    pub python: PathBuf,
    /// With --kernelbench: seconds that one step of one file may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// With --kernelbench: where PyTorch's results are kept by content [default: below the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// With --kernelbench: steps of the plain kernels, in millions, to which the extents of a file without a problem in the
    /// catalogue are cut
    #[arg(long, value_name = "N", default_value = "1", value_parser = millions)]
    pub work: u64,
    /// Which extents: `desk` are those that a CPU affords
    #[arg(long, value_enum, default_value_t = ExtentsArg::Desk)]
    pub extents: ExtentsArg,
    /// The run folder [default: assay-runs/audit-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue the interrupted run in --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Exit 1 when the first protocol detects less than this percentage, or rejects a correct kernel
    #[arg(long, value_name = "PCT")]
    pub fail_under: Option<f64>,
}

/// A number of millions, which may have a fraction, as a whole number.
fn millions(text: &str) -> Result<u64, String> {
    let steps = text.parse::<f64>().map_err(|e| e.to_string())? * 1e6;
    if (1e3..=1e12).contains(&steps) {
        Ok(steps as u64)
    } else {
        Err("between 0.001 and 1000000 million steps".to_owned())
    }
}

/// `--extents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExtentsArg {
    /// Cut so that a CPU affords thousands of evaluations.
    Desk,
    /// As the benchmark has them.
    Official,
}

/// `assay mutate`.
#[derive(Debug, Args)]
pub struct MutateArgs {
    /// A CUDA file
    #[arg(value_name = "FILE.cu")]
    pub file: PathBuf,
    /// Only mutants of this rule
    #[arg(long, value_name = "ID")]
    pub rule: Option<String>,
}

/// `assay problems`.
#[derive(Debug, Args)]
pub struct ProblemsArgs {
    /// Only these levels
    #[arg(long = "level", value_name = "L,…", value_delimiter = ',')]
    pub levels: Vec<u32>,
    /// Only these: globs, a problem's folder, or a folder of them
    #[arg(long, value_name = "GLOB|DIR")]
    pub problems: Vec<String>,
    /// Only those whose reference calls this operator; of several, all
    #[arg(long = "operator", value_name = "NAME")]
    pub operators: Vec<String>,
    /// Only those whose substrate uses a technique with this text in its name; of several, all
    #[arg(long = "technique", value_name = "TEXT")]
    pub techniques: Vec<String>,
    /// Only those on which a kernel can be judged at all, or only the others
    #[arg(long, value_enum, value_name = "yes|no")]
    pub refereeable: Option<YesNo>,
    /// Of what is left so many, spread over levels, operators and techniques by a fixed rule
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
    /// Run every substrate through the gate: references, ragged shapes, sanitizer
    #[arg(long)]
    pub verify: bool,
    #[command(flatten)]
    pub files: KernelbenchArgs,
    /// Find the largest input magnitudes on which correct kernels still agree within 1e-2, at desk extents
    #[arg(long, conflicts_with = "verify")]
    pub ceilings: bool,
}

/// `assay problems --kernelbench`.
#[derive(Debug, Args)]
pub struct KernelbenchArgs {
    /// A checkout of KernelBench, or a folder of its levels: its own files, each exported by PyTorch, lowered to a problem
    /// of plain kernels and, with --verify, run against PyTorch's outputs
    #[arg(long, value_name = "DIR")]
    pub kernelbench: Option<PathBuf>,
    /// With --kernelbench: an interpreter that has PyTorch
    #[arg(long, value_name = "P", default_value = "python3", requires = "kernelbench")]
    pub python: PathBuf,
    /// With --kernelbench: only these numbers within each level
    #[arg(long, value_name = "I,…", value_delimiter = ',', requires = "kernelbench")]
    pub ids: Vec<u32>,
    /// With --kernelbench: steps of the plain kernels, in millions, to which extents are cut
    #[arg(long, value_name = "N", default_value_t = 10, requires = "kernelbench", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub work: u64,
    /// With --kernelbench: seconds that one request to PyTorch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "kernelbench", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// With --kernelbench: write the problems' folders here, for `--problems DIR` of any command
    #[arg(long, value_name = "DIR", requires = "kernelbench")]
    pub out: Option<PathBuf>,
}

/// `--refereeable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    /// Those that can.
    Yes,
    /// Those that cannot.
    No,
}

/// `assay suite`.
#[derive(Debug, Args)]
pub struct SuiteArgs {
    /// A run folder of `assay audit`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Inputs per problem
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub budget: u32,
    /// Write the suites into a folder: suite.toml with recipes and digests, and the tensors as safetensors
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// With --out: only these problems, which may be folders of your own [default: every problem of the run]
    #[arg(long, value_name = "GLOB|DIR", requires = "out")]
    pub problems: Vec<String>,
}

/// `assay export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A run folder of `assay audit`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The folder to write: a new one, an empty one, or an earlier export, which is replaced
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// `assay ladder`.
#[derive(Debug, Args)]
pub struct LadderArgs {
    /// A run folder of `assay audit`; `ladder.json` is written into it
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// An external generator to score beside the built-in ones: a shell command that reads a problem's facts as JSON on its
    /// standard input and prints one recipe a line, as a JSON string or an object with `recipe`
    #[arg(long = "generator", value_name = "CMD")]
    pub generators: Vec<String>,
    /// Seconds that a generator may take for one problem
    #[arg(long, value_name = "SECONDS", default_value_t = assay_measure::GENERATOR_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub generator_timeout: u32,
    /// Inputs per problem and generator
    #[arg(long, value_name = "N", default_value_t = assay_measure::LADDER_BUDGET,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub budget: u32,
    /// Problems of the hard set: those with the most official survivors
    #[arg(long, value_name = "N", default_value_t = assay_measure::LADDER_PROBLEMS,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub most: u32,
    /// Where the run's problems are: globs, a problem's folder, or a folder of them [default: every built-in one]
    #[arg(long, value_name = "GLOB|DIR")]
    pub problems: Vec<String>,
}

/// `assay report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A run folder of `assay audit`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Score again at atol = rtol = T, from stored thresholds: nothing is executed, and nothing is written
    #[arg(long, value_name = "T", value_parser = parse_tolerance)]
    pub tolerance: Option<f64>,
    /// Score these in place of the run's protocols, from what is stored: a built-in name or a TOML file
    #[arg(long = "protocol", value_name = "NAME|FILE")]
    pub protocols: Vec<String>,
    /// Of a run that is not finished: report the problems that are complete, saying which are not; nothing is written
    #[arg(long, conflicts_with = "open")]
    pub partial: bool,
    /// Open report.html in a browser
    #[arg(long, conflicts_with_all = ["tolerance", "protocols"])]
    pub open: bool,
}

/// `assay compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A run folder of `assay audit`: before
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// Another: after
    #[arg(value_name = "B")]
    pub after: PathBuf,
}

/// `assay run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A CUDA file, or PTX
    #[arg(value_name = "FILE.(cu|ptx)")]
    pub file: PathBuf,
    /// The kernel; may be a template instance such as `k<float,256>`
    #[arg(long, value_name = "K")]
    pub kernel: String,
    /// Blocks
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_dim3)]
    pub grid: [u64; 3],
    /// Threads in a block
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_dim3)]
    pub block: [u64; 3],
    /// Dynamic shared memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u64,
    /// One kernel parameter, in order: `x=f32[64,1024]:uniform(-1,1,seed=7)`, `n=i32:1024`, `a=@file.safetensors#a`,
    /// `p=null`, `p=&x+16`, `s=bytes(00ff)`
    #[arg(long = "arg", value_name = "SPEC")]
    pub args: Vec<String>,
    /// Write every buffer to a safetensors file
    #[arg(long, value_name = "FILE.safetensors")]
    pub save: Option<PathBuf>,
    /// Look for races, uninitialised reads, barrier divergence and outputs that were not written
    #[arg(long)]
    pub sanitize: bool,
    /// `strict`: an access outside its buffer is a finding; `arena`: it reads or writes what lies there
    #[arg(long, value_enum, default_value_t = MemoryArg::Strict)]
    pub memory: MemoryArg,
    /// What fresh memory holds
    #[arg(long, value_enum, default_value_t = FillArg::Noise)]
    pub fill: FillArg,
    /// `hardware` (round-robin with jitter) or `run-ahead` (one warp runs until it blocks)
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ScheduleArg::Hardware)]
    pub schedule: ScheduleArg,
    /// Run once for each of these seeds; the first with a finding is reported
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    pub seeds: Option<std::ops::Range<u64>>,
    /// `jit` falls back to the interpreter for what it does not cover, and says so
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    pub engine: EngineArg,
    /// Which blocks to run: `all`; `sample` (first, last, around every boundary of 32-bit sizes, some at random); or a
    /// list such as `0,5,100..110,last` or `3:0:2` (x:y:z)
    #[arg(long, value_name = "all|sample|LIST", default_value = "all")]
    pub blocks: String,
    /// How the file is compiled.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// How a CUDA file is compiled.
#[derive(Clone, Debug, Args)]
pub struct CompileArgs {
    /// A folder with headers
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// A macro
    #[arg(short = 'D', value_name = "NAME=V")]
    pub define: Vec<String>,
    /// The C++ dialect
    #[arg(long, value_name = "S", default_value = "c++17")]
    pub std: String,
    /// The architecture whose PTX is run
    #[arg(long, value_name = "A", default_value = "sm_90")]
    pub arch: String,
    /// Let the compiler contract a*b+c to one rounding
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub fmad: bool,
    /// Compile with --use_fast_math
    #[arg(long)]
    pub fast_math: bool,
}

/// `assay check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A CUDA file with kernels and a host function `launch`, a Python file with `ModelNew` and inline CUDA, or a folder of
    /// either
    #[arg(value_name = "FILE.(cu|py)|DIR")]
    pub path: PathBuf,
    /// The problem: level and id such as `1/23`, a name such as `level1/23_softmax`, or a folder; for Python also a file
    /// with `Model`, `get_inputs` and `get_init_inputs`. A folder of Python files may do without: see --list
    #[arg(long, value_name = "P")]
    pub problem: Option<String>,
    /// A suite to ask in place of the one that ships: `suite.toml` of `assay suite --out`, a file as in a run's `suites/`,
    /// or a built-in protocol
    #[arg(long, value_name = "FILE", conflicts_with = "sanitize_only")]
    pub suite: Option<String>,
    /// Ask only these inputs, by their recipes
    #[arg(long = "input", value_name = "RECIPE", conflicts_with_all = ["sanitize_only", "suite"])]
    pub inputs: Vec<String>,
    /// Which failures cost the reward and the exit code
    #[arg(long, value_enum, default_value_t = ScopeArg::Official)]
    pub scope: ScopeArg,
    /// Append one line of JSON for every file
    #[arg(long, value_name = "OUT")]
    pub jsonl: Option<PathBuf>,
    /// Run the file's own `launch` on the tensors of --arg, with every detector and no problem
    #[arg(long, conflicts_with = "problem")]
    pub sanitize_only: bool,
    /// One parameter of `launch`, by its name: as for `assay run`
    #[arg(long = "arg", value_name = "SPEC", requires = "sanitize_only")]
    pub args: Vec<String>,
    /// With --sanitize-only: `hardware` or `run-ahead`
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ScheduleArg::Hardware, requires = "sanitize_only")]
    pub schedule: ScheduleArg,
    /// A checkout of KernelBench whose problem files Python submissions are judged by, or a folder of `lL_pI.py` files;
    /// without one, problems of the catalogue that have no parameters
    #[arg(long, value_name = "DIR")]
    pub kernelbench: Option<PathBuf>,
    /// The Python that runs submissions; it has PyTorch [default: python3]
    #[arg(long, value_name = "P")]
    pub python: Option<PathBuf>,
    /// What Python submissions and their references compute in
    #[arg(long, value_name = "NAME", value_enum, default_value_t = PrecisionArg::Fp32)]
    pub precision: PrecisionArg,
    /// For a folder of submissions: a JSON object from file name, or path below the folder, to problem. Names such as
    /// `level_1_problem_23_sample_0_kernel.py` say it themselves
    #[arg(long, value_name = "FILE", conflicts_with = "problem")]
    pub list: Option<PathBuf>,
    /// Seconds that one Python submission may take in all
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Seconds of these for which a Python submission is run at the official extents; longer where something failed
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0, value_parser = seconds)]
    pub official_seconds: f64,
    /// How files are compiled.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// Seconds as a number that is not negative.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|s| s.is_finite() && *s >= 0.0)
        .ok_or_else(|| format!("`{text}` is no number of seconds"))
}

/// `--precision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionArg {
    /// float32.
    Fp32,
    /// float16.
    Fp16,
    /// bfloat16.
    Bf16,
}

impl PrecisionArg {
    /// As the workers call it.
    #[cfg(feature = "device")]
    pub fn name(self) -> &'static str {
        match self {
            PrecisionArg::Fp32 => "fp32",
            PrecisionArg::Fp16 => "fp16",
            PrecisionArg::Bf16 => "bf16",
        }
    }
}

/// `--scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Those at the problem's own extents.
    Official,
    /// Those at any legal extents.
    General,
}

/// `--memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    Strict,
    Arena,
}

/// `--fill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FillArg {
    Noise,
    Zeros,
    Nan,
    Previous,
}

/// `--schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScheduleArg {
    Hardware,
    RunAhead,
}

/// `--engine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    Auto,
    Interp,
    Jit,
}

fn parse_dim3(text: &str) -> Result<[u64; 3], String> {
    let mut out = [1u64; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three extents: X[,Y,Z]".into());
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        *slot = part.trim().parse().map_err(|_| format!("`{}` is not an extent", part.trim()))?;
    }
    Ok(out)
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(t) if t.is_finite() && t >= 0.0 => Ok(t),
        _ => Err(format!("`{text}` is no tolerance; give zero or a positive number such as 1e-3")),
    }
}

fn parse_seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (a, b) = text.split_once("..").ok_or("write a range such as 0..16")?;
    let number = |s: &str| s.trim().parse::<u64>().map_err(|_| format!("`{s}` is not a seed"));
    let range = number(a)?..number(b)?;
    if range.is_empty() {
        return Err("the range is empty".into());
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn dims_and_seeds_are_read() {
        assert_eq!(parse_dim3("4"), Ok([4, 1, 1]));
        assert_eq!(parse_dim3("4,5,6"), Ok([4, 5, 6]));
        assert!(parse_dim3("1,2,3,4").is_err() && parse_dim3("x").is_err());
        assert_eq!(parse_seeds("2..5"), Ok(2..5));
        assert!(parse_seeds("5..2").is_err() && parse_seeds("5").is_err());
    }
}
