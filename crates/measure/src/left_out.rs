//! Suites on faults that they were not selected on: a rule left out, and a problem left out.
//!
//! The 50/50 split of [`crate::budget_scores`] leaves mutants out whose siblings stay in. Here a whole rule leaves, so
//! that a suite meets a kind of fault that it never saw; or a whole problem, so that all it has from the measurement is
//! which kinds of input were worth asking elsewhere.
//!
//! What it misses: another problem's knowledge is taken by kinds of recipe alone, without values of dims and seeds; what
//! a kind is called with (its arguments) is part of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bits::Bits;
use crate::{CoverOptions, KillMatrix, Origin, Scope, Tolerance, greedy_cover, percent};

/// Mutants left out and detected, pooled over what was left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutRow {
    /// Inputs a problem.
    pub budget: u32,
    /// Detected of the mutants left out.
    pub detected: u64,
    /// Witnessed mutants, each left out once.
    pub witnessed: u64,
    /// The same in percent.
    pub detected_percent: Option<f64>,
}

/// Both ways of leaving out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// By budget, a rule left out at a time.
    pub rules: Vec<LeftOutRow>,
    /// By budget, a problem left out at a time.
    pub problems: Vec<LeftOutRow>,
}

fn rows(budgets: &[u32], counts: &BTreeMap<u32, (u64, u64)>) -> Vec<LeftOutRow> {
    let row = |&budget: &u32| {
        let (detected, witnessed) = counts.get(&budget).copied().unwrap_or_default();
        LeftOutRow { budget, detected, witnessed, detected_percent: percent(detected, witnessed) }
    };
    budgets.iter().map(row).collect()
}

/// Scores suites on what they were not selected on.
///
/// A rule left out: for each problem and rule, greedy cover selects on the witnessed mutants of every other rule, out of
/// inputs that were not found by searching for a mutant of that rule, and what is left of a budget goes into covering
/// them again; scored on the rule's own mutants. A problem left out: greedy cover selects kinds of recipe (everything
/// but dims and seed) on all other problems together, out of those that the problem left out has, searched inputs aside;
/// scored on the first input of each kind there.
pub fn left_out(matrices: &[KillMatrix], scope: &Scope, tolerance: Tolerance, budgets: &[u32]) -> LeftOut {
    LeftOut {
        rules: rows(budgets, &rules_left_out(matrices, scope, tolerance, budgets)),
        problems: rows(budgets, &problems_left_out(matrices, scope, tolerance, budgets)),
    }
}

fn rules_left_out(
    matrices: &[KillMatrix],
    scope: &Scope,
    tolerance: Tolerance,
    budgets: &[u32],
) -> BTreeMap<u32, (u64, u64)> {
    let largest = budgets.iter().copied().max();
    let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for matrix in matrices {
        let targets = scope.targets(matrix);
        let rule = |m: usize| matrix.mutants[m].rule.as_str();
        let rules: BTreeSet<&str> = targets.iter().map(|&m| rule(m)).collect();
        for left in rules {
            let (test, dev): (Vec<usize>, Vec<usize>) = targets.iter().partition(|&&m| rule(m) == left);
            let found_for_it = |origin: &Origin| match origin {
                Origin::Searched { mutant } => {
                    matrix.mutants.iter().any(|m| m.id == *mutant && m.rule == left)
                }
                _ => false,
            };
            let pool: Vec<usize> =
                (0..matrix.inputs.len()).filter(|&i| !found_for_it(&matrix.inputs[i].origin)).collect();
            let options = CoverOptions { budget: largest, refill: true };
            let chosen = greedy_cover(matrix, &dev, &pool, tolerance, options).inputs;
            for &budget in budgets {
                let asked = &chosen[..chosen.len().min(budget as usize)];
                let caught = test.iter().filter(|&&m| asked.iter().any(|&i| matrix.kills(m, i, tolerance)));
                let row = counts.entry(budget).or_default();
                row.0 += caught.count() as u64;
                row.1 += test.len() as u64;
            }
        }
    }
    counts
}

/// A recipe without the values of its dims and its seed; that it has dims of its own stays.
fn kind(recipe: &str) -> String {
    let text = recipe.split('#').next().unwrap_or(recipe);
    match text.split_once('@') {
        Some((kind, _)) => format!("{kind}@"),
        None => text.to_owned(),
    }
}

/// What the first valid input of each kind kills in a problem.
struct Kinds {
    targets: usize,
    kills: BTreeMap<String, Bits>,
}

fn kinds(matrix: &KillMatrix, scope: &Scope, tolerance: Tolerance) -> Kinds {
    let targets = scope.targets(matrix);
    let mut kills = BTreeMap::new();
    for (i, input) in matrix.inputs.iter().enumerate() {
        let searched = matches!(input.origin, Origin::Searched { .. });
        if searched || !input.is_valid(tolerance) {
            continue;
        }
        kills.entry(kind(&input.recipe)).or_insert_with(|| {
            let dead = targets.iter().enumerate().filter(|&(_, &m)| matrix.kills(m, i, tolerance));
            Bits::of(targets.len(), dead.map(|(at, _)| at))
        });
    }
    Kinds { targets: targets.len(), kills }
}

fn problems_left_out(
    matrices: &[KillMatrix],
    scope: &Scope,
    tolerance: Tolerance,
    budgets: &[u32],
) -> BTreeMap<u32, (u64, u64)> {
    let largest = budgets.iter().copied().max().unwrap_or(0);
    let problems: Vec<Kinds> = matrices.iter().map(|m| kinds(m, scope, tolerance)).collect();
    let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (at, own) in problems.iter().enumerate().filter(|(_, p)| p.targets > 0) {
        let mut left: Vec<Bits> = problems.iter().map(|p| Bits::of(p.targets, 0..p.targets)).collect();
        let mut open: BTreeSet<&String> = own.kills.keys().collect();
        let mut alive = Bits::of(own.targets, 0..own.targets);
        for asked in 1..=largest {
            // The first by name of the largest gains; a kind that kills nothing elsewhere is asked last.
            let gain = |kind: &String| -> u64 {
                let others = problems.iter().zip(&left).enumerate().filter(|(other, _)| *other != at);
                others.filter_map(|(_, (p, left))| p.kills.get(kind).map(|set| set.common(left))).sum()
            };
            let best = open.iter().map(|k| (gain(k), *k)).reduce(|a, b| if b.0 > a.0 { b } else { a });
            if let Some((_, chosen)) = best {
                open.remove(chosen);
                for (p, left) in problems.iter().zip(&mut left) {
                    if let Some(set) = p.kills.get(chosen) {
                        left.remove_all(set);
                    }
                }
                if let Some(set) = own.kills.get(chosen) {
                    alive.remove_all(set);
                }
            }
            if budgets.contains(&asked) {
                let row = counts.entry(asked).or_default();
                row.0 += own.targets as u64 - alive.len();
                row.1 += own.targets as u64;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_recipe_without_values_of_dims_and_seed() {
        for (recipe, want) in [
            ("official#3", "official"),
            ("official*3#0", "official*3"),
            ("normal(1)+params@M=63,N=65#7", "normal(1)+params@"),
            ("outlier(0.01,30)#1", "outlier(0.01,30)"),
        ] {
            assert_eq!(kind(recipe), want);
        }
    }
}
