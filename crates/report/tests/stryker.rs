//! The export holds what Stryker's schema asks, and says the truth.

mod common;

use std::collections::BTreeSet;

use assay_report::diff::apply;
use serde_json::Value;

const STATUSES: [&str; 8] =
    ["Killed", "Survived", "NoCoverage", "CompileError", "RuntimeError", "Timeout", "Ignored", "Pending"];

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_else(|| panic!("`{key}` is no string in {v}"))
}

/// Keys that the schema knows, with those it requires first.
fn keys(v: &Value, required: &[&str], optional: &[&str]) {
    let map = v.as_object().unwrap_or_else(|| panic!("no object: {v}"));
    for r in required {
        assert!(map.contains_key(*r), "`{r}` is missing in {v}");
    }
    for k in map.keys() {
        assert!(required.contains(&k.as_str()) || optional.contains(&k.as_str()), "`{k}` is unknown");
    }
}

fn position(v: &Value) -> (usize, usize) {
    keys(v, &["line", "column"], &[]);
    let at = |k: &str| v[k].as_u64().filter(|&n| n >= 1).unwrap_or_else(|| panic!("{v}")) as usize;
    (at("line"), at("column"))
}

/// The byte of a 1-based line and UTF-16 column.
fn byte(source: &str, (line, column): (usize, usize)) -> usize {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let mut units = 0;
    let mut at = start;
    for c in source[start..].chars() {
        if units == column - 1 {
            break;
        }
        units += c.len_utf16();
        at += c.len_utf8();
    }
    assert_eq!(units, column - 1, "column {column} of line {line}");
    at
}

#[test]
fn the_shape_is_that_of_the_schema() {
    let b = common::bundle();
    let doc = b.stryker();
    keys(
        &doc,
        &["schemaVersion", "thresholds", "files"],
        &["framework", "performance", "testFiles", "assay"],
    );
    assert_eq!(doc["schemaVersion"], "2.0");
    keys(&doc["thresholds"], &["high", "low"], &[]);
    for t in ["high", "low"] {
        assert!(doc["thresholds"][t].as_u64().unwrap() <= 100);
    }
    keys(&doc["framework"], &["name"], &["version", "dependencies"]);
    keys(&doc["performance"], &["setup", "initialRun", "mutation"], &[]);
    assert!(doc["performance"].as_object().unwrap().values().all(|v| v.as_f64().unwrap() >= 0.0));

    let mut tests = BTreeSet::new();
    for file in doc["testFiles"].as_object().unwrap().values() {
        keys(file, &["tests"], &["source"]);
        for t in file["tests"].as_array().unwrap() {
            keys(t, &["id", "name"], &[]);
            assert!(tests.insert(text(t, "id").to_owned()), "two tests of one id");
        }
    }
    assert_eq!(tests.len(), 8);

    let mut ids = BTreeSet::new();
    assert_eq!(doc["files"].as_object().unwrap().len(), 13);
    for (path, file) in doc["files"].as_object().unwrap() {
        assert!(path.ends_with("/kernel.cu"), "{path}");
        keys(file, &["language", "source", "mutants"], &[]);
        assert_eq!(file["language"], "cuda");
        for m in file["mutants"].as_array().unwrap() {
            keys(
                m,
                &["id", "mutatorName", "location", "status", "replacement", "description", "statusReason"],
                &["killedBy", "coveredBy", "testsCompleted"],
            );
            assert!(ids.insert(text(m, "id").to_owned()), "two mutants of one id");
            assert!(STATUSES.contains(&text(m, "status")));
            keys(&m["location"], &["start", "end"], &[]);
            assert!(position(&m["location"]["start"]) <= position(&m["location"]["end"]));
            for list in ["killedBy", "coveredBy"] {
                for t in m[list].as_array().into_iter().flatten() {
                    assert!(tests.contains(t.as_str().unwrap()), "{t} is no test");
                }
            }
        }
    }
    assert_eq!(ids.len(), b.mutants.len());
}

