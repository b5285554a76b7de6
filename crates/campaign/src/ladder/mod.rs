//! The knowledge ladder: what must a generator of inputs know to catch what the official inputs miss?
//!
//! Arrives: a finished run, the problems behind it, generators. Leaves: for each generator the share of a fixed hard set
//! that its inputs kill, and how many of its inputs are valid. The hard set are the mutants of the six families that the
//! run witnessed and the official check misses, on the problems with the most of them. The budget of inputs a problem
//! is the same for all. Four generators are built in, one file each, from knowing nothing to knowing the mutants; an
//! external one is any program that prints recipes (`external`).
//!
//! An input counts where it fits the problem, the substrate is right on it, and correct evaluations are no further apart
//! than the witness tolerance; a kill is a rejection at that tolerance on such an input. False kills are counted on every
//! input that can be made, valid or not, by the held-out evaluations.
//!
//! The search that gave the mutants their witnesses is no generator here, but the witnesses it found are why there is a
//! hard set: a mutant that no recipe of an audit kills is in no denominator.
//!
//! Source: "Measuring the Checker", section 6 ("What must a generator know?"). Its rungs were prompts to a language
//! model, so that no figure here compares with its own.

mod external;
mod generic;
mod random;
mod taxonomy;
mod white_box;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use assay_judge::{Ceiling, PAPER_TOLERANCE};
use assay_measure::{KillMatrix, Origin, Protocol, Scope, Tolerance, percent, score};
use assay_nvrtc::Compiler;
use assay_problems::{Extents, Problem, Recipe};
use rayon::prelude::*;
use serde::Serialize;

use crate::audit::{Context, without_a_folder};
use crate::bench::{Bench, shape_name};
use crate::ceilings::{Ceilings, ceilings};
use crate::filter::{self, Shapes, Version};
use crate::harness::Harness;
use crate::inputs::{self, Input};
use crate::judged::Judged;
use crate::records::Records;
use crate::stage::mutant_file;
use crate::{CampaignError, Progress};

pub use external::External;

/// Mutants that the white-box rung is shown of a problem: the checker paper shows ten.
pub const SHOWN: usize = 10;

/// The official check, which the hard set survives.
const OFFICIAL: &str = "kernelbench-2025";

/// A mutant as a generator may see it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The rule's family.
    pub family: String,
    /// The rule.
    pub rule: String,
    /// 1-based line.
    pub line: u32,
    /// Is the fault in the launcher?
    pub host: bool,
    /// Unified diff.
    pub diff: String,
}

/// All that is known of a problem; each rung looks at its part.
pub struct Facts<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The most inputs to ask.
    pub budget: usize,
    /// Where its inputs stop being valid.
    pub ceilings: Ceilings,
    /// Up to [`SHOWN`] mutants of the hard set, of different rules first.
    pub shown: &'a [Shown],
}

/// A built-in generator.
pub struct Rung {
    /// Its short name.
    pub id: &'static str,
    /// What it is.
    pub name: &'static str,
    /// What it knows.
    pub knows: &'static str,
    /// Survivors that the checker paper's rung of that name kills, in percent.
    pub published_percent: f64,
    /// What it published as validity.
    pub published_validity: &'static str,
    /// Its recipes for a problem, best first; more than the budget are cut.
    pub generate: fn(&Facts<'_>) -> Vec<Recipe>,
}

/// The rungs, lowest first: one file and one row each.
pub const RUNGS: &[Rung] = &[random::RUNG, generic::RUNG, taxonomy::RUNG, white_box::RUNG];

/// How one generator fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RungScore {
    /// `R0` to `R3`, or `external`.
    pub id: String,
    /// What it is; the command of an external one.
    pub name: String,
    /// What it knows.
    pub knows: String,
    /// Problems it was asked about.
    pub problems: u64,
    /// Inputs that it gave, within the budget.
    pub inputs: u64,
    /// Of them, valid ones.
    pub valid: u64,
    /// Not valid: no recipe of the problem (unknown dim, a shape that the reference refuses).
    pub unusable: u64,
    /// Not valid: the substrate gives no outputs, or wrong ones.
    pub substrate_fails: u64,
    /// Not valid: beyond the ceiling, correct evaluations disagree by more than the tolerance.
    pub beyond_ceiling: u64,
    /// Not valid, in percent valid of the inputs.
    pub valid_percent: Option<f64>,
    /// Inputs beyond the budget, dropped unseen.
    pub dropped: u64,
    /// Problems on which the program itself failed (exit code, time, output that is no recipe); its lines before count.
    pub failures: u64,
    /// The first failure in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    /// Survivors killed.
    pub killed: u64,
    /// The same in percent of the survivors.
    pub killed_percent: Option<f64>,
    /// Rejections of correct evaluations on its inputs.
    pub false_kills: u64,
    /// Correct evaluations on its inputs.
    pub correct_runs: u64,
    /// What the checker paper's rung killed, in percent: not comparable.
    pub published_percent: Option<f64>,
    /// Its published validity: not comparable.
    pub published_validity: Option<String>,
}

