//! R0: random fuzz. Official values times a magnitude, log-uniform over six decades, at official shapes.
//!
//! Source: the reconstructed fuzzer of "Measuring the Checker", section 5.

use assay_problems::{Kind, Recipe};

use super::{Facts, Rung};

pub(super) const RUNG: Rung = Rung {
    id: "R0",
    name: "random fuzz",
    knows: "nothing",
    published_percent: 21.6,
    published_validity: "107 false kills",
    generate,
};

/// Seeds away from those of `ci-fuzz`.
const FIRST_SEED: u64 = 7001;

fn generate(facts: &Facts<'_>) -> Vec<Recipe> {
    (FIRST_SEED..)
        .take(facts.budget)
        .map(|seed| Recipe::new(Kind::LogUniform(-3.0, 3.0)).with_seed(seed))
        .collect()
}
