//! `assay verify-ops` through the command: exit codes, the JSON document, and a worker that fails.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().unwrap()
}

fn words(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

#[test]
fn an_operator_that_does_not_exist_and_an_interpreter_that_does_not_are_bad_input() {
    let o = assay(&["verify-ops", "--operator", "rellu"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(words(&o).contains("`rellu` is no operator"), "{}", words(&o));
    let o = assay(&["verify-ops", "--operator", "relu", "--python", "/nonexistent/python"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(words(&o).contains("/nonexistent/python"), "{}", words(&o));
}

#[test]
fn a_worker_that_dies_hangs_or_prints_is_an_error_with_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let python = dir.path().join("python");
    let greeting = r#"read a; echo '{"type": "ready", "environment": {"torch": "0"}}'; read b"#;
    for (body, code, said) in [
        ("echo 'no memory left' >&2; kill -9 $$", 70, "no memory left"),
        ("echo hello", 70, "`hello`"),
        ("exec sleep 60", 5, "did not answer within 1 s"),
    ] {
        fs::write(&python, format!("#!/bin/sh\n{greeting}; {body}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let python = python.to_str().unwrap();
        let o = assay(&["verify-ops", "--operator", "relu", "--timeout", "1", "--python", python, "--json"]);
        assert_eq!(o.status.code(), Some(code), "{body}: {}", words(&o));
        assert!(words(&o).contains(said), "{body}: {}", words(&o));
        assert!(words(&o).contains("relu(x)"), "{body}: {}", words(&o));
        assert!(o.stdout.is_empty());
    }
}

#[test]
fn with_a_pytorch_the_document_says_what_was_compared() {
    let python = std::env::var("ASSAY_TORCH_PYTHON").ok().filter(|p| Path::new(p).is_file());
    let Some(python) = python else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return;
    };
    let o = assay(&[
        "verify-ops",
        "--python",
        &python,
        "--operator",
        "relu",
        "--operator",
        "matmul",
        "--cases",
        "4",
        "--json",
    ]);
    assert_eq!(o.status.code(), Some(0), "{}", words(&o));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((v["cases"].as_u64(), v["unexplained"].as_u64()), (Some(4), Some(0)));
    let names: Vec<&str> =
        v["operators"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["relu", "matmul"]);
    assert!(v["operators"][0]["elements"].as_u64() > Some(0));
    assert!(v["environment"]["torch"].as_str().unwrap().starts_with(|c: char| c.is_ascii_digit()));
}
