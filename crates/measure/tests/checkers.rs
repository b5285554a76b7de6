//! What external checkers say, and what is compared between audits.

mod common;

use std::collections::BTreeMap;

use assay_measure::CheckVerdict::{Accepts, Exhausted, Failed, Fault, Rejects, TimedOut, Unsupported};
use assay_measure::{
    CheckVerdict, CheckerRuns, KillMatrix, Protocol, Scope, Tolerance, builtin, compare_audits, decompose,
    score,
};
use common::matrix;

fn official() -> Protocol {
    builtin().unwrap().remove(0)
}

fn checker() -> Protocol {
    official().with_checker("own", "check {dir}", 9).unwrap()
}

#[test]
fn a_majority_rejects_and_what_is_open_stays_open() {
    for (verdicts, want) in [
        (vec![], None),
        (vec![Accepts], Some(Accepts)),
        (vec![Rejects], Some(Rejects)),
        (vec![Rejects, Accepts, Accepts, Accepts], Some(Accepts)),
        (vec![Rejects, Rejects, Accepts, Accepts], Some(Accepts)),
        (vec![Rejects, Rejects, Fault, Accepts], Some(Rejects)),
        (vec![Fault, Fault, Fault, Accepts], Some(Fault)),
        // Two rejections of four, and the rest would decide.
        (vec![Rejects, Rejects, TimedOut, Accepts], Some(TimedOut)),
        (vec![Failed, Accepts, Accepts, Accepts], Some(Accepts)),
        (vec![Failed, Exhausted, Rejects, Accepts], Some(Failed)),
        (vec![Unsupported], Some(Unsupported)),
    ] {
        assert_eq!(CheckVerdict::majority(&verdicts), want, "{verdicts:?}");
    }
    for v in CheckVerdict::ALL {
        assert_eq!(CheckVerdict::from_name(v.name()), Some(v));
        assert_eq!(serde_json::to_value(v).unwrap(), v.name());
    }
}

/// A problem whose second input is valid only above 0.1, and a checker's verdicts on it.
fn asked() -> KillMatrix {
    let mut m = matrix(
        1,
        &["official#0", "official#1", "official#2", "official#3", "official#4"],
        &[
            ("a", "arithmetic", "w", "....."),
            ("b", "boundary", "w", "....."),
            ("c", "boundary", "w", "....."),
            ("d", "semantic", "w", "....."),
            ("e", "semantic", "", "....."),
        ],
    );
    m.inputs[1].validity.threshold = 0.1;
    let recipes: Vec<String> = m.inputs.iter().map(|i| i.recipe.clone()).collect();
    let mutants: BTreeMap<String, Vec<CheckVerdict>> = [
        ("a", vec![Rejects]),
        // A rejection on what is not valid is no kill.
        ("b", vec![Accepts, Rejects, Accepts, Accepts, Accepts]),
        ("c", vec![Failed, Accepts, TimedOut, Exhausted, Unsupported]),
        ("d", vec![Accepts, Accepts, Fault]),
        // Not witnessed: never counted.
        ("e", vec![Rejects]),
    ]
    .into_iter()
    .map(|(id, v)| (id.to_owned(), v))
    .collect();
    let controls = [
        ("plain-kernel", vec![Accepts, Rejects, Accepts, Failed, Unsupported]),
        ("held-out:reversed", vec![Accepts, Rejects, Accepts, Accepts, Accepts]),
    ]
    .into_iter()
    .map(|(name, v)| (name.to_owned(), v))
    .collect();
    m.checkers.insert("own".into(), CheckerRuns { recipes, mutants, controls, first_failure: None });
    m.validate().unwrap();
    m
}

#[test]
fn a_checkers_rejections_kill_on_valid_inputs_alone_and_its_failures_are_counted() {
    let s = score(&checker(), &[asked()], &Scope::All);
    assert_eq!((s.detected, s.witnessed), (2, 4));
    assert_eq!(s.problems[0].detected, [true, false, false, true, true]);
    assert_eq!((s.invalid_rejections, s.exhausted, s.unsupported), (1, 1, 1));
    assert_eq!((s.checker_failures, s.checker_timeouts), (3, 1), "two on a mutant, one on a control");
    assert_eq!((s.false_kills, s.correct_runs, s.false_kill_inputs), (2, 8, 1));
    assert_eq!(s.controls_undecided, 2);
    assert_eq!(s.not_evaluated, 0, "after a kill nothing needs to be asked");
    // A checker that was not run detects nothing, and that is said.
    let other = official().with_checker("other", "check {dir}", 9).unwrap();
    let s = score(&other, &[asked()], &Scope::All);
    assert_eq!((s.detected, s.correct_runs, s.not_evaluated), (0, 0, 20));
}

