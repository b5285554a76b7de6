//! From matrices and protocols to the summary.

use std::collections::BTreeMap;

use crate::summary::{
    Environment, FamilyRow, MechanismRow, MissPattern, Pipeline, ProblemRow, ProtocolRow, RuleRow, Sanitizer,
    SanitizerFamily, Statistics, SuiteRow, Summary, SurvivorRow, Timing, Undetected, UndetectedRow,
    UnwitnessedRow, WidthSummary, WorstProblem,
};
use crate::{
    BUDGET_CURVE, BUDGETS, Half, KillMatrix, MeasureError, Mechanism, Protocol, ProtocolScore, Published,
    RuleInfo, Scope, Survivor, Tolerance, Unrefereeable, Unwitnessed, blind_bands, bootstrap, budget_curve,
    budget_scores, classify, decompose, distribution, family_scores, half_of, left_out, minimum_inputs,
    miss_patterns, most_surprising, percent, published, referee, rule_scores, score, survivors,
};

/// The protocol that the checker paper calls the official check.
const OFFICIAL: &str = "kernelbench-2025";

/// Nodes that the proof of the fewest inputs may visit, per problem and budget: well under a second.
const PROOF_NODES: u64 = 20_000;

/// Survivors listed.
const SURVIVORS_LISTED: usize = 10;

/// Fewer witnessed mutants than this are too few to call a problem the worst, if another has more.
const WORST_NEEDS: u64 = 10;

/// A problem whose baseline did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBaseline {
    /// `level/id`.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// All that a summary is made of.
#[derive(Clone, Debug)]
pub struct SummaryInput<'a> {
    /// One matrix for each problem whose baseline held, in the order of tables.
    pub matrices: &'a [KillMatrix],
    /// The protocols, the headline's first.
    pub protocols: &'a [Protocol],
    /// The rule catalogue, so that a rule without mutants has its row.
    pub rules: &'a [RuleInfo],
    /// Problems whose baseline failed.
    pub baselines_failed: &'a [FailedBaseline],
    /// Times and rates.
    pub timing: Timing,
    /// Versions and machine.
    pub environment: Environment,
    /// Caveats of the caller, before those that the data call for.
    pub caveats: Vec<String>,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Resamples of the bootstrap.
    pub resamples: u64,
}

