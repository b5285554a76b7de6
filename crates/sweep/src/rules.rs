//! Rules that explain a sweep: learned as the shortest ordered list of conditions that reproduces every outcome, applied to
//! any records, and honest about what the records cannot decide.
//!
//! A list is a decision list: the first rule whose condition holds decides, and where none holds the result is what
//! "otherwise" says. Of lists with as few terms as possible the one with simpler conditions and sizes that say more of the
//! mechanism is taken. A rule that no run tells apart from its neighbour stands in the order in which a machine would act:
//! conditions on the output first, then what raises, then what computes wrongly.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use assay_tensor::DType;
use serde::{Deserialize, Serialize};

use crate::condition::{Cmp, Condition, Flag, Situation, Size, Term, count};
use crate::error::SweepError;
use crate::judge;
use crate::misread::Misreading;
use crate::point::Point;
use crate::record::{Outcome, Record};
use crate::values::Kind;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// When it decides.
    pub when: Condition,
    /// What then happens.
    pub outcome: Outcome,
    /// Where the wrong batches lie; empty where unknown or nothing is wrong.
    pub extent: String,
    /// The misreading that reproduces every wrong element; empty where none does.
    pub reading: String,
}

/// A rule as files and `--json` have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// The condition.
    pub when: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Where the wrong batches lie.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extent: String,
    /// The misreading.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
    /// The condition in words; written, not read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Runs that it decided; written, not read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A file of rules.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    source: String,
    rule: Vec<RuleText>,
}

/// Reads a file of rules; the last one should be `always`.
///
/// # Errors
/// A file that cannot be read, TOML of another form, conditions that are none.
pub fn load(path: &Path) -> Result<Vec<Rule>, SweepError> {
    let text = std::fs::read_to_string(path).map_err(SweepError::reading(path))?;
    parse(&text, &path.display().to_string())
}

/// The rules of a file's text.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, origin: &str) -> Result<Vec<Rule>, SweepError> {
    let file: RuleFile = toml::from_str(text)
        .map_err(|e| SweepError::bad(format!("{origin}: {}", e.to_string().trim_end())))?;
    file.rule
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let when = r
                .when
                .parse()
                .map_err(|e: SweepError| SweepError::bad(format!("{origin}: rule {}: {e}", i + 1)))?;
            Ok(Rule { when, outcome: r.outcome, extent: r.extent.clone(), reading: r.reading.clone() })
        })
        .collect()
}

/// The text of a file of rules.
///
/// # Errors
/// Never for rules that [`load`] made.
pub fn write(rules: &[RuleText], source: &str) -> Result<String, SweepError> {
    toml::to_string(&RuleFile { source: source.to_owned(), rule: rules.to_vec() })
        .map_err(|e| SweepError::bad(e.to_string()))
}

impl Rule {
    /// As files have it.
    pub fn text(&self, runs: usize) -> RuleText {
        RuleText {
            when: self.when.to_string(),
            outcome: self.outcome,
            extent: self.extent.clone(),
            reading: self.reading.clone(),
            words: self.when.words(),
            runs,
        }
    }
}

/// What happened to one product of one run.
#[derive(Clone, Debug)]
struct Item {
    situation: Situation,
    label: Label,
    /// Every statement about the place of the wrong batches that holds.
    extents: Vec<String>,
}

/// An outcome and, of a wrong one, the statement about its place that tells most runs of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Label {
    outcome: Outcome,
    extent: String,
}

/// What a product of a record came to.
fn items(r: &Record, p: &Point) -> Result<Vec<Item>, SweepError> {
    let version = r.version();
    let outcome = r.outcome()?;
    let products = p.products();
    let situation = |i: usize| Situation { product: products[i], dtype: p.dtype, version: version.clone() };
    let item = |i: usize, outcome: Outcome, tensor: &str| Item {
        situation: situation(i),
        label: Label { outcome, extent: String::new() },
        extents: match r.tensors.get(tensor) {
            Some(t) if outcome.silent() => t.extents.clone(),
            _ => Vec::new(),
        },
    };
    if outcome == Outcome::Skipped || outcome == Outcome::InputCorrupt {
        return Ok(Vec::new());
    }
    if !p.backward {
        return Ok(vec![item(0, outcome, "out")]);
    }
    let mut out = Vec::new();
    for (i, (tensor, class)) in
        [("out", &r.cls_out), ("grad_a", &r.cls_grad_a), ("grad_b", &r.cls_grad_b)].into_iter().enumerate()
    {
        if let Some(class) = class.as_deref().and_then(Outcome::parse) {
            out.push(item(i, class, tensor));
        }
    }
    if out.is_empty() && r.stage.as_deref() == Some("forward") {
        out.push(item(0, outcome, "out"));
    }
    Ok(out)
}

/// A set of items.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bits(Vec<u64>);

