//! Boundary sweeps: where a tensor operation begins to return wrong values without an error, and which misreading of its
//! inputs explains them.
//!
//! Arrives: a plan (shapes, dtypes, layouts, boundaries) and a backend (an emulated device, PyTorch). Leaves: one record a
//! run, judged against a float64 product; switch points to the single batch; the rules that reproduce every outcome;
//! comparisons of runs and the evaluation of a guard. The way of the data: `plan` makes points, `drive` runs them through
//! `run` (a fresh `worker` each), `judge` compares, `record` keeps, `rules` explains.
//!
//! It neither compiles nor executes CUDA, and holds nothing that only one operating system has.

pub mod backend;
pub mod case_run;
pub mod cases;
pub mod condition;
pub mod device;
pub mod differ;
pub mod drive;
pub mod emulate;
pub mod environment;
pub mod error;
pub mod geometry;
pub mod guard;
pub mod judge;
pub mod misread;
pub mod page;
pub mod plan;
pub mod point;
pub mod product;
pub mod record;
pub mod repro;
pub mod rules;
pub mod run;
pub mod serve;
pub mod text;
pub mod values;
pub mod worker;

pub use error::SweepError;
