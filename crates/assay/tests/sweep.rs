//! `assay sweep`, `rules`, `guard-eval` from outside, on emulated devices.
//!
//! The figures asserted here are the boundary paper's (arXiv 2609.22991). None of them stands in the program: a device
//! file states mechanisms, and the last test changes one and sees the counts change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn assay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_assay"))
}

fn run(args: &[&str]) -> Output {
    assay().args(args).output().unwrap()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| {
        panic!("{e}: {}\n{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A device in a file, over a plan with small boundaries: everything a sweep does, in seconds.
const SMALL_PLAN: &str = r#"
name = "small"
title = "small boundaries"
layouts = ["contig", "bT", "aT", "slice"]
small = "2^12"
boundaries = ["2^16", "2^17"]

[[shape]]
mkn = "16,8,16"
dtypes = ["f32", "f16"]
grid = 3
indexed = true

[[shape]]
mkn = "16,16,8"
dtypes = ["f32"]
grid = 3
indexed = true

[[shape]]
mkn = "32,8,8"
dtypes = ["f32"]
grid = 1
"#;

const SMALL_DEVICE: &str = r#"
name = "small"
source = "the mechanisms of mps-2.14.0 at small counts"

[[path]]
when = "out.numel > 2^17"
ignores_strides = true

[[path]]
when = "view.numel >= 2^16"
raises = "too large"

[[path]]
when = "always"
wraps = { at = "2^17", operands = "contiguous" }
"#;

struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    fn new(device: &str) -> Small {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("plan.toml"), SMALL_PLAN).unwrap();
        fs::write(dir.path().join("device.toml"), device).unwrap();
        Small { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, out: &str) -> Command {
        let mut c = assay();
        c.args(["sweep", "bmm", "--json", "--backend"])
            .arg(format!("emulated:{}", self.path("device.toml")))
            .args(["--plan", &self.path("plan.toml"), "--out", &self.path(out)]);
        c
    }

    fn sweep(&self, out: &str) -> Value {
        let output = self.command(out).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        json(&output)
    }
}

#[test]
fn small_devices_are_swept_to_the_single_batch_and_explained() {
    let small = Small::new(SMALL_DEVICE);
    let summary = small.sweep("run");
    assert!(
        summary["outcomes"]["wrong"].as_u64().unwrap() > 0
            && summary["outcomes"]["error"].as_u64().unwrap() > 0
    );
    let learned = json(&run(&["rules", &small.path("run"), "--json"]));
    assert_eq!(learned["reproduced"], learned["total"], "{learned}");
    let rules = learned["rules"].to_string();
    for part in [
        "out.numel > 2^17 and transposed",
        "view.numel >= 2^16",
        "contiguous.numel > 2^17",
        "strides_ignored",
    ] {
        assert!(rules.contains(part), "{part} in {rules}");
    }
    let human = run(&["rules", &small.path("run")]);
    let page = String::from_utf8_lossy(&human.stdout).into_owned();
    assert!(
        page.contains("the output has more than 2^17 elements")
            && page.lines().all(|l| l.chars().count() <= 80),
        "{page}"
    );
}

#[test]
fn another_mechanism_gives_other_counts() {
    let a = Small::new(SMALL_DEVICE).sweep("run");
    let b = Small::new(&SMALL_DEVICE.replace("view.numel >= 2^16", "view.numel >= 2^17")).sweep("run");
    assert_ne!(a["outcomes"], b["outcomes"]);
    let c = Small::new("name = \"right\"\nsource = \"a device without a fault\"\n").sweep("run");
    assert_eq!(c["outcomes"]["ok"], c["runs"]);
}

#[test]
fn every_outcome_is_recorded_as_what_it_is() {
    for (path, outcome) in [
        ("aborts = \"failed assertion\"", "crash"),
        ("raises = \"no\"", "error"),
        ("zeros = true", "truncated"),
        ("zero_from = \"2^17\"", "truncated"),
        ("first_modulo = \"2^17\"", "truncated"),
        ("observed_unexplained = true", "wrong"),
        ("hangs = true", "timeout"),
    ] {
        let device =
            format!("name = \"d\"\nsource = \"made up\"\n[[path]]\nwhen = \"out.numel > 2^17\"\n{path}\n");
        let small = Small::new(&device);
        let out = small
            .command("run")
            .args([
                "--shapes",
                "16,8,16",
                "--dtype",
                "f32",
                "--layout",
                "contig",
                "--boundary",
                "2^17",
                "--timeout",
                "1,1",
            ])
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(0), "{path}: {}", String::from_utf8_lossy(&out.stderr));
        let summary = json(&out);
        assert!(summary["outcomes"][outcome].as_u64().unwrap() > 0, "{path}: {summary}");
        let records = fs::read_to_string(small.path("run/records.jsonl")).unwrap();
        if outcome == "crash" {
            assert!(records.contains("failed assertion"), "the last words of a crash are kept");
        }
    }
    let transfer = "name = \"d\"\nsource = \"made up\"\n[transfer]\nzero_from_byte = \"2^18\"\n";
    let summary = Small::new(transfer).sweep("run");
    assert!(summary["outcomes"]["input_corrupt"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn a_killed_sweep_continues_and_gives_the_same_records() {
    let small = Small::new(SMALL_DEVICE);
    let whole = small.sweep("whole");
    let mut child = small.command("killed").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let records = small.path("killed/records.jsonl");
    // Until some are there.
    for _ in 0..2000 {
        if fs::metadata(&records).is_ok_and(|m| m.len() > 20_000) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = fs::read(&records).unwrap();
    assert!(!before.is_empty());
    // A torn line, as a kill in the middle of a write leaves it.
    let mut torn = before.clone();
    torn.extend_from_slice(b"{\"schema\":1,\"run_id\":99");
    fs::write(&records, &torn).unwrap();

    let refused = small.command("killed").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "without --resume");
    let resumed = small.command("killed").arg("--resume").output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert_eq!(json(&resumed), whole);
    let after = fs::read(&records).unwrap();
    let kept = before.iter().rposition(|&b| b == b'\n').unwrap() + 1;
    assert_eq!(&after[..kept], &before[..kept], "what was done is not done again");
}

#[test]
fn every_dtype_is_right_on_a_right_device_and_another_seed_makes_other_values() {
    let small = Small::new("name = \"right\"\nsource = \"a device without a fault\"\n");
    let sweep = |out: &str, more: &[&str]| {
        let o = small
            .command(out)
            .args(["--shapes", "16,8,16", "--dtype", "f64,bf16"])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
        let summary = json(&o);
        assert_eq!(summary["outcomes"]["ok"], summary["runs"], "{summary}");
        fs::read_to_string(small.path(out).as_str().to_owned() + "/records.jsonl").unwrap()
    };
    let (plain, seeded) = (sweep("plain", &[]), sweep("seeded", &["--seed", "7", "--full"]));
    assert!(
        plain.contains("\"seed\":0,") && !seeded.contains("\"seed\":0,") && seeded.contains("\"seed\":9,")
    );
    // A product in float64 is exact; one in bfloat16 is rounded, and differently for other values.
    let errors = |text: &str| -> Vec<f64> {
        let rows = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        let random = rows.filter(|r| r["dtype"] == "bf16" && r["kind"] == "random");
        let mut all: Vec<f64> = random.filter_map(|r| r["max_rel_err"].as_f64()).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    assert!(errors(&plain).iter().all(|&e| e > 0.0) && errors(&plain) != errors(&seeded));
}

#[test]
fn a_start_that_recorded_nothing_can_be_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let sweep =
        |python: &str| run(&["sweep", "bmm", "--backend", "torch", "--python", python, "--out", text(&out)]);
    for python in ["/nonexistent/python", "/nonexistent/another"] {
        let o = sweep(python);
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(2), "{err}");
        assert!(err.contains(python), "{err}");
    }
}

#[test]
fn runs_beyond_the_memory_of_a_device_are_skipped_and_say_so() {
    // 60% of this is 3 GiB, which the estimate has for the host, and 474,528 bytes: room for the tensors of the small sizes.
    let device = "name = \"d\"\nsource = \"made up\"\nmemory = 5369500000\n";
    let small = Small::new(device);
    let o = small.command("run").output().unwrap();
    let summary = json(&o);
    assert!(summary["outcomes"]["skipped"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["outcomes"]["ok"].as_u64().unwrap() > 0, "{summary}");
    assert!(fs::read_to_string(small.path("run/records.jsonl")).unwrap().contains("60% of the memory"));
}

#[test]
fn two_sweeps_are_compared_run_by_run_apart_from_times_and_names() {
    let small = Small::new(SMALL_DEVICE);
    small.sweep("first");
    small.sweep("second");
    let same = run(&["compare", &small.path("first"), &small.path("second"), "--json"]);
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stdout));
    let found = json(&same);
    assert_eq!(found["common"], found["identical"]);
    // One digit of one error, and one run less.
    let records = fs::read_to_string(small.path("second/records.jsonl")).unwrap();
    let mut lines: Vec<String> = records.lines().map(str::to_owned).collect();
    lines.pop();
    let at = lines.iter().position(|l| l.contains("\"cls\":\"wrong\"")).unwrap();
    lines[at] = lines[at].replace("\"n_batches_bad\":", "\"n_batches_bad\":1");
    let changed = small.path("changed.jsonl");
    fs::write(&changed, lines.join("\n") + "\n").unwrap();
    let o = run(&["compare", &small.path("first"), &changed, "--json"]);
    assert_eq!(o.status.code(), Some(1));
    let found = json(&o);
    assert_eq!(found["differing"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["only_first"].as_array().unwrap().len(), 1);
}

#[test]
fn bad_input_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o");
    let plan = dir.path().join("plan.toml");
    fs::write(&plan, "name = 1").unwrap();
    let device = dir.path().join("device.toml");
    fs::write(&device, "name = \"d\"\nsource = \"x\"\n[[path]]\nwhen = \"out.numel >> 3\"\n").unwrap();
    let rows = dir.path().join("rows.jsonl");
    fs::write(&rows, "{\"M\": 1}\n").unwrap();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (
            vec!["sweep", "bmm", "--backend", "emulated:nothing", "--out", text(&out)],
            "there is no emulated device",
        ),
        (vec!["sweep", "bmm", "--backend", "abacus", "--out", text(&out)], "is not a backend"),
        (
            vec!["sweep", "nothing", "--backend", "emulated:correct", "--out", text(&out)],
            "there is no operation",
        ),
        (
            vec!["sweep", "bmm", "--backend", "emulated:correct", "--plan", "nothing", "--out", text(&out)],
            "there is no plan",
        ),
        (
            vec!["sweep", "bmm", "--backend", "emulated:correct", "--plan", text(&plan), "--out", text(&out)],
            "plan.toml",
        ),
        (
            vec!["sweep", "bmm", "--backend", "emulated:correct", "--shapes", "1,2", "--out", text(&out)],
            "is not a shape",
        ),
        (
            vec!["sweep", "bmm", "--backend", "emulated:correct", "--dtype", "i64", "--out", text(&out)],
            "floating point",
        ),
        (
            vec!["sweep", "bmm", "--backend", "emulated:correct", "--boundary", "2^63", "--out", text(&out)],
            "at most 2^50",
        ),
        (
            vec!["sweep", "sum", "--backend", "emulated:correct", "--boundary", "2^63", "--out", text(&out)],
            "at most 2^50",
        ),
        (
            vec!["sweep", "sum", "--backend", "emulated:correct", "--full", "--out", text(&out)],
            "for bmm alone",
        ),
        (vec!["rules", text(&rows)], "line 1"),
        (vec!["rules", "/nonexistent"], "cannot read"),
        (vec!["guard-eval", text(&rows)], "line 1"),
    ];
    for (args, what) in cases {
        let o = run(&args);
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains(what), "{args:?}: {err}");
    }
    let name = format!("emulated:{}", text(&device));
    let o = run(&["sweep", "bmm", "--backend", &name, "--out", text(&out)]);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("path 1"));
}

