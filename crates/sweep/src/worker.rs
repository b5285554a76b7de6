//! The worker process of a run (`docs/sweep-worker.md`): `assay-worker`, with this crate's errors.

pub use assay_worker::{Ended, Exchange, Worker};

use crate::error::SweepError;
use crate::judge::Stop;

/// The version of the protocol.
pub const VERSION: u32 = 1;

impl From<assay_worker::WorkerError> for SweepError {
    fn from(e: assay_worker::WorkerError) -> SweepError {
        use assay_worker::WorkerError as E;
        match e {
            E::Start { .. } => SweepError::Bad(e.to_string()),
            E::Exchange { path, error } => SweepError::Io { action: "write", path, error },
            E::Protocol(why) | E::Fault(why) => SweepError::Worker(why),
            E::Interrupted => SweepError::Interrupted,
        }
    }
}

impl From<assay_worker::WorkerError> for Stop {
    fn from(e: assay_worker::WorkerError) -> Stop {
        Stop::Failed(e.into())
    }
}

impl From<assay_worker::Stop> for Stop {
    fn from(stop: assay_worker::Stop) -> Stop {
        match stop {
            assay_worker::Stop::Failed(e) => e.into(),
            assay_worker::Stop::Ended(ended) => Stop::Ended(ended),
        }
    }
}
