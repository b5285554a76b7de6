//! The JSON of `audit`, which is also `summary.json`. Keys stand in this order; nothing but `timing` and
//! `environment` differs between two runs of the same audit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Band, BlindBandRow, CurveRow, DecompositionRow, Distribution, LeftOut, Mechanism, RefereeRow, Unwitnessed,
};

/// What the run ran on; filled in by the caller.
pub type Environment = serde_json::Map<String, serde_json::Value>;

/// The whole summary. Readers outside may meet more keys in later versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// From problems to witnessed mutants, over every family.
    pub pipeline: Pipeline,
    /// Misses of `headline_protocol` by family; every family, `width` included.
    pub families: Vec<FamilyRow>,
    /// Misses of `headline_protocol` by rule.
    pub rules: Vec<RuleRow>,
    /// The protocols, over the checker paper's six families.
    pub protocols: Vec<ProtocolRow>,
    /// Greedy suites by budget, over the six families, at the checker paper's tolerance.
    pub suites: Vec<SuiteRow>,
    /// What only the device's findings see.
    pub sanitizer: Sanitizer,
    /// Times and rates.
    pub timing: Timing,
    /// Versions and machine.
    pub environment: Environment,
    /// The first protocol: the one of the headline, of `families`, `rules`, `survivors` and `statistics`.
    pub headline_protocol: String,
    /// The official check of `sanitizer`: `kernelbench-2025` where it was scored, else the first protocol.
    pub official_protocol: String,
    /// Each problem.
    pub problems: Vec<ProblemRow>,
    /// Where the headline protocol loses the largest share, and why.
    pub worst_problem: Option<WorstProblem>,
    /// The ten most surprising survivors of the headline protocol.
    pub survivors: Vec<SurvivorRow>,
    /// Why its survivors survive.
    pub mechanisms: Vec<MechanismRow>,
    /// Why mutants have no witness, over the six families and over `width`.
    #[serde(default)]
    pub unwitnessed: Vec<UnwitnessedRow>,
    /// Every witnessed mutant that the strongest protocols (those of targeted inputs and selected suites) miss.
    #[serde(default)]
    pub undetected: Vec<Undetected>,
    /// How many witnessed mutants each set of protocols misses.
    pub miss_patterns: Vec<MissPattern>,
    /// The sanitizer as a protocol, by family.
    #[serde(default)]
    pub sanitizer_families: Vec<SanitizerFamily>,
    /// Greedy suites beside the best possible ones, by budget.
    #[serde(default)]
    pub budget_curve: Vec<CurveRow>,
    /// Suites on what they were not selected on: a rule left out, a problem left out.
    #[serde(default)]
    pub left_out: LeftOut,
    /// How much of each protocol's gain over `official_protocol` is its inputs', and how much its tolerance's.
    #[serde(default)]
    pub decomposition: Vec<DecompositionRow>,
    /// The largest relative error that each problem's official inputs let through at the official protocol's tolerance,
    /// widest first.
    #[serde(default)]
    pub blind_bands: Vec<BlindBandRow>,
    /// Where the float32 reference fails its own float64 evaluation, by tolerance.
    #[serde(default)]
    pub referee: Vec<RefereeRow>,
    /// Distributions, bands and minimum inputs.
    pub statistics: Statistics,
    /// The `width` family's own protocols and suites, where it has mutants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<WidthSummary>,
    /// What a reader must know to read the figures right.
    pub caveats: Vec<String>,
}

/// From problems to witnessed mutants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Problems tried, those whose baseline failed included.
    pub problems: u64,
    /// Problems whose baseline failed; nothing else of them is counted.
    pub baselines_failed: u64,
    /// Mutants generated.
    pub generated: u64,
    /// Refused by the compiler.
    pub noncompiling: u64,
    /// With another mutant's image.
    pub duplicate_image: u64,
    /// With the original's image.
    pub equivalent: u64,
    /// Crash or exhaust every evaluation; part of `distinct`.
    pub quarantined: u64,
    /// generated - noncompiling - duplicate_image - equivalent.
    pub distinct: u64,
    /// With a witness, in refereeable problems.
    pub witnessed: u64,
    /// With a witness only under another schedule; outside the denominator.
    pub schedule_witnessed: u64,
    /// Problems that cannot be refereed: reported, not scored.
    pub unrefereeable: u64,
}

/// One family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyRow {
    /// The family.
    pub family: String,
    /// Its rules.
    pub rules: u64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Missed by the headline protocol.
    pub missed: u64,
    /// The same in percent of the witnessed.
    pub missed_percent: Option<f64>,
    /// What the checker paper published for the official check; only where that is the headline protocol.
    pub published_missed_percent: Option<f64>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleRow {
    /// Its id.
    pub id: String,
    /// Its family.
    pub family: String,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Missed by the headline protocol.
    pub missed: u64,
}