impl Bits {
    fn empty(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64)])
    }

    fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn and(&self, o: &Bits) -> Bits {
        Bits(self.0.iter().zip(&o.0).map(|(a, b)| a & b).collect())
    }

    fn minus(&self, o: &Bits) -> Bits {
        Bits(self.0.iter().zip(&o.0).map(|(a, b)| a & !b).collect())
    }

    fn any(&self) -> bool {
        self.0.iter().any(|&w| w != 0)
    }

    fn within(&self, o: &Bits) -> bool {
        self.0.iter().zip(&o.0).all(|(a, b)| a & !b == 0)
    }

    fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(i, &w)| (0..64).filter(move |b| w >> b & 1 == 1).map(move |b| i * 64 + b))
    }
}

/// A condition with what it covers and what it costs.
struct Candidate {
    terms: Vec<Term>,
    covers: Bits,
    cost: u32,
}

/// Rules learned from records, with what else fits.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The rules, the last of them `always`.
    pub rules: Vec<Rule>,
    /// For each rule the conditions that decide the same runs at its place.
    alternatives: Vec<Vec<Condition>>,
    /// Pairs of rules (earlier, later) whose order no run decides.
    unordered: Vec<(usize, usize)>,
    /// In words: what the records cannot decide.
    pub undecided: Vec<String>,
    /// The smallest and largest of every size that a run had.
    ranges: Vec<(Size, u64, u64)>,
    /// How operands were passed, with which dtype, in some run.
    ways: HashSet<(Vec<bool>, DType)>,
    /// Which of the rules' terms hold together in some run.
    seen: HashSet<Vec<bool>>,
}

/// Learns rules from the records with random inputs; calibration and runs that were skipped say nothing. `versions` are those
/// that the rules are for.
///
/// # Errors
/// Records that are none, and records that contradict each other: the same sizes and layouts with different outcomes.
pub fn learn(records: &[Record]) -> Result<Learned, SweepError> {
    let mut seen: HashMap<(Situation, ()), usize> = HashMap::new();
    let mut all: Vec<Item> = Vec::new();
    let mut series: BTreeMap<String, Vec<(u64, usize)>> = BTreeMap::new();
    for r in records {
        if r.calibration() || r.input() != Kind::Random {
            continue;
        }
        let p = r.point()?;
        for (which, item) in items(r, &p)?.into_iter().enumerate() {
            let mut key = item.situation.clone();
            // One list is for all versions that are given to it.
            key.version.clear();
            let at = match seen.get(&(key.clone(), ())) {
                Some(&at) => {
                    let known = &all[at].label;
                    if known.outcome != item.label.outcome {
                        return Err(SweepError::bad(format!(
                            "{} at B = {} is both `{}` and `{}`: no rule over sizes and layouts can say which",
                            p.series(),
                            p.batch,
                            known.outcome.name(),
                            item.label.outcome.name()
                        )));
                    }
                    // A comparison of all elements says more about the place than a sampled one: what both say holds.
                    if !item.extents.is_empty() {
                        let held = &mut all[at].extents;
                        if held.is_empty() {
                            *held = item.extents;
                        } else {
                            held.retain(|e| item.extents.contains(e));
                        }
                    }
                    at
                }
                None => {
                    all.push(Item { situation: key.clone(), ..item });
                    seen.insert((key, ()), all.len() - 1);
                    all.len() - 1
                }
            };
            let size = if p.offset > 0 { p.offset } else { p.batch };
            series.entry(format!("{} {which}", p.series())).or_default().push((size, at));
        }
    }
    if all.is_empty() {
        return Err(SweepError::bad("there is no run with random inputs to learn from"));
    }
    merge_extents(&mut all);
    Learner::new(&all, &series).learn(records)
}

/// Gives every wrong item one statement about its place: of the statements that hold, the one that holds for most.
fn merge_extents(all: &mut [Item]) {
    let mut open: Vec<usize> = (0..all.len()).filter(|&i| all[i].label.outcome.silent()).collect();
    while !open.is_empty() {
        let mut counts: BTreeMap<(Outcome, String), usize> = BTreeMap::new();
        for &i in &open {
            for e in &all[i].extents {
                *counts.entry((all[i].label.outcome, e.clone())).or_insert(0) += 1;
            }
        }
        // Of equals the first in the alphabet of statements; "every batch" stands behind "batches beyond …".
        let Some(((outcome, extent), _)) =
            counts.into_iter().max_by_key(|(k, n)| (*n, std::cmp::Reverse(k.clone())))
        else {
            break;
        };
        open.retain(|&i| {
            let hit = all[i].label.outcome == outcome && all[i].extents.contains(&extent);
            if hit {
                all[i].label.extent.clone_from(&extent);
            }
            !hit
        });
    }
    // Where nothing is known of the place, it is that of the others if they have but one.
    for i in open {
        let outcome = all[i].label.outcome;
        let known: BTreeSet<String> = all
            .iter()
            .filter(|x| x.label.outcome == outcome && !x.label.extent.is_empty())
            .map(|x| x.label.extent.clone())
            .collect();
        if known.len() == 1 {
            all[i].label.extent = known.into_iter().next().unwrap_or_default();
        }
    }
}

