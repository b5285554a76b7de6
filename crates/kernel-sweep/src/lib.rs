//! Boundary sweeps of CUDA kernels on the CPU device: the `kernel` backend of `assay sweep`.
//!
//! Arrives: a `.cu` file with kernels and a host function `launch`, and the operation that it is to compute. Leaves: a
//! record for every size, in sampled blocks over sparse tensors, each written element judged against float64; the last
//! right and the first wrong size of each series; the mechanism, with its line.
//!
//! The way of the data: `plan` makes series and sizes, `kernel` compiles the file, `run` runs a size, `judge` compares
//! and explains, `blame` finds the line of a silent misreading, `drive` does so for every size and keeps the records,
//! `text` prints.
//!
//! What it misses: an element that belongs to a block outside of the sample is not looked at. Every size runs the first
//! and last blocks, those around each boundary and some random ones with the blocks 2^32 elements further; a fault that
//! shows nowhere there is not seen.

mod blame;
pub mod drive;
mod judge;
pub mod kernel;
pub mod plan;
mod run;
pub mod text;
pub mod work;

pub use drive::{Request, Series, Summary, sweep};
pub use kernel::{Kernel, KernelError};
pub use work::Op;
