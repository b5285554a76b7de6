//! Emulated devices: what a misbehaving backend does, as mechanisms in a file, never as outcomes.
//!
//! A device is a list of paths. The first whose condition holds for a product computes it, as its mechanisms say; where
//! none holds the device computes rightly. Every wrong element is thus computed from what the mechanism reads.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Situation, parse_count};
use crate::error::SweepError;
use crate::geometry::View;
use crate::misread::Misreading;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A device file (`sweeps/devices/*.toml`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The name after `emulated:`.
    pub name: String,
    /// Other names of the same behaviour.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Where the behaviour was published or how it was made up.
    pub source: String,
    /// The version that records carry; of an alias, what follows its last `-`.
    #[serde(default)]
    pub version: String,
    /// Bytes of memory of the device; runs are skipped by it.
    #[serde(default)]
    pub memory: Option<u64>,
    /// The paths, in order.
    #[serde(default, rename = "path")]
    pub paths: Vec<PathSpec>,
    /// Operations other than bmm, where they misbehave.
    #[serde(default, rename = "operation")]
    pub operations: Vec<OperationSpec>,
    /// What happens to operands on their way to the device.
    #[serde(default)]
    pub transfer: Option<Transfer>,
}

/// One way in which the device computes a product.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// When it is taken.
    pub when: String,
    /// Transposed storages are read as if they were contiguous.
    #[serde(default)]
    pub ignores_strides: bool,
    /// Views are taken to begin where their storage begins.
    #[serde(default)]
    pub ignores_offset: bool,
    /// Flat indices into operands wrap around.
    #[serde(default)]
    pub wraps: Option<Wrap>,
    /// It raises this message.
    #[serde(default)]
    pub raises: Option<String>,
    /// It aborts the process, with this message on standard error.
    #[serde(default)]
    pub aborts: Option<String>,
    /// It never returns.
    #[serde(default)]
    pub hangs: bool,
    /// The output is left at zero.
    #[serde(default)]
    pub zeros: bool,
    /// The output is left at zero from this element on.
    #[serde(default)]
    pub zero_from: Option<String>,
    /// Only the first (elements mod this) elements are written.
    #[serde(default)]
    pub first_modulo: Option<String>,
    /// A published behaviour without a known mechanism: only the first and the last batch are wrong, and half of their
    /// elements are zero.
    #[serde(default)]
    pub observed_unexplained: bool,
}

/// What the device does with an operation other than bmm: a mechanism about its output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// The case's name.
    pub op: String,
    /// In these versions; in all where empty.
    #[serde(default)]
    pub versions: Vec<String>,
    /// When.
    pub when: String,
    /// See [`PathSpec`].
    #[serde(default)]
    pub raises: Option<String>,
    /// See [`PathSpec`].
    #[serde(default)]
    pub aborts: Option<String>,
    /// See [`PathSpec`].
    #[serde(default)]
    pub zero_from: Option<String>,
    /// See [`PathSpec`].
    #[serde(default)]
    pub first_modulo: Option<String>,
}

/// An index that wraps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrap {
    /// At this element count.
    pub at: String,
    /// Of which operands.
    pub operands: Which,
}

/// Which operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// Every one.
    All,
    /// Contiguous ones.
    Contiguous,
    /// Transposed ones and those behind leading batches.
    View,
}

/// A transfer that corrupts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Elements of a storage from this byte on arrive as zero.
    pub zero_from_byte: String,
}

/// What a path does, its texts read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// How the left operand is read.
    pub left: Misreading,
    /// How the right operand is read.
    pub right: Misreading,
    /// Elements of the output from here on are zero.
    pub zero_from: Option<u64>,
    /// See [`PathSpec::observed_unexplained`].
    pub unexplained: bool,
}

/// What a device does with one product.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// It returns, having computed as the effects say.
    Computes(Effects),
    /// It raises.
    Raises(String),
    /// It takes the process down.
    Aborts(String),
    /// It never returns.
    Hangs,
}

impl Device {
    /// Reads a device file.
    ///
    /// # Errors
    /// TOML of another form, and conditions and counts that cannot be read.
    pub fn parse(text: &str, origin: &str) -> Result<Device, SweepError> {
        let device: Device = toml::from_str(text)
            .map_err(|e| SweepError::bad(format!("{origin}: {}", e.to_string().trim_end())))?;
        for (i, path) in device.paths.iter().enumerate() {
            let at = |e: SweepError| SweepError::bad(format!("{origin}: path {}: {e}", i + 1));
            path.when.parse::<Condition>().map_err(at)?;
            let counts =
                [path.zero_from.as_ref(), path.first_modulo.as_ref(), path.wraps.as_ref().map(|w| &w.at)];
            for text in counts.into_iter().flatten() {
                if parse_count(text).is_none_or(|n| n == 0) {
                    return Err(at(SweepError::bad(format!("`{text}` is not a count"))));
                }
            }
        }
        for op in &device.operations {
            let at = |e: SweepError| SweepError::bad(format!("{origin}: operation {}: {e}", op.op));
            op.when.parse::<Condition>().map_err(at)?;
            for text in [&op.zero_from, &op.first_modulo].into_iter().flatten() {
                if parse_count(text).is_none_or(|n| n == 0) {
                    return Err(at(SweepError::bad(format!("`{text}` is not a count"))));
                }
            }
        }
        if let Some(t) = &device.transfer
            && parse_count(&t.zero_from_byte).is_none()
        {
            return Err(SweepError::bad(format!("{origin}: `{}` is not a count of bytes", t.zero_from_byte)));
        }
        Ok(device)
    }

