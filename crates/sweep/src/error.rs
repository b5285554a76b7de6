//! What can go wrong with a sweep itself, apart from what it measures.

use std::path::{Path, PathBuf};

/// A failure of the sweep; outcomes of the operation are no failures.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Bad usage, plan, device, rule file or record.
    #[error("{0}")]
    Bad(String),
    /// Something that this version or this backend cannot do.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// A file or folder that cannot be read or written.
    #[error("cannot {action} {path}: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A worker that does not keep the protocol.
    #[error("the worker broke the protocol: {0}")]
    Worker(String),
    /// Stopped by the user; what was done is on disk.
    #[error("interrupted; what is done is kept, and --resume continues")]
    Interrupted,
}

impl SweepError {
    /// Bad input, said in `text`.
    pub fn bad(text: impl Into<String>) -> SweepError {
        SweepError::Bad(text.into())
    }

    /// A file that cannot be read.
    pub fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> SweepError + '_ {
        move |error| SweepError::Io { action: "read", path: path.to_path_buf(), error }
    }

    /// A file or folder that cannot be written.
    pub fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> SweepError + '_ {
        move |error| SweepError::Io { action: "write", path: path.to_path_buf(), error }
    }
}
