//! What all problems together say of families and rules, for taxonomy and playbooks.

use std::collections::{BTreeMap, BTreeSet};

use assay_campaign::store::MutantRow;
use assay_measure::{
    KillMatrix, Mechanism, Protocol, ProtocolScore, Scope, Survivor, Tolerance, score, survivors,
};

use crate::groups::{Group, GroupSet, Groups};
use crate::witness::{Runs, Witness};

/// Survivors that a playbook shows.
const EXAMPLES: usize = 3;
/// Survivors that are kept to choose from, so that those shown are of several problems.
const CANDIDATES: usize = 24;

/// What a protocol says of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Killed.
    Killed,
    /// Not killed; every evaluation decided.
    Missed,
    /// Not killed; an evaluation is undecided or not there.
    Undecided,
    /// The protocol asks nothing of the problem.
    NotAsked,
}

impl Answer {
    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Killed => "killed",
            Answer::Missed => "missed",
            Answer::Undecided => "undecided",
            Answer::NotAsked => "not_asked",
        }
    }
}

/// A problem's scores: each family with a table of its own is scored by itself, as in the summary.
pub struct Scores<'a> {
    matrix: &'a KillMatrix,
    /// By protocol, for the paper's families.
    paper: Vec<ProtocolScore>,
    /// By protocol, for each other family.
    apart: BTreeMap<String, Vec<ProtocolScore>>,
}

impl<'a> Scores<'a> {
    /// Scores every protocol on one problem.
    pub fn of(matrix: &'a KillMatrix, protocols: &[Protocol]) -> Scores<'a> {
        let one = std::slice::from_ref(matrix);
        let all = |scope: &Scope| protocols.iter().map(|p| score(p, one, scope)).collect::<Vec<_>>();
        let apart: BTreeSet<&str> =
            matrix.mutants.iter().map(|m| m.family.as_str()).filter(|f| !Scope::Paper.admits(f)).collect();
        Scores {
            matrix,
            paper: all(&Scope::Paper),
            apart: apart.into_iter().map(|f| (f.to_owned(), all(&Scope::Family(f.to_owned())))).collect(),
        }
    }

    fn table(&self, family: &str) -> &[ProtocolScore] {
        self.apart.get(family).unwrap_or(&self.paper)
    }

    /// What a protocol, by its number, says of a mutant, and why a witnessed one is not killed.
    pub fn answer(&self, protocol: usize, mutant: usize) -> (Answer, Option<Mechanism>) {
        let Some(row) = self.matrix.mutants.get(mutant) else { return (Answer::NotAsked, None) };
        let Some(s) = self.table(&row.family).get(protocol) else { return (Answer::NotAsked, None) };
        let Some(one) = s.problems.first() else { return (Answer::NotAsked, None) };
        if one.detected.get(mutant) == Some(&true) {
            return (Answer::Killed, None);
        }
        let mechanism = assay_measure::classify(self.matrix, mutant, &one.inputs, s.tolerance);
        if one.inputs.is_empty() && one.missing_inputs.is_empty() {
            return (Answer::NotAsked, mechanism);
        }
        let decided = match self.matrix.checkers.get(&s.protocol) {
            Some(runs) => {
                let verdicts = runs.mutants.get(&row.id).map_or(&[][..], Vec::as_slice);
                verdicts.len() == runs.recipes.len()
                    && verdicts.iter().all(|&v| v.is_rejection() || v == assay_measure::CheckVerdict::Accepts)
            }
            None => one.inputs.iter().all(|&i| {
                self.matrix
                    .cell(mutant, i)
                    .is_some_and(|c| c.rejected_by(s.tolerance).is_some() && c.end.is_decided())
            }),
        };
        let known = decided && one.missing_inputs.is_empty();
        (if known { Answer::Missed } else { Answer::Undecided }, mechanism)
    }

    /// The witnessed mutants that the first protocol misses.
    pub fn survivors(&self) -> Vec<Survivor> {
        let one = std::slice::from_ref(self.matrix);
        let scopes = std::iter::once((Scope::Paper, &self.paper))
            .chain(self.apart.iter().map(|(f, s)| (Scope::Family(f.clone()), s)));
        scopes.filter_map(|(scope, s)| Some(survivors(one, s.first()?, &scope))).flatten().collect()
    }
}

/// Counts of mutants by what became of them. Generated to distinct over every problem; the rest over problems that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Generated.
    pub generated: u64,
    /// Refused by the compiler.
    pub noncompiling: u64,
    /// With another mutant's image.
    pub duplicate: u64,
    /// With the original's.
    pub equivalent: u64,
    /// Nothing could be learnt; part of the distinct.
    pub quarantined: u64,
    /// The rest.
    pub distinct: u64,
    /// With a witness.
    pub witnessed: u64,
    /// With one under another schedule only.
    pub schedule_witnessed: u64,
    /// Witnessed ones that the sanitizer reports.
    pub witnessed_flagged: u64,
    /// Witnessed ones not killed, by protocol.
    pub missed: Vec<u64>,
}

