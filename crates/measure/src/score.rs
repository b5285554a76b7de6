//! What a protocol detects.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{CheckVerdict, KillMatrix, Protocol, Tolerance, suite_cover};

/// The families in the order of tables: the checker paper's six, then `width` with a table of its own.
pub const FAMILIES: [&str; 7] =
    ["arithmetic", "indexing", "semantic", "boundary", "synchronisation", "precision", "width"];

/// Families of the checker paper, at the front of [`FAMILIES`].
const PAPER_FAMILIES: usize = 6;

/// Position of a family in tables; unknown ones come last, by name.
pub fn family_rank(family: &str) -> (usize, &str) {
    (FAMILIES.iter().position(|&f| f == family).unwrap_or(FAMILIES.len()), family)
}

/// Which mutants count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every family.
    All,
    /// The checker paper's six, for comparison with it.
    Paper,
    /// One family.
    Family(String),
}

impl Scope {
    /// Does a mutant of that family count?
    pub fn admits(&self, family: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Paper => family_rank(family).0 < PAPER_FAMILIES,
            Scope::Family(f) => f == family,
        }
    }

    /// The witnessed mutants that count, by index; none of a problem that cannot be refereed.
    pub fn targets(&self, matrix: &KillMatrix) -> Vec<usize> {
        if matrix.unrefereeable {
            return Vec::new();
        }
        let counts = |m: &crate::MutantRow| m.witnessed && self.admits(&m.family);
        matrix.mutants.iter().enumerate().filter(|(_, m)| counts(m)).map(|(i, _)| i).collect()
    }
}

/// A rule as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleInfo {
    /// Its id.
    pub id: String,
    /// Its family.
    pub family: String,
}

/// A protocol on one problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemScore {
    /// `level/id`.
    pub problem: String,
    /// Inputs asked, by index into the matrix.
    pub inputs: Vec<usize>,
    /// Recipes asked that the matrix does not have.
    pub missing_inputs: Vec<String>,
    /// Inputs asked that are not valid at the protocol's tolerance.
    pub invalid_inputs: u64,
    /// For every mutant of the matrix, witnessed or not: did the protocol kill it?
    pub detected: Vec<bool>,
    /// Witnessed mutants that count.
    pub witnessed: u64,
    /// Those among them that it killed.
    pub caught: u64,
    /// Correct runs that it rejected.
    pub false_kills: u64,
}

/// A protocol on all problems. Evaluations are counted over the witnessed mutants that count, and the inputs asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolScore {
    /// Its name.
    pub protocol: String,
    /// Its tolerance.
    pub tolerance: Tolerance,
    /// One entry for each matrix, in their order; an unrefereeable problem has asked nothing and caught nothing.
    pub problems: Vec<ProblemScore>,
    /// Witnessed mutants killed.
    pub detected: u64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Control runs (problem, input, correct implementation) that ended with a verdict.
    pub correct_runs: u64,
    /// Those of them rejected, on valid and invalid inputs alike.
    pub false_kills: u64,
    /// (problem, input) pairs with at least one of them.
    pub false_kill_inputs: u64,
    /// Control runs without a verdict.
    pub controls_undecided: u64,
    /// Evaluations unsupported.
    pub unsupported: u64,
    /// Evaluations exhausted.
    pub exhausted: u64,
    /// Rejections on inputs invalid at the protocol's tolerance: no kills.
    pub invalid_rejections: u64,
    /// Evaluations whose stored thresholds do not decide an atol unlike rtol.
    pub undecided: u64,
    /// Evaluations that the matrix does not hold.
    pub not_evaluated: u64,
    /// Runs of an external checker that failed by themselves, over mutants and correct implementations: no verdicts.
    pub checker_failures: u64,
    /// Those of them that ran out of time.
    pub checker_timeouts: u64,
}

impl ProtocolScore {
    /// Witnessed mutants not killed.
    pub fn missed(&self) -> u64 {
        self.witnessed - self.detected
    }

    /// Numbers of inputs asked, of the problems that count, ascending.
    pub fn input_counts(&self) -> Vec<u64> {
        let mut counts: Vec<u64> =
            self.problems.iter().filter(|p| p.witnessed > 0).map(|p| p.inputs.len() as u64).collect();
        counts.sort_unstable();
        counts
    }
}

/// Scores a protocol on the witnessed mutants in scope.
///
/// A mutant is detected where at least one input that the protocol asks kills it: valid at the protocol's tolerance,
/// and rejected against the official reference. A protocol with a `suite_budget` asks, of a problem that is not in
/// its table, the suite ([`suite_cover`]) of this matrix at that budget: an in-sample figure, as the checker paper's
/// is; held-out figures are those of [`crate::budget_scores`].
pub fn score(protocol: &Protocol, matrices: &[KillMatrix], scope: &Scope) -> ProtocolScore {
    let tolerance = protocol.tolerance();
    let mut total = ProtocolScore {
        protocol: protocol.name.clone(),
        tolerance,
        problems: Vec::with_capacity(matrices.len()),
        detected: 0,
        witnessed: 0,
        correct_runs: 0,
        false_kills: 0,
        false_kill_inputs: 0,
        controls_undecided: 0,
        unsupported: 0,
        exhausted: 0,
        invalid_rejections: 0,
        undecided: 0,
        not_evaluated: 0,
        checker_failures: 0,
        checker_timeouts: 0,
    };
    for matrix in matrices {
        let one = score_problem(protocol, matrix, scope, &mut total);
        total.detected += one.caught;
        total.witnessed += one.witnessed;
        total.problems.push(one);
    }
    total
}

