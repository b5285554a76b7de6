//! The workers that are Python, and the command that starts one.

use std::io;
use std::path::Path;
use std::process::Command;

/// A Python file of the package, by its name.
macro_rules! python {
    ($file:literal) => {
        ($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/assay/", $file)))
    };
}

/// What every worker shares, a module beside it.
const PROTOCOL: (&str, &str) = python!("worker_protocol.py");

/// A worker written in Python; it needs PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// One operation at one size, on any device: `docs/sweep-worker.md`.
    Sweep,
    /// Reference programs and problem files on the CPU: `docs/torch-worker.md`.
    Torch,
}

impl Script {
    /// Its files by name, the one that is started last.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Script::Sweep => &[PROTOCOL, python!("sweep_worker.py")],
            Script::Torch => &[
                PROTOCOL,
                python!("file_numbers.py"),
                python!("benchmark_file.py"),
                python!("torch_export.py"),
                python!("torch_extents.py"),
                python!("torch_worker.py"),
            ],
        }
    }

    /// Everything that runs in the worker, for digests: a change of it is another worker.
    pub fn source(self) -> String {
        self.files().iter().map(|(_, text)| *text).collect()
    }

    /// The command that starts it with this interpreter. Its files are written to `scratch` where they are not there yet,
    /// a folder that is the caller's alone: it comes first on the path, so nothing of the folder that the user is in is
    /// imported.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn command(self, python: &Path, scratch: &Path) -> io::Result<Command> {
        let mut last = scratch.to_path_buf();
        for (name, text) in self.files() {
            last = scratch.join(name);
            if !last.is_file() {
                std::fs::write(&last, text)?;
            }
        }
        let mut command = Command::new(python);
        // Safe paths would take the script's own folder off the path, where its other half is.
        command.env_remove("PYTHONSAFEPATH").arg(last);
        Ok(command)
    }
}
