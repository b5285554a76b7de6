//! A problem's questions, prepared once and asked of any number of files.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Instant;

use assay_measure::{Origin, Protocol, Tolerance};
use assay_nvrtc::{CompileErrorKind, Compiler};
use assay_problems::{
    Extents, HostError, HostProgram, InputKind, Kind, ParameterKind, Plan, PlanArg, Problem, Recipe,
    targeted_recipes,
};
use rayon::prelude::*;

use super::evaluate::{Look, Sanitized};
use super::verdict::{self, Evidence};
use super::{Check, GoalScope, Reached, Trick, Verdict};
use crate::CampaignError;
use crate::bench::shape_name;
use crate::filter::{self, Refused, Shapes, Version};
use crate::harness::Harness;
use crate::inputs::{self, Input};

/// Warp instructions of an evaluation: desk extents ask for less than a million of a good kernel and for some tens of
/// millions of one that works in a single thread, and an endless one is soon over.
const BUDGET: u64 = 60_000_000;
/// Seeds of the ragged shapes that the suite does not ask begin here.
const RAGGED_SEED: u64 = 201;

/// What is asked of files.
pub struct CheckConfig<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The compiler.
    pub compiler: &'a Compiler,
    /// How files are compiled.
    pub options: assay_nvrtc::Options,
    /// The strongest suite at hand.
    pub suite: &'a Protocol,
    /// Only these inputs, in place of the official ones and the suite.
    pub only: &'a [Recipe],
    /// Seed of schedules and fills.
    pub seed: u64,
    /// Whose failures cost the reward.
    pub scope: GoalScope,
}

/// One input and why it is asked.
pub(super) struct Asked {
    pub(super) input: Input,
    /// By the official protocol.
    pub(super) official: bool,
    /// By the suite, or as a ragged shape.
    pub(super) suite: bool,
    /// At the problem's own extents?
    pub(super) own_extents: bool,
    /// Largest threshold over correct implementations; computed when an output is to count against a file.
    spread: OnceLock<Result<f64, String>>,
}

/// The questions of one problem.
pub struct Checker<'a> {
    pub(super) config: CheckConfig<'a>,
    pub(super) official: Protocol,
    pub(super) harness: Harness<'a>,
    pub(super) asked: Vec<Asked>,
    pub(super) extents: Reached,
    own_dims: BTreeMap<String, u64>,
    shapes: Shapes,
    /// The problem's own kernel.
    substrate: OnceLock<Result<Version, String>>,
}

/// What stops a check without saying anything about the file.
enum Stop {
    /// Its answer.
    Answer(Box<Check>),
    /// An error of the problem or of ours.
    Error(CampaignError),
}

impl From<CampaignError> for Stop {
    fn from(e: CampaignError) -> Stop {
        Stop::Error(e)
    }
}