/// Scores everything.
///
/// # Errors
/// `Matrix` where a matrix contradicts itself, `NoProtocol`, `DuplicateProtocol`.
pub fn summarise(input: SummaryInput<'_>) -> Result<Summary, MeasureError> {
    let matrices = input.matrices;
    for matrix in matrices {
        matrix.validate()?;
    }
    let first = input.protocols.first().ok_or(MeasureError::NoProtocol)?;
    let mut names = std::collections::BTreeSet::new();
    if let Some(twice) = input.protocols.iter().find(|p| !names.insert(&p.name)) {
        return Err(MeasureError::DuplicateProtocol(twice.name.clone()));
    }
    let published = published()?;
    let paper: Vec<ProtocolScore> =
        input.protocols.iter().map(|p| score(p, matrices, &Scope::Paper)).collect();
    // `score` answers for every protocol, so both exist.
    let headline = &paper[0];
    let at = input.protocols.iter().position(|p| p.name == OFFICIAL).unwrap_or(0);
    let official = &paper[at];

    // Which mutants a protocol detects can depend on the scope (suites are chosen on it), so families that the paper
    // has come from the paper's scope and the others from their own.
    let mut rules = rule_scores(headline, matrices, input.rules, &Scope::Paper);
    let everything = score(first, matrices, &Scope::All);
    let others = rule_scores(&everything, matrices, input.rules, &Scope::All);
    rules.extend(others.into_iter().filter(|r| !Scope::Paper.admits(&r.rule.family)));
    let families = family_scores(&rules);

    let lost = survivors(matrices, headline, &Scope::Paper);
    let minimum: Vec<(u64, Option<u64>)> = matrices.iter().map(fewest).collect();
    let mut caveats = input.caveats;
    caveats.extend(caveats_of(input.protocols, &paper, matrices));
    let width = Scope::Family("width".to_owned());
    let has_width = matrices.iter().flat_map(|m| &m.mutants).any(|m| width.admits(&m.family));

    Ok(Summary {
        pipeline: pipeline(matrices, input.baselines_failed),
        families: families
            .into_iter()
            .map(|f| FamilyRow {
                missed_percent: percent(f.missed, f.witnessed),
                published_missed_percent: published
                    .family(&f.family)
                    .filter(|_| first.name == OFFICIAL)
                    .map(|p| p.missed_percent),
                family: f.family,
                rules: f.rules,
                witnessed: f.witnessed,
                missed: f.missed,
            })
            .collect(),
        rules: rules
            .into_iter()
            .map(|r| RuleRow {
                id: r.rule.id,
                family: r.rule.family,
                witnessed: r.witnessed,
                missed: r.missed,
            })
            .collect(),
        protocols: protocol_rows(input.protocols, &paper),
        suites: suite_rows(matrices, &Scope::Paper, Some(&published)),
        sanitizer: sanitizer(matrices, official),
        sanitizer_families: sanitizer_families(matrices, official, &paper),
        timing: input.timing,
        environment: input.environment,
        headline_protocol: first.name.clone(),
        official_protocol: official.protocol.clone(),
        problems: problem_rows(matrices, headline, &minimum, input.baselines_failed),
        worst_problem: worst_problem(matrices, headline, &lost),
        survivors: most_surprising(matrices, &lost, SURVIVORS_LISTED)
            .into_iter()
            .map(|s| survivor_row(matrices, s))
            .collect(),
        mechanisms: mechanism_rows(matrices, headline, &lost),
        unwitnessed: unwitnessed_rows(matrices),
        undetected: undetected(input.protocols, &paper, matrices),
        miss_patterns: miss_patterns(&paper, matrices, &Scope::Paper)
            .into_iter()
            .map(|(missed_by, mutants)| MissPattern {
                missed_by: missed_by.into_iter().map(|i| paper[i].protocol.clone()).collect(),
                mutants,
            })
            .collect(),
        budget_curve: budget_curve(matrices, &Scope::Paper, Tolerance::PAPER, &BUDGET_CURVE, PROOF_NODES),
        left_out: left_out(matrices, &Scope::Paper, Tolerance::PAPER, &BUDGET_CURVE),
        decomposition: decompose(
            &input.protocols[at],
            input.protocols,
            matrices,
            &Scope::Paper,
            (official.protocol == OFFICIAL).then_some(&published),
        ),
        blind_bands: blind_bands(matrices, official.tolerance),
        referee: referee(matrices, "desk"),
        statistics: statistics(matrices, headline, &minimum, input.resamples, input.seed),
        width: has_width.then(|| width_summary(matrices, input.protocols, &width)),
        caveats,
    })
}

fn width_summary(matrices: &[KillMatrix], protocols: &[Protocol], width: &Scope) -> WidthSummary {
    let scores: Vec<ProtocolScore> = protocols.iter().map(|p| score(p, matrices, width)).collect();
    let mut counts = WidthSummary {
        distinct: 0,
        witnessed: 0,
        schedule_witnessed: 0,
        quarantined: 0,
        unwitnessed: 0,
        // The published figures are of the six families.
        protocols: protocol_rows(protocols, &scores)
            .into_iter()
            .map(|row| ProtocolRow { published_percent: None, published_denominator: None, ..row })
            .collect(),
        suites: suite_rows(matrices, width, None),
    };
    let scored = matrices.iter().filter(|m| !m.unrefereeable).flat_map(|m| &m.mutants);
    for m in scored.filter(|m| width.admits(&m.family)) {
        counts.distinct += 1;
        let rest = match (m.witnessed, m.schedule_witnessed, m.quarantined) {
            (true, _, _) => &mut counts.witnessed,
            (_, true, _) => &mut counts.schedule_witnessed,
            (_, _, true) => &mut counts.quarantined,
            _ => &mut counts.unwitnessed,
        };
        *rest += 1;
    }
    counts
}

fn fewest(matrix: &KillMatrix) -> (u64, Option<u64>) {
    let pool: Vec<usize> = (0..matrix.inputs.len()).collect();
    minimum_inputs(matrix, &Scope::Paper.targets(matrix), &pool, Tolerance::PAPER, PROOF_NODES)
}

