//! CUDA source to mutants: the small faults with which a correctness checker is measured.
//!
//! **In:** the text of a CUDA file (kernels, device functions, and a host function `launch` or
//! any other that launches kernels). **Out:** [`Mutant`]s in a fixed order, each one or more text
//! splices with a name, a family and a diff; [`RULES`] describes the rules themselves.
//!
//! The source is parsed by tree-sitter's CUDA grammar and never reprinted: a mutant is the
//! original text with a few bytes changed, and every line keeps its number. Nothing here compiles
//! or knows PTX; a mutant may well not compile, or do the same as the original, and later stages
//! count that.
//!
//! Sources of the rules: the checker paper (*Measuring the Checker: Mutation Analysis for
//! GPU-Kernel Benchmark Oracles*), the boundary paper (*Silent Failures Beyond the 32-Bit Index
//! Range*), the MUTGPU operators, and kinds of fault in public bug reports. Each rule says which.
//!
//! **Missed:** code inside macros (`#define F(x) ...`), template argument lists, inline assembly,
//! array sizes other than the shared arrays', and regions that the grammar cannot parse. Types
//! are guessed per file: through `auto` of a user type, or a template parameter, rules that need
//! a type stay silent. Functions without `__global__` or `__device__` are mutated only where they
//! are `constexpr`, named `launch`, or contain a launch.

mod edit;
mod engine;
mod error;
mod mutant;
pub mod rules;
mod site;
mod source;
mod syntax;
mod types;

pub use edit::{Edit, apply};
pub use engine::{mutants_by, mutants_in};
pub use error::MutateError;
pub use mutant::{Mutant, MutantRecord};
pub use rules::{Family, RULES, Rule, RuleInfo, rule_named};
pub use site::{Proposals, Site};
