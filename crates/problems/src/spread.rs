//! A few problems that stand for many, chosen by a rule.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::Problem;

/// `count` of the problems (all, where there are no more), in their order: levels in proportion, and within one the
/// problem next that brings most operators and techniques not seen before, the earlier of equals.
///
/// Algorithm: greedy cover. Deterministic; the first k of a larger choice are not the choice of k.
pub fn spread(problems: Vec<Problem>, count: usize) -> Vec<Problem> {
    let total = problems.len();
    let mut waiting: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, p) in problems.iter().enumerate() {
        waiting.entry(p.level).or_default().push(i);
    }
    let shares: BTreeMap<u32, usize> = waiting.iter().map(|(level, of)| (*level, of.len())).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut chosen: BTreeSet<usize> = BTreeSet::new();
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    while chosen.len() < count.min(total) {
        // The level that lags most behind its share of what is chosen; products instead of quotients.
        let lag = |level: &u32| {
            let have = taken.get(level).copied().unwrap_or(0).saturating_mul(total);
            let due = shares.get(level).copied().unwrap_or(0).saturating_mul(chosen.len() + 1);
            (due as i128) - (have as i128)
        };
        let open = waiting.iter().filter(|(_, of)| !of.is_empty()).map(|(level, _)| *level);
        let Some(level) = open.max_by_key(|level| (lag(level), std::cmp::Reverse(*level))) else { break };
        let Some(of) = waiting.get_mut(&level) else { break };
        let fresh = |i: usize| topics(&problems[i]).filter(|t| !seen.contains(t)).count();
        let best = (0..of.len()).max_by_key(|k| (fresh(of[*k]), std::cmp::Reverse(*k)));
        let Some(best) = best else { break };
        let i = of.remove(best);
        seen.extend(topics(&problems[i]));
        chosen.insert(i);
        *taken.entry(level).or_default() += 1;
    }
    problems.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, p)| p).collect()
}

fn topics(p: &Problem) -> impl Iterator<Item = &str> {
    p.operators.iter().chain(&p.techniques).map(String::as_str)
}
