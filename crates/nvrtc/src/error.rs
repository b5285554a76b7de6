//! What can go wrong outside the code that is compiled.

use std::path::PathBuf;

/// Failure to find, install or drive NVRTC. What is wrong with a unit is a [`crate::CompileError`] instead.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// NVRTC is neither named by `ASSAY_NVRTC` nor in the cache.
    #[error(
        "NVRTC is not installed in `{cache}`; run a command that compiles with network access once, or set \
         `ASSAY_NVRTC=/path/to/libnvrtc.so` (see `{command}`)"
    )]
    NotInstalled {
        /// Where it would lie.
        cache: PathBuf,
        /// The command that downloads it.
        command: String,
    },
    /// `ASSAY_NVRTC` does not name a usable library.
    #[error(
        "`ASSAY_NVRTC` names `{path}`, which {reason}; set it to the path of a `libnvrtc.so`, or unset it"
    )]
    BadOverride {
        /// The path given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// pip could not fetch the wheel.
    #[error(
        "cannot download NVRTC ({reason}); repeat with network access, or bring the wheel by hand (`{command}` where there \
         is a network, then unzip it here) and set `ASSAY_NVRTC=/path/to/libnvrtc.so.13`"
    )]
    Download {
        /// The last line pip said, or why it did not start.
        reason: String,
        /// The command that was tried.
        command: String,
    },
    /// The wheel is not the one that this version was built for.
    #[error(
        "the wheel `{file}` has SHA-256 {actual}, expected {expected}; it is not used, check the package index or set \
         `ASSAY_NVRTC=/path/to/libnvrtc.so`"
    )]
    Checksum {
        /// File name of the wheel.
        file: String,
        /// Its hash.
        actual: String,
        /// The pinned hash.
        expected: String,
    },
    /// No wheel is known for this processor.
    #[error("no NVRTC wheel is known for `{platform}`; set `ASSAY_NVRTC=/path/to/libnvrtc.so`")]
    Platform {
        /// Operating system and processor.
        platform: String,
    },
    /// The wheel or the library lacks something.
    #[error("cannot set up NVRTC in `{path}`: {reason}")]
    Setup {
        /// The folder or file at fault.
        path: PathBuf,
        /// What failed.
        reason: String,
    },
    /// No folder for the cache can be named.
    #[error("no cache folder: set `ASSAY_CACHE`, `XDG_CACHE_HOME` or `HOME`")]
    NoCache,
    /// A file operation failed.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A worker could not be started or spoke nonsense.
    #[error("compile worker `{program}` {reason}")]
    Worker {
        /// The program started.
        program: PathBuf,
        /// What it did.
        reason: String,
    },
}

impl NvrtcError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
