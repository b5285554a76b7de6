//! Mutants that never come to a verdict: what becomes of them, and where it is said.

use serde_json::Value;

use crate::support::{assay, audited, database, read_json};

#[test]
fn mutants_that_end_the_compiler_or_never_end_are_quarantined_with_their_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("quarantine/scaled_steps", &run, &[]);

    let db = database(&run).unwrap();
    let mut rows = db
        .prepare(
            "SELECT id, rule, name, reason FROM mutants WHERE status = 'quarantined' ORDER BY line, name",
        )
        .unwrap();
    let quarantined: Vec<[String; 4]> = rows
        .query_map([], |r| Ok([r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?]))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let expected = [
        // A table that the compiler cannot hold: it dies of its memory limit, or reaches its time limit first.
        ("DivToMul", "replace / with *", "compiler: the compiler "),
        ("AssignmentDropped", "remove left = left - 1;", "exhausted on `official#0`: more than "),
        ("SubToAdd", "replace - with +", "exhausted on `official#0`: more than "),
    ];
    assert_eq!(quarantined.len(), expected.len(), "{quarantined:?}");
    for ([id, rule, name, reason], (its_rule, its_name, why)) in quarantined.iter().zip(expected) {
        assert_eq!(rule, its_rule, "{name}");
        assert!(name.contains(its_name), "{name}");
        assert!(reason.starts_with(why), "{name}: {reason}");
        // Nothing of them is evaluated beyond what shows that it cannot be.
        let evaluated: i64 =
            db.query_row("SELECT count(*) FROM evaluations WHERE mutant = ?1", [id], |r| r.get(0)).unwrap();
        assert_eq!(evaluated, i64::from(why.starts_with("exhausted")), "{name}");
    }

    // The summary: part of the distinct ones, never witnessed, and counted in the open.
    let pipeline = &summary["pipeline"];
    assert_eq!(pipeline["quarantined"], 3, "{pipeline}");
    assert!(pipeline["witnessed"].as_u64().unwrap() > 20, "{pipeline}");
    assert_eq!(summary["problems"][0]["quarantined"], 3);
    let why = summary["unwitnessed"].as_array().unwrap();
    let row = why.iter().find(|r| r["reason"] == "quarantined").unwrap_or_else(|| panic!("{why:?}"));
    assert_eq!((&row["mutants"], &row["width"]), (&Value::from(3), &Value::from(0)));

    // The reports: counts for people, one reason a mutant for tools.
    let page = assay(&["report", run.to_str().unwrap()]).exits(0).stdout;
    assert!(page.contains(", 3 quarantined."), "{page}");
    let report = read_json(&run.join("mutation-report.json"));
    let file = report["files"].as_object().unwrap().values().next().unwrap();
    let mutants = file["mutants"].as_array().unwrap();
    for [id, _, name, reason] in &quarantined {
        let m = mutants.iter().find(|m| m["id"] == id.as_str()).unwrap_or_else(|| panic!("{name}"));
        let says = m["statusReason"].as_str().unwrap();
        assert!(says.ends_with(reason.as_str()), "{name}: {says}");
        let (status, begins) = match reason.starts_with("compiler: ") {
            true => ("RuntimeError", "neither compiled nor refused"),
            false => ("Timeout", "a budget ran out"),
        };
        assert!(m["status"] == status && says.starts_with(begins), "{name}: {m}");
    }
}
