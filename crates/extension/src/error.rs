//! How building or calling an extension can end.

/// What stops an extension. The five never blur: `Rejected`, `Raised` and `Fault` are about the submission,
/// `Unsupported` and `Exhausted` about us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionError {
    /// The sources would not compile, link or load.
    #[error("{}{message}", at(.line))]
    Rejected {
        /// What the compiler says, or would.
        message: String,
        /// 1-based line of the source that `source` counts in.
        line: Option<u32>,
    },
    /// A construct that the interpreter, or an instruction that the device, does not have.
    #[error("{}{construct} is not supported in host code", at(.line))]
    Unsupported {
        /// What it is.
        construct: String,
        /// 1-based line, as for `Rejected`.
        line: Option<u32>,
    },
    /// A C++ exception left the function: a `RuntimeError` in Python.
    #[error("{message}")]
    Raised {
        /// Its text.
        message: String,
        /// 1-based line of the check or `throw`.
        line: Option<u32>,
    },
    /// The kernel or the host code went wrong as a GPU or a process would report it: an access outside, a trap, an
    /// invalid launch, a null pointer.
    #[error("{}{message}", at(.line))]
    Fault {
        /// What went wrong.
        message: String,
        /// 1-based line, where it is known.
        line: Option<u32>,
    },
    /// A budget of steps, instructions, memory or time ran out.
    #[error("{}{message}", at(.line))]
    Exhausted {
        /// Which.
        message: String,
        /// 1-based line, where it is known.
        line: Option<u32>,
    },
}

fn at(line: &Option<u32>) -> String {
    line.map_or_else(String::new, |l| format!("line {l}: "))
}
