//! The release of a run: what others need to use, check and cite it without Assay.
//!
//! Arrives: a finished run folder. Leaves: a folder with every mutant as a diff, witnesses with the command that shows
//! them, the kill matrix and what it rests on as Parquet, the taxonomy, a playbook for each family, and an index with the
//! definition of every column.
//!
//! A run is read one problem at a time and its evaluations one by one, so that the memory is that of the largest
//! problem and of a row group. The folder appears whole or not at all. The same run gives the same bytes.
//!
//! A suite ([`export_suite`]) is a folder of its own: recipes with their digests, and the tensors that they make.
//!
//! What it misses: the run keeps no tensors, so a release has recipes alone. Which seed
//! confirmed a witness is read off the evaluations, as the run does not say which input it took first.

mod columns;
mod error;
mod folder;
mod groups;
mod md;
mod playbook;
mod readme;
mod suite;
mod table;
mod tally;
mod taxonomy;
mod witness;
mod write;

use std::path::PathBuf;

pub use columns::TABLES;
pub use error::ReleaseError;
pub use folder::{MARKER, SUMS};
pub use suite::{SUITE_INDEX, SUITE_KIND, SuiteExport, SuiteExported, export_suite};
pub use table::{Column, Holds, Schema};
pub use write::export;

/// What `release.json` calls a release.
pub const KIND: &str = "assay-release";
/// Version of its layout.
pub const FORMAT: u32 = 1;
/// The licence of a release.
pub const LICENCE: &str = "Apache-2.0 OR MIT";

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Problems, those whose baseline failed included.
    pub problems: u64,
    /// Mutants, each with its diff.
    pub mutants: u64,
    /// Mutants with a witness, those of another schedule included.
    pub witnesses: u64,
    /// Cells of the kill matrix.
    pub cells: u64,
    /// Evaluations.
    pub evaluations: u64,
    /// Name and version of the program.
    pub tool: String,
    /// A command that shows the first witness.
    example: Option<String>,
}

/// A release that was written.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Where.
    pub folder: PathBuf,
    /// Files.
    pub files: u64,
    /// Their bytes, without `SHA256SUMS`.
    pub bytes: u64,
    /// Rows by table.
    pub rows: Vec<(&'static str, u64)>,
    /// What they hold.
    pub counted: Counted,
}
