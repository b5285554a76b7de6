//! Figures that the checker paper published, to print beside ours.

use serde::{Deserialize, Serialize};

use crate::MeasureError;

/// All of them; see `published.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The publication.
    pub source: String,
    /// Its pipeline.
    pub pipeline: PublishedPipeline,
    /// Its families.
    pub families: PublishedFamilies,
    /// Its official check.
    pub official: PublishedOfficial,
    /// Its blind bands.
    pub blind_bands: PublishedBlindBands,
    /// Its protocol audit.
    pub protocols: PublishedProtocols,
    /// How much of a protocol's gain is its inputs', and how much its tolerance's.
    pub decomposition: PublishedDecomposition,
    /// Its suites.
    pub suites: PublishedSuites,
}

/// A gain over the official protocol in two parts, inputs first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDecomposition {
    /// Where it stands.
    pub section: String,
    /// The protocol's name here.
    pub protocol: String,
    /// Points of its inputs at the official tolerance.
    pub inputs_points: f64,
    /// Points of its tolerance on top.
    pub tolerance_points: f64,
}

/// From mutants generated to mutants witnessed, levels 1 and 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of `Pipeline`")]
pub struct PublishedPipeline {
    pub section: String,
    pub problems: u64,
    pub generated: u64,
    pub noncompiling: u64,
    pub duplicate_image: u64,
    pub equivalent: u64,
    pub distinct: u64,
    pub witnessed: u64,
    pub missed: u64,
    pub missed_percent: f64,
}

/// Misses of the official inputs by family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFamilies {
    /// Where it stands.
    pub section: String,
    /// One row a family.
    pub rows: Vec<PublishedFamily>,
}

/// One family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFamily {
    /// Its name, as in [`crate::FAMILIES`].
    pub family: String,
    /// Rules.
    pub rules: u64,
    /// Witnessed mutants.
    pub witnessed: u64,
    /// Missed by the official inputs, in percent of the witnessed.
    pub missed_percent: f64,
}

/// The official check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedOfficial {
    /// Where it stands.
    pub section: String,
    /// Witnessed mutants detected, levels 1 and 2.
    pub detected: u64,
    /// The same in percent.
    pub detected_percent: f64,
    /// In percent over levels 1 to 3.
    pub unified_percent: f64,
    /// 90% bootstrap band of the miss rate at ten problems.
    pub band_at_ten_problems: [f64; 2],
    /// Missed share of the median problem.
    pub median_problem_missed_percent: f64,
    /// Distinct mutants that survive, in percent of the distinct.
    pub distinct_surviving_percent: f64,
}

/// Blind bands at the official tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBlindBands {
    /// Where it stands.
    pub section: String,
    /// The operator, as in the measured curve.
    pub operator: String,
    /// One row a length.
    pub rows: Vec<PublishedBlindBand>,
}

/// The blind band at one length of the reduction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBlindBand {
    /// Length of the reduction.
    pub length: u64,
    /// The largest relative error that is not detected.
    pub band: f64,
}

/// The protocol audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedProtocols {
    /// Where it stands.
    pub section: String,
    /// The unified denominator, levels 1 to 3.
    pub witnessed: u64,
    /// Its problems.
    pub problems: u64,
    /// Mutants that every baseline misses and only the targeted suite detects.
    pub only_targeted: u64,
    /// One row a protocol.
    pub rows: Vec<PublishedProtocol>,
}

/// One protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedProtocol {
    /// Its name here.
    pub protocol: String,
    /// Inputs a problem.
    pub inputs: u64,
    /// Detected, in percent.
    pub detected_percent: f64,
    /// False kills, where stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_kills: Option<u64>,
}

/// Suites by budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSuites {
    /// Where it stands.
    pub section: String,
    /// The official check on the full pool, in percent.
    pub official_full_pool: f64,
    /// The official check on the held-out half, in percent.
    pub official_held_out: f64,
    /// Median number of inputs for full coverage.
    pub median_inputs: u64,
    /// Largest number of inputs for full coverage.
    pub largest_inputs: u64,
    /// One row a budget.
    pub rows: Vec<PublishedBudget>,
}

/// One budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBudget {
    /// Inputs a problem.
    pub budget: u32,
    /// Detected, in percent of the full pool.
    pub full_pool: f64,
    /// Detected, in percent of held-out mutants.
    pub held_out: f64,
}

impl Published {
    /// The row of a family.
    pub fn family(&self, family: &str) -> Option<&PublishedFamily> {
        self.families.rows.iter().find(|r| r.family == family)
    }

    /// The row of a protocol in the unified audit.
    pub fn protocol(&self, protocol: &str) -> Option<&PublishedProtocol> {
        self.protocols.rows.iter().find(|r| r.protocol == protocol)
    }

    /// The row of a budget.
    pub fn budget(&self, budget: u32) -> Option<&PublishedBudget> {
        self.suites.rows.iter().find(|r| r.budget == budget)
    }
}

/// The shipped figures.
///
/// # Errors
/// `Shipped`, which a test of this crate excludes.
pub fn published() -> Result<Published, MeasureError> {
    let text = include_str!("../published.toml");
    toml::from_str(text).map_err(|e| MeasureError::Shipped {
        file: "published.toml".to_owned(),
        message: e.message().to_owned(),
    })
}