/// Conditions with the number of their label, in order.
type List = Vec<(Vec<Term>, usize)>;

struct Learner<'a> {
    items: &'a [Item],
    labels: Vec<usize>,
    names: Vec<Label>,
    candidates: Vec<Candidate>,
    /// Every single term, for alternatives.
    literals: Vec<(Term, Bits, u32)>,
}

impl<'a> Learner<'a> {
    fn new(items: &'a [Item], series: &BTreeMap<String, Vec<(u64, usize)>>) -> Learner<'a> {
        let names: Vec<Label> =
            items.iter().map(|i| i.label.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        let labels = items.iter().map(|i| names.binary_search(&i.label).unwrap_or(0)).collect();
        let mut l = Learner { items, labels, names, candidates: Vec::new(), literals: Vec::new() };
        l.literals = l.literals(series);
        l
    }

    fn cover(&self, term: &Term) -> Bits {
        let mut b = Bits::empty(self.items.len());
        for (i, item) in self.items.iter().enumerate() {
            if term.holds(&item.situation) {
                b.set(i);
            }
        }
        b
    }

    /// Every term that splits the records: flags, dtypes, and sizes at the cuts where some series changes.
    fn literals(&self, series: &BTreeMap<String, Vec<(u64, usize)>>) -> Vec<(Term, Bits, u32)> {
        let mut terms: Vec<(Term, u32)> = Vec::new();
        for (i, flag) in Flag::ALL.into_iter().enumerate() {
            terms.push((Term::Flag(flag, false), i as u32));
            terms.push((Term::Flag(flag, true), 50 + i as u32));
        }
        let dtypes: BTreeSet<DType> = self.items.iter().map(|i| i.situation.dtype).collect();
        for d in dtypes {
            terms.push((Term::DType(d), 40));
        }
        let mut changes: HashSet<(usize, usize)> = HashSet::new();
        for points in series.values() {
            let mut points = points.clone();
            points.sort_unstable();
            points.dedup();
            for w in points.windows(2) {
                if self.labels[w[0].1] != self.labels[w[1].1] {
                    changes.insert((w[0].1, w[1].1));
                }
            }
        }
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_unstable();
        for (s, size) in Size::ALL.into_iter().enumerate() {
            let mut values: Vec<u64> = self.items.iter().map(|i| i.situation.size(size)).collect();
            values.sort_unstable();
            values.dedup();
            let mut cuts: BTreeSet<u64> = BTreeSet::new();
            for &(lo, hi) in &changes {
                let (lo, hi) = (self.items[lo].situation.size(size), self.items[hi].situation.size(size));
                // The first value on the far side of the change, whichever way sizes grow.
                if lo != hi {
                    let (lo, hi) = (lo.min(hi), lo.max(hi));
                    for &v in &values {
                        if v > lo && v <= hi {
                            cuts.insert(v);
                        }
                    }
                }
            }
            for cut in cuts {
                let at = values.partition_point(|&v| v < cut);
                let below = if at == 0 { 0 } else { values[at - 1] };
                let (t, ge) = snap(below, cut);
                let (above_cmp, below_cmp) = if ge { (Cmp::Ge, Cmp::Lt) } else { (Cmp::Gt, Cmp::Le) };
                terms.push((Term::Size(size, above_cmp, t), 5 + s as u32));
                terms.push((Term::Size(size, below_cmp, t), 30 + s as u32));
            }
        }
        let mut out: Vec<(Term, Bits, u32)> = Vec::new();
        for (term, cost) in terms {
            let covers = self.cover(&term);
            if covers.any() && covers.ones().count() < self.items.len() {
                out.push((term, covers, cost));
            }
        }
        out
    }

    /// Conditions of up to `most` terms, of those that cover the same items the cheapest.
    fn build_candidates(&mut self, most: usize) {
        let mut best: HashMap<Bits, (Vec<usize>, u32)> = HashMap::new();
        let mut singles: Vec<usize> = Vec::new();
        let mut offer = |covers: Bits, terms: Vec<usize>, cost: u32| -> bool {
            match best.get(&covers) {
                Some((_, c)) if *c <= cost => false,
                _ => {
                    best.insert(covers, (terms, cost));
                    true
                }
            }
        };
        let price = |n: usize, sum: u32| (n as u32) * 1000 + (n * n - n) as u32 * 100 + sum;
        for (i, (_, covers, cost)) in self.literals.iter().enumerate() {
            if offer(covers.clone(), vec![i], price(1, *cost)) {
                singles.push(i);
            }
        }
        // Of literals that cover alike the cheapest stands for all; the others come back as alternatives.
        singles.retain(|&i| {
            self.literals
                .iter()
                .enumerate()
                .all(|(j, l)| j == i || l.1 != self.literals[i].1 || (l.2, j) > (self.literals[i].2, i))
        });
        let mut pairs: Vec<(Bits, Vec<usize>, u32)> = Vec::new();
        if most >= 2 {
            for (x, &i) in singles.iter().enumerate() {
                for &j in &singles[x + 1..] {
                    let covers = self.literals[i].1.and(&self.literals[j].1);
                    if !covers.any() || covers == self.literals[i].1 || covers == self.literals[j].1 {
                        continue;
                    }
                    let sum = self.literals[i].2 + self.literals[j].2;
                    if offer(covers.clone(), vec![i, j], price(2, sum)) {
                        pairs.push((covers, vec![i, j], sum));
                    }
                }
            }
        }
        if most >= 3 {
            for (covers, terms, sum) in &pairs {
                for &k in &singles {
                    if terms.iter().any(|&t| t >= k) {
                        continue;
                    }
                    let three = covers.and(&self.literals[k].1);
                    if three.any() && three != *covers {
                        let mut t = terms.clone();
                        t.push(k);
                        offer(three, t, price(3, sum + self.literals[k].2));
                    }
                }
            }
        }
        let mut out: Vec<Candidate> = best
            .into_iter()
            .map(|(covers, (terms, cost))| {
                let mut terms: Vec<Term> = terms.into_iter().map(|i| self.literals[i].0.clone()).collect();
                // As the paper writes them: sizes before the way operands are passed.
                terms.sort_by_key(|t| !matches!(t, Term::Size(..)));
                Candidate { terms, covers, cost }
            })
            .collect();
        out.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| a.covers.0.cmp(&b.covers.0)));
        self.candidates = out;
    }

