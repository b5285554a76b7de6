//! External checkers: what they say is scored as a protocol's verdict, what they fail at is nobody's kill, and nothing
//! is asked twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Running, audit, command, database, fixture, forget_times, read_json};

const ONE: &str = "problems/add_clamp";

/// The checker of `testdata`, with a file that gets a line for every run.
fn allclose(tolerance: &str, counter: &Path) -> String {
    format!("python3 '{}' {{dir}} {tolerance} '{}'", fixture("checkers/allclose.py"), counter.display())
}

fn runs(counter: &Path) -> usize {
    std::fs::read_to_string(counter).unwrap_or_default().lines().count()
}

fn row<'v>(summary: &'v Value, name: &str) -> &'v Value {
    let rows = summary["protocols"].as_array().expect("protocols");
    rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {rows:?}"))
}

/// Takes the checker's command out, wherever it stands.
fn forget_commands(v: &mut Value) {
    match v {
        Value::Object(map) => {
            map.shift_remove("checker");
            map.values_mut().for_each(forget_commands);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_commands),
        _ => {}
    }
}

/// Audits the one problem with a checker.
fn checked(dir: &Path, name: &str, checker: &str, more: &[&str]) -> (PathBuf, crate::support::Answer) {
    let run = dir.join(name);
    let mut words = vec!["--checker", checker];
    words.extend(more);
    let answer = Running::start(&mut audit(ONE, &run, &words)).finish();
    (run, answer)
}

#[test]
fn allclose_in_python_detects_what_the_official_check_detects_and_is_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let counter = dir.path().join("runs");
    let checker = allclose("1e-2", &counter);
    let (run, answer) = checked(dir.path(), "run", &checker, &[]);
    let mut summary = answer.exits(0).json();
    let (own, official) = (row(&summary, "checker"), row(&summary, "kernelbench-2025"));
    for key in ["inputs", "detected", "witnessed", "false_kills", "correct_runs", "unsupported", "exhausted"]
    {
        assert_eq!(own[key], official[key], "{key}");
    }
    assert_eq!(own["checker_failures"], 0);
    assert_eq!(own["checker"], checker.as_str());
    assert!(official.get("checker").is_none(), "{official}");
    assert_eq!(summary["headline_protocol"], "checker", "one's own stands first");
    let asked = runs(&counter);
    // Five inputs for each correct implementation, and at least one for each mutant that gives outputs.
    let (controls, mutants) = (own["correct_runs"].as_u64().unwrap(), own["detected"].as_u64().unwrap());
    assert!(asked as u64 > controls + mutants / 2, "{asked} runs");

    // A finished run that is resumed gives the same summary without a run.
    let again = checked(dir.path(), "run", &checker, &["--resume"]).1.exits(0);
    let mut again = again.json();
    assert_eq!(runs(&counter), asked);
    forget_times(&mut summary);
    forget_times(&mut again);
    assert_eq!(again, summary);

    let page = crate::support::assay(&["report", run.to_str().unwrap()]).exits(0).stdout;
    let line = page.lines().find(|l| l.starts_with("checker ") && l.contains(" own "));
    assert!(line.is_some(), "{page}");
}

#[test]
fn an_audit_killed_while_it_asks_continues_with_what_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    let want = {
        let answer = checked(dir.path(), "a", &allclose("1e-2", &whole), &[]).1.exits(0);
        let mut summary = answer.json();
        forget_times(&mut summary);
        summary
    };
    let run = dir.path().join("b");
    let checker = allclose("1e-2", &part);
    let words = ["--checker", checker.as_str(), "--jobs", "1"];
    let answered = || {
        let count =
            |c: rusqlite::Connection| c.query_row("SELECT count(*) FROM checks", [], |r| r.get::<_, i64>(0));
        database(&run).and_then(count).unwrap_or(0)
    };
    let mut running = Running::start(&mut audit(ONE, &run, &words));
    running.wait_until("some mutants are asked about", || answered() > 40);
    running.signal(libc::SIGKILL);
    assert_eq!(running.finish().status.code(), None, "it was killed");
    assert!(!run.join("summary.json").exists(), "killed too late");
    let mut words = words.to_vec();
    words.push("--resume");
    let mut summary = Running::start(&mut audit(ONE, &run, &words)).finish().exits(0).json();
    forget_times(&mut summary);
    // The commands differ in the name of their counter's file.
    let mut want = want;
    forget_commands(&mut summary);
    forget_commands(&mut want);
    assert_eq!(summary, want);
    // What is not committed is asked again: at most one mutant's inputs.
    let (all, twice) = (runs(&whole), runs(&part));
    assert!(twice >= all && twice <= all + 20, "{twice} runs in two parts, {all} in one");
}

