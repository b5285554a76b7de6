//! What stops a judgement without saying anything about the submission.

use assay_worker::{Ended, Stop, WorkerError};

/// A failure of the workers, the problem or ours.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The interpreter cannot be started, or has no PyTorch.
    #[error("{0}")]
    Unusable(String),
    /// The problem file, its extents or a recipe cannot be used.
    #[error("{0}")]
    Input(String),
    /// A worker of ours died, hung or broke its protocol.
    #[error("{0}")]
    Worker(String),
    /// The system refuses a file, a socket or memory.
    #[error("{what}: {error}")]
    Io {
        /// What was wanted.
        what: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

impl SubmitError {
    pub(crate) fn io(what: impl Into<String>, error: std::io::Error) -> SubmitError {
        SubmitError::Io { what: what.into(), error }
    }

    pub(crate) fn of(stop: Stop, what: &str) -> SubmitError {
        match stop {
            Stop::Failed(WorkerError::Interrupted) => SubmitError::Interrupted,
            Stop::Failed(WorkerError::Fault(message)) => SubmitError::Unusable(message),
            Stop::Failed(e @ WorkerError::Start { .. }) => SubmitError::Unusable(e.to_string()),
            Stop::Failed(e) => SubmitError::Worker(format!("{e} ({what})")),
            Stop::Ended(Ended::Raised { stage, message }) => {
                SubmitError::Input(format!("{what}: {stage}: {message}"))
            }
            Stop::Ended(e) => SubmitError::Worker(format!("{e} ({what})")),
        }
    }
}
