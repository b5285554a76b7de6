//! The summary of a small audit, key by key.

mod common;

use assay_measure::{
    FailedBaseline, KillMatrix, MeasureError, Mechanism, Origin, Protocol, RuleInfo, Summary, SummaryInput,
    Timing, builtin, summarise,
};
use common::matrix;

fn matrices() -> Vec<KillMatrix> {
    let recipes = [
        "official#0",
        "official#1",
        "official#2",
        "official#3",
        "official#4",
        "official*3#0",
        "official*0.01#0",
        "official*-1#0",
        "loguniform(-3,3)#1",
        "loguniform(-3,3)#2",
        "loguniform(-3,3)#3",
        "signed",
        "ragged@N=7",
    ];
    let mut first = matrix(
        19,
        &recipes,
        &[
            ("a", "arithmetic", "w", "KKKKKKKKKKKKK"),
            ("b", "arithmetic", "wf", "KKKKK........"),
            ("c", "boundary", "wf", "............F"),
            ("d", "semantic", "w", ".......K...K."),
            ("e", "precision", "w", "ttttt...KKK.."),
            ("f", "synchronisation", "sf", "............."),
            ("g", "boundary", "q", "XXXXXXXXXXXXX"),
            ("h", "boundary", "f", "............."),
        ],
    );
    first.name = "relu".to_owned();
    let mut second = matrix(
        23,
        &recipes,
        &[("i", "boundary", "w", "...........K."), ("j", "width", "w", "............K")],
    );
    second.inputs[12].origin = Origin::Searched { mutant: "j".to_owned() };
    second.inputs[12].targeted = false;
    let mut third = matrix(4, &recipes[..5], &[("k", "boundary", "w", "KKKKK")]);
    third.unrefereeable = true;
    vec![first, second, third]
}

fn input<'a>(matrices: &'a [KillMatrix], protocols: &'a [Protocol]) -> SummaryInput<'a> {
    SummaryInput {
        matrices,
        protocols,
        rules: &[],
        baselines_failed: &[],
        timing: Timing {
            compile_ms_per_mutant: 8.5,
            evaluations: 9,
            evaluations_per_second: 3.0,
            wall_seconds: 3.0,
        },
        environment: serde_json::Map::new(),
        caveats: vec!["desk extents".to_owned()],
        seed: 0,
        resamples: 200,
    }
}

fn summary() -> Summary {
    let (matrices, mut protocols) = (matrices(), builtin().unwrap());
    // The tables that ship name real problems' inputs, which these small matrices lack.
    protocols.iter_mut().for_each(|p| p.problems.clear());
    let failed = [FailedBaseline {
        problem: "1/99".to_owned(),
        name: "broken".to_owned(),
        reason: "off by 0.5".to_owned(),
    }];
    let rules = [RuleInfo { id: "idle".to_owned(), family: "indexing".to_owned() }];
    summarise(SummaryInput { rules: &rules, baselines_failed: &failed, ..input(&matrices, &protocols) })
        .unwrap()
}

#[test]
fn the_keys_are_those_of_the_command() {
    let json = serde_json::to_value(summary()).unwrap();
    let keys = |v: &serde_json::Value| -> Vec<String> { v.as_object().unwrap().keys().cloned().collect() };
    let top = keys(&json);
    assert_eq!(
        &top[..8],
        ["pipeline", "families", "rules", "protocols", "suites", "sanitizer", "timing", "environment"]
    );
    let begins = |value: &serde_json::Value, want: &[&str]| assert_eq!(&keys(value)[..want.len()], want);
    begins(
        &json["pipeline"],
        &[
            "problems",
            "baselines_failed",
            "generated",
            "noncompiling",
            "duplicate_image",
            "equivalent",
            "quarantined",
            "distinct",
            "witnessed",
            "schedule_witnessed",
        ],
    );
    begins(&json["families"][0], &["family", "rules", "witnessed", "missed"]);
    begins(&json["rules"][0], &["id", "family", "witnessed", "missed"]);
    begins(
        &json["protocols"][0],
        &[
            "name",
            "inputs",
            "detected",
            "witnessed",
            "false_kills",
            "correct_runs",
            "unsupported",
            "exhausted",
        ],
    );
    begins(&json["suites"][0], &["budget", "full_pool", "held_out"]);
    begins(&json["sanitizer"], &["mutants_flagged", "flagged_and_missed_by_official"]);
    begins(
        &json["timing"],
        &["compile_ms_per_mutant", "evaluations", "evaluations_per_second", "wall_seconds"],
    );
}

#[test]
fn the_pipeline_adds_up() {
    let p = summary().pipeline;
    assert_eq!((p.problems, p.baselines_failed, p.unrefereeable), (4, 1, 1));
    assert_eq!(p.distinct, 11);
    assert_eq!(p.distinct, p.generated - p.noncompiling - p.duplicate_image - p.equivalent);
    // k is of a problem that cannot be refereed.
    assert_eq!((p.witnessed, p.schedule_witnessed, p.quarantined), (7, 1, 1));
}

