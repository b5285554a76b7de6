//! `assay sweep OP --backend kernel:FILE.cu`: kernels with a 32-bit index, whose boundaries are found to the step and
//! explained with their line, and with a 64-bit one, which are right throughout; within 1 GiB of memory. Cases lie in
//! `testdata/sweep/kernels`, a `.toml` beside each `.cu`, and are found, never listed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::huge::{LIMIT_BYTES, measured};
use crate::support::{Running, assay, command, read_json, repository};

/// What a sweep says: without switch points, that all is right.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    op: String,
    #[serde(default)]
    switch: Vec<Switch>,
}

/// A change of outcome between `below` and the next size.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    /// The series.
    shape: String,
    below: u64,
    /// Any, where it depends on how far a run gets.
    from: Option<String>,
    to: String,
    line: u64,
    /// What the mechanism says.
    says: Vec<String>,
}

fn cases() -> Vec<PathBuf> {
    let folder = repository("testdata/sweep/kernels");
    let files = std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path());
    let (mut cu, toml): (Vec<_>, Vec<_>) = files.partition(|p| p.extension().is_some_and(|e| e == "cu"));
    for (one, other) in [(&cu, "toml"), (&toml, "cu")] {
        for p in one {
            assert!(p.with_extension(other).exists(), "{} has no .{other}", p.display());
        }
    }
    assert!(!cu.is_empty());
    cu.sort();
    cu
}

fn check(file: &Path, case: &Case) {
    let what = file.file_stem().and_then(|s| s.to_str()).expect("a name");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let args =
        ["sweep", &case.op, "--json", "--quiet", "--jobs", "2", "--backend"].map(str::to_owned).to_vec();
    let more = [format!("kernel:{}", file.display()), "--out".into(), out.display().to_string()];
    let args: Vec<String> = args.into_iter().chain(more).collect();
    let started = Instant::now();
    let (status, summary, bytes) = measured(&args);
    println!("{what}: {:.1} s, {} MB", started.elapsed().as_secs_f64(), bytes >> 20);
    assert!(bytes < LIMIT_BYTES, "{what}: {bytes} bytes");
    assert_eq!(read_json(&out.join("summary.json")), summary, "{what}");

    let runs = summary["runs"].as_u64().expect("runs");
    let records = std::fs::read_to_string(out.join("records.jsonl")).expect("records");
    assert_eq!(records.lines().count() as u64, runs, "{what}");
    let right = case.switch.is_empty();
    assert_eq!(status.code(), Some(i32::from(!right)), "{what}: {summary:#}");
    if right {
        assert_eq!(summary["outcomes"]["ok"].as_u64(), Some(runs), "{what}: {summary:#}");
    }
    let mut found = 0;
    for series in summary["series"].as_array().expect("series") {
        // Both boundaries and what lies beyond them were run.
        let per = series["elements_per_step"].as_u64().expect("a step");
        for boundary in [1u64 << 31, 1 << 32] {
            for size in (boundary / per - 2)..=(boundary / per + 2) {
                let outcomes = series["outcomes"].as_array().expect("outcomes");
                assert!(outcomes.iter().any(|o| o[0].as_u64() == Some(size)), "{what}: {size} was not run");
            }
        }
        for point in series["switch_points"].as_array().expect("switch points") {
            // Where the device stops a loop without end and where the budget does is no boundary of the kernel.
            if [&point["from"], &point["to"]].iter().all(|o| **o == "error" || **o == "timeout") {
                continue;
            }
            found += 1;
            let want = case
                .switch
                .iter()
                .find(|w| series["shape"] == w.shape.as_str() && point["below"].as_u64() == Some(w.below));
            let want = want.unwrap_or_else(|| panic!("{what}: not expected: {point:#}"));
            compare(what, want, point, per);
        }
    }
    assert_eq!(found, case.switch.len(), "{what}: {:#}", summary["series"]);
}