fn pipeline(matrices: &[KillMatrix], failed: &[FailedBaseline]) -> Pipeline {
    let mut p = Pipeline {
        problems: (matrices.len() + failed.len()) as u64,
        baselines_failed: failed.len() as u64,
        ..Pipeline::default()
    };
    for matrix in matrices {
        p.generated += matrix.filtered.generated;
        p.noncompiling += matrix.filtered.noncompiling;
        p.duplicate_image += matrix.filtered.duplicate_image;
        p.equivalent += matrix.filtered.equivalent;
        // A validated matrix lists exactly its distinct mutants.
        p.distinct += matrix.mutants.len() as u64;
        p.unrefereeable += u64::from(matrix.unrefereeable);
        for m in &matrix.mutants {
            p.quarantined += u64::from(m.quarantined);
            p.witnessed += u64::from(m.witnessed && !matrix.unrefereeable);
            p.schedule_witnessed += u64::from(m.schedule_witnessed && !matrix.unrefereeable);
        }
    }
    p
}

/// The lower median of sorted numbers.
fn median(sorted: &[u64]) -> Option<u64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn protocol_rows(protocols: &[Protocol], scores: &[ProtocolScore]) -> Vec<ProtocolRow> {
    let row = |(protocol, s): (&Protocol, &ProtocolScore)| {
        let counts = s.input_counts();
        ProtocolRow {
            name: s.protocol.clone(),
            inputs: counts.last().copied().unwrap_or(0),
            detected: s.detected,
            witnessed: s.witnessed,
            false_kills: s.false_kills,
            correct_runs: s.correct_runs,
            unsupported: s.unsupported,
            exhausted: s.exhausted,
            detected_percent: percent(s.detected, s.witnessed),
            atol: s.tolerance.atol,
            rtol: s.tolerance.rtol,
            inputs_median: median(&counts).unwrap_or(0),
            false_kill_inputs: s.false_kill_inputs,
            invalid_inputs: s.problems.iter().map(|p| p.invalid_inputs).sum(),
            invalid_rejections: s.invalid_rejections,
            undecided: s.undecided,
            not_evaluated: s.not_evaluated,
            checker: protocol.checker.clone(),
            checker_failures: protocol.checker.as_ref().map(|_| s.checker_failures),
            checker_timeouts: protocol.checker.as_ref().map(|_| s.checker_timeouts),
            published_percent: protocol.published.as_ref().map(|p| p.detected_percent),
            published_denominator: protocol.published.as_ref().map(|p| p.denominator.clone()),
        }
    };
    protocols.iter().zip(scores).map(row).collect()
}

fn suite_rows(matrices: &[KillMatrix], scope: &Scope, published: Option<&Published>) -> Vec<SuiteRow> {
    budget_scores(matrices, scope, Tolerance::PAPER, &BUDGETS)
        .into_iter()
        .map(|b| {
            let beside = published.and_then(|p| p.budget(b.budget));
            SuiteRow {
                budget: b.budget,
                full_pool: b.full_pool_percent(),
                held_out: b.held_out_percent(),
                full_pool_detected: b.full_pool_detected,
                full_pool_witnessed: b.full_pool_witnessed,
                held_out_detected: b.held_out_detected,
                held_out_witnessed: b.held_out_witnessed,
                published_full_pool: beside.map(|p| p.full_pool),
                published_held_out: beside.map(|p| p.held_out),
            }
        })
        .collect()
}

fn sanitizer(matrices: &[KillMatrix], official: &ProtocolScore) -> Sanitizer {
    let mut s = Sanitizer::default();
    for (matrix, one) in matrices.iter().zip(&official.problems).filter(|(m, _)| !m.unrefereeable) {
        let scored = matrix.mutants.iter().zip(&one.detected).filter(|(m, _)| Scope::Paper.admits(&m.family));
        for (m, detected) in scored {
            s.mutants_flagged += u64::from(m.flagged);
            s.flagged_and_missed_by_official += u64::from(m.flagged && !detected);
            s.flagged_and_not_witnessed += u64::from(m.flagged && !m.witnessed);
            s.witnessed_and_not_flagged += u64::from(m.witnessed && !m.flagged);
        }
    }
    s
}

fn sanitizer_families(
    matrices: &[KillMatrix],
    official: &ProtocolScore,
    scores: &[ProtocolScore],
) -> Vec<SanitizerFamily> {
    let families = crate::FAMILIES.iter().filter(|f| Scope::Paper.admits(f));
    let mut rows: Vec<SanitizerFamily> =
        families.map(|f| SanitizerFamily { family: (*f).to_owned(), ..SanitizerFamily::default() }).collect();
    for (at, matrix) in matrices.iter().enumerate().filter(|(_, m)| !m.unrefereeable) {
        for (m, mutant) in matrix.mutants.iter().enumerate() {
            let Some(row) = rows.iter_mut().find(|r| r.family == mutant.family) else { continue };
            row.witnessed += u64::from(mutant.witnessed);
            if !mutant.flagged {
                continue;
            }
            if !mutant.witnessed {
                row.flagged_not_witnessed += 1;
                continue;
            }
            let detects = |s: &ProtocolScore| s.problems[at].detected[m];
            row.detected += 1;
            row.missed_by_official += u64::from(!detects(official));
            row.alone += u64::from(!scores.iter().any(detects));
        }
    }
    rows
}

