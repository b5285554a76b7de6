//! Errors of this crate.

/// What can be wrong with the data that scores are made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// A protocol file that cannot be used.
    #[error("{file}:{line}:{column}: {message}")]
    Protocol {
        /// The file's name as the caller gave it.
        file: String,
        /// 1-based line.
        line: u32,
        /// 1-based column, in characters.
        column: u32,
        /// What is wrong there, and what to do.
        message: String,
    },
    /// A kill matrix that contradicts itself.
    #[error("kill matrix of problem `{problem}`: {what}")]
    Matrix {
        /// `level/id`.
        problem: String,
        /// What is wrong.
        what: String,
    },
    /// No protocol to score.
    #[error("no protocol was given; name at least one")]
    NoProtocol,
    /// Two protocols of one name.
    #[error("two protocols are called `{0}`; give each its own name")]
    DuplicateProtocol(String),
    /// Data shipped with the program cannot be read: a fault of the build.
    #[error("shipped data `{file}`: {message}")]
    Shipped {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
}