/// One problem of the hard set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HardProblem {
    /// `level/id`.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// Its official survivors.
    pub survivors: u64,
    /// Ceilings of its inputs.
    pub ceilings: Ceilings,
    /// Survivors killed by each generator, in the order of the scores.
    pub killed: Vec<u64>,
    /// Each generator's recipes, valid or not.
    pub recipes: Vec<Vec<String>>,
}

/// The ladder of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// How the hard set was chosen.
    pub hard_set: String,
    /// Its mutants.
    pub survivors: u64,
    /// Inputs a problem and generator.
    pub budget: u64,
    /// One score a generator.
    pub rungs: Vec<RungScore>,
    /// Killed by any of them.
    pub killed_by_any: u64,
    /// Why published figures stand apart.
    pub published_note: String,
    /// The problems.
    pub problems: Vec<HardProblem>,
}

/// What to score.
pub struct LadderConfig<'a> {
    /// The finished run.
    pub records: &'a Records,
    /// Problems among which the run's are found by key.
    pub problems: &'a [Problem],
    /// Problems of the hard set at most.
    pub most: usize,
    /// Inputs a problem.
    pub budget: usize,
    /// External generators.
    pub external: &'a [External],
    /// Threads.
    pub jobs: usize,
}

/// The official survivors of a run by problem: the problems with the most of them, in the order of the summary.
///
/// # Errors
/// `Input` where the official check's inputs are not in the run.
fn hard_set(records: &Records, most: usize) -> Result<Vec<(&KillMatrix, Vec<usize>)>, CampaignError> {
    let all = assay_measure::builtin().map_err(|e| CampaignError::Internal(e.to_string()))?;
    let official: &Protocol = all
        .iter()
        .find(|p| p.name == OFFICIAL)
        .ok_or_else(|| CampaignError::Internal(format!("no protocol `{OFFICIAL}`")))?;
    let matrices: Vec<KillMatrix> = records.matrices.iter().map(|(_, m)| m.clone()).collect();
    let scored = score(official, &matrices, &Scope::Paper);
    if scored.not_evaluated > 0 {
        return Err(CampaignError::Input(format!(
            "the run lacks {} evaluations that `{OFFICIAL}` asks; audit with it",
            scored.not_evaluated
        )));
    }
    let mut hard: Vec<(&KillMatrix, Vec<usize>)> = records
        .matrices
        .iter()
        .zip(&scored.problems)
        .map(|((_, m), one)| {
            (m, Scope::Paper.targets(m).into_iter().filter(|&k| !one.detected[k]).collect::<Vec<_>>())
        })
        .filter(|(_, left)| !left.is_empty())
        .collect();
    let mut counts: Vec<(usize, usize)> = hard.iter().enumerate().map(|(k, h)| (h.1.len(), k)).collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let kept: BTreeSet<usize> = counts.into_iter().take(most).map(|c| c.1).collect();
    let mut at = 0;
    hard.retain(|_| {
        at += 1;
        kept.contains(&(at - 1))
    });
    Ok(hard)
}

