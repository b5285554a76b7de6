//! PyTorch as it is, through a worker (`docs/torch-worker.md`): our operators and the catalogue's references against it.
//!
//! Arrives: a Python that has PyTorch. Leaves: where our operators differ from it and why ([`verify`]), whether the
//! references of the catalogue, executed by PyTorch as they stand, give what ours give ([`catalogue`]),
//! and which trivial answers the official check of a benchmark accepts on its own problem files ([`kernelbench`]).

pub mod catalogue;
mod client;
mod error;
pub mod kernelbench;
pub mod verify;

pub use client::{Answer, Placed, Raised, Settings, Torch, VERSION};
pub use error::TorchError;