fn score_problem(
    protocol: &Protocol,
    matrix: &KillMatrix,
    scope: &Scope,
    total: &mut ProtocolScore,
) -> ProblemScore {
    let tolerance = protocol.tolerance();
    let mut one = ProblemScore {
        problem: matrix.key(),
        detected: vec![false; matrix.mutants.len()],
        ..ProblemScore::default()
    };
    if matrix.unrefereeable {
        return one;
    }
    let targets = scope.targets(matrix);
    for recipe in asked(protocol, matrix, &targets) {
        match matrix.input(&recipe) {
            Some(i) => one.inputs.push(i),
            None => one.missing_inputs.push(recipe),
        }
    }
    one.witnessed = targets.len() as u64;
    let counted: BTreeSet<usize> = targets.into_iter().collect();
    if protocol.checker.is_some() {
        ask_checker(protocol, matrix, &counted, &mut one, total);
        return one;
    }
    for &i in &one.inputs {
        let input = &matrix.inputs[i];
        let valid = input.is_valid(tolerance);
        one.invalid_inputs += u64::from(!valid);
        let mut falsely = 0;
        for control in &input.controls {
            match control.rejected_by(tolerance) {
                Some(rejected) if control.end.is_decided() => {
                    total.correct_runs += 1;
                    falsely += u64::from(rejected);
                }
                _ => total.controls_undecided += 1,
            }
        }
        one.false_kills += falsely;
        total.false_kill_inputs += u64::from(falsely > 0);
        for (m, detected) in one.detected.iter_mut().enumerate() {
            let counts = u64::from(counted.contains(&m));
            let Some(cell) = matrix.cell(m, i) else {
                total.not_evaluated += counts;
                continue;
            };
            match cell.end {
                assay_judge::EvaluationEnd::Unsupported => total.unsupported += counts,
                assay_judge::EvaluationEnd::Exhausted => total.exhausted += counts,
                _ => {}
            }
            match (cell.rejected_by(tolerance), valid) {
                (Some(true), true) => *detected = true,
                (Some(true), false) => total.invalid_rejections += counts,
                (Some(false), _) => {}
                (None, _) => total.undecided += counts,
            }
        }
    }
    // What the matrix lacks was not evaluated either.
    total.not_evaluated += one.missing_inputs.len() as u64 * one.witnessed;
    total.false_kills += one.false_kills;
    one.caught = counted.iter().filter(|&&m| one.detected[m]).count() as u64;
    one
}

/// As the rest of [`score_problem`], from the verdicts of the protocol's external checker.
fn ask_checker(
    protocol: &Protocol,
    matrix: &KillMatrix,
    counted: &BTreeSet<usize>,
    one: &mut ProblemScore,
    total: &mut ProtocolScore,
) {
    let tolerance = protocol.tolerance();
    let valid = |recipe: &str| matrix.input(recipe).is_some_and(|i| matrix.inputs[i].is_valid(tolerance));
    one.invalid_inputs = one.inputs.iter().filter(|&&i| !matrix.inputs[i].is_valid(tolerance)).count() as u64;
    let Some(runs) = matrix.checkers.get(&protocol.name) else {
        total.not_evaluated += (one.inputs.len() + one.missing_inputs.len()) as u64 * one.witnessed;
        return;
    };
    let mut fail = |verdict: CheckVerdict| {
        total.checker_failures += u64::from(verdict.is_own_failure());
        total.checker_timeouts += u64::from(verdict == CheckVerdict::TimedOut);
    };
    let mut falsely: BTreeSet<usize> = BTreeSet::new();
    for verdicts in runs.controls.values() {
        for (at, &verdict) in verdicts.iter().enumerate() {
            fail(verdict);
            match verdict {
                CheckVerdict::Accepts => total.correct_runs += 1,
                CheckVerdict::Rejects | CheckVerdict::Fault => {
                    total.correct_runs += 1;
                    one.false_kills += 1;
                    falsely.insert(at);
                }
                _ => total.controls_undecided += 1,
            }
        }
    }
    total.false_kill_inputs += falsely.len() as u64;
    total.false_kills += one.false_kills;
    for (m, row) in matrix.mutants.iter().enumerate() {
        let counts = u64::from(counted.contains(&m));
        let verdicts = runs.mutants.get(&row.id).map_or(&[][..], Vec::as_slice);
        for (recipe, &verdict) in runs.recipes.iter().zip(verdicts) {
            if counts == 1 {
                fail(verdict);
            }
            match verdict {
                CheckVerdict::Rejects | CheckVerdict::Fault if valid(recipe) => one.detected[m] = true,
                CheckVerdict::Rejects | CheckVerdict::Fault => total.invalid_rejections += counts,
                CheckVerdict::Exhausted => total.exhausted += counts,
                CheckVerdict::Unsupported => total.unsupported += counts,
                CheckVerdict::Accepts | CheckVerdict::Failed | CheckVerdict::TimedOut => {}
            }
        }
        // Inputs after the one that killed it were not asked, and did not have to be.
        if !one.detected[m] {
            total.not_evaluated += counts * (runs.recipes.len().saturating_sub(verdicts.len())) as u64;
        }
    }
    total.not_evaluated += one.missing_inputs.len() as u64 * one.witnessed;
    one.caught = counted.iter().filter(|&&m| one.detected[m]).count() as u64;
}

