//! Recipes that reach what official inputs leave untouched.
//!
//! [`targeted_recipes`] follows the fault families: boundary faults need ragged extents with tails that are not
//! zero, semantic faults need signs, ties and magnitudes that tell operators apart, precision faults need
//! cancellation and range, indexing faults need values that tell where they came from. [`search_recipes`] goes on
//! from there at random. Source of the families and of the idea of targeted inputs: the checker study named in
//! `SOURCES.md`; the choice of values is ours.
//!
//! Nothing here looks at a mutant: the lists depend on the problem alone.

use std::collections::{BTreeMap, BTreeSet};

use assay_tensor::numel;
use assay_tensor::philox::Stream;

use crate::problem::{Extents, InputKind, Problem};
use crate::recipe::{Kind, Position, Recipe};

/// Recipes of the list at most, beside those of [`OFFICIAL`].
const MOST: usize = 20;
/// Ragged shapes among them at most.
const MOST_RAGGED: usize = 5;
/// Official values at other magnitudes: parameters as initialised, which `eps` and thresholds are made for. Protocols ask
/// them too, so that they cost an audit nothing.
const OFFICIAL: [(&str, &str); 3] = [
    ("official*0.01#0", "official values near zero: eps, and what is lost beside it"),
    ("official*-1#0", "official values with the other sign: the half that official inputs never visit"),
    ("loguniform(-3,3)#2", "official values at another magnitude: limits of half precision show"),
];
/// Seeds of targeted recipes begin here, away from official ones.
const FIRST_SEED: u64 = 101;

/// What an operator is sensitive to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Softmax,
    Norm,
    Argmax,
    Max,
    Scan,
    Sum,
    Product,
    Activation,
}

fn families(p: &Problem) -> Vec<Family> {
    let own = p.reference.operators();
    let names = p.operators.iter().map(String::as_str).chain(own);
    let mut out = Vec::new();
    for name in names {
        let f = if name.contains("softmax") || name.contains("softmin") || name.contains("logsumexp") {
            Family::Softmax
        } else if name.contains("norm") || name == "sqrt" || name == "rsqrt" || name == "var" || name == "std"
        {
            Family::Norm
        } else if name.starts_with("arg") {
            Family::Argmax
        } else if name.contains("max_pool") || matches!(name, "max" | "min" | "amax" | "amin") {
            Family::Max
        } else if name.starts_with("cum") {
            Family::Scan
        } else if matches!(name, "sum" | "mean") || name.contains("avg_pool") {
            Family::Sum
        } else if ["matmul", "mm", "linear", "conv", "einsum", "addmm"].iter().any(|k| name.contains(k)) {
            Family::Product
        } else if !matches!(name, "+" | "-" | "*" | "/" | "**" | "add" | "mul" | "sub" | "div" | "pow") {
            Family::Activation
        } else {
            continue;
        };
        if !out.contains(&f) {
            out.push(f);
        }
    }
    out
}

