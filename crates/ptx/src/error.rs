//! Errors of reading PTX.

/// Why a PTX text gave no module. Lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// The text is not PTX.
    #[error("ptx line {line}, column {column}: {what}")]
    Syntax {
        /// Line.
        line: u32,
        /// Column.
        column: u32,
        /// What is wrong.
        what: String,
    },
    /// The text is PTX in form, but breaks a rule: an unknown symbol, a register of the wrong type.
    #[error("ptx line {line}, column {column}: {what}")]
    Invalid {
        /// Line.
        line: u32,
        /// Column.
        column: u32,
        /// What is wrong.
        what: String,
    },
    /// PTX (as far as can be told) that this crate does not know.
    #[error("ptx line {line}: `{spelling}` is not supported")]
    Unsupported {
        /// The opcode with its modifiers, directive or operand as written.
        spelling: String,
        /// Line.
        line: u32,
    },
}
