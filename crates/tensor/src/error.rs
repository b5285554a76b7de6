//! Errors of this crate.

use std::path::PathBuf;

/// What can go wrong while making, reading or writing tensors.
#[derive(Debug, thiserror::Error)]
pub enum TensorError {
    /// The dtype's name is not one Assay knows.
    #[error("unknown dtype `{0}` (known: bool f16 bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64)")]
    UnknownDType(String),
    /// A shape whose element count or byte count does not fit in 64 bits, or not in memory.
    #[error("shape {0:?} has too many elements")]
    TooLarge(Vec<u64>),
    /// Values and shape disagree.
    #[error("shape {shape:?} holds {want} elements, but {got} values were given")]
    LengthMismatch {
        /// The shape asked for.
        shape: Vec<u64>,
        /// Elements of that shape.
        want: u64,
        /// Values at hand.
        got: u64,
    },
    /// A generator's text is wrong; `at` is a byte offset into it.
    #[error("bad generator `{text}`: {what} (at character {at})")]
    BadGenerator {
        /// The whole text.
        text: String,
        /// Byte offset of the fault.
        at: usize,
        /// What is wrong there.
        what: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file is not a safetensors file that we can use.
    #[error("`{}` is not a usable safetensors file: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}
