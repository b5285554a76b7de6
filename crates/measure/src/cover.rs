//! Which inputs together kill the most: greedy set cover, and the optimum by branch and bound.
//!
//! Greedy takes, again and again, the input that kills the most mutants not yet killed. At any budget it reaches at
//! least 1 - (1 - 1/b)^b > 1 - 1/e of the optimum (Nemhauser, Wolsey and Fisher 1978), and its choice at one budget
//! begins its choice at the next.

use std::cmp::Reverse;

use crate::bits::Bits;
use crate::{KillMatrix, Tolerance};

/// How a cover is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverOptions {
    /// Inputs at most; none for as many as help.
    pub budget: Option<u32>,
    /// Spend what is left of a budget once every reachable mutant is killed, by covering them all once more (and so
    /// on) with further inputs? Kills no more of the mutants selected on, but more of others like them.
    pub refill: bool,
}

impl CoverOptions {
    /// At most `budget` inputs, none for redundancy.
    pub fn up_to(budget: u32) -> CoverOptions {
        CoverOptions { budget: Some(budget), refill: false }
    }

    /// As many inputs as help.
    pub const FULL: CoverOptions = CoverOptions { budget: None, refill: false };
}

/// Inputs selected, and what they kill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Indices into [`KillMatrix::inputs`], in the order of selection.
    pub inputs: Vec<usize>,
    /// Mutants killed by the first 1, 2, … of them.
    pub killed: Vec<u64>,
    /// Mutants to kill.
    pub targets: u64,
}

impl Cover {
    /// Mutants killed by all inputs together.
    pub fn total(&self) -> u64 {
        self.killed.last().copied().unwrap_or(0)
    }
}

/// Inputs that kill something, as sets over the targets, best tie-break first.
fn candidates(
    matrix: &KillMatrix,
    targets: &[usize],
    pool: &[usize],
    tolerance: Tolerance,
) -> Vec<(usize, Bits)> {
    let mut sets: Vec<(usize, Bits)> = pool
        .iter()
        .filter(|&&i| matrix.inputs.get(i).is_some_and(|input| input.is_valid(tolerance)))
        .map(|&i| {
            let kills = |&(_, &m): &(usize, &usize)| matrix.kills(m, i, tolerance);
            (i, Bits::of(targets.len(), targets.iter().enumerate().filter(kills).map(|(at, _)| at)))
        })
        .filter(|(_, set)| !set.is_empty())
        .collect();
    // Of equal kills the cheaper origin wins, then the recipe's text.
    sets.sort_by(|(a, _), (b, _)| {
        let (a, b) = (&matrix.inputs[*a], &matrix.inputs[*b]);
        a.origin.rank().cmp(&b.origin.rank()).then_with(|| a.recipe.cmp(&b.recipe))
    });
    sets.dedup_by_key(|(i, _)| *i);
    sets
}

/// Selects inputs out of `pool` to kill the mutants `targets` (both indices into the matrix) at a tolerance.
///
/// Only inputs valid at the tolerance are selected. Ties go to the cheaper origin (official, kbv, ci-fuzz, targeted,
/// searched, a protocol's own), then to the recipe that sorts first, so that the answer does not depend on the order of
/// anything. Stops where no input kills another mutant (but see [`CoverOptions::refill`]).
pub fn greedy_cover(
    matrix: &KillMatrix,
    targets: &[usize],
    pool: &[usize],
    tolerance: Tolerance,
    options: CoverOptions,
) -> Cover {
    let mut sets = candidates(matrix, targets, pool, tolerance);
    let mut cover = Cover { targets: targets.len() as u64, ..Cover::default() };
    let mut killed = Bits::empty(targets.len());
    let mut left = Bits::of(targets.len(), 0..targets.len());
    while options.budget.is_none_or(|b| (cover.inputs.len() as u64) < u64::from(b)) {
        // The first of the largest gains: the candidates stand in the order of the tie-breaks.
        let best = (0..sets.len()).max_by_key(|&c| (sets[c].1.common(&left), Reverse(c)));
        let Some(best) = best else { break };
        if sets[best].1.common(&left) == 0 {
            // Everything reachable is killed once more; a fresh round, if one is wanted.
            if !options.refill {
                break;
            }
            left = Bits::of(targets.len(), 0..targets.len());
            continue;
        }
        let (input, set) = sets.remove(best);
        left.remove_all(&set);
        killed.insert_all(&set);
        cover.inputs.push(input);
        cover.killed.push(killed.len());
    }
    cover
}

/// The best cover found by branch and bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestCover {
    /// Indices into [`KillMatrix::inputs`].
    pub inputs: Vec<usize>,
    /// Mutants they kill.
    pub killed: u64,
    /// Was the search exhausted, so that no other choice kills more?
    pub proven: bool,
}

