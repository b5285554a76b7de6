//! What runs the points: an emulated device, or PyTorch in a Python of the user's.

use std::path::PathBuf;
use std::process::Command;

use assay_worker::Script;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::device::Device;
use crate::error::SweepError;
use crate::geometry::Layout;
use crate::point::Point;
use crate::worker::{Exchange, VERSION};

/// The hidden command under which this binary starts itself as the worker of an emulated device.
pub const EMULATED_WORKER: &str = "__sweep-worker";

/// A backend.
#[derive(Clone, Debug)]
pub enum Backend {
    /// An emulated device.
    Emulated(Box<Device>),
    /// PyTorch.
    Torch {
        /// The interpreter.
        python: PathBuf,
        /// The device string: `cpu`, `cuda`, `mps`.
        device: String,
        /// The version that was asked for; empty for whatever the interpreter has.
        version: String,
    },
}

impl Backend {
    /// As the command line has it.
    pub fn name(&self) -> String {
        match self {
            Backend::Emulated(d) => format!("emulated:{}", d.name),
            Backend::Torch { .. } => "torch".to_owned(),
        }
    }

    /// The backend with what tells its runs apart: for progress.
    pub fn label(&self) -> String {
        match self {
            Backend::Emulated(_) => self.name(),
            Backend::Torch { device, version, .. } => format!("torch {version} {device}").replace("  ", " "),
        }
    }

    /// The version of the framework, where one was asked for.
    pub fn version(&self) -> String {
        match self {
            Backend::Emulated(d) => d.version.clone(),
            Backend::Torch { version, .. } => version.clone(),
        }
    }

    /// The device's name in records.
    pub fn device(&self) -> String {
        match self {
            Backend::Emulated(d) => d.name.clone(),
            Backend::Torch { device, .. } => device.clone(),
        }
    }

    /// SHA-256 of the worker's text: of the device file for an emulated device.
    pub fn sha256(&self) -> String {
        let text = match self {
            Backend::Emulated(d) => toml::to_string(d).unwrap_or_default(),
            Backend::Torch { .. } => Script::Sweep.source(),
        };
        hex(&Sha256::digest(text.as_bytes()))
    }

    /// The program of a fresh worker.
    ///
    /// # Errors
    /// Something that it needs is missing.
    pub fn command(&self, scratch: &std::path::Path) -> Result<Command, SweepError> {
        match self {
            Backend::Emulated(_) => {
                let exe = std::env::current_exe()
                    .map_err(|e| SweepError::bad(format!("cannot find this program's own file: {e}")))?;
                let mut command = Command::new(exe);
                command.arg(EMULATED_WORKER);
                Ok(command)
            }
            Backend::Torch { python, .. } => {
                Script::Sweep.command(python, scratch).map_err(SweepError::writing(scratch))
            }
        }
    }

    /// The first request.
    pub fn run_request(&self, point: &Point, exchange: &Exchange, threads: usize) -> Value {
        let g = point.geometry();
        let operand = |v: &crate::geometry::View| {
            let inner = if v.transposed { [v.cols, v.rows] } else { [v.rows, v.cols] };
            json!({
                "name": v.role.name(),
                "dtype": point.dtype,
                "storage": [v.skip + v.batches, inner[0], inner[1]],
                "skip": v.skip,
                "transpose": v.transposed,
                "place": "device",
            })
        };
        let mut operands = vec![operand(&g.a), operand(&g.b)];
        if point.backward {
            operands.push(operand(&g.g()));
        }
        let mut request = json!({
            "type": "run",
            "version": VERSION,
            "exchange": {"path": exchange.path(), "bytes": exchange.len()},
            "device": self.device(),
            "threads": threads,
            "seed": point.seed,
            "call": "torch.bmm(a, b)",
            "operands": operands,
            "outputs": ["out"],
            "backward": if point.backward { json!({"upstream": "g"}) } else { Value::Null },
            "point": point,
        });
        if let (Backend::Emulated(device), Some(map)) = (self, request.as_object_mut()) {
            map.insert("emulated".into(), serde_json::to_value(device).unwrap_or(Value::Null));
        }
        request
    }

    /// Bytes of memory that runs are reckoned against: that of the machine (`host` where given) for a backend that holds whole
    /// tensors, what its file says for an emulated device, which holds none.
    pub fn memory(&self, host: Option<u64>) -> Option<u64> {
        match self {
            Backend::Emulated(d) => d.memory,
            Backend::Torch { .. } => host.or_else(physical_memory),
        }
    }

    /// Whether a run needs memory for its tensors at all.
    pub fn materialises(&self) -> bool {
        matches!(self, Backend::Torch { .. })
    }

    /// What it cannot run.
    pub fn refuses(&self, point: &Point) -> Option<String> {
        (point.layout == Layout::Offset && point.backward)
            .then(|| "a backward pass behind an offset".to_owned())
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Why a run that holds `tensors` bytes of tensors at once is skipped, where it is: its estimate, 1.05 x the tensors and 3 GiB
/// on the host, exceeds 60% of `memory` bytes (boundary paper, §3, and its plan).
pub fn over_memory(tensors: u64, memory: Option<u64>) -> Option<String> {
    let limit = memory? / 10 * 6;
    let estimate = (tensors / 20).saturating_add(tensors).saturating_add(3 << 30);
    (estimate > limit).then(|| format!("{estimate} bytes estimated, more than 60% of the memory ({limit})"))
}

/// Bytes of physical memory, where the system tells.
pub fn physical_memory() -> Option<u64> {
    if let Ok(text) = std::fs::read_to_string("/proc/meminfo") {
        let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        return kib.checked_mul(1024);
    }
    let out = Command::new("sysctl").args(["-n", "hw.memsize"]).output().ok()?;
    String::from_utf8_lossy(&out.stdout).trim().parse().ok()
}
