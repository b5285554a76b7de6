//! Reference programs as chains of plain CUDA kernels on the CPU device.
//!
//! Arrives: a [`Program`], its inputs and scalars. Leaves: its outputs in float32, every operator computed by its one
//! plain kernel (`assay_ops::plain`): the host `launch` interpreted, the kernels compiled by NVRTC and executed on the
//! device. Arithmetic on numbers alone stays on the host, as it would in Python. Shapes, element types and refusals
//! are the reference operators'; values are the kernels'.
//!
//! The chain is a correct implementation that shares nothing with a substrate nor with the reference's evaluators but
//! the mathematics: a control of what a protocol rejects.
//!
//! What it misses: a chain runs kernel by kernel on fresh memory, so no fault of a pipeline shows; f16 and bf16 inputs
//! become float32.

mod build;
mod check;
mod error;
mod launch;
mod runner;

pub use assay_ops::Program;
pub use assay_ops::plain::Placement;
pub use check::{Checked, check};
pub use error::PlainError;
pub use runner::{Chain, PlainRunner, Settings};
