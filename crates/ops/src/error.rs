//! Errors of this crate.

/// A reference text that is not a program: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ProgramError {
    /// Line within the reference text, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, lower case.
    pub message: String,
}

/// Why a program could not be evaluated on given inputs.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpsError {
    /// An input that the program reads was not given.
    #[error("input `{0}` is not given")]
    MissingInput(String),
    /// A scalar or dim that the program reads was not given.
    #[error("scalar `{0}` is not given")]
    MissingScalar(String),
    /// An output was asked for that no line defines.
    #[error("output `{0}` is not defined by the reference")]
    UnknownOutput(String),
    /// An output whose value is a number, a tuple or a string.
    #[error("output `{name}` is {what}, not a tensor")]
    NotATensor {
        /// The output's name.
        name: String,
        /// What it is instead.
        what: String,
    },
    /// An operator refused its arguments, for their shapes as a rule.
    #[error("`{op}` at line {line}: {message}{}", shapes_note(shapes))]
    Op {
        /// The operator's name in the table.
        op: &'static str,
        /// Line within the reference text, from 1.
        line: u32,
        /// What is wrong.
        message: String,
        /// Shapes of the tensors among its arguments, in order.
        shapes: Vec<Vec<u64>>,
    },
    /// An input or output tensor does not hold what its shape says, or does not fit in memory.
    #[error("tensor `{name}`: {message}")]
    BadTensor {
        /// The tensor's name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
}

fn shapes_note(shapes: &[Vec<u64>]) -> String {
    if shapes.is_empty() {
        return String::new();
    }
    let list: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
    format!(" (shapes {})", list.join(", "))
}

/// What an operator says when it refuses; the interpreter adds the operator, the line and the shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// A refusal with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Fault(message.into())
    }
}
