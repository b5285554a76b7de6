//! Suites with their tensors: for people without Assay, and for a check that the recipes still make the same inputs.
//!
//! The recipes are the source of truth. `suite.toml` is a protocol file with the SHA-256 of every input; `tensors/` holds
//! each input with what the float32 and float64 references make of it, as safetensors; `index.json` says which file is
//! which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_campaign::inputs::{self, Input, Tensors};
use assay_campaign::{Progress, RunReader};
use assay_measure::{Origin, Scope, Suite, Tolerance, suites};
use assay_problems::{Problem, Recipe};
use assay_report::SuiteSet;
use assay_tensor::safetensors_io;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::folder::Staging;
use crate::{ReleaseError, md};

/// What `index.json` calls a suite.
pub const SUITE_KIND: &str = "assay-suite";
/// The file that says what a suite with tensors is.
pub const SUITE_INDEX: &str = "index.json";
/// Problems whose tensors are in memory together.
const AT_ONCE: usize = 2;

/// What is to be written.
pub struct SuiteExport<'a> {
    /// The run folder.
    pub run: &'a Path,
    /// The problems' definitions: at least those that the run has and `only` leaves.
    pub problems: &'a [Problem],
    /// Write the suites of these problems alone, rather than of every one of the run?
    pub only: bool,
    /// Inputs a problem, at most.
    pub budget: u32,
    /// The folder to write.
    pub target: &'a Path,
    /// Name and version of the program.
    pub tool: &'a str,
}

/// A suite that was written.
#[derive(Clone, Debug, Default)]
pub struct SuiteExported {
    /// Where.
    pub folder: PathBuf,
    /// Problems with at least one input.
    pub problems: u64,
    /// Inputs.
    pub inputs: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Problems whose `problem.toml` is not the one of the run: their inputs may be others than those judged in it.
    pub changed: Vec<String>,
}

/// One problem's suite with what is needed to make its inputs.
struct Chosen<'a> {
    problem: &'a Problem,
    name: String,
    suite: Suite,
    recipes: Vec<Recipe>,
    /// Largest threshold of correct implementations, by recipe.
    validity: Vec<f64>,
}

/// Writes the suites of a run.
///
/// # Errors
/// `Run` where the run cannot be read, has a problem that is not among those given, or a recipe makes no input of its
/// problem; `Folder` and `CannotWrite` as for a release.
pub fn export_suite(what: &SuiteExport<'_>, progress: &dyn Progress) -> Result<SuiteExported, ReleaseError> {
    let run = RunReader::open(what.run)?;
    let mut chosen = Vec::new();
    let mut done = SuiteExported::default();
    for key in run.problems()? {
        let problem = what.problems.iter().find(|p| p.key() == key);
        if problem.is_none() && what.only {
            continue;
        }
        let Some(matrix) = run.matrix(&key)? else { continue };
        let Some(suite) =
            suites(std::slice::from_ref(&matrix), &Scope::Paper, Tolerance::PAPER, Some(what.budget)).pop()
        else {
            continue;
        };
        let Some(problem) = problem else {
            return Err(run
                .bad(format!(
                    "the run has problem `{key}`, which is not built in; name its folder with --problems"
                ))
                .into());
        };
        let stated = run.manifest["problems"][&key]["problem_toml"].as_str().unwrap_or_default();
        if !stated.is_empty() && stated != problem.digests().0 {
            done.changed.push(key.clone());
        }
        let validity =
            |r: &String| matrix.input(r).map_or(f64::INFINITY, |i| matrix.inputs[i].validity.threshold);
        let validity = suite.recipes.iter().map(validity).collect();
        let recipes = suite
            .recipes
            .iter()
            .map(|text| {
                let recipe =
                    Recipe::parse(text).map_err(|e| run.bad(format!("recipe `{text}` of `{key}`: {e}")))?;
                inputs::affordable(problem, &recipe)?;
                Ok(recipe)
            })
            .collect::<Result<_, ReleaseError>>()?;
        chosen.push(Chosen { problem, name: matrix.name.clone(), suite, recipes, validity });
    }
    let mut stage = Staging::begin(what.target, SUITE_INDEX, SUITE_KIND)?;
    let mut digests: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut index = Vec::new();
    progress.stage("suite", chosen.len() as u64);
    for few in chosen.chunks(AT_ONCE) {
        let made: Vec<Vec<Input>> = few
            .par_iter()
            .map(|c| {
                let make = |r: &Recipe| inputs::make(c.problem, r, Origin::Official, false);
                c.recipes.par_iter().map(make).collect::<Result<_, _>>()
            })
            .collect::<Result<_, _>>()?;
        for (c, inputs) in few.iter().zip(made) {
            let entry = write_problem(&mut stage, c, &inputs)?;
            let of = inputs.iter().map(|i| (i.text.clone(), safetensors_io::digest(&i.tensors)));
            if !inputs.is_empty() {
                digests.insert(c.suite.problem.clone(), of.collect());
                done.problems += 1;
                done.inputs += inputs.len() as u64;
            }
            index.push(entry);
            progress.step(1);
        }
    }
    let named = chosen.iter().map(|c| (c.suite.clone(), c.name.clone())).collect();
    let mut protocol = SuiteSet::of(what.budget, named).protocol();
    protocol.digests = digests;
    stage.write("suite.toml", &protocol.to_toml())?;
    let index = json!({
        "kind": SUITE_KIND,
        "format": crate::FORMAT,
        "tool": what.tool,
        "licence": crate::LICENCE,
        "budget": what.budget,
        "atol": protocol.atol,
        "rtol": protocol.rtol,
        "digest": "SHA-256 over the inputs of a recipe by name: name, 0, dtype, 0, number of dims and dims (u64), bytes; numbers little-endian",
        "problems": index,
    });
    let mut text = serde_json::to_string_pretty(&index).map_err(|e| ReleaseError::Internal(e.to_string()))?;
    text.push('\n');
    stage.write(SUITE_INDEX, &text)?;
    stage.write("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE"))?;
    stage.write("LICENSE-MIT", include_str!("../../../LICENSE-MIT"))?;
    stage.write("README.md", &readme(what, &done))?;
    done.bytes = stage.size().1;
    done.folder = stage.finish()?;
    Ok(done)
}

