//! A worker process as its parent sees it.
//!
//! Arrives: a command to start, requests as JSON, a deadline. Leaves: replies, or how the process ended (with the end of
//! its standard error), or how it broke the protocol. Numbers travel in an [`Exchange`], a file that both sides map. What
//! the requests mean is the caller's: `docs/sweep-worker.md` has those of the sweeps, `docs/torch-worker.md` those of the
//! comparisons with PyTorch.

mod error;
mod exchange;
mod process;
mod script;

pub use error::{Ended, Stop, WorkerError};
pub use exchange::Exchange;
pub use process::Worker;
pub use script::Script;
