//! Buffers of `assay run` that are too large to hold: made lazily, kept where the kernel wrote.

use std::collections::BTreeMap;

use assay_simt::{Generated, Ptr, Session};
use assay_tensor::{DType, Generator, Tensor, numel, tensor::hex};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::argspec::{ArgKind, ArgSpec};
use crate::exit::Failure;

/// Buffers above this are sparse.
const DENSE_LIMIT_BYTES: u64 = 1 << 30;
/// The same where not every block runs: most of such a buffer is not looked at.
const SAMPLED_LIMIT_BYTES: u64 = 16 << 20;
/// Written values shown in the JSON and in tables.
const HEAD: usize = 8;

/// A sparse buffer named by an `--arg`.
pub struct Lazy {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// Its values; `None` for fresh memory.
    pub values: Option<Generated>,
}

impl Lazy {
    /// Length in bytes; below 2^63, or the argument had been refused.
    pub fn size_bytes(&self) -> u64 {
        numel(&self.shape).unwrap_or(0).saturating_mul(self.dtype.size_bytes())
    }
}

/// Whether the buffer of an `--arg` is sparse.
pub fn is_sparse(kind: &ArgKind, all_blocks: bool) -> bool {
    let ArgKind::Buffer { dtype, shape, generator } = kind else { return false };
    let bytes = numel(shape).unwrap_or(0).saturating_mul(dtype.size_bytes());
    let limit = if all_blocks { DENSE_LIMIT_BYTES } else { SAMPLED_LIMIT_BYTES };
    bytes > limit && !matches!(generator, Generator::List(_))
}

/// The sparse buffers among the `--arg`.
pub fn buffers(specs: &[ArgSpec], all_blocks: bool) -> Vec<Lazy> {
    let lazy = |s: &ArgSpec| match &s.kind {
        ArgKind::Buffer { dtype, shape, generator } if is_sparse(&s.kind, all_blocks) => Some(Lazy {
            name: s.name.clone(),
            dtype: *dtype,
            shape: shape.clone(),
            values: (*generator != Generator::Uninit).then(|| Generated::new(*dtype, generator.clone())),
        }),
        _ => None,
    };
    specs.iter().filter_map(lazy).collect()
}

/// What a kernel wrote of a sparse buffer.
pub struct Written {
    dtype: DType,
    shape: Vec<u64>,
    index: Vec<u64>,
    /// One element per index.
    values: Tensor,
}

impl Written {
    /// What lies in the session.
    ///
    /// # Errors
    /// A bug of ours: the buffer is not sparse.
    pub fn take(session: &Session, ptr: Ptr, b: &Lazy) -> Result<Written, Failure> {
        let all = session.written_elements(ptr).ok_or_else(|| Failure::bug("a sparse buffer was lost"))?;
        let size = b.dtype.size_bytes() as usize;
        let (mut index, mut bytes) = (Vec::new(), Vec::new());
        for (i, v) in all {
            index.push(i);
            bytes.extend_from_slice(&v[..size]);
        }
        let values = Tensor::from_bytes(b.dtype, &[index.len() as u64], bytes).map_err(Failure::bug)?;
        Ok(Written { dtype: b.dtype, shape: b.shape.clone(), index, values })
    }

    /// The entry under `outputs`.
    pub fn json(&self) -> Value {
        let size = self.dtype.size_bytes() as usize;
        let mut hash = Sha256::new();
        for (i, v) in self.index.iter().zip(self.values.data.chunks_exact(size)) {
            hash.update(i.to_le_bytes());
            hash.update(v);
        }
        json!({
            "dtype": self.dtype,
            "shape": self.shape,
            "sparse": true,
            "written": self.index.len(),
            "sha256": hex(&hash.finalize()),
            "head": self.values.head(HEAD as u64),
            "head_index": self.index.iter().take(HEAD).collect::<Vec<_>>(),
        })
    }

    /// Its row in the table of buffers.
    pub fn row(&self, name: &str, show: impl Fn(&Tensor, u64) -> String) -> Vec<String> {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let pairs = self.index.iter().take(HEAD / 2).zip(0..);
        let values: Vec<String> = pairs.map(|(i, k)| format!("[{i}] {}", show(&self.values, k))).collect();
        let dots = if self.index.len() > HEAD / 2 { " …" } else { "" };
        vec![
            name.to_owned(),
            format!("{}[{}]", self.dtype, shape.join(",")),
            format!("sparse, {} written", self.index.len()),
            values.join(" ") + dots,
        ]
    }

    /// `NAME.index` and `NAME.value`.
    ///
    /// # Errors
    /// A bug of ours.
    pub fn save(&self, name: &str, into: &mut BTreeMap<String, Tensor>) -> Result<(), Failure> {
        let bytes = self.index.iter().flat_map(|i| i.to_le_bytes()).collect();
        let index =
            Tensor::from_bytes(DType::U64, &[self.index.len() as u64], bytes).map_err(Failure::bug)?;
        into.insert(format!("{name}.index"), index);
        into.insert(format!("{name}.value"), self.values.clone());
        Ok(())
    }
}

/// The entries under `outputs`.
pub fn outputs(written: &BTreeMap<String, Written>) -> Map<String, Value> {
    written.iter().map(|(name, w)| (name.clone(), w.json())).collect()
}

/// The lines about blocks and coverage for people.
pub fn summary(outcome: &assay_simt::Outcome) -> String {
    let mut s = String::new();
    let b = &outcome.blocks;
    if !b.list.is_empty() {
        s.push_str(&format!("{} of {} blocks ran\n", b.executed, b.total));
    }
    for c in &outcome.coverage {
        s.push_str(&format!("coverage of {}: {} of {} elements written", c.buffer, c.written, c.elements));
        for p in &c.points {
            let word = if p.written { "written" } else { "not written" };
            let which = if p.at == "last" { "last".to_owned() } else { format!("at {}", p.at) };
            s.push_str(&format!("; {} ({which}) {word}", p.index));
        }
        s.push('\n');
    }
    s
}
