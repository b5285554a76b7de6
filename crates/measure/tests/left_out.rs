//! Greedy beside the optimum, and suites on what they were not selected on.

mod common;

use assay_measure::{Origin, Scope, Tolerance, budget_curve, left_out};
use common::matrix;

const NODES: u64 = 10_000;

#[test]
fn greedy_is_beaten_where_the_best_pair_leaves_out_the_best_single_input() {
    // The first input kills most alone; the other two together kill all.
    let m = matrix(
        1,
        &["official#0", "official#1", "official#2"],
        &[
            ("a", "arithmetic", "w", "KK."),
            ("b", "arithmetic", "w", "KK."),
            ("c", "arithmetic", "w", ".K."),
            ("d", "arithmetic", "w", "K.K"),
            ("e", "arithmetic", "w", "K.K"),
            ("f", "arithmetic", "w", "..K"),
        ],
    );
    let rows =
        budget_curve(&[m.clone(), matrix(2, &[], &[])], &Scope::All, Tolerance::PAPER, &[1, 2, 3], NODES);
    let seen: Vec<(u64, u64, u64, u64)> =
        rows.iter().map(|r| (r.greedy, r.optimum, r.proven, r.problems)).collect();
    assert_eq!(seen, [(4, 4, 1, 1), (5, 6, 1, 1), (6, 6, 1, 1)]);
    // Without a node to visit, greedy's own choice stands, unproven.
    let cut = &budget_curve(&[m], &Scope::All, Tolerance::PAPER, &[2], 0)[0];
    assert_eq!((cut.optimum, cut.proven), (5, 0));
}

#[test]
fn a_rule_left_out_is_met_by_what_the_others_needed() {
    let recipes = ["official#0", "normal(1)#1", "ragged@N=3#2"];
    let m = matrix(
        1,
        &recipes,
        &[
            ("a", "arithmetic", "w", "K.."),
            ("b", "boundary", "w", "..K"),
            ("c", "semantic", "w", "K.K"),
            ("p", "precision", "w", ".K."),
        ],
    );
    let rules = left_out(std::slice::from_ref(&m), &Scope::All, Tolerance::PAPER, &[1, 3]).rules;
    // At three inputs the others' faults, covered once more, ask everything but what only `p` needs.
    let counts: Vec<(u64, u64)> = rows(&rules);
    assert_eq!(counts, [(1, 4), (3, 4)]);
    // An input that was found by searching for the rule's own mutant is not there when the rule is left out.
    let mut searched = m;
    searched.inputs[2].origin = Origin::Searched { mutant: "b".into() };
    searched.inputs[2].targeted = false;
    let rules = left_out(&[searched], &Scope::All, Tolerance::PAPER, &[3]).rules;
    assert_eq!(rows(&rules), [(2, 4)], "`b` and `p` are out of reach");
}

fn rows(rows: &[assay_measure::LeftOutRow]) -> Vec<(u64, u64)> {
    rows.iter().map(|r| (r.detected, r.witnessed)).collect()
}

#[test]
fn a_problem_left_out_is_asked_the_kinds_of_input_that_worked_elsewhere() {
    let recipes =
        |n: u32| -> [String; 3] { ["official#0".into(), "ties(3)#9".into(), format!("normal(1)@N={n}#{n}")] };
    let problem = |id: u32, cells: [&str; 3]| {
        let r = recipes(id);
        let r: Vec<&str> = r.iter().map(String::as_str).collect();
        let ids = [format!("{id}a"), format!("{id}b"), format!("{id}c")];
        let rows: Vec<(&str, &str, &str, &str)> =
            ids.iter().zip(cells).map(|(id, c)| (id.as_str(), "boundary", "w", c)).collect();
        matrix(id, &r, &rows)
    };
    // Elsewhere the ragged input kills most; here the official one would.
    let odd = problem(1, ["K..", "K..", "..K"]);
    let others = [problem(2, ["..K", "..K", "K.."]), problem(3, ["..K", "..K", ".K."])];
    let all = [odd, others[0].clone(), others[1].clone()];
    let found = left_out(&all, &Scope::All, Tolerance::PAPER, &[1, 2, 3]).problems;
    // One input: `@N=…` for every problem (1 of 3 in the odd one, 2 of 3 in the others).
    assert_eq!(rows(&found)[0], (5, 9));
    assert_eq!(rows(&found)[2], (9, 9));
    // Alone, there is nobody to learn from, and a kind is asked all the same.
    let alone = left_out(&all[..1], &Scope::All, Tolerance::PAPER, &[3]).problems;
    assert_eq!(rows(&alone), [(3, 3)]);
    // Searched inputs teach nothing and are not asked.
    let mut searched = all[0].clone();
    searched.inputs[0].origin = Origin::Searched { mutant: "1a".into() };
    let alone = left_out(&[searched], &Scope::All, Tolerance::PAPER, &[3]).problems;
    assert_eq!(rows(&alone), [(1, 3)]);
}