impl<'a> Checker<'a> {
    /// Makes every input with its references.
    ///
    /// # Errors
    /// `Input` where a recipe does not fit the problem, or the suite asks nothing of it.
    pub fn new(config: CheckConfig<'a>) -> Result<Checker<'a>, CampaignError> {
        let problem = config.problem;
        let key = problem.key();
        let fault = |what: String| CampaignError::Input(format!("{key}: {what}"));
        let official = assay_measure::builtin()
            .map_err(|e| CampaignError::Internal(e.to_string()))?
            .into_iter()
            .find(|p| p.name == verdict::OFFICIAL)
            .ok_or_else(|| CampaignError::Internal("the official protocol is gone".into()))?;
        let dims_at = |recipe: &Recipe, extents| {
            problem.dims_for(recipe, extents).map_err(|e| fault(format!("input `{recipe}`: {e}")))
        };
        let own_dims = dims_at(&Recipe::official(0), Extents::Desk)?;
        let official_dims = dims_at(&Recipe::official(0), Extents::Official)?;

        let mut recipes: Vec<(Recipe, bool, bool)> = Vec::new();
        let mut add = |recipe: Recipe, official: bool, suite: bool| {
            if let Some(known) = recipes.iter_mut().find(|r| r.0 == recipe) {
                known.1 |= official;
                known.2 |= suite;
            } else {
                recipes.push((recipe, official, suite));
            }
        };
        let read = |text: &String| {
            text.parse::<Recipe>()
                .map_err(|e| CampaignError::Input(format!("suite `{}`: {e}", config.suite.name)))
        };
        let official_recipes: Vec<Recipe> = official.inputs.iter().map(read).collect::<Result<_, _>>()?;
        if config.only.is_empty() {
            for r in official_recipes {
                add(r, true, false);
            }
            let targeted: Vec<String> =
                targeted_recipes(problem).into_iter().map(|(r, _)| r.to_string()).collect();
            let asked = config.suite.recipes(&key, &targeted, |_| Vec::new());
            if asked.is_empty() {
                return Err(fault(format!("the suite `{}` asks nothing of this problem", config.suite.name)));
            }
            for text in &asked {
                add(read(text)?, false, true);
            }
            for recipe in ragged(problem) {
                if recipes.iter().all(|(r, ..)| r.dims != recipe.dims) {
                    recipes.push((recipe, false, true));
                }
            }
        } else {
            for r in config.only {
                add(r.clone(), official_recipes.contains(r), true);
            }
        }
        let asked: Vec<Asked> = recipes
            .into_par_iter()
            .map(|(recipe, official, suite)| {
                if suite && config.only.is_empty() {
                    inputs::affordable(problem, &recipe)
                        .map_err(|e| CampaignError::Input(format!("suite `{}`: {e}", config.suite.name)))?;
                }
                let input = inputs::make(problem, &recipe, Origin::Official, false)?;
                if suite {
                    unchanged(&key, &input, config.suite)?;
                }
                let own_extents = input.dims == own_dims;
                Ok(Asked { input, official, suite, own_extents, spread: OnceLock::new() })
            })
            .collect::<Result<_, CampaignError>>()?;

        let mut shapes: Shapes = vec![(shape_name(&own_dims), own_dims.clone())];
        for a in &asked {
            let name = shape_name(&a.input.dims);
            if shapes.iter().all(|(n, _)| *n != name) {
                shapes.push((name, a.input.dims.clone()));
            }
        }
        let extents = if own_dims == official_dims { Reached::Official } else { Reached::Desk };
        // Where the substrate's launcher does not run at official extents, its scratch lies as at desk ones.
        let official_plan = problem.plan(&official_dims).ok();
        let harness = Harness { problem, official_dims, official_plan };
        Ok(Checker {
            config,
            official,
            harness,
            asked,
            extents,
            own_dims,
            shapes,
            substrate: OnceLock::new(),
        })
    }

    /// Inputs asked of every file.
    pub fn inputs(&self) -> usize {
        self.asked.len()
    }

    /// Judges a file. `name` is what messages and line information call it; `command` is a command line that judges it
    /// by this problem, to which `--input RECIPE` may be added.
    ///
    /// # Errors
    /// `Input` where the problem itself is at fault: its own kernel is wrong on an input on which the file departs from
    /// the reference. `Internal` where the compiler is missing.
    pub fn check(&self, source: &str, name: &str, command: &str) -> Result<Check, CampaignError> {
        let started = Instant::now();
        let mut check = match self.judge(source, name, command) {
            Ok(check) => check,
            Err(Stop::Answer(check)) => *check,
            Err(Stop::Error(e)) => return Err(e),
        };
        check.official.extents = self.extents;
        check.seconds = started.elapsed().as_secs_f64();
        Ok(check.rewarded(self.config.scope))
    }

    fn early(&self, verdict: Verdict, reason: impl Into<String>) -> Stop {
        Stop::Answer(Box::new(Check::early(verdict, reason, &self.config.suite.name)))
    }

    fn judge(&self, source: &str, name: &str, command: &str) -> Result<Check, Stop> {
        let version = self.compile(source, name)?;
        let mut tricks = Vec::new();
        if let Some(Ok(plan)) = version.plans.get(&self.shapes[0].0)
            && plan.launches().next().is_none()
        {
            tricks.push(Trick::UncalledKernel);
        }

        // The first input alone: what cannot be evaluated at all would cost its whole budget on every other too.
        let Some(first) = self.asked.first() else {
            return Err(self.early(Verdict::Correct, "nothing asked"));
        };
        let first_look = self.look(&version, first, self.config.seed, BUDGET);
        if let Some((verdict, why)) = first_look.undecided() {
            let mut check = Check::early(verdict, why, &self.config.suite.name);
            check.instructions = first_look.instructions;
            return Err(Stop::Answer(Box::new(check)));
        }

        enum Done {
            Look(Look),
            Sanitized(Sanitized),
        }
        let shapes: Vec<&Asked> = self
            .asked
            .iter()
            .enumerate()
            .filter(|(k, a)| self.asked[..*k].iter().all(|b| b.input.dims != a.input.dims))
            .map(|(_, a)| a)
            .collect();
        // The detectors' runs are the longest, so they start first.
        let jobs: Vec<(bool, &Asked)> =
            shapes.iter().map(|a| (true, *a)).chain(self.asked[1..].iter().map(|a| (false, a))).collect();
        let done: Vec<Done> = jobs
            .par_iter()
            .map(|(sanitize, a)| {
                if *sanitize {
                    Done::Sanitized(self.sanitize(&version, a, BUDGET))
                } else {
                    Done::Look(self.look(&version, a, self.config.seed, BUDGET))
                }
            })
            .collect();
        let mut looks = vec![first_look];
        let mut sanitized = Vec::new();
        for d in done {
            match d {
                Done::Look(l) => looks.push(l),
                Done::Sanitized(s) => sanitized.push(s),
            }
        }
        let seen_at = |a: &Asked| {
            shapes
                .iter()
                .zip(&sanitized)
                .any(|(s, found)| s.input.dims == a.input.dims && !found.findings.is_empty())
        };
        // Where a detector saw something, the numbers may hang on the schedule or on what memory held.
        let looks: Vec<Look> =
            self.asked
                .par_iter()
                .zip(looks)
                .map(|(a, look)| {
                    if look.rejected() && seen_at(a) {
                        self.majority(&version, a, look, BUDGET)
                    } else {
                        look
                    }
                })
                .collect();
        let failing: Vec<bool> = self
            .asked
            .par_iter()
            .zip(&looks)
            .map(|(a, look)| Ok(look.wrong() && self.valid(a, look.judged_at())?))
            .collect::<Result<_, CampaignError>>()?;

        let stale = self.asked.iter().zip(&looks).zip(&failing).find(|((a, look), failing)| {
            **failing
                && a.own_extents
                && look.has_output()
                && shapes.iter().zip(&sanitized).any(|(s, f)| s.input.dims == a.input.dims && f.unwritten())
        });
        if let Some(((a, _), _)) = stale
            && self.passes_on_stale_memory(&version, a, BUDGET)
        {
            tricks.push(Trick::StaleMemory);
        }
        let evidence = Evidence {
            checker: self,
            looks: &looks,
            failing: &failing,
            shapes: &shapes,
            sanitized: &sanitized,
            tricks,
            command,
        };
        Ok(evidence.verdict())
    }

    /// Compiles a file and runs its launcher at every shape.
    fn compile(&self, source: &str, name: &str) -> Result<Version, Stop> {
        let problem = self.config.problem;
        let host = HostProgram::parse(source).map_err(|e| self.host_error(name, &e))?;
        host.check(&problem.bindings(&self.own_dims)).map_err(|e| {
            self.early(Verdict::Rejected, format!("{name}:{e}; {}", takes(problem, &self.own_dims)))
        })?;
        let missing = problem.outputs.iter().find(|o| !host.parameters().iter().any(|p| p.name == **o));
        if let Some(output) = missing {
            let (line, column) = host.position();
            return Err(self.early(
                Verdict::Rejected,
                format!(
                    "{name}:{line}:{column}: `launch` does not take the output `{output}`; {}",
                    takes(problem, &self.own_dims)
                ),
            ));
        }
        if let Some(p) = host.parameters().iter().find(|p| {
            let promised = matches!(p.kind, ParameterKind::Pointer { is_const: true, .. });
            promised && problem.outputs.contains(&p.name) && problem.input(&p.name).is_none()
        }) {
            return Err(self.early(
                Verdict::Rejected,
                format!("{name}:{}:{}: the output `{}` is a pointer to const", p.line, p.column, p.name),
            ));
        }
        let config = &self.config;
        let version =
            filter::try_compiled(problem, config.compiler, &config.options, name, source, &self.shapes)
                .map_err(|e| self.refused(name, e))?;
        // Types are checked as the launcher runs; what goes wrong only then is the evaluation's to tell.
        if let Some(Err(e)) = version.plans.get(&self.shapes[0].0)
            && !matches!(e, HostError::Fault { .. })
        {
            return Err(self.host_error(name, e));
        }
        // What a C++ compiler would refuse: arguments that do not fit the kernel.
        if let Some(exe) = &version.exe {
            for (_, plan) in self.shapes.iter().filter_map(|(n, _)| version.plans.get_key_value(n)) {
                let Ok(plan) = plan else { continue };
                if let Some(what) = misfit(exe, plan) {
                    return Err(self.early(Verdict::Rejected, format!("{name}:{what}")));
                }
            }
        }
        Ok(version)
    }

    fn host_error(&self, name: &str, e: &HostError) -> Stop {
        match e {
            HostError::NoLaunch => self.early(
                Verdict::Rejected,
                format!(
                    "{name}: the file has no host function `launch`; {}",
                    takes(self.config.problem, &self.own_dims)
                ),
            ),
            HostError::Unsupported { .. } => self.early(Verdict::Unsupported, format!("{name}:{e}")),
            HostError::Exhausted { .. } => self.early(Verdict::Exhausted, format!("{name}:{e}")),
            HostError::Invalid { .. } | HostError::Fault { .. } | HostError::Unbound { .. } => {
                self.early(Verdict::Rejected, format!("{name}:{e}"))
            }
        }
    }

    fn refused(&self, name: &str, e: Refused) -> Stop {
        match e {
            Refused::Host(e) => self.host_error(name, &e),
            Refused::Device(what) => self.early(Verdict::Unsupported, format!("{name}: {what}")),
            Refused::Lost => Stop::Error(CampaignError::Internal("the compiler gave no answer".into())),
            Refused::Compile(e) => {
                let verdict = match e.kind {
                    CompileErrorKind::Rejected => Verdict::Rejected,
                    CompileErrorKind::TimedOut | CompileErrorKind::Crashed => Verdict::Exhausted,
                    CompileErrorKind::Options => return Stop::Error(CampaignError::Input(e.to_string())),
                    CompileErrorKind::Unavailable => {
                        return Stop::Error(CampaignError::Internal(e.to_string()));
                    }
                };
                let what =
                    if verdict == Verdict::Rejected { "does not compile" } else { "the compiler gave up" };
                let Stop::Answer(mut check) = self.early(verdict, format!("{name}: {what}: {e}")) else {
                    return Stop::Error(CampaignError::Internal(e.to_string()));
                };
                check.log = Some(e.log);
                Stop::Answer(check)
            }
        }
    }

    /// Do correct implementations, the problem's own kernel among them, agree on this input at this tolerance?
    ///
    /// # Errors
    /// `Input` where the problem's own kernel is wrong although every float32 evaluation agrees: the problem is at fault.
    fn valid(&self, asked: &Asked, tolerance: Tolerance) -> Result<bool, CampaignError> {
        let problem = self.config.problem;
        let bound = tolerance.atol.min(tolerance.rtol);
        let spread = asked.spread.get_or_init(|| asked.input.spread(problem).map_err(|e| e.to_string()));
        let spread = spread.clone().map_err(CampaignError::Input)?;
        if spread > bound {
            return Ok(false);
        }
        let substrate = self.substrate.get_or_init(|| {
            let file = problem.kernel_file.display().to_string();
            let options = &self.config.options;
            filter::compiled(
                problem,
                self.config.compiler,
                options,
                &file,
                &problem.kernel_source,
                &self.shapes,
            )
            .map_err(|e| e.to_string())
        });
        let substrate = substrate.as_ref().map_err(|e| CampaignError::Baseline(e.clone()))?;
        let look = self.look(substrate, asked, self.config.seed, BUDGET);
        if look.rejected() || look.undecided().is_some() {
            return Err(CampaignError::Baseline(format!(
                "the kernel of problem {} itself fails on input `{}`: {}",
                problem.key(),
                asked.input.text,
                look.describe()
            )));
        }
        Ok(true)
    }

    /// The tolerances at which an input is judged.
    pub(super) fn tolerances(&self, asked: &Asked) -> Vec<Tolerance> {
        let mut out = Vec::new();
        if asked.official {
            out.push(self.official.tolerance());
        }
        if asked.suite {
            out.push(self.config.suite.tolerance());
        }
        out
    }
}

/// Is the input what the suite's file says that its recipe makes, where it says so?
fn unchanged(key: &str, input: &Input, suite: &Protocol) -> Result<(), CampaignError> {
    let Some(stated) = suite.digests.get(key).and_then(|of| of.get(&input.text)) else { return Ok(()) };
    let ours = assay_tensor::safetensors_io::digest(&input.tensors);
    if ours == *stated {
        return Ok(());
    }
    Err(CampaignError::Input(format!(
        "suite `{}`: input `{}` of {key} is not the one that was exported: its SHA-256 is {ours}, the suite says {stated}; \
         the suite was changed, or is of another problem or version (export it again)",
        suite.name, input.text
    )))
}

/// Every ragged shape of the problem once, under sign-mixed values.
fn ragged(problem: &Problem) -> Vec<Recipe> {
    let noise = problem.inputs.iter().any(|i| i.kind == InputKind::Parameter && i.dtype.is_float());
    (RAGGED_SEED..)
        .zip(&problem.ragged)
        .map(|(seed, dims)| {
            let r = Recipe::new(Kind::Normal(1.0)).with_dims(dims.clone()).with_seed(seed);
            if noise { r.with_params() } else { r }
        })
        .collect()
}

/// What a problem's `launch` may take, for messages.
fn takes(problem: &Problem, dims: &BTreeMap<String, u64>) -> String {
    let mut words: Vec<String> = Vec::new();
    for i in &problem.inputs {
        words.push(format!("`const {}* {}`", c_type(i.dtype), i.name));
    }
    words.extend(
        problem.outputs.iter().filter(|o| problem.input(o).is_none()).map(|o| format!("the output `{o}`")),
    );
    words.extend(dims.keys().map(|d| format!("`int {d}`")));
    words.extend(problem.scalars.keys().map(|s| format!("`float {s}`")));
    format!("parameters go by name, in any order: {}", words.join(", "))
}

fn c_type(dtype: assay_tensor::DType) -> &'static str {
    use assay_tensor::DType as D;
    match dtype {
        D::F32 => "float",
        D::F64 => "double",
        D::F16 => "__half",
        D::BF16 => "__nv_bfloat16",
        D::I64 => "long long",
        D::I32 => "int",
        D::I16 => "short",
        D::I8 => "signed char",
        D::U64 => "unsigned long long",
        D::U32 => "unsigned",
        D::U16 => "unsigned short",
        D::U8 => "unsigned char",
        D::Bool => "bool",
    }
}

/// The first launch whose arguments do not fit its kernel, with its line.
pub(super) fn misfit(exe: &crate::execute::Executable, plan: &Plan) -> Option<String> {
    for l in plan.launches() {
        let Some((_, f)) = exe.kernel(&l.kernel) else {
            return Some(format!("{}: no kernel `{}` in the compiled file", l.line, l.kernel));
        };
        if f.params.len() != l.args.len() {
            return Some(format!(
                "{}: the launch of `{}` passes {} arguments, the kernel has {} parameters",
                l.line,
                l.kernel,
                l.args.len(),
                f.params.len()
            ));
        }
        for (k, (p, a)) in f.params.iter().zip(&l.args).enumerate() {
            let have = match (a, a.bytes()) {
                (PlanArg::Buffer { .. }, _) => 8,
                (_, Some(b)) => b.len() as u64,
                (_, None) => continue,
            };
            if have != p.size_bytes {
                return Some(format!(
                    "{}: argument {} of `{}` has {have} bytes, its parameter {}",
                    l.line,
                    k + 1,
                    l.kernel,
                    p.size_bytes
                ));
            }
        }
    }
    None
}
