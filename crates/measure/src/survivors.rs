//! What a protocol misses, why, and which of it surprises most.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use assay_judge::EvaluationEnd;
use serde::{Deserialize, Serialize};

use crate::{KillMatrix, ProtocolScore, Scope, Tolerance};

/// Why a protocol misses a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The fault shows on the protocol's own inputs, and the tolerance forgives it.
    Tolerance,
    /// The values that the protocol draws never excite it; others at the same shape do.
    InputSupport,
    /// Only another shape excites it.
    Shape,
    /// Only another schedule does.
    Schedule,
}

impl Mechanism {
    /// Every mechanism, in the order of tables.
    pub const ALL: [Mechanism; 4] =
        [Mechanism::Tolerance, Mechanism::InputSupport, Mechanism::Shape, Mechanism::Schedule];

    /// As a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Mechanism::Tolerance => "tolerance",
            Mechanism::InputSupport => "input support",
            Mechanism::Shape => "shape",
            Mechanism::Schedule => "schedule",
        }
    }
}

/// An error this many times the legitimate variance of its input counts as the fault's own: the ensemble is a
/// sample, and its largest member understates how far correct kernels can be apart.
const BEYOND_VARIANCE: f64 = 2.0;

/// The mutant's largest error on the valid ones of the inputs that the protocol asked, and whether it is beyond what correct kernels
/// show there.
fn on_asked_inputs(matrix: &KillMatrix, mutant: usize, asked: &[usize], tolerance: Tolerance) -> (f64, bool) {
    let (mut largest, mut beyond) = (0.0f64, false);
    // On an input that is not valid, a large error says nothing about the mutant.
    for &i in asked.iter().filter(|&&i| matrix.inputs[i].is_valid(tolerance)) {
        let Some(cell) = matrix.cell(mutant, i) else { continue };
        if !cell.end.is_decided() || cell.end == EvaluationEnd::Fault {
            continue;
        }
        let t = cell.truth.threshold;
        largest = largest.max(t);
        beyond |= t > BEYOND_VARIANCE * matrix.inputs[i].validity.threshold;
    }
    (largest, beyond)
}

/// Inputs on which the mutant is wrong against both references at a tolerance that they are valid at.
fn witnesses<'a>(
    matrix: &'a KillMatrix,
    mutant: usize,
    tolerance: Tolerance,
) -> impl Iterator<Item = usize> + 'a {
    (0..matrix.inputs.len()).filter(move |&i| {
        matrix.kills(mutant, i, tolerance)
            && matrix.cell(mutant, i).is_some_and(|c| c.wrong_in_truth(tolerance) == Some(true))
    })
}

/// Why a protocol that asked these inputs at this tolerance misses this mutant. First match:
///
/// 1. not witnessed under the `hardware` schedule but under `run-ahead`: `Schedule`;
/// 2. on a valid input asked, its error against float64 is more than twice the legitimate variance there (and, since it
///    is missed, below the tolerance): `Tolerance`;
/// 3. every witness has another shape: `Shape`;
/// 4. else: `InputSupport`.
///
/// None for a mutant that is neither witnessed nor schedule-witnessed, or whose witness is not in the matrix.
pub fn classify(
    matrix: &KillMatrix,
    mutant: usize,
    asked: &[usize],
    tolerance: Tolerance,
) -> Option<Mechanism> {
    let row = matrix.mutants.get(mutant)?;
    if row.schedule_witnessed {
        return Some(Mechanism::Schedule);
    }
    if !row.witnessed {
        return None;
    }
    if on_asked_inputs(matrix, mutant, asked, tolerance).1 {
        return Some(Mechanism::Tolerance);
    }
    let mut any = false;
    for i in witnesses(matrix, mutant, Tolerance::PAPER) {
        if matrix.inputs[i].official_shape {
            return Some(Mechanism::InputSupport);
        }
        any = true;
    }
    any.then_some(Mechanism::Shape)
}

