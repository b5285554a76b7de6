//! Errors of this crate.

use std::path::PathBuf;

use assay_tensor::TensorError;

/// What stops a problem from loading.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something in `problem.toml` or `kernel.cu` is wrong; the message quotes the line.
    #[error("{}:{line}:{column}: {message}\n{snippet}", file.display())]
    At {
        /// The file.
        file: PathBuf,
        /// 1-based line.
        line: u32,
        /// 1-based column, in characters.
        column: u32,
        /// What is wrong.
        message: String,
        /// The line, quoted with a mark under the place.
        snippet: String,
    },
    /// A file that the folder should have is not there.
    #[error("`{}` has no `{name}` (a problem is a folder with `problem.toml` and `kernel.cu`)", dir.display())]
    Missing {
        /// The folder.
        dir: PathBuf,
        /// The file's name.
        name: &'static str,
    },
    /// A file that cannot be read, is no regular file, is not UTF-8 or is larger than a problem's file may be.
    #[error("cannot use `{}`: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// A pattern that names no problem.
    #[error("no problem matches `{pattern}` (looked in {looked_in})")]
    NoMatch {
        /// As given.
        pattern: String,
        /// Where was looked.
        looked_in: String,
    },
    /// Two folders that claim one level and id.
    #[error("problem {level}/{id} is defined twice: in `{}` and in `{}`", first.display(), second.display())]
    Twice {
        /// Level of both.
        level: u32,
        /// Id of both.
        id: u32,
        /// The folder seen first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

/// What stops a recipe from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad recipe `{text}`: {what} (at character {at})")]
pub struct RecipeError {
    /// The whole text.
    pub text: String,
    /// Byte offset of the fault.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

/// What stops inputs from being made.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A recipe overrides a dim that the problem does not have.
    #[error("problem {problem} has no dim `{name}` (it has {known})")]
    UnknownDim {
        /// `1/23`.
        problem: String,
        /// The dim asked for.
        name: String,
        /// The dims there are.
        known: String,
    },
    /// An expression over dims has no value at these extents.
    #[error("`{what}` of problem {problem} has no value at these extents: {why}")]
    Expression {
        /// `1/23`.
        problem: String,
        /// Which expression.
        what: String,
        /// Why.
        why: String,
    },
    /// The inputs would not fit in memory.
    #[error(
        "the inputs of problem {problem} take {bytes} bytes at these extents, above the limit of {limit}"
    )]
    TooLarge {
        /// `1/23`.
        problem: String,
        /// Bytes of all inputs.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A matrix that is to be symmetric is not square.
    #[error("a symmetric matrix has as many rows as columns, not {rows} x {columns}")]
    NotSquare {
        /// Its rows.
        rows: u64,
        /// Its columns.
        columns: u64,
    },
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
