//! Two audits side by side: what a checker newly catches and newly misses.
//!
//! Mutants are the same where their ids are: a hash of file, rule, place and replacement. Protocols are compared by
//! their names, over the mutants that count (witnessed, on a problem that can be refereed) in both audits; what counts in
//! one alone is listed apart, so that a change of the denominator is not taken for a change of a checker.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{KillMatrix, Protocol, Scope, score};

/// A mutant, as lists name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MutantRef {
    /// `level/id` of its problem.
    pub problem: String,
    /// Its id.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// Its family.
    pub family: String,
    /// Its name.
    pub name: String,
}

/// What a protocol did in one audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Detected of the mutants that count in both audits.
    pub detected: u64,
    /// Correct runs rejected, over all problems of the audit.
    pub false_kills: u64,
    /// Correct runs that came to a verdict.
    pub correct_runs: u64,
}

/// One protocol in both audits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProtocolChange {
    /// Its name.
    pub name: String,
    /// In the first audit; none where it was not scored there.
    pub before: Option<Side>,
    /// In the second.
    pub after: Option<Side>,
    /// Caught in the second audit alone.
    pub newly_caught: Vec<MutantRef>,
    /// Caught in the first audit alone.
    pub newly_missed: Vec<MutantRef>,
}

/// Two audits compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditComparison {
    /// Is there no difference at all?
    pub same: bool,
    /// Mutants that count in both: what `newly_caught` and `newly_missed` are about.
    pub compared: u64,
    /// The protocols of either, in the order of the first audit, then of the second.
    pub protocols: Vec<ProtocolChange>,
    /// Distinct mutants of the first audit that the second lacks.
    pub only_before: Vec<MutantRef>,
    /// Distinct mutants of the second audit that the first lacks.
    pub only_after: Vec<MutantRef>,
    /// Distinct in both, counted in the first alone: without a witness in the second, or on a problem that it does not
    /// score.
    pub counted_only_before: Vec<MutantRef>,
    /// Likewise, counted in the second alone.
    pub counted_only_after: Vec<MutantRef>,
}

/// What one audit holds of a protocol: the ids that it catches, of those that count, and its correct runs.
struct Caught {
    ids: BTreeSet<String>,
    false_kills: u64,
    correct_runs: u64,
}

fn caught(protocol: &Protocol, matrices: &[KillMatrix]) -> Caught {
    let mut ids = BTreeSet::new();
    // As everywhere, a family with a table of its own is scored by itself.
    let paper = score(protocol, matrices, &Scope::Paper);
    let width = score(protocol, matrices, &Scope::Family("width".to_owned()));
    for (s, scope) in [(&paper, Scope::Paper), (&width, Scope::Family("width".to_owned()))] {
        for (matrix, one) in matrices.iter().zip(&s.problems) {
            let found = scope.targets(matrix).into_iter().filter(|&m| one.detected[m]);
            ids.extend(found.map(|m| matrix.mutants[m].id.clone()));
        }
    }
    Caught { ids, false_kills: paper.false_kills, correct_runs: paper.correct_runs }
}

/// Every distinct mutant by id, and whether it counts.
fn mutants(matrices: &[KillMatrix]) -> BTreeMap<String, (MutantRef, bool)> {
    let all = matrices.iter().flat_map(|matrix| {
        matrix.mutants.iter().map(move |m| {
            let named = MutantRef {
                problem: matrix.key(),
                id: m.id.clone(),
                rule: m.rule.clone(),
                family: m.family.clone(),
                name: m.name.clone(),
            };
            (m.id.clone(), (named, m.witnessed && !matrix.unrefereeable))
        })
    });
    all.collect()
}

/// Compares two audits, each its matrices and its protocols.
pub fn compare_audits(
    before: (&[KillMatrix], &[Protocol]),
    after: (&[KillMatrix], &[Protocol]),
) -> AuditComparison {
    let (a, b) = (mutants(before.0), mutants(after.0));
    let lacking = |of: &BTreeMap<String, (MutantRef, bool)>, other: &BTreeMap<String, (MutantRef, bool)>| {
        sorted(of.iter().filter(|(id, _)| !other.contains_key(*id)).map(|(_, (m, _))| m.clone()))
    };
    let counted_alone = |of: &BTreeMap<String, (MutantRef, bool)>,
                         other: &BTreeMap<String, (MutantRef, bool)>| {
        let alone = of.iter().filter(|(id, (_, counts))| *counts && other.get(*id).is_some_and(|(_, c)| !c));
        sorted(alone.map(|(_, (m, _))| m.clone()))
    };
    let both: BTreeMap<&String, &MutantRef> = a
        .iter()
        .filter(|(id, (_, counts))| *counts && b.get(*id).is_some_and(|(_, c)| *c))
        .map(|(id, (m, _))| (id, m))
        .collect();
    let mut names: Vec<&str> = before.1.iter().map(|p| p.name.as_str()).collect();
    names.extend(after.1.iter().map(|p| p.name.as_str()));
    let mut seen = BTreeSet::new();
    names.retain(|n| seen.insert(*n));
    let find = |protocols: &[Protocol], matrices: &[KillMatrix], name: &str| {
        protocols.iter().find(|p| p.name == name).map(|p| caught(p, matrices))
    };
    let protocols: Vec<ProtocolChange> = names
        .into_iter()
        .map(|name| {
            let (was, is) = (find(before.1, before.0, name), find(after.1, after.0, name));
            let side = |c: &Option<Caught>| {
                c.as_ref().map(|c| Side {
                    detected: both.keys().filter(|id| c.ids.contains(**id)).count() as u64,
                    false_kills: c.false_kills,
                    correct_runs: c.correct_runs,
                })
            };
            let alone = |here: &Option<Caught>, there: &Option<Caught>| match (here, there) {
                (Some(here), Some(there)) => sorted(
                    both.iter()
                        .filter(|(id, _)| here.ids.contains(**id) && !there.ids.contains(**id))
                        .map(|(_, m)| (*m).clone()),
                ),
                _ => Vec::new(),
            };
            ProtocolChange {
                name: name.to_owned(),
                before: side(&was),
                after: side(&is),
                newly_caught: alone(&is, &was),
                newly_missed: alone(&was, &is),
            }
        })
        .collect();
    let mut out = AuditComparison {
        same: false,
        compared: both.len() as u64,
        protocols,
        only_before: lacking(&a, &b),
        only_after: lacking(&b, &a),
        counted_only_before: counted_alone(&a, &b),
        counted_only_after: counted_alone(&b, &a),
    };
    let lists = [&out.only_before, &out.only_after, &out.counted_only_before, &out.counted_only_after];
    out.same = lists.iter().all(|l| l.is_empty())
        && out
            .protocols
            .iter()
            .all(|p| p.before == p.after && p.newly_caught.is_empty() && p.newly_missed.is_empty());
    out
}

/// By problem as people count, then by name.
fn sorted(mutants: impl Iterator<Item = MutantRef>) -> Vec<MutantRef> {
    let number = |m: &MutantRef| -> (u32, u32) {
        let parts = m.problem.split_once('/').and_then(|(l, i)| Some((l.parse().ok()?, i.parse().ok()?)));
        parts.unwrap_or((u32::MAX, u32::MAX))
    };
    let mut out: Vec<MutantRef> = mutants.collect();
    out.sort_by(|x, y| number(x).cmp(&number(y)).then_with(|| (&x.name, &x.id).cmp(&(&y.name, &y.id))));
    out
}