    /// The label that all of `set` have, where they have one.
    fn pure(&self, set: &Bits) -> Option<usize> {
        let mut label = None;
        for i in set.ones() {
            match label {
                None => label = Some(self.labels[i]),
                Some(l) if l != self.labels[i] => return None,
                _ => {}
            }
        }
        label
    }

    fn learn(mut self, records: &[Record]) -> Result<Learned, SweepError> {
        let mut full = Bits::empty(self.items.len());
        for i in 0..self.items.len() {
            full.set(i);
        }
        let mut list: Option<(u32, List)> = None;
        for most in 1..=3 {
            self.build_candidates(most);
            // A longer list of shorter conditions is not always there; a list of pairs is tried before triples.
            if let Some(found) = self.search(&full) {
                let better = match &list {
                    None => true,
                    Some((cost, _)) => found.0 < *cost,
                };
                if better {
                    list = Some(found);
                }
                if most >= 2 {
                    break;
                }
            }
        }
        let Some((_, chosen)) = list else {
            return Err(SweepError::bad(
                "no list of conditions with up to three terms each reproduces every outcome; the first runs that stay \
                 apart are alike in every size and layout that rules know",
            ));
        };
        self.finish(&full, chosen, records)
    }

    /// The cheapest list: conditions with their labels; what is left over has one label.
    fn search(&self, full: &Bits) -> Option<(u32, List)> {
        let mut bound = u32::MAX;
        let mut best: Option<Vec<usize>> = None;
        let mut memo: HashMap<Bits, u32> = HashMap::new();
        let mut path = Vec::new();
        let mut steps = 0usize;
        self.descend(full, 0, &mut path, &mut bound, &mut best, &mut memo, &mut steps);
        let chosen = best?;
        let mut left = full.clone();
        let mut out = Vec::new();
        for c in chosen {
            let c = &self.candidates[c];
            let hit = c.covers.and(&left);
            out.push((c.terms.clone(), self.pure(&hit)?));
            left = left.minus(&c.covers);
        }
        Some((bound, out))
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one search")]
    fn descend(
        &self,
        left: &Bits,
        cost: u32,
        path: &mut Vec<usize>,
        bound: &mut u32,
        best: &mut Option<Vec<usize>>,
        memo: &mut HashMap<Bits, u32>,
        steps: &mut usize,
    ) {
        const MOST_STEPS: usize = 200_000;
        if self.pure(left).is_some() || !left.any() {
            if cost < *bound {
                *bound = cost;
                *best = Some(path.clone());
            }
            return;
        }
        *steps += 1;
        let kinds: HashSet<usize> = left.ones().map(|i| self.labels[i]).collect();
        if *steps > MOST_STEPS
            || cost.saturating_add(1000 * (kinds.len() as u32 - 1)) >= *bound
            || path.len() >= 12
        {
            return;
        }
        if memo.get(left).is_some_and(|&c| c <= cost) {
            return;
        }
        memo.insert(left.clone(), cost);
        // Conditions that decide some of what is left, none of which another decides more cheaply with more.
        let mut options: Vec<(usize, Bits)> = Vec::new();
        for (i, c) in self.candidates.iter().enumerate() {
            if cost + c.cost >= *bound {
                break;
            }
            let hit = c.covers.and(left);
            if !hit.any() || options.iter().any(|(_, h)| hit.within(h)) || self.pure(&hit).is_none() {
                continue;
            }
            options.push((i, hit));
        }
        // Those that decide most come first.
        options.sort_by_key(|(i, h)| (std::cmp::Reverse(h.ones().count()), self.candidates[*i].cost));
        for (i, hit) in options {
            path.push(i);
            let rest = left.minus(&hit);
            self.descend(&rest, cost + self.candidates[i].cost, path, bound, best, memo, steps);
            path.pop();
        }
    }

    /// Whether a list reproduces every item.
    fn reproduces(&self, list: &[(Vec<Term>, usize)]) -> bool {
        self.items.iter().zip(&self.labels).all(|(item, &label)| {
            list.iter()
                .find(|(terms, _)| terms.iter().all(|t| t.holds(&item.situation)))
                .is_some_and(|(_, l)| *l == label)
        })
    }

    fn finish(
        &self,
        full: &Bits,
        mut list: Vec<(Vec<Term>, usize)>,
        records: &[Record],
    ) -> Result<Learned, SweepError> {
        let mut left = full.clone();
        for (terms, _) in &list {
            left = left.minus(&self.covers(terms));
        }
        let rest = self
            .pure(&left)
            .unwrap_or_else(|| self.names.iter().position(|n| n.outcome == Outcome::Ok).unwrap_or(0));
        list.push((Vec::new(), rest));
        // The order in which a machine would act, as far as the items allow it.
        let rank = |rule: &(Vec<Term>, usize)| {
            let about_output = rule.0.iter().any(|t| matches!(t, Term::Size(Size::Out | Size::OutBytes, ..)));
            let outcome = self.names[rule.1].outcome;
            match (about_output, outcome) {
                (true, _) => 0,
                (false, Outcome::Error | Outcome::Crash | Outcome::Timeout) => 1,
                (false, Outcome::Truncated) => 2,
                _ => 3,
            }
        };
        let body = list.len() - 1;
        for _ in 0..body {
            for i in 1..body {
                if rank(&list[i]) < rank(&list[i - 1]) {
                    list.swap(i, i - 1);
                    if !self.reproduces(&list) {
                        list.swap(i, i - 1);
                    }
                }
            }
        }
        let mut undecided = Vec::new();
        let mut unordered = Vec::new();
        for i in 0..body {
            for j in i + 1..body {
                if list[i].1 == list[j].1 {
                    continue;
                }
                let mut moved = list.clone();
                let rule = moved.remove(j);
                moved.insert(i, rule);
                if self.reproduces(&moved) && !contradict(&list[i].0, &list[j].0) {
                    unordered.push((i, j));
                    undecided.push(format!(
                        "which of rules {} and {} comes first: no run has both ({}) and ({})",
                        i + 1,
                        j + 1,
                        Condition(list[i].0.clone()).words(),
                        Condition(list[j].0.clone()).words()
                    ));
                }
            }
        }
        let dtypes: BTreeSet<DType> = self.items.iter().map(|i| i.situation.dtype).collect();
        for i in 0..body {
            for j in i + 1..body {
                if list[i].1 == list[j].1 || unordered.contains(&(i, j)) || contradict(&list[i].0, &list[j].0)
                {
                    continue;
                }
                let both = |d: DType| {
                    self.items.iter().any(|x| {
                        x.situation.dtype == d
                            && list[i].0.iter().chain(&list[j].0).all(|t| t.holds(&x.situation))
                    })
                };
                for &d in dtypes.iter().filter(|&&d| !both(d)) {
                    undecided.push(format!(
                        "which of rules {} and {} decides in {d}: no such run has both ({}) and ({})",
                        i + 1,
                        j + 1,
                        Condition(list[i].0.clone()).words(),
                        Condition(list[j].0.clone()).words()
                    ));
                }
            }
        }
        let mut alternatives = Vec::new();
        for (i, (terms, _)) in list.iter().enumerate() {
            let mut fits: Vec<Condition> = Vec::new();
            for at in 0..terms.len() {
                for (term, _, _) in &self.literals {
                    if terms.contains(term) {
                        continue;
                    }
                    let mut other = list.clone();
                    other[i].0[at] = term.clone();
                    if self.reproduces(&other) {
                        fits.push(Condition(other[i].0.clone()));
                    }
                }
                if let Some(other) = self.gap(&terms[at]) {
                    undecided.push(format!("in rule {}: {other}", i + 1));
                }
            }
            if !fits.is_empty() {
                let shown: Vec<String> = fits.iter().take(4).map(|c| format!("`{c}`")).collect();
                let more =
                    if fits.len() > 4 { format!(" and {} more", fits.len() - 4) } else { String::new() };
                undecided.push(format!("rule {} could as well be {}{more}", i + 1, shown.join(", ")));
            }
            alternatives.push(fits);
        }
        let rules: Vec<Rule> = list
            .into_iter()
            .map(|(terms, label)| Rule {
                when: Condition(terms),
                outcome: self.names[label].outcome,
                extent: self.names[label].extent.clone(),
                reading: String::new(),
            })
            .collect();
        let ranges = Size::ALL
            .into_iter()
            .map(|size| {
                let values = self.items.iter().map(|i| i.situation.size(size));
                (size, values.clone().min().unwrap_or(0), values.max().unwrap_or(0))
            })
            .collect();
        let ways = self.items.iter().map(|i| way(&i.situation)).collect();
        let seen = self.items.iter().map(|i| held(&rules, &i.situation)).collect();
        let mut learned = Learned { rules, alternatives, unordered, undecided, ranges, ways, seen };
        learned.find_readings(records)?;
        Ok(learned)
    }

    fn covers(&self, terms: &[Term]) -> Bits {
        let mut out = Bits::empty(self.items.len());
        for (i, item) in self.items.iter().enumerate() {
            if terms.iter().all(|t| t.holds(&item.situation)) {
                out.set(i);
            }
        }
        out
    }

    /// Where a threshold lies is known to no better than the values around it.
    fn gap(&self, term: &Term) -> Option<String> {
        let Term::Size(size, cmp, at) = term else { return None };
        let values: Vec<u64> = self.items.iter().map(|i| i.situation.size(*size)).collect();
        let beyond = |v: u64| if matches!(cmp, Cmp::Ge | Cmp::Lt) { v >= *at } else { v > *at };
        let below = values.iter().copied().filter(|&v| !beyond(v)).max()?;
        let above = values.iter().copied().filter(|&v| beyond(v)).min()?;
        // With a value on the threshold itself and one next to it in its series nothing is open.
        if below == *at || above == *at {
            return None;
        }
        Some(format!(
            "the threshold of {} lies somewhere from {} to {}",
            size.name(),
            count(below + 1),
            count(above)
        ))
    }
}

/// Whether two conditions can never hold together, as far as their terms show.
fn contradict(a: &[Term], b: &[Term]) -> bool {
    a.iter().any(|x| {
        b.iter().any(|y| match (x, y) {
            (Term::Flag(f, n), Term::Flag(g, m)) => f == g && n != m,
            (Term::DType(d), Term::DType(e)) => d != e,
            (Term::Size(s, c, v), Term::Size(t, d, w)) if s == t => {
                let up = |c: &Cmp| matches!(c, Cmp::Gt | Cmp::Ge);
                (up(c) && !up(d) && v >= w) || (!up(c) && up(d) && w >= v)
            }
            _ => false,
        })
    })
}

/// The roundest threshold between two neighbouring values, and whether it is meant inclusively (`>=`).
fn snap(below: u64, above: u64) -> (u64, bool) {
    // Of [below, above] the number with the most trailing zeros: `below` itself means `>`, any other `>=`.
    let mut best = above;
    let mut zeros = above.trailing_zeros();
    for shift in (0..64).rev() {
        let step = 1u64 << shift;
        let candidate = above & !(step - 1);
        if candidate >= below && candidate > 0 && candidate.trailing_zeros() > zeros {
            best = candidate;
            zeros = candidate.trailing_zeros();
        }
    }
    if best == below { (below, false) } else { (best, true) }
}

/// What a list says about a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// The rule that decides.
    pub rule: usize,
    /// It.
    pub by: &'a Rule,
}

