//! Files of a benchmark as the oracle, against a real PyTorch, where `ASSAY_TORCH_PYTHON` names an interpreter that has it.
//! The cases are files in `testdata/kernelbench`: `taken/LEVEL_ID.py` computes what the catalogue's problem computes,
//! `hostile/*.py` stands in for 1/19 and says in its first line what becomes of it. `ASSAY_KERNELBENCH` names a checkout of the
//! benchmark; then each of its files is taken for its problem as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use assay_ops::Variant;
use assay_problems::{Evaluated, Extents, Oracle, OracleError, Problem, Recipe, Root, discover};
use assay_tensor::Tensor;
use assay_torch::Settings;
use assay_torch::kernelbench::{FileOracle, find_files};

static NEVER: AtomicBool = AtomicBool::new(false);

fn settings(seconds: u64) -> Option<Settings> {
    let python = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file());
    if python.is_none() {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
    }
    Some(Settings { python: python?, threads: 1, seconds, memory: Some(16 << 30) })
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kernelbench").join(folder);
    let mut all: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "py"));
    all.sort();
    assert!(!all.is_empty());
    all
}

fn problem(level: &str, id: &str) -> Problem {
    let mut found = discover(&[format!("level{level}/{id}_*")], &Root::locate()).unwrap();
    assert_eq!(found.len(), 1, "{level}/{id}");
    found.remove(0)
}

fn oracle(settings: &Settings, problem: &Problem, path: &Path, cache: Option<&Path>) -> FileOracle<'static> {
    let files = BTreeMap::from([(problem.key(), path.to_owned().into())]);
    FileOracle::new(settings, &files, cache.map(Path::to_owned), &NEVER).unwrap()
}

fn ours(problem: &Problem, recipe: &Recipe, on: &Evaluated, variant: &Variant) -> BTreeMap<String, Tensor> {
    let dims = problem.dims_for(recipe, Extents::Desk).unwrap();
    problem
        .reference
        .evaluate(&on.tensors, &problem.reference_scalars(&dims), &problem.outputs, variant)
        .unwrap()
}

fn distance(a: &BTreeMap<String, Tensor>, b: &BTreeMap<String, Tensor>) -> f64 {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    a.iter().fold(0.0, |worst, (name, x)| {
        let y = &b[name];
        assert_eq!(x.shape, y.shape, "{name}");
        (0..x.len()).fold(worst, |worst: f64, i| {
            let (x, y) = (x.get_f64(i), y.get_f64(i));
            worst.max((x - y).abs() / (1.0 + y.abs()))
        })
    })
}

#[test]
fn a_file_is_the_oracle_of_its_problem_at_every_extent_that_the_catalogue_has() {
    let Some(settings) = settings(60) else { return };
    for path in cases("taken") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (level, id) = name.split_once('_').unwrap();
        let problem = problem(level, id);
        let cache = tempfile::tempdir().unwrap();
        let file = oracle(&settings, &problem, &path, Some(cache.path()));
        let make = |text: &str| file.evaluate(&problem, &Recipe::parse(text).unwrap()).unwrap();
        let ragged = problem.ragged.last().unwrap();
        let dims: Vec<String> = ragged.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let ragged = format!("normal(1)+params@{}#7", dims.join(","));
        for text in
            ["official#0", "official#3", "official*-1#0", "loguniform(-3,3)#1", "normal(1)+params#7", &ragged]
        {
            let recipe = Recipe::parse(text).unwrap();
            let made = make(text);
            let far = distance(&ours(&problem, &recipe, &made, &Variant::truth()), &made.truth);
            assert!(far < 1e-9, "{name} on {text}: float64 differs by {far:.1e}");
            let far = distance(&ours(&problem, &recipe, &made, &Variant::official()), &made.official);
            assert!(far < 1e-4, "{name} on {text}: float32 differs by {far:.1e}");
            let dims = problem.dims_for(&recipe, Extents::Desk).unwrap();
            for i in &problem.inputs {
                let t = &made.tensors[&i.name];
                assert_eq!(
                    (&t.shape, t.dtype),
                    (&problem.shape_of(i, &dims).unwrap(), i.dtype),
                    "{name}: {}",
                    i.name
                );
            }
        }
        // The file's draws are no other generator's, and scaled as KernelBench-Verified scales them.
        let (first, other, negative) = (make("official#0"), make("official#1"), make("official*-1#0"));
        let x = &problem.inputs[0].name;
        assert_ne!(first.tensors[x], other.tensors[x]);
        let catalogue = problem.make_inputs(&Recipe::official(0), Extents::Desk).unwrap();
        assert_ne!(first.tensors[x], catalogue[x]);
        assert!(
            (0..first.tensors[x].len())
                .all(|i| first.tensors[x].get_f64(i) == -negative.tensors[x].get_f64(i))
        );
        // What is kept is what was computed.
        let again = oracle(&settings, &problem, &path, Some(cache.path()));
        assert_eq!(again.evaluate(&problem, &Recipe::official(0)).unwrap(), first);
        assert!(fs::read_dir(cache.path()).unwrap().count() >= 8);
    }
}