fn compare(what: &str, want: &Switch, point: &Value, per: u64) {
    assert_eq!(point["above"].as_u64(), Some(want.below + 1), "{what}: {point:#}");
    assert_eq!(point["elements_above"].as_u64(), Some((want.below + 1) * per), "{what}: {point:#}");
    assert_eq!(point["to"], want.to.as_str(), "{what}: {point:#}");
    if let Some(from) = &want.from {
        assert_eq!(point["from"], from.as_str(), "{what}: {point:#}");
    }
    let mechanism = &point["mechanism"];
    assert_eq!(mechanism["file"], format!("{what}.cu"), "{point:#}");
    assert_eq!(mechanism["line"].as_u64(), Some(want.line), "{what}: {point:#}");
    let sentence = mechanism["sentence"].as_str().expect("a sentence");
    for s in &want.says {
        assert!(sentence.contains(s.as_str()), "{what}: no `{s}` in: {sentence}");
    }
}

#[test]
fn a_kernel_with_a_32_bit_index_is_swept_to_its_boundary_and_one_with_64_bits_is_right() {
    for file in cases() {
        let text = std::fs::read_to_string(file.with_extension("toml")).expect("the case");
        let case: Case = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        check(&file, &case);
    }
}

#[test]
fn a_sweep_of_a_kernel_that_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cut, whole) = (folder.path().join("cut"), folder.path().join("whole"));
    let kernel = format!("kernel:{}", repository("testdata/sweep/kernels/transpose_32.cu").display());
    let sweep = |out: &Path, more: &[&str]| {
        let mut c = command(&[
            "sweep",
            "transpose",
            "--json",
            "--quiet",
            "--jobs",
            "1",
            "--backend",
            &kernel,
            "--out",
        ]);
        c.arg(out).args(more);
        c
    };
    let records = cut.join("records.jsonl");
    let lines = || std::fs::read_to_string(&records).map_or(0, |t| t.lines().count());
    let mut running = Running::start(&mut sweep(&cut, &[]));
    running.wait_until("a few records", || lines() >= 5);
    running.kill_alone();
    let before = lines();
    let answer = Running::start(&mut sweep(&cut, &[])).finish().exits(2);
    answer.says(&["--resume continues it"]);
    let resumed = Running::start(&mut sweep(&cut, &["--resume"])).finish().exits(1).json();
    let once = Running::start(&mut sweep(&whole, &[])).finish().exits(1).json();
    assert_eq!(resumed, once);
    assert_eq!(lines() as u64, once["runs"].as_u64().expect("runs"), "{before} were there");
}

#[test]
fn what_is_wrong_with_a_swept_file_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        format!("kernel:{}", path.display())
    };
    let kernel = "__global__ void k(const float* x, float* out, long long n) {\n\
                  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\nif (i < n) out[i] = x[i] + ADD;\n}\n";
    let launch =
        "void launch(const float* x, float* out, long long N) { k<<<(N + 255) / 256, 256>>>(x, out, N); }\n";
    let right = write("right.cu", &(kernel.replace("ADD", "0.0f") + launch));
    let wrong = write("wrong.cu", &(kernel.replace("ADD", "1.0f") + launch));
    let other = write(
        "other.cu",
        &(kernel.replace("ADD", "0.0f") + &launch.replace("float* x", "float* y").replace("(x,", "(y,")),
    );
    let run = |op: &str, kernel: &str, more: &[&str]| {
        let mut args = vec!["sweep", op, "--quiet", "--backend", kernel, "--out", &out];
        args.extend(more);
        assay(&args)
    };
    run("copy", &wrong, &[]).exits(3).says(&["the baseline of x", "`wrong`"]);
    std::fs::remove_dir_all(&out).expect("the folder");
    run("copy", &other, &[]).exits(2).says(&["no pointer `x`"]);
    run("transpose", &right, &[]).exits(2).says(&["`N` is no tensor or extent of a transpose"]);
    run("cumsum", &right, &[]).exits(4).says(&["bmm, transpose, gather, copy"]);
    run("copy", &right, &["--dtype", "f16"]).exits(2).says(&["--dtype f16", "f32"]);
    run("copy", &right, &["--layout", "bT"]).exits(4).says(&["--layout"]);
    let took = Instant::now();
    run("copy", &right, &["--boundary", "2^31"]).exits(0);
    assert!(took.elapsed() < Duration::from_secs(60));
}
