//! R2: the taxonomy and the ceiling. What each fault family needs, by the operators of the problem
//! ([`targeted_recipes`]), at magnitudes that stay valid.

use assay_problems::{Recipe, targeted_recipes};

use super::{Facts, Rung, below_ceiling};

pub(super) const RUNG: Rung = Rung {
    id: "R2",
    name: "taxonomy and ceiling",
    knows: "fault families, operators, safe magnitudes",
    published_percent: 61.0,
    published_validity: "94% (accumulated)",
    generate,
};

fn generate(facts: &Facts<'_>) -> Vec<Recipe> {
    targeted_recipes(facts.problem)
        .into_iter()
        .map(|(r, _)| below_ceiling(r, &facts.ceilings))
        .take(facts.budget)
        .collect()
}
