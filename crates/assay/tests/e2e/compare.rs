//! Scores from stored thresholds, and two audits side by side.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{Running, assay, audit, command, fixture, read_json, widest};

/// The same protocol twice: lax, then strict, as a maintainer's patch would make it.
struct Runs {
    dir: tempfile::TempDir,
    lax: PathBuf,
    strict: PathBuf,
}

fn protocol(folder: &Path, file: &str, name: &str, tolerance: &str) -> String {
    let path = folder.join(file);
    let text = format!(
        "name = \"{name}\"\ninputs = [\"official#0\", \"official#1\", \"official#2\", \"official#3\", \"official#4\"]\n\
         atol = {tolerance}\nrtol = {tolerance}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn runs() -> &'static Runs {
    static RUNS: OnceLock<Runs> = OnceLock::new();
    RUNS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, tolerance: &str| {
            let file = protocol(dir.path(), &format!("{name}.toml"), "mine", tolerance);
            let run = dir.path().join(name);
            let mut c = audit("problems", &run, &["--protocol", &file]);
            Running::start(&mut c).finish().exits(0);
            run
        };
        let (lax, strict) = (make("lax", "0.5"), make("strict", "1e-4"));
        Runs { dir, lax, strict }
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What is measured of a protocol, without its name and what is published.
fn measured(row: &Value) -> Value {
    let mut row = row.clone();
    let map = row.as_object_mut().unwrap();
    for key in ["name", "published_percent", "published_denominator"] {
        map.shift_remove(key);
    }
    row
}

#[test]
fn a_tolerance_scored_from_what_is_stored_is_what_a_fresh_audit_measures() {
    let r = runs();
    let again = assay(&["report", text(&r.lax), "--tolerance", "1e-4", "--json"]).exits(0).json();
    let fresh = read_json(&r.strict.join("summary.json"));
    assert_eq!(again["protocols"][0]["name"], "mine@1e-4");
    assert_eq!(measured(&again["protocols"][0]), measured(&fresh["protocols"][0]));
    // The built-in protocol at 1e-4 in both: the same inputs under another name.
    let named = |s: &Value, name: &str| {
        let rows = s["protocols"].as_array().unwrap();
        measured(rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name}")))
    };
    assert_eq!(named(&again, "kernelbench-2025@1e-4"), named(&fresh, "kernelbench"));
    for key in
        ["pipeline", "families", "rules", "mechanisms", "survivors", "problems", "suites", "worst_problem"]
    {
        assert_eq!(again[key], fresh[key], "{key}");
    }
    let lax = &read_json(&r.lax.join("summary.json"))["protocols"][0];
    assert!(lax["detected"].as_u64() < fresh["protocols"][0]["detected"].as_u64(), "{lax}");
}

#[test]
fn a_protocol_file_is_scored_from_what_is_stored_or_its_missing_input_is_named() {
    let r = runs();
    let before = read_json(&r.lax.join("summary.json"));
    let file = protocol(r.dir.path(), "other.toml", "mine", "1e-4");
    let again = assay(&["report", text(&r.lax), "--protocol", &file, "--json"]).exits(0).json();
    let fresh = read_json(&r.strict.join("summary.json"));
    assert_eq!(again["protocols"], Value::Array(vec![fresh["protocols"][0].clone()]));
    assert_eq!(read_json(&r.lax.join("summary.json")), before, "nothing is written");

    let file = r.dir.path().join("more.toml");
    std::fs::write(&file, "name = \"more\"\ninputs = [\"official#77\"]\natol = 1e-2\nrtol = 1e-2\n").unwrap();
    let answer = assay(&["report", text(&r.lax), "--protocol", file.to_str().unwrap()]).exits(2);
    answer.says(&["`more`", "official#77", "assay audit"]);
    std::fs::write(
        &file,
        "name = \"more\"\ninputs = [\"official#0\"]\natol = 1e-2\nrtol = 1e-2\nchecker = \"true {dir}\"\n",
    )
    .unwrap();
    let answer = assay(&["report", text(&r.lax), "--protocol", file.to_str().unwrap()]).exits(2);
    answer.says(&["`more`", "was not run"]);
    assay(&["report", text(&r.lax), "--tolerance=-1"]).exits(2).says(&["--tolerance"]);
}

#[test]
fn the_runs_own_protocols_scored_again_give_the_runs_own_summary() {
    let r = runs();
    let whole = read_json(&r.lax.join("summary.json"));
    let mine = r.dir.path().join("lax.toml");
    let mut args = vec!["report", text(&r.lax), "--json", "--protocol", mine.to_str().unwrap()];
    let names: Vec<String> = whole["protocols"].as_array().unwrap()[1..]
        .iter()
        .map(|p| p["name"].as_str().unwrap().to_owned())
        .collect();
    for name in &names {
        args.extend(["--protocol", name]);
    }
    assert_eq!(assay(&args).exits(0).json(), whole);
}

#[test]
fn inputs_and_tolerance_are_told_apart() {
    let r = runs();
    let summary = read_json(&r.strict.join("summary.json"));
    let rows = summary["decomposition"].as_array().unwrap();
    let kbv = rows.iter().find(|d| d["protocol"] == "kbv").unwrap();
    let inputs = rows.iter().find(|d| d["protocol"] == "kbv-inputs").unwrap();
    // The same inputs at the official tolerance.
    assert_eq!(kbv["inputs_at_official_tolerance"], inputs["detected"]);
    assert_eq!(
        (&kbv["published_inputs_first"], &kbv["published_tolerance_second"]),
        (&4.0.into(), &4.5.into())
    );
    assert!(rows.iter().all(|d| d["protocol"] != "kernelbench-2025"), "nothing to tell apart");
    let page = assay(&["report", text(&r.strict)]).exits(0).stdout;
    assert!(page.contains("Inputs and tolerance: points over kernelbench-2025"), "{page}");
}

#[test]
fn a_stricter_protocol_is_compared_mutant_by_mutant() {
    let r = runs();
    let found = assay(&["compare", text(&r.lax), text(&r.strict), "--json"]).exits(1).json();
    assert_eq!((&found["kind"], &found["same"]), (&"audits".into(), &false.into()));
    let mine = &found["protocols"][0];
    assert_eq!(mine["name"], "mine");
    let caught = mine["newly_caught"].as_array().unwrap();
    assert!(!caught.is_empty() && mine["newly_missed"].as_array().unwrap().is_empty(), "{mine}");
    let number = |v: &Value| v.as_u64().unwrap();
    assert_eq!(number(&mine["after"]["detected"]), number(&mine["before"]["detected"]) + caught.len() as u64);
    // The others did not change, nor did the mutants.
    for p in &found["protocols"].as_array().unwrap()[1..] {
        assert_eq!(p["before"], p["after"], "{p}");
    }
    assert!(found["only_before"].as_array().unwrap().is_empty());
    let back = assay(&["compare", text(&r.strict), text(&r.lax), "--json"]).exits(1).json();
    assert_eq!(back["protocols"][0]["newly_missed"], mine["newly_caught"]);
    let page = assay(&["compare", text(&r.lax), text(&r.strict)]).exits(1).stdout;
    assert!(page.contains("Newly caught by mine"), "{page}");
    let (columns, line) = widest(&page);
    assert!(columns <= 80, "{columns}: {line}");
}

#[test]
fn an_audit_does_not_differ_from_itself() {
    let r = runs();
    let found = assay(&["compare", text(&r.lax), text(&r.lax), "--json"]).exits(0).json();
    assert_eq!(found["same"], true);
    let page = assay(&["compare", text(&r.lax), text(&r.lax)]).exits(0).stdout;
    assert!(page.starts_with("No difference"), "{page}");
}

#[test]
fn problems_of_one_audit_alone_are_a_difference() {
    let r = runs();
    let run = r.dir.path().join("one");
    let file = r.dir.path().join("lax.toml");
    let mut c = audit("problems/add_clamp", &run, &["--protocol", file.to_str().unwrap()]);
    Running::start(&mut c).finish().exits(0);
    let found = assay(&["compare", text(&r.lax), text(&run), "--json"]).exits(1).json();
    let only = found["only_before"].as_array().unwrap();
    assert!(!only.is_empty() && only.iter().all(|m| m["problem"] == "9/2"), "{only:?}");
    assert!(
        found["protocols"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["newly_caught"].as_array().unwrap().is_empty())
    );
}

#[test]
fn what_is_no_finished_run_cannot_be_compared() {
    let r = runs();
    let nowhere = r.dir.path().join("nowhere");
    for other in [text(&nowhere), fixture("problems").as_str()] {
        let mut c = command(&["compare", text(&r.lax), other]);
        Running::start(&mut c).finish().exits(2).says(&["run"]);
    }
    assay(&["compare", text(&r.lax)]).exits(2);
}