#[test]
fn a_checker_is_part_of_a_protocols_file() {
    let p = checker();
    let text = p.to_toml();
    assert_eq!(Protocol::parse(&text, "p").unwrap(), p);
    for (from, to, what) in [
        ("check {dir}", "check", "{dir}"),
        ("checker_seconds = 9", "checker_seconds = 0", "checker_seconds"),
        ("checker_seconds = 9", "checker_seconds = 99999", "checker_seconds"),
        ("checker = \"check {dir}\"\n", "", "needs a `checker`"),
    ] {
        assert!(text.contains(from), "{text}");
        let e = Protocol::parse(&text.replace(from, to), "p.toml").err().unwrap().to_string();
        assert!(e.starts_with("p.toml:") && e.contains(what), "{e}");
    }
    assert!(official().with_checker("x", "no folder", 1).is_err());
    let chosen = builtin().unwrap().into_iter().find(|p| p.suite_budget.is_some()).unwrap();
    assert!(chosen.with_checker("x", "c {dir}", 1).is_err(), "its inputs are not known beforehand");
}

/// Three mutants: `t` passes 1e-2 and fails 1e-3, `K` fails anywhere.
fn graded(id: u32) -> KillMatrix {
    matrix(
        id,
        &["official#0", "official*3#0"],
        &[
            (&format!("{id}a"), "arithmetic", "w", "K."),
            (&format!("{id}b"), "boundary", "w", ".K"),
            (&format!("{id}c"), "precision", "w", "t."),
            (&format!("{id}d"), "precision", "w", ".t"),
        ],
    )
}

fn protocol(name: &str, inputs: &[&str], tolerance: f64) -> Protocol {
    let text = format!("name = \"{name}\"\ninputs = {inputs:?}\natol = {tolerance}\nrtol = {tolerance}\n");
    Protocol::parse(&text, name).unwrap()
}

#[test]
fn inputs_and_tolerance_are_told_apart_in_both_orders() {
    let official = protocol("official", &["official#0"], 1e-2);
    let wide = protocol("wide", &["official#0", "official*3#0"], 1e-3);
    let strict = protocol("strict", &["official#0"], 1e-3);
    let all = [official.clone(), wide, strict, official.with_checker("own", "c {dir}", 1).unwrap()];
    let rows = decompose(&official, &all, &[graded(1)], &Scope::All, None);
    let names: Vec<&str> = rows.iter().map(|r| r.protocol.as_str()).collect();
    assert_eq!(names, ["wide", "strict"], "neither the official check nor a checker");
    let r = &rows[0];
    assert_eq!(
        (r.official, r.inputs_at_official_tolerance, r.official_at_tolerance, r.detected, r.witnessed),
        (1, 2, 2, 4, 4)
    );
    assert_eq!((r.inputs_first, r.tolerance_second), (Some(25.0), Some(50.0)));
    assert_eq!((r.tolerance_first, r.inputs_second), (Some(25.0), Some(50.0)));
    // An input that is not valid at the tighter tolerance loses what it caught.
    let mut tight = graded(1);
    tight.inputs[0].validity.threshold = 5e-3;
    let r = &decompose(&official, &all[2..3], &[tight], &Scope::All, None)[0];
    assert_eq!((r.detected, r.tolerance_first), (0, Some(-25.0)));
}

#[test]
fn what_is_newly_caught_and_missed_is_of_mutants_that_both_audits_count() {
    let lax = [protocol("p", &["official#0"], 1e-2), protocol("gone", &["official#0"], 1e-2)];
    let strict = [protocol("p", &["official*3#0"], 1e-3), protocol("new", &["official#0"], 1e-2)];
    let (before, mut after) = (graded(1), graded(1));
    after.mutants[2].witnessed = false;
    let c = compare_audits((&[before.clone(), graded(2)], &lax), (&[after, graded(3)], &strict));
    assert!(!c.same);
    assert_eq!(c.compared, 3, "1c has no witness in the second, the others are of one audit alone");
    let ids = |list: &[assay_measure::MutantRef]| list.iter().map(|m| m.id.clone()).collect::<Vec<_>>();
    let names: Vec<&str> = c.protocols.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["p", "gone", "new"]);
    let p = &c.protocols[0];
    assert_eq!(
        (ids(&p.newly_caught), ids(&p.newly_missed)),
        (vec!["1b".to_owned(), "1d".into()], vec!["1a".to_owned()])
    );
    assert_eq!((p.before.unwrap().detected, p.after.unwrap().detected), (1, 2));
    assert!(c.protocols[1].after.is_none() && c.protocols[2].before.is_none());
    assert!(c.protocols[2].newly_caught.is_empty(), "there is nothing to compare with");
    assert_eq!(ids(&c.only_before), ["2a", "2b", "2c", "2d"]);
    assert_eq!(ids(&c.only_after), ["3a", "3b", "3c", "3d"]);
    assert_eq!(ids(&c.counted_only_before), ["1c"]);
    let one = std::slice::from_ref(&before);
    let same = compare_audits((one, &lax), (one, &lax));
    assert!(same.same);
    // A false kill more is a difference.
    let mut rejecting = before.clone();
    rejecting.inputs[0].controls.push(assay_measure::ControlRun {
        control: "plain-kernel".into(),
        end: assay_judge::EvaluationEnd::Mismatch,
        official: assay_measure::Graded::at(1.0),
    });
    assert!(!compare_audits((&[before], &lax), (&[rejecting], &lax)).same);
    assert_eq!(Tolerance::both(1e-2), lax[0].tolerance());
}
