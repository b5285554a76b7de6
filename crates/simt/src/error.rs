//! Errors of loading and of using a session.

/// Why a module cannot run on the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Something that the device does not implement.
    #[error("ptx line {line}: `{spelling}` is not supported{}", at(.source_line))]
    Unsupported {
        /// The instruction as written, or what is missing.
        spelling: String,
        /// Line of the PTX text, from 1.
        line: u32,
        /// Source line, where `.loc` says it.
        source_line: Option<u32>,
    },
    /// A module that breaks a rule.
    #[error("ptx line {line}: {what}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// Line of the PTX text, from 1.
        line: u32,
    },
    /// The entry asked for does not exist.
    #[error("no kernel `{name}` in the module; it has {available}")]
    UnknownKernel {
        /// Asked for.
        name: String,
        /// What there is, as a list for people.
        available: String,
    },
}

fn at(line: &Option<u32>) -> String {
    line.map_or_else(String::new, |l| format!(" (source line {l})"))
}

/// Why a call on a session was refused; the session stays usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The entry asked for does not exist or was not loaded.
    #[error("no kernel `{name}` was loaded")]
    UnknownKernel {
        /// Asked for.
        name: String,
    },
    /// The number of arguments differs from the number of parameters.
    #[error("`{kernel}` takes {expected} arguments, got {got}")]
    ArgumentCount {
        /// Entry.
        kernel: String,
        /// Parameters.
        expected: usize,
        /// Arguments.
        got: usize,
    },
    /// An argument's size differs from its parameter's.
    #[error("argument {index} of `{kernel}` has {got} bytes, its parameter {expected}")]
    ArgumentSize {
        /// Entry.
        kernel: String,
        /// Argument, from 0.
        index: usize,
        /// Bytes of the parameter.
        expected: u64,
        /// Bytes given.
        got: u64,
    },
    /// Initial bytes of another length than the buffer.
    #[error("buffer `{name}` has {size_bytes} bytes, its contents {got}")]
    ContentsSize {
        /// Buffer.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// Bytes given.
        got: u64,
    },
    /// The memory cap would be passed.
    #[error("buffer `{name}` of {size_bytes} bytes passes the memory cap of {cap_bytes} bytes")]
    OutOfMemory {
        /// Buffer.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// The cap.
        cap_bytes: u64,
    },
    /// A buffer beyond what an address can tell.
    #[error("buffer `{name}` has {size_bytes} bytes, the device addresses at most {limit_bytes} in one")]
    TooLarge {
        /// Buffer.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// The largest size.
        limit_bytes: u64,
    },
    /// The arena has bytes for everything.
    #[error("sparse buffer `{name}` needs strict memory, not the arena")]
    SparseArena {
        /// Buffer.
        name: String,
    },
    /// A range that is not within its buffer.
    #[error(
        "bytes {offset_bytes} to {offset_bytes} + {len_bytes} are not within `{name}` ({size_bytes} bytes)"
    )]
    Range {
        /// Buffer.
        name: String,
        /// First byte.
        offset_bytes: i64,
        /// Length.
        len_bytes: u64,
        /// The buffer's size.
        size_bytes: u64,
    },
    /// Buffers of the arena are placed together at the first launch; none can follow.
    #[error("buffer `{name}` comes after the first launch; the arena is laid out already")]
    AfterLaunch {
        /// Buffer.
        name: String,
    },
}
