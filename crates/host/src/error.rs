//! Errors of host code.

/// What stops host code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "`line` and `column` are 1-based positions in the kernel file")]
pub enum HostError {
    /// The file has no function `launch`.
    #[error("the file has no host function `launch`")]
    NoLaunch,
    /// A construct outside the documented subset: neither wrong nor right.
    #[error("{line}:{column}: {construct} is not supported in host code")]
    Unsupported {
        /// What it is, for the message.
        construct: String,
        line: u32,
        column: u32,
    },
    /// Code that a C++ compiler would refuse.
    #[error("{line}:{column}: host code would not compile: {what}")]
    Invalid {
        /// What is wrong.
        what: String,
        line: u32,
        column: u32,
    },
    /// Code that goes wrong when it runs.
    #[error("{line}:{column}: host code fails: {what}")]
    Fault {
        /// What went wrong.
        what: String,
        line: u32,
        column: u32,
    },
    /// Code that does not end within its budget.
    #[error("{line}:{column}: host code exceeds its budget: {what}")]
    Exhausted {
        /// Which budget.
        what: String,
        line: u32,
        column: u32,
    },
    /// A parameter of `launch` that nothing gives a value.
    #[error("{line}:{column}: parameter `{parameter}` of `launch` is not bound: {why}")]
    Unbound {
        /// Its name.
        parameter: String,
        /// Why not.
        why: String,
        line: u32,
        column: u32,
    },
}

impl HostError {
    /// Line and column, 1-based, where the error has a position.
    pub fn position(&self) -> Option<(u32, u32)> {
        match self {
            HostError::NoLaunch => None,
            HostError::Unsupported { line, column, .. }
            | HostError::Invalid { line, column, .. }
            | HostError::Fault { line, column, .. }
            | HostError::Exhausted { line, column, .. }
            | HostError::Unbound { line, column, .. } => Some((*line, *column)),
        }
    }

    /// The message without its position.
    pub fn message(&self) -> String {
        match self {
            HostError::NoLaunch => self.to_string(),
            HostError::Unsupported { construct, .. } => format!("{construct} is not supported in host code"),
            HostError::Invalid { what, .. } => format!("host code would not compile: {what}"),
            HostError::Fault { what, .. } => format!("host code fails: {what}"),
            HostError::Exhausted { what, .. } => format!("host code exceeds its budget: {what}"),
            HostError::Unbound { parameter, why, .. } => {
                format!("parameter `{parameter}` of `launch` is not bound: {why}")
            }
        }
    }
}
