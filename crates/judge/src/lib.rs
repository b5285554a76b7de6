//! Tolerances, verdicts and validity: is this output right, and may this input be asked at all?
//!
//! Arrives: an output tensor and its reference (float32 for `official`, float64 for `truth`). Leaves: a
//! [`Comparison`] with the *threshold*, the smallest `t` at which `atol = rtol = t` passes, so that every other
//! `atol = rtol` is judged later without running anything again; a [`Cell`] that joins both comparisons with how
//! the evaluation ended; a [`Validity`]; a [`Ceiling`]. Nothing here runs a kernel or a reference.
//!
//! What it misses: the formulas are evaluated in float64, as written. PyTorch evaluates `atol + rtol * |ref|` and
//! the difference in the tensors' own dtype, so an element within a few float32 ULPs of the tolerance (or an
//! integer above 2^24, which PyTorch compares as float32) can be judged differently there. Shapes must be equal:
//! nothing broadcasts.
//!
//! Source of the definitions: PyTorch's documentation of `torch.allclose` and `torch.isclose`; validity, ceiling,
//! blind band and unrefereeable problems from "Measuring the Checker: Mutation Analysis for GPU-Kernel Benchmark
//! Oracles".

mod blind;
mod compare;
mod error;
mod kernel;
pub mod serde_float;
mod validity;
mod verdict;

pub use blind::{TrivialAnswer, TrivialAnswers, blind_band, largest_accepted_error};
pub use compare::{
    CompareOptions, Comparison, allclose, compare, compare_slowly, count_mismatches, first_mismatch,
    scaled_threshold,
};
pub use error::JudgeError;
pub use validity::{Ceiling, Unrefereeable, Validity, bisect_ceiling, max_abs_finite, unrefereeable};
pub use verdict::{Cell, EvaluationEnd, is_witness};

/// The tolerance of the checker paper's official check (`atol = rtol`), at which witnesses and ceilings are
/// defined.
///
/// Source: "Measuring the Checker", sections 2 and 4 (KernelBench in 2025, float32).
pub const PAPER_TOLERANCE: f64 = 1e-2;
