//! PyTorch as it is, through a worker (`docs/torch-worker.md`): our operators and the catalogue's references against it.
//!
//! Arrives: a Python that has PyTorch. Leaves: where our operators differ from it and why ([`verify`]), whether the
//! references of the catalogue, executed by PyTorch as they stand, give what ours give ([`catalogue`]).

pub mod catalogue;
mod client;
mod error;
pub mod verify;

pub use client::{Answer, Placed, Settings, Torch, VERSION};
pub use error::TorchError;
