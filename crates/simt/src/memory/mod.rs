//! Device memory: regions, the buffers in them, and addresses.
//!
//! An address is `region << 40 | offset`, so a bounds check is one look-up. Region numbers below
//! [`FIRST_REGION`] are windows of the generic address space (shared, local) or nothing, and never in the
//! table. Under [`crate::Memory::Strict`] a region is one buffer; under [`crate::Memory::Arena`] it is a
//! segment that holds several.
//!
//! The bytes of a region that nothing has touched need not exist yet: [`GlobalMemory::extend`] fills the tail of
//! a segment on the first access behind the filled part, and a sparse region has [`pages`] only where something wrote.
//! Regions with pages are closed to the fast paths; every access takes the exact one.
#![warn(clippy::arithmetic_side_effects)]

pub(crate) mod arena;
pub(crate) mod fill;
pub(crate) mod pages;

use assay_tensor::DType;

use crate::options::{Fill, Init, Role};
use pages::{Pages, Source};

/// Bits of the offset within a region.
pub(crate) const OFFSET_BITS: u32 = 40;
/// Mask of the offset.
pub(crate) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The generic window of shared memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << OFFSET_BITS;
/// The generic window of local memory.
pub(crate) const LOCAL_WINDOW: u64 = 2 << OFFSET_BITS;
/// Function "addresses" are `FUNCTION_WINDOW + index`.
pub(crate) const FUNCTION_WINDOW: u64 = 3 << OFFSET_BITS;
/// The first region number of real memory.
pub(crate) const FIRST_REGION: u64 = 16;
/// Largest buffer or segment.
pub(crate) const MAX_REGION_BYTES: u64 = 1 << (OFFSET_BITS - 1);

/// 64 bytes with the alignment of a vector register.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Zeroed bytes, aligned to 64, whose address does not change while they grow within their capacity.
pub(crate) struct Bytes {
    lines: Vec<Line>,
    len: usize,
}

impl Bytes {
    /// `len` zero bytes with room for `capacity`.
    pub(crate) fn with_capacity(len: usize, capacity: usize) -> Bytes {
        let mut lines = Vec::with_capacity(capacity.max(len).div_ceil(64));
        lines.resize(len.div_ceil(64), Line([0; 64]));
        Bytes { lines, len }
    }

    /// `len` zero bytes.
    pub(crate) fn zeroed(len: usize) -> Bytes {
        Bytes::with_capacity(len, len)
    }

    /// Grows to `len` bytes (zeros behind the old end).
    pub(crate) fn grow(&mut self, len: usize) {
        if len > self.len {
            self.lines.resize(len.div_ceil(64), Line([0; 64]));
            self.len = len;
        }
    }

    /// Grows to `len` bytes; the address may change.
    pub(crate) fn grow_moving(&mut self, len: usize) {
        self.grow(len);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `lines` holds at least `len` initialised bytes (a `Line` has no padding), and the borrow
        // of `self` keeps them alive and unchanged.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, with a unique borrow.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// What the fast path of an access needs to know of a region.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TableEntry {
    /// First byte.
    pub(crate) base: *mut u8,
    /// Bytes that may be read without further thought.
    pub(crate) read_len: u64,
    /// Bytes that may be written without further thought: 0 for a buffer whose stores are findings.
    pub(crate) write_len: u64,
}

/// A buffer's place.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) may_write: bool,
    pub(crate) dtype: DType,
    /// Extents, if they are known.
    pub(crate) shape: Vec<u64>,
    pub(crate) region: u32,
    pub(crate) offset: u64,
    pub(crate) size_bytes: u64,
    /// True if every byte counted as initialised before the first launch.
    pub(crate) initialised: bool,
}

impl Buffer {
    pub(crate) fn address(&self) -> u64 {
        (u64::from(self.region) << OFFSET_BITS) | self.offset
    }

    /// Place in the list of regions.
    pub(crate) fn region_index(&self) -> usize {
        (self.region as usize).saturating_sub(FIRST_REGION as usize)
    }