/// The first rule that holds.
pub fn decide<'a>(rules: &'a [Rule], s: &Situation) -> Option<Verdict<'a>> {
    rules.iter().enumerate().find(|(_, r)| r.when.holds(s)).map(|(rule, by)| Verdict { rule, by })
}

/// Which of the terms of a list hold.
fn held(rules: &[Rule], s: &Situation) -> Vec<bool> {
    rules.iter().flat_map(|r| &r.when.0).map(|t| t.holds(s)).collect()
}

/// How operands are passed, and the dtype.
fn way(s: &Situation) -> (Vec<bool>, DType) {
    (Flag::ALL.iter().map(|&f| s.flag(f)).collect(), s.dtype)
}

impl Learned {
    /// Whether the records decide about `s`: operands were passed so, no size lies outside those that were run, some run
    /// stands on the same side of every term of the rules, and no list that the records allow as well says something else.
    pub fn certain(&self, s: &Situation) -> bool {
        let inside = self.ranges.iter().all(|&(size, lo, hi)| (lo..=hi).contains(&s.size(size)));
        if !inside || !self.ways.contains(&way(s)) || !self.seen.contains(&held(&self.rules, s)) {
            return false;
        }
        let outcome = |rules: &[Rule]| decide(rules, s).map(|v| (v.by.outcome, v.by.extent.clone()));
        let here = outcome(&self.rules);
        for (i, others) in self.alternatives.iter().enumerate() {
            for other in others {
                let mut rules = self.rules.clone();
                rules[i].when = other.clone();
                if outcome(&rules) != here {
                    return false;
                }
            }
        }
        for &(i, j) in &self.unordered {
            let mut rules = self.rules.clone();
            let moved = rules.remove(j);
            rules.insert(i, moved);
            if outcome(&rules) != here {
                return false;
            }
        }
        true
    }

