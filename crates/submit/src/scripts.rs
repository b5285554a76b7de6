//! The workers, which are Python, and the commands that start them.

use std::io;
use std::path::Path;
use std::process::Command;

/// A Python file of the package, by its name.
macro_rules! python {
    ($file:literal) => {
        ($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/assay/", $file)))
    };
}

/// The files of a worker by name, the one that is started last.
pub(crate) type Script = &'static [(&'static str, &'static str)];

/// The fork server and its children.
pub(crate) const SUBMISSION: Script = &[
    python!("worker_protocol.py"),
    python!("submission_tensors.py"),
    python!("confinement.py"),
    python!("cuda_on_cpu.py"),
    python!("compiled_host.py"),
    python!("submission_worker.py"),
];

/// What becomes a C++ compiler.
pub(crate) const COMPILER: Script = &[python!("confinement.py"), python!("host_compiler.py")];

/// Problem files.
pub(crate) const REFERENCE: Script = &[
    python!("worker_protocol.py"),
    python!("submission_tensors.py"),
    python!("cuda_on_cpu.py"),
    python!("on_cpu.py"),
    python!("file_numbers.py"),
    python!("reference_worker.py"),
];

/// The command that starts a worker, whose files are written to `scratch`, a folder that is the caller's alone.
///
/// # Errors
/// A folder that cannot be written.
pub(crate) fn command(script: Script, python: &Path, scratch: &Path) -> io::Result<Command> {
    let mut last = scratch.to_path_buf();
    for (name, text) in script {
        last = scratch.join(name);
        std::fs::write(&last, text)?;
    }
    let mut command = Command::new(python);
    // Safe paths would take the script's own folder off the path, where its other half is.
    command.env_remove("PYTHONSAFEPATH").arg(last);
    Ok(command)
}
