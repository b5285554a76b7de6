//! Evaluations at extents that no memory holds: chosen blocks, inputs made from their index, outputs judged
//! where blocks wrote.
//!
//! Inputs and outputs are sparse buffers of the device ([`run`]); the reference is evaluated at the elements
//! that the executed blocks of the original wrote ([`input`]), and every version is judged there and where
//! else it writes ([`judge`]). So a verdict says of a sample what the whole check would say of everything;
//! what it can miss is a fault that shows only in blocks left out, and a write over the sample by one of
//! those. A version with another grid runs the blocks that may do the same work; what none of them writes
//! counts as unwritten, which is wrong for a grid-stride loop whose grid a mutant changes.
//!
//! **Memory is strict here**: an access outside of a buffer is a fault, which the memory of a benchmark's
//! harness would often forgive. Comparisons with desk extents have to be under strict memory on both sides.

pub mod input;
pub mod judge;
pub mod run;
pub mod study;

pub use input::{Expected, OfficialInput};
pub use judge::{Ending, Verdict, judge};
pub use run::{Bounds, LaunchBlocks, Ran, Which, Written, run};
pub use study::{Config, Studied, StudiedMutant, study};
