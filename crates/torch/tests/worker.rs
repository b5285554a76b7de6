//! Workers that misbehave: each is a clear error with the worker's own words, never a verdict. They are shell scripts in
//! the place of an interpreter; what they are given as arguments does not matter to them.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::AtomicBool;

use assay_ops::Precision;
use assay_tensor::Tensor;
use assay_torch::{Placed, Settings, Torch, TorchError};

static NEVER: AtomicBool = AtomicBool::new(false);
const READY: &str = r#"{"type": "ready", "environment": {"torch": "0.0"}}"#;

/// A script that runs `body`, as the interpreter of a worker that may take a second for a request.
fn settings(dir: &tempfile::TempDir, body: &str) -> Settings {
    let python = dir.path().join("python");
    fs::write(&python, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    Settings { python, threads: 1, seconds: 1, memory: None }
}

/// What a worker that greets and then does `body` to the first request makes of `y = relu(x)`.
fn evaluated(body: &str) -> TorchError {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("read hello; echo '{READY}'; read request; {body}");
    let mut torch = Torch::start(&settings(&dir, &script), &NEVER).unwrap();
    let x = Placed::contiguous("x", &Tensor::from_f32(&[2], &[1.0, 2.0]).unwrap());
    torch.evaluate("y = relu(x)", &[x], &BTreeMap::new(), &["y".to_owned()], Precision::F32).unwrap_err()
}

#[test]
fn a_worker_that_dies_is_reported_with_its_last_words_and_what_it_was_asked() {
    let e = evaluated("echo 'out of luck' >&2; exit 3");
    assert!(matches!(e, TorchError::Died(..)), "{e:?}");
    let text = e.to_string();
    for part in ["status 3", "out of luck", "y = relu(x)", "float32", "x f32 [2]"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_worker_that_hangs_is_ended_at_its_limit() {
    let e = evaluated("exec sleep 60");
    assert!(matches!(e, TorchError::Hung(1, _)), "{e:?}");
    assert!(e.to_string().contains("did not answer within 1 s"), "{e}");
}

#[test]
fn what_is_printed_into_the_protocol_is_reported_as_it_stands() {
    let e = evaluated("echo 'loading model...'; sleep 5");
    assert!(matches!(e, TorchError::Protocol(..)), "{e:?}");
    assert!(e.to_string().contains("`loading model...`"), "{e}");
}

#[test]
fn outputs_that_are_missing_malformed_or_outside_the_exchange_are_faults_of_the_worker() {
    let reply =
        |outputs: &str| format!("echo '{{\"type\": \"evaluated\", \"outputs\": [{outputs}]}}'; sleep 5");
    for (outputs, words) in [
        ("", "instead of"),
        (r#"{"name": "z", "dtype": "f32", "shape": [2], "offset": 0}"#, "instead of"),
        (r#"{"name": "y", "dtype": "f33", "shape": [2], "offset": 0}"#, "f33"),
        (r#"{"name": "y", "dtype": "f32", "shape": [-2], "offset": 0}"#, "-2"),
        (r#"{"name": "y", "dtype": "f32", "shape": [4294967296, 4294967296], "offset": 0}"#, "`y`"),
        (r#"{"name": "y", "dtype": "f32", "shape": [2], "offset": 268435452}"#, "outside the exchange"),
    ] {
        let e = evaluated(&reply(outputs));
        assert!(matches!(e, TorchError::Protocol(..)), "{e:?}");
        assert!(e.to_string().contains(words), "`{words}` is not in: {e}");
    }
    let e = evaluated("echo '{\"type\": \"done\"}'; sleep 5");
    assert!(e.to_string().contains("instead of `evaluated`"), "{e}");
}

#[test]
fn an_interpreter_without_pytorch_or_none_at_all_is_unusable() {
    let dir = tempfile::tempdir().unwrap();
    let said = r#"read hello; echo '{"type": "fault", "message": "cannot import torch"}'; sleep 5"#;
    let start = |s: &Settings| Torch::start(s, &NEVER).err().unwrap();
    let e = start(&settings(&dir, said));
    assert!(matches!(&e, TorchError::Unusable(why) if why.contains("cannot import torch")), "{e:?}");
    let none = Settings { python: dir.path().join("nobody"), threads: 1, seconds: 1, memory: None };
    assert!(matches!(start(&none), TorchError::Unusable(_)));
    // One that ends at once has last words too.
    let e = start(&settings(&dir, "echo 'no such module' >&2; exit 1"));
    assert!(matches!(&e, TorchError::Died(why, _) if why.contains("no such module")), "{e:?}");
}
