//! How a worker ends, and what can go wrong with it.

use std::fmt;
use std::path::PathBuf;

/// A failure that says nothing about what the worker was asked to compute.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The program cannot be started.
    #[error("cannot start the worker `{program}`: {error}")]
    Start {
        /// Its name.
        program: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// No room for the exchange.
    #[error("cannot write {path}: {error}")]
    Exchange {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A worker that does not keep the protocol.
    #[error("the worker broke the protocol: {0}")]
    Protocol(String),
    /// The worker cannot serve the request, for a reason that it gives.
    #[error("the worker cannot go on: {0}")]
    Fault(String),
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

/// A run that ended before it was done.
#[derive(Debug)]
pub enum Ended {
    /// The process ended: its status (negative: the signal) and its last words.
    Crashed {
        /// Exit status, or minus the signal.
        status: i64,
        /// The end of its standard error.
        words: String,
    },
    /// It did not answer within the limit.
    TimedOut,
    /// It raised.
    Raised {
        /// Where: a word of the protocol, such as `allocate` or `forward`.
        stage: String,
        /// The message.
        message: String,
    },
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Crashed { status, words } => {
                if *status < 0 {
                    write!(f, "the worker was ended by signal {}", -status)?;
                } else {
                    write!(f, "the worker ended with status {status} before it answered")?;
                }
                if words.is_empty() {
                    f.write_str("; it wrote nothing to its standard error")
                } else {
                    write!(f, "; the end of its standard error:\n{words}")
                }
            }
            Ended::TimedOut => f.write_str("the worker did not answer within its time limit"),
            Ended::Raised { stage, message } => write!(f, "{stage}: {message}"),
        }
    }
}

/// Why a request has no reply.
#[derive(Debug)]
pub enum Stop {
    /// The caller cannot go on.
    Failed(WorkerError),
    /// The worker ended, hung or raised: it may be an outcome.
    Ended(Ended),
}

impl From<WorkerError> for Stop {
    fn from(e: WorkerError) -> Stop {
        Stop::Failed(e)
    }
}
