//! Bad input: what, where, and the exit code of the contract; nothing half-written.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{ASSAY, Answer, Running, assay, audit, command, files, fixture, read_json, repository};

/// `assay run` on a fixture: one kernel, one thread, and these words.
fn run(file: &str, kernel: &str, more: &[&str]) -> Answer {
    let mut words = vec!["run", file, "--kernel", kernel];
    words.extend(more);
    assay(&words)
}

const ONE: [&str; 6] = ["--grid", "1", "--block", "1", "--arg", "y=f32[1]:zeros"];

/// An audit that must be refused before it makes a run folder.
#[track_caller]
fn refused(problems: &str, words: &[&str]) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let answer = Running::start(&mut audit(problems, &run, &[])).finish().exits(2).says(words);
    assert!(!run.join("summary.json").exists());
    assert_eq!(answer.stdout, "");
    answer
}

#[test]
fn a_problem_with_an_unknown_dim_names_file_line_and_dim() {
    let answer = refused("bad/unknown_dim", &["unknown_dim/problem.toml:18:", "`Q`"]);
    assert!(answer.stderr.contains(r#"shape = ["B", "Q"]"#), "quotes the line: {}", answer.stderr);
}

#[test]
fn a_substrate_that_does_not_compile_shows_the_compilers_log_with_its_line() {
    let answer = refused("bad/no_compile", &["no_compile/kernel.cu", "biass", "undefined"]);
    assert!(answer.stderr.contains("(8)") || answer.stderr.contains(":8"), "{}", answer.stderr);
}

#[test]
fn a_kernel_file_that_does_not_compile_shows_the_compilers_log_with_its_line() {
    let answer = run(&fixture("kernels/no_compile.cu"), "fill", &ONE).exits(2).says(&["undeclared_name"]);
    assert!(
        answer.stderr.contains("no_compile.cu(3)") || answer.stderr.contains("line 3"),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.stdout, "");
}

#[test]
fn a_missing_problem_a_missing_file_and_a_broken_toml_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let audit = |problems: &Path| {
        let out = dir.path().join("run");
        let mut c = command(&["audit", "--problems"]);
        c.arg(problems).arg("--out").arg(&out);
        let answer = Running::start(&mut c).finish().exits(2);
        assert!(!out.exists(), "{:?}", files(&out));
        answer
    };
    audit(&dir.path().join("nowhere")).says(&["no problem matches", "nowhere"]);
    let folder = dir.path().join("p");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(fixture("problems/add_clamp/problem.toml"), folder.join("problem.toml")).unwrap();
    audit(&folder).says(&["kernel.cu"]);
    std::fs::copy(fixture("problems/add_clamp/kernel.cu"), folder.join("kernel.cu")).unwrap();
    for (text, words) in [
        ("name = \n", vec!["problem.toml:1:"]),
        ("name = \"x\"\nlevel = 1\nid = 2\nsurprise = 3\n", vec!["problem.toml:4:", "surprise"]),
    ] {
        std::fs::write(folder.join("problem.toml"), text).unwrap();
        audit(&folder).says(&words);
    }
}

#[test]
fn a_launcher_outside_the_subset_names_the_construct_and_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("p");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(fixture("problems/add_clamp/problem.toml"), folder.join("problem.toml")).unwrap();
    let source = std::fs::read_to_string(fixture("problems/add_clamp/kernel.cu")).unwrap();
    let source =
        source.replace("    const int n = B * D;", "    std::vector<int> v;\n    const int n = B * D;");
    std::fs::write(folder.join("kernel.cu"), source).unwrap();
    let mut c = command(&["audit", "--problems"]);
    c.arg(&folder).arg("--out").arg(dir.path().join("run"));
    Running::start(&mut c).finish().exits(2).says(&["kernel.cu:13:"]);
}

#[test]
fn an_endless_kernel_is_exhausted_within_its_budget() {
    let file = fixture("kernels/faults.cu");
    let mut words = vec!["--json"];
    words.extend(ONE);
    let answer = run(&file, "forever", &words).exits(5);
    assert_eq!(answer.json()["status"], "exhausted");
    assert!(answer.took < Duration::from_secs(60), "{:?}", answer.took);
}