/// A witnessed mutant that a protocol misses.
#[derive(Clone, Debug, PartialEq)]
pub struct Survivor {
    /// Index of its problem's matrix.
    pub problem: usize,
    /// Its index in that matrix.
    pub mutant: usize,
    /// Why it survives.
    pub mechanism: Option<Mechanism>,
    /// The input (by index) on which it is furthest from float64; faults count as furthest, the cheapest of equals.
    pub witness: Option<usize>,
    /// Its threshold there, against float64.
    pub witness_threshold: f64,
    /// Its largest threshold against float64 on the inputs that the protocol asked.
    pub asked_threshold: f64,
    /// Error on the witness over the witness tolerance, at most [`Survivor::MOST_SURPRISE`].
    pub surprise: f64,
}

impl Survivor {
    /// A cap, so that infinities are not all there is to see.
    pub const MOST_SURPRISE: f64 = 1e6;
}

/// The witnessed mutants in scope that the protocol misses, in the order of the matrices.
pub fn survivors(matrices: &[KillMatrix], score: &ProtocolScore, scope: &Scope) -> Vec<Survivor> {
    let mut rows = Vec::new();
    for (problem, (matrix, one)) in matrices.iter().zip(&score.problems).enumerate() {
        for mutant in scope.targets(matrix) {
            if one.detected[mutant] {
                continue;
            }
            let mut best: Option<(f64, usize)> = None;
            for i in witnesses(matrix, mutant, Tolerance::PAPER) {
                let Some(cell) = matrix.cell(mutant, i) else { continue };
                let t = if cell.end == EvaluationEnd::Fault { f64::INFINITY } else { cell.truth.threshold };
                let cost = |at: usize| (matrix.inputs[at].origin.rank(), &matrix.inputs[at].recipe);
                let better = best.is_none_or(|(bt, bi)| t > bt || (t == bt && cost(i) < cost(bi)));
                if better {
                    best = Some((t, i));
                }
            }
            let witness_threshold = best.map_or(0.0, |(t, _)| t);
            let surprise = (witness_threshold / Tolerance::PAPER.atol).min(Survivor::MOST_SURPRISE);
            rows.push(Survivor {
                problem,
                mutant,
                mechanism: classify(matrix, mutant, &one.inputs, score.tolerance),
                witness: best.map(|(_, i)| i),
                witness_threshold,
                asked_threshold: on_asked_inputs(matrix, mutant, &one.inputs, score.tolerance).0,
                surprise,
            });
        }
    }
    rows
}

/// The `n` survivors that surprise most: the largest error on their witness, then the smallest on what the protocol
/// asked, then by problem and id. The first pass takes one of each problem and of each rule, the second drops the
/// condition on problems, the third both, so that ten survivors are ten stories where there are ten.
pub fn most_surprising<'a>(
    matrices: &[KillMatrix],
    survivors: &'a [Survivor],
    n: usize,
) -> Vec<&'a Survivor> {
    let row = |s: &Survivor| &matrices[s.problem].mutants[s.mutant];
    let mut order: Vec<&Survivor> = survivors.iter().collect();
    order.sort_by(|a, b| {
        b.surprise
            .total_cmp(&a.surprise)
            .then(a.asked_threshold.total_cmp(&b.asked_threshold))
            .then(a.problem.cmp(&b.problem))
            .then_with(|| row(a).id.cmp(&row(b).id))
    });
    let mut chosen: Vec<&Survivor> = Vec::new();
    let (mut problems, mut rules) = (BTreeSet::new(), BTreeSet::new());
    for pass in 0..3 {
        for &s in &order {
            if chosen.len() == n {
                break;
            }
            let taken = chosen.iter().any(|c| std::ptr::eq(*c, s));
            let known_problem = problems.contains(&s.problem);
            let known_rule = rules.contains(&row(s).rule);
            let fresh = match pass {
                0 => !known_problem && !known_rule,
                1 => !known_rule,
                _ => true,
            };
            if !taken && fresh {
                problems.insert(s.problem);
                rules.insert(&row(s).rule);
                chosen.push(s);
            }
        }
    }
    // The passes decide who is in; the list reads from the most surprising down.
    let place = |s: &Survivor| order.iter().position(|o| std::ptr::eq(*o, s)).unwrap_or(usize::MAX);
    chosen.sort_by(|a, b| -> Ordering { place(a).cmp(&place(b)) });
    chosen
}