fn problem_rows(
    matrices: &[KillMatrix],
    headline: &ProtocolScore,
    minimum: &[(u64, Option<u64>)],
    failed: &[FailedBaseline],
) -> Vec<ProblemRow> {
    let mut rows: Vec<ProblemRow> = Vec::new();
    for ((matrix, one), &(suite_inputs, fewest_inputs)) in
        matrices.iter().zip(&headline.problems).zip(minimum)
    {
        let count =
            |is: fn(&crate::MutantRow) -> bool| matrix.mutants.iter().filter(|m| is(m)).count() as u64;
        // What stands beside a protocol's misses is of the same families.
        let paper = |m: &crate::MutantRow| Scope::Paper.admits(&m.family);
        let scorable: Vec<&crate::MutantRow> = matrix.mutants.iter().filter(|m| paper(m)).collect();
        let scored = !matrix.unrefereeable;
        rows.push(ProblemRow {
            problem: matrix.key(),
            name: matrix.name.clone(),
            status: if scored { "scored" } else { "unrefereeable" }.to_owned(),
            reason: (!scored).then(|| unrefereeable_why(matrix).clause().to_owned()),
            generated: matrix.filtered.generated,
            distinct: matrix.mutants.len() as u64,
            quarantined: count(|m| m.quarantined),
            witnessed: scorable.iter().filter(|m| m.witnessed).count() as u64,
            schedule_witnessed: scorable.iter().filter(|m| m.schedule_witnessed).count() as u64,
            missed: one.witnessed - one.caught,
            inputs: matrix.inputs.len() as u64,
            suite_inputs,
            fewest_inputs: fewest_inputs.filter(|_| scored),
        });
    }
    rows.extend(failed.iter().map(|f| ProblemRow {
        problem: f.problem.clone(),
        name: f.name.clone(),
        status: "baseline_failed".to_owned(),
        reason: Some(f.reason.clone()),
        generated: 0,
        distinct: 0,
        quarantined: 0,
        witnessed: 0,
        schedule_witnessed: 0,
        missed: 0,
        inputs: 0,
        suite_inputs: 0,
        fewest_inputs: None,
    }));
    rows
}

/// The commonest of some things; the first in their order among equals.
fn commonest<T: Ord>(things: impl Iterator<Item = T>) -> Option<(T, u64)> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for t in things {
        *counts.entry(t).or_default() += 1;
    }
    // `max_by_key` keeps the last of equals, so the order is turned round.
    counts.into_iter().rev().max_by_key(|&(_, n)| n)
}

fn worst_problem(
    matrices: &[KillMatrix],
    headline: &ProtocolScore,
    lost: &[Survivor],
) -> Option<WorstProblem> {
    let missed = |i: usize| headline.problems[i].witnessed - headline.problems[i].caught;
    let losing: Vec<usize> = (0..matrices.len()).filter(|&i| missed(i) > 0).collect();
    let enough = |&i: &usize| headline.problems[i].witnessed >= WORST_NEEDS;
    let any_enough = losing.iter().any(enough);
    let worst = losing.into_iter().filter(|i| !any_enough || enough(i)).max_by(|&a, &b| {
        let (wa, wb) = (headline.problems[a].witnessed, headline.problems[b].witnessed);
        // a/wa against b/wb without division; of equal shares the more faults, then the earlier problem.
        let (left, right) = (u128::from(missed(a)) * u128::from(wb), u128::from(missed(b)) * u128::from(wa));
        left.cmp(&right).then(missed(a).cmp(&missed(b))).then(b.cmp(&a))
    })?;
    let here: Vec<&Survivor> = lost.iter().filter(|s| s.problem == worst).collect();
    let matrix = &matrices[worst];
    let mechanism = commonest(here.iter().filter_map(|s| s.mechanism));
    let (rank, family_survivors) =
        commonest(here.iter().map(|s| crate::family_rank(&matrix.mutants[s.mutant].family)))?;
    let family = rank.1.to_owned();
    let (missed, witnessed) = (missed(worst), headline.problems[worst].witnessed);
    let why = match mechanism {
        Some((m, n)) => format!(
            "{missed} of {witnessed} faults survive, {n} by {}; {family_survivors} are {family} faults",
            m.phrase()
        ),
        None => format!("{missed} of {witnessed} faults survive; {family_survivors} are {family} faults"),
    };
    Some(WorstProblem {
        problem: matrix.key(),
        name: matrix.name.clone(),
        witnessed,
        missed,
        missed_percent: percent(missed, witnessed),
        mechanism: mechanism.map(|(m, _)| m),
        mechanism_survivors: mechanism.map_or(0, |(_, n)| n),
        family,
        family_survivors,
        why,
    })
}