/// Writes the files of one problem; gives its entry of the index.
fn write_problem(stage: &mut Staging, c: &Chosen<'_>, inputs: &[Input]) -> Result<Value, ReleaseError> {
    let mut entries = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        let name = format!("tensors/{}/{}.safetensors", c.suite.problem.replace('/', "-"), k + 1);
        let mut all: Tensors = BTreeMap::new();
        for (part, tensors) in
            [("input", &input.tensors), ("expected32", &input.official), ("expected64", &input.truth)]
        {
            // What a reference computes on the way is none of its outputs.
            let wanted = tensors.iter().filter(|(n, _)| part == "input" || c.problem.outputs.contains(n));
            all.extend(wanted.map(|(n, t)| (format!("{part}.{n}"), t.clone())));
        }
        let file = stage.path(&name);
        let bytes =
            safetensors_io::to_bytes(&file, &all).map_err(|e| ReleaseError::Internal(e.to_string()))?;
        stage.write_bytes(&name, &bytes)?;
        let tensors: Map<String, Value> = all
            .iter()
            .map(|(n, t)| (n.clone(), json!({ "dtype": t.dtype.to_string(), "shape": t.shape })))
            .collect();
        let validity = c.validity.get(k).copied().filter(|v| v.is_finite());
        entries.push(json!({
            "recipe": input.text,
            "file": name,
            "sha256_inputs": safetensors_io::digest(&input.tensors),
            "sha256_expected32": safetensors_io::digest(&input.official),
            "sha256_expected64": safetensors_io::digest(&input.truth),
            "validity_threshold": validity,
            "killed_by_then": c.suite.killed.get(k),
            "dims": input.dims,
            "tensors": tensors,
        }));
    }
    let scalars: Map<String, Value> = c.problem.scalars.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    Ok(json!({
        "problem": c.suite.problem,
        "name": c.name,
        "outputs": c.problem.outputs,
        "scalars": scalars,
        "witnessed": c.suite.witnessed,
        "inputs": entries,
    }))
}

fn readme(what: &SuiteExport<'_>, done: &SuiteExported) -> String {
    let mut out = format!(
        "# Test suites for GPU kernels\n\n{} inputs of {} problems, at most {} a problem, selected by set cover on the \
         witnessed faults of a run of `assay audit`. Written by {} (`assay suite RUN --budget {} --out DIR`). Licence: {}, \
         at your option.\n\n",
        done.inputs,
        done.problems,
        what.budget,
        md::text(what.tool),
        what.budget,
        crate::LICENCE
    );
    out.push_str(
        "| path | |\n|---|---|\n\
         | `suite.toml` | the recipes, with the SHA-256 of each input: `assay check FILE.cu --problem P --suite suite.toml`, `assay audit --protocol suite.toml` |\n\
         | `index.json` | problem by problem: recipe, file, dims, scalars, tensors with dtype and shape, digests |\n\
         | `tensors/LEVEL-ID/N.safetensors` | `input.NAME` (inputs and parameters), `expected32.NAME` and `expected64.NAME` (outputs of the float32 and the float64 reference) |\n\
         | `SHA256SUMS` | `sha256sum -c SHA256SUMS` checks the files |\n\n\
         An output passes where |out - expected32| <= atol + rtol * |expected32| everywhere, with the tolerances of \
         `index.json`; the input says nothing at a tolerance below its `validity_threshold`, where correct kernels differ as \
         much. A recipe replays its input to the bit; where tensors and recipe differ, the recipe is right.\n\n",
    );
    out.push_str(&md::block(
        "python",
        "from safetensors.numpy import load_file\n\
         t = load_file(\"tensors/1-23/1.safetensors\")\n\
         y = your_kernel(**{k[6:]: v for k, v in t.items() if k.startswith(\"input.\")})\n\
         want = t[\"expected32.y\"]\n\
         assert (abs(y - want) <= 1e-2 + 1e-2 * abs(want)).all()",
    ));
    out
}
