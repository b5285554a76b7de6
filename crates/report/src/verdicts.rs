//! What each protocol says of each mutant.

use std::collections::BTreeMap;

use assay_judge::EvaluationEnd;
use assay_measure::{CheckVerdict, FAMILIES, KillMatrix, Protocol, ProtocolScore, Scope, score};

/// One distinct mutant under the protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Names of the protocols that reject it, in the order of tables.
    pub rejected_by: Vec<String>,
    /// Names of those that come to a verdict: that reject it, or whose every evaluation of it was decided.
    pub decided_by: Vec<String>,
    /// Has it a witness?
    pub witnessed: bool,
    /// Only under another schedule?
    pub schedule_witnessed: bool,
    /// Did the sanitizer report it?
    pub flagged: bool,
    /// Did an evaluation run out of its budget?
    pub exhausted: bool,
    /// Was an evaluation unsupported?
    pub unsupported: bool,
    /// Does its problem count? No protocol is scored where the problem cannot be refereed.
    pub scored: bool,
}

/// The verdicts on every distinct mutant, by its id. What a protocol asks and kills is [`assay_measure::score`]'s to
/// say; a family with a table of its own is scored by itself there, and so it is here.
pub fn verdicts(matrices: &[KillMatrix], protocols: &[Protocol]) -> BTreeMap<String, Verdicts> {
    let scope_of = |family: &str| -> usize { usize::from(!Scope::Paper.admits(family)) };
    let width = FAMILIES[FAMILIES.len() - 1];
    let scopes = [Scope::Paper, Scope::Family(width.to_owned())];
    let scores: Vec<Vec<ProtocolScore>> =
        scopes.iter().map(|scope| protocols.iter().map(|p| score(p, matrices, scope)).collect()).collect();
    let mut out = BTreeMap::new();
    for (at, matrix) in matrices.iter().enumerate() {
        for (m, row) in matrix.mutants.iter().enumerate() {
            let mut v = Verdicts {
                witnessed: row.witnessed,
                schedule_witnessed: row.schedule_witnessed,
                flagged: row.flagged,
                scored: !matrix.unrefereeable,
                ..Verdicts::default()
            };
            for i in 0..matrix.inputs.len() {
                match matrix.cell(m, i).map(|c| c.end) {
                    Some(EvaluationEnd::Exhausted) => v.exhausted = true,
                    Some(EvaluationEnd::Unsupported) => v.unsupported = true,
                    _ => {}
                }
            }
            for s in &scores[scope_of(&row.family)] {
                let one = &s.problems[at];
                let rejected = one.detected[m];
                let checker = matrix.checkers.get(&s.protocol).map(|runs| {
                    let verdicts = runs.mutants.get(&row.id).map_or(&[][..], Vec::as_slice);
                    verdicts.len() == runs.recipes.len()
                        && verdicts.iter().all(|&v| v == CheckVerdict::Accepts || v.is_rejection())
                });
                let decided = |i: &usize| {
                    checker.unwrap_or_else(|| matrix.cell(m, *i).is_some_and(|c| c.end.is_decided()))
                };
                if rejected {
                    v.rejected_by.push(s.protocol.clone());
                }
                if rejected || (!one.inputs.is_empty() && one.inputs.iter().all(decided)) {
                    v.decided_by.push(s.protocol.clone());
                }
            }
            out.insert(row.id.clone(), v);
        }
    }
    out
}