    /// The misreading that reproduces every wrong element of every run that a rule decides.
    fn find_readings(&mut self, records: &[Record]) -> Result<(), SweepError> {
        let mut fits: Vec<Option<BTreeSet<String>>> = vec![None; self.rules.len()];
        for r in records {
            if r.calibration() || r.input() != Kind::Random {
                continue;
            }
            let p = r.point()?;
            for (product, tensor) in p.products().iter().zip(["out", "grad_a", "grad_b"]) {
                let s = Situation { product: *product, dtype: p.dtype, version: String::new() };
                let Some(v) = decide(&self.rules, &s) else { continue };
                if !v.by.outcome.silent() {
                    continue;
                }
                let matches = match r.tensors.get(tensor) {
                    Some(t) if t.n_batches_bad > 0 => &t.hyp_match,
                    None if tensor == "out" && r.outcome()?.silent() => &r.hyp_match,
                    _ => continue,
                };
                let whole: BTreeSet<String> =
                    matches.iter().filter(|(_, f)| **f >= 1.0).map(|(n, _)| n.clone()).collect();
                let slot = &mut fits[v.rule];
                *slot = Some(match slot.take() {
                    None => whole,
                    Some(before) => before.intersection(&whole).cloned().collect(),
                });
            }
        }
        for (rule, fit) in self.rules.iter_mut().zip(fits) {
            // The plainest of those that fit. An index that wraps at a smaller count reads the same elements beyond a larger
            // power of two, but would be wrong before it: the count of the extent, else the largest.
            let extent = rule.extent.clone();
            rule.reading = fit
                .and_then(|f| {
                    f.into_iter().min_by_key(|n| {
                        let wrap = Misreading::parse(n).and_then(|m| m.wrap);
                        let named = wrap.is_none_or(|w| extent.contains(&format!("element {} of", count(w))));
                        (n.matches('+').count(), !named, std::cmp::Reverse(wrap))
                    })
                })
                .unwrap_or_default();
        }
        Ok(())
    }
}