#[test]
fn a_launch_of_two_thousand_threads_a_block_is_invalid() {
    let file = fixture("kernels/faults.cu");
    let answer = run(
        &file,
        "fill",
        &["--json", "--grid", "1", "--block", "2000", "--arg", "y=f32[8]:zeros", "--arg", "n=i32:8"],
    )
    .exits(1)
    .json();
    assert_eq!(answer["status"], "finding");
    assert_eq!(answer["findings"][0]["kind"], "invalid_launch");
    let message = answer["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("2000") && message.contains("1024"), "{message}");
}

#[test]
fn substrates_that_fail_are_left_out_and_the_others_measured() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut c = audit("problems/add_clamp", &run, &["--problems", &fixture("bad/wrong_substrate")]);
    let answer = Running::start(&mut c).finish().exits(3).says(&["baseline of 9/12", "wrong"]);
    let summary = answer.json();
    assert_eq!(summary["pipeline"]["problems"], 2);
    assert_eq!(summary["pipeline"]["baselines_failed"], 1);
    assert!(summary["pipeline"]["witnessed"].as_u64() > Some(0), "{}", summary["pipeline"]);
    let statuses: Vec<(&str, &str)> = summary["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["problem"].as_str().unwrap(), p["status"].as_str().unwrap()))
        .collect();
    assert!(
        statuses.contains(&("9/1", "scored")) && statuses.contains(&("9/12", "baseline_failed")),
        "{statuses:?}"
    );
    assert_eq!(read_json(&run.join("summary.json")), summary);
    // Asked alone, there is nothing to score, and the page says so.
    let alone = dir.path().join("alone");
    let mut c = command(&["audit", "--problems", &fixture("bad/wrong_substrate"), "--out"]);
    let page = Running::start(c.arg(&alone)).finish().exits(3).stdout;
    assert!(page.contains("cannot be scored"), "{page}");
}

#[test]
fn an_endless_substrate_fails_its_baseline() {
    let dir = tempfile::tempdir().unwrap();
    let answer = Running::start(&mut audit("bad/endless_substrate", &dir.path().join("run"), &[]))
        .finish()
        .exits(3)
        .says(&["baseline of 9/13", "exhausted"]);
    assert_eq!(answer.json()["pipeline"]["baselines_failed"], 1);
    assert!(answer.took < Duration::from_secs(60), "{:?}", answer.took);
}

#[test]
fn a_ptx_file_cut_anywhere_is_an_error_with_a_line_or_still_whole() {
    let text = std::fs::read_to_string(repository("testdata/ptx/parse/warp.ptx")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.ptx");
    let lines = text.lines().count();
    for tenth in 1..10 {
        // In the middle of a line, too.
        let at = text.floor_char_boundary(text.len() * tenth / 10);
        std::fs::write(&file, &text[..at]).unwrap();
        let answer = run(file.to_str().unwrap(), "nothing", &ONE).exits(2);
        let cut_line = text[..at].lines().count();
        let named: Option<usize> = answer
            .stderr
            .split_once("cut.ptx:")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).find(|d| !d.is_empty()))
            .and_then(|d| d.parse().ok());
        let between_functions = text[..at].trim_end().ends_with('}');
        assert!(
            named.is_some_and(|n| n <= cut_line + 1) || between_functions,
            "cut after line {cut_line} of {lines}: {}",
            answer.stderr
        );
    }
}

#[test]
fn a_host_file_cannot_be_read_through_the_compiler() {
    let answer = run(&fixture("kernels/spy.cu"), "fill", &ONE).exits(2);
    let secrets = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for line in secrets.lines().filter(|l| l.len() > 8) {
        assert!(!answer.stderr.contains(line) && !answer.stdout.contains(line), "{}", answer.stderr);
    }
    assert!(answer.stderr.contains("/etc/passwd") && answer.stderr.contains('1'), "{}", answer.stderr);
    // Neither does a substrate, nor a line that is only put together by the preprocessor.
    let dir = tempfile::tempdir().unwrap();
    for (k, line) in [
        "#include </etc/hostname>",
        "#define F \"/etc/hostname\"\n#include F",
        "#inc\\\nlude \"/etc/hostname\"",
    ]
    .into_iter()
    .enumerate()
    {
        let file = dir.path().join(format!("{k}.cu"));
        std::fs::write(
            &file,
            format!("{line}\nextern \"C\" __global__ void fill(float* y) {{ y[0] = 1.0f; }}\n"),
        )
        .unwrap();
        run(file.to_str().unwrap(), "fill", &ONE).exits(2);
    }
}