    /// Elements.
    pub(crate) fn elements(&self) -> u64 {
        self.size_bytes >> self.dtype.size_bytes().trailing_zeros()
    }
}

/// A region: bytes that exist, bytes that may exist, and how the rest is filled.
pub(crate) struct Region {
    pub(crate) bytes: Bytes,
    /// Size of the region; `bytes` may be shorter.
    pub(crate) size_bytes: u64,
    /// How bytes behind `bytes` come to be.
    tail: fill::Pattern,
    /// Buffers within, by offset.
    pub(crate) buffers: Vec<u32>,
    /// Stores are findings.
    pub(crate) read_only: bool,
    /// Constant memory.
    pub(crate) constant: bool,
    /// The bytes of a sparse region; of a dense one who wrote what, while sampled blocks are tracked.
    pub(crate) pages: Option<Pages>,
    /// What nothing wrote is data all the same: given or made by a generator.
    pub(crate) initialised: bool,
    /// Blocks that were not executed may have written what `pages` does not name.
    pub(crate) partial: bool,
}

impl Region {
    /// A segment of the arena: kernels may write anywhere in it.
    pub(crate) fn segment(bytes: Bytes, size_bytes: u64, tail: fill::Pattern, buffers: Vec<u32>) -> Region {
        Region {
            bytes,
            size_bytes,
            tail,
            buffers,
            read_only: false,
            constant: false,
            pages: None,
            initialised: false,
            partial: false,
        }
    }

    /// True if its bytes are in pages alone.
    pub(crate) fn sparse(&self) -> bool {
        self.pages.as_ref().is_some_and(Pages::sparse)
    }

    /// Bytes that handlers may read and write without further thought.
    pub(crate) fn open(&self) -> (u64, u64) {
        let len = self.bytes.len() as u64;
        if self.pages.is_some() {
            // Reads of data that is surely there need no look at who wrote it.
            return (if self.initialised && !self.partial { len } else { 0 }, 0);
        }
        (len, if self.read_only || self.constant { 0 } else { len })
    }

    /// Bytes that can be accessed before [`GlobalMemory::extend`].
    pub(crate) fn len(&self) -> u64 {
        if self.sparse() { self.size_bytes } else { self.bytes.len() as u64 }
    }

    /// Copies bytes out; false outside.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(out.len() as u64).filter(|e| *e <= self.len()) else {
            return false;
        };
        if self.sparse()
            && let Some(p) = &self.pages
        {
            p.read(offset, out);
        } else {
            out.copy_from_slice(&self.bytes.as_slice()[offset as usize..end as usize]);
        }
        true
    }

    /// Stores bytes; false outside.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(end) = offset.checked_add(bytes.len() as u64).filter(|e| *e <= self.len()) else {
            return false;
        };
        if let Some(p) = &mut self.pages {
            p.write(offset, bytes);
            if p.sparse() {
                return true;
            }
        }
        self.bytes.as_mut_slice()[offset as usize..end as usize].copy_from_slice(bytes);
        true
    }

    /// True if a load of these bytes sees what the kernels before it left there, whatever blocks were left out.
    pub(crate) fn has_data(&self, offset: u64, len: u64) -> bool {
        (self.initialised && !self.partial) || self.pages.as_ref().is_none_or(|p| p.has_data(offset, len))
    }
}

/// All regions and buffers of a session.
#[derive(Default)]
pub(crate) struct GlobalMemory {
    pub(crate) regions: Vec<Region>,
    pub(crate) buffers: Vec<Buffer>,
    /// Bytes taken so far.
    pub(crate) taken_bytes: u64,
}

/// Where an address lies, for findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Nearest buffer in the region, if any.
    pub(crate) buffer: Option<u32>,
    /// Offset from that buffer's start.
    pub(crate) offset: i64,
}