/// The recipes that a protocol asks of a problem, given its matrix. Of the targeted ones, which are ours to choose, only those
/// that correct kernels agree on at its tolerance.
fn asked(protocol: &Protocol, matrix: &KillMatrix, targets: &[usize]) -> Vec<String> {
    let targeted: Vec<String> = matrix
        .inputs
        .iter()
        .filter(|i| i.targeted && i.is_valid(protocol.tolerance()))
        .map(|i| i.recipe.clone())
        .collect();
    protocol.recipes(&matrix.key(), &targeted, |budget| {
        let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
        let cover = suite_cover(matrix, targets, &pool, protocol.tolerance(), budget);
        cover.inputs.iter().map(|&i| matrix.inputs[i].recipe.clone()).collect()
    })
}

/// One family under one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyScore {
    /// The family.
    pub family: String,
    /// Rules in the catalogue (and in the matrices).
    pub rules: u64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Those the protocol missed.
    pub missed: u64,
}

/// One rule under one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleScore {
    /// The rule.
    pub rule: RuleInfo,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Those the protocol missed.
    pub missed: u64,
}

/// Misses by rule, in the order of families and then of ids; every rule of `rules` has a row, and every rule that a
/// matrix names.
pub fn rule_scores(
    score: &ProtocolScore,
    matrices: &[KillMatrix],
    rules: &[RuleInfo],
    scope: &Scope,
) -> Vec<RuleScore> {
    let mut counts: BTreeMap<&RuleInfo, (u64, u64)> = BTreeMap::new();
    for rule in rules.iter().filter(|r| scope.admits(&r.family)) {
        counts.insert(rule, (0, 0));
    }
    let seen: Vec<RuleInfo> = matrices
        .iter()
        .flat_map(|m| &m.mutants)
        .filter(|m| scope.admits(&m.family))
        .map(|m| RuleInfo { id: m.rule.clone(), family: m.family.clone() })
        .collect();
    for rule in &seen {
        counts.entry(rule).or_default();
    }
    for (matrix, one) in matrices.iter().zip(&score.problems) {
        for m in scope.targets(matrix) {
            let row = &matrix.mutants[m];
            let key = RuleInfo { id: row.rule.clone(), family: row.family.clone() };
            if let Some((witnessed, missed)) = counts.get_mut(&key) {
                *witnessed += 1;
                *missed += u64::from(!one.detected[m]);
            }
        }
    }
    let mut rows: Vec<RuleScore> = counts
        .into_iter()
        .map(|(rule, (witnessed, missed))| RuleScore { rule: rule.clone(), witnessed, missed })
        .collect();
    rows.sort_by(|a, b| {
        (family_rank(&a.rule.family), &a.rule.id).cmp(&(family_rank(&b.rule.family), &b.rule.id))
    });
    rows
}

/// Misses by family, in the order of [`FAMILIES`]; every family of `rules` has a row.
pub fn family_scores(rules: &[RuleScore]) -> Vec<FamilyScore> {
    let mut rows: Vec<FamilyScore> = Vec::new();
    // The rules come sorted by family.
    for r in rules {
        let known = rows.last().is_some_and(|f| f.family == r.rule.family);
        if !known {
            rows.push(FamilyScore { family: r.rule.family.clone(), rules: 0, witnessed: 0, missed: 0 });
        }
        if let Some(f) = rows.last_mut() {
            f.rules += 1;
            f.witnessed += r.witnessed;
            f.missed += r.missed;
        }
    }
    rows
}

/// Distinct patterns of misses: for each set of protocols (by position in `scores`) that miss a witnessed mutant, how
/// many mutants exactly that set misses. Most mutants first, then by the pattern; the empty pattern, caught by all,
/// included.
pub fn miss_patterns(
    scores: &[ProtocolScore],
    matrices: &[KillMatrix],
    scope: &Scope,
) -> Vec<(Vec<usize>, u64)> {
    let mut patterns: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    for (p, matrix) in matrices.iter().enumerate() {
        for m in scope.targets(matrix) {
            let missed: Vec<usize> = scores
                .iter()
                .enumerate()
                .filter(|(_, s)| !s.problems.get(p).is_some_and(|one| one.detected[m]))
                .map(|(i, _)| i)
                .collect();
            *patterns.entry(missed).or_default() += 1;
        }
    }
    let mut rows: Vec<(Vec<usize>, u64)> = patterns.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}
