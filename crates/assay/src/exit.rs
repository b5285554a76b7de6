//! Exit codes, an interface: see the table in the README.

/// What the process answers to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, nothing wrong.
    Fine = 0,
    /// The thing judged is wrong, or below `--fail-under`.
    Wrong = 1,
    /// Usage or bad input: TOML, CUDA, PTX, a run database of another version.
    BadInput = 2,
    /// A baseline failed its own reference.
    BaselineFailed = 3,
    /// Something that Assay cannot do, named.
    Unsupported = 4,
    /// A time or memory budget ran out.
    Exhausted = 5,
    /// A bug of ours.
    Bug = 70,
    /// Full or unwritable disk.
    CannotWrite = 74,
    /// Stopped by Ctrl-C or a termination signal; what was done is committed.
    Interrupted = 130,
}

impl Exit {
    /// Where several apply, the first of these is the answer.
    const PRECEDENCE: [Exit; 9] = [
        Exit::Interrupted,
        Exit::Bug,
        Exit::CannotWrite,
        Exit::BadInput,
        Exit::BaselineFailed,
        Exit::Wrong,
        Exit::Exhausted,
        Exit::Unsupported,
        Exit::Fine,
    ];

    /// The one of two that counts.
    pub fn and(self, other: Exit) -> Exit {
        Exit::PRECEDENCE.into_iter().find(|&e| e == self || e == other).unwrap_or(Exit::Bug)
    }
}

/// A failure with its exit code; `message` is what the user reads after `error:`.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What, where, and what to do; may have several lines.
    pub message: String,
}

impl Failure {
    /// Bad input or usage.
    pub fn bad_input(message: impl ToString) -> Failure {
        Failure { exit: Exit::BadInput, message: message.to_string() }
    }

    /// Something Assay cannot do.
    pub fn unsupported(message: impl ToString) -> Failure {
        Failure { exit: Exit::Unsupported, message: message.to_string() }
    }

    /// A file or folder that cannot be written.
    pub fn cannot_write(message: impl ToString) -> Failure {
        Failure { exit: Exit::CannotWrite, message: message.to_string() }
    }

    /// What must not happen.
    pub fn bug(message: impl ToString) -> Failure {
        Failure { exit: Exit::Bug, message: message.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_as_documented() {
        assert_eq!(Exit::Wrong.and(Exit::BaselineFailed), Exit::BaselineFailed);
        assert_eq!(Exit::Exhausted.and(Exit::Unsupported), Exit::Exhausted);
        assert_eq!(Exit::CannotWrite.and(Exit::BadInput), Exit::CannotWrite);
        assert_eq!(Exit::Fine.and(Exit::Unsupported), Exit::Unsupported);
        assert_eq!(Exit::Bug.and(Exit::CannotWrite), Exit::Bug);
    }
}
