//! One problem's mutants under one protocol at official and at desk extents.

use std::collections::BTreeMap;

use assay_measure::{Origin, Protocol};
use assay_nvrtc::Compiler;
use assay_ops::Variant;
use assay_problems::{Extents, Plan, Problem, Recipe};
use assay_simt::{Engine, Fill, Memory, Sanitize, Schedule};
use rayon::prelude::*;
use serde::Serialize;

use super::input::{Expected, OfficialInput};
use super::judge::{Ending, Verdict, judge};
use super::run::{Bounds, LaunchBlocks, Ran, RunEnd, Which, run};
use crate::bench::shape_name;
use crate::execute::{End, Mode};
use crate::filter::{self, Candidate, Sorted, Version};
use crate::harness::Harness;
use crate::inputs::{self, Input};

/// A version may execute this many times the original's warp instructions, and 100,000 more.
const BUDGET_FACTOR: u64 = 10;

/// What a study is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Mutants per problem.
    pub mutants: usize,
    /// Random blocks of a launch beside the first, the last and those at boundaries.
    pub random: u64,
    /// Seed of blocks, noise and schedule.
    pub seed: u64,
    /// Warp instructions that the original may execute on one input.
    pub instructions: u64,
    /// Every block instead of a sample.
    pub whole: bool,
}

/// A mutant and its verdicts.
#[derive(Clone, Debug, Serialize)]
pub struct StudiedMutant {
    /// Its id.
    pub id: String,
    /// What it changes.
    pub name: String,
    /// Its rule's family.
    pub family: &'static str,
    /// At official extents, strict memory.
    pub official: Verdict,
    /// At desk extents, strict memory.
    pub desk: Verdict,
    /// At desk extents in the memory that protocols are scored in.
    pub desk_arena: Verdict,
}

/// What a problem gave.
#[derive(Clone, Debug, Serialize)]
pub struct Studied {
    /// The problem.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// The launches of the original at official extents and the blocks of them that ran on the first input.
    pub launches: Vec<LaunchBlocks>,
    /// Elements of all outputs judged per input.
    pub judged: u64,
    /// Elements of all outputs.
    pub elements: u64,
    /// Warp instructions of the original on the first input.
    pub instructions: u64,
    /// Largest threshold of the original over the protocol's inputs at official extents.
    pub original_threshold: f64,
    /// Distinct mutants of which these were taken.
    pub distinct: u64,
    /// The mutants.
    pub mutants: Vec<StudiedMutant>,
}

/// An official input with what the original's blocks give on it.
pub(crate) struct Ready {
    pub(crate) input: OfficialInput,
    /// The original's launches with the blocks that ran.
    pub(crate) launches: Vec<LaunchBlocks>,
    /// The float32 reference where those blocks wrote.
    pub(crate) expected: Expected,
    pub(crate) asked: BTreeMap<String, Vec<u64>>,
    /// What the original gives there.
    pub(crate) original: Ran,
    /// Warp instructions of the original.
    pub(crate) instructions: u64,
    /// The original's threshold against the float32 reference.
    pub(crate) threshold: f64,
}

/// Makes a recipe's input at official extents and runs the original on it.
fn ready(problem: &Problem, original: &Version, recipe: &Recipe, config: &Config) -> Result<Ready, String> {
    let input = OfficialInput::new(problem, recipe).map_err(|e| e.to_string())?;
    let which =
        if config.whole { Which::All } else { Which::Sample { seed: config.seed, random: config.random } };
    let ran = official(problem, original, &input, which, config, config.instructions, &BTreeMap::new())?;
    ready_from(problem, input, ran)
}

/// What the original's blocks gave on an input, with the reference where they wrote.
///
/// # Errors
/// Why the sample tells nothing, in words: the original did not end well, or fails in it.
pub(crate) fn ready_from(problem: &Problem, input: OfficialInput, ran: Ran) -> Result<Ready, String> {
    match &ran.end {
        RunEnd::Done => {}
        RunEnd::Fault(what) => return Err(format!("the original faults: {what}")),
        RunEnd::Exhausted(what) => return Err(format!("exhausted: {what}")),
        RunEnd::Unsupported(what) => return Err(what.clone()),
    }
    let (mut expected, mut asked) = (Expected::new(), BTreeMap::new());
    for (name, written) in &ran.outputs {
        let index = written.points.index.clone();
        let points = input.reference(name, &index, &Variant::official()).map_err(|e| e.to_string())?;
        if points.index != index {
            return Err(format!("output `{name}`: the reference misses elements"));
        }
        expected.insert(name.clone(), points);
        asked.insert(name.clone(), index);
    }
    let again = Ran { outputs: at_asked(&ran, &asked), ..ran.clone() };
    let v = judge(problem, &input, &again, &expected, assay_judge::PAPER_TOLERANCE);
    if v.ending != Ending::Pass {
        // A launch's blocks that were left out may have had to overwrite what an earlier launch wrote.
        let several = if ran.launches.len() > 1 { " (or its launches write over each other)" } else { "" };
        return Err(format!("the original fails in the sample at official extents{several}: {}", v.note));
    }
    let (instructions, launches) = (ran.instructions, ran.launches);
    let threshold = v.threshold.unwrap_or(0.0);
    Ok(Ready { input, launches, expected, asked, original: again, instructions, threshold })
}

