//! Covers against hand-computed answers and against exhaustive search.

mod common;

use assay_judge::EvaluationEnd;
use assay_measure::{
    CoverOptions, Graded, Half, InputRow, KillMatrix, MatrixCell, MutantRow, Origin, Scope, Tolerance,
    best_cover, budget_scores, builtin, greedy_cover, half_of, minimum_inputs, shipped_protocol, suite_cover,
    suites,
};
use common::matrix;
use proptest::prelude::*;

fn all(n: usize) -> Vec<usize> {
    (0..n).collect()
}

fn names(m: &KillMatrix, inputs: &[usize]) -> String {
    inputs.iter().map(|&i| m.inputs[i].recipe.as_str()).collect::<Vec<_>>().join(" ")
}

fn greedy(m: &KillMatrix, options: CoverOptions) -> (String, Vec<u64>) {
    let c = greedy_cover(m, &all(m.mutants.len()), &all(m.inputs.len()), Tolerance::PAPER, options);
    (names(m, &c.inputs), c.killed)
}

#[test]
fn greedy_takes_the_input_that_kills_most() {
    let m = matrix(
        1,
        &["official#0", "a", "b", "c"],
        &[
            ("1", "boundary", "w", "K..K"),
            ("2", "boundary", "w", "KK.."),
            ("3", "boundary", "w", ".K.."),
            ("4", "boundary", "w", ".KK."),
            ("5", "boundary", "w", "..K."),
            ("6", "boundary", "w", "...."),
        ],
    );
    assert_eq!(greedy(&m, CoverOptions::up_to(1)), ("a".to_owned(), vec![3]));
    // official#0 (1) and b (5) and c (1) each add one: the official input is cheapest.
    assert_eq!(greedy(&m, CoverOptions::FULL), ("a official#0 b".to_owned(), vec![3, 4, 5]));
    assert_eq!(greedy(&m, CoverOptions::up_to(0)), (String::new(), vec![]));
    // With refill, c comes last: everything it kills is killed already.
    let refilled = CoverOptions { budget: Some(9), refill: true };
    assert_eq!(greedy(&m, refilled), ("a official#0 b c".to_owned(), vec![3, 4, 5, 5]));
    let targets = all(6);
    assert_eq!(minimum_inputs(&m, &targets, &all(4), Tolerance::PAPER, 1000), (3, Some(3)));
}

#[test]
fn ties_go_to_the_cheaper_origin_and_then_to_the_text() {
    let recipes = ["b", "loguniform(-3,3)#1", "a", "official*3#0", "official#1", "official#0"];
    let mut m = matrix(1, &recipes, &[("1", "boundary", "w", "KKKKKK")]);
    m.inputs[0].origin = Origin::Searched { mutant: "1".to_owned() };
    let mut order = Vec::new();
    while !m.inputs.is_empty() {
        let (chosen, _) = greedy(&m, CoverOptions::up_to(1));
        let Some(at) = m.input(&chosen) else { break };
        order.push(chosen);
        m.inputs[at].validity = Graded::at(1.0);
    }
    assert_eq!(order, ["official#0", "official#1", "official*3#0", "loguniform(-3,3)#1", "a", "b"]);
}

#[test]
fn an_input_that_correct_kernels_fail_is_never_selected() {
    let mut m = matrix(1, &["official#0", "huge"], &[("1", "boundary", "w", ".K")]);
    m.inputs[1].validity = Graded::at(2e-2);
    assert_eq!(greedy(&m, CoverOptions::FULL), (String::new(), vec![]));
}

#[test]
fn branch_and_bound_beats_greedy_where_greedy_errs() {
    // Greedy takes `wide` (4 of 6) and needs two more; the two halves suffice.
    let m = matrix(
        1,
        &["left", "right", "wide"],
        &[
            ("1", "boundary", "w", "K.."),
            ("2", "boundary", "w", "K.K"),
            ("3", "boundary", "w", "K.K"),
            ("4", "boundary", "w", ".KK"),
            ("5", "boundary", "w", ".KK"),
            ("6", "boundary", "w", ".K."),
        ],
    );
    assert_eq!(greedy(&m, CoverOptions::up_to(2)).1, [4, 5]);
    let best = best_cover(&m, &all(6), &all(3), Tolerance::PAPER, 2, 1000);
    assert_eq!((names(&m, &best.inputs), best.killed, best.proven), ("left right".to_owned(), 6, true));
    assert_eq!(minimum_inputs(&m, &all(6), &all(3), Tolerance::PAPER, 1000), (3, Some(2)));
    // Without the means to search, what is known is said and no more.
    let cut = best_cover(&m, &all(6), &all(3), Tolerance::PAPER, 2, 0);
    assert_eq!((cut.killed, cut.proven), (5, false));
    assert_eq!(minimum_inputs(&m, &all(6), &all(3), Tolerance::PAPER, 0), (3, None));
}

