//! Errors of this crate.

use std::path::{Path, PathBuf};

use assay_campaign::CampaignError;

/// Why a release could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The run cannot be read.
    #[error(transparent)]
    Run(#[from] CampaignError),
    /// The folder holds something else, or another export is at work there.
    #[error("`{}`: {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is there and what to do.
        what: String,
    },
    /// A file or folder cannot be written.
    #[error("cannot write `{}`: {what}", path.display())]
    CannotWrite {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        what: String,
    },
    /// What must not happen.
    #[error("internal error: {0}")]
    Internal(String),
}

impl ReleaseError {
    pub(crate) fn write(path: &Path, what: impl ToString) -> ReleaseError {
        ReleaseError::CannotWrite { path: path.to_owned(), what: what.to_string() }
    }
}
