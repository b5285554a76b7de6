//! Tensors with strides over shared storage, as extensions see them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_tensor::DType;

/// What is known of a storage's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing has been written since it was allocated.
    Fresh,
    /// Kernels wrote some of it; which bytes is no longer known.
    Partial,
    /// Every byte was given or written.
    Written,
}

#[derive(Debug)]
struct Inner {
    bytes: Vec<u8>,
    contents: Contents,
    /// Times that the bytes were changed.
    version: u64,
}

/// Bytes that tensors share. Clones are the same storage.
#[derive(Clone, Debug)]
pub struct Storage(Arc<Mutex<Inner>>);

impl Storage {
    /// A storage with these bytes, all of which count as written.
    pub fn new(bytes: Vec<u8>) -> Storage {
        Storage::with(bytes, Contents::Written)
    }

    /// A storage with these bytes, and what is to be known of them.
    pub fn with(bytes: Vec<u8>, contents: Contents) -> Storage {
        Storage(Arc::new(Mutex::new(Inner { bytes, contents, version: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in it.
    pub fn len_bytes(&self) -> u64 {
        self.lock().bytes.len() as u64
    }

    /// Runs `f` on the bytes.
    pub fn read<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        f(&self.lock().bytes)
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// Runs `f` on the bytes to change them; they count as written afterwards as far as `contents` says.
    pub fn write<T>(&self, contents: Contents, f: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut inner = self.lock();
        inner.version += 1;
        inner.contents = contents;
        f(&mut inner.bytes)
    }

    /// What is known of the bytes.
    pub fn contents(&self) -> Contents {
        self.lock().contents
    }

    /// Counts the changes since the storage was made; a launch that left every byte as it was is none.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Whether the two are one storage.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other living storage has.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<u8>() as usize
    }
}

/// Where a tensor says it lives; its bytes are always here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Device {
    /// Host memory: a kernel that is given its pointer faults.
    Cpu,
    /// Device memory.
    #[default]
    Cuda,
}

/// A tensor: a strided view of a storage.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The bytes.
    pub storage: Storage,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; none for a scalar.
    pub sizes: Vec<u64>,
    /// Distance between neighbours of each dimension, in elements; 0 where one element is repeated.
    pub strides: Vec<u64>,
    /// First element, in elements from the storage's beginning.
    pub offset: u64,
    /// Where it lives.
    pub device: Device,
}

/// Row-major strides; those of extents 0 and 1 as PyTorch has them.
pub fn contiguous_strides(sizes: &[u64]) -> Vec<u64> {
    let mut out = vec![1u64; sizes.len()];
    let mut step = 1u64;
    for (stride, size) in out.iter_mut().zip(sizes).rev() {
        *stride = step;
        step = step.saturating_mul((*size).max(1));
    }
    out
}

impl Tensor {
    /// A contiguous tensor over bytes of its own; `None` where their number does not fit the extents.
    pub fn from_bytes(dtype: DType, sizes: &[u64], device: Device, bytes: Vec<u8>) -> Option<Tensor> {
        let need = sizes.iter().try_fold(dtype.size_bytes(), |n, s| n.checked_mul(*s))?;
        (need == bytes.len() as u64).then(|| Tensor {
            storage: Storage::new(bytes),
            dtype,
            sizes: sizes.to_vec(),
            strides: contiguous_strides(sizes),
            offset: 0,
            device,
        })
    }

    /// Number of elements.
    pub fn numel(&self) -> u64 {
        self.sizes.iter().fold(1, |n, s| n.saturating_mul(*s))
    }

    /// Whether the elements lie one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1u64;
        for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            if *size == 0 {
                return true;
            }
            if *size != 1 {
                if *stride != step {
                    return false;
                }
                step = step.saturating_mul(*size);
            }
        }
        true
    }

    /// Runs `f` on the byte offset of every element in row-major order.
    pub fn for_each_offset(&self, mut f: impl FnMut(usize)) {
        let size = self.dtype.size_bytes();
        let n = self.numel();
        let mut index = vec![0u64; self.sizes.len()];
        let mut at = self.offset;
        for _ in 0..n {
            f(at.saturating_mul(size) as usize);
            for d in (0..index.len()).rev() {
                index[d] += 1;
                at = at.saturating_add(self.strides[d]);
                if index[d] < self.sizes[d] {
                    break;
                }
                at = at.saturating_sub(self.strides[d].saturating_mul(self.sizes[d]));
                index[d] = 0;
            }
        }
    }

    /// The elements' bytes in row-major order; zeros for what lies outside the storage.
    pub fn gather(&self) -> Vec<u8> {
        let size = self.dtype.size_bytes() as usize;
        self.storage.read(|bytes| {
            if self.is_contiguous() {
                let from = (self.offset as usize).saturating_mul(size);
                let len = (self.numel() as usize).saturating_mul(size);
                if let Some(part) = bytes.get(from..from.saturating_add(len)) {
                    return part.to_vec();
                }
            }
            let mut out = Vec::with_capacity((self.numel() as usize).saturating_mul(size));
            self.for_each_offset(|at| match bytes.get(at..at.saturating_add(size)) {
                Some(b) => out.extend_from_slice(b),
                None => out.resize(out.len() + size, 0),
            });
            out
        })
    }
}
