//! `assay check`: every case of `testdata/check`, what a replay shows, folders, suites, and `--sanitize-only`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{assay, repository, widest};

/// What the comment at the head of a case says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    problem: String,
    verdict: String,
    exit: i32,
    #[serde(default)]
    flags: Vec<String>,
    /// Part of the reason.
    reason: Option<String>,
    /// Part of the compiler's log.
    log: Option<String>,
    /// What the official check says at the extents that were reached.
    passes_there: Option<bool>,
    /// Kinds that must be reported; without the key, none may be where the verdict is `correct`.
    #[serde(default)]
    findings: Vec<String>,
    #[serde(default)]
    tricks: Vec<String>,
}

fn cases() -> Vec<(PathBuf, Case)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(repository("testdata/check"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "cu"))
        .collect();
    files.sort();
    assert!(files.len() > 20);
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let keys: Vec<&str> = text
                .lines()
                .map_while(|l| l.strip_prefix("// "))
                .filter(|l| {
                    l.split_once(" = ").is_some_and(|(k, _)| k.chars().all(|c| c.is_lowercase() || c == '_'))
                })
                .collect();
            let case = toml::from_str(&keys.join("\n")).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            (path, case)
        })
        .collect()
}

fn checked(file: &Path, problem: &str, more: &[&str], exit: i32) -> Value {
    let path = file.to_str().unwrap();
    let mut words = vec!["check", path, "--problem", problem, "--json"];
    words.extend(more);
    assay(&words).exits(exit).json()
}

fn strings<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|f| f[key].as_str().unwrap()).collect()
}

