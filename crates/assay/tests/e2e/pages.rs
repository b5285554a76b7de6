//! What people read: pages no wider than promised, pipes that close, reports of a finished run.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::support::{Running, assay, command, files, fixture, read_json, widest};

/// Where stdout is no terminal, nothing but source text is wider than this.
const COLUMNS: usize = 80;
/// Help is wrapped here.
const HELP_COLUMNS: usize = 100;

/// A finished audit of the two small problems and its page, made once.
pub(crate) fn finished() -> &'static (tempfile::TempDir, PathBuf, String) {
    static FINISHED: OnceLock<(tempfile::TempDir, PathBuf, String)> = OnceLock::new();
    FINISHED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let mut c = command(&["audit", "--problems", &fixture("problems"), "--out"]);
        let answer = Running::start(c.arg(&run)).finish().exits(0);
        assert_eq!(answer.stderr, "", "quiet when not a terminal");
        (dir, run, answer.stdout)
    })
}

#[test]
fn the_first_screen_says_what_is_missed_in_eighty_columns() {
    let (_, run, page) = finished();
    let (columns, line) = widest(page);
    assert!(columns <= COLUMNS, "{columns} columns: {line}");
    let summary = read_json(&run.join("summary.json"));
    let first = &summary["protocols"][0];
    let missed = first["witnessed"].as_u64().unwrap() - first["detected"].as_u64().unwrap();
    let headline = page.lines().next().unwrap();
    assert!(headline.starts_with(&format!("kernelbench-2025 misses {missed} of ")), "{headline}");
    for part in ["false kills", "published", "Sanitizer:", "Desk extents", "Next:", "assay report", "Time:"] {
        assert!(page.contains(part), "no `{part}` in\n{page}");
    }
    for protocol in summary["protocols"].as_array().unwrap() {
        let name = protocol["name"].as_str().unwrap();
        assert!(page.lines().any(|l| l.starts_with(name)), "no row of {name} in\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn no_list_is_wider_than_eighty_columns_in_a_pipe() {
    let kernel = fixture("kernels/faults.cu");
    let small = fixture("problems");
    let fill = ["--grid", "1", "--block", "64", "--arg", "y=f32[64]:uninit", "--arg", "n=i32:64"];
    let mut run = vec!["run", &kernel, "--kernel", "fill"];
    run.extend(fill);
    for args in [
        vec!["problems"],
        vec!["problems", "--level", "1"],
        vec!["problems", "--problems", &small],
        vec!["mutators"],
        vec!["protocols"],
        run,
    ] {
        let answer = assay(&args).exits(0);
        let (columns, line) = widest(&answer.stdout);
        assert!(columns > 20 && columns <= COLUMNS, "{args:?}, {columns} columns: {line}");
        assert_eq!(answer.stderr, "", "{args:?}");
    }
}

#[test]
fn help_of_every_command_fits_a_hundred_columns_and_exits_zero() {
    let top = assay(&["--help"]).exits(0).stdout;
    assert!(top.contains("Exit codes: 0 fine; 1 the thing judged is wrong"), "{top}");
    let commands = [
        "audit",
        "mutate",
        "mutators",
        "problems",
        "protocols",
        "run",
        "check",
        "suite",
        "export",
        "report",
        "compare",
        "doctor",
    ];
    for c in commands {
        assert!(top.contains(&format!("  {c}")), "{top}");
        for flag in ["--help", "-h"] {
            let help = assay(&[c, flag]).exits(0).stdout;
            let (columns, line) = widest(&help);
            assert!(columns <= HELP_COLUMNS, "{c} {flag}, {columns} columns: {line}");
            assert!(help.contains("--json") && help.contains("--quiet") && help.contains("--jobs"), "{help}");
        }
    }
    let (columns, line) = widest(&top);
    assert!(columns <= HELP_COLUMNS, "{columns} columns: {line}");
    assert!(!top.contains("compile-worker"), "the compile worker is no command for people");
    assert!(assay(&["--version"]).exits(0).stdout.starts_with("assay "));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let kernel = problem_source();
    for args in [
        vec!["problems"],
        vec!["problems", "--json"],
        vec!["mutate", &kernel],
        vec!["mutate", &kernel, "--json"],
        vec!["--help"],
    ] {
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        {
            let mut first = String::new();
            BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            assert!(!first.is_empty());
        }
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), out.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}

/// A kernel with more mutants than a pipe holds.
fn problem_source() -> String {
    crate::support::repository("problems/level1/63_conv_2d/kernel.cu").to_str().unwrap().to_owned()
}

#[test]
fn an_audit_whose_reader_is_gone_still_finishes_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut c = command(&["audit", "--problems", &fixture("problems/add_clamp"), "--out"]);
    let mut child = c.arg(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(run.join("summary.json").is_file(), "{:?}", files(&run));
}

#[test]
fn fail_under_a_hundred_exits_one_and_an_easy_bar_zero() {
    let dir = tempfile::tempdir().unwrap();
    let problem = fixture("problems/add_clamp");
    let audit = |name: &str, more: &[&str]| {
        let mut c = command(&["audit", "--json", "--problems", &problem, "--out"]);
        c.arg(dir.path().join(name)).args(more);
        Running::start(&mut c).finish()
    };
    // The official check misses the lost last block, among others.
    let answer = audit("a", &["--fail-under", "100"]).exits(1).says(&["kernelbench-2025", "--fail-under"]);
    assert!(answer.json()["pipeline"]["witnessed"].as_u64() > Some(0), "the summary is printed all the same");
    audit("b", &["--fail-under", "1"]).exits(0);
    // The bar is for the first protocol named.
    let strong = audit("c", &["--protocol", "targeted-all", "--fail-under", "60"]).exits(0).json();
    assert_eq!(strong["protocols"][0]["name"], "targeted-all");
    assert_eq!(strong["headline_protocol"], "targeted-all");
    assert_eq!(strong["protocols"].as_array().unwrap().len(), 8, "the rest is scored too");
}

#[test]
fn a_protocol_of_ones_own_is_scored_first() {
    let dir = tempfile::tempdir().unwrap();
    let protocol = dir.path().join("mine.toml");
    std::fs::write(
        &protocol,
        "name = \"mine\"\ninputs = [\"official#0\", \"official*-1#0\"]\natol = 1e-3\nrtol = 1e-3\n",
    )
    .unwrap();
    let mut c = command(&["audit", "--json", "--problems", &fixture("problems/add_clamp"), "--protocol"]);
    c.arg(&protocol).arg("--out").arg(dir.path().join("run"));
    let summary = Running::start(&mut c).finish().exits(0).json();
    let rows = summary["protocols"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"], &rows[0]["inputs"]), (9, &"mine".into(), &2.into()));
    assert!(
        rows[0]["detected"].as_u64() > rows[1]["detected"].as_u64().map(|n| n.saturating_sub(1)),
        "{rows:?}"
    );
}

#[test]
fn a_finished_run_is_reported_and_its_suites_printed() {
    let (_, run, page) = finished();
    let path = run.to_str().unwrap();
    let before = files(run);
    let again = assay(&["report", path]).exits(0).stdout;
    assert_eq!(again.lines().next(), page.lines().next(), "the same headline");
    let (columns, line) = widest(&again);
    assert!(columns <= COLUMNS || line.contains("  "), "{columns} columns: {line}");
    assert!(
        again.contains("@@") || again.contains("replace") || again.contains("remove"),
        "survivors with diffs:\n{again}"
    );
    assert_eq!(assay(&["report", path, "--json"]).exits(0).json(), read_json(&run.join("summary.json")));

    for budget in ["1", "2", "5"] {
        let text = assay(&["suite", path, "--budget", budget]).exits(0).stdout;
        assert!(text.contains("9/1") && text.contains("9/2"), "{text}");
        assay(&["suite", path, "--budget", budget, "--json"]).exits(0).json();
    }
    assert_eq!(files(run), before, "readers leave nothing behind");
}

#[test]
fn a_suite_of_a_run_is_a_protocol_that_detects_what_the_run_says() {
    let (_, run, _) = finished();
    let suite = assay(&["suite", run.to_str().unwrap(), "--budget", "2", "--json"]).exits(0).json();
    let file = run.join("suites/budget-2.toml");
    let dir = tempfile::tempdir().unwrap();
    let mut c = command(&["audit", "--json", "--problems", &fixture("problems"), "--protocol"]);
    c.arg(&file).arg("--out").arg(dir.path().join("run"));
    let summary = Running::start(&mut c).finish().exits(0).json();
    let first = &summary["protocols"][0];
    assert_eq!(first["name"], "suite-2");
    assert!(first["inputs"].as_u64() <= Some(2), "{first}");
    assert_eq!(first["detected_percent"], suite["full_pool"], "{first}\n{suite}");
}

#[test]
fn the_gate_alone_passes_sound_substrates_and_names_the_fault_of_a_wrong_one() {
    let (good, bad) = (fixture("problems"), fixture("bad/wrong_substrate"));
    let rows = assay(&["problems", "--verify", "--json", "--problems", &good]).exits(0).json();
    assert!(rows.as_array().unwrap().iter().all(|r| r["passes"] == true), "{rows}");
    let rows = assay(&["problems", "--verify", "--json", "--problems", &bad]).exits(3).json();
    assert_eq!((rows[0]["id"].as_u64(), rows[0]["passes"].as_bool()), (Some(12), Some(false)));
    assert!(rows[0]["reason"].as_str().unwrap().contains("wrong"), "{rows}");
}

#[test]
fn doctor_reports_every_planted_fault() {
    let answer = assay(&["doctor", "--json"]).exits(0).json();
    let detectors = answer["detectors"].as_array().unwrap();
    for d in detectors {
        assert_eq!(d["ok"], true, "{d}");
    }
    for kind in assay_simt::FindingKind::ALL {
        assert!(detectors.iter().any(|d| d["planted"] == kind.name()), "{kind}");
    }
    let page = assay(&["doctor"]).exits(0).stdout;
    let (columns, line) = widest(page.split_once("\n\n").unwrap().1);
    assert!(columns <= COLUMNS, "{columns} columns: {line}");
}