/// The original's own elements as if they had been asked for.
fn at_asked(ran: &Ran, asked: &BTreeMap<String, Vec<u64>>) -> BTreeMap<String, super::Written> {
    let whole = |(name, w): (&String, &super::Written)| {
        let mut w = w.clone();
        w.at = w.points.clone();
        debug_assert_eq!(asked.get(name), Some(&w.points.index));
        (name.clone(), w)
    };
    ran.outputs.iter().map(whole).collect()
}

fn official(
    problem: &Problem,
    version: &Version,
    input: &OfficialInput,
    which: Which<'_>,
    config: &Config,
    instructions: u64,
    asked: &BTreeMap<String, Vec<u64>>,
) -> Result<Ran, String> {
    let exe = version.exe.as_ref().ok_or("nothing was compiled")?;
    let ended = |end| Ran { end, instructions: 0, launches: Vec::new(), outputs: BTreeMap::new() };
    Ok(match version.plans.get(&shape_name(&input.dims)) {
        Some(Ok(plan)) => {
            run(problem, exe, plan, input, which, Bounds::new(config.seed, instructions), asked)
        }
        Some(Err(e @ assay_problems::HostError::Unsupported { .. })) => {
            ended(RunEnd::Unsupported(e.to_string()))
        }
        Some(Err(e @ assay_problems::HostError::Exhausted { .. })) => ended(RunEnd::Exhausted(e.to_string())),
        Some(Err(e)) => ended(RunEnd::Fault(e.to_string())),
        None => return Err("no plan for the official shape".into()),
    })
}

/// A version on an input at desk extents.
fn desk(harness: &Harness<'_>, version: &Version, input: &Input, memory: Memory, config: &Config) -> Verdict {
    let mode = Mode {
        memory,
        fill: Fill::Noise,
        sanitize: Sanitize::OFF,
        schedule: Schedule::Hardware,
        seed: config.seed,
        instructions: DESK_INSTRUCTIONS,
        engine: Engine::Auto,
    };
    let ran = harness.run(version, input, &mode, None);
    match ran.end {
        End::Fault(what) => Verdict::ended(Ending::Fault, &input.text, what),
        End::Exhausted(what) => Verdict::ended(Ending::Exhausted, &input.text, what),
        End::Unsupported(what) => Verdict::ended(Ending::Unsupported, &input.text, what),
        End::Outputs(out) => match inputs::worst(harness.problem, &out, &input.official, false) {
            Ok(c) => {
                let passes = c.passes(assay_judge::PAPER_TOLERANCE);
                let note = if passes { String::new() } else { format!("off at [{}]", c.index.unwrap_or(0)) };
                Verdict {
                    ending: if passes { Ending::Pass } else { Ending::Mismatch },
                    input: (!passes).then(|| input.text.clone()),
                    threshold: Some(if c.threshold.is_finite() { c.threshold } else { f64::MAX }),
                    note,
                }
            }
            Err(e) => Verdict::ended(Ending::Fault, &input.text, e),
        },
    }
}

/// Warp instructions of one evaluation at desk extents, as in an audit.
const DESK_INSTRUCTIONS: u64 = 50_000_000;

/// The original alone on the protocol's first input: whether and at what cost the problem can be studied.
///
/// # Errors
/// Why it cannot, in words.
pub fn survey(
    problem: &Problem,
    compiler: &Compiler,
    protocol: &Protocol,
    config: &Config,
) -> Result<Studied, String> {
    let prepared = Prepared::new(problem, compiler, protocol)?;
    let first = prepared.recipes.first().ok_or("the protocol has no inputs")?;
    let ready = ready(problem, &prepared.original, first, config)?;
    Ok(prepared.studied(std::slice::from_ref(&ready), 0, Vec::new()))
}

struct Prepared<'a> {
    problem: &'a Problem,
    recipes: Vec<Recipe>,
    shapes: filter::Shapes,
    original: Version,
    options: assay_nvrtc::Options,
}