#[test]
fn operations_of_case_files_are_swept_and_arange_fails_as_published() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = |device: &str| {
        let out = dir.path().join(device);
        let name = format!("emulated:{device}");
        let o = run(&["sweep", "arange", "--backend", &name, "--out", text(&out), "--json"]);
        assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
        json(&o)
    };
    // 2^32 elements are 65,536 batches of 65,536: right up to there, then the published behaviour of each version.
    for (device, outcome) in [("mps-2.14.0", "wrong"), ("mps-2.13.0", "error"), ("cuda-2.14.0", "truncated")]
    {
        let summary = sweep(device);
        let s = &summary["series"][0]["switch_points"];
        assert_eq!(s.as_array().unwrap().len(), 1, "{summary}");
        assert_eq!((s[0]["below"].as_u64(), s[0]["above"].as_u64()), (Some(65_536), Some(65_537)));
        assert!([outcome, "truncated"].contains(&s[0]["to"].as_str().unwrap()), "{device}: {s}");
    }
}

/// A Python that has PyTorch: of `ASSAY_TORCH_PYTHON`, else none.
fn torch() -> Option<String> {
    let python = std::env::var("ASSAY_TORCH_PYTHON").ok().filter(|p| Path::new(p).is_file());
    if python.is_none() {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
    }
    python
}

