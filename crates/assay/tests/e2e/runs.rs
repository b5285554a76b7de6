//! Runs: the same twice, interrupted and continued, refused where they must be.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    Running, audit, audited, command, database, evaluations, files, fixture, forget_times, read_json,
};

const PROBLEMS: &str = "problems";

/// The whole audit once, for the tests that compare with it.
fn whole() -> &'static (Value, Vec<Key>) {
    static WHOLE: std::sync::OnceLock<(Value, Vec<Key>)> = std::sync::OnceLock::new();
    WHOLE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let summary = audited(PROBLEMS, &run, &["--jobs", "2"]);
        (summary, keys(&run))
    })
}

type Key = (String, String, String, String, i64);

/// What names each evaluation of a run.
fn keys(run: &Path) -> Vec<Key> {
    let db = database(run).unwrap();
    let mut q = db
        .prepare("SELECT problem, mutant, recipe, schedule, seed FROM evaluations ORDER BY 1, 2, 3, 4, 5")
        .unwrap();
    let rows = q.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// An audit with one job, stopped by SIGSTOP when it has committed some mutants and is far from its end.
fn halfway(run: &Path) -> Running {
    let mut running = Running::start(&mut audit(PROBLEMS, run, &["--jobs", "1"]));
    // More than the baseline of the first problem, which has less than a hundred inputs.
    running.wait_until("the first mutants are evaluated", || evaluations(run) > 200);
    running.signal(libc::SIGSTOP);
    assert!(!run.join("summary.json").exists(), "stopped too late to be halfway");
    running
}

fn resume(run: &Path) -> Running {
    Running::start(&mut audit(PROBLEMS, run, &["--jobs", "2", "--resume"]))
}

#[test]
fn two_audits_with_other_numbers_of_jobs_give_one_summary() {
    let dir = tempfile::tempdir().unwrap();
    let one = audited(PROBLEMS, &dir.path().join("one"), &["--jobs", "1"]);
    let (two, evaluated) = whole();
    assert_eq!(&one, two);
    assert_eq!(&keys(&dir.path().join("one")), evaluated);
    let p = &one["pipeline"];
    assert_eq!(p["problems"], 2);
    assert!(p["witnessed"].as_u64() > Some(20), "{p}");
    for file in ["manifest.json", "run.db", "summary.json", "mutation-report.json", "report.html"] {
        assert!(dir.path().join("one").join(file).is_file(), "{file}: {:?}", files(&dir.path().join("one")));
    }
}

#[test]
fn another_seed_is_another_run_and_names_itself() {
    let dir = tempfile::tempdir().unwrap();
    audited("problems/add_clamp", &dir.path().join("run"), &["--seed", "7"]);
    assert_eq!(read_json(&dir.path().join("run/manifest.json"))["seed"], 7);
}

#[test]
fn a_killed_audit_resumes_without_losing_or_repeating_an_evaluation() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let running = halfway(&run);
    running.signal(libc::SIGKILL);
    assert_eq!(running.finish().status.code(), None, "it was killed");
    let committed = keys(&run);
    assert!(committed.len() > 200 && committed.len() < whole().1.len());
    {
        // A mark in a column that no score reads: what is computed again or written again loses it.
        let db = rusqlite::Connection::open(run.join("run.db")).unwrap();
        let sound: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(sound, "ok");
        db.execute("UPDATE evaluations SET max_rel = 12345.0", []).unwrap();
    }
    let mut summary = resume(&run).finish().exits(0).json();
    forget_times(&mut summary);
    assert_eq!(&summary, &whole().0);
    let db = database(&run).unwrap();
    let marked: i64 =
        db.query_row("SELECT count(*) FROM evaluations WHERE max_rel = 12345.0", [], |r| r.get(0)).unwrap();
    assert_eq!(marked, i64::try_from(committed.len()).unwrap());
    assert_eq!(keys(&run), whole().1);
}