#[test]
fn the_protocols_have_the_scores_computed_by_hand() {
    let s = summary();
    let row = |name: &str| {
        let r = s.protocols.iter().find(|r| r.name == name).unwrap();
        (r.detected, r.witnessed, r.inputs)
    };
    // Over the six families: a b c d e and i.
    assert_eq!(row("kernelbench-2025"), (2, 6, 5));
    assert_eq!(row("kernelbench"), (3, 6, 5));
    assert_eq!(row("kbv-inputs"), (3, 6, 4));
    assert_eq!(row("kbv"), (4, 6, 4));
    assert_eq!(row("ci-fuzz"), (3, 6, 4));
    assert_eq!(row("targeted-all"), (5, 6, 3));
    // 1/19: official#0 (a, b), then of those that add one the cheapest, official*-1#0 (d); 1/23: signed (i).
    assert_eq!(row("targeted-2"), (4, 6, 2));
    assert_eq!(s.protocols[0].detected_percent, Some(33.3));
    assert_eq!(s.protocols[0].published_percent, Some(83.1));
}

#[test]
fn the_width_family_has_a_table_of_its_own() {
    let s = summary();
    let families: Vec<&str> = s.families.iter().map(|f| f.family.as_str()).collect();
    assert_eq!(
        families,
        ["arithmetic", "indexing", "semantic", "boundary", "synchronisation", "precision", "width"]
    );
    assert_eq!(s.families.iter().map(|f| f.witnessed).sum::<u64>(), s.pipeline.witnessed);
    let precision = &s.families[5];
    assert_eq!((precision.missed_percent, precision.published_missed_percent), (Some(100.0), Some(78.6)));
    assert_eq!((s.families[1].rules, s.families[1].missed_percent), (1, None));
    // Neither the problems' rows nor the survivors know of j.
    assert_eq!(s.problems.iter().map(|p| p.witnessed).sum::<u64>(), s.protocols[0].witnessed + 1);
    assert!(s.survivors.iter().all(|r| r.family != "width"));
    let width = s.width.unwrap();
    assert_eq!((width.distinct, width.witnessed, width.unwitnessed), (1, 1, 0));
    assert_eq!((width.protocols[0].detected, width.protocols[0].witnessed), (0, 1));
    assert_eq!((width.suites[0].full_pool, width.protocols[0].published_percent), (Some(100.0), None));
}

#[test]
fn survivors_mechanisms_and_the_worst_problem_are_told() {
    let s = summary();
    let count = |m| s.mechanisms.iter().find(|r| r.mechanism == Some(m)).unwrap().survivors;
    // e is forgiven, d and i are not excited, c needs a ragged shape, f another schedule.
    assert_eq!(count(Mechanism::Tolerance), 1);
    assert_eq!(count(Mechanism::InputSupport), 2);
    assert_eq!(count(Mechanism::Shape), 1);
    assert_eq!(count(Mechanism::Schedule), 1);
    assert_eq!(s.mechanisms.len(), 4);
    for row in &s.mechanisms {
        assert_eq!(row.families.values().sum::<u64>(), row.survivors, "{row:?}");
    }
    let ids: Vec<&str> = s.survivors.iter().map(|r| r.mutant.as_str()).collect();
    // c faults; of the equal d, e and i, d and i are unseen by the official inputs.
    assert_eq!(ids, ["c", "d", "i", "e"]);
    assert_eq!(s.survivors[0].witness.as_deref(), Some("ragged@N=7"));
    let worst = s.worst_problem.unwrap();
    assert_eq!((worst.problem.as_str(), worst.missed, worst.witnessed), ("1/23", 1, 1));
    assert_eq!(worst.why, "1 of 1 faults survive, 1 by input support; 1 are boundary faults");
}

#[test]
fn what_only_the_sanitizer_saw_is_counted() {
    let s = summary().sanitizer;
    // b c f h are flagged; b is caught; f and h have no witness. Width is not counted here either.
    assert_eq!((s.mutants_flagged, s.flagged_and_missed_by_official, s.flagged_and_not_witnessed), (4, 3, 2));
    assert_eq!(s.witnessed_and_not_flagged, 4);
}

#[test]
fn suites_grow_with_their_budget() {
    let s = summary();
    let full: Vec<u64> = s.suites.iter().map(|r| r.full_pool_detected).collect();
    // 1/19 has five: official#0 kills a and b, then each input one more; 1/23 has one.
    assert_eq!(full, [3, 4, 5, 6]);
    assert_eq!(s.suites[3].full_pool, Some(100.0));
    assert_eq!(s.suites[1].published_held_out, Some(94.8));
    let relu = &s.problems[0];
    assert_eq!((relu.suite_inputs, relu.fewest_inputs), (4, Some(4)));
    assert_eq!((s.statistics.suite_inputs_median, s.statistics.suite_inputs_largest), (Some(1), Some(4)));
}

