//! R3: white box. Up to ten of the mutants with their diffs, and the kernel's own constants.
//!
//! For each mutant shown, its family says which values it needs and the numbers of its line say where: integers near
//! which a shape turns (block sizes, tiles, unroll factors, template arguments) choose legal extents next to a multiple
//! of them, fractions (thresholds, coefficients, eps) choose values around them. Nothing is known of the mutants that
//! are not shown, so that inputs fitted to ten of them may miss the rest.

use std::collections::{BTreeMap, BTreeSet};

use assay_problems::{Kind, Position, Problem, Recipe, legal_extents};

use super::{Facts, Rung, Shown, below_ceiling, ragged};

pub(super) const RUNG: Rung = Rung {
    id: "R3",
    name: "white box",
    knows: "ten mutants with their diffs, the kernel's constants",
    published_percent: 57.3,
    published_validity: "55/56",
    generate,
};

const FIRST_SEED: u64 = 7301;

/// Integers of a text that a shape may turn at, and its fractions.
fn numbers(text: &str) -> (BTreeSet<u64>, Vec<f64>) {
    let (mut whole, mut fractions) = (BTreeSet::new(), Vec::new());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let starts = bytes[i].is_ascii_digit()
            && (i == 0 || !(bytes[i - 1].is_ascii_alphanumeric() || matches!(bytes[i - 1], b'_' | b'.')));
        if !starts {
            i += 1;
            continue;
        }
        let start = i;
        while i < bytes.len()
            && (bytes[i].is_ascii_alphanumeric()
                || bytes[i] == b'.'
                || (matches!(bytes[i], b'-' | b'+') && matches!(bytes[i - 1], b'e' | b'E')))
        {
            i += 1;
        }
        let word = text[start..i].trim_end_matches(['f', 'F', 'u', 'U', 'l', 'L']);
        if word.contains('.') || word.contains(['e', 'E']) && !word.starts_with("0x") {
            fractions.extend(word.parse::<f64>().ok().filter(|v| v.is_finite()));
        } else if let Ok(v) = word.parse::<u64>() {
            whole.insert(v);
        }
    }
    (whole, fractions)
}

/// The lines of a diff that are taken out or put in.
fn changed(diff: &str) -> String {
    let kept = diff.lines().filter(|l| {
        (l.starts_with('-') || l.starts_with('+')) && !l.starts_with("---") && !l.starts_with("+++")
    });
    kept.map(|l| &l[1..]).collect::<Vec<_>>().join("\n")
}

/// A legal shape just beside a multiple of one of these numbers, in as many dims as turn there; the largest such extents.
fn beside(problem: &Problem, constants: &BTreeSet<u64>) -> Option<BTreeMap<String, u64>> {
    let names: BTreeSet<&str> = problem.ragged.iter().flat_map(|s| s.keys().map(String::as_str)).collect();
    let useful: Vec<u64> = constants.iter().copied().filter(|c| (4..=4096).contains(c)).collect();
    let mut dims = BTreeMap::new();
    for name in names {
        let turns = |v: u64| useful.iter().any(|&c| v > c && (v % c == 1 || v % c == c - 1));
        let under = |v: u64| useful.iter().any(|&c| v < c && v + 1 == c);
        let extents = legal_extents(problem, name);
        let best =
            extents.iter().rev().find(|&&v| turns(v)).or_else(|| extents.iter().rev().find(|&&v| under(v)));
        if let Some(&v) = best {
            dims.insert(name.to_owned(), v);
        }
    }
    (!dims.is_empty()).then_some(dims)
}

/// What a mutant of this family at this line asks for, most telling first.
fn answers(facts: &Facts<'_>, shown: &Shown, constants: &BTreeSet<u64>, at: usize) -> Vec<Recipe> {
    let (here, fractions) = numbers(&changed(&shown.diff));
    let shapes = ragged(facts.problem);
    let known = shapes.get(at % shapes.len().max(1)).cloned();
    let odd = beside(facts.problem, &here).or_else(|| beside(facts.problem, constants)).or(known);
    let shaped = |kind: Kind| {
        let r = Recipe::new(kind);
        match &odd {
            Some(dims) => r.with_dims(dims.clone()),
            None => r,
        }
    };
    let around = fractions.iter().find(|v| v.abs() > 1e-12).map(|v| {
        let v = v.abs();
        Recipe::new(Kind::Uniform(-2.0 * v, 2.0 * v))
    });
    let mut out = Vec::new();
    match shown.family.as_str() {
        "boundary" => out.extend([shaped(Kind::Uniform(-2.0, -1.0)), shaped(Kind::Normal(1.0))]),
        "indexing" | "width" => out.extend([shaped(Kind::Index(251)), Recipe::new(Kind::Index(251))]),
        "synchronisation" => out.extend([shaped(Kind::Index(251)), shaped(Kind::Normal(1.0))]),
        "precision" => {
            out.extend(around);
            out.extend([
                Recipe::new(Kind::SameSign(70_000.0)),
                Recipe::new(Kind::Shifted(100.0, 1.0)),
                Recipe::new(Kind::Uniform(-100.0, 100.0)),
            ]);
        }
        "semantic" => {
            out.extend(around);
            out.extend([Recipe::new(Kind::Ties(3)), Recipe::new(Kind::Uniform(-3.0, -0.5))]);
        }
        _ => {
            out.extend(around);
            out.extend([
                Recipe::new(Kind::Normal(2.0)),
                Recipe::new(Kind::Spike(Position::Last, 100.0, None)),
                shaped(Kind::Normal(1.0)),
            ]);
        }
    }
    out
}

fn generate(facts: &Facts<'_>) -> Vec<Recipe> {
    let (constants, _) = numbers(&facts.problem.kernel_source);
    let lists: Vec<Vec<Recipe>> =
        facts.shown.iter().enumerate().map(|(at, s)| answers(facts, s, &constants, at)).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut out: Vec<Recipe> = Vec::new();
    // Each mutant's first wish, then each one's second.
    for round in 0..longest {
        for recipe in lists.iter().filter_map(|l| l.get(round)) {
            let same = |r: &Recipe| r.kind == recipe.kind && r.dims == recipe.dims;
            if out.len() < facts.budget && !out.iter().any(same) {
                out.push(recipe.clone());
            }
        }
    }
    let parameters = facts
        .problem
        .inputs
        .iter()
        .any(|i| i.kind == assay_problems::InputKind::Parameter && i.dtype.is_float());
    out.into_iter()
        .zip(FIRST_SEED..)
        .map(|(r, seed)| {
            let r = below_ceiling(r, &facts.ceilings).with_seed(seed);
            if parameters { r.with_params() } else { r }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_names_and_fractions_from_whole_ones() {
        let (whole, fractions) = numbers("x4[7] < 128u; y = 0.0044715f * f32x2 + 1e-5f; // 64");
        assert_eq!(whole.into_iter().collect::<Vec<_>>(), [7, 64, 128]);
        assert_eq!(fractions, [0.0044715, 1e-5]);
    }

    #[test]
    fn only_changed_lines_of_a_diff_count() {
        let diff =
            "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n a 32\n-  if (i < 64) {\n+  if (i <= 64) {\n b 16\n";
        assert_eq!(numbers(&changed(diff)).0.into_iter().collect::<Vec<_>>(), [64]);
    }
}