impl GlobalMemory {
    /// Adds a region with its own single buffer and fills it.
    pub(crate) fn add_single(
        &mut self,
        buffer: Buffer,
        dtype: DType,
        init: Init<'_>,
        fill_kind: Fill,
        seed: u64,
        constant: bool,
    ) -> u32 {
        let index = self.buffers.len() as u32;
        let mut bytes = Bytes::zeroed(buffer.size_bytes as usize);
        let pattern = fill::Pattern { kind: fill_kind, dtype, seed: fill::seed_of(seed, u64::from(index)) };
        contents(bytes.as_mut_slice(), init, pattern);
        self.taken_bytes = self.taken_bytes.saturating_add(buffer.size_bytes);
        self.push_single(buffer, bytes, pattern, None, constant);
        index
    }

    /// Adds a sparse region with its own single buffer.
    pub(crate) fn add_sparse(
        &mut self,
        buffer: Buffer,
        dtype: DType,
        init: Init<'_>,
        fill_kind: Fill,
        seed: u64,
        page_bytes: u64,
    ) -> u32 {
        let index = self.buffers.len() as u32;
        let pattern = fill::Pattern { kind: fill_kind, dtype, seed: fill::seed_of(seed, u64::from(index)) };
        let (base, elements) = match init {
            Init::Bytes(b) => (b.to_vec(), None),
            Init::Previous(b) if fill_kind == Fill::Previous => (b.to_vec(), None),
            Init::Generated(g) => (Vec::new(), Some(g.clone())),
            Init::Previous(_) | Init::Uninit => (Vec::new(), None),
        };
        let source = Source { base, elements, element_bytes: dtype.size_bytes(), pattern };
        let pages = Pages::new(buffer.size_bytes, page_bytes, Some(source));
        self.push_single(buffer, Bytes::zeroed(0), pattern, Some(pages), false);
        index
    }

    fn push_single(
        &mut self,
        buffer: Buffer,
        bytes: Bytes,
        tail: fill::Pattern,
        pages: Option<Pages>,
        constant: bool,
    ) {
        let index = self.buffers.len() as u32;
        let region = self.regions.len() as u32;
        let read_only = !buffer.may_write && matches!(buffer.role, Role::Input | Role::Parameter);
        self.regions.push(Region {
            bytes,
            size_bytes: buffer.size_bytes,
            tail,
            buffers: vec![index],
            read_only,
            constant,
            pages,
            initialised: buffer.initialised,
            partial: false,
        });
        self.buffers.push(Buffer { region: region.saturating_add(FIRST_REGION as u32), offset: 0, ..buffer });
    }

    /// Bytes of host memory that buffers and pages take.
    pub(crate) fn host_bytes(&self) -> u64 {
        let pages = self.regions.iter().filter_map(|r| r.pages.as_ref()).map(Pages::taken_bytes);
        pages.fold(self.taken_bytes, u64::saturating_add)
    }

    /// The fast-path table, indexed by region number.
    pub(crate) fn table(&mut self) -> Vec<TableEntry> {
        let none = TableEntry { base: std::ptr::null_mut(), read_len: 0, write_len: 0 };
        let mut table = vec![none; FIRST_REGION as usize];
        for r in &mut self.regions {
            let (read_len, write_len) = r.open();
            table.push(TableEntry { base: r.bytes.as_ptr(), read_len, write_len });
        }
        table
    }

    /// The region of an address.
    pub(crate) fn region_index(&self, address: u64) -> Option<usize> {
        let i = (address >> OFFSET_BITS).checked_sub(FIRST_REGION)?;
        (i < self.regions.len() as u64).then_some(i as usize)
    }

    /// Makes `size` bytes at `address` exist where they lie within a region that is larger than its filled
    /// part. True if the access is now (or was already) within the filled part.
    pub(crate) fn extend(&mut self, address: u64, size: u64) -> bool {
        let Some(i) = self.region_index(address) else { return false };
        let r = &mut self.regions[i];
        let Some(end) = (address & OFFSET_MASK).checked_add(size) else { return false };
        if end > r.size_bytes {
            return false;
        }
        if r.sparse() {
            return true;
        }
        let old = r.bytes.len();
        if end as usize > old {
            // Grow in steps, so that a walk along the tail does not come back for every access.
            let step = end.next_multiple_of(1 << 16).min(r.size_bytes) as usize;
            r.bytes.grow(step);
            let from = old as u64;
            r.tail.write(&mut r.bytes.as_mut_slice()[old..], from);
        }
        true
    }

