//! Errors of this crate.

use assay_tensor::DType;

/// Why two tensors cannot be compared, or a search cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum JudgeError {
    /// The output has another shape than its reference.
    #[error("the output has shape {out:?}, its reference {reference:?}; only equal shapes are compared")]
    ShapeMismatch {
        /// Shape of the output.
        out: Vec<u64>,
        /// Shape of the reference.
        reference: Vec<u64>,
    },
    /// The dtypes are neither equal nor output and wider reference.
    #[error(
        "the output has dtype `{out}`, its reference `{reference}`; a reference has the output's dtype, or `f32` or `f64` for floats, or `i64` or `f64` for integers"
    )]
    DTypeMismatch {
        /// Dtype of the output.
        out: DType,
        /// Dtype of the reference.
        reference: DType,
    },
    /// A tensor whose bytes do not fit its shape.
    #[error("a tensor of dtype `{dtype}` and shape {shape:?} holds {bytes} bytes, which is not its size")]
    BadLength {
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<u64>,
        /// The bytes it holds.
        bytes: u64,
    },
    /// A bisection over something that is not a range of positive magnitudes.
    #[error("cannot search for a ceiling between {lo} and {hi}; give two finite magnitudes with 0 < lo < hi")]
    BadRange {
        /// Lower end.
        lo: f64,
        /// Upper end.
        hi: f64,
    },
}
