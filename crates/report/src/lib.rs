//! What an audit found, for people and for other tools.
//!
//! Arrives: the [`Summary`] of a finished run, its mutants, kill matrices, protocols and sources ([`Bundle::gather`]).
//! Leaves: strings: the terminal page ([`Bundle::page`], with [`Bundle::tables`] and [`Bundle::details`] behind it), one self-contained HTML
//! file ([`Bundle::html`]), a report in Stryker's mutation-report schema ([`Bundle::stryker`]) and suites as protocol
//! files ([`SuiteSet`]). Pure functions: nothing here touches a file, a clock or a terminal.
//!
//! Every text from outside (names, recipes, diffs, reasons) is cleaned of control characters for the terminal and
//! escaped for HTML and JSON. Published figures stand beside measured ones and are marked as published.
//!
//! What it misses: the Stryker schema has no place for margins, false kills and the state of single evaluations; the
//! kill matrix in `run.db` stays the truth, and the export carries what does not fit under the key `assay`.

mod bands;
mod compare;
mod details;
pub mod diff;
mod error;
mod html;
mod page;
mod stryker;
mod suites;
mod tables;
pub mod text;
mod verdicts;

use std::collections::BTreeMap;

use assay_measure::{BUDGETS, KillMatrix, Protocol, Summary};
use serde::Serialize;

pub use bands::svg as blind_band_svg;
pub use compare::comparison;
pub use error::ReportError;
pub use suites::SuiteSet;
pub use verdicts::{Verdicts, verdicts};

/// One mutant as it was generated, whatever became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MutantRecord {
    /// The problem's key, `level1/23_softmax`.
    pub problem: String,
    /// Its id.
    pub id: String,
    /// The rule that made it.
    pub rule: String,
    /// The rule's family.
    pub family: String,
    /// Does the edit stand in host code?
    pub host: bool,
    /// 1-based source line.
    pub line: u64,
    /// `kernel.cu:4:9: replace < with <= in softmax`.
    pub name: String,
    /// Unified diff against the original.
    pub diff: String,
    /// `distinct`, `noncompiling`, `duplicate`, `equivalent` or `quarantined`.
    pub status: String,
    /// Why it has that status.
    pub reason: String,
}

/// A source file of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The problem's key.
    pub problem: String,
    /// The file's name.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// All that a report is made of.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The scores.
    pub summary: Summary,
    /// The run folder, as it is shown to the user.
    pub folder: String,
    /// Every mutant generated.
    pub mutants: Vec<MutantRecord>,
    /// What the protocols say of each distinct mutant, by its id.
    pub verdicts: BTreeMap<String, Verdicts>,
    /// Source files.
    pub sources: Vec<SourceFile>,
    /// The protocols that were scored, in the order of tables.
    pub protocols: Vec<Protocol>,
    /// Suites at each of the budgets of tables.
    pub suites: Vec<SuiteSet>,
}

impl Bundle {
    /// Puts a bundle together. `matrices` holds the kill matrix of each problem, by the problem's key.
    pub fn gather(
        summary: Summary,
        folder: String,
        mutants: Vec<MutantRecord>,
        sources: Vec<SourceFile>,
        protocols: Vec<Protocol>,
        matrices: &[KillMatrix],
    ) -> Bundle {
        Bundle {
            verdicts: verdicts(matrices, &protocols),
            suites: BUDGETS.iter().map(|&b| SuiteSet::select(matrices, b)).collect(),
            summary,
            folder,
            mutants,
            sources,
            protocols,
        }
    }

    /// The mutant of that id.
    pub fn mutant(&self, id: &str) -> Option<&MutantRecord> {
        self.mutants.iter().find(|m| m.id == id)
    }
}
