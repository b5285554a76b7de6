//! `assay problems --kernelbench` over small modules of our own: each is exported, lowered, and its substrate gives on the
//! CPU device what PyTorch gives; what cannot be lowered or run says so and leaves the others alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/export/modules")
}

/// Files that end badly, and the word for it.
const BAD: &[(&str, &str, &str)] = &[
    ("unsupported", "return torch.fft.rfft(x).abs()", "unsupported"),
    ("branches", "return x if x.sum() > 0 else -x", "refused"),
    ("raises", "raise ValueError('no \\x1b[31mcolour')", "refused"),
    ("dies", "import os; os._exit(7)", "refused"),
    ("prints", "print('{\"type\": \"exported\"}'); return torch.relu(x)", "pass"),
    ("gives_text", "return 'y'", "unsupported"),
];

fn checkout() -> (tempfile::TempDir, Vec<(String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let level = dir.path().join("KernelBench/level1");
    std::fs::create_dir_all(&level).unwrap();
    let mut names: Vec<PathBuf> = std::fs::read_dir(modules()).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "py"));
    names.sort();
    let mut expected = Vec::new();
    let mut id = 0;
    for path in names {
        id += 1;
        let name = format!("{id}_{}", path.file_stem().unwrap().to_string_lossy());
        std::fs::copy(&path, level.join(format!("{name}.py"))).unwrap();
        expected.push((name, "pass".to_owned()));
    }
    for (name, body, word) in BAD {
        id += 1;
        let name = format!("{id}_{name}");
        let text = format!(
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        {body}\n\
             def get_inputs():\n    return [torch.rand(4, 3)]\ndef get_init_inputs():\n    return []\n"
        );
        std::fs::write(level.join(format!("{name}.py")), text).unwrap();
        expected.push((name, (*word).to_owned()));
    }
    (dir, expected)
}

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().unwrap()
}

#[test]
fn what_is_no_checkout_and_filters_of_the_catalogue_are_bad_input() {
    let (dir, _) = checkout();
    let path = dir.path().to_str().unwrap();
    for args in [
        vec!["--kernelbench", "/nonexistent"],
        vec!["--kernelbench", path, "--ids", "99"],
        vec!["--kernelbench", path, "--level", "1", "--operator", "relu"],
        vec!["--python", "python3"],
    ] {
        let o = assay(&[&["problems"], &args[..]].concat());
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    }
}

#[test]
fn modules_become_problems_whose_substrates_give_what_pytorch_gives() {
    let python = std::env::var("ASSAY_TORCH_PYTHON").ok().filter(|p| Path::new(p).is_file());
    let Some(python) = python else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return;
    };
    let (dir, expected) = checkout();
    let out = dir.path().join("out");
    let arguments = [
        "problems",
        "--kernelbench",
        dir.path().to_str().unwrap(),
        "--level",
        "1",
        "--python",
        &python,
        "--verify",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let o = assay(&arguments);
    let said = String::from_utf8_lossy(&o.stderr);
    assert_eq!(o.status.code(), Some(4), "{said}");
    let result: Value = serde_json::from_slice(&o.stdout).unwrap();
    let problems = result["problems"].as_array().unwrap();
    assert_eq!(problems.len(), expected.len());
    for (p, (name, word)) in problems.iter().zip(&expected) {
        assert_eq!(
            (p["name"].as_str(), p["gate"].as_str()),
            (Some(name.as_str()), Some(word.as_str())),
            "{p}"
        );
        assert_eq!(p["how"], "export");
        if word == "pass" {
            for key in ["official", "truth", "module"] {
                assert!(p[key].as_f64().unwrap() < 1e-4, "{name}: {key} {}", p[key]);
            }
            assert!(p["reference"].as_f64().unwrap() < 1e-9, "{name}: {}", p["reference"]);
            let slug = name.to_lowercase();
            assert!(out.join("level1").join(slug).join("problem.toml").is_file(), "{name}");
        } else {
            assert!(!p["reason"].as_str().unwrap().is_empty(), "{p}");
        }
    }
    assert_eq!(result["summary"][0]["files"], expected.len());
    // What was written is a problem like any other: its own gate takes it.
    let folder = out.join("level1/2_conv_block");
    let o = assay(&["problems", "--verify", "--problems", folder.to_str().unwrap(), "--json"]);
    assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
}