impl Counts {
    fn status(&mut self, status: &str) {
        self.generated += 1;
        match status {
            "noncompiling" => self.noncompiling += 1,
            "duplicate" => self.duplicate += 1,
            "equivalent" => self.equivalent += 1,
            other => {
                self.distinct += 1;
                self.quarantined += u64::from(other == "quarantined");
            }
        }
    }
}

/// A survivor to show.
#[derive(Clone, Debug)]
pub struct Example {
    /// The problem's key and name.
    pub problem: (String, String),
    /// Folder of the problem in the release.
    pub folder: String,
    /// The mutant.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// Its name.
    pub name: String,
    /// Its diff.
    pub diff: String,
    /// Why it survives.
    pub mechanism: Option<Mechanism>,
    /// Recipe of the witness on which its error is largest, and the threshold there against float64.
    pub witness: Option<(String, f64)>,
    /// Its largest threshold on what the headline protocol asks.
    pub asked: f64,
    /// Does the sanitizer report it?
    pub flagged: bool,
    surprise: f64,
}

/// One group of inputs in one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTally {
    /// Problems with such an input.
    pub problems: u64,
    /// Witnessed mutants that met one.
    pub met: u64,
    /// Those that one kills at 1e-2.
    pub killed: u64,
    /// Of these, those that the headline protocol misses.
    pub killed_missed: u64,
    /// And those that no other group kills.
    pub alone: u64,
}

/// What became of one problem's mutants of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemTally {
    /// The key.
    pub problem: String,
    /// The name.
    pub name: String,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Those that the headline protocol misses.
    pub missed: u64,
}

/// One family.
#[derive(Clone, Debug, Default)]
pub struct FamilyTally {
    /// Its mutants.
    pub counts: Counts,
    /// Witnessed mutants not killed, by protocol and mechanism; the last place is for none known.
    pub mechanisms: Vec<[u64; Mechanism::ALL.len() + 1]>,
    /// Groups of inputs.
    pub groups: BTreeMap<Group, GroupTally>,
    /// How many witnessed mutants each set of groups kills.
    sets: BTreeMap<GroupSet, u64>,
    /// Problems with witnessed mutants.
    pub problems: Vec<ProblemTally>,
    /// Missed ones that the sanitizer reports.
    pub missed_flagged: u64,
    /// The most surprising survivors of the headline protocol, one of a rule.
    candidates: Vec<Example>,
}

impl FamilyTally {
    /// The most surprising survivors of the headline protocol: each of a rule of its own, and of a problem of its own as
    /// far as there are so many.
    pub fn examples(&self) -> Vec<&Example> {
        let mut chosen: Vec<&Example> = Vec::new();
        for again in [false, true] {
            for e in &self.candidates {
                let known = chosen.iter().any(|c| c.problem.0 == e.problem.0);
                let taken = chosen.iter().any(|c| c.id == e.id);
                if chosen.len() < EXAMPLES && !taken && (again || !known) {
                    chosen.push(e);
                }
            }
        }
        chosen
    }
}

