//! Suites by budget, on the full pool and on held-out mutants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    CoverOptions, KillMatrix, Origin, Protocol, Scope, Tolerance, best_cover, greedy_cover, percent,
    suite_cover,
};

/// The budgets of tables, in inputs a problem.
pub const BUDGETS: [u32; 4] = [1, 2, 3, 5];

/// The budgets of the curve beside them.
pub const BUDGET_CURVE: [u32; 6] = [1, 2, 3, 4, 5, 6];

/// One budget of the curve: what greedy cover selects beside the best that any choice could.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveRow {
    /// Inputs a problem.
    pub budget: u32,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Killed by greedy cover.
    pub greedy: u64,
    /// Killed by the best choice found by branch and bound; where `proven` is below `problems`, more may be possible.
    pub optimum: u64,
    /// Problems where no other choice of inputs kills more, proven by an exhausted search.
    pub proven: u64,
    /// Problems with witnessed mutants.
    pub problems: u64,
}

/// Greedy cover beside the optimum at each budget, on the full pool; `nodes` bounds the search of a problem and budget.
pub fn budget_curve(
    matrices: &[KillMatrix],
    scope: &Scope,
    tolerance: Tolerance,
    budgets: &[u32],
    nodes: u64,
) -> Vec<CurveRow> {
    let row = |&budget: &u32| {
        let mut row = CurveRow { budget, witnessed: 0, greedy: 0, optimum: 0, proven: 0, problems: 0 };
        for matrix in matrices {
            let targets = scope.targets(matrix);
            if targets.is_empty() {
                continue;
            }
            let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
            let greedy = greedy_cover(matrix, &targets, &pool, tolerance, CoverOptions::up_to(budget));
            let best = best_cover(matrix, &targets, &pool, tolerance, budget, nodes);
            row.problems += 1;
            row.witnessed += targets.len() as u64;
            row.greedy += greedy.total();
            row.optimum += best.killed;
            row.proven += u64::from(best.proven);
        }
        row
    };
    budgets.iter().map(row).collect()
}

/// The halves of a held-out split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Inputs are selected on these mutants.
    Dev,
    /// And scored on these.
    Test,
}

/// Which half a mutant is in: `Dev` where the first byte of the SHA-256 of its id is even. A function of the id
/// alone, so that a search for inputs can know it beforehand and no rerun moves a mutant.
pub fn half_of(mutant_id: &str) -> Half {
    let digest = Sha256::digest(mutant_id.as_bytes());
    if digest[0] % 2 == 0 { Half::Dev } else { Half::Test }
}

/// A suite of one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// `level/id`.
    pub problem: String,
    /// Recipes, in the order of selection.
    pub recipes: Vec<String>,
    /// Witnessed mutants killed by the first 1, 2, … of them.
    pub killed: Vec<u64>,
    /// Witnessed mutants.
    pub witnessed: u64,
}

/// The suite of every refereeable problem, selected on all its witnessed mutants in scope: the best cover of at most
/// `budget` inputs that a bounded search finds ([`suite_cover`]). Without a budget: greedy cover, as many inputs as
/// help.
pub fn suites(
    matrices: &[KillMatrix],
    scope: &Scope,
    tolerance: Tolerance,
    budget: Option<u32>,
) -> Vec<Suite> {
    let scored = matrices.iter().filter(|m| !m.unrefereeable);
    scored
        .map(|matrix| {
            let targets = scope.targets(matrix);
            let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
            let cover = match budget {
                Some(budget) => suite_cover(matrix, &targets, &pool, tolerance, budget),
                None => greedy_cover(matrix, &targets, &pool, tolerance, CoverOptions::FULL),
            };
            Suite {
                problem: matrix.key(),
                recipes: cover.inputs.iter().map(|&i| matrix.inputs[i].recipe.clone()).collect(),
                witnessed: cover.targets,
                killed: cover.killed,
            }
        })
        .collect()
}