/// How a list fares on records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Runs with random inputs that it reproduces, and all of them; forward passes.
    pub random: (usize, usize),
    /// Index-encoded runs.
    pub index: (usize, usize),
    /// Index-encoded runs that a rule says are wrong but whose inputs the misreading leaves unchanged.
    pub index_unchanged: usize,
    /// Backward runs.
    pub backward: (usize, usize),
    /// Runs that each rule decided (their forward product).
    pub decided: Vec<usize>,
    /// The first runs that it does not reproduce, in words.
    pub misses: Vec<String>,
}

impl Score {
    /// Runs reproduced.
    pub fn reproduced(&self) -> usize {
        self.random.0 + self.index.0 + self.backward.0
    }

    /// Adds the score of other records, under rules that follow these.
    pub fn add(&mut self, other: &Score) {
        for (mine, theirs) in [
            (&mut self.random, other.random),
            (&mut self.index, other.index),
            (&mut self.backward, other.backward),
        ] {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        self.index_unchanged += other.index_unchanged;
        self.decided.extend(&other.decided);
        self.misses.extend(other.misses.iter().cloned());
    }

    /// Runs scored.
    pub fn total(&self) -> usize {
        self.random.1 + self.index.1 + self.backward.1
    }
}

/// Applies a list to records: the class of every tensor, the pass in which an exception is raised, and where the record has
/// it the place of the wrong batches.
///
/// # Errors
/// Records that are none.
pub fn apply(rules: &[Rule], records: &[Record]) -> Result<Score, SweepError> {
    let mut score = Score { decided: vec![0; rules.len()], ..Score::default() };
    for r in records {
        let observed = r.outcome()?;
        if r.calibration() || matches!(observed, Outcome::Skipped | Outcome::InputCorrupt) {
            continue;
        }
        let p = r.point()?;
        let (said, fits) = prediction(rules, r, &p, &mut score)?;
        let kind = if p.backward {
            &mut score.backward
        } else if p.kind == Kind::Random {
            &mut score.random
        } else {
            &mut score.index
        };
        kind.1 += 1;
        if fits {
            kind.0 += 1;
        } else if score.misses.len() < 20 {
            score.misses.push(format!(
                "{} {} B={}{}: {} predicted, {} observed",
                p.series(),
                p.kind.name(),
                p.batch,
                if p.offset > 0 { format!(" behind {}", p.offset) } else { String::new() },
                said,
                r.cls
            ));
        }
    }
    Ok(score)
}

/// What the list says about a record, in words, and whether that is what happened.
fn prediction(
    rules: &[Rule],
    r: &Record,
    p: &Point,
    score: &mut Score,
) -> Result<(String, bool), SweepError> {
    let observed = r.outcome()?;
    let version = r.version();
    let tensors = ["out", "grad_a", "grad_b"];
    let classes = [
        r.cls_out.clone().or_else(|| (!p.backward).then(|| r.cls.clone())),
        r.cls_grad_a.clone(),
        r.cls_grad_b.clone(),
    ];
    let mut said = Vec::new();
    let mut fits = true;
    for (i, product) in p.products().iter().enumerate() {
        let s = Situation { product: *product, dtype: p.dtype, version: version.clone() };
        let Some(v) = decide(rules, &s) else { return Ok(("nothing".into(), false)) };
        if i == 0 {
            score.decided[v.rule] += 1;
        }
        let mut outcome = v.by.outcome;
        if outcome.silent() && p.kind != Kind::Random {
            let reading = Misreading::parse(&v.by.reading).filter(|_| !v.by.reading.is_empty());
            if let Some(reading) = reading
                && !judge::changes(p, product, reading, &affected(p))
            {
                outcome = Outcome::Ok;
                score.index_unchanged += 1;
            }
        }
        said.push(outcome.name());
        if matches!(outcome, Outcome::Error | Outcome::Crash | Outcome::Timeout) {
            let stage = if i == 0 { "forward" } else { "backward" };
            let staged = !p.backward || r.stage.as_deref().is_none_or(|s| s == stage);
            return Ok((format!("{} ({stage})", said.join(", ")), observed == outcome && staged));
        }
        let class = classes[i].as_deref().and_then(Outcome::parse);
        // An index-encoded run is never classed truncated.
        let same = match class {
            Some(Outcome::Wrong) if outcome == Outcome::Truncated && p.kind != Kind::Random => true,
            class => class == Some(outcome),
        };
        let placed = match r.tensors.get(tensors[i]) {
            Some(t) if outcome.silent() && p.kind == Kind::Random && !v.by.extent.is_empty() => {
                t.extents.contains(&v.by.extent)
            }
            _ => true,
        };
        fits &= same && placed;
    }
    Ok((said.join(", "), fits))
}

/// Batches in which a misreading shows, whichever it is: the first and the last two.
fn affected(p: &Point) -> Vec<u64> {
    let b = p.batch;
    let mut out = vec![0, 1.min(b - 1), b.saturating_sub(2), b - 1];
    out.dedup();
    out
}

/// Versions whose common runs all ended alike, and the rules of each such group.
pub struct Group {
    /// The versions, in order of appearance.
    pub versions: Vec<String>,
    /// What was learned from their runs.
    pub learned: Learned,
}

/// Learns one list for each group of versions that behave alike in every run they share.
///
/// # Errors
/// As [`learn`].
pub fn learn_by_version(records: &[Record]) -> Result<Vec<Group>, SweepError> {
    let mut by_version: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    for r in records.iter().filter(|r| !r.calibration()) {
        let version = r.version();
        let at = match by_version.iter().position(|(v, _)| *v == version) {
            Some(at) => at,
            None => {
                by_version.push((version, BTreeMap::new()));
                by_version.len() - 1
            }
        };
        let p = r.point()?;
        let key =
            format!("{} {} {} {} {} {:?}", p.series(), p.kind.name(), p.batch, p.offset, p.seed, p.compare);
        let classes = [Some(&r.cls), r.cls_out.as_ref(), r.cls_grad_a.as_ref(), r.cls_grad_b.as_ref()];
        by_version[at].1.insert(key, format!("{classes:?}"));
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, (_, runs)) in by_version.iter().enumerate() {
        let alike = |j: usize| {
            let other = &by_version[j].1;
            let mut common = runs.iter().filter_map(|(k, v)| other.get(k).map(|w| v == w)).peekable();
            common.peek().is_some() && common.all(|same| same)
        };
        match groups.iter().position(|g| g.iter().all(|&j| alike(j))) {
            Some(g) => groups[g].push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
        .into_iter()
        .map(|g| {
            let versions: Vec<String> = g.iter().map(|&i| by_version[i].0.clone()).collect();
            let own: Vec<Record> =
                records.iter().filter(|r| versions.contains(&r.version())).cloned().collect();
            Ok(Group { learned: learn(&own)?, versions })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_snap_to_the_roundest_number_between() {
        let two32 = 1u64 << 32;
        assert_eq!(snap(two32, two32 + 65_536), (two32, false));
        assert_eq!(snap(two32 - 65_536, two32), (two32, true));
        assert_eq!(snap(two32 - 5, two32 + 5), (two32, true));
        assert_eq!(snap(0, 7), (4, true));
        assert_eq!(snap(12, 13), (12, false));
    }
}