/// One protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolRow {
    /// Its name.
    pub name: String,
    /// Inputs asked of a problem, at most.
    pub inputs: u64,
    /// Witnessed mutants detected.
    pub detected: u64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Rejections of correct implementations that the validity gate did not use.
    pub false_kills: u64,
    /// Runs of them that came to a verdict.
    pub correct_runs: u64,
    /// Evaluations unsupported.
    pub unsupported: u64,
    /// Evaluations exhausted.
    pub exhausted: u64,
    /// Detected, in percent.
    pub detected_percent: Option<f64>,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Median number of inputs asked of a problem with witnessed mutants (the lower of two).
    pub inputs_median: u64,
    /// (problem, input) pairs with a false kill.
    pub false_kill_inputs: u64,
    /// (problem, input) pairs not valid at its tolerance.
    pub invalid_inputs: u64,
    /// Rejections of mutants on those: no kills.
    pub invalid_rejections: u64,
    /// Evaluations that stored thresholds do not decide.
    pub undecided: u64,
    /// Evaluations that do not exist.
    pub not_evaluated: u64,
    /// The command of an external checker; atol and rtol then say only which inputs are valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// Runs of that checker, over mutants and correct implementations, that failed by themselves: neither kill nor pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checker_failures: Option<u64>,
    /// Those of them that ran out of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checker_timeouts: Option<u64>,
    /// Published detection in percent, if any.
    pub published_percent: Option<f64>,
    /// What that is a share of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_denominator: Option<String>,
}

/// Suites of one budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteRow {
    /// Inputs a problem.
    pub budget: u32,
    /// Detected of all witnessed mutants, in percent.
    pub full_pool: Option<f64>,
    /// Detected of the test half by suites selected on the dev half, in percent.
    pub held_out: Option<f64>,
    /// Detected, full pool.
    pub full_pool_detected: u64,
    /// Witnessed, full pool.
    pub full_pool_witnessed: u64,
    /// Detected, test half.
    pub held_out_detected: u64,
    /// Witnessed, test half.
    pub held_out_witnessed: u64,
    /// Published percentages, where the checker paper has the budget.
    pub published_full_pool: Option<f64>,
    /// Likewise, held out.
    pub published_held_out: Option<f64>,
}

/// What the device's findings see, over the mutants of the six families in refereeable problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sanitizer {
    /// Mutants with a finding that the baseline does not have.
    pub mutants_flagged: u64,
    /// Those that the official protocol does not kill.
    pub flagged_and_missed_by_official: u64,
    /// Those without a witness.
    pub flagged_and_not_witnessed: u64,
    /// Witnessed mutants without a finding.
    pub witnessed_and_not_flagged: u64,
}

/// The sanitizer as a protocol of its own, over the mutants of one family in refereeable problems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SanitizerFamily {
    /// The family.
    pub family: String,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Those of them with a finding that the baseline does not have: what the sanitizer detects as a protocol.
    pub detected: u64,
    /// Witnessed ones that it detects and the official protocol misses.
    pub missed_by_official: u64,
    /// Witnessed ones that it detects and every protocol scored misses.
    pub alone: u64,
    /// Distinct ones that it flags and no input was found to show.
    pub flagged_not_witnessed: u64,
}

/// Times and rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Wall milliseconds of compiling, per mutant.
    pub compile_ms_per_mutant: f64,
    /// Evaluations.
    pub evaluations: u64,
    /// Evaluations per second of wall time spent on them.
    pub evaluations_per_second: f64,
    /// Seconds from start to summary.
    pub wall_seconds: f64,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemRow {
    /// `level/id`.
    pub problem: String,
    /// Its name; empty where the baseline failed before it was known.
    pub name: String,
    /// `scored`, `unrefereeable` or `baseline_failed`.
    pub status: String,
    /// Why, where it is not `scored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Mutants generated.
    pub generated: u64,
    /// Distinct ones.
    pub distinct: u64,
    /// Quarantined ones.
    pub quarantined: u64,
    /// Witnessed ones of the six families.
    pub witnessed: u64,
    /// Schedule-witnessed ones of the six families.
    pub schedule_witnessed: u64,
    /// Witnessed ones of the six families that the headline protocol misses.
    pub missed: u64,
    /// Inputs in the matrix.
    pub inputs: u64,
    /// Inputs that greedy cover takes to kill every witnessed mutant.
    pub suite_inputs: u64,
    /// The fewest that do, where proven.
    pub fewest_inputs: Option<u64>,
}

