//! What several commands need: the compiler and the number of threads.

use std::io::ErrorKind;
use std::path::Path;

use assay_nvrtc::{CompileError, CompileErrorKind, Compiler, Install, Limits, NvrtcError, WorkerCommand};

use crate::cli::{COMPILE_WORKER, Common, CompileArgs};
use crate::exit::{Exit, Failure};
use crate::progress::Bar;

/// Threads to use.
pub fn jobs(common: &Common) -> usize {
    common
        .jobs
        .map(usize::from)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        .max(1)
}

/// The threads of a command.
pub fn pool(common: &Common) -> Result<rayon::ThreadPool, Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs(common))
        .build()
        .map_err(|e| Failure::bug(format!("threads: {e}")))
}

/// Finds NVRTC, or installs it once; says so on stderr while it takes its time.
///
/// # Errors
/// Bad input with what to do where it can be neither found nor installed.
pub fn install(bar: &Bar) -> Result<Install, Failure> {
    Install::locate_or_install(&worker()?, &mut |what| bar.message(what)).map_err(nvrtc)
}

/// How this binary starts itself as a compile worker.
///
/// # Errors
/// A bug where the system does not say what binary runs.
pub fn worker() -> Result<WorkerCommand, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::bug(format!("where is this binary? {e}")))?;
    Ok(WorkerCommand { program, args: vec![COMPILE_WORKER.into()] })
}

/// A compiler with that many workers.
///
/// # Errors
/// As [`install`].
pub fn compiler(bar: &Bar, jobs: usize) -> Result<Compiler, Failure> {
    Ok(Compiler::new(install(bar)?, worker()?, jobs, Limits::default()))
}

/// What the compiler is asked for.
pub fn compile_options(args: &CompileArgs) -> assay_nvrtc::Options {
    assay_nvrtc::Options {
        arch: args.arch.clone(),
        std: args.std.clone(),
        fmad: args.fmad,
        fast_math: args.fast_math,
        defines: args.define.iter().map(|d| define(d)).collect(),
        include_dirs: args.include.clone(),
    }
}

/// `NAME=V` as name and value; `NAME` alone is 1, as compilers have it.
fn define(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

/// The failure that an NVRTC error is.
fn nvrtc(e: NvrtcError) -> Failure {
    let full = |e: &std::io::Error| {
        matches!(
            e.kind(),
            ErrorKind::StorageFull
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::PermissionDenied
                | ErrorKind::QuotaExceeded
        )
    };
    match &e {
        NvrtcError::Io { source, .. } if full(source) => Failure::cannot_write(e),
        NvrtcError::Worker { .. } => Failure::bug(e),
        _ => Failure::bad_input(e),
    }
}

/// The failure that a refused source is: the compiler's log with the lines of the user's file.
pub fn refused(file: &Path, e: &CompileError) -> Failure {
    let message = format!("`{}` does not compile: {e}\n{}", file.display(), e.log.trim_end());
    match e.kind {
        CompileErrorKind::Options => Failure::bad_input(e),
        CompileErrorKind::Unavailable | CompileErrorKind::Crashed => Failure::bug(message),
        CompileErrorKind::Rejected => Failure::bad_input(message),
        CompileErrorKind::TimedOut => Failure { exit: Exit::Exhausted, message },
    }
}