#[test]
fn without_nvrtc_python_and_network_one_message_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, empty) = (dir.path().join("cache"), dir.path().join("bin"));
    std::fs::create_dir(&empty).unwrap();
    let bare = |args: &[&str]| {
        let mut c = Command::new(ASSAY);
        c.args(args).env("ASSAY_CACHE", &cache).env("PATH", &empty).env_remove("ASSAY_NVRTC");
        Running::start(&mut c).finish().exits(2)
    };
    let out = dir.path().join("run");
    let small = fixture("problems/add_clamp");
    let kernel = fixture("kernels/faults.cu");
    for args in [
        vec!["audit", "--problems", &small, "--out", out.to_str().unwrap()],
        vec![
            "run",
            &kernel,
            "--kernel",
            "fill",
            "--grid",
            "1",
            "--block",
            "1",
            "--arg",
            "y=f32[1]:zeros",
            "--arg",
            "n=i32:1",
        ],
        vec!["doctor"],
    ] {
        let answer = bare(&args).says(&["NVRTC", "ASSAY_NVRTC", "pip"]);
        assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
        assert!(!out.exists(), "{:?}", files(&out));
    }
    // What needs no compiler works.
    for args in [vec!["mutate", &kernel], vec!["problems"], vec!["mutators"], vec!["protocols"]] {
        let mut c = Command::new(ASSAY);
        c.args(&args).env("ASSAY_CACHE", &cache).env("PATH", &empty).env_remove("ASSAY_NVRTC");
        Running::start(&mut c).finish().exits(0);
    }
    let mut c = Command::new(ASSAY);
    c.args(["doctor"]).env("ASSAY_NVRTC", &kernel).env("ASSAY_CACHE", &cache);
    Running::start(&mut c).finish().exits(2).says(&["ASSAY_NVRTC", "faults.cu"]);
}

#[test]
fn usage_that_is_wrong_exits_two_and_names_it() {
    let small = fixture("problems/add_clamp");
    let kernel = fixture("kernels/faults.cu");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let protocol = dir.path().join("p.toml");
    std::fs::write(
        &protocol,
        "name = \"p\"\ninputs = [\"official#0\"]\natol = 1e-2\nrtol = 1e-2\nsurprise = 1\n",
    )
    .unwrap();
    let audit = |more: &[&str]| {
        let mut c = command(&["audit", "--problems", &small, "--out"]);
        c.arg(&out).args(more);
        Running::start(&mut c).finish().exits(2)
    };
    audit(&["--protocol", "no-such"]).says(&["`no-such`", "kernelbench-2025"]);
    audit(&["--protocol", "kbv", "--protocol", "kbv"]).says(&["kbv"]);
    for pct in ["101", "-1", "NaN", "lots"] {
        audit(&[&format!("--fail-under={pct}")]).says(&["--fail-under", pct]);
    }
    audit(&["--jobs", "0"]).says(&["--jobs"]);
    let mut c = command(&["audit", "--problems", &small, "--protocol"]);
    c.arg(&protocol).arg("--out").arg(&out);
    Running::start(&mut c).finish().exits(2).says(&["p.toml", "5", "surprise"]);
    assert!(!out.exists(), "{:?}", files(&out));

    assay(&["--frobnicate"]).exits(2);
    assay(&[]).exits(2);
    assay(&["audit", "--resume"]).exits(2).says(&["--out"]);
    assay(&["mutate", "/no/such.cu"]).exits(2).says(&["/no/such.cu"]);
    assay(&["mutate", &kernel, "--rule", "NoSuchRule"]).exits(2).says(&["NoSuchRule", "assay mutators"]);
    assay(&["problems", "--problems", "level9/*"]).exits(2).says(&["level9/*"]);
    assay(&["report", dir.path().to_str().unwrap()]).exits(2).says(&["run.db"]);
    for (arg, words) in [
        ("y=f99[1]:zeros", vec!["f99", "^"]),
        ("y=f32[1]:sawtooth", vec!["sawtooth", "^"]),
        ("y=@/no/such.safetensors#y", vec!["/no/such.safetensors"]),
        ("y=&x", vec!["`x`"]),
        ("y=i32:1", vec!["`y`", "4 bytes"]),
    ] {
        run(&kernel, "forever", &["--grid", "1", "--block", "1", "--arg", arg]).exits(2).says(&words);
    }
    run(&kernel, "nope", &ONE).exits(2).says(&["`nope`"]);
    run(&kernel, "fill", &ONE).exits(2).says(&["2 parameters"]);
}

#[test]
fn what_this_version_lacks_is_unsupported_not_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = dir.path().join("x.cu");
    std::fs::write(&kernel, "void launch() {}\n").unwrap();
    for path in [kernel.as_path(), dir.path()] {
        assay(&["check", path.to_str().unwrap(), "--problem", "1/23", "--kernelbench", "dir"])
            .exits(4)
            .says(&["not part of this version"]);
    }
    std::fs::write(dir.path().join("x.py"), "").unwrap();
    assay(&["check", dir.path().to_str().unwrap(), "--problem", "1/23"])
        .exits(2)
        .says(&["CUDA files with `launch` beside Python files"]);
}

#[test]
fn an_instruction_that_the_device_lacks_is_unsupported_with_spelling_and_line() {
    let answer = run(&fixture("kernels/unsupported.ptx"), "k", &ONE).exits(4);
    let words = ["tex.2d.v4.f32.s32", "unsupported.ptx", "14"];
    assert!(words.iter().all(|w| answer.stderr.contains(w)), "{}", answer.stderr);
}
