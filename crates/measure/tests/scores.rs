//! Protocol scores, families, false kills, mechanisms and survivors, all computed by hand.

mod common;

use assay_judge::EvaluationEnd;
use assay_measure::{
    ControlRun, Graded, KillMatrix, MatrixCell, Mechanism, Protocol, RuleInfo, Scope, Tolerance, classify,
    family_scores, miss_patterns, most_surprising, rule_scores, score, survivors,
};
use common::matrix;

fn protocol(name: &str, inputs: &[&str], t: f64) -> Protocol {
    let list: Vec<String> = inputs.iter().map(|r| format!("{r:?}")).collect();
    let text = format!("name = {name:?}\ninputs = [{}]\natol = {t}\nrtol = {t}\n", list.join(", "));
    Protocol::parse(&text, "p.toml").unwrap()
}

/// Two problems, seven witnessed mutants.
fn two_problems() -> Vec<KillMatrix> {
    vec![
        matrix(
            1,
            &["official#0", "official#1", "official*3#0", "ragged@N=7"],
            &[
                ("a", "arithmetic", "w", "KK.."),
                ("b", "arithmetic", "w", ".KK."),
                ("c", "boundary", "wf", "...F"),
                ("d", "precision", "w", "ttN."),
                ("e", "synchronisation", "sf", "...."),
                ("g", "boundary", "q", "XXXX"),
            ],
        ),
        matrix(
            2,
            &["official#0", "official#1", "official*3#0"],
            &[("h", "semantic", "w", "XUK"), ("i", "indexing", "w", "oo."), ("j", "width", "w", "--K")],
        ),
    ]
}

#[test]
fn a_protocol_detects_what_one_of_its_inputs_kills() {
    let matrices = two_problems();
    let official = protocol("official", &["official#0", "official#1"], 1e-2);
    let s = score(&official, &matrices, &Scope::All);
    // a by both, b by the second, i against the official reference alone; c, d, h, j survive.
    assert_eq!((s.detected, s.witnessed, s.missed()), (3, 7, 4));
    assert_eq!((s.exhausted, s.unsupported, s.not_evaluated), (1, 1, 2));
    assert_eq!(s.problems[0].detected, [true, true, false, false, false, false]);
    assert_eq!((s.problems[1].caught, s.problems[1].witnessed), (1, 3));
    assert_eq!(s.input_counts(), [2, 2]);
    // Without width, j is no part of anything.
    let s = score(&official, &matrices, &Scope::Paper);
    assert_eq!((s.detected, s.witnessed, s.not_evaluated), (3, 6, 0));
    let s = score(&official, &matrices, &Scope::Family("width".to_owned()));
    assert_eq!((s.detected, s.witnessed, s.not_evaluated), (0, 1, 2));
}

#[test]
fn a_tighter_tolerance_needs_no_other_run() {
    let matrices = two_problems();
    let tight = protocol("tight", &["official#0", "official#1"], 1e-3);
    // d is off by 5e-3.
    assert_eq!(score(&tight, &matrices, &Scope::All).detected, 4);
}

#[test]
fn rejections_on_invalid_inputs_are_counted_as_invalid() {
    let mut matrices = two_problems();
    matrices[0].inputs[1].validity = Graded::at(2e-3);
    let official = protocol("official", &["official#0", "official#1"], 1e-2);
    let s = score(&official, &matrices, &Scope::All);
    assert_eq!((s.detected, s.invalid_rejections, s.problems[0].invalid_inputs), (3, 0, 0));
    let tight = protocol("tight", &["official#0", "official#1"], 1e-3);
    let s = score(&tight, &matrices, &Scope::All);
    // At 1e-3 official#1 is invalid there: b is lost; a, b and d are rejected on it; d is caught by official#0.
    assert_eq!((s.detected, s.invalid_rejections, s.problems[0].invalid_inputs), (3, 3, 1));
}

#[test]
fn recipes_that_the_matrix_lacks_are_named() {
    let matrices = two_problems();
    let s = score(&protocol("p", &["official#0", "ones", "ragged@N=7"], 1e-2), &matrices, &Scope::All);
    assert_eq!(s.problems[0].missing_inputs, ["ones"]);
    assert_eq!(s.problems[1].missing_inputs, ["ones", "ragged@N=7"]);
    // 4 mutants x 1 recipe, 3 x 2, and j's hole on official#0.
    assert_eq!(s.not_evaluated, 4 + 6 + 1);
}