struct Search<'a> {
    sets: &'a [(usize, Bits)],
    best: Vec<usize>,
    best_killed: u64,
    nodes_left: u64,
}

impl Search<'_> {
    /// Extends `chosen` with up to `slots` of the candidates that stand at `open`.
    fn extend(&mut self, chosen: &mut Vec<usize>, left: &Bits, killed: u64, open: &[usize], slots: u32) {
        if killed > self.best_killed {
            self.best_killed = killed;
            self.best = chosen.clone();
        }
        if slots == 0 || self.nodes_left == 0 {
            return;
        }
        self.nodes_left -= 1;
        let mut gains: Vec<(u64, usize)> =
            open.iter().map(|&c| (self.sets[c].1.common(left), c)).filter(|&(gain, _)| gain > 0).collect();
        gains.sort_by_key(|&(gain, c)| (Reverse(gain), c));
        let order: Vec<usize> = gains.iter().map(|&(_, c)| c).collect();
        for at in 0..gains.len() {
            // Gains only shrink, so the largest ones bound what the open slots can still add.
            let bound: u64 = gains[at..].iter().take(slots as usize).map(|&(gain, _)| gain).sum();
            if killed + bound.min(left.len()) <= self.best_killed || self.nodes_left == 0 {
                return;
            }
            let (gain, c) = gains[at];
            let mut rest = left.clone();
            rest.remove_all(&self.sets[c].1);
            chosen.push(c);
            self.extend(chosen, &rest, killed + gain, &order[at + 1..], slots - 1);
            chosen.pop();
        }
    }
}

/// The cover of at most `budget` inputs that kills the most, by branch and bound from the greedy one.
///
/// `nodes` bounds the work; where it is spent, the best found stands with `proven: false`.
pub fn best_cover(
    matrix: &KillMatrix,
    targets: &[usize],
    pool: &[usize],
    tolerance: Tolerance,
    budget: u32,
    nodes: u64,
) -> BestCover {
    let all = candidates(matrix, targets, pool, tolerance);
    // An input that kills nothing beyond another's kills is never needed (of equal ones the first stays).
    let sets: Vec<(usize, Bits)> = all
        .iter()
        .enumerate()
        .filter(|(a, (_, set))| {
            !all.iter()
                .enumerate()
                .any(|(b, (_, other))| b != *a && set.within(other) && (b < *a || !other.within(set)))
        })
        .map(|(_, kept)| kept.clone())
        .collect();
    let greedy = greedy_cover(matrix, targets, pool, tolerance, CoverOptions::up_to(budget));
    let mut search = Search { sets: &sets, best: Vec::new(), best_killed: greedy.total(), nodes_left: nodes };
    let open: Vec<usize> = (0..sets.len()).collect();
    let everything = Bits::of(targets.len(), 0..targets.len());
    search.extend(&mut Vec::new(), &everything, 0, &open, budget);
    let proven = search.nodes_left > 0;
    let inputs = if search.best_killed > greedy.total() {
        search.best.iter().map(|&c| sets[c].0).collect()
    } else {
        greedy.inputs.clone()
    };
    BestCover { inputs, killed: search.best_killed, proven }
}

/// Nodes that the choice of a suite of one problem may visit: pairs and triples of some thirty inputs are proven well
/// within it.
pub const SUITE_NODES: u64 = 20_000;

/// The suite of at most `budget` inputs: the best cover found within [`SUITE_NODES`], its inputs in greedy's order.
/// With budgets of one and two this is the optimum; it never kills less than greedy cover.
pub fn suite_cover(
    matrix: &KillMatrix,
    targets: &[usize],
    pool: &[usize],
    tolerance: Tolerance,
    budget: u32,
) -> Cover {
    let best = best_cover(matrix, targets, pool, tolerance, budget, SUITE_NODES);
    greedy_cover(matrix, targets, &best.inputs, tolerance, CoverOptions::up_to(budget))
}

/// How many inputs it takes to kill every target that the pool can kill: by greedy cover, and the fewest possible
/// where that was proven within `nodes`.
pub fn minimum_inputs(
    matrix: &KillMatrix,
    targets: &[usize],
    pool: &[usize],
    tolerance: Tolerance,
    nodes: u64,
) -> (u64, Option<u64>) {
    let full = greedy_cover(matrix, targets, pool, tolerance, CoverOptions::FULL);
    let greedy = full.inputs.len() as u64;
    for fewer in 1..greedy {
        let budget = u32::try_from(fewer).unwrap_or(u32::MAX);
        let best = best_cover(matrix, targets, pool, tolerance, budget, nodes);
        if best.killed == full.total() {
            return (greedy, Some(fewer));
        }
        if !best.proven {
            return (greedy, None);
        }
    }
    (greedy, Some(greedy))
}