/// `protocol` with a table of these suites: how a suite selected on one run ships as data. Suites without an input
/// leave no line, so that the protocol goes on choosing for those problems.
pub fn shipped_protocol(protocol: &Protocol, suites: &[Suite]) -> Protocol {
    let problems: BTreeMap<String, Vec<String>> = suites
        .iter()
        .filter(|s| !s.recipes.is_empty())
        .map(|s| (s.problem.clone(), s.recipes.clone()))
        .collect();
    Protocol { problems, ..protocol.clone() }
}

/// What suites of one budget detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetScore {
    /// Inputs a problem.
    pub budget: u32,
    /// Witnessed mutants detected by suites selected on all of them.
    pub full_pool_detected: u64,
    /// Witnessed mutants.
    pub full_pool_witnessed: u64,
    /// Test-half mutants detected by suites selected on the dev half.
    pub held_out_detected: u64,
    /// Test-half mutants.
    pub held_out_witnessed: u64,
}

impl BudgetScore {
    /// Detected of the full pool, in percent.
    pub fn full_pool_percent(&self) -> Option<f64> {
        percent(self.full_pool_detected, self.full_pool_witnessed)
    }

    /// Detected of the test half, in percent.
    pub fn held_out_percent(&self) -> Option<f64> {
        percent(self.held_out_detected, self.held_out_witnessed)
    }
}

/// Inputs that a suite selected on the dev half may use: all but those found by searching for a mutant of the test
/// half.
fn dev_pool(matrix: &KillMatrix) -> Vec<usize> {
    let open = |origin: &Origin| match origin {
        Origin::Searched { mutant } => half_of(mutant) == Half::Dev,
        Origin::Official | Origin::Kbv | Origin::CiFuzz | Origin::Targeted | Origin::Protocol => true,
    };
    matrix.inputs.iter().enumerate().filter(|(_, i)| open(&i.origin)).map(|(at, _)| at).collect()
}

/// Scores suites at each budget.
///
/// Full pool: selected ([`suite_cover`]) and scored on all witnessed mutants, every input open. Held out: greedily selected on the dev half
/// out of inputs not searched for a test-half mutant, what is left of a budget spent on redundancy
/// ([`CoverOptions::refill`]), scored on the test half. Counts are pooled over problems.
///
/// Source: "Measuring the Checker", section 6.
pub fn budget_scores(
    matrices: &[KillMatrix],
    scope: &Scope,
    tolerance: Tolerance,
    budgets: &[u32],
) -> Vec<BudgetScore> {
    let largest = budgets.iter().copied().max().unwrap_or(0);
    let empty = |&budget: &u32| BudgetScore {
        budget,
        full_pool_detected: 0,
        full_pool_witnessed: 0,
        held_out_detected: 0,
        held_out_witnessed: 0,
    };
    let mut rows: Vec<BudgetScore> = budgets.iter().map(empty).collect();
    for matrix in matrices.iter().filter(|m| !m.unrefereeable) {
        let targets = scope.targets(matrix);
        let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
        let (dev, test): (Vec<usize>, Vec<usize>) =
            targets.iter().partition(|&&m| half_of(&matrix.mutants[m].id) == Half::Dev);
        let options = CoverOptions { budget: Some(largest), refill: true };
        // The choice at one budget begins the choice at the next, so the largest serves all.
        let selected = greedy_cover(matrix, &dev, &dev_pool(matrix), tolerance, options);
        for row in &mut rows {
            let upto = |n: usize| n.min(row.budget as usize);
            row.full_pool_witnessed += targets.len() as u64;
            row.full_pool_detected += suite_cover(matrix, &targets, &pool, tolerance, row.budget).total();
            let asked = &selected.inputs[..upto(selected.inputs.len())];
            row.held_out_witnessed += test.len() as u64;
            let caught = |&&m: &&usize| asked.iter().any(|&i| matrix.kills(m, i, tolerance));
            row.held_out_detected += test.iter().filter(caught).count() as u64;
        }
    }
    rows
}