impl<'a> Prepared<'a> {
    fn new(problem: &'a Problem, compiler: &Compiler, protocol: &Protocol) -> Result<Prepared<'a>, String> {
        let texts = protocol.recipes(&problem.key(), &[], |_| Vec::new());
        let recipes: Vec<Recipe> = texts
            .iter()
            .map(|t| t.parse().map_err(|e| format!("`{t}`: {e}")))
            .collect::<Result<_, String>>()?;
        let first = recipes.first().ok_or("the protocol has no inputs")?;
        let mut shapes = filter::Shapes::new();
        for extents in [Extents::Official, Extents::Desk] {
            let dims = problem.dims_for(first, extents).map_err(|e| e.to_string())?;
            if shapes.iter().all(|(name, _)| *name != shape_name(&dims)) {
                shapes.push((shape_name(&dims), dims));
            }
        }
        let options = assay_nvrtc::Options::default();
        let file = problem.kernel_file.display().to_string();
        let original = filter::compiled(problem, compiler, &options, &file, &problem.kernel_source, &shapes)
            .map_err(|e| e.to_string())?;
        Ok(Prepared { problem, recipes, shapes, original, options })
    }

    fn studied(&self, inputs: &[Ready], distinct: u64, mutants: Vec<StudiedMutant>) -> Studied {
        let first = inputs.first();
        let count = |shape: &[u64]| assay_tensor::numel(shape).unwrap_or(u64::MAX);
        Studied {
            problem: self.problem.key(),
            name: self.problem.name.clone(),
            launches: first.map_or_else(Vec::new, |r| r.launches.clone()),
            judged: first.map_or(0, |r| r.asked.values().map(|a| a.len() as u64).sum()),
            elements: first.map_or(0, |r| r.input.outputs.iter().map(|o| count(&o.shape)).sum()),
            instructions: first.map_or(0, |r| r.instructions),
            original_threshold: inputs.iter().map(|r| r.threshold).fold(0.0, f64::max),
            distinct,
            mutants,
        }
    }
}

/// The verdicts of a protocol on a problem's mutants at both extents.
///
/// The mutants are every k-th distinct one, the families one after the other, so that each has its share.
/// Mutants whose kernels and launches are the same at both shapes are not distinct here.
///
/// # Errors
/// Why the problem cannot be studied, in words: its original cannot be sampled, or fails.
pub fn study(
    problem: &Problem,
    compiler: &Compiler,
    protocol: &Protocol,
    config: &Config,
) -> Result<Studied, String> {
    let prepared = Prepared::new(problem, compiler, protocol)?;
    let ready: Vec<Ready> = prepared
        .recipes
        .par_iter()
        .map(|r| ready(problem, &prepared.original, r, config))
        .collect::<Result<_, String>>()?;
    let desk_inputs: Vec<Input> = prepared
        .recipes
        .par_iter()
        .map(|r| inputs::make(problem, r, Origin::Official, false).map_err(|e| e.to_string()))
        .collect::<Result<_, String>>()?;
    let official_dims = ready.first().map(|r| r.input.dims.clone()).unwrap_or_default();
    let plan = prepared.original.plans.get(&shape_name(&official_dims));
    let official_plan: Option<Plan> = plan.and_then(|p| p.as_ref().ok()).cloned();
    let harness = Harness { problem, official_dims, official_plan };
    let at_desk = |version: &Version, memory| {
        Verdict::first(desk_inputs.iter().map(|i| desk(&harness, version, i, memory, config)))
    };
    let original = at_desk(&prepared.original, Memory::Strict);
    if original.ending != Ending::Pass {
        return Err(format!("the original fails at desk extents: {}", original.note));
    }
    let file = format!("{}/kernel.cu", problem.slug);
    let mutants = assay_mutate::mutants_in(&problem.kernel_source, &file).map_err(|e| e.to_string())?;
    let candidates = filter::sort(
        problem,
        compiler,
        &prepared.options,
        &prepared.original,
        &prepared.shapes,
        mutants,
        &|_| Ok(()),
    )
    .map_err(|e| e.to_string())?;
    let mut distinct: Vec<&Candidate> = candidates.iter().filter(|c| c.sorted == Sorted::Distinct).collect();
    // Stable: within a family in the order of the file.
    distinct.sort_by_key(|c| c.mutant.family);
    let (n, wanted) = (distinct.len(), config.mutants.min(distinct.len()));
    let chosen: Vec<&Candidate> = (0..wanted).map(|k| distinct[k * n / wanted]).collect();
    let studied = chosen
        .par_iter()
        .map(|c| {
            let version = c.version.as_ref().ok_or("a distinct mutant without a version")?;
            let official = Verdict::first(ready.iter().map(|r| {
                let budget = r.instructions.saturating_mul(BUDGET_FACTOR).saturating_add(100_000);
                let like = Which::Like(&r.launches);
                match official(problem, version, &r.input, like, config, budget, &r.asked) {
                    Ok(ran) => judge(problem, &r.input, &ran, &r.expected, assay_judge::PAPER_TOLERANCE),
                    Err(what) => Verdict::ended(Ending::Unsupported, &r.input.text, what),
                }
            }));
            Ok(StudiedMutant {
                id: c.mutant.id.clone(),
                name: c.mutant.name.clone(),
                family: c.mutant.family.name(),
                official,
                desk: at_desk(version, Memory::Strict),
                desk_arena: at_desk(version, Memory::Arena),
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok(prepared.studied(&ready, n as u64, studied))
}
