//! The knowledge ladder: generators of inputs on what the official check of a finished audit misses.

use serde_json::Value;

use crate::support::{Running, audited, command, fixture, read_json};

/// A generator that looks at its facts: it says `normal` at a legal shape, a ceiling-breaking input, one that is no recipe
/// and one for a dim that does not exist; more than the budget of 6 are dropped.
const GENERATOR: &str = r#"
grep -q '"legal_shapes"' || exit 9
echo '"normal(1)+params#5"'
echo '{"recipe": "uniform(-2,-1)@B=3,D=33#1", "why": "a tail"}'
echo '"frobnicate(1)"'
echo '"normal(1)@Q=3#5"'
echo '"constant(1)#1"'
echo '"constant(2)#1"'
echo '"constant(3)#1"'
"#;

#[test]
fn rungs_and_external_generators_are_scored_on_the_official_survivors() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("problems", &run, &[]);
    let of_each: Vec<u64> =
        summary["problems"].as_array().unwrap().iter().map(|p| p["missed"].as_u64().unwrap()).collect();
    let missed: u64 = of_each.iter().sum();
    // The problems that a generator is asked for.
    let hard = of_each.iter().filter(|n| **n > 0).count() as u64;
    assert!(missed > 2, "{missed}");
    let climb = |more: &[&str]| {
        let mut c = command(&["ladder", run.to_str().unwrap(), "--json", "--problems", &fixture("problems")]);
        c.args(more);
        Running::start(&mut c).finish()
    };
    let broken = "echo '\"normal(1)#5\"'; echo oops; exit 3";
    let answer = climb(&["--budget", "6", "--generator", GENERATOR, "--generator", broken]).exits(0);
    assert!(answer.stderr.contains(&format!("failed on {hard} of {hard} problems")), "{}", answer.stderr);
    let ladder = answer.json();
    assert_eq!(read_json(&run.join("ladder.json")), ladder);
    assert_eq!((&ladder["survivors"], &ladder["budget"]), (&missed.into(), &6.into()));
    assert!(ladder["published_note"].as_str().unwrap().starts_with("not comparable"));
    let rungs = ladder["rungs"].as_array().unwrap();
    let ids: Vec<&str> = rungs.iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["R0", "R1", "R2", "R3", "external", "external"]);
    let n = |r: &Value, key: &str| r[key].as_u64().unwrap_or_else(|| panic!("no {key} in {r}"));
    for r in rungs {
        let bad = n(r, "unusable") + n(r, "substrate_fails") + n(r, "beyond_ceiling");
        assert_eq!(n(r, "inputs"), n(r, "valid") + bad, "{r}");
        assert!(n(r, "inputs") <= 6 * hard && n(r, "killed") <= missed, "{r}");
        assert_eq!(n(r, "problems"), hard);
        assert_eq!(r["published_percent"].is_null(), r["id"] == "external", "{r}");
    }
    // Magnitudes alone change neither sign nor shape.
    assert!(n(&rungs[2], "killed") > n(&rungs[0], "killed"), "{rungs:?}");
    assert!(n(&rungs[3], "killed") > n(&rungs[0], "killed"), "{rungs:?}");
    let mine = &rungs[4];
    assert_eq!((n(mine, "failures"), n(mine, "dropped"), n(mine, "unusable")), (0, hard, 2 * hard), "{mine}");
    assert!(n(mine, "killed") > 0 && n(mine, "valid") == 4 * hard, "{mine}");
    let broken = &rungs[5];
    assert_eq!(
        (n(broken, "failures"), n(broken, "inputs"), n(broken, "valid")),
        (hard, hard, hard),
        "{broken}"
    );
    assert!(broken["first_failure"].as_str().unwrap().contains("exit code 3"), "{broken}");
    assert!(n(&ladder, "killed_by_any") >= n(&rungs[2], "killed"));

    // The same again, whatever the number of jobs; fewer problems where fewer are asked for.
    let again =
        climb(&["--budget", "6", "--generator", GENERATOR, "--generator", "exit 3", "--jobs", "1"]).exits(0);
    assert_eq!(again.json()["rungs"].as_array().unwrap()[..5], rungs[..5]);
    let one = climb(&["--most", "1"]).exits(0).json();
    let problems = one["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1);
    let most = ladder["problems"].as_array().unwrap().iter().map(|p| n(p, "survivors")).max();
    assert_eq!(Some(n(&problems[0], "survivors")), most, "the one with the most survivors");
    assert!(problems[0]["ceilings"]["sign_mixed"]["kind"].is_string(), "{}", problems[0]["ceilings"]);
}

#[test]
fn a_ladder_over_other_problems_than_the_runs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    audited("problems/add_clamp", &run, &[]);
    let path = run.to_str().unwrap();
    let row_sum = fixture("problems/row_sum");
    Running::start(&mut command(&["ladder", path, "--problems", &row_sum])).finish().exits(2).says(&["9/1"]);
    // The same key, another kernel.
    let changed = dir.path().join("add_clamp");
    std::fs::create_dir(&changed).unwrap();
    for file in ["problem.toml", "kernel.cu"] {
        let text = std::fs::read_to_string(format!("{}/{file}", fixture("problems/add_clamp"))).unwrap();
        std::fs::write(changed.join(file), text.replace("THREADS = 64", "THREADS = 128")).unwrap();
    }
    let mut c = command(&["ladder", path, "--problems"]);
    Running::start(c.arg(&changed)).finish().exits(2).says(&["changed since the run"]);
    Running::start(&mut command(&["ladder", dir.path().to_str().unwrap()])).finish().exits(2);
}