#[test]
fn a_real_pytorch_on_the_cpu_is_right_in_every_layout_forward_and_backward() {
    let Some(python) = torch() else { return };
    for backward in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let plan = dir.path().join("plan.toml");
        fs::write(
            &plan,
            format!(
                "name = \"tiny\"\ntitle = \"one boundary\"\nbackward = {backward}\nlayouts = [\"bT\", \"aT\", \"slice\"]\n\
                 small = \"2^12\"\nboundaries = [\"2^14\"]\naround = 0\nfull_seeds = [0]\ncalibration_seeds = [0]\n\
                 index_points = false\nswitch_kinds = []\n[[shape]]\nmkn = \"16,8,16\"\ndtypes = [\"f32\"]\n"
            ),
        )
        .unwrap();
        let out = dir.path().join("run");
        let o = run(&[
            "sweep",
            "bmm",
            "--backend",
            "torch",
            "--python",
            &python,
            "--plan",
            text(&plan),
            "--out",
            text(&out),
            "--json",
        ]);
        assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
        let summary = json(&o);
        assert_eq!(summary["outcomes"]["ok"], summary["runs"], "{summary}");
        let records = fs::read_to_string(out.join("records.jsonl")).unwrap();
        assert!(records.contains("aten::bmm") && records.contains("\"torch\":\"2."), "{records}");
    }
}

