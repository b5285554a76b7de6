//! Random PTX and edited texts, and what must hold for them.
//!
//! Arrives: bytes, from a fuzzer or a seed. Leaves: nothing, or what went wrong with the text that shows it. The same
//! targets run under `cargo fuzz` (the `fuzz` folder at the root) and as seeded tests on any compiler: a few seconds of
//! them in `cargo test`, minutes with `ASSAY_FUZZ_SECONDS` or `cargo xtask fuzz --minutes N`.
//!
//! - [`exec`]: random valid PTX ([`Program`]) gives the same bits in both handler variants, under all schedules,
//!   memories and fills, with and without detectors, thread by thread, and what a model computes; lawless PTX at least
//!   the same in both variants.
//! - [`text`]: parsers of PTX, problems, launchers, recipes, protocols and the like take anything.
//!
//! Parts of the product are called as anyone calls them. What it misses: tensor-core and asynchronous instructions are
//! not generated, texts of device code are not compiled.

pub mod choices;
pub mod exec;
pub mod memory;
mod model;
mod program;
pub mod seeded;
pub mod text;
mod vocabulary;

pub use model::Left;
pub use program::{CELLS, Class, IN_BYTES, Kind, Program, Reg, SLICE_BYTES};
