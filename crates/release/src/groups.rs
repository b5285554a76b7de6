//! Input recipes by what they do: the kind of values, and whether the shape is the problem's own.

use std::collections::BTreeMap;

use assay_problems::{Kind, Recipe};

/// A group of input recipes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The kind's word, as recipes spell it; `official*` for scaled official draws.
    pub word: String,
    /// Has it the shapes of the problem's own inputs?
    pub own_shape: bool,
}

impl Group {
    /// The group of a recipe's text.
    pub fn of(recipe: &str) -> Group {
        let word = match Recipe::parse(recipe) {
            Ok(r) if r.kind == Kind::Official && r.scale != 1.0 => "official*".to_owned(),
            Ok(r) => {
                let kind = r.kind.to_string();
                kind.split('(').next().unwrap_or_default().to_owned()
            }
            // A run of another version may spell kinds that this one does not know.
            Err(_) => recipe.split(['(', '*', '+', '@', '#']).next().unwrap_or_default().to_owned(),
        };
        Group { word, own_shape: !recipe.contains('@') }
    }

    /// For tables.
    pub fn label(&self) -> String {
        let at = if self.own_shape { "own shape" } else { "other shapes" };
        format!("`{}`, {at}", assay_report::text::clean(&self.word).replace('`', "'"))
    }

    /// What its values are.
    pub fn what(&self) -> &'static str {
        match self.word.as_str() {
            "official" => "the problem's own draws",
            "official*" => "the problem's own draws times a constant",
            "rand" => "uniform in [0, 1)",
            "normal" => "normal around 0",
            "uniform" => "uniform in a range, often of one sign",
            "constant" => "one value everywhere",
            "ties" => "few distinct values, so that maxima repeat",
            "outlier" => "normal with a few values far out",
            "tiny" => "close to 0",
            "index" => "every element tells where it came from",
            "sparse" => "mostly zeros",
            "samesign" => "one sign and large, so that nothing cancels",
            "ramp" => "rising along every axis",
            "loguniform" => "the problem's own draws at a random magnitude",
            "alternating" => "large, the sign alternating",
            "spike" => "one large value in every row",
            "shifted" => "normal around a mean far from 0",
            "mixed" => "another kind in every sample",
            _ => "a kind that this version does not know",
        }
    }
}

/// Groups by number: what kills a mutant is a set of them.
#[derive(Default)]
pub struct Groups {
    numbers: BTreeMap<Group, u32>,
}

/// A set of groups; those beyond the 63rd share a place, which runs of this version do not reach.
pub type GroupSet = u64;

impl Groups {
    /// The number of a recipe's group.
    pub fn number(&mut self, recipe: &str) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).min(63);
        *self.numbers.entry(Group::of(recipe)).or_insert(next)
    }

    /// The groups with their numbers, by word, own shapes last.
    pub fn all(&self) -> impl Iterator<Item = (&Group, u32)> {
        self.numbers.iter().map(|(g, &n)| (g, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_recipe_has_a_phrase() {
        for kind in assay_problems::kind_names() {
            let group = Group { word: kind.to_owned(), ..Group::of("official#0") };
            assert!(!group.what().contains("does not know"), "{kind}");
        }
    }

    #[test]
    fn recipes_are_grouped_by_kind_scale_and_shape() {
        for (recipe, label) in [
            ("official#3", "`official`, own shape"),
            ("official*-1#0", "`official*`, own shape"),
            ("normal(1)+params@B=2,D=31#1004", "`normal`, other shapes"),
            ("spike(mid,200,1)#112", "`spike`, own shape"),
            ("unheard(3)@N=1#1", "`unheard`, other shapes"),
        ] {
            assert_eq!(Group::of(recipe).label(), label);
        }
    }
}
