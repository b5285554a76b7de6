//! What can go wrong between us and PyTorch.

use std::path::PathBuf;

use assay_worker::{Ended, WorkerError};

/// A failure of the comparison itself. What PyTorch refuses to compute is no failure, see [`crate::Answer`].
#[derive(Debug, thiserror::Error)]
pub enum TorchError {
    /// Bad usage: an unknown operator, a program that does not parse.
    #[error("{0}")]
    Bad(String),
    /// A worker that cannot be started or serves nothing: no such interpreter, no PyTorch.
    #[error("{0}")]
    Unusable(String),
    /// A worker that broke the protocol.
    #[error("{}{}", .0, during(.1))]
    Protocol(String, String),
    /// A worker that ended before it answered; with the end of its standard error.
    #[error("{}{}", .0, during(.1))]
    Died(String, String),
    /// A worker that did not answer in time.
    #[error("the worker did not answer within {} s{}", .0, during(.1))]
    Hung(u64, String),
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

/// What the worker was doing, behind a message.
fn during(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!("\nwhile it was asked for: {what}") }
}

impl TorchError {
    /// The error that a worker's failure is, while it was asked for `what`.
    pub(crate) fn of(e: WorkerError, what: &str) -> TorchError {
        match e {
            WorkerError::Start { .. } => TorchError::Unusable(e.to_string()),
            WorkerError::Fault(why) if what.is_empty() => TorchError::Unusable(why),
            WorkerError::Exchange { path, error } => TorchError::Io { action: "write", path, error },
            WorkerError::Protocol(_) | WorkerError::Fault(_) => {
                TorchError::Protocol(e.to_string(), what.to_owned())
            }
            WorkerError::Interrupted => TorchError::Interrupted,
        }
    }

    /// The error that an end without an answer is.
    pub(crate) fn ended(ended: &Ended, seconds: u64, what: &str) -> TorchError {
        match ended {
            Ended::TimedOut => TorchError::Hung(seconds, what.to_owned()),
            Ended::Crashed { .. } | Ended::Raised { .. } => {
                TorchError::Died(ended.to_string(), what.to_owned())
            }
        }
    }
}
