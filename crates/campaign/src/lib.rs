//! The audit as stages: baseline, mutate, compile, filter, evaluate, witness, score; and the store that makes it
//! resumable.
//!
//! Arrives: problems, protocols, a run folder. Leaves: `run.db` with every mutant, input and evaluation,
//! `manifest.json`, `summary.json`, and the kill matrix of each problem. Every stage asks the store before it
//! computes, and every stored value is a function of its key, so an interrupted run continues and gives the same
//! summary; threads change the order of work, never a value.

pub mod audit;
pub mod bands;
mod bench;
pub mod ceilings;
pub mod check;
pub mod error;
pub mod execute;
mod external;
pub mod filter;
pub mod gate;
pub mod harness;
mod huge;
pub mod inputs;
mod judged;
pub mod ladder;
mod plain;
mod reader;
pub mod records;
pub mod sampled;
pub mod stage;
pub mod store;
mod verdict;

pub use audit::{AuditConfig, Finished, audit, canonical, judge_source, verify};
pub use bench::shape_name;
pub use error::CampaignError;
pub use reader::RunReader;
pub use verdict::ProtocolVerdict;

/// Who is told how far the work is.
pub trait Progress: Sync {
    /// A stage begins: what it is, and how many steps it has.
    fn stage(&self, what: &str, total: u64);
    /// Steps done.
    fn step(&self, steps: u64);
    /// Something worth a line.
    fn note(&self, what: &str);
}

/// Tells nobody.
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str, _: u64) {}
    fn step(&self, _: u64) {}
    fn note(&self, _: &str) {}
}
