//! `assay check` on Python files: submissions of every category and of every trick get what their first lines name.
//!
//! Needs a Python that has PyTorch, of `ASSAY_TORCH_PYTHON`; says `skipped` where there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/submissions")
}

fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file());
    if python.is_none() {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
    }
    python
}

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(args).output().unwrap()
}

/// The command that judges one file.
fn one<'a>(file: &'a Path, problem: &'a str, python: &'a Path) -> [&'a str; 6] {
    ["check", file.to_str().unwrap(), "--problem", problem, "--python", python.to_str().unwrap()]
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// What a file says of itself: `# KEY: VALUE` at its top.
fn header(text: &str, key: &str) -> Option<String> {
    text.lines()
        .take_while(|l| l.starts_with('#'))
        .find_map(|l| l.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(':').map(|v| v.trim().to_owned()))
}

fn names(v: &Value) -> BTreeSet<&str> {
    v.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Writes the list of a folder of cases, from file to the problem that it names, to `to`; how many there are.
fn list_cases(folder: &Path, to: &Path) -> usize {
    let mut list: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let problem = cases().join(format!("problems/{}.py", header(&text, "problem").expect("a problem")));
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        list.insert(name, problem.display().to_string());
    }
    std::fs::write(to, serde_json::to_string(&list).unwrap()).unwrap();
    list.len()
}

#[test]
fn every_category_and_every_trick_is_told() {
    let Some(python) = python() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = cases().join("verdicts");
    let listed = scratch.path().join("list.json");
    let cases = list_cases(&folder, &listed);
    let lines = scratch.path().join("verdicts.jsonl");
    let args = [
        "check",
        folder.to_str().unwrap(),
        "--list",
        listed.to_str().unwrap(),
        "--python",
        python.to_str().unwrap(),
        "--jsonl",
        lines.to_str().unwrap(),
        "--json",
    ];
    let out = assay(&args);
    let document = json(&out);
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), cases);
    let mut wrong = Vec::new();
    for r in results {
        let file = r["file"].as_str().unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let name = Path::new(file).file_name().unwrap().to_string_lossy();
        let verdict = header(&text, "verdict").expect("a verdict");
        let tricks = header(&text, "tricks").unwrap_or_default();
        let want: BTreeSet<&str> = tricks.split_whitespace().collect();
        if r["verdict"] != verdict.as_str() || names(&r["tricks"]) != want {
            wrong.push(format!(
                "{name}: {} {} where {verdict} {want:?} was expected: {} {}",
                r["verdict"], r["tricks"], r["reason"], r["findings"]
            ));
        }
        if let Some(extents) = header(&text, "extents") {
            let (seen, compared) = (&r["official"]["extents"], &r["official"]["sampled"]);
            if *seen != extents.as_str() {
                wrong.push(format!("{name}: {seen} extents where {extents} was expected: {}", r["reason"]));
            }
            let part = compared["elements"].as_u64().zip(compared["of"].as_u64());
            if extents == "sampled" && verdict != "crashed" && !part.is_some_and(|(n, of)| 0 < n && n < of) {
                wrong.push(format!("{name}: compared {compared}: {}", r["reason"]));
            }
        }
        let replaces = ["uncalled_kernel", "library_call", "cached_result", "patched", "stale_memory"];
        let clean = !replaces.iter().any(|t| want.contains(t));
        let reward = match verdict.as_str() {
            "unsupported" | "exhausted" => Value::Null,
            "correct" | "not_general" if clean => 1.0.into(),
            _ => 0.0.into(),
        };
        if r["verdict"] == verdict.as_str() && r["reward"] != reward {
            wrong.push(format!("{name}: reward {} where {reward} was expected", r["reward"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A second run reads what the first one wrote; what was exhausted is tried again.
    let exhausted = results.iter().filter(|r| r["verdict"] == "exhausted").count();
    let again = json(&assay(&args));
    assert_eq!(again["judged"], exhausted);
    assert_eq!(again["verdicts"], document["verdicts"]);
}

/// Whether there is a C++ compiler, which is looked for as the command does it.
fn has_compiler() -> bool {
    let names = match std::env::var("CXX") {
        Ok(name) if !name.is_empty() => vec![name],
        _ => ["g++", "clang++", "c++"].map(String::from).to_vec(),
    };
    let found =
        names.iter().any(|n| Command::new(n).arg("--version").output().is_ok_and(|o| o.status.success()));
    if !found {
        eprintln!("skipped: no C++ compiler");
    }
    found
}

#[test]
fn host_parts_beyond_the_interpreter_are_compiled() {
    let Some(python) = python().filter(|_| has_compiler()) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = cases().join("compiled");
    let listed = scratch.path().join("list.json");
    assert!(list_cases(&folder, &listed) > 5);
    let (folder, listed) = (folder.to_str().unwrap(), listed.to_str().unwrap());
    let args = ["check", folder, "--list", listed, "--python", python.to_str().unwrap(), "--json"];
    let mut wrong = Vec::new();
    for r in json(&assay(&args))["results"].as_array().unwrap() {
        let file = r["file"].as_str().unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let reason = r["reason"].as_str().unwrap_or_default();
        let verdict = header(&text, "verdict").expect("a verdict");
        let says = header(&text, "says").expect("what the reason says");
        if r["verdict"] != verdict.as_str() || !reason.contains(&says) {
            wrong.push(format!("{file}: {} where {verdict} was expected: {reason}", r["verdict"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_a_compiler_what_is_beyond_the_interpreter_says_so() {
    let Some(python) = python() else { return };
    let (file, problem) =
        (cases().join("compiled/classes_and_stored_functions.py"), cases().join("problems/relu.py"));
    let arguments = one(&file, problem.to_str().unwrap(), &python);
    let out = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args([&arguments[..], &["--json"]].concat())
        .env("CXX", "/nowhere/g++")
        .output()
        .unwrap();
    let document = json(&out);
    assert_eq!(document["verdict"], "unsupported");
    let reason = document["reason"].as_str().unwrap();
    assert!(reason.contains("line 35") && reason.contains("no C++ compiler"), "{reason}");
}

#[test]
fn a_cuda_file_that_binds_forward_takes_the_place_of_the_problems_function() {
    let Some(python) = python() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (mut list, mut expected) = (BTreeMap::new(), BTreeMap::new());
    for entry in std::fs::read_dir(cases().join("cuda")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let said = text.replace("// ", "# ");
        let problem = cases().join(header(&said, "problem").expect("a problem"));
        let verdict = header(&said, "verdict").expect("a verdict");
        let document =
            json(&assay(&[&one(&path, problem.to_str().unwrap(), &python)[..], &["--json"]].concat()));
        assert_eq!(document["verdict"], verdict.as_str(), "{}: {}", path.display(), document["reason"]);
        assert_eq!(document["tricks"], serde_json::json!([]), "{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::create_dir(scratch.path().join(&name)).unwrap();
        std::fs::write(scratch.path().join(&name).join("kernel.cu"), text).unwrap();
        list.insert(format!("{name}/kernel.cu"), problem.display().to_string());
        expected.insert(format!("{name}/kernel.cu"), verdict);
    }
    assert!(expected.len() >= 3);
    // The same as a folder of folders, told apart by their paths, beside a Python file.
    let python_file = "relu_correct.py";
    std::fs::copy(cases().join("verdicts").join(python_file), scratch.path().join(python_file)).unwrap();
    list.insert(python_file.into(), cases().join("problems/relu.py").display().to_string());
    expected.insert(python_file.into(), "correct".into());
    let listed = scratch.path().join("list.json");
    std::fs::write(&listed, serde_json::to_string(&list).unwrap()).unwrap();
    let args = ["check", scratch.path().to_str().unwrap(), "--list", listed.to_str().unwrap()];
    let args = [&args[..], &["--python", python.to_str().unwrap(), "--json"]].concat();
    let document = json(&assay(&args));
    let found = document["results"].as_array().unwrap().iter().map(|r| {
        let below = Path::new(r["file"].as_str().unwrap()).strip_prefix(scratch.path()).unwrap();
        (below.display().to_string(), r["verdict"].as_str().unwrap().to_owned())
    });
    assert_eq!(found.collect::<BTreeMap<String, String>>(), expected);
    // A file for the catalogue beside them is judged in another way.
    std::fs::write(
        scratch.path().join("plain.cu"),
        "__global__ void k() {}\nvoid launch() { k<<<1, 1>>>(); }\n",
    )
    .unwrap();
    let out = assay(&args);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("put them in a folder each"));
}

#[test]
fn submissions_are_judged_in_the_precision_asked_for() {
    let Some(python) = python() else { return };
    let scratch = tempfile::tempdir().unwrap();
    for precision in ["fp16", "bf16"] {
        let folder = cases().join("half").join(precision);
        let listed = scratch.path().join(precision);
        assert!(list_cases(&folder, &listed) >= 4);
        let args =
            ["check", folder.to_str().unwrap(), "--list", listed.to_str().unwrap(), "--precision", precision];
        let document = json(&assay(&[&args[..], &["--python", python.to_str().unwrap(), "--json"]].concat()));
        for r in document["results"].as_array().unwrap() {
            let file = r["file"].as_str().unwrap();
            let verdict = header(&std::fs::read_to_string(file).unwrap(), "verdict").expect("a verdict");
            assert_eq!(r["verdict"], verdict.as_str(), "{file}: {}", r["reason"]);
        }
    }
}

#[test]
fn a_failing_input_replays_alone() {
    let Some(python) = python() else { return };
    let file = cases().join("verdicts/softmax_overflows.py");
    let problem = cases().join("problems/softmax.py");
    let base = one(&file, problem.to_str().unwrap(), &python);
    let whole = json(&assay(&[&base[..], &["--json"]].concat()));
    assert_eq!(whole["verdict"], "wrong");
    let recipe = whole["failing_inputs"][0]["recipe"].as_str().unwrap();
    let out = assay(&[&base[..], &["--json", "--input", recipe]].concat());
    assert_eq!(out.status.code(), Some(1));
    let alone = json(&out);
    assert_eq!(alone["failing_inputs"][0]["recipe"], recipe);
    assert_eq!(alone["failing_inputs"][0]["first_wrong"], whole["failing_inputs"][0]["first_wrong"]);
    assert_eq!(alone["suite"]["inputs"], 1);
}

#[test]
fn the_catalogue_serves_where_there_is_no_problem_file() {
    let Some(python) = python() else { return };
    let file = cases().join("verdicts/relu_correct.py");
    let check = |problem: &str| assay(&[&one(&file, problem, &python)[..], &["--json"]].concat());
    let relu = check("1/19");
    let document = json(&relu);
    assert_eq!(document["verdict"], "correct", "{}", document["reason"]);
    assert_eq!(document["official"]["extents"], "desk");
    assert_eq!(relu.status.code(), Some(0));
    // Its init arguments are not known.
    let norm = check("1/40");
    assert_eq!(norm.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&norm.stderr).contains("--kernelbench"));
}

#[test]
fn a_python_without_pytorch_is_bad_input() {
    let file = cases().join("verdicts/relu_correct.py");
    let problem = cases().join("problems/relu.py");
    let out = assay(&one(&file, problem.to_str().unwrap(), Path::new("/nonexistent/python")));
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
}