fn survivor_row(matrices: &[KillMatrix], s: &Survivor) -> SurvivorRow {
    let matrix = &matrices[s.problem];
    let m = &matrix.mutants[s.mutant];
    SurvivorRow {
        problem: matrix.key(),
        problem_name: matrix.name.clone(),
        mutant: m.id.clone(),
        name: m.name.clone(),
        rule: m.rule.clone(),
        family: m.family.clone(),
        mechanism: s.mechanism,
        witness: s.witness.map(|i| matrix.inputs[i].recipe.clone()),
        witness_threshold: s.witness_threshold,
        asked_threshold: s.asked_threshold,
        flagged: m.flagged,
    }
}

fn mechanism_rows(matrices: &[KillMatrix], headline: &ProtocolScore, lost: &[Survivor]) -> Vec<MechanismRow> {
    // Schedule-witnessed mutants are not in the denominator, so they are not among the survivors; the row counts
    // them where the protocol did not kill them all the same.
    let by_schedule = matrices
        .iter()
        .zip(&headline.problems)
        .filter(|(m, _)| !m.unrefereeable)
        .flat_map(|(matrix, one)| (0..matrix.mutants.len()).map(move |i| (matrix, one, i)))
        .filter(|&(matrix, one, i)| {
            Scope::Paper.admits(&matrix.mutants[i].family)
                && !one.detected[i]
                && classify(matrix, i, &one.inputs, headline.tolerance) == Some(Mechanism::Schedule)
        })
        .map(|(matrix, _, i)| (Some(Mechanism::Schedule), &matrix.mutants[i].family));
    let counted = lost
        .iter()
        .map(|s| (s.mechanism, &matrices[s.problem].mutants[s.mutant].family))
        .filter(|(mechanism, _)| *mechanism != Some(Mechanism::Schedule));
    let mut families: BTreeMap<Option<Mechanism>, BTreeMap<String, u64>> = BTreeMap::new();
    for (mechanism, family) in counted.chain(by_schedule) {
        *families.entry(mechanism).or_default().entry(family.clone()).or_default() += 1;
    }
    Mechanism::ALL
        .into_iter()
        .map(Some)
        .chain([None])
        .map(|mechanism| {
            let families = families.remove(&mechanism).unwrap_or_default();
            MechanismRow { mechanism, survivors: families.values().sum(), families }
        })
        .filter(|row| row.mechanism.is_some() || row.survivors > 0)
        .collect()
}

/// Why mutants have no witness; reasons that explain none have no row.
fn unwitnessed_rows(matrices: &[KillMatrix]) -> Vec<UnwitnessedRow> {
    let reasons = Unwitnessed::ALL.into_iter().map(Some).chain([None]);
    let mut rows: Vec<UnwitnessedRow> =
        reasons.map(|reason| UnwitnessedRow { reason, mutants: 0, width: 0 }).collect();
    let open = matrices.iter().filter(|m| !m.unrefereeable).flat_map(|m| &m.mutants).filter(|m| !m.witnessed);
    for m in open {
        if let Some(row) = rows.iter_mut().find(|r| r.reason == m.unwitnessed) {
            let n = if Scope::Paper.admits(&m.family) { &mut row.mutants } else { &mut row.width };
            *n += 1;
        }
    }
    rows.retain(|r| r.mutants + r.width > 0);
    rows
}

/// What the protocols of targeted inputs and selected suites miss, one by one.
fn undetected(protocols: &[Protocol], scores: &[ProtocolScore], matrices: &[KillMatrix]) -> Vec<Undetected> {
    let strongest = protocols.iter().zip(scores).filter(|(p, _)| p.targeted || p.suite_budget.is_some());
    strongest
        .map(|(_, score)| Undetected {
            protocol: score.protocol.clone(),
            mutants: survivors(matrices, score, &Scope::Paper)
                .iter()
                .map(|s| {
                    let row = survivor_row(matrices, s);
                    UndetectedRow {
                        problem: row.problem,
                        mutant: row.mutant,
                        name: row.name,
                        rule: row.rule,
                        mechanism: row.mechanism,
                        witness: row.witness,
                    }
                })
                .collect(),
        })
        .collect()
}