#[test]
fn location_and_replacement_make_the_mutant() {
    let b = common::bundle();
    let doc = b.stryker();
    let mut seen = 0;
    for source in &b.sources {
        let file = &doc["files"][format!("{}/kernel.cu", source.problem)];
        for m in file["mutants"].as_array().unwrap() {
            let record = b.mutant(text(m, "id")).unwrap();
            let start = byte(&source.text, position(&m["location"]["start"]));
            let end = byte(&source.text, position(&m["location"]["end"]));
            let made = format!("{}{}{}", &source.text[..start], text(m, "replacement"), &source.text[end..]);
            assert_eq!(Some(made), apply(&source.text, &record.diff), "{}", record.name);
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn statuses_follow_the_order_of_the_table() {
    let mut b = common::bundle();
    let key = b.sources[0].problem.clone();
    let of = |b: &assay_report::Bundle, id: &str| -> (String, String) {
        let doc = b.stryker();
        let m = doc["files"][format!("{key}/kernel.cu")]["mutants"]
            .as_array()
            .unwrap()
            .iter()
            .find(|m| m["id"] == id)
            .unwrap_or_else(|| panic!("{id} is not exported"))
            .clone();
        (text(&m, "status").to_owned(), text(&m, "statusReason").to_owned())
    };
    let at = b.mutants.iter().position(|m| m.problem == key && m.status == "distinct").unwrap();
    let id = b.mutants[at].id.clone();
    let plain = assay_report::Verdicts { scored: true, decided_by: vec!["kbv".into()], ..Default::default() };
    let rejected =
        assay_report::Verdicts { rejected_by: vec!["kbv".into()], exhausted: true, ..plain.clone() };
    let none = assay_report::Verdicts { decided_by: Vec::new(), ..plain.clone() };
    // (status in the run, reason, verdicts, status in the schema, a word of the reason)
    let table = [
        ("duplicate", "00ff", Some(plain.clone()), "Ignored", "00ff"),
        ("equivalent", "", Some(plain.clone()), "Ignored", "equivalent"),
        ("noncompiling", "error: x", None, "CompileError", "error: x"),
        ("distinct", "", None, "Pending", "not evaluated"),
        (
            "distinct",
            "",
            Some(assay_report::Verdicts { scored: false, ..rejected.clone() }),
            "Ignored",
            "refereed",
        ),
        ("distinct", "", Some(rejected), "Killed", "kbv"),
        ("quarantined", "exhausted on `official#0`: x", Some(none.clone()), "Timeout", "official#0"),
        ("quarantined", "unsupported on `official#0`: x", Some(none.clone()), "RuntimeError", "support"),
        (
            "quarantined",
            "compiler: ended by signal 6",
            Some(none.clone()),
            "RuntimeError",
            "neither compiled",
        ),
        (
            "distinct",
            "",
            Some(assay_report::Verdicts { exhausted: true, unsupported: true, ..plain.clone() }),
            "Timeout",
            "budget",
        ),
        (
            "distinct",
            "",
            Some(assay_report::Verdicts { unsupported: true, ..plain.clone() }),
            "RuntimeError",
            "support",
        ),
        ("distinct", "", Some(none), "NoCoverage", "verdict"),
        (
            "distinct",
            "",
            Some(assay_report::Verdicts { witnessed: true, flagged: true, ..plain.clone() }),
            "Survived",
            "sanitizer",
        ),
        (
            "distinct",
            "",
            Some(assay_report::Verdicts { schedule_witnessed: true, ..plain.clone() }),
            "Survived",
            "schedule",
        ),
        ("distinct", "", Some(plain), "Survived", "may be equivalent"),
    ];
    for (status, reason, verdicts, want, word) in table {
        b.mutants[at].status = status.into();
        b.mutants[at].reason = reason.into();
        match verdicts {
            Some(v) => b.verdicts.insert(id.clone(), v),
            None => b.verdicts.remove(&id),
        };
        let (got, why) = of(&b, &id);
        assert_eq!(got, want, "{status} {reason}");
        assert!(why.contains(word), "{want}: {why}");
    }
}

#[test]
fn killers_are_the_protocols_of_the_summary() {
    let b = common::bundle();
    let doc = b.stryker();
    for row in &b.summary.protocols {
        let killed =
            b.verdicts.values().filter(|v| v.witnessed && v.scored && v.rejected_by.contains(&row.name));
        assert_eq!(killed.count() as u64, row.detected, "{}", row.name);
    }
    let (schema, killed) = (&doc["assay"]["schemaScore"], &doc["assay"]["killedScore"]);
    assert!(schema.as_f64().unwrap() >= killed.as_f64().unwrap(), "a timeout flatters the schema's score");
}

#[test]
fn a_diff_that_does_not_fit_gives_the_whole_line() {
    let mut b = common::bundle();
    for s in &mut b.sources {
        s.text = "another file\n".into();
    }
    let doc = b.stryker();
    let m = &doc["files"][format!("{}/kernel.cu", b.sources[0].problem)]["mutants"][0];
    let record = b.mutant(text(m, "id")).unwrap();
    assert_eq!(position(&m["location"]["start"]), (record.line as usize, 1));
    assert!(!text(m, "replacement").is_empty());
}
