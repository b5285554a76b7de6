//! Suites with their tensors: what is written, replayed and asked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assay_measure::Protocol;
use assay_problems::{Extents, Problem, Recipe};
use assay_tensor::Tensor;
use assay_tensor::safetensors_io::{digest, read};
use serde_json::Value;

use crate::pages::finished;
use crate::support::{Answer, Running, assay, command, files, fixture, read_json, repository};

/// The suites of the small run with their tensors, written once, and what the command said.
fn written() -> &'static (tempfile::TempDir, PathBuf, Value) {
    static WRITTEN: OnceLock<(tempfile::TempDir, PathBuf, Value)> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("suite");
        let said = suite(&finished().1, &folder, &["--budget", "3"]).exits(0).json();
        (dir, folder, said)
    })
}

fn suite(run: &Path, out: &Path, more: &[&str]) -> Answer {
    let mut c = command(&["suite", "--json", "--problems", &fixture("problems")]);
    Running::start(c.args(more).arg("--out").arg(out).arg(run)).finish()
}

fn problems() -> BTreeMap<String, (PathBuf, Problem)> {
    let folders = fs::read_dir(fixture("problems")).unwrap().map(|e| e.unwrap().path());
    folders
        .filter(|p| p.join("problem.toml").is_file())
        .map(|p| {
            let problem = assay_problems::load(&p).unwrap();
            (problem.key(), (p, problem))
        })
        .collect()
}

/// Tensors of a file whose names begin with a part and a point.
fn part(all: &BTreeMap<String, Tensor>, part: &str) -> BTreeMap<String, Tensor> {
    let of = |(name, t): (&String, &Tensor)| {
        Some((name.strip_prefix(part)?.strip_prefix('.')?.to_owned(), t.clone()))
    };
    all.iter().filter_map(of).collect()
}

#[test]
fn every_recipe_replays_to_the_tensors_of_its_file_and_to_the_digest_of_the_suite() {
    let (_, folder, said) = written();
    let text = fs::read_to_string(folder.join("suite.toml")).unwrap();
    let protocol = Protocol::parse(&text, "suite.toml").unwrap();
    assert_eq!(protocol.to_toml(), text);
    let printed =
        assay(&["suite", finished().1.to_str().unwrap(), "--budget", "3", "--json"]).exits(0).json();
    for p in printed["problems"].as_array().unwrap() {
        let recipes: Vec<&str> =
            p["recipes"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
        assert_eq!(protocol.problems[p["problem"].as_str().unwrap()], recipes, "what `assay suite` prints");
    }
    let problems = problems();
    let index = read_json(&folder.join("index.json"));
    let mut inputs = 0;
    for entry in index["problems"].as_array().unwrap() {
        let key = entry["problem"].as_str().unwrap();
        let (_, problem) = &problems[key];
        for input in entry["inputs"].as_array().unwrap() {
            inputs += 1;
            let recipe = input["recipe"].as_str().unwrap();
            let file = read(&folder.join(input["file"].as_str().unwrap())).unwrap();
            let made = problem.make_inputs(&Recipe::parse(recipe).unwrap(), Extents::Desk).unwrap();
            assert_eq!(part(&file, "input"), made, "{key} {recipe}");
            assert_eq!(protocol.digests[key][recipe], digest(&made), "{key} {recipe}");
            assert_eq!(input["sha256_inputs"], digest(&made));
            let (official, truth) = (part(&file, "expected32"), part(&file, "expected64"));
            assert_eq!(input["sha256_expected32"], digest(&official));
            assert_eq!(input["sha256_expected64"], digest(&truth));
            assert_eq!(official.keys().cloned().collect::<Vec<_>>(), problem.outputs);
            for (name, want) in &truth {
                let ours = &official[name];
                assert_eq!(ours.shape, want.shape);
                let far = (0..want.len())
                    .map(|k| (ours.get_f64(k) - want.get_f64(k)).abs() / (1.0 + want.get_f64(k).abs()));
                assert!(
                    far.fold(0.0, f64::max) <= input["validity_threshold"].as_f64().unwrap() * (1.0 + 1e-9),
                    "{key} {recipe}"
                );
            }
            assert_eq!(input["tensors"].as_object().unwrap().len(), file.len());
        }
    }
    assert_eq!((inputs, said["inputs"].as_u64()), (inputs, Some(inputs)));
    assert!(inputs > 2, "{index}");
    // The last input of each suite kills what the whole suite does.
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(readme.contains("Apache-2.0 OR MIT") && readme.contains("expected64.NAME"), "{readme}");
}

#[test]
fn a_written_suite_is_asked_by_check_and_one_that_was_changed_is_refused() {
    let (_, folder, _) = written();
    let problems = problems();
    let (home, problem) = problems.values().find(|(p, _)| p.ends_with("add_clamp")).unwrap();
    let key = problem.key();
    let kernel = home.join("kernel.cu");
    let check = |suite: &Path| {
        assay(&[
            "check",
            kernel.to_str().unwrap(),
            "--problem",
            home.to_str().unwrap(),
            "--json",
            "--suite",
            suite.to_str().unwrap(),
        ])
    };
    let file = folder.join("suite.toml");
    let seen = check(&file).exits(0).json();
    assert_eq!(
        (seen["verdict"].as_str(), seen["suite"]["name"].as_str()),
        (Some("correct"), Some("suite-3"))
    );

    let text = fs::read_to_string(&file).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("suite.toml");
    let first = &Protocol::parse(&text, "s").unwrap().problems[&key][0];
    let sum = Protocol::parse(&text, "s").unwrap().digests[&key][first].clone();
    let other = if sum.starts_with('0') { sum.replacen('0', "1", 1) } else { format!("0{}", &sum[1..]) };
    let table =
        format!("name = \"mine\"\nsuite_budget = 1\natol = 1e-2\nrtol = 1e-2\n\n[problems]\n\"{key}\" = ");
    let dim = problem.dims[0].name.as_str();
    let cases: Vec<(String, &[&str])> = vec![
        (text.replace(&sum, &other), &["SHA-256", "export it again"]),
        (text.replace(&sum, &sum[1..]), &["64", "suite.toml:"]),
        (text.replace(&sum, &sum.to_uppercase()), &["64", "suite.toml:"]),
        (text.replace(&format!("\"{key}\" = {{"), "\"8/8\" = {"), &["8/8"]),
        (format!("{table}[\"nonsense(1)#1\"]"), &["nonsense"]),
        (format!("{table}[\"normal(1)@{dim}=18446744073709551615#1\"]"), &["suite `mine`"]),
        (format!("{table}[\"normal(1)@{dim}=40000000#1\"]"), &["elements, at most", "suite `mine`"]),
        (format!("{table}[\"normal(1)@NOSUCH=4#1\"]"), &["NOSUCH"]),
        (format!("{table}7"), &["suite.toml:"]),
        ("\0".repeat(100), &["suite.toml:"]),
    ];
    for (hostile, words) in cases {
        fs::write(&changed, &hostile).unwrap();
        check(&changed).exits(2).says(words);
    }
    // A file larger than any suite.
    fs::write(&changed, vec![b'#'; 5 << 20]).unwrap();
    check(&changed).exits(2).says(&["at most"]);
}

#[test]
fn a_suite_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let run = &finished().1;
    let out = dir.path().join("suite");
    suite(run, &out, &["--budget", "3"]).exits(0);
    suite(run, &out, &["--budget", "3"]).exits(0);
    let same = |f: &str| fs::read(out.join(f)).unwrap() == fs::read(written().1.join(f)).unwrap();
    assert!(same("SHA256SUMS") && same("index.json"), "the same run gives the same bytes");
    fs::write(out.join("mine"), "").unwrap();
    suite(run, &out, &[]).exits(2).says(&["`mine`"]);
    suite(run, run, &[]).exits(2).says(&["not empty"]);
    suite(run, Path::new("/proc/suite"), &[]).exits(74);
    // The fixture's problems are not in the catalogue.
    let other = dir.path().join("other");
    let words = ["suite", run.to_str().unwrap(), "--out", other.to_str().unwrap()];
    assay(&words).exits(2).says(&["9/1", "--problems"]);
    assert_eq!(files(dir.path()), ["suite"], "nothing else is left");
}

