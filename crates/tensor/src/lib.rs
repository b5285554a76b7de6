//! Tensors, dtypes and the generators that fill them.
//!
//! Arrives: a dtype, a shape and a generator or raw bytes. Leaves: a contiguous row-major [`Tensor`] whose
//! every element is a function of (generator, seed, element index) alone, so values do not depend on threads,
//! on SIMD width or on which part of a tensor is produced first.
//!
//! What it does not do: strides (a view is the business of whoever reads it), arithmetic (see `assay-ops`).

pub mod dtype;
pub mod error;
pub mod generate;
pub mod philox;
pub mod safetensors_io;
pub mod tensor;

pub use dtype::DType;
pub use error::TensorError;
pub use generate::Generator;
pub use tensor::{Tensor, numel};