/// All families and rules.
#[derive(Default)]
pub struct Tally {
    /// By family.
    pub families: BTreeMap<String, FamilyTally>,
    /// By rule: its family and counts.
    pub rules: BTreeMap<String, (String, Counts)>,
    groups: Groups,
    protocols: usize,
}

/// One problem, for [`Tally::add`].
pub struct Problem<'a> {
    /// Its key and name.
    pub key: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its folder in the release.
    pub folder: &'a str,
    /// Its mutants.
    pub mutants: &'a [MutantRow],
}

impl Tally {
    /// Nothing yet.
    pub fn new(protocols: usize) -> Tally {
        Tally { protocols, ..Tally::default() }
    }

    fn counts_of(&mut self, family: &str, rule: &str) -> [&mut Counts; 2] {
        let protocols = self.protocols;
        let fresh = || Counts { missed: vec![0; protocols], ..Counts::default() };
        let f = self.families.entry(family.to_owned()).or_insert_with(|| FamilyTally {
            counts: fresh(),
            mechanisms: vec![[0; Mechanism::ALL.len() + 1]; protocols],
            ..FamilyTally::default()
        });
        let r = self.rules.entry(rule.to_owned()).or_insert_with(|| (family.to_owned(), fresh()));
        [&mut f.counts, &mut r.1]
    }

    /// Takes in the mutants of a problem, whatever became of them.
    pub fn add_generated(&mut self, mutants: &[MutantRow]) {
        for m in mutants {
            for c in self.counts_of(&m.family, &m.rule) {
                c.status(&m.status);
            }
        }
    }

    /// Takes in what was measured of a problem that counts.
    pub fn add(&mut self, problem: &Problem<'_>, matrix: &KillMatrix, runs: &Runs<'_>, scores: &Scores<'_>) {
        let group_of: Vec<(Group, u32)> =
            matrix.inputs.iter().map(|i| (Group::of(&i.recipe), self.groups.number(&i.recipe))).collect();
        let mut families: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (m, row) in matrix.mutants.iter().enumerate() {
            if row.schedule_witnessed {
                for c in self.counts_of(&row.family, &row.rule) {
                    c.schedule_witnessed += 1;
                }
            }
            if !row.witnessed {
                continue;
            }
            let answers: Vec<(Answer, Option<Mechanism>)> =
                (0..self.protocols).map(|p| scores.answer(p, m)).collect();
            for c in self.counts_of(&row.family, &row.rule) {
                c.witnessed += 1;
                c.witnessed_flagged += u64::from(row.flagged);
                for (n, a) in c.missed.iter_mut().zip(&answers) {
                    *n += u64::from(a.0 != Answer::Killed);
                }
            }
            let missed = answers.first().is_some_and(|a| a.0 != Answer::Killed);
            let here = families.entry(&row.family).or_default();
            here.0 += 1;
            here.1 += u64::from(missed);
            let Some(f) = self.families.get_mut(&row.family) else { continue };
            f.missed_flagged += u64::from(missed && row.flagged);
            for (table, a) in f.mechanisms.iter_mut().zip(&answers) {
                if a.0 != Answer::Killed {
                    let place = a.1.and_then(|w| Mechanism::ALL.iter().position(|&x| x == w));
                    table[place.unwrap_or(Mechanism::ALL.len())] += 1;
                }
            }
            let mut killed: BTreeMap<&Group, bool> = BTreeMap::new();
            let mut set: GroupSet = 0;
            for (i, (group, number)) in group_of.iter().enumerate() {
                if matrix.cell(m, i).is_none() {
                    continue;
                }
                let kills = matrix.kills(m, i, Tolerance::PAPER);
                *killed.entry(group).or_default() |= kills;
                if kills {
                    set |= 1 << number;
                }
            }
            *f.sets.entry(set).or_default() += 1;
            for (group, kills) in killed {
                let t = f.groups.entry(group.clone()).or_default();
                t.met += 1;
                t.killed += u64::from(kills);
                t.killed_missed += u64::from(kills && missed);
                t.alone += u64::from(kills && set.count_ones() == 1);
            }
        }
        for (family, (witnessed, missed)) in families {
            let Some(f) = self.families.get_mut(family) else { continue };
            let groups: BTreeSet<&Group> = group_of.iter().map(|(g, _)| g).collect();
            for g in groups {
                if let Some(t) = f.groups.get_mut(g) {
                    t.problems += 1;
                }
            }
            f.problems.push(ProblemTally {
                problem: problem.key.to_owned(),
                name: problem.name.to_owned(),
                witnessed,
                missed,
            });
        }
        self.add_examples(problem, matrix, runs, scores);
    }

