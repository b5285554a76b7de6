//! Failures of the host interpreter while they still carry byte offsets; [`crate::HostError`] has the lines.

use crate::error::HostError;

/// Which variant of [`HostError`] a failure becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    Unsupported,
    Invalid,
    Fault,
    Exhausted,
}

/// A failure at a byte offset of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    pub kind: FailKind,
    pub at: u32,
    pub what: String,
}

impl Fail {
    /// A construct outside the documented subset.
    pub fn unsupported(at: u32, what: impl Into<String>) -> Fail {
        Fail { kind: FailKind::Unsupported, at, what: what.into() }
    }

    /// Code that a C++ compiler would refuse.
    pub fn invalid(at: u32, what: impl Into<String>) -> Fail {
        Fail { kind: FailKind::Invalid, at, what: what.into() }
    }

    /// Code that goes wrong when it runs.
    pub fn fault(at: u32, what: impl Into<String>) -> Fail {
        Fail { kind: FailKind::Fault, at, what: what.into() }
    }

    /// Code that does not end within its budget.
    pub fn exhausted(at: u32, what: impl Into<String>) -> Fail {
        Fail { kind: FailKind::Exhausted, at, what: what.into() }
    }

    /// The public error, with a line and a column of `source`.
    pub fn locate(self, source: &str) -> HostError {
        let (line, column) = line_column(source, self.at as usize);
        let what = self.what;
        match self.kind {
            FailKind::Unsupported => HostError::Unsupported { construct: what, line, column },
            FailKind::Invalid => HostError::Invalid { what, line, column },
            FailKind::Fault => HostError::Fault { what, line, column },
            FailKind::Exhausted => HostError::Exhausted { what, line, column },
        }
    }
}

/// 1-based line and column (in characters) of a byte offset; an offset past the end is the end.
pub fn line_column(source: &str, at: usize) -> (u32, u32) {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    let before = &source[..at];
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |p| p + 1);
    let column = before[start..].chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