    /// The buffer that contains or is nearest to `address`, and the offset from its start.
    pub(crate) fn place(&self, address: u64) -> Place {
        let Some(i) = self.region_index(address) else { return Place { buffer: None, offset: 0 } };
        let offset = address & OFFSET_MASK;
        // A pointer a little before a buffer shows up as a huge offset of the region before; the caller
        // handles that. Within a region, the last buffer that starts at or before the address is meant.
        let list = &self.regions[i].buffers;
        let at = list.iter().rev().find(|b| self.buffers[**b as usize].offset <= offset).or(list.first());
        let Some(&b) = at else { return Place { buffer: None, offset: 0 } };
        let start = self.buffers[b as usize].offset as i64;
        Place { buffer: Some(b), offset: (offset as i64).wrapping_sub(start) }
    }

    /// The bytes of a buffer; none of a sparse one.
    pub(crate) fn buffer_bytes(&self, index: u32) -> &[u8] {
        let b = &self.buffers[index as usize];
        let r = &self.regions[(b.region as usize).saturating_sub(FIRST_REGION as usize)];
        let (from, to) = (b.offset as usize, b.offset.saturating_add(b.size_bytes) as usize);
        r.bytes.as_slice().get(from..to).unwrap_or(&[])
    }

    /// The bytes of a buffer, to be changed between launches.
    pub(crate) fn buffer_bytes_mut(&mut self, index: u32) -> &mut [u8] {
        let b = &self.buffers[index as usize];
        let (from, to) = (b.offset as usize, b.offset.saturating_add(b.size_bytes) as usize);
        let r = &mut self.regions[(b.region as usize).saturating_sub(FIRST_REGION as usize)];
        r.bytes.as_mut_slice().get_mut(from..to).unwrap_or(&mut [])
    }
}

/// Writes a buffer's first contents.
pub(crate) fn contents(bytes: &mut [u8], init: Init<'_>, pattern: fill::Pattern) {
    match init {
        Init::Bytes(b) => {
            let n = b.len().min(bytes.len());
            bytes[..n].copy_from_slice(&b[..n]);
        }
        Init::Previous(b) if pattern.kind == Fill::Previous => {
            let n = b.len().min(bytes.len());
            bytes[..n].copy_from_slice(&b[..n]);
            pattern.write(&mut bytes[n..], n as u64);
        }
        Init::Generated(g) => g.fill(0, bytes),
        Init::Previous(_) | Init::Uninit => pattern.write(bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(size: u64, role: Role) -> Buffer {
        Buffer {
            name: "x".into(),
            role,
            may_write: false,
            dtype: DType::F32,
            shape: Vec::new(),
            region: 0,
            offset: 0,
            size_bytes: size,
            initialised: true,
        }
    }

    #[test]
    fn addresses_carry_the_region_and_inputs_are_not_writable() {
        let mut m = GlobalMemory::default();
        let a = m.add_single(buffer(8, Role::Input), DType::F32, Init::Bytes(&[1; 8]), Fill::Noise, 0, false);
        let b = m.add_single(buffer(4, Role::Output), DType::F32, Init::Uninit, Fill::Zeros, 0, false);
        assert_eq!(m.buffers[a as usize].address(), 16 << 40);
        assert_eq!(m.buffers[b as usize].address(), 17 << 40);
        let t = m.table();
        assert_eq!((t[16].read_len, t[16].write_len, t[17].write_len), (8, 0, 4));
        assert_eq!(m.buffer_bytes(b), [0; 4]);
        assert_eq!(m.place((17 << 40) + 9), Place { buffer: Some(b), offset: 9 });
        assert!(!m.extend(17 << 40, 5) && m.extend(17 << 40, 4));
    }
}