/// Up to [`SHOWN`] of them, one of each rule first, by line and then by id, so that the choice is nobody's.
fn shown(problem: &Problem, mutants: &[&assay_mutate::Mutant]) -> Vec<Shown> {
    let mut order: Vec<&&assay_mutate::Mutant> = mutants.iter().collect();
    order.sort_by_key(|m| (m.line, m.id.clone()));
    let mut rules = BTreeSet::new();
    let (first, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(|m| rules.insert(m.rule));
    first
        .into_iter()
        .chain(rest)
        .take(SHOWN)
        .map(|m: &&assay_mutate::Mutant| Shown {
            family: m.family.name().to_owned(),
            rule: m.rule.to_owned(),
            line: m.line,
            host: m.host,
            diff: m.diff(&problem.kernel_source),
        })
        .collect()
}

/// What one generator asked of one problem.
struct Asked {
    recipes: Vec<Recipe>,
    unusable: u64,
    dropped: u64,
    failure: Option<String>,
}

/// Scores every rung and every external generator on the run's hard set.
///
/// # Errors
/// `Input` where a problem of the hard set is not among those given or has changed since the run; `BadRun`; what fails in
/// the compiler.
pub fn ladder(
    config: &LadderConfig<'_>,
    compiler: &Compiler,
    progress: &dyn Progress,
) -> Result<Ladder, CampaignError> {
    let hard = hard_set(config.records, config.most)?;
    let mut rungs: Vec<RungScore> = RUNGS
        .iter()
        .map(|r| RungScore {
            id: r.id.to_owned(),
            name: r.name.to_owned(),
            knows: r.knows.to_owned(),
            published_percent: Some(r.published_percent),
            published_validity: Some(r.published_validity.to_owned()),
            ..RungScore::default()
        })
        .chain(config.external.iter().map(|e| RungScore {
            id: "external".to_owned(),
            name: e.command.clone(),
            knows: "facts on its standard input".to_owned(),
            ..RungScore::default()
        }))
        .collect();
    let mut problems = Vec::new();
    let mut any = 0u64;
    for (matrix, left) in &hard {
        let problem = config.problems.iter().find(|p| p.key() == matrix.key()).ok_or_else(|| {
            CampaignError::Input(format!("{} of the run is not among the problems given", matrix.key()))
        })?;
        let known = config.records.sources.iter().find(|s| s.problem == matrix.key());
        if known.is_some_and(|s| s.text != problem.kernel_source) {
            return Err(CampaignError::Input(format!(
                "{} has changed since the run; audit it again",
                matrix.key()
            )));
        }
        let ids: BTreeSet<&str> = left.iter().map(|&k| matrix.mutants[k].id.as_str()).collect();
        let seed = config.records.seed;
        let (row, killed) = without_a_folder(config.jobs, seed, progress, &[], |context| {
            one_problem(context, compiler, problem, &ids, config, &mut rungs)
        })?;
        any += killed;
        problems.push(row);
    }
    let survivors = hard.iter().map(|h| h.1.len() as u64).sum();
    for r in &mut rungs {
        r.valid_percent = percent(r.valid, r.inputs);
        r.killed_percent = percent(r.killed, survivors);
    }
    Ok(Ladder {
        hard_set: format!(
            "witnessed mutants of the six families that `{OFFICIAL}` misses, on the {} problems with the most of them \
             (at most {}; ties in the order of the run)",
            hard.len(),
            config.most
        ),
        survivors,
        budget: config.budget as u64,
        rungs,
        killed_by_any: any,
        published_note:
            "not comparable: the checker paper's rungs were prompts to a language model, on its own 1,154 \
                         survivors of 30 problems"
                .to_owned(),
        problems,
    })
}

fn one_problem(
    context: &Context<'_>,
    compiler: &Compiler,
    problem: &Problem,
    ids: &BTreeSet<&str>,
    config: &LadderConfig<'_>,
    rungs: &mut [RungScore],
) -> Result<(HardProblem, u64), CampaignError> {
    let key = problem.key();
    let all = assay_mutate::mutants_in(&problem.kernel_source, &mutant_file(problem))
        .map_err(|e| CampaignError::Input(format!("{}: {e}", problem.kernel_file.display())))?;
    let mutants: Vec<assay_mutate::Mutant> =
        all.into_iter().filter(|m| ids.contains(m.id.as_str())).collect();
    if mutants.len() != ids.len() {
        return Err(CampaignError::Input(format!(
            "{key}: {} of the run's {} survivors are made no more; the rules have changed since, audit again",
            ids.len() - mutants.len(),
            ids.len()
        )));
    }
    context.progress.stage(&format!("{key}: ceilings"), 1);
    let seen: Vec<&assay_mutate::Mutant> = mutants.iter().collect();
    let shown = shown(problem, &seen);
    let facts = Facts { problem, budget: config.budget, ceilings: ceilings(problem)?, shown: &shown };
    let asked: Vec<Asked> = RUNGS
        .iter()
        .map(|r| {
            let mut recipes = (r.generate)(&facts);
            let dropped = recipes.len().saturating_sub(config.budget) as u64;
            recipes.truncate(config.budget);
            Ok(Asked { recipes, unusable: 0, dropped, failure: None })
        })
        .chain(config.external.iter().map(|e| e.ask(&facts, &|| context.interrupted())))
        .collect::<Result<_, CampaignError>>()?;

    // Every recipe once, whoever asks it.
    let mut recipes: Vec<Recipe> = Vec::new();
    for r in asked.iter().flat_map(|a| &a.recipes) {
        if !recipes.contains(r) {
            recipes.push(r.clone());
        }
    }
    let official_dims = problem
        .dims_for(&Recipe::official(0), Extents::Official)
        .map_err(|e| CampaignError::Input(format!("{key}: {e}")))?;
    let mut shapes: Shapes = vec![(shape_name(&official_dims), official_dims.clone())];
    for recipe in &recipes {
        // A dim that the problem does not have shows when the input is made.
        let Ok(dims) = problem.dims_for(recipe, Extents::Desk) else { continue };
        let name = shape_name(&dims);
        if shapes.iter().all(|(n, _)| *n != name) {
            shapes.push((name, dims));
        }
    }
    let file = problem.kernel_file.display().to_string();
    let options = &context.compile_options;
    let original = filter::compiled(problem, compiler, options, &file, &problem.kernel_source, &shapes)?;
    let official_plan = original.plans.get(&shapes[0].0).and_then(|p| p.as_ref().ok()).cloned();
    let bench = Bench {
        context,
        problem,
        key: key.clone(),
        known: HashMap::new(),
        harness: Harness { problem, official_dims, official_plan },
        instructions: Mutex::default(),
        executed: AtomicU64::new(0),
    };
    let progress = context.progress;
    progress.stage(&format!("{key}: inputs"), recipes.len() as u64);
    let made: Vec<Made> = recipes
        .par_iter()
        .map(|r| {
            let m = make(&bench, &original, r);
            progress.step(1);
            m
        })
        .collect::<Result<_, CampaignError>>()?;
    progress.stage(&format!("{key}: compile"), mutants.len() as u64);
    let count = mutants.len() as u64;
    let candidates = filter::sort(problem, compiler, options, &original, &shapes, mutants, &|n| {
        context.check_interrupt()?;
        progress.step(n);
        Ok(())
    })?;
    progress.stage(&format!("{key}: evaluate"), count);
    // For each mutant, which recipes kill it; a recipe is not tried where every generator that asks it has killed.
    let kills: Vec<Vec<bool>> = candidates
        .par_iter()
        .map(|c| {
            let mut row = vec![false; recipes.len()];
            let mut done = vec![false; asked.len()];
            let Some(version) = &c.version else { return Ok(row) };
            let mut look = Judged::default();
            let mut looked: Vec<&BTreeMap<String, u64>> = Vec::new();
            for (k, (recipe, made)) in recipes.iter().zip(&made).enumerate() {
                let Made::Input { input, valid: true } = made else { continue };
                let by: Vec<usize> =
                    (0..asked.len()).filter(|&g| asked[g].recipes.contains(recipe)).collect();
                if by.iter().all(|&g| done[g]) {
                    continue;
                }
                let mut fresh = Vec::new();
                if !looked.contains(&&input.dims) {
                    bench.look(&c.mutant.id, version, input, &mut look, &mut fresh)?;
                    looked.push(&input.dims);
                }
                let cell = bench.cell_of(&c.mutant.id, version, input, &mut look, &mut fresh)?;
                if cell.rejected_by(Tolerance::PAPER) == Some(true) {
                    row[k] = true;
                    by.into_iter().for_each(|g| done[g] = true);
                }
            }
            progress.step(1);
            Ok(row)
        })
        .collect::<Result<_, CampaignError>>()?;

    let mut killed = Vec::new();
    for (score, asked) in rungs.iter_mut().zip(&asked) {
        let mine: Vec<usize> =
            asked.recipes.iter().filter_map(|r| recipes.iter().position(|known| known == r)).collect();
        let caught = kills.iter().filter(|row| mine.iter().any(|&k| row[k])).count() as u64;
        score.problems += 1;
        score.inputs += mine.len() as u64 + asked.unusable;
        score.unusable += asked.unusable;
        score.dropped += asked.dropped;
        score.killed += caught;
        if let Some(why) = &asked.failure {
            score.failures += 1;
            score.first_failure.get_or_insert_with(|| format!("{key}: {why}"));
        }
        for &k in &mine {
            match &made[k] {
                Made::Unusable => score.unusable += 1,
                Made::SubstrateFails => score.substrate_fails += 1,
                Made::Input { input, valid } => {
                    score.valid += u64::from(*valid);
                    score.beyond_ceiling += u64::from(!*valid);
                    score.correct_runs += input.controls.len() as u64;
                    score.false_kills +=
                        input.controls.iter().filter(|(_, t)| t.is_nan() || *t > PAPER_TOLERANCE).count()
                            as u64;
                }
            }
        }
        killed.push(caught);
    }
    let any = kills.iter().filter(|row| row.iter().any(|k| *k)).count() as u64;
    let row = HardProblem {
        problem: key,
        name: problem.name.clone(),
        survivors: count,
        ceilings: facts.ceilings,
        killed,
        recipes: asked.iter().map(|a| a.recipes.iter().map(ToString::to_string).collect()).collect(),
    };
    Ok((row, any))
}

/// What became of a recipe.
enum Made {
    /// The recipe does not fit the problem, or the reference refuses the shape.
    Unusable,
    /// The substrate gives no outputs there, or wrong ones.
    SubstrateFails,
    /// An input.
    Input {
        /// With its references.
        input: Box<Input>,
        /// Is no correct evaluation further from the reference than the tolerance?
        valid: bool,
    },
}

fn make(bench: &Bench<'_>, original: &Version, recipe: &Recipe) -> Result<Made, CampaignError> {
    bench.context.check_interrupt()?;
    let mut input =
        match inputs::prepare(bench.context.oracle, bench.problem, recipe, Origin::Protocol, false) {
            Ok(input) => input,
            Err(CampaignError::Input(_)) => return Ok(Made::Unusable),
            Err(e) => return Err(e),
        };
    if bench.gate(original, std::slice::from_mut(&mut input))?.is_some() {
        return Ok(Made::SubstrateFails);
    }
    let valid = input.variance <= PAPER_TOLERANCE;
    Ok(Made::Input { input: Box::new(input), valid })
}

/// A recipe at no more than its ceiling, and how much of it is left: the scale is set so that the kind's magnitude, if it
/// has one, reaches at most what stays valid.
fn below_ceiling(recipe: Recipe, ceilings: &Ceilings) -> Recipe {
    let Some((magnitude, same_sign)) = recipe.kind.magnitude() else { return recipe };
    let ceiling = if same_sign { ceilings.same_sign } else { ceilings.sign_mixed };
    let most = match ceiling {
        Ceiling::Between { valid, .. } => valid,
        Ceiling::Above { .. } | Ceiling::Below { .. } => return recipe,
    };
    let reached = magnitude * recipe.scale.abs();
    if reached <= most {
        return recipe;
    }
    let scale = recipe.scale * (most / reached);
    recipe.with_scale(two_digits(scale))
}

/// A number of two digits a little nearer to zero, so that the text stays short and the ceiling is kept.
fn two_digits(x: f64) -> f64 {
    // Rounding to two digits adds at most 5%.
    format!("{:.1e}", x * 0.95).parse().unwrap_or(x)
}

/// Facts of a problem as JSON, for programs.
fn facts_json(facts: &Facts<'_>) -> serde_json::Value {
    let p = facts.problem;
    let extents = |e: Extents| p.dims_for(&Recipe::official(0), e).unwrap_or_default();
    serde_json::json!({
        "problem": p.key(),
        "name": p.name,
        "operators": p.operators,
        "reference": p.reference_text,
        "dims": { "desk": extents(Extents::Desk), "official": extents(Extents::Official) },
        "legal_shapes": p.ragged,
        "inputs": p.inputs.iter().map(|i| serde_json::json!({
            "name": i.name,
            "kind": i.kind,
            "dtype": i.dtype.name(),
            "shape": i.shape.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "outputs": p.outputs,
        "kernel": p.kernel_source,
        "problem_toml": p.toml_source,
        "tolerance": PAPER_TOLERANCE,
        "budget": facts.budget,
        "ceilings": facts.ceilings,
        "survivors": facts.shown,
        "recipes": "KIND[(args)][*SCALE][+params][@DIM=V,…][#SEED]",
    })
}

/// How long a program may take for one problem.
fn patience(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

/// Legal shapes, the largest first.
fn ragged(problem: &Problem) -> Vec<BTreeMap<String, u64>> {
    let size = |s: &BTreeMap<String, u64>| s.values().fold(1u64, |a, b| a.saturating_mul(*b));
    let mut shapes = problem.ragged.clone();
    shapes.sort_by_key(|s| std::cmp::Reverse(size(s)));
    shapes
}
