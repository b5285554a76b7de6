//! Errors of this crate.

use std::path::PathBuf;

use assay_problems::OracleError;

/// Why a run could not be started, continued or finished.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The run folder or a file in it cannot be written: full disk, read-only, no permission.
    #[error("cannot write `{}`: {what}; free space or choose another folder with --out, then continue with --resume", path.display())]
    CannotWrite {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        what: String,
    },
    /// The run folder holds something that this command cannot continue or read.
    #[error("`{}`: {what}", path.display())]
    BadRun {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Another process works in this run folder.
    #[error("another process is working in `{}`; wait for it or choose another folder with --out", path.display())]
    Busy {
        /// The run folder.
        path: PathBuf,
    },
    /// A problem's folder, TOML, kernel or launcher is wrong.
    #[error("{0}")]
    Input(String),
    /// The oracle of a problem gives nothing: no verdict on its kernels.
    #[error("{0}")]
    Oracle(OracleError),
    /// A problem's own kernel fails its reference.
    #[error("baseline failed: {0}")]
    Baseline(String),
    /// Asked to stop; everything evaluated so far is committed.
    #[error("interrupted; everything evaluated so far is in `{}`, continue with --resume", path.display())]
    Interrupted {
        /// The run folder.
        path: PathBuf,
    },
    /// A stage met what it must never meet: a bug of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CampaignError {
    /// What an oracle's refusal is on a recipe of a problem.
    pub(crate) fn of_oracle(e: OracleError, problem: &str, recipe: &str) -> Self {
        match e {
            OracleError::Input(what) => {
                CampaignError::Input(format!("`{problem}` on input `{recipe}`: {what}"))
            }
            other => CampaignError::Oracle(other),
        }
    }

    /// An error of writing below `path`, from SQLite or the file system.
    pub(crate) fn write(path: impl Into<PathBuf>, what: impl ToString) -> Self {
        CampaignError::CannotWrite { path: path.into(), what: what.to_string() }
    }
}