#[test]
fn halves_are_by_the_first_byte_of_sha256() {
    // SHA-256 of "abc" begins with ba, of the empty text with e3.
    assert_eq!(half_of("abc"), Half::Dev);
    assert_eq!(half_of(""), Half::Test);
    let dev = (0..1000).filter(|i| half_of(&format!("mutant-{i}")) == Half::Dev).count();
    assert!((440..560).contains(&dev), "{dev}");
}

/// Ids of the wanted halves, in order.
fn ids(halves: &[Half]) -> Vec<String> {
    let mut next = 0;
    halves
        .iter()
        .map(|&half| {
            loop {
                let id = format!("m{next}");
                next += 1;
                if half_of(&id) == half {
                    return id;
                }
            }
        })
        .collect()
}

#[test]
fn held_out_suites_never_use_what_was_searched_for_the_test_half() {
    use Half::{Dev, Test};
    let ids = ids(&[Dev, Dev, Test, Test]);
    let rows = |cells: [&'static str; 4]| -> Vec<(&str, &str, &str, &'static str)> {
        ids.iter().zip(cells).map(|(id, c)| (id.as_str(), "boundary", "w", c)).collect()
    };
    // `for-test` kills everything but was searched for a test mutant.
    let mut m = matrix(1, &["official#0", "for-dev", "for-test"], &rows(["K.K", ".KK", ".KK", "..K"]));
    m.inputs[1].origin = Origin::Searched { mutant: ids[1].clone() };
    m.inputs[2].origin = Origin::Searched { mutant: ids[2].clone() };
    let scores = budget_scores(&[m.clone()], &Scope::All, Tolerance::PAPER, &[1, 2, 3]);
    let numbers: Vec<_> = scores.iter().map(|s| (s.full_pool_detected, s.held_out_detected)).collect();
    // Full pool: for-test at once. Held out: official#0 first (a tie), which kills no test mutant, then for-dev.
    assert_eq!(numbers, [(4, 0), (4, 1), (4, 1)]);
    assert_eq!((scores[0].full_pool_witnessed, scores[0].held_out_witnessed), (4, 2));
    assert_eq!((scores[1].full_pool_percent(), scores[1].held_out_percent()), (Some(100.0), Some(50.0)));
    // Targeted instead of searched, it is open to everyone.
    m.inputs[2].origin = Origin::Targeted;
    let scores = budget_scores(&[m.clone()], &Scope::All, Tolerance::PAPER, &[1]);
    assert_eq!((scores[0].full_pool_detected, scores[0].held_out_detected), (4, 2));
    // A problem that cannot be refereed counts for nothing.
    m.unrefereeable = true;
    let scores = budget_scores(&[m], &Scope::All, Tolerance::PAPER, &[1]);
    assert_eq!((scores[0].full_pool_witnessed, scores[0].full_pool_percent()), (0, None));
}

#[test]
fn suites_ship_as_a_protocol() {
    let m = matrix(
        23,
        &["official#0", "a"],
        &[("1", "boundary", "w", "K."), ("2", "boundary", "w", ".K"), ("3", "boundary", "", "KK")],
    );
    let none = matrix(24, &["official#0"], &[("4", "boundary", "w", ".")]);
    let made = suites(&[m, none], &Scope::All, Tolerance::PAPER, Some(2));
    assert_eq!((made[0].recipes.join(" "), made[0].witnessed), ("official#0 a".to_owned(), 2));
    let targeted = builtin().unwrap().into_iter().find(|p| p.name == "targeted-2").unwrap();
    let shipped = shipped_protocol(&targeted, &made);
    assert_eq!(shipped.problems.keys().collect::<Vec<_>>(), ["1/23"]);
    assert_eq!(shipped.recipes("1/23", &[], |_| vec![]), ["official#0", "a"]);
    assert_eq!(shipped.recipes("1/24", &[], |_| vec!["chosen".to_owned()]), ["chosen"]);
}