/// The dim that the reference reduces over, where it writes `dim=N`.
fn reduced_dim(p: &Problem) -> Option<u32> {
    let (_, rest) = p.reference_text.split_once("dim=")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Kinds for a family, the most telling first.
fn kinds(f: Family, dim: Option<u32>) -> Vec<(Kind, &'static str)> {
    use Kind::{
        Alternating, Constant, Index, Normal, Outlier, Ramp, SameSign, Shifted, Sparse, Spike, Ties, Tiny,
        Uniform,
    };
    use Position::{First, Last, Mid};
    match f {
        Family::Softmax => vec![
            (Uniform(-100.0, 100.0), "large magnitudes: exp without the maximum subtracted overflows"),
            (Spike(Last, 20.0, dim), "a dominating last element: a lost tail changes every output"),
            (Spike(First, 20.0, dim), "a dominating first element: a skipped start changes every output"),
            (Normal(3.0), "outputs above the tolerance: sums and scales show"),
            (Shifted(-200.0, 2.0), "all very negative: a maximum that starts at zero underflows the sum"),
            (Spike(Mid, 200.0, dim), "one exponent far above the rest: rescaling of a running sum shows"),
        ],
        Family::Norm => vec![
            (Tiny(0.003), "values whose square is below eps: eps and its place decide the output"),
            (Shifted(10.0, 0.5), "a mean far above the spread: wrong moments and one-pass variance show"),
            (Constant(0.5), "zero variance: only eps keeps the division finite"),
            (Outlier(0.01, 100.0), "outliers: the moments depend on few elements"),
            (SameSign(300.0), "squares beyond half precision's range"),
        ],
        Family::Argmax => vec![
            (Ties(2), "ties everywhere: the first index must win"),
            (Constant(1.0), "one tie over the whole row: index 0 must win"),
            (Uniform(-3.0, -1.0), "all negative: a maximum that starts at zero never moves"),
            (Spike(Last, 10.0, dim), "the maximum at the last position"),
            (Spike(First, 10.0, dim), "the maximum at the first position"),
            (Ties(7), "ties among a few levels"),
            (Ramp, "rising along every axis: the last index must win"),
        ],
        Family::Max => vec![
            (Uniform(-3.0, -1.0), "all negative: padding or a start of zero wins over real values"),
            (Spike(Last, 10.0, None), "the maximum at the last element of each row"),
            (Spike(First, 10.0, None), "the maximum at the first element of each row"),
            (Ties(3), "ties: equal values within one window"),
            (Ramp, "rising along every axis: the window's far corner wins"),
        ],
        Family::Scan => vec![
            (Alternating(1.0), "alternating signs: order and carries show, magnitudes stay small"),
            (Spike(First, 100.0, dim), "a large first element: a wrong start shifts the whole row"),
            (Spike(Last, 100.0, dim), "a large last element: inclusive and exclusive scans differ"),
            (Ramp, "small neighbours: a carry from the wrong block shows"),
            (Constant(1.0), "counting: every output is its own position"),
        ],
        Family::Sum => vec![
            (Alternating(1.0), "alternating signs: a dropped term is not lost among its neighbours"),
            (Spike(Last, 1000.0, dim), "a large last term: a lost tail shows"),
            (Spike(First, 1000.0, dim), "a large first term: a skipped start shows"),
            (Sparse(0.01), "few terms: each is most of its sum"),
            (SameSign(300.0), "sums beyond half precision's range"),
        ],
        Family::Product => vec![
            (SameSign(100.0), "sums beyond half precision's range"),
            (Outlier(0.01, 30.0), "outliers: an element read twice or not at all shows"),
            (Spike(First, 100.0, None), "a large first term: a skipped start shows"),
            (Spike(Last, 100.0, None), "a large last term: a lost tail of the reduction shows"),
            (Index(251), "index-encoded: an element from the wrong place shows"),
        ],
        Family::Activation => vec![
            (Uniform(-6.0, 6.0), "both sides of every knee: clamps, slopes and thresholds show"),
            (SameSign(70000.0), "values beyond half precision's range"),
            (Uniform(-3.0, -0.5), "all negative: the half that official inputs never visit"),
            (Uniform(-100.0, 100.0), "large magnitudes: saturation and overflow"),
            (Tiny(0.05), "around zero: the slope at the origin"),
            (Alternating(2.0), "signs that alternate within a vector load"),
        ],
    }
}

/// Eleven to 23 deterministic recipes that suit the problem's operators, most telling first, each with the
/// reason why.
pub fn targeted_recipes(p: &Problem) -> Vec<(Recipe, &'static str)> {
    let dim = reduced_dim(p);
    let parameters =
        p.inputs.iter().any(|i| i.kind == crate::problem::InputKind::Parameter && i.dtype.is_float());
    let with = |r: Recipe| if parameters { r.with_params() } else { r };
    let mut out: Vec<(Recipe, &'static str)> = Vec::new();
    let push = |out: &mut Vec<(Recipe, &'static str)>, r: Recipe, why| {
        let same = |(other, _): &(Recipe, _)| {
            other.kind == r.kind && other.dims == r.dims && other.params == r.params
        };
        if out.len() < MOST && !out.iter().any(same) {
            let seed = FIRST_SEED + out.len() as u64;
            out.push((r.with_seed(seed), why));
        }
    };
    // Largest first: a shape of ones sees least.
    let mut ragged: Vec<&BTreeMap<String, u64>> = p.ragged.iter().collect();
    ragged.sort_by_key(|s| std::cmp::Reverse(elements(p, s).unwrap_or(0)));
    // The smallest is kept even where there are more than fit.
    if ragged.len() > MOST_RAGGED {
        let last = ragged.len() - 1;
        ragged.drain(MOST_RAGGED - 1..last);
    }
    let shape = |i: usize| ragged.get(i).map(|s| (*s).clone());
    let ragged_kinds = [
        (Kind::Normal(1.0), "ragged extents, sign-mixed: guards, tails and rounded-down grids show"),
        (Kind::Index(251), "ragged extents, index-encoded: an element from the wrong place shows"),
        (
            Kind::Uniform(-2.0, -1.0),
            "ragged extents, all negative: what stands in for a missing element shows",
        ),
        (Kind::Ties(5), "ragged extents, few levels: ties across a tail"),
        (Kind::Uniform(-2.0, -1.0), "smallest extents: loops that run once or not at all"),
    ];
    if let Some(s) = shape(0) {
        let (kind, why) = ragged_kinds[0];
        push(&mut out, with(Recipe::new(kind).with_dims(s.clone())), why);
        push(
            &mut out,
            with(Recipe::new(Kind::Mixed(0)).with_dims(s)),
            "ragged extents, another kind of values in each sample: many faults with one input",
        );
    }
    push(&mut out, with(Recipe::new(Kind::Normal(1.0))), "sign-mixed values of moderate magnitude");
    push(
        &mut out,
        Recipe::new(Kind::Mixed(0)),
        "another kind of values in each sample, parameters as initialised",
    );
    let lists: Vec<Vec<(Kind, &'static str)>> = families(p).into_iter().map(|f| kinds(f, dim)).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    // Family by family in turns, so that none is cut off by the limit; ragged shapes in between.
    for round in 0..longest.max(MOST_RAGGED) {
        for list in &lists {
            if let Some((kind, why)) = list.get(round) {
                push(&mut out, with(Recipe::new(*kind)), why);
            }
        }
        let next = round + 1;
        if let (Some(s), Some((kind, why))) = (shape(next), ragged_kinds.get(next)) {
            push(&mut out, with(Recipe::new(*kind).with_dims(s.clone())), why);
            push(&mut out, with(Recipe::new(Kind::Normal(1.0)).with_dims(s)), ragged_kinds[0].1);
        }
    }
    for (kind, why) in [
        (Kind::Index(251), "index-encoded: an element from the wrong place shows"),
        (Kind::Constant(0.5), "constant: weights of every term are equal"),
        (Kind::Uniform(-2.0, -1.0), "all negative"),
        (Kind::Ties(5), "few levels"),
        (Kind::Outlier(0.01, 30.0), "outliers"),
        (Kind::Alternating(1.0), "alternating signs"),
        (Kind::Sparse(0.05), "mostly zero"),
    ] {
        if out.len() < 10 {
            push(&mut out, with(Recipe::new(kind)), why);
        }
    }
    for (text, why) in OFFICIAL {
        // A test excludes that one of them is no recipe.
        out.extend(text.parse().ok().map(|r: Recipe| (r, why)));
    }
    out
}

/// Whether `+params` would change anything.
fn has_parameters(p: &Problem) -> bool {
    p.inputs.iter().any(|i| i.kind == InputKind::Parameter && i.dtype.is_float())
}

/// Elements of all inputs at these dims.
fn elements(p: &Problem, dims: &BTreeMap<String, u64>) -> Option<u64> {
    let dims = p.dims_with(dims, Extents::Desk).ok()?;
    let mut total = 0u64;
    for i in &p.inputs {
        total = total.checked_add(numel(&p.shape_of(i, &dims).ok()?)?)?;
    }
    Some(total)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Extents to try for a dim, rising: around warps, blocks and vectors, primes, 1, and around what the problem names; none
/// for a dim that no ragged shape names and that does not exist.
pub fn legal_extents(p: &Problem, name: &str) -> Vec<u64> {
    let Some(dim) = p.dims.iter().find(|d| d.name == name) else { return Vec::new() };
    let named: Vec<u64> = p.ragged.iter().filter_map(|s| s.get(name).copied()).collect();
    let most = named.iter().copied().chain([dim.desk]).max().unwrap_or(1);
    // Where all named extents share a divisor, the problem needs it (groups, vectors without tails).
    let step = named.iter().copied().fold(dim.desk, gcd).max(1);
    let mut out: BTreeSet<u64> = named.into_iter().chain([dim.desk, dim.desk.saturating_sub(1)]).collect();
    for v in [1, 2, 3, 5, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093] {
        out.insert(v);
    }
    for base in [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096] {
        out.extend([base - 1, base, base + 1]);
    }
    out.into_iter().filter(|v| *v >= 1 && *v <= most && v % step == 0).collect()
}

/// `budget` recipes for a witness search, in a fixed order: kinds that the targeted list had no room for, ragged
/// shapes under several kinds, then random legal extents, kinds, magnitudes and seeds. Fewer where the problem leaves no room.
pub fn search_recipes(p: &Problem, budget: usize) -> Vec<Recipe> {
    let names: BTreeSet<&str> = p.ragged.iter().flat_map(|s| s.keys().map(String::as_str)).collect();
    let choices: Vec<(&str, Vec<u64>)> = names.into_iter().map(|n| (n, legal_extents(p, n))).collect();
    let none = BTreeMap::new();
    let desk = elements(p, &none).unwrap_or(0);
    let limit = p.ragged.iter().filter_map(|s| elements(p, s)).fold(desk, u64::max);
    let dim = reduced_dim(p);
    let parameters = has_parameters(p);
    let mut pool: Vec<Kind> = vec![
        Kind::Official,
        Kind::Normal(1.0),
        Kind::Uniform(-2.0, -1.0),
        Kind::Ties(3),
        Kind::Index(251),
        Kind::Outlier(0.01, 100.0),
        Kind::Sparse(0.05),
        Kind::Alternating(1.0),
    ];
    for f in families(p) {
        pool.extend(kinds(f, dim).into_iter().map(|(k, _)| k));
    }
    let mut distinct: Vec<Kind> = Vec::new();
    for k in pool {
        if !distinct.contains(&k) {
            distinct.push(k);
        }
    }
    let mut out = Vec::new();
    let mut seed = 1000u64;
    let mut next = |out: &mut Vec<Recipe>, r: Recipe| {
        seed += 1;
        let r = r.with_seed(seed);
        out.push(if parameters { r.with_params() } else { r });
    };
    // What the targeted list had no room for.
    let targeted = targeted_recipes(p);
    for kind in &distinct {
        let known = |(r, _): &(Recipe, &str)| r.kind == *kind && r.dims.is_empty();
        if *kind != Kind::Official && !targeted.iter().any(known) {
            next(&mut out, Recipe::new(*kind));
        }
    }
    for kind in [Kind::Normal(1.0), Kind::Uniform(-2.0, -1.0), Kind::Ties(3)] {
        for s in &p.ragged {
            let known = |(r, _): &(Recipe, &str)| r.kind == kind && r.dims == *s;
            if !targeted.iter().any(known) {
                next(&mut out, Recipe::new(kind).with_dims(s.clone()));
            }
        }
    }
    // A fixed stream of choices: the n-th recipe is the same whatever the budget.
    let draw = Stream::new(0x5EA2_C4ED, u64::from(p.level) << 32 | u64::from(p.id));
    let mut n = 0u64;
    let mut misses = 0;
    while out.len() < budget && misses < 1000 {
        n += 1;
        let pick = |slot: u64, len: usize| {
            usize::try_from(draw.below_at(n * 1024 + slot, len.max(1) as u64)).unwrap_or(0)
        };
        let mut dims = BTreeMap::new();
        if !n.is_multiple_of(3) {
            for (slot, (name, values)) in (8u64..512).zip(&choices) {
                // Half of the dims keep their desk extent, so that single odd extents are tried too.
                if pick(slot + 512, 2) == 0 && !values.is_empty() {
                    dims.insert((*name).to_owned(), values[pick(slot, values.len())]);
                }
            }
        }
        let legal = elements(p, &dims).is_some_and(|e| e > 0 && e <= limit)
            && p.dims_with(&dims, Extents::Desk).is_ok_and(|d| d.values().all(|v| *v > 0));
        if !legal {
            misses += 1;
            continue;
        }
        let kind = distinct[pick(0, distinct.len())];
        let mut r = Recipe::new(kind).with_dims(dims).with_seed(1000 + seed + n);
        r.params = parameters && pick(1, 2) == 0;
        // Log-uniform over four decades, on a grid so that the text stays short.
        if pick(2, 3) == 0 {
            r.scale = [0.01, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0, 100.0][pick(3, 8)];
        }
        if pick(4, 8) == 0 {
            r.scale = -r.scale;
        }
        out.push(r);
    }
    out.truncate(budget);
    out
}