    fn add_examples(
        &mut self,
        problem: &Problem<'_>,
        matrix: &KillMatrix,
        runs: &Runs<'_>,
        scores: &Scores<'_>,
    ) {
        for s in scores.survivors() {
            let row = &matrix.mutants[s.mutant];
            let Some(f) = self.families.get_mut(&row.family) else { continue };
            let better = |e: &Example| {
                s.surprise > e.surprise || (s.surprise == e.surprise && s.asked_threshold < e.asked)
            };
            // One of a rule, and few of all: most survivors are not worth looking up.
            let same = f.candidates.iter().position(|e| e.rule == row.rule);
            let open = match same {
                Some(at) => better(&f.candidates[at]),
                None => f.candidates.len() < CANDIDATES || f.candidates.last().is_some_and(better),
            };
            let Some(full) = problem.mutants.iter().find(|m| m.id == row.id).filter(|_| open) else {
                continue;
            };
            if let Some(at) = same {
                f.candidates.remove(at);
            }
            let held = s.witness.map(|i| (matrix.inputs[i].recipe.clone(), s.witness_threshold));
            let first = runs
                .witness(s.mutant)
                .map(|Witness { input, truth, .. }| (matrix.inputs[input].recipe.clone(), truth));
            f.candidates.push(Example {
                problem: (problem.key.to_owned(), problem.name.to_owned()),
                folder: problem.folder.to_owned(),
                id: row.id.clone(),
                rule: row.rule.clone(),
                name: row.name.clone(),
                diff: full.diff.clone(),
                mechanism: s.mechanism,
                witness: held.or(first),
                asked: s.asked_threshold,
                flagged: row.flagged,
                surprise: s.surprise,
            });
            f.candidates.sort_by(|a, b| b.surprise.total_cmp(&a.surprise).then(a.asked.total_cmp(&b.asked)));
            f.candidates.truncate(CANDIDATES);
        }
    }

    /// The groups that together kill most of a family, each the best beside those before it, with how many witnessed
    /// mutants are killed by then. Ends where none kills another.
    pub fn best_groups(&self, family: &str) -> Vec<(Group, u64)> {
        let Some(f) = self.families.get(family) else { return Vec::new() };
        let mut left: Vec<(GroupSet, u64)> = f.sets.iter().map(|(&s, &n)| (s, n)).collect();
        let mut chosen = Vec::new();
        let mut killed = 0;
        loop {
            let gain = |n: u32| -> u64 { left.iter().filter(|(s, _)| s >> n & 1 == 1).map(|(_, n)| n).sum() };
            // Of equal gains the first by name, so that the order of problems decides nothing.
            let best = self.groups.all().map(|(g, n)| (g, n, gain(n))).fold(
                None,
                |best: Option<(&Group, u32, u64)>, x| {
                    if best.is_none_or(|b| x.2 > b.2) { Some(x) } else { best }
                },
            );
            let Some((group, number, gained)) = best.filter(|b| b.2 > 0) else { break };
            killed += gained;
            left.retain(|(s, _)| s >> number & 1 == 0);
            chosen.push((group.clone(), killed));
        }
        chosen
    }
}
