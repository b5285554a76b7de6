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
    assert_eq!(o.status.code(), Some(2), "{}", words(&o));
    assert!(words(&o).contains("/nonexistent"), "{}", words(&o));
}

#[test]
fn a_task_of_gradients_is_unsupported_whatever_python_there_is() {
    let file = data("kernelbench/generated/classes/func_backward.py");
    let o = assay(&["audit", "--kernelbench", &file, "--python", "/nonexistent"]);
    assert_eq!(o.status.code(), Some(4), "{}", words(&o));
    assert!(words(&o).contains("gradients"), "{}", words(&o));
}

/// An audit of one file that the catalogue has no problem for, into `out`.
fn generated(python: &str, file: &str, out: &Path, more: &[&str]) -> Output {
    let (file, cache) = (data(&format!("kernelbench/generated/{file}")), out.with_file_name("cache"));
    let mut args = vec!["audit", "--kernelbench", &file, "--python", python];
    args.extend(["--out", out.to_str().unwrap(), "--cache", cache.to_str().unwrap(), "--json"]);
    args.extend(more);
    assay(&args)
}

#[test]
fn a_module_that_no_catalogue_has_is_lowered_and_audited_and_every_command_knows_the_run() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let o = generated(&python, "gated.py", &run, &["--work", "0.02"]);
    assert_eq!(o.status.code(), Some(0), "{}", words(&o));
    assert!(words(&o).contains("gated (0/1): the substrate is generated"), "{}", words(&o));
    let summary: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(summary["pipeline"]["problems"], 1);
    assert_eq!(summary["pipeline"]["baselines_failed"], 0);
    assert!(summary["pipeline"]["witnessed"].as_u64().unwrap() > 20, "{}", summary["pipeline"]);
    let official = &summary["protocols"][0];
    assert!(official["detected"].as_u64().unwrap() > 0 && official["false_kills"] == 0, "{official}");
    let caveats = summary["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|c| c.as_str().unwrap().contains("generated from the benchmark's modules")));
    let manifest: Value = serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let made = &manifest["oracle"]["generated"]["0/1"];
    assert_eq!(made["file"], "generated/gated.py");
    // Both names of the extent that was cut.
    assert!(made["extents"]["batch"].as_u64().unwrap() < 4096, "{made}");
    assert_eq!(made["extents"]["batch"], made["extents"]["rows"]);
    let folder = run.join("generated/level0/gated");
    let toml = std::fs::read_to_string(folder.join("problem.toml")).unwrap();
    assert!(toml.contains("dtype = \"bool\"") && folder.join("kernel.cu").is_file(), "{toml}");

    // It is made again for a run that is continued, and is what it was.
    let o = generated(&python, "gated.py", &run, &["--work", "0.02", "--resume"]);
    assert_eq!(o.status.code(), Some(0), "{}", words(&o));
    let again: Value = serde_json::from_slice(&o.stdout).unwrap();
    for part in ["pipeline", "families", "rules", "protocols", "caveats"] {
        assert_eq!(again[part], summary[part], "{part}");
    }
    // Other extents are another problem.
    let o = generated(&python, "gated.py", &run, &["--resume", "--work", "0.05"]);
    assert_eq!(o.status.code(), Some(2), "{}", words(&o));
    assert!(words(&o).contains("`problems`"), "{}", words(&o));
    let (run, release) = (run.to_str().unwrap(), dir.path().join("release"));
    for args in [
        vec!["report", run, "--json"],
        vec!["compare", run, run, "--json"],
        vec!["export", run, release.to_str().unwrap(), "--json"],
    ] {
        let o = assay(&args);
        assert_eq!(o.status.code(), Some(0), "{args:?}: {}", words(&o));
        serde_json::from_slice::<Value>(&o.stdout).unwrap();
    }
}

#[test]
fn files_that_are_not_the_catalogues_problem_and_tasks_of_another_benchmark_are_lowered() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (file, key, said, cut, whole) in [
        (
            "level1/19_not_relu.py",
            "0/1019",
            "computes something else than the catalogue's reference",
            "get_inputs:0",
            6400,
        ),
        ("task", "0/1", "the substrate is generated", "input.batch_size", 1000),
        ("pair.py", "0/1", "the substrate is generated", "rows", 2048),
        // Class indices, which that benchmark's check leaves as they are.
        ("classes", "0/1", "the substrate is generated", "input.batch_size", 2048),
    ] {
        let run = dir.path().join(format!("{}_{}", key.replace('/', "_"), file.replace('/', "_")));
        let o = generated(&python, file, &run, &["--work", "0.02"]);
        assert_eq!(o.status.code(), Some(0), "{file}: {}", words(&o));
        assert!(words(&o).contains(said) && words(&o).contains(key), "{file}: {}", words(&o));
        let summary: Value = serde_json::from_slice(&o.stdout).unwrap();
        assert_eq!(summary["problems"][0]["problem"], key, "{file}");
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
        let made = &manifest["oracle"]["generated"][key];
        assert!(made["extents"][cut].as_u64().unwrap() < whole, "{file}: {made}");
        assert!(summary["pipeline"]["witnessed"].as_u64().unwrap() > 10, "{file}: {}", summary["pipeline"]);
    }
}

#[test]
fn an_operator_that_nothing_lowers_is_named() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let o = generated(&python, "spectrum.py", &run, &[]);
    assert_eq!(o.status.code(), Some(4), "{}", words(&o));
    assert!(words(&o).contains("no file has a substrate") && words(&o).contains("fft_rfft"), "{}", words(&o));
    assert!(!run.join("run.db").exists());
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
