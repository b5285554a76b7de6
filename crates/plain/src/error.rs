//! Why a chain has no outputs.

use assay_ops::OpsError;

/// Why a program could not be run as a chain of plain kernels.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlainError {
    /// An operator has no plain kernel, or the device lacks something.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The budget of instructions or memory is spent.
    #[error("exhausted: {0}")]
    Exhausted(String),
    /// The program refuses its inputs.
    #[error(transparent)]
    Refused(#[from] OpsError),
    /// A plain kernel does not compile, does not launch, or does what it must not: a fault of its text or frame.
    #[error("the plain kernel `{file}` of `{op}`: {what}")]
    Kernel {
        /// The operator.
        op: &'static str,
        /// The kernel's file.
        file: &'static str,
        /// What is wrong.
        what: String,
    },
}
