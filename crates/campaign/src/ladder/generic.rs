//! R1: generic targeted. What anyone tries who is told that tests may miss subtle bugs: other signs, other magnitudes,
//! constants, outliers, odd shapes. The list is the same for every problem but for its legal shapes; it knows neither
//! operators nor fault families nor ceilings.

use assay_problems::{Kind, Recipe};

use super::{Facts, Rung, ragged};

pub(super) const RUNG: Rung = Rung {
    id: "R1",
    name: "generic targeted",
    knows: "that tests may miss subtle bugs",
    published_percent: 42.9,
    published_validity: "60/60",
    generate,
};

const FIRST_SEED: u64 = 7101;

fn generate(facts: &Facts<'_>) -> Vec<Recipe> {
    let shapes = ragged(facts.problem);
    let odd = |kind: Kind, at: usize| shapes.get(at).map(|s| Recipe::new(kind).with_dims(s.clone()));
    let list = [
        Some(Recipe::new(Kind::Normal(1.0))),
        odd(Kind::Normal(1.0), 0),
        Some(Recipe::new(Kind::Normal(100.0))),
        Some(Recipe::new(Kind::Constant(0.0))),
        odd(Kind::Normal(1.0), shapes.len().saturating_sub(1)),
        Some(Recipe::new(Kind::Outlier(0.01, 1000.0))),
        Some(Recipe::new(Kind::Constant(1.0))),
        Some(Recipe::new(Kind::Tiny(0.001))),
        Some(Recipe::new(Kind::Uniform(-1.0, 1.0)).with_params()),
        odd(Kind::Uniform(-1.0, 1.0), 1),
        Some(Recipe::new(Kind::Normal(1000.0))),
    ];
    list.into_iter()
        .flatten()
        .zip(FIRST_SEED..)
        .map(|(r, seed)| r.with_seed(seed))
        .take(facts.budget)
        .collect()
}