#[test]
fn statistics_cover_problems_with_a_denominator() {
    let s = summary().statistics;
    assert_eq!(s.missed_percent, Some(66.7));
    let d = s.per_problem.unwrap();
    assert_eq!((d.problems, d.median, d.largest), (2, 60.0, 100.0));
    assert_eq!(s.bands.len(), 1);
    assert_eq!((s.bands[0].problems, s.bands[0].low, s.bands[0].high), (2, 60.0, 100.0));
    // Of the nine distinct mutants of the six families (k's problem left out), a and b are killed.
    assert_eq!(s.distinct_surviving_percent, Some(77.8));
}

#[test]
fn caveats_say_what_the_figures_hide() {
    let s = summary();
    assert_eq!(s.caveats[0], "desk extents");
    assert!(s.caveats.iter().any(|c| c.contains("not scored") && c.contains("1/4")), "{:?}", s.caveats);
    assert!(
        s.caveats.iter().any(|c| c.contains("`targeted-2` was selected on the mutants")),
        "{:?}",
        s.caveats
    );
    let failed = s.problems.last().unwrap();
    assert_eq!((failed.status.as_str(), failed.reason.as_deref()), ("baseline_failed", Some("off by 0.5")));
}

#[test]
fn a_summary_reads_back_and_repeats() {
    let s = summary();
    let text = serde_json::to_string(&s).unwrap();
    assert!(text.contains("\"witness_threshold\":\"Infinity\""));
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), s);
    assert_eq!(serde_json::to_string(&summary()).unwrap(), text);
}

#[test]
fn another_first_protocol_leads_and_has_no_published_families() {
    let (matrices, mut protocols) = (matrices(), builtin().unwrap());
    protocols.rotate_left(7);
    let s = summarise(input(&matrices, &protocols)).unwrap();
    assert_eq!(
        (s.headline_protocol.as_str(), s.official_protocol.as_str()),
        ("targeted-all", "kernelbench-2025")
    );
    assert!(s.families.iter().all(|f| f.published_missed_percent.is_none()));
    assert_eq!(s.survivors.len(), 1);
    let alone = summarise(input(&matrices, &protocols[..1])).unwrap();
    assert_eq!(alone.official_protocol, "targeted-all");
}

#[test]
fn nothing_to_count_is_no_percentage() {
    let protocols = builtin().unwrap();
    let s = summarise(input(&[], &protocols)).unwrap();
    assert_eq!((s.protocols[0].detected_percent, s.suites[0].full_pool), (None, None));
    assert_eq!((s.worst_problem, s.statistics.bands.len(), s.width), (None, 0, None));
}

#[test]
fn inputs_that_make_no_summary_are_refused() {
    let (good, protocols) = (matrices(), builtin().unwrap());
    assert_eq!(summarise(input(&good, &[])), Err(MeasureError::NoProtocol));
    let twice = [protocols[0].clone(), protocols[0].clone()];
    assert!(matches!(summarise(input(&good, &twice)), Err(MeasureError::DuplicateProtocol(_))));
    let mut bad = matrices();
    bad[1].filtered.generated = 0;
    assert!(matches!(summarise(input(&bad, &protocols)), Err(MeasureError::Matrix { .. })));
}

#[test]
fn the_sanitizer_is_scored_as_a_protocol_by_family() {
    let recipes = ["official#0", "official#1"];
    let m = matrix(
        1,
        &recipes,
        &[
            ("a", "boundary", "wf", "K."),
            // Flagged, witnessed by an input that no protocol here asks.
            ("b", "boundary", "wf", "-K"),
            ("c", "boundary", "w", "K."),
            ("d", "synchronisation", "f", ".."),
            ("e", "width", "wf", ".."),
        ],
    );
    let text = "name = \"one\"\ninputs = [\"official#0\"]\natol = 1e-2\nrtol = 1e-2\n";
    let protocols = [Protocol::parse(text, "one").unwrap()];
    let s = summarise(input(&[m], &protocols)).unwrap();
    let rows: Vec<(&str, [u64; 5])> = s
        .sanitizer_families
        .iter()
        .map(|r| {
            let counts = [r.witnessed, r.detected, r.missed_by_official, r.alone, r.flagged_not_witnessed];
            (r.family.as_str(), counts)
        })
        .filter(|(_, counts)| counts.iter().any(|&n| n > 0))
        .collect();
    assert_eq!(rows, [("boundary", [3, 2, 1, 1, 0]), ("synchronisation", [0, 0, 0, 0, 1])]);
}