#[test]
fn the_shipped_suite_is_of_the_catalogue_as_it_is() {
    let text = fs::read_to_string(repository("suites/strongest.toml")).unwrap();
    let shipped = Protocol::parse(&text, "strongest.toml").unwrap();
    assert_eq!(shipped.to_toml(), text, "as it is written");
    let all = assay_problems::discover::<&str>(&[], &assay_problems::Root::locate()).unwrap();
    let refereeable: BTreeSet<String> = all.iter().filter(|p| p.can_referee()).map(|p| p.key()).collect();
    assert_eq!(shipped.problems.keys().cloned().collect::<BTreeSet<_>>(), refereeable);
    for (key, recipes) in &shipped.problems {
        assert!(recipes.iter().all(|r| shipped.digests[key].contains_key(r)), "{key}");
    }
    // Every fourth problem here; `cargo xtask strongest RUN` makes every input.
    for problem in all.iter().filter(|p| p.can_referee()).step_by(4) {
        let key = problem.key();
        for text in &shipped.problems[&key] {
            let made = problem.make_inputs(&Recipe::parse(text).unwrap(), Extents::Desk).unwrap();
            assert_eq!(digest(&made), shipped.digests[&key][text], "{key} {text}");
        }
    }
}

#[test]
fn a_check_asks_the_shipped_suite_of_the_catalogue_and_the_targeted_inputs_of_others() {
    let kernel = repository("problems/level1/19_relu/kernel.cu");
    let seen = assay(&["check", kernel.to_str().unwrap(), "--problem", "1/19", "--json"]).exits(0).json();
    assert_eq!(seen["suite"]["name"], "strongest");
    let few = ["check", kernel.to_str().unwrap(), "--problem", "1/19", "--json", "--suite", "targeted-all"];
    let few = assay(&few).exits(0).json();
    assert_eq!(few["suite"]["name"], "targeted-all");
    assert!(seen["suite"]["inputs"].as_u64() >= few["suite"]["inputs"].as_u64(), "{seen}");
    let own = PathBuf::from(fixture("problems/add_clamp"));
    let kernel = own.join("kernel.cu");
    let seen = assay(&["check", kernel.to_str().unwrap(), "--problem", own.to_str().unwrap(), "--json"])
        .exits(0)
        .json();
    assert_eq!(seen["suite"]["name"], "targeted-all", "no shipped suite is of this problem");
}