    /// The built-in device of that name, or a device file.
    ///
    /// # Errors
    /// No such device, or a file that cannot be read or parsed.
    pub fn find(name: &str) -> Result<Device, SweepError> {
        if name.ends_with(".toml") || name.contains('/') {
            let path = Path::new(name);
            let text = std::fs::read_to_string(path).map_err(SweepError::reading(path))?;
            return Device::parse(&text, name);
        }
        let mut names = Vec::new();
        for (file, text) in DEVICES {
            let mut device = Device::parse(text, &format!("sweeps/devices/{file}.toml"))?;
            if device.name == name {
                return Ok(device);
            }
            if device.aliases.iter().any(|a| a == name) {
                device.name = name.to_owned();
                device.version = name.rsplit('-').next().unwrap_or_default().to_owned();
                return Ok(device);
            }
            names.push(device.name);
            names.extend(device.aliases);
        }
        Err(SweepError::bad(format!("there is no emulated device `{name}`; there are {}", names.join(", "))))
    }

    /// What it does with a product.
    pub fn behaviour(&self, s: &Situation) -> Behaviour {
        // Conditions and counts were read when the file was.
        let Some(path) = self.paths.iter().find(|p| p.when.parse::<Condition>().is_ok_and(|c| c.holds(s)))
        else {
            return Behaviour::Computes(Effects::default());
        };
        if let Some(text) = &path.raises {
            return Behaviour::Raises(text.clone());
        }
        if let Some(text) = &path.aborts {
            return Behaviour::Aborts(text.clone());
        }
        if path.hangs {
            return Behaviour::Hangs;
        }
        let reading = |view: &View| Misreading {
            ignore_strides: path.ignores_strides,
            ignore_offset: path.ignores_offset,
            wrap: path.wraps.as_ref().and_then(|w| {
                let hit = match w.operands {
                    Which::All => true,
                    Which::Contiguous => view.contiguous(),
                    Which::View => !view.contiguous(),
                };
                if hit { parse_count(&w.at) } else { None }
            }),
        };
        let numel = s.product.numel();
        let modulo = path
            .first_modulo
            .as_deref()
            .and_then(parse_count)
            .map(|k| if numel < k { numel } else { numel % k });
        let zero_from = [path.zeros.then_some(0), path.zero_from.as_deref().and_then(parse_count), modulo]
            .into_iter()
            .flatten()
            .min();
        Behaviour::Computes(Effects {
            left: reading(&s.product.left),
            right: reading(&s.product.right),
            zero_from,
            unexplained: path.observed_unexplained,
        })
    }

    /// What it does with the operation `op`, whose output has the size that `s` says.
    pub fn operation(&self, op: &str, s: &Situation) -> Behaviour {
        let found = self.operations.iter().find(|o| {
            o.op == op
                && (o.versions.is_empty() || o.versions.contains(&self.version))
                && o.when.parse::<Condition>().is_ok_and(|c| c.holds(s))
        });
        let Some(o) = found else { return Behaviour::Computes(Effects::default()) };
        if let Some(text) = &o.raises {
            return Behaviour::Raises(text.clone());
        }
        if let Some(text) = &o.aborts {
            return Behaviour::Aborts(text.clone());
        }
        let numel = s.product.numel();
        let modulo = o
            .first_modulo
            .as_deref()
            .and_then(parse_count)
            .map(|k| if numel < k { numel } else { numel % k });
        let zero_from = [o.zero_from.as_deref().and_then(parse_count), modulo].into_iter().flatten().min();
        Behaviour::Computes(Effects { zero_from, ..Effects::default() })
    }

    /// From which element on a storage of `dtype` arrives as zero.
    pub fn corrupt_from(&self, size_bytes: u64) -> Option<u64> {
        self.transfer.as_ref().and_then(|t| parse_count(&t.zero_from_byte)).map(|b| b / size_bytes)
    }
}

/// Every built-in device, by its names.
pub fn names() -> Vec<String> {
    DEVICES
        .iter()
        .filter_map(|(file, text)| Device::parse(text, file).ok())
        .flat_map(|d| std::iter::once(d.name).chain(d.aliases))
        .collect()
}