/// A stream of numbers that a seed gives (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Kills audits at so many points, each drawn from the seed over the whole of a run, and resumes them; some are killed
/// again before they may end. Each then says what the audit that nobody disturbed says.
fn killed_at_random_points(points: u64, seed: u64) {
    let (want, all) = whole();
    let mut draw = Draw(seed);
    let mut before_the_end = 0;
    for point in 0..points {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let deaths = 1 + draw.below(2);
        for death in 0..deaths {
            // A little beyond the last evaluation: summary and reports are written there.
            let target = i64::try_from(draw.below(all.len() as u64 * 21 / 20)).unwrap();
            let later = Duration::from_micros(draw.below(60_000));
            let place =
                format!("seed {seed}, point {point}, death {death}: {target} evaluations and {later:?}");
            // Killed before there was a database, nothing was begun.
            let more =
                if run.join("run.db").exists() { &["--resume", "--jobs", "2"][..] } else { &["--jobs", "2"] };
            let mut running = Running::start(&mut audit(PROBLEMS, &run, more));
            while evaluations(&run) < target && !running.has_ended() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(later);
            if running.has_ended() {
                let answer = running.finish();
                assert_eq!(answer.status.code(), Some(0), "{place}: {}", answer.stderr);
            } else {
                running.signal(libc::SIGKILL);
                running.finish();
                before_the_end += 1;
            }
            // Whole or not at all.
            if run.join("summary.json").exists() {
                let mut summary = read_json(&run.join("summary.json"));
                forget_times(&mut summary);
                assert_eq!(&summary, want, "{place}");
            }
        }
        let more =
            if run.join("run.db").exists() { &["--resume", "--jobs", "2"][..] } else { &["--jobs", "2"] };
        let answer = Running::start(&mut audit(PROBLEMS, &run, more)).finish();
        assert_eq!(answer.status.code(), Some(0), "seed {seed}, point {point}: {}", answer.stderr);
        let mut summary = answer.json();
        assert_eq!(read_json(&run.join("summary.json")), summary);
        forget_times(&mut summary);
        assert_eq!(&summary, want, "seed {seed}, point {point}");
        assert_eq!(&keys(&run), all, "seed {seed}, point {point}");
    }
    assert!(before_the_end * 2 > points, "only {before_the_end} of {points} deaths came before the end");
}

#[test]
fn an_audit_killed_at_random_points_resumes_to_the_same_summary() {
    killed_at_random_points(6, 1);
}

#[test]
#[ignore = "takes minutes: cargo test --release -p assay --test e2e -- --ignored a_hundred_random_points"]
fn an_audit_killed_at_a_hundred_random_points_resumes_to_the_same_summary() {
    killed_at_random_points(100, 2026);
}

#[test]
fn ctrl_c_ends_an_audit_within_two_seconds_and_it_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let running = halfway(&run);
    running.signal(libc::SIGCONT);
    let pressed = Instant::now();
    running.signal(libc::SIGINT);
    let answer = running.finish();
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    answer.exits(130).says(&["--resume"]);
    assert!(!run.join("summary.json").exists());
    let mut summary = resume(&run).finish().exits(0).json();
    forget_times(&mut summary);
    assert_eq!(&summary, &whole().0);
}

#[test]
fn ctrl_c_while_mutants_compile_costs_no_mutant() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut running = Running::start(&mut audit(PROBLEMS, &run, &["--jobs", "1"]));
    // The baseline is committed; what follows is the compilation of the first problem's mutants.
    running.wait_until("the baseline is evaluated", || evaluations(&run) > 0);
    let pressed = Instant::now();
    running.signal(libc::SIGINT);
    let answer = running.finish();
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    answer.exits(130);
    let mut summary = resume(&run).finish().exits(0).json();
    forget_times(&mut summary);
    assert_eq!(&summary, &whole().0);
}