fn statistics(
    matrices: &[KillMatrix],
    headline: &ProtocolScore,
    minimum: &[(u64, Option<u64>)],
    resamples: u64,
    seed: u64,
) -> Statistics {
    let counts: Vec<(u64, u64)> = headline
        .problems
        .iter()
        .filter(|p| p.witnessed > 0)
        .map(|p| (p.witnessed - p.caught, p.witnessed))
        .collect();
    let n = counts.len() as u64;
    let mut sizes: Vec<u64> = [10, 20, 50, 100].into_iter().filter(|&s| s < n).collect();
    sizes.push(n);

    let (mut distinct, mut surviving, mut test, mut test_caught) = (0u64, 0u64, 0u64, 0u64);
    for (matrix, one) in matrices.iter().zip(&headline.problems).filter(|(m, _)| !m.unrefereeable) {
        for (m, detected) in matrix.mutants.iter().zip(&one.detected) {
            if Scope::Paper.admits(&m.family) {
                distinct += 1;
                surviving += u64::from(!detected);
            }
        }
        for m in Scope::Paper.targets(matrix) {
            if half_of(&matrix.mutants[m].id) == Half::Test {
                test += 1;
                test_caught += u64::from(one.detected[m]);
            }
        }
    }
    let mut inputs: Vec<u64> = minimum.iter().map(|&(greedy, _)| greedy).filter(|&g| g > 0).collect();
    inputs.sort_unstable();
    Statistics {
        missed_percent: percent(headline.missed(), headline.witnessed),
        distinct_surviving_percent: percent(surviving, distinct),
        held_out_detected_percent: percent(test_caught, test),
        per_problem: distribution(&counts),
        bands: sizes.into_iter().filter_map(|size| bootstrap(&counts, size, resamples, seed)).collect(),
        suite_inputs_median: median(&inputs),
        suite_inputs_largest: inputs.last().copied(),
    }
}

/// Why an unrefereeable problem is one.
fn unrefereeable_why(matrix: &KillMatrix) -> Unrefereeable {
    // Runs that do not say why knew one reason.
    matrix.unrefereeable_why.unwrap_or(Unrefereeable::ReferenceStrays)
}

/// The caveats that [`summarise`] adds to those of its caller.
pub fn own_caveats(protocols: &[Protocol], matrices: &[KillMatrix]) -> Vec<String> {
    let scores: Vec<ProtocolScore> = protocols.iter().map(|p| score(p, matrices, &Scope::Paper)).collect();
    caveats_of(protocols, &scores, matrices)
}

fn caveats_of(protocols: &[Protocol], scores: &[ProtocolScore], matrices: &[KillMatrix]) -> Vec<String> {
    let mut caveats = Vec::new();
    for why in [Unrefereeable::ReferenceStrays, Unrefereeable::ZerosPass, Unrefereeable::ConstantPasses] {
        let here = matrices.iter().filter(|m| m.unrefereeable && unrefereeable_why(m) == why);
        let keys: Vec<String> = here.map(KillMatrix::key).collect();
        if !keys.is_empty() {
            caveats.push(format!("not scored, since {}: {}", why.clause(), keys.join(", ")));
        }
    }
    for (protocol, s) in protocols.iter().zip(scores) {
        let chosen = |m: &&KillMatrix| !m.unrefereeable && !protocol.problems.contains_key(&m.key());
        let in_sample = matrices.iter().filter(chosen).count();
        if protocol.suite_budget.is_some() && in_sample > 0 {
            caveats.push(format!(
                "`{}` was selected on the mutants that it is scored on for {in_sample} of {} problems; held-out figures stand under `suites`",
                s.protocol,
                matrices.iter().filter(|m| !m.unrefereeable).count()
            ));
        }
        if s.not_evaluated > 0 {
            caveats.push(format!("`{}` lacks {} evaluations that it asks for", s.protocol, s.not_evaluated));
        }
        if s.undecided > 0 {
            caveats.push(format!(
                "`{}` has {} evaluations that the stored thresholds do not decide",
                s.protocol, s.undecided
            ));
        }
    }
    caveats
}
