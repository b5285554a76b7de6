//! The rules, one file each, and the list of them.
//!
//! To add one: a file in its family's folder, a `mod` line there, and a row in [`RULES`].

use serde::Serialize;

use crate::site::{Proposals, Site};

mod arithmetic;
mod boundary;
mod indexing;
mod list;
mod precision;
mod semantic;
mod shared;
mod synchronisation;
mod width;

pub use list::RULES;

/// What kind of fault a rule plants: the six families of the checker paper, and the boundary paper's kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Family {
    /// Operator and constant replacements of classical mutation testing.
    Arithmetic,
    /// Which element is read or written: axes, strides, layouts, argument order.
    Indexing,
    /// What is computed: ties, identities, fused order, flags, activations.
    Semantic,
    /// Where it begins and ends: guards, loop bounds, tails, grids, buffer sizes.
    Boundary,
    /// What waits for what: barriers, fences, shuffles, atomics.
    Synchronisation,
    /// How exactly: narrow types, approximate functions, cancellation, constants.
    Precision,
    /// How far: indices, offsets, counts and extents in fewer bits than a large tensor needs. Not in the
    /// checker paper, so scored apart from its six.
    Width,
}

impl Family {
    /// Every family: the paper's six in its order, then width.
    pub const ALL: &[Family] = &[
        Family::Arithmetic,
        Family::Indexing,
        Family::Semantic,
        Family::Boundary,
        Family::Synchronisation,
        Family::Precision,
        Family::Width,
    ];

    /// What a fault of the family gets wrong, as a phrase.
    pub fn what(self) -> &'static str {
        match self {
            Family::Arithmetic => "operator and constant replacements of classical mutation testing",
            Family::Indexing => "which element is read or written: axes, strides, layouts, argument order",
            Family::Semantic => "what is computed: ties, identities, fused order, flags, activations",
            Family::Boundary => "where it begins and ends: guards, loop bounds, tails, grids, buffer sizes",
            Family::Synchronisation => "what waits for what: barriers, fences, shuffles, atomics",
            Family::Precision => "how exactly: narrow types, approximate functions, cancellation, constants",
            Family::Width => {
                "how far: indices, offsets, counts and extents in fewer bits than a large tensor needs"
            }
        }
    }

    /// The family's name as records spell it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Arithmetic => "arithmetic",
            Family::Indexing => "indexing",
            Family::Semantic => "semantic",
            Family::Boundary => "boundary",
            Family::Synchronisation => "synchronisation",
            Family::Precision => "precision",
            Family::Width => "width",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a rule is, for lists and documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// Noun in UpperCamelCase, unique.
    pub id: &'static str,
    /// The fault's family.
    pub family: Family,
    /// Why this fault matters, in one line.
    pub reason: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// A snippet that the rule applies to.
    pub before: &'static str,
    /// Everything that it becomes, in order.
    pub after: &'static [&'static str],
}

/// One way of planting a fault.
pub trait Rule: Sync {
    /// Description, with an example that a test proves.
    fn info(&self) -> &'static RuleInfo;

    /// Kinds of syntax node that the rule wants to see.
    fn kinds(&self) -> &'static [&'static str];

    /// Whether literals of constants at file scope are offered too.
    fn at_file_scope(&self) -> bool {
        false
    }

    /// Sites of one function with an equal key are one fault: only the first is mutated.
    fn key(&self, _at: &Site<'_>) -> Option<String> {
        None
    }

    /// Largest number of mutants in one function. Where there are more sites, an even spread of
    /// them is kept, first and last included: neighbours tell the same about a checker.
    fn most(&self) -> usize;

    /// Proposes changes at one site.
    fn visit(&self, at: &Site<'_>, out: &mut Proposals);
}

/// The rule with this id.
pub fn rule_named(id: &str) -> Option<&'static dyn Rule> {
    RULES.iter().copied().find(|rule| rule.info().id == id)
}
