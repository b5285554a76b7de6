//! What can go wrong before a single mutant exists.

/// Why a source has no mutants to offer.
///
/// Lines are 1-based.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutateError {
    /// The file holds no function definition, so there is nothing to mutate.
    #[error(
        "`{file}`:{line}: no function definition found; pass a CUDA file with a kernel or a `launch` function"
    )]
    NoFunction {
        /// File name as it was given.
        file: String,
        /// Line of the first syntax error, or 1 where the text parses.
        line: u32,
    },
    /// The file is longer than its spans can say.
    #[error(
        "`{file}`:1: source of {len_bytes} bytes is over the limit of {limit_bytes} bytes; split the file"
    )]
    TooLarge {
        /// File name as it was given.
        file: String,
        /// Length of the source, in bytes.
        len_bytes: u64,
        /// Largest length accepted, in bytes.
        limit_bytes: u64,
    },
    /// The CUDA grammar does not fit the parser library.
    #[error(
        "`{file}`:1: the CUDA grammar was refused by the parser: {reason}; rebuild with matching versions"
    )]
    Grammar {
        /// File name as it was given.
        file: String,
        /// What the parser said.
        reason: String,
    },
    /// The parser gave up.
    #[error("`{file}`:1: the parser returned no syntax tree; check that the file is CUDA C++ text")]
    NoTree {
        /// File name as it was given.
        file: String,
    },
}