/// A matrix from bits: `kills[m][i]`.
fn from_bits(kills: &[Vec<bool>], inputs: usize) -> KillMatrix {
    let mut m = KillMatrix::new(1, 1, "random");
    m.inputs = (0..inputs).map(|i| InputRow::new(format!("x#{i}"), Origin::Targeted, 0.0)).collect();
    for (at, row) in kills.iter().enumerate() {
        m.mutants.push(MutantRow {
            id: format!("m{at}"),
            rule: "r".to_owned(),
            family: "boundary".to_owned(),
            witnessed: true,
            ..MutantRow::default()
        });
        for (i, &killed) in row.iter().enumerate() {
            let t = if killed { 1.0 } else { 0.0 };
            let end = if killed { EvaluationEnd::Mismatch } else { EvaluationEnd::Pass };
            m.set_cell(at, i, MatrixCell::new(end, t, t)).unwrap();
        }
    }
    m
}

/// The most mutants that any `budget` inputs kill, by trying all.
fn optimum(kills: &[Vec<bool>], inputs: usize, budget: u32) -> u64 {
    (0u32..1 << inputs)
        .filter(|choice| choice.count_ones() <= budget)
        .map(|choice| {
            kills.iter().filter(|row| (0..inputs).any(|i| choice >> i & 1 == 1 && row[i])).count() as u64
        })
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn greedy_is_near_the_optimum_and_the_optimum_is_found(
        inputs in 1usize..8,
        rows in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.3), 8), 1..24),
    ) {
        let m = from_bits(&rows.iter().map(|r| r[..inputs].to_vec()).collect::<Vec<_>>(), inputs);
        let (targets, pool) = (all(rows.len()), all(inputs));
        let mut before = 0;
        for budget in 1..=inputs as u32 {
            let best = optimum(&rows, inputs, budget);
            let g = greedy_cover(&m, &targets, &pool, Tolerance::PAPER, CoverOptions::up_to(budget));
            prop_assert!(g.total() as f64 >= (1.0 - (-1.0f64).exp()) * best as f64);
            prop_assert!(g.total() >= before && g.inputs.len() <= budget as usize);
            before = g.total();
            let found = best_cover(&m, &targets, &pool, Tolerance::PAPER, budget, 1 << 20);
            prop_assert_eq!(found.killed, best);
            let suite = suite_cover(&m, &targets, &pool, Tolerance::PAPER, budget);
            prop_assert_eq!((suite.total(), suite.inputs.len() <= budget as usize), (best, true));
            prop_assert!(found.proven && found.inputs.len() <= budget as usize);
            let really = targets.iter().filter(|&&t| found.inputs.iter().any(|&i| rows[t][i])).count();
            prop_assert_eq!(really as u64, best);
        }
        let full = optimum(&rows, inputs, inputs as u32);
        let (_, fewest) = minimum_inputs(&m, &targets, &pool, Tolerance::PAPER, 1 << 20);
        let brute = (0..=inputs as u32).find(|&b| optimum(&rows, inputs, b) == full).unwrap();
        prop_assert_eq!(fewest, Some(u64::from(brute)));
    }

    #[test]
    fn a_cover_does_not_depend_on_the_order_of_inputs(
        rows in prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 1..12),
        order in Just(all(6)).prop_shuffle(),
    ) {
        let m = from_bits(&rows, 6);
        let mut shuffled = from_bits(
            &rows.iter().map(|r| order.iter().map(|&i| r[i]).collect()).collect::<Vec<Vec<bool>>>(), 6,
        );
        for (at, &i) in order.iter().enumerate() {
            shuffled.inputs[at].recipe = format!("x#{i}");
        }
        prop_assert_eq!(greedy(&m, CoverOptions::FULL), greedy(&shuffled, CoverOptions::FULL));
    }

    #[test]
    fn held_out_scores_do_not_change_with_what_is_searched_for_test_mutants(
        rows in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 2..20),
    ) {
        let mut m = from_bits(&rows, 5);
        let budgets = [1, 2, 3];
        let Some(test) = m.mutants.iter().position(|r| half_of(&r.id) == Half::Test) else { return Ok(()) };
        m.inputs[4].origin = Origin::Searched { mutant: m.mutants[test].id.clone() };
        let with = budget_scores(&[m.clone()], &Scope::All, Tolerance::PAPER, &budgets);
        m.inputs[4].validity = Graded::at(1.0);
        let without = budget_scores(&[m], &Scope::All, Tolerance::PAPER, &budgets);
        let held = |s: &[assay_measure::BudgetScore]| s.iter().map(|b| b.held_out_detected).collect::<Vec<_>>();
        prop_assert_eq!(held(&with), held(&without));
        let full: Vec<u64> = with.iter().map(|b| b.full_pool_detected).collect();
        prop_assert!(full.is_sorted() && held(&with).is_sorted());
    }
}
