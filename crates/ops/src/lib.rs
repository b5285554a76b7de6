//! Reference operators with PyTorch's semantics, in float64 and float32, and the language that combines them.
//!
//! Arrives: a reference text (lines such as `h = conv2d(x, weight, bias, stride=2)`), input tensors, scalars, and a
//! [`Variant`] that says in which precision and accumulation order to compute. Leaves: the output tensors. Two
//! variants differ only in rounding; [`Variant::truth`] is the float64 value, [`Variant::official`] what a float32
//! PyTorch model gives up to rounding, [`Variant::ensemble`] the spread that a correct kernel may show.
//!
//! [`Program::evaluate`] gives whole outputs; [`sampled::Sampling`] gives boxes of outputs whose tensors need never be
//! held, the same bits.
//!
//! Results are the same bits on every host, whatever its vector width: no host math library, no reordering beyond
//! the stated order, single-rounded contraction in hardware or software alike.
//!
//! ```
//! use std::collections::BTreeMap;
//! use assay_ops::{Program, Variant};
//! use assay_tensor::Tensor;
//!
//! let program = Program::parse("y = relu(x * alpha)", &["x"], &["alpha"])?;
//! let x = Tensor::from_f32(&[3], &[-1.0, 0.5, 2.0])?;
//! let out = program.evaluate(
//!     &BTreeMap::from([("x".to_owned(), x)]),
//!     &BTreeMap::from([("alpha".to_owned(), 2.0)]),
//!     &["y".to_owned()],
//!     &Variant::truth(),
//! )?;
//! assert_eq!(out["y"].to_f64_vec(), [0.0, 1.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every operator also has one plain CUDA kernel, see [`plain`].
//!
//! What it misses: half-precision arithmetic (f16 and bf16 inputs are converted and then computed in the variant's
//! precision), integer matrix products, gradients.

pub mod array;
pub mod error;
pub mod kernels;
pub mod lang;
pub mod near;
pub mod op;
pub mod ops;
pub mod order;
pub mod plain;
pub mod real;
pub mod sampled;
pub mod simd;
pub mod variant;

pub use error::{Fault, OpsError, ProgramError};
pub use lang::Program;
pub use op::Op;
pub use ops::OPS;
pub use variant::{Order, Precision, Softmax, UnknownVariant, Variance, Variant};