/// The problem with the largest share missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstProblem {
    /// `level/id`.
    pub problem: String,
    /// Its name.
    pub name: String,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Missed ones.
    pub missed: u64,
    /// In percent.
    pub missed_percent: Option<f64>,
    /// The commonest mechanism among its survivors.
    pub mechanism: Option<Mechanism>,
    /// How many of them share it.
    pub mechanism_survivors: u64,
    /// The commonest family among them.
    pub family: String,
    /// How many of them share it.
    pub family_survivors: u64,
    /// All that in a phrase.
    pub why: String,
}

/// A survivor of the headline protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SurvivorRow {
    /// `level/id`.
    pub problem: String,
    /// The problem's name.
    pub problem_name: String,
    /// The mutant's id.
    pub mutant: String,
    /// The mutant's name.
    pub name: String,
    /// Its rule.
    pub rule: String,
    /// Its family.
    pub family: String,
    /// Why it survives.
    pub mechanism: Option<Mechanism>,
    /// Recipe of the witness on which its error is largest.
    pub witness: Option<String>,
    /// Threshold there, against float64.
    #[serde(with = "assay_judge::serde_float")]
    pub witness_threshold: f64,
    /// Largest threshold on what the protocol asked, against float64.
    #[serde(with = "assay_judge::serde_float")]
    pub asked_threshold: f64,
    /// Did the sanitizer report it?
    pub flagged: bool,
}

/// How often one mechanism explains a survivor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MechanismRow {
    /// The mechanism; none for survivors whose witness the matrix does not hold.
    pub mechanism: Option<Mechanism>,
    /// Survivors. Those of `schedule` are schedule-witnessed mutants, outside the denominator.
    pub survivors: u64,
    /// The same by family; families without one are left out.
    #[serde(default)]
    pub families: BTreeMap<String, u64>,
}

/// How many mutants have no witness for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwitnessedRow {
    /// The reason; none in runs that did not record it.
    pub reason: Option<Unwitnessed>,
    /// Mutants of the checker paper's six families.
    pub mutants: u64,
    /// Mutants of the family `width`.
    pub width: u64,
}

/// What one of the strongest protocols misses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undetected {
    /// The protocol.
    pub protocol: String,
    /// The witnessed mutants of the six families that it misses, in the order of the matrices.
    pub mutants: Vec<UndetectedRow>,
}

/// A witnessed mutant that a protocol misses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndetectedRow {
    /// `level/id`.
    pub problem: String,
    /// The mutant's id.
    pub mutant: String,
    /// Its name: place and edit.
    pub name: String,
    /// Its rule.
    pub rule: String,
    /// Why it is missed.
    pub mechanism: Option<Mechanism>,
    /// Recipe of an input that catches it.
    pub witness: Option<String>,
}

/// A set of protocols and the mutants that exactly they miss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissPattern {
    /// Names of the protocols; none for the mutants that all catch.
    pub missed_by: Vec<String>,
    /// Witnessed mutants.
    pub mutants: u64,
}

/// Distributions and bands for the headline protocol, over the six families.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Missed, pooled, in percent.
    pub missed_percent: Option<f64>,
    /// Distinct mutants that it does not kill, in percent of the distinct: an upper bound of the miss rate that needs
    /// no witness.
    pub distinct_surviving_percent: Option<f64>,
    /// Detected of the test half alone, in percent: what held-out suites are compared with.
    pub held_out_detected_percent: Option<f64>,
    /// Missed share by problem.
    pub per_problem: Option<Distribution>,
    /// Bootstrap bands of the pooled miss rate, from ten problems to all.
    pub bands: Vec<Band>,
    /// Median over problems of the inputs that greedy cover takes to kill every witnessed mutant.
    pub suite_inputs_median: Option<u64>,
    /// Its largest.
    pub suite_inputs_largest: Option<u64>,
}

/// The `width` family by itself: faults beyond the 32-bit index range, which the checker paper has no family for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WidthSummary {
    /// Its distinct mutants on problems that can be refereed.
    #[serde(default)]
    pub distinct: u64,
    /// Of them, those that a witness proves: the denominator of its protocols and suites.
    #[serde(default)]
    pub witnessed: u64,
    /// Of them, those that only the other schedule shows.
    #[serde(default)]
    pub schedule_witnessed: u64,
    /// Of them, those that nothing could be learnt of.
    #[serde(default)]
    pub quarantined: u64,
    /// The rest: faults of the text that no affordable input shows, most of them since they need more elements than
    /// an evaluation can have.
    #[serde(default)]
    pub unwitnessed: u64,
    /// The protocols.
    pub protocols: Vec<ProtocolRow>,
    /// Suites.
    pub suites: Vec<SuiteRow>,
}
