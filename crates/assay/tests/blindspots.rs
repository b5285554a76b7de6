//! `assay blindspots` over small files of the benchmark's form: what passes, what violates, what cannot be run, the cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Level, number, name, what `forward` returns.
const FILES: &[(u32, u32, &str, &str)] = &[
    (1, 1, "1_Small", "x * 1e-3"),
    (1, 2, "2_Near_a_constant", "5 + x * 1e-3"),
    (1, 3, "3_LeakyReLU", "torch.nn.functional.leaky_relu(x)"),
    (1, 4, "4_Cancels", "(x + 3e7) - 3e7"),
    (1, 5, "5_Raises", "torch.nn.functional.cross_entropy(x, y)"),
    (2, 1, "1_Plain", "x * 2 - 1"),
];

fn checkout() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (level, _, name, value) in FILES {
        let folder = dir.path().join(format!("KernelBench/level{level}"));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n        return {value}\n\
             def get_inputs():\n    return [torch.rand(64, 3), torch.randint(0, 3, (64,))]\n\
             def get_init_inputs():\n    return []\n"
        );
        std::fs::write(folder.join(format!("{name}.py")), text).unwrap();
    }
    dir
}

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().unwrap()
}

#[test]
fn a_folder_without_levels_and_a_number_that_is_not_there_are_bad_input() {
    let dir = checkout();
    let path = dir.path().to_str().unwrap();
    for args in
        [vec!["--kernelbench", "/nonexistent"], vec!["--kernelbench", path, "--level", "1", "--ids", "77"]]
    {
        let o = assay(&[&["blindspots"], &args[..]].concat());
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    }
}

#[test]
fn blind_spots_and_unrefereeable_problems_are_found_and_kept() {
    let python = std::env::var("ASSAY_TORCH_PYTHON").ok().filter(|p| Path::new(p).is_file());
    let Some(python) = python else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return;
    };
    let dir = checkout();
    let cache: PathBuf = dir.path().join("cache");
    let run = |python: &str| {
        assay(&[
            "blindspots",
            "--kernelbench",
            dir.path().to_str().unwrap(),
            "--python",
            python,
            "--level",
            "1,2",
            "--extents",
            "official",
            "--trials",
            "2",
            "--json",
            "--cache",
            cache.to_str().unwrap(),
        ])
    };
    let o = run(&python);
    assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    let of = |key: &str| v["problems"].as_array().unwrap().iter().find(|p| p["problem"] == key).unwrap();
    let accepted = |key: &str, name: &str| -> Vec<bool> {
        let c = of(key)["candidates"].as_array().unwrap().iter().find(|c| c["name"] == name).cloned();
        c.map_or(Vec::new(), |c| {
            c["accepted"].as_array().unwrap().iter().map(|a| a.as_bool().unwrap()).collect()
        })
    };
    // Tolerances are 1e-2, 1e-3, 1e-4.
    assert_eq!(accepted("1/1", "zeros"), [true, true, false]);
    assert_eq!(accepted("1/2", "zeros"), [false; 3]);
    assert_eq!(of("1/2")["constants"].as_array().unwrap().len(), 3);
    assert!((of("1/2")["constants"][2]["value"].as_f64().unwrap() - 5.0005).abs() < 2e-4);
    assert_eq!(accepted("1/3", "input 0"), [true; 3]);
    assert_eq!(accepted("1/3", "relu"), [true; 3]);
    assert_eq!(
        accepted("1/3", "leaky_relu"),
        Vec::<bool>::new(),
        "what the file is named after is its answer"
    );
    assert_eq!(of("1/5")["status"], "refused");
    assert!(of("1/5")["reason"].as_str().unwrap().contains("Float"));
    let violations = of("1/4")["violations"][0].clone();
    assert!(
        violations["counts"].as_array().unwrap().iter().all(|c| c.as_u64().unwrap() > 100),
        "{violations}"
    );
    assert!(of("2/1")["constants"].as_array().unwrap().is_empty());
    let at = &v["summary"][0];
    // float32 loses all of x beside 3e7, so that what cancels is zero everywhere, and zeros pass there too.
    for (key, want) in [("measured", 5), ("zeros", 2), ("constant", 3), ("unrefereeable", 1)] {
        assert_eq!(at[key].as_u64(), Some(want), "{key}: {at}");
    }
    // The second run asks for nothing: only whether PyTorch is the same.
    let kept = std::fs::read_dir(&cache).unwrap().count();
    assert_eq!(kept, FILES.len());
    let again: Value = serde_json::from_slice(&run(&python).stdout).unwrap();
    assert_eq!(again["problems"], v["problems"]);
}