/// What takes minutes: `cargo xtask slow`.
mod slow {
    use super::*;

    #[test]
    #[ignore = "takes minutes: cargo xtask slow"]
    fn the_papers_main_sweep_comes_out_as_published_and_its_rules_are_table_3() {
        let dir = tempfile::tempdir().unwrap();
        let sweep = |plan: &str| {
            let out = dir.path().join(plan);
            let o = run(&[
                "sweep",
                "bmm",
                "--backend",
                "emulated:mps-2.14.0",
                "--plan",
                plan,
                "--out",
                text(&out),
                "--json",
            ]);
            assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
            (json(&o), out)
        };
        let (summary, main) = sweep("paper-main");
        assert_eq!(summary["runs"], 1596);
        assert_eq!(summary["calibration"], 24);
        assert_eq!(summary["batch_sizes"], 42);
        let count = |s: &Value, name: &str| s["outcomes"][name].as_u64().unwrap();
        assert_eq!(
            (count(&summary, "ok"), count(&summary, "error"), count(&summary, "wrong")),
            (1285, 214, 97)
        );
        // Every switch point lies between two neighbouring batch sizes.
        for series in summary["series"].as_array().unwrap() {
            for s in series["switch_points"].as_array().unwrap() {
                assert_eq!(s["above"].as_u64().unwrap() - s["below"].as_u64().unwrap(), 1, "{series}");
            }
        }

        let learned = json(&run(&["rules", text(&main), "--json"]));
        assert_eq!(learned["reproduced"], learned["total"]);
        assert_eq!(learned["by_input"]["random"], serde_json::json!([1076, 1076]));
        assert_eq!(learned["by_input"]["index_unchanged"], 36);
        let list: Vec<(String, String, String, String)> = learned["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| {
                let field = |k: &str| r[k].as_str().unwrap_or_default().to_owned();
                (field("when"), field("outcome"), field("extent"), field("reading"))
            })
            .collect();
        let beyond = "batches beyond element 2^32 of an operand";
        let expected = [
            ("out.numel > 2^32 and transposed", "wrong", "every batch", "strides_ignored"),
            ("out.numel > 2^32", "ok", "", ""),
            ("view.numel >= 2^31", "error", "", ""),
            ("contiguous.numel > 2^32", "wrong", beyond, "wrapped_2^32"),
            ("always", "ok", "", ""),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|e| (e.0.to_owned(), e.1.to_owned(), e.2.to_owned(), e.3.to_owned()))
            .collect();
        assert_eq!(list, expected);
        // What the main sweep cannot decide is said: whether rule 1's neighbour goes before the last one.
        assert!(!learned["undecided"].as_array().unwrap().is_empty());