#[test]
fn false_kills_are_rejections_of_correct_implementations() {
    let mut matrices = two_problems();
    let run =
        |control: &str, end, t| ControlRun { control: control.to_owned(), end, official: Graded::at(t) };
    use EvaluationEnd::*;
    matrices[0].inputs[0].controls = vec![run("plain", Pass, 1e-6), run("reversed", Pass, 5e-3)];
    matrices[0].inputs[1].controls = vec![run("plain", Mismatch, 0.5), run("reversed", Fault, f64::INFINITY)];
    matrices[1].inputs[0].controls = vec![run("plain", Unsupported, f64::INFINITY)];
    // An invalid input rejects correct kernels: that is a false kill all the same.
    matrices[0].inputs[1].validity = Graded::at(0.5);
    let counts = |t: f64| {
        let s = score(&protocol("p", &["official#0", "official#1"], t), &matrices, &Scope::All);
        (s.false_kills, s.false_kill_inputs, s.correct_runs, s.controls_undecided)
    };
    assert_eq!(counts(1e-2), (2, 1, 4, 1));
    assert_eq!(counts(1e-3), (3, 2, 4, 1));
    assert_eq!(counts(1.0), (1, 1, 4, 1));
}

#[test]
fn targeted_recipes_count_whatever_their_origin() {
    let mut matrices = two_problems();
    matrices[0].inputs[2].targeted = true;
    let mut p = protocol("p", &["official#0"], 1e-2);
    p.targeted = true;
    let s = score(&p, &matrices, &Scope::All);
    assert_eq!(s.problems[0].inputs, [0, 2, 3]);
    assert_eq!(s.problems[1].inputs, [0]);
}

#[test]
fn a_targeted_recipe_on_which_correct_kernels_differ_is_not_asked() {
    let mut matrices = two_problems();
    let mut p = protocol("p", &["official#0"], 1e-2);
    p.targeted = true;
    matrices[0].inputs[3].validity = Graded::at(0.0105);
    let rejected = ControlRun {
        control: "plain-kernel".to_owned(),
        end: EvaluationEnd::Mismatch,
        official: Graded::at(0.0105),
    };
    matrices[0].inputs[3].controls = vec![rejected];
    let s = score(&p, &matrices, &Scope::All);
    assert_eq!((&s.problems[0].inputs[..], s.false_kills), (&[0][..], 0));
    // At a tolerance where they agree it is.
    let s = score(&Protocol { atol: 0.1, rtol: 0.1, ..p }, &matrices, &Scope::All);
    assert_eq!(s.problems[0].inputs, [0, 3]);
}

#[test]
fn a_suite_budget_takes_the_cover_of_the_run_unless_the_table_has_the_problem() {
    let matrices = two_problems();
    let text =
        "name = \"s\"\nsuite_budget = 2\natol = 1e-2\nrtol = 1e-2\n[problems]\n\"1/2\" = [\"official#0\"]\n";
    let p = Protocol::parse(text, "s.toml").unwrap();
    let s = score(&p, &matrices, &Scope::All);
    // 1/1: official#1 kills a and b and is cheaper than official*3#0 with b and d; that one then adds d, before
    // ragged with c.
    assert_eq!(s.problems[0].inputs, [1, 2]);
    assert_eq!(s.problems[1].inputs, [0]);
    assert_eq!(s.detected, 4);
}

#[test]
fn an_unrefereeable_problem_is_not_scored() {
    let mut matrices = two_problems();
    matrices[0].unrefereeable = true;
    let s = score(&protocol("p", &["official#0"], 1e-2), &matrices, &Scope::All);
    assert_eq!((s.detected, s.witnessed), (1, 3));
    assert!(s.problems[0].inputs.is_empty());
}

#[test]
fn misses_add_up_by_rule_and_by_family() {
    let matrices = two_problems();
    let s = score(&protocol("p", &["official#0", "official#1"], 1e-2), &matrices, &Scope::All);
    let idle = RuleInfo { id: "another".to_owned(), family: "boundary".to_owned() };
    let rules = rule_scores(&s, &matrices, std::slice::from_ref(&idle), &Scope::All);
    let shown: Vec<(String, u64, u64)> =
        rules.iter().map(|r| (r.rule.id.clone(), r.witnessed, r.missed)).collect();
    let want = [
        ("arithmetic-rule", 2, 0),
        ("indexing-rule", 1, 0),
        ("semantic-rule", 1, 1),
        ("another", 0, 0),
        ("boundary-rule", 1, 1),
        ("synchronisation-rule", 0, 0),
        ("precision-rule", 1, 1),
        ("width-rule", 1, 1),
    ];
    assert_eq!(shown, want.map(|(id, w, m)| (id.to_owned(), w, m)));
    let families = family_scores(&rules);
    let boundary = families.iter().find(|f| f.family == "boundary").unwrap();
    assert_eq!((boundary.rules, boundary.witnessed, boundary.missed), (2, 1, 1));
    assert_eq!(families.iter().map(|f| f.missed).sum::<u64>(), s.missed());
}

