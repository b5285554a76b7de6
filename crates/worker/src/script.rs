//! The workers that are Python, and the command that starts one.

use std::io;
use std::path::Path;
use std::process::Command;

/// What every worker shares, a module beside it.
const PROTOCOL: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/assay/worker_protocol.py"));

/// A worker written in Python; it needs PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// One operation at one size, on any device: `docs/sweep-worker.md`.
    Sweep,
    /// Reference programs and problem files on the CPU: `docs/torch-worker.md`.
    Torch,
}

impl Script {
    fn file(self) -> &'static str {
        match self {
            Script::Sweep => "sweep_worker.py",
            Script::Torch => "torch_worker.py",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Script::Sweep => {
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/assay/sweep_worker.py"))
            }
            Script::Torch => {
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/assay/torch_worker.py"))
            }
        }
    }

    /// Everything that runs in the worker, for digests: a change of it is another worker.
    pub fn source(self) -> String {
        format!("{PROTOCOL}{}", self.text())
    }

    /// The command that starts it with this interpreter. Its files are written to `scratch` where they are not there yet,
    /// a folder that is the caller's alone: it comes first on the path, so nothing of the folder that the user is in is
    /// imported.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn command(self, python: &Path, scratch: &Path) -> io::Result<Command> {
        for (name, text) in [("worker_protocol.py", PROTOCOL), (self.file(), self.text())] {
            let file = scratch.join(name);
            if !file.is_file() {
                std::fs::write(&file, text)?;
            }
        }
        let mut command = Command::new(python);
        // Safe paths would take the script's own folder off the path, where its other half is.
        command.env_remove("PYTHONSAFEPATH").arg(scratch.join(self.file()));
        Ok(command)
    }
}