        // Table 3 as it stands in a file says the same.
        let table = repository().join("testdata/sweep/table-3.toml");
        let applied = json(&run(&["rules", text(&main), "--apply", text(&table), "--json"]));
        assert_eq!((&applied["reproduced"], &applied["total"]), (&learned["reproduced"], &learned["total"]));

        // The rules learned from the main sweep, applied to the extension series, miss nothing.
        let saved = dir.path().join("learned.toml");
        let o = run(&["rules", text(&main), "--save", text(&saved), "--quiet"]);
        assert_eq!(o.status.code(), Some(0));
        let (far, far_dir) = sweep("paper-far");
        assert_eq!((far["runs"].as_u64(), far["calibration"].as_u64()), (Some(124), Some(12)));
        let o = json(&run(&["rules", text(&far_dir), "--apply", text(&saved), "--json"]));
        assert_eq!(
            (&o["reproduced"], &o["total"]),
            (&serde_json::json!(112), &serde_json::json!(112)),
            "{o}"
        );
        assert_eq!(o["by_input"]["index_unchanged"], 12);

        // Table 9's rows of both: every silent run has a tensor beyond 2^32 elements.
        let guard = json(&run(&["guard-eval", text(&main), text(&far_dir), "--json"]));
        let row = &guard["rows"][0];
        let total = |k: &str| row[k].as_u64().unwrap();
        assert_eq!(
            (total("runs"), total("silent"), total("stopped_at_least"), total("stopped_more")),
            (1720, 129, 129, 129)
        );
        assert_eq!((total("correct_stopped"), total("correct")), (198 + 40, 1285 + 52));
    }

    #[test]
    #[ignore = "takes minutes: cargo xtask slow"]
    fn every_operation_of_the_case_files_is_right_on_a_real_pytorch() {
        let Some(python) = torch() else { return };
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        // The small point alone: 2^24 elements of the crossing tensor.
        let o = run(&[
            "sweep",
            "all",
            "--backend",
            "torch",
            "--python",
            &python,
            "--boundary",
            "2^20",
            "--dtype",
            "f32,i64,f64",
            "--out",
            text(&out),
            "--json",
        ]);
        assert_eq!(o.status.code(), Some(0), "{}", String::from_utf8_lossy(&o.stderr));
        let summary = json(&o);
        assert!(summary["runs"].as_u64().unwrap() >= 26, "{summary}");
        assert_eq!(summary["outcomes"]["ok"], summary["runs"], "{summary}");
    }
}