#[test]
fn miss_patterns_partition_the_witnessed() {
    let matrices = two_problems();
    let scores = [
        score(&protocol("p", &["official#0", "official#1"], 1e-2), &matrices, &Scope::All),
        score(&protocol("q", &["official*3#0"], 1e-2), &matrices, &Scope::All),
    ];
    // p misses c d h j; q misses a c i.
    let patterns = miss_patterns(&scores, &matrices, &Scope::All);
    assert_eq!(patterns, [(vec![0], 3), (vec![1], 2), (vec![], 1), (vec![0, 1], 1)]);
}

#[test]
fn every_survivor_has_its_mechanism() {
    let m = matrix(
        1,
        &["official#0", "official*3#0", "ragged@N=7"],
        &[
            // Shows at 5e-3 on the official input.
            ("forgiven", "precision", "w", "tK."),
            ("unexcited", "semantic", "w", ".K."),
            ("both", "boundary", "w", ".KK"),
            ("ragged", "boundary", "w", "..K"),
            // The tolerance comes first: the fault does reach the official output.
            ("ragged-but-visible", "boundary", "w", "t.K"),
            ("raced", "synchronisation", "s", "..."),
            ("nothing", "boundary", "", "..."),
            ("lost-witness", "boundary", "w", "..."),
            // Wrong against the official reference only: not a witness.
            ("official-only", "boundary", "w", ".o."),
        ],
    );
    let of = |id: &str| {
        let at = m.mutants.iter().position(|r| r.id == id).unwrap();
        classify(&m, at, &[0], Tolerance::PAPER)
    };
    use Mechanism as M;
    let table = [
        ("forgiven", Some(M::Tolerance)),
        ("unexcited", Some(M::InputSupport)),
        ("both", Some(M::InputSupport)),
        ("ragged", Some(M::Shape)),
        ("ragged-but-visible", Some(M::Tolerance)),
        ("raced", Some(M::Schedule)),
        ("nothing", None),
        ("lost-witness", None),
        ("official-only", None),
    ];
    for (id, want) in table {
        assert_eq!(of(id), want, "{id}");
    }
}

#[test]
fn an_error_within_legitimate_variance_is_not_forgiven_by_the_tolerance() {
    let mut m = matrix(1, &["official#0", "official*3#0"], &[("a", "semantic", "w", "tK")]);
    // Correct kernels are 3e-3 apart; twice that is more than the mutant's 5e-3.
    m.inputs[0].validity = Graded::at(3e-3);
    assert_eq!(classify(&m, 0, &[0], Tolerance::PAPER), Some(Mechanism::InputSupport));
    m.inputs[0].validity = Graded::at(2e-3);
    assert_eq!(classify(&m, 0, &[0], Tolerance::PAPER), Some(Mechanism::Tolerance));
    // An input that is invalid at the protocol's tolerance shows nothing.
    assert_eq!(classify(&m, 0, &[0], Tolerance::both(1e-3)), Some(Mechanism::InputSupport));
}

#[test]
fn the_most_surprising_survivors_are_of_different_problems_and_rules() {
    let big = |t: f64| MatrixCell::new(EvaluationEnd::Mismatch, t, t);
    let mut one = matrix(
        1,
        &["official#0", "x", "y"],
        &[
            ("a", "boundary", "w", ".KK"),
            ("b", "boundary", "w", ".K."),
            ("c", "semantic", "w", ".TF"),
            ("killed", "semantic", "w", "KKK"),
        ],
    );
    one.set_cell(0, 2, big(50.0)).unwrap();
    let mut two =
        matrix(2, &["official#0", "x"], &[("d", "boundary", "w", ".K"), ("e", "indexing", "w", "tT")]);
    two.set_cell(0, 1, big(40.0)).unwrap();
    let matrices = [one, two];
    let s = score(&protocol("p", &["official#0"], 1e-2), &matrices, &Scope::All);
    let lost = survivors(&matrices, &s, &Scope::All);
    let id = |s: &assay_measure::Survivor| matrices[s.problem].mutants[s.mutant].id.clone();
    assert_eq!(lost.iter().map(id).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    // a's error is largest on y; c's fault on y beats its mismatch on x.
    assert_eq!((lost[0].witness, lost[0].witness_threshold, lost[0].surprise), (Some(2), 50.0, 5000.0));
    assert_eq!((lost[2].witness, lost[2].surprise), (Some(2), 1e6));
    assert_eq!((lost[4].asked_threshold, lost[4].mechanism), (5e-3, Some(Mechanism::Tolerance)));
    let chosen =
        |n: usize| most_surprising(&matrices, &lost, n).into_iter().map(id).collect::<Vec<_>>().join("");
    // c leads; then d, since a is of c's problem; e brings a new rule; a and b bring nothing new.
    assert_eq!(chosen(1), "c");
    assert_eq!(chosen(2), "cd");
    assert_eq!(chosen(3), "cde");
    assert_eq!(chosen(9), "cadbe");
}