#[test]
fn a_hostile_file_is_told_from_a_verdict() {
    let Some(patient) = settings(120) else { return };
    let problem = problem("1", "19");
    for path in cases("hostile") {
        let text = fs::read_to_string(&path).unwrap();
        let expected = text.lines().next().unwrap().strip_prefix("# gives: ").unwrap();
        // The first use of PyTorch's `meta` device takes a while.
        let seconds = if expected.contains("did not answer") { 15 } else { 120 };
        let file = oracle(&Settings { seconds, ..patient.clone() }, &problem, &path, None);
        let said = file.evaluate(&problem, &Recipe::official(0));
        let (kind, words) = match &said {
            Ok(made) => {
                let ours = ours(&problem, &Recipe::official(0), made, &Variant::truth());
                assert_eq!(ours, made.truth, "{}", path.display());
                ("evaluated", String::new())
            }
            Err(e) => (
                match e {
                    OracleError::Refused(_) => "refused",
                    OracleError::Unsupported(_) => "unsupported",
                    OracleError::Exhausted(_) => "exhausted",
                    OracleError::Died(_) => "died",
                    _ => "another",
                },
                e.to_string(),
            ),
        };
        let (want, what) = expected.split_once(": ").unwrap_or((expected, ""));
        assert!(kind == want && words.contains(what), "{}: {kind}: {words}", path.display());
        // It stays so: no second try that might end otherwise.
        assert_eq!(file.evaluate(&problem, &Recipe::official(0)).err(), said.err(), "{}", path.display());
    }
}

#[test]
fn files_of_the_benchmark_are_taken_for_the_problems_of_the_catalogue() {
    let Some(dir) = std::env::var_os("ASSAY_KERNELBENCH").map(PathBuf::from).filter(|d| d.is_dir()) else {
        eprintln!("skipped: no checkout (ASSAY_KERNELBENCH names no folder)");
        return;
    };
    let Some(settings) = settings(300) else { return };
    let step = std::env::var("ASSAY_VERIFY_STEP").ok().and_then(|v| v.parse().ok()).unwrap_or(10);
    let files = find_files(&dir, &[1, 2], &[]).unwrap();
    let (mut count, mut taken) = (0, 0);
    for file in files.iter().step_by(step) {
        let found = discover(&[format!("level{}/{}_*", file.level, file.id)], &Root::locate()).unwrap();
        let Some(problem) = found.first() else { continue };
        count += 1;
        let oracle = oracle(&settings, problem, &file.path, None);
        let started = Instant::now();
        let made = oracle.evaluate(problem, &Recipe::official(0)).map(|made| {
            let far = |variant: Variant, theirs| {
                distance(&ours(problem, &Recipe::official(0), &made, &variant), theirs)
            };
            (far(Variant::truth(), &made.truth), far(Variant::official(), &made.official))
        });
        let seconds = started.elapsed().as_secs_f64();
        match made {
            Ok((f64s, f32s)) => {
                taken += 1;
                println!(
                    "{} {}: float64 {f64s:.1e}, float32 {f32s:.1e}, {seconds:.1} s",
                    file.key(),
                    file.name
                );
                assert!(f64s < 1e-6, "{}", file.key());
            }
            Err(e) => println!("{} {}: {e}, {seconds:.1} s", file.key(), file.name),
        }
    }
    assert!(taken * 100 >= count * 95, "{taken} of {count} files are taken");
}
