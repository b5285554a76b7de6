//! `assay audit --kernelbench` through the command, on problem folders of one's own with PyTorch files of one's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn data(path: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
    dir.canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().unwrap()
}

fn words(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn python() -> Option<String> {
    let python = std::env::var("ASSAY_TORCH_PYTHON").ok().filter(|p| Path::new(p).is_file());
    if python.is_none() {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
    }
    python
}

/// An audit of the own problems on these files, into `out`.
fn audit(python: &str, files: &str, out: &Path, more: &[&str]) -> Output {
    let (problems, files) = (data("e2e/problems"), data(files));
    let cache = out.with_file_name("cache");
    let mut args = vec!["audit", "--problems", &problems, "--kernelbench", &files, "--python", python];
    args.extend(["--out", out.to_str().unwrap(), "--cache", cache.to_str().unwrap(), "--json"]);
    args.extend(more);
    assay(&args)
}

#[test]
fn a_folder_without_files_and_options_without_the_folder_are_bad_input() {
    for args in [
        vec!["audit", "--kernelbench", "/nonexistent"],
        vec!["audit", "--level", "1"],
        vec!["audit", "--ids", "1"],
    ] {
        let o = assay(&args);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", words(&o));
    }
    let file = data("kernelbench/taken/1_19.py");
    let o = assay(&["audit", "--kernelbench", &file, "--python", "/nonexistent"]);
    assert_eq!(o.status.code(), Some(4), "{}", words(&o));
    assert!(words(&o).contains("no file has a substrate"), "{}", words(&o));
}

#[test]
fn own_problems_are_audited_on_own_files_and_every_command_knows_the_run() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run: PathBuf = dir.path().join("run");
    let o = audit(&python, "kernelbench/own", &run, &[]);
    assert_eq!(o.status.code(), Some(0), "{}", words(&o));
    let summary: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(summary["pipeline"]["problems"], 2);
    assert_eq!(summary["pipeline"]["baselines_failed"], 0);
    assert!(summary["pipeline"]["witnessed"].as_u64().unwrap() > 20);
    assert!(summary["environment"]["oracle"].as_str().unwrap().starts_with("PyTorch "));
    let protocols = summary["protocols"].as_array().unwrap();
    assert!(protocols.iter().all(|p| p["detected"].as_u64().unwrap() > 0), "{protocols:?}");
    let official = &protocols[0];
    assert_eq!((&official["name"], &official["false_kills"]), (&"kernelbench-2025".into(), &0.into()));
    let manifest: Value = serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["oracle"]["files"]["9/1"].as_str().unwrap().len(), 64);
    for file in ["summary.json", "mutation-report.json", "report.html", "run.db"] {
        assert!(run.join(file).is_file(), "{file}");
    }

    // A finished run continues to what it was.
    let o = audit(&python, "kernelbench/own", &run, &["--resume"]);
    assert_eq!(o.status.code(), Some(0), "{}", words(&o));
    let again: Value = serde_json::from_slice(&o.stdout).unwrap();
    for part in ["pipeline", "families", "rules", "protocols", "suites", "sanitizer"] {
        assert_eq!(again[part], summary[part], "{part}");
    }

    // The catalogue's own oracle on the same problems: other inputs, the same mutants.
    let own = dir.path().join("own");
    let o = assay(&["audit", "--problems", &data("e2e/problems"), "--out", own.to_str().unwrap(), "--json"]);
    let ours: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(ours["pipeline"]["distinct"], summary["pipeline"]["distinct"]);
    assert!(ours["environment"]["oracle"].is_null());
    let (run, own) = (run.to_str().unwrap(), own.to_str().unwrap());
    let release = dir.path().join("release");
    for args in [
        vec!["report", run, "--json"],
        vec!["compare", own, run, "--json"],
        vec!["export", run, release.to_str().unwrap(), "--json"],
    ] {
        let o = assay(&args);
        assert!(matches!(o.status.code(), Some(0 | 1)), "{args:?}: {}", words(&o));
        serde_json::from_slice::<Value>(&o.stdout).unwrap();
    }
    let suite = dir.path().join("suite");
    for args in [
        vec!["ladder", run, "--problems", &data("e2e/problems")],
        vec!["suite", run, "--budget", "2", "--out", suite.to_str().unwrap()],
    ] {
        let o = assay(&args);
        assert_eq!(o.status.code(), Some(4), "{args:?}: {}", words(&o));
        assert!(words(&o).contains("PyTorch"), "{args:?}: {}", words(&o));
    }
    // Another oracle is another run.
    let o = assay(&["audit", "--problems", &data("e2e/problems"), "--out", run, "--resume"]);
    assert_eq!(o.status.code(), Some(2), "{}", words(&o));
    assert!(words(&o).contains("`oracle`"), "{}", words(&o));
}

#[test]
fn a_file_that_ends_its_process_costs_its_own_problem_alone() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let o = audit(&python, "kernelbench/own_dies", &dir.path().join("run"), &[]);
    assert_eq!(o.status.code(), Some(3), "{}", words(&o));
    assert!(words(&o).contains("status 9") && words(&o).contains("9/2"), "{}", words(&o));
    let summary: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(summary["pipeline"]["baselines_failed"], 1);
    let scored: Vec<&Value> = summary["problems"].as_array().unwrap().iter().collect();
    let status = |key: &str| scored.iter().find(|p| p["problem"] == key).map(|p| p["status"].clone());
    assert_eq!(status("9/2"), Some("baseline_failed".into()));
    assert!(summary["pipeline"]["witnessed"].as_u64().unwrap() > 10);
}