#[test]
fn a_killed_audit_leaves_no_compile_worker_behind() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut running = Running::start(&mut audit(PROBLEMS, &run, &["--jobs", "2"]));
    running.wait_until("the baseline is evaluated", || evaluations(&run) > 0);
    running.kill_alone();
    let killed = Instant::now();
    while running.group_lives() {
        assert!(killed.elapsed() < Duration::from_secs(5), "a process of the run lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_second_process_on_a_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let first = halfway(&run);
    let before = evaluations(&run);
    resume(&run).finish().exits(2).says(&["another process"]);
    Running::start(&mut audit(PROBLEMS, &run, &[])).finish().exits(2).says(&["--resume"]);
    assert_eq!(evaluations(&run), before);
    first.signal(libc::SIGKILL);
}

/// A finished run of the small problem in its own folder, whose problem may be changed.
fn finished(dir: &Path) -> (PathBuf, PathBuf) {
    let problem = dir.join("problem");
    std::fs::create_dir(&problem).unwrap();
    for file in ["problem.toml", "kernel.cu"] {
        std::fs::copy(Path::new(&fixture("problems/add_clamp")).join(file), problem.join(file)).unwrap();
    }
    let run = dir.join("run");
    again(&problem, &run, &[]).exits(0);
    (problem, run)
}

fn again(problem: &Path, run: &Path, more: &[&str]) -> crate::support::Answer {
    let mut c = command(&["audit", "--json", "--problems"]);
    c.arg(problem).arg("--out").arg(run).args(more);
    Running::start(&mut c).finish()
}

#[test]
fn an_existing_run_is_neither_overwritten_nor_continued_with_another_problem() {
    let dir = tempfile::tempdir().unwrap();
    let (problem, run) = finished(dir.path());
    let read = |name: &str| std::fs::read(run.join(name)).unwrap();
    let before = (read("summary.json"), read("manifest.json"), keys(&run));

    again(&problem, &run, &[]).exits(2).says(&["already holds a run", "--resume"]);
    let kernel = problem.join("kernel.cu");
    let source = std::fs::read_to_string(&kernel).unwrap();
    std::fs::write(&kernel, source.replace("THREADS = 64", "THREADS = 128")).unwrap();
    again(&problem, &run, &["--resume"]).exits(2).says(&["cannot resume", "`problems`"]);
    assert_eq!((read("summary.json"), read("manifest.json"), keys(&run)), before);

    std::fs::write(&kernel, source).unwrap();
    again(&problem, &run, &["--resume", "--seed", "1"]).exits(2).says(&["`seed`"]);
    // Finished, and unchanged: everything is in the database.
    let resumed = again(&problem, &run, &["--resume"]).exits(0).json();
    assert_eq!(resumed["timing"]["evaluations"], 0);
    let strip = |mut v: Value| {
        forget_times(&mut v);
        v
    };
    assert_eq!(strip(resumed), strip(serde_json::from_slice(&before.0).unwrap()));
}

#[test]
fn a_run_that_is_not_there_is_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    resume(&run).finish().exits(2).says(&["no run to resume"]);
    assert!(!run.exists());
}

#[test]
fn a_database_of_another_version_or_none_at_all_is_refused_by_every_reader() {
    let dir = tempfile::tempdir().unwrap();
    let (problem, run) = finished(dir.path());
    let path = run.to_str().unwrap();
    let refused = |what: &str| {
        again(&problem, &run, &["--resume"]).exits(2).says(&[what]);
        crate::support::assay(&["report", path]).exits(2).says(&[what]);
        crate::support::assay(&["suite", path]).exits(2).says(&[what]);
    };
    let db = rusqlite::Connection::open(run.join("run.db")).unwrap();
    db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'", []).unwrap();
    drop(db);
    refused("version 99");
    for name in ["run.db-wal", "run.db-shm"] {
        let _ = std::fs::remove_file(run.join(name));
    }
    std::fs::write(run.join("run.db"), "no database at all, but some bytes that could begin one".repeat(100))
        .unwrap();
    refused("run.db");
    std::fs::write(run.join("run.db"), "").unwrap();
    refused("not a run database");
}

#[test]
fn a_searched_shape_that_the_substrate_does_not_support_is_left_out_and_ends_no_audit() {
    let dir = tempfile::tempdir().unwrap();
    let summary = audited("narrow", &dir.path().join("run"), &[]);
    assert_eq!(summary["pipeline"]["baselines_failed"], 0);
    assert!(summary["pipeline"]["witnessed"].as_u64() > Some(5), "{}", summary["pipeline"]);
}
