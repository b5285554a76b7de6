//! Scores: what a protocol catches, what a suite could catch, and how sure that is.
//!
//! Arrives: [`KillMatrix`] data of each problem (mutants, inputs, thresholds), [`Protocol`]s, the rule list. Leaves:
//! [`ProtocolScore`]s, [`Cover`]s, survivors with their mechanism, and one [`Summary`], which is the JSON of `audit`.
//! Nothing here executes a kernel, reads a clock or touches a file; the same data give the same bytes.
//!
//! Conventions:
//! - a *kill* is a rejection against the official reference on an input valid at the protocol's own tolerance;
//!   a rejection on an invalid input is counted as invalid;
//! - the denominator is the witnessed mutants of refereeable problems, whatever the protocol;
//! - percentages are rounded as [`percent`] says; counts stand beside them.
//!
//! What it misses: a protocol whose atol and rtol differ is decided from the stored `atol = rtol` threshold only
//! where that suffices; else it needs a scaled threshold in the cell, and is counted as undecided without one.
//!
//! Source of the definitions: "Measuring the Checker: Mutation Analysis for GPU-Kernel Benchmark Oracles".

mod bits;
mod compare;
mod cover;
mod decompose;
mod error;
mod graded;
mod left_out;
mod matrix;
mod protocol;
mod published;
mod score;
mod stats;
mod suite;
mod summarise;
mod summary;
mod survivors;

pub use compare::{AuditComparison, MutantRef, ProtocolChange, Side, compare_audits};
pub use cover::{BestCover, Cover, CoverOptions, best_cover, greedy_cover, minimum_inputs, suite_cover};
pub use decompose::{DecompositionRow, decompose};
pub use error::MeasureError;
pub use graded::{
    BlindBandRow, BlindCurve, BlindPoint, RefereeRow, StrayRow, blind_bands, blind_curve, referee,
};
pub use left_out::{LeftOut, LeftOutRow, left_out};
pub use matrix::{
    CheckVerdict, CheckerRuns, ControlRun, Filtered, Graded, InputRow, KillMatrix, MatrixCell, MutantRow,
    Origin, REFEREE_TOLERANCES, ReferenceRow, ScaledValue, Unrefereeable, Unwitnessed, Violations, majority,
};
pub use protocol::{
    BUILTIN, CHECKER_FOLDER, CHECKER_SECONDS, GENERATOR_SECONDS, LADDER_BUDGET, LADDER_PROBLEMS,
    MOST_CHECKER_SECONDS, PROTOCOL_FILES, Protocol, PublishedDetection, Tolerance, builtin, check_checker,
    check_recipe_text,
};
pub use published::{
    Published, PublishedBlindBand, PublishedBlindBands, PublishedBudget, PublishedDecomposition,
    PublishedFamilies, PublishedFamily, PublishedOfficial, PublishedPipeline, PublishedProtocol,
    PublishedProtocols, PublishedSuites, published,
};
pub use score::{
    FAMILIES, FamilyScore, ProblemScore, ProtocolScore, RuleInfo, RuleScore, Scope, family_rank,
    family_scores, miss_patterns, rule_scores, score,
};
pub use stats::{Band, Distribution, bootstrap, distribution, percent};
pub use suite::{
    BUDGET_CURVE, BUDGETS, BudgetScore, CurveRow, Half, Suite, budget_curve, budget_scores, half_of,
    shipped_protocol, suites,
};
pub use summarise::{FailedBaseline, SummaryInput, own_caveats, summarise};
pub use summary::{
    Environment, FamilyRow, MechanismRow, MissPattern, Pipeline, ProblemRow, ProtocolRow, RuleRow, Sanitizer,
    SanitizerFamily, Statistics, SuiteRow, Summary, SurvivorRow, Timing, Undetected, UndetectedRow,
    UnwitnessedRow, WidthSummary, WorstProblem,
};
pub use survivors::{Mechanism, Survivor, classify, most_surprising, survivors};