#[test]
fn every_case_gets_its_verdict() {
    for (path, case) in cases() {
        let flags: Vec<&str> = case.flags.iter().map(String::as_str).collect();
        let seen = checked(&path, &case.problem, &flags, case.exit);
        let at = format!("{}: {seen:#}", path.display());
        assert_eq!(seen["verdict"], case.verdict.as_str(), "{at}");
        assert_eq!(seen["official"]["passes"], Value::Null, "desk extents are not the official ones: {at}");
        assert_eq!(seen["official"]["extents"], "desk", "{at}");
        if let Some(passes) = case.passes_there {
            assert_eq!(seen["official"]["passes_there"], passes, "{at}");
        }
        let kinds = strings(&seen["findings"], "kind");
        for kind in &case.findings {
            assert!(kinds.contains(&kind.as_str()), "no {kind} in {at}");
        }
        assert!(case.verdict != "correct" || kinds.is_empty(), "{at}");
        let tricks: Vec<&str> =
            seen["tricks"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
        assert_eq!(tricks, case.tricks, "{at}");
        for (want, key) in [(&case.reason, "reason"), (&case.log, "log")] {
            if let Some(part) = want {
                assert!(seen[key].as_str().is_some_and(|s| s.contains(part)), "no `{part}` in {at}");
            }
        }
        let reward = match case.verdict.as_str() {
            "unsupported" | "exhausted" => Value::Null,
            _ if case.exit == 0 => 1.0.into(),
            _ => 0.0.into(),
        };
        assert_eq!(seen["reward"], reward, "{at}");
        let failing = seen["failing_inputs"].as_array().unwrap();
        assert_eq!(
            failing.is_empty(),
            !matches!(case.verdict.as_str(), "wrong" | "crashed" | "not_general"),
            "{at}"
        );
    }
}

#[test]
fn every_substrate_of_the_catalogue_is_correct() {
    for name in [
        "level1/23_softmax",
        "level1/19_relu",
        "level1/51_argmax_over_dim",
        "level2/12_gemm_multiply_leaky_relu",
    ] {
        let file = repository(&format!("problems/{name}/kernel.cu"));
        let seen = checked(&file, name, &[], 0);
        assert_eq!(
            (seen["verdict"].as_str(), seen["reward"].as_f64()),
            (Some("correct"), Some(1.0)),
            "{seen:#}"
        );
        assert_eq!(seen["official"]["passes_there"], true);
        assert_eq!(seen["suite"]["failed"], 0);
        assert!(seen["suite"]["inputs"].as_u64() > Some(8), "{seen:#}");
    }
}

/// The command line of a `replay`, as a shell would split it.
fn words(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(out.remove(0), "assay");
    out
}

#[test]
fn a_replay_shows_the_same_failure_alone() {
    let file = repository("testdata/check/relu_without_clamp.cu");
    let seen = checked(&file, "1/19", &[], 1);
    for failing in seen["failing_inputs"].as_array().unwrap() {
        let mut line = words(failing["replay"].as_str().unwrap());
        line.push("--json".into());
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let again = assay(&line).exits(if failing["own_extents"] == true { 1 } else { 0 }).json();
        assert_eq!(again["suite"]["inputs"], 1, "{again:#}");
        for key in ["recipe", "threshold", "first_wrong", "end"] {
            assert_eq!(again["failing_inputs"][0][key], failing[key], "{key}");
        }
        let first = &failing["first_wrong"];
        assert!(first["want"] == 0.0 && first["got"].as_f64() < Some(0.0), "{first}");
    }
    // A finding's replay as well.
    let file = repository("testdata/check/relu_written_twice.cu");
    let seen = checked(&file, "1/19", &[], 1);
    let mut line = words(seen["findings"][0]["replay"].as_str().unwrap());
    line.push("--json".into());
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let again = assay(&line).exits(1).json();
    assert_eq!(again["verdict"], "undefined_behaviour");
    assert_eq!(again["findings"][0]["other"], seen["findings"][0]["other"]);
}

#[test]
fn the_page_fits_a_terminal_and_says_what_is_wrong_and_how_to_see_it_again() {
    for (case, problem, parts) in [
        (
            "softmax_zeros",
            "1/23",
            vec![
                "wrong: ",
                "passes at desk extents",
                "Failing input",
                "first wrong",
                "y[0,",
                "replay: assay check ",
            ],
        ),
        (
            "relu_written_twice",
            "1/19",
            vec![
                "undefined_behaviour: ",
                "race_global: ",
                "9 |     if (i < n) y[i]",
                "(1) store",
                "(2) store",
                "replay: ",
            ],
        ),
        ("softmax_syntax_error", "1/23", vec!["rejected: ", "line 9", "undeclared"]),
        ("relu_trap", "1/19", vec!["crashed: ", "no output: `trap` executed", "if (i == 77) __trap();"]),
    ] {
        let file = repository(&format!("testdata/check/{case}.cu"));
        let page = assay(&["check", file.to_str().unwrap(), "--problem", problem]).exits(1).stdout;
        for part in parts {
            assert!(page.contains(part), "no `{part}` in\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "no colour in a pipe");
        let commands = page.lines().filter(|l| !l.starts_with("replay: ")).collect::<Vec<_>>().join("\n");
        // A compiler's log and a path are as long as they are.
        if case != "softmax_syntax_error" {
            let long = commands.lines().filter(|l| !l.contains("-->")).collect::<Vec<_>>().join("\n");
            assert!(widest(&long).0 <= 80, "{:?}", widest(&long));
        }
    }
}

#[test]
fn a_folder_is_judged_file_by_file_and_one_bad_file_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, case: &str| {
        std::fs::copy(repository(&format!("testdata/check/{case}.cu")), dir.path().join(name)).unwrap();
    };
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    put("c.cu", "relu_without_clamp");
    put("a.cu", "relu_parameters_in_another_order");
    put("sub/d.cu", "relu_vector_in_launch");
    std::fs::write(dir.path().join("b.cu"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::write(dir.path().join("notes.txt"), "no kernel").unwrap();
    let out = dir.path().join("out.jsonl");
    std::fs::write(&out, "{\"earlier\": true}\n").unwrap();
    let args = [
        "check",
        dir.path().to_str().unwrap(),
        "--problem",
        "level1/19_relu",
        "--jsonl",
        out.to_str().unwrap(),
    ];
    let run = |more: &[&str]| assay(&[&args[..], more].concat()).exits(1);
    let seen = run(&["--json", "--jobs", "2"]).json();
    assert_eq!(seen["files"], 4);
    assert_eq!(
        seen["verdicts"],
        serde_json::json!({ "correct": 1, "wrong": 1, "rejected": 1, "unsupported": 1 })
    );
    let names: Vec<&str> =
        strings(&seen["results"], "file").into_iter().map(|f| f.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a.cu", "b.cu", "c.cu", "d.cu"]);
    let text = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 5, "appended to what was there");
    assert_eq!(lines[0]["earlier"], true);
    assert_eq!(
        strings(&Value::Array(lines[1..].to_vec()), "verdict"),
        ["correct", "rejected", "wrong", "unsupported"]
    );
    let page = run(&["--jobs", "1"]).stdout;
    assert!(page.contains("4 files: 1 correct, 1 wrong, 1 rejected, 1 unsupported"), "{page}");
}

#[test]
fn a_suite_from_a_file_is_asked_in_place_of_every_targeted_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("suite.toml");
    let write = |recipes: &str| {
        let text =
            format!("name = \"mine\"\nsuite_budget = 2\natol = 1e-2\nrtol = 1e-2\n\n[problems]\n{recipes}\n");
        std::fs::write(&file, text).unwrap();
    };
    let kernel = repository("testdata/check/relu_without_clamp.cu");
    let suite = ["--suite", file.to_str().unwrap()];
    // Values that are never negative do not show the missing clamp; the ragged shapes do.
    write("\"1/19\" = [\"rand#5\", \"uniform(1,2)#6\"]");
    let seen = checked(&kernel, "1/19", &suite, 0);
    assert_eq!(
        (seen["verdict"].as_str(), seen["suite"]["name"].as_str()),
        (Some("not_general"), Some("mine"))
    );
    write("\"1/19\" = [\"normal(1)#5\"]");
    let seen = checked(&kernel, "1/19", &suite, 1);
    assert_eq!(seen["failing_inputs"][0]["recipe"], "normal(1)#5");
    write("\"1/23\" = [\"normal(1)#5\"]");
    let mut words = vec!["check", kernel.to_str().unwrap(), "--problem", "1/19"];
    words.extend(suite);
    assay(&words).exits(2).says(&["`mine` asks nothing"]);
}

#[test]
fn what_cannot_be_asked_says_so() {
    let kernel = repository("testdata/check/relu_without_clamp.cu");
    let kernel = kernel.to_str().unwrap();
    assay(&["check", kernel]).exits(2).says(&["--problem"]);
    assay(&["check", kernel, "--problem", "9/99"]).exits(2).says(&["9/99"]);
    assay(&["check", kernel, "--problem", "level1"]).exits(2).says(&["--problem level1 names", "name one"]);
    assay(&["check", "/nowhere.cu", "--problem", "1/19"]).exits(2).says(&["/nowhere.cu"]);
    assay(&["check", kernel, "--problem", "1/19", "--input", "offical#1"])
        .exits(2)
        .says(&["unknown kind `offical`"]);
    assay(&["check", kernel, "--problem", "1/19", "--input", "normal(1)@Q=3"]).exits(2).says(&["`Q`"]);
    assay(&["check", kernel, "--problem", "1/19", "--suite", "nope"])
        .exits(2)
        .says(&["unknown protocol `nope`"]);
    assay(&["check", kernel, "--problem", "1/19", "--jsonl", "/nowhere/out"])
        .exits(74)
        .says(&["/nowhere/out"]);
    let dir = tempfile::tempdir().unwrap();
    // Submissions in Python need one that has PyTorch.
    let py = dir.path().join("answer.py");
    std::fs::write(&py, "class ModelNew: pass\n").unwrap();
    assay(&["check", py.to_str().unwrap(), "--problem", "1/19", "--python", "/nowhere/python"])
        .exits(2)
        .says(&["/nowhere/python"]);
}

const LAUNCH: &str = "\
__global__ void half(const float* x, float* part, float* y, int n, float factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) part[i] = factor * x[i];
    if (i < n) y[i] = part[i];
}
void launch(const float* x, float* y, int n, float factor) {
    float* part = scratch<float>(n);
    half<<<(n + 31) / 32, 32>>>(x, part, y, n, factor);
}
";

#[test]
fn a_launch_alone_runs_on_given_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("half.cu");
    let file = file.to_str().unwrap();
    let only = |source: &str, args: &[&str], more: &[&str]| {
        std::fs::write(file, source).unwrap();
        let mut words = vec!["check", file, "--sanitize-only"];
        words.extend(args.iter().flat_map(|a| ["--arg", *a]));
        words.extend(more);
        assay(&words)
    };
    // In any order, by name.
    let args = ["n=i32:100", "y=f32[100]:uninit", "factor=f32:0.5", "x=f32[100]:arange"];
    let seen = only(LAUNCH, &args, &["--json"]).exits(0).json();
    assert_eq!((seen["verdict"].as_str(), seen["launches"].as_u64()), (Some("correct"), Some(1)), "{seen:#}");
    assert_eq!(seen["outputs"]["y"]["head"][3], 1.5);
    let page = only(LAUNCH, &args, &[]).exits(0).stdout;
    assert!(page.contains("correct: ") && page.contains("0 0.5 1 1.5"), "{page}");

    let past = LAUNCH.replace("if (i < n) part[i]", "part[i]");
    let seen = only(&past, &args, &["--json"]).exits(1).json();
    assert_eq!(seen["verdict"], "undefined_behaviour");
    let kinds = strings(&seen["findings"], "kind");
    assert!(kinds.contains(&"oob_read"), "{kinds:?}");
    let page = only(&past, &args, &[]).exits(1).stdout;
    assert!(
        page.contains("3 |     part[i] = factor * x[i];") && page.contains("--arg 'n=i32:100'")
            || page.contains("--arg n=i32:100"),
        "{page}"
    );

    let modified = LAUNCH.replace("y[i] = part[i];", "((float*)x)[i] = y[i] = part[i];");
    let seen = only(&modified, &args, &["--json"]).exits(1).json();
    assert_eq!(strings(&seen["findings"], "kind"), ["input_modified"]);

    let wrong = ["n=i32:100", "y=f32[100]:uninit", "x=f32[100]:arange"];
    only(LAUNCH, &wrong, &[]).exits(2).says(&["`factor` has no --arg", "`const float* x`"]);
    let wrong = ["n=i32:100", "y=f32[100]:uninit", "factor=f32:0.5", "x=f32[100]:arange", "z=i32:1"];
    only(LAUNCH, &wrong, &[]).exits(2).says(&["--arg `z` is no parameter of `launch`"]);
    let wrong = ["n=i32:100", "y=f32[100]:uninit", "factor=f32:0.5", "x=f64[100]:arange"];
    only(LAUNCH, &wrong, &[]).exits(2).says(&["parameter `x`", "`f64`"]);
    let large = ["n=i32:100", "y=f32[100]:uninit", "factor=f32:0.5", "x=f32[300000000]:arange"];
    only(LAUNCH, &large, &[]).exits(4).says(&["`x`", "1 GiB"]);
    let seen = only("__global__ void k() {}", &[], &["--json"]).exits(1).json();
    assert_eq!(seen["verdict"], "rejected");
    assert!(seen["reason"].as_str().unwrap().contains("assay run half.cu"), "{seen:#}");
}