#[test]
fn a_checker_that_fails_neither_kills_nor_passes() {
    let dir = tempfile::tempdir().unwrap();
    for (name, checker, timeouts) in [
        ("code", "test -d {dir}; echo no such module >&2; exit 3", false),
        ("signal", "test -d {dir}; kill -SEGV $$", false),
        ("late", "test -d {dir}; sleep 30", true),
    ] {
        let one = dir.path().join(format!("{name}.toml"));
        let text = format!(
            "name = \"mine\"\ninputs = [\"official#0\"]\natol = 1e-2\nrtol = 1e-2\nchecker = {checker:?}\nchecker_seconds = 1\n"
        );
        std::fs::write(&one, text).unwrap();
        let run = dir.path().join(name);
        let words = ["--jobs", "24", "--protocol", one.to_str().unwrap()];
        let answer = Running::start(&mut audit(ONE, &run, &words)).finish();
        let answer = answer.exits(0).says(&["warning", "`mine` failed", "official#0"]);
        if name == "code" {
            assert!(answer.stderr.contains("exit code 3: no such module"), "{}", answer.stderr);
        }
        let summary = answer.json();
        let mine = row(&summary, "mine");
        let witnessed = mine["witnessed"].as_u64().unwrap();
        assert!(witnessed > 0);
        assert_eq!(mine["inputs"], 1, "the protocol says which inputs");
        assert_eq!(
            (mine["false_kills"].as_u64(), mine["correct_runs"].as_u64()),
            (Some(0), Some(0)),
            "{mine}"
        );
        // A kernel without output is rejected by any harness, without asking.
        let faults: i64 = database(&run)
            .and_then(|c| {
                c.query_row("SELECT count(*) FROM checks WHERE verdict = 'fault'", [], |r| r.get(0))
            })
            .unwrap();
        assert_eq!(mine["detected"].as_i64(), Some(faults), "{mine}");
        let failures = mine["checker_failures"].as_u64().unwrap();
        assert!(failures + faults.cast_unsigned() > witnessed, "{mine}");
        assert_eq!(mine["checker_timeouts"].as_u64().unwrap() > 0, timeouts, "{mine}");
    }
}

#[test]
fn a_checker_that_rejects_everything_kills_falsely_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let answer = checked(dir.path(), "run", "test ! -d {dir}", &["--fail-under", "50"]).1.exits(1);
    let summary = answer.says(&["`checker` detects 100.0%", "false kills"]).json();
    let own = row(&summary, "checker");
    assert_eq!(own["detected"], own["witnessed"]);
    assert!(own["correct_runs"].as_u64() > Some(0));
    assert_eq!(own["false_kills"], own["correct_runs"]);
}

#[test]
fn a_command_that_cannot_be_one_is_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, checker: &str| checked(dir.path(), name, checker, &[]).1.exits(2);
    refused("a", "/no/such/checker {dir}").says(&["cannot be started", "/no/such/checker"]);
    refused("b", "true").says(&["--checker", "{dir}"]);
    let answer = checked(dir.path(), "c", "true {dir}", &["--checker-timeout", "0"]).1;
    answer.exits(2).says(&["--checker-timeout"]);
    let file = dir.path().join("p.toml");
    std::fs::write(
        &file,
        "name = \"mine\"\nsuite_budget = 2\natol = 1\nrtol = 1\nchecker = \"true {dir}\"\n",
    )
    .unwrap();
    let mut c = command(&["audit", "--protocol"]);
    Running::start(c.arg(&file)).finish().exits(2).says(&["p.toml:5:", "suite_budget"]);
}

#[test]
fn several_checkers_have_a_row_each_and_a_name_each() {
    let dir = tempfile::tempdir().unwrap();
    let (run, answer) = checked(dir.path(), "run", "test -d {dir}", &["--checker", "test ! -d {dir}"]);
    let summary = answer.exits(0).json();
    assert_eq!(row(&summary, "checker")["false_kills"], 0);
    assert_eq!(row(&summary, "checker-2")["detected"], row(&summary, "checker-2")["witnessed"]);
    assert_eq!(read_json(&run.join("manifest.json"))["protocol_order"][1], "checker-2");
    // Another command is another run.
    let other = checked(dir.path(), "run", "true {dir}", &["--checker", "false {dir}", "--resume"]).1;
    other.exits(2).says(&["protocols", "changed"]);
}

#[test]
fn ctrl_c_ends_the_checkers_too() {
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let checker = format!("test -d {{dir}}; touch '{}'; sleep 60", started.display());
    let run = dir.path().join("run");
    let mut running = Running::start(&mut audit(ONE, &run, &["--checker", &checker]));
    running.wait_until("a checker is at work", || started.exists());
    let pressed = Instant::now();
    running.signal(libc::SIGINT);
    let answer = running.finish();
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    answer.exits(130).says(&["--resume"]);
    let c = database(&run).unwrap();
    let answers: i64 = c.query_row("SELECT count(*) FROM checks", [], |r| r.get(0)).unwrap();
    assert_eq!(answers, 0, "an interrupted run is no answer");
}
