//! Modules that are ready to run, and the sessions that run them.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_ptx::{FuncId, FunctionKind, Module};
use assay_tensor::DType;

use crate::blocks::{BlocksRun, Extent, Plan};
use crate::code::Kernel;
use crate::cpu::{self, Variant};
use crate::decode::{self, ModuleVariable};
use crate::error::{LoadError, SessionError};
use crate::exec::rng::Rng;
use crate::exec::state::Shape;
use crate::exec::{Exec, Stop};
use crate::findings::{Collector, Finding, FindingKind, FindingSpace};
use crate::memory::fill::{Pattern, seed_of};
use crate::memory::pages::Pages;
use crate::memory::{Buffer, Bytes, FIRST_REGION, GlobalMemory, MAX_REGION_BYTES, Region, arena, contents};
use crate::options::{
    Arg, BufferSpec, Coverage, CoveragePoint, Engine, Fill, Init, LaunchSpec, Memory, Options, Outcome, Ptr,
    Role, Status,
};
use crate::sanitize::{RegionShape, Sanitizer};

/// Limits of a launch. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0.
const MAX_THREADS: u64 = 1024;
const MAX_BLOCK: [u64; 3] = [1024, 1024, 64];
const MAX_GRID: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const MAX_STATIC_SHARED: u64 = 48 << 10;
const MAX_SHARED: u64 = 227 << 10;

/// A decoded module: shared between threads and sessions.
pub struct Loaded {
    kernels: BTreeMap<String, Result<Arc<Kernel>, LoadError>>,
    variables: Vec<ModuleVariable>,
}

impl Loaded {
    /// Decodes every kernel of `module`.
    ///
    /// A kernel that the device cannot run does not take the others down: its error is given by
    /// [`Loaded::check`], and launching it ends as [`Status::Unsupported`].
    ///
    /// # Errors
    /// The first kernel's error, where no kernel can run.
    pub fn new(module: &Module) -> Result<Loaded, LoadError> {
        Loaded::with_variant(module, cpu::variant())
    }

    /// As [`Loaded::new`], with the handlers that every processor runs, whatever this one can do: for tests that
    /// compare the two in one process.
    ///
    /// # Errors
    /// As [`Loaded::new`].
    #[doc(hidden)]
    pub fn portable(module: &Module) -> Result<Loaded, LoadError> {
        Loaded::with_variant(module, Variant::Portable)
    }

    pub(crate) fn with_variant(module: &Module, variant: Variant) -> Result<Loaded, LoadError> {
        let mut kernels = BTreeMap::new();
        let mut first = None;
        for (i, f) in module.functions.iter().enumerate() {
            if f.kind == FunctionKind::Entry && f.has_body {
                let k = decode::kernel(module, FuncId(i as u32), variant);
                if let Err(e) = &k
                    && first.is_none()
                {
                    first = Some(e.clone());
                }
                kernels.insert(f.name.clone(), k.map(Arc::new));
            }
        }
        match first {
            Some(e) if kernels.values().all(Result::is_err) => Err(e),
            _ => Ok(Loaded { kernels, variables: decode::module_variables(module) }),
        }
    }

    /// Kernels out of several modules, as if one had them all: each `(module, kernel)` under its own name.
    ///
    /// `None` where a kernel is missing or cannot run, where it touches a variable of its module (which others there may
    /// share), and where two have one name.
    pub fn gathered<'a>(parts: impl IntoIterator<Item = (&'a Loaded, &'a str)>) -> Option<Loaded> {
        let mut kernels: BTreeMap<String, Result<Arc<Kernel>, LoadError>> = BTreeMap::new();
        for (loaded, name) in parts {
            let kernel = loaded.kernels.get(name)?.as_ref().ok()?;
            if kernel.touches_variables {
                return None;
            }
            match kernels.get(name) {
                Some(Ok(there)) if Arc::ptr_eq(there, kernel) => {}
                Some(_) => return None,
                None => {
                    kernels.insert(name.to_owned(), Ok(Arc::clone(kernel)));
                }
            }
        }
        Some(Loaded { kernels, variables: Vec::new() })
    }

    /// Names of the kernels, in order of the alphabet.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// Whether `kernel` can run.
    ///
    /// # Errors
    /// Its [`LoadError`]; `UnknownKernel` if the module has none of that name.
    pub fn check(&self, kernel: &str) -> Result<(), LoadError> {
        match self.kernels.get(kernel) {
            Some(Ok(_)) => Ok(()),
            Some(Err(e)) => Err(e.clone()),
            None => {
                let names: Vec<String> = self.kernels.keys().map(|k| format!("`{k}`")).collect();
                Err(LoadError::UnknownKernel { name: kernel.to_owned(), available: names.join(", ") })
            }
        }
    }
}

/// A buffer before the arena is laid out.
struct Pending {
    name: String,
    role: Role,
    may_write: bool,
    dtype: DType,
    size_bytes: u64,
    official_bytes: u64,
    bytes: Option<Vec<u8>>,
    previous: Option<Vec<u8>>,
}

/// One evaluation: buffers and launches in order.
pub struct Session {
    loaded: Arc<Loaded>,
    options: Options,
    memory: GlobalMemory,
    /// Index in `memory.buffers` per [`Ptr`]; module variables come before.
    user: Vec<u32>,
    pending: Vec<Pending>,
    laid_out: bool,
    san: Option<Sanitizer>,
    executed: u64,
    compiled: bool,
    launches: u64,
    /// Blocks executed while their stores were tracked: the last number given to one.
    tracked_blocks: u32,
    /// A launch left blocks out.
    sampled: bool,
}

impl Session {
    /// A session with the module's variables and no buffers yet.
    pub fn new(loaded: Arc<Loaded>, options: Options) -> Session {
        let mut memory = GlobalMemory::default();
        let mut san = options.sanitize.needs_shadow().then(|| Sanitizer::new(options.sanitize));
        for (k, v) in loaded.variables.iter().enumerate() {
            // A variable beyond the cap stays empty; launches that touch it find out.
            let size = if v.size_bytes <= options.memory_cap_bytes { v.size_bytes } else { 0 };
            let mut bytes = vec![0u8; if v.is_extern { 0 } else { size as usize }];
            let n = v.init.len().min(bytes.len());
            bytes[..n].copy_from_slice(&v.init[..n]);
            for (at, len, value) in &v.patches {
                let (at, len) = (*at as usize, (*len as usize).min(8));
                if let Some(place) = bytes.get_mut(at..at.saturating_add(len)) {
                    place.copy_from_slice(&value.to_le_bytes()[..len]);
                }
            }
            let buffer = Buffer {
                name: crate::findings::source_name(&v.name),
                role: Role::Scratch,
                may_write: !v.constant,
                dtype: DType::U8,
                shape: Vec::new(),
                region: 0,
                offset: 0,
                size_bytes: bytes.len() as u64,
                initialised: true,
            };
            memory.add_single(buffer, DType::U8, Init::Bytes(&bytes), Fill::Zeros, 0, v.constant);
            let _ = (&mut san, k);
        }
        Session {
            loaded,
            laid_out: options.memory == Memory::Strict,
            options,
            memory,
            user: Vec::new(),
            pending: Vec::new(),
            san,
            executed: 0,
            compiled: false,
            launches: 0,
            tracked_blocks: 0,
            sampled: false,
        }
    }

    /// Adds a buffer.
    ///
    /// # Errors
    /// [`SessionError::ContentsSize`], [`SessionError::OutOfMemory`], [`SessionError::TooLarge`]; in the arena
    /// [`SessionError::AfterLaunch`] and [`SessionError::SparseArena`].
    pub fn alloc(&mut self, spec: BufferSpec<'_>) -> Result<Ptr, SessionError> {
        let (name, size) = (spec.name.to_owned(), spec.size_bytes);
        let (given, exact) = match spec.init {
            Init::Bytes(b) => (b.len() as u64, true),
            Init::Previous(b) => (b.len() as u64, false),
            Init::Generated(_) => (size - size % spec.dtype.size_bytes(), true),
            Init::Uninit => (0, false),
        };
        if (exact && given != size) || given > size {
            return Err(SessionError::ContentsSize { name, size_bytes: size, got: given });
        }
        let cap = self.options.memory_cap_bytes;
        let taken = self.memory.host_bytes().saturating_add(self.pending.iter().map(|p| p.size_bytes).sum());
        if spec.sparse && size > MAX_REGION_BYTES {
            return Err(SessionError::TooLarge { name, size_bytes: size, limit_bytes: MAX_REGION_BYTES });
        }
        let need = match spec.init {
            Init::Bytes(b) | Init::Previous(b) if spec.sparse => b.len() as u64,
            _ if spec.sparse => 0,
            _ => size,
        };
        if need > MAX_REGION_BYTES || taken.saturating_add(need) > cap {
            return Err(SessionError::OutOfMemory { name, size_bytes: size, cap_bytes: cap });
        }
        if self.options.memory == Memory::Arena {
            if spec.sparse {
                return Err(SessionError::SparseArena { name });
            }
            if self.laid_out {
                return Err(SessionError::AfterLaunch { name });
            }
            self.pending.push(Pending {
                name,
                role: spec.role,
                may_write: spec.may_write,
                dtype: spec.dtype,
                size_bytes: size,
                official_bytes: if spec.official_bytes == 0 { size } else { spec.official_bytes },
                bytes: match spec.init {
                    Init::Bytes(b) => Some(b.to_vec()),
                    Init::Generated(g) => {
                        let mut b = vec![0; size as usize];
                        g.fill(0, &mut b);
                        Some(b)
                    }
                    Init::Previous(_) | Init::Uninit => None,
                },
                previous: if let Init::Previous(b) = spec.init { Some(b.to_vec()) } else { None },
            });
            return Ok(Ptr(self.pending.len() as u32 - 1));
        }
        let buffer = Buffer {
            name,
            role: spec.role,
            may_write: spec.may_write,
            dtype: spec.dtype,
            shape: spec.shape.to_vec(),
            region: 0,
            offset: 0,
            size_bytes: size,
            initialised: exact,
        };
        let o = &self.options;
        let i = if spec.sparse {
            self.memory.add_sparse(buffer, spec.dtype, spec.init, o.fill, o.fill_seed, o.page_bytes)
        } else {
            self.memory.add_single(buffer, spec.dtype, spec.init, o.fill, o.fill_seed, false)
        };
        if let Some(san) = &mut self.san
            && !exact
        {
            let region = self.memory.regions.len() - 1;
            if spec.sparse {
                san.init_mut().add_sparse(region);
            } else {
                san.init_mut().add(region, size);
            }
        }
        self.user.push(i);
        Ok(Ptr(self.user.len() as u32 - 1))
    }

    /// Places the arena's buffers.
    fn lay_out(&mut self) {
        if self.laid_out {
            return;
        }
        self.laid_out = true;
        let requests: Vec<arena::Request> = self
            .pending
            .iter()
            .map(|p| arena::Request {
                role: p.role,
                size_bytes: p.size_bytes,
                official_bytes: p.official_bytes,
            })
            .collect();
        // Sizes are below the cap, official ones may be anything: fall back to the desk sizes.
        let layout = arena::layout(&requests).or_else(|| {
            let desk: Vec<_> =
                requests.iter().map(|r| arena::Request { official_bytes: r.size_bytes, ..*r }).collect();
            arena::layout(&desk)
        });
        let Some(layout) = layout else { return };
        let first_region = self.memory.regions.len();
        let first_buffer = self.memory.buffers.len() as u32;
        let o = self.options.clone();
        for (s, &size) in layout.segments.iter().enumerate() {
            let mut inside: Vec<usize> =
                (0..self.pending.len()).filter(|i| layout.placed[*i].segment == s).collect();
            inside.sort_by_key(|i| layout.placed[*i].offset);
            let filled = inside.last().map_or(0, |i| layout.placed[*i].offset + self.pending[*i].size_bytes);
            let mut bytes = Bytes::with_capacity(filled as usize, size as usize);
            let pattern = |i: usize, kind: Fill| Pattern {
                kind,
                dtype: self.pending[i].dtype,
                seed: seed_of(o.fill_seed, i as u64),
            };
            let slice = bytes.as_mut_slice();
            let mut read_only = !inside.is_empty();
            for (n, &i) in inside.iter().enumerate() {
                let p = &self.pending[i];
                let at = layout.placed[i].offset as usize;
                let end = at + p.size_bytes as usize;
                let init = match (&p.bytes, &p.previous) {
                    (Some(b), _) => Init::Bytes(b),
                    (None, Some(b)) => Init::Previous(b),
                    (None, None) => Init::Uninit,
                };
                contents(&mut slice[at..end], init, pattern(i, o.fill));
                // Slack up to the next buffer: more of the same.
                let next = inside.get(n + 1).map_or(filled as usize, |j| layout.placed[*j].offset as usize);
                pattern(i, o.fill).write(&mut slice[end..next.max(end)], p.size_bytes.next_multiple_of(8));
                read_only &= !p.may_write && matches!(p.role, Role::Input | Role::Parameter);
            }
            let tail = inside.last().map_or(
                Pattern { kind: o.fill, dtype: DType::F32, seed: seed_of(o.fill_seed, u64::MAX) },
                |i| pattern(*i, o.fill),
            );
            self.memory.taken_bytes = self.memory.taken_bytes.saturating_add(filled);
            // A GPU lets kernels write whatever lies in the segment: the caller compares inputs afterwards.
            let _ = read_only;
            self.memory.regions.push(Region::segment(
                bytes,
                size,
                tail,
                inside.iter().map(|i| first_buffer + *i as u32).collect(),
            ));
            if let Some(san) = &mut self.san {
                let region = first_region + s;
                san.init_mut().add(region, size);
                for &i in &inside {
                    if self.pending[i].bytes.is_some() {
                        san.init_mut().set(region, layout.placed[i].offset, self.pending[i].size_bytes);
                    }
                }
            }
        }
        for (i, p) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let at = layout.placed[i];
            self.user.push(self.memory.buffers.len() as u32);
            self.memory.buffers.push(Buffer {
                name: p.name,
                role: p.role,
                may_write: p.may_write,
                dtype: p.dtype,
                shape: Vec::new(),
                region: (FIRST_REGION as usize + first_region + at.segment) as u32,
                offset: at.offset,
                size_bytes: p.size_bytes,
                initialised: p.bytes.is_some(),
            });
        }
    }

    fn buffer(&self, ptr: Ptr) -> Option<&Buffer> {
        let i = self.user.get(ptr.0 as usize)?;
        self.memory.buffers.get(*i as usize)
    }

    /// The bytes of a buffer; none of a sparse one, see [`Session::read_at`]. Before the first launch of an arena: its
    /// initial bytes, empty for fresh memory.
    pub fn read(&self, ptr: Ptr) -> &[u8] {
        if !self.laid_out {
            return self.pending.get(ptr.0 as usize).and_then(|p| p.bytes.as_deref()).unwrap_or(&[]);
        }
        match self.user.get(ptr.0 as usize) {
            Some(i) => self.memory.buffer_bytes(*i),
            None => &[],
        }
    }

    /// Fills `len_bytes` bytes of a buffer from `offset_bytes` on with `value`, as `cudaMemset` does.
    ///
    /// # Errors
    /// [`SessionError::Range`] if the range is not within the buffer.
    pub fn memset(
        &mut self,
        ptr: Ptr,
        offset_bytes: i64,
        value: u8,
        len_bytes: u64,
    ) -> Result<(), SessionError> {
        self.lay_out();
        let Some(b) = self.buffer(ptr).cloned() else {
            return Err(SessionError::Range { name: "?".into(), offset_bytes, len_bytes, size_bytes: 0 });
        };
        let from = u64::try_from(offset_bytes).ok();
        let end = from.and_then(|f| f.checked_add(len_bytes)).filter(|e| *e <= b.size_bytes);
        let (Some(from), Some(end)) = (from, end) else {
            return Err(SessionError::Range {
                name: b.name,
                offset_bytes,
                len_bytes,
                size_bytes: b.size_bytes,
            });
        };
        let (page_bytes, strict) = (self.options.page_bytes, self.options.memory == Memory::Strict);
        let region = &mut self.memory.regions[b.region_index()];
        if strict {
            // A dense buffer's next launch may leave blocks out: what is set here is data.
            let size = region.size_bytes;
            let pages = region.pages.get_or_insert_with(|| Pages::new(size, page_bytes, None));
            pages.set(b.offset + from, len_bytes, value);
        }
        if !region.sparse() {
            self.memory.buffer_bytes_mut(self.user[ptr.0 as usize])[from as usize..end as usize].fill(value);
        }
        if let Some(san) = &mut self.san {
            san.init_mut().set(b.region_index(), b.offset + from, len_bytes);
        }
        Ok(())
    }

    /// The address that kernels see a buffer at, for arguments that have pointers within. Fixes the layout of an arena.
    pub fn address(&mut self, ptr: Ptr) -> u64 {
        self.lay_out();
        self.buffer(ptr).map_or(0, Buffer::address)
    }

    /// A `__device__` or `__constant__` variable of the module by its name in the source; `None` where the module has none
    /// (a compiler drops what no kernel uses). Fixes the layout of an arena.
    pub fn variable(&mut self, name: &str) -> Option<Ptr> {
        self.lay_out();
        let variables = self.loaded.variables.len();
        let k = self.memory.buffers.iter().take(variables).position(|b| b.name == name)?;
        self.user.push(u32::try_from(k).ok()?);
        Some(Ptr(u32::try_from(self.user.len()).ok()?.checked_sub(1)?))
    }

    /// Writes bytes of a dense buffer from the host, as `cudaMemcpyToSymbol` does.
    ///
    /// # Errors
    /// [`SessionError::Range`] if they are not within the buffer.
    pub fn write(&mut self, ptr: Ptr, offset_bytes: u64, bytes: &[u8]) -> Result<(), SessionError> {
        self.lay_out();
        let len_bytes = bytes.len() as u64;
        let range = |name: &str, size_bytes| SessionError::Range {
            name: name.to_owned(),
            offset_bytes: i64::try_from(offset_bytes).unwrap_or(i64::MAX),
            len_bytes,
            size_bytes,
        };
        let b = self.buffer(ptr).cloned().ok_or_else(|| range("?", 0))?;
        let inside = offset_bytes.checked_add(len_bytes).is_some_and(|end| end <= b.size_bytes);
        if !inside || self.memory.regions[b.region_index()].sparse() {
            return Err(range(&b.name, b.size_bytes));
        }
        let from = offset_bytes as usize;
        self.memory.buffer_bytes_mut(self.user[ptr.0 as usize])[from..from + bytes.len()]
            .copy_from_slice(bytes);
        if let Some(san) = &mut self.san {
            san.init_mut().set(b.region_index(), b.offset + offset_bytes, len_bytes);
        }
        Ok(())
    }

    /// True if every byte of a buffer was initialised or written. Known only while a detector that tracks bytes is
    /// on; true otherwise.
    pub fn written(&self, ptr: Ptr) -> bool {
        self.missing(ptr).is_none()
    }

    fn missing(&self, ptr: Ptr) -> Option<(u64, u64)> {
        let (b, san) = (self.buffer(ptr)?, self.san.as_ref()?);
        san.init().missing(b.region_index(), b.offset, b.size_bytes)
    }

    /// True if the buffer has pages instead of bytes.
    pub fn is_sparse(&self, ptr: Ptr) -> bool {
        self.buffer(ptr).is_some_and(|b| self.memory.regions[b.region_index()].sparse())
    }

    /// Copies bytes of a buffer, sparse or not, from `offset_bytes` on; unwritten ones are as kernels see them.
    ///
    /// # Errors
    /// [`SessionError::Range`] if they are not within the buffer.
    pub fn read_at(&self, ptr: Ptr, offset_bytes: u64, out: &mut [u8]) -> Result<(), SessionError> {
        let len_bytes = out.len() as u64;
        let range = |name: &str, size_bytes| SessionError::Range {
            name: name.to_owned(),
            offset_bytes: i64::try_from(offset_bytes).unwrap_or(i64::MAX),
            len_bytes,
            size_bytes,
        };
        let b = self.buffer(ptr).ok_or_else(|| range("?", 0))?;
        let inside = offset_bytes.checked_add(len_bytes).is_some_and(|end| end <= b.size_bytes);
        if inside && self.memory.regions[b.region_index()].read(b.offset + offset_bytes, out) {
            return Ok(());
        }
        Err(range(&b.name, b.size_bytes))
    }

    /// The elements of which launches wrote at least a byte: index and bytes (as many as the dtype has, in the first
    /// places), ascending. Known for sparse buffers, and for all buffers after a launch that left blocks out; `None`
    /// otherwise.
    pub fn written_elements(&self, ptr: Ptr) -> Option<impl Iterator<Item = (u64, [u8; 8])>> {
        let b = self.buffer(ptr)?;
        let region = &self.memory.regions[b.region_index()];
        let pages = region.pages.as_ref()?;
        let size = b.dtype.size_bytes();
        let start = b.offset;
        let elements = pages.written(start, b.elements() * size, size);
        Some(elements.map(move |at| {
            let mut out = [0; 8];
            region.read(at, &mut out[..size as usize]);
            ((at - start) / size, out)
        }))
    }

    /// Gives bytes to what blocks that were left out may have written: in every buffer that the launches since the last call
    /// stored to, each run of bytes that no block which ran has stored is overwritten by `fill`, which gets the buffer, the
    /// run's offset in it, and the bytes. Afterwards all of it counts as data, so that later launches read it as they read
    /// anything else. Sparse buffers are left as they are.
    ///
    /// Gives the buffers that were changed, each with the number of bytes that were overwritten.
    pub fn settle(&mut self, mut fill: impl FnMut(Ptr, u64, &mut [u8])) -> Vec<(Ptr, u64)> {
        let mut out = Vec::new();
        for (k, i) in self.user.iter().enumerate() {
            let ptr = Ptr(k as u32);
            let Some(b) = self.memory.buffers.get(*i as usize) else { continue };
            let (offset, size, index) = (b.offset, b.size_bytes, b.region_index());
            let Some(region) = self.memory.regions.get_mut(index) else { continue };
            if !region.partial || region.sparse() {
                continue;
            }
            let gaps = region.pages.as_ref().map_or_else(Vec::new, |p| p.gaps(offset, size));
            let mut count = 0;
            for gap in gaps {
                let bytes = region.bytes.as_mut_slice().get_mut(gap.start as usize..gap.end as usize);
                if let Some(bytes) = bytes {
                    count += bytes.len() as u64;
                    fill(ptr, gap.start - offset, bytes);
                }
            }
            // A region of strict memory has one buffer; the arena runs no samples. Variables of the module stay as they
            // are: what reads them then is not sampleable.
            (region.partial, region.initialised, region.pages) = (false, true, None);
            out.push((ptr, count));
        }
        out
    }

    /// How many elements [`Session::written_elements`] gives.
    pub fn count_written(&self, ptr: Ptr) -> Option<u64> {
        let b = self.buffer(ptr)?;
        let pages = self.memory.regions[b.region_index()].pages.as_ref()?;
        let size = b.dtype.size_bytes();
        Some(pages.count_written(b.offset, b.elements() * size, size))
    }

    /// What is written of the outputs that have pages.
    fn coverage(&self) -> Vec<Coverage> {
        let outputs = self.user.iter().map(|i| &self.memory.buffers[*i as usize]);
        let outputs = outputs.filter(|b| b.role == Role::Output && !b.initialised && b.elements() > 0);
        outputs
            .filter_map(|b| {
                let pages = self.memory.regions[b.region_index()].pages.as_ref()?;
                let (size, elements) = (b.dtype.size_bytes(), b.elements());
                let point = |at: &str, index: u64| CoveragePoint {
                    at: at.to_owned(),
                    index,
                    written: pages.any_written(b.offset + index * size, size),
                };
                let extent = Extent { elements, element_bytes: size, shape: &b.shape };
                let sides = extent.boundaries().flat_map(|(at, e)| [point(at, e - 1), point(at, e)]);
                Some(Coverage {
                    buffer: b.name.clone(),
                    elements,
                    written: pages.count_written(b.offset, elements * size, size),
                    points: std::iter::once(point("last", elements - 1)).chain(sides).collect(),
                })
            })
            .collect()
    }

    /// Checks at the end of a run: output bytes that nothing wrote (with [`crate::Sanitize::unwritten`]). Finds nothing
    /// where a launch left blocks out; [`Outcome::coverage`] says what was written then.
    pub fn finish(&mut self) -> Vec<Finding> {
        self.lay_out();
        let mut out = Vec::new();
        if !self.options.sanitize.unwritten || self.sampled {
            return out;
        }
        for k in 0..self.user.len() {
            let ptr = Ptr(k as u32);
            let Some(b) = self.buffer(ptr) else { continue };
            if b.role != Role::Output || b.initialised {
                continue;
            }
            if let Some((first, count)) = self.missing(ptr) {
                let mut f = Finding::new(
                    FindingKind::UnwrittenOutput,
                    format!(
                        "{count} of {} bytes of output `{}` were never written, the first at offset {first}",
                        b.size_bytes, b.name
                    ),
                );
                f.space = Some(FindingSpace::Global);
                f.buffer = Some(b.name.clone());
                f.offset_bytes = Some(first as i64);
                f.size_bytes = Some(count);
                out.push(f);
            }
        }
        out
    }

    /// What executed the launches so far: [`Engine::Jit`] if compiled code took part in any, else [`Engine::Interp`].
    pub fn engine(&self) -> Engine {
        if self.compiled { Engine::Jit } else { Engine::Interp }
    }

    /// Warp-instructions of all launches so far.
    pub fn instructions(&self) -> u64 {
        self.executed
    }

    /// Runs one kernel to its end.
    pub fn launch(&mut self, spec: &LaunchSpec<'_>) -> Outcome {
        self.lay_out();
        let loaded = Arc::clone(&self.loaded);
        let kernel = match loaded.kernels.get(spec.kernel) {
            Some(Ok(k)) => k,
            Some(Err(e)) => return early(Status::Unsupported, e.to_string()),
            None => {
                let e = SessionError::UnknownKernel { name: spec.kernel.to_owned() };
                return invalid_launch(spec.kernel, &e.to_string());
            }
        };
        let params = match self.bind(kernel, spec) {
            Ok(p) => p,
            Err(e) => return invalid_launch(spec.kernel, &e.to_string()),
        };
        if let Some(what) = limits(kernel, spec) {
            return invalid_launch(spec.kernel, &what);
        }
        let threads = spec.block.iter().product::<u64>();
        let static_end = kernel.shared_bytes.next_multiple_of(kernel.dynamic_align.max(1));
        let shared =
            if spec.dynamic_shared == 0 { kernel.shared_bytes } else { static_end + spec.dynamic_shared };
        let shape = Shape {
            grid: spec.grid,
            block: spec.block,
            threads,
            dynamic_shared: spec.dynamic_shared,
            shared,
        };
        let plan = match self.plan(spec, threads) {
            Ok(p) => p,
            Err(what) => return invalid_launch(spec.kernel, &what),
        };
        if plan.partial() && self.options.memory == Memory::Arena {
            let reason = "sampled blocks need strict memory: the arena does not know who wrote what";
            return early(Status::Unsupported, reason.into());
        }
        let first_block = self.start_tracking(&plan);
        if let Some(san) = &mut self.san {
            let regions: Vec<RegionShape> = self
                .memory
                .regions
                .iter()
                .map(|r| RegionShape {
                    size_bytes: r.len(),
                    read_only: r.read_only || r.constant,
                    sparse: r.sparse(),
                })
                .collect();
            san.start_launch(threads, &regions);
        }
        let table = self.memory.table();
        let mut findings = Collector::default();
        let partial = plan.partial();
        // Every access of a region with pages takes the exact path.
        let paged = self.memory.regions.iter().any(|r| r.pages.is_some());
        let usable = self.san.is_none() && !paged && crate::jit::available();
        let jit = match self.options.engine {
            Engine::Jit if usable => kernel.jit.compile(kernel, spec.block),
            Engine::Auto if usable => kernel.jit.get(spec.block),
            Engine::Interp | Engine::Auto | Engine::Jit => None,
        };
        let mut exec = Exec {
            kernel,
            memory: &mut self.memory,
            table,
            options: &self.options,
            findings: &mut findings,
            printf: Vec::new(),
            printf_bytes: 0,
            shape,
            params,
            blocks: Vec::new(),
            rng: Rng::new(self.options.seed ^ self.launches.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            now: 0,
            executed: 0,
            budget: self.options.instruction_budget.saturating_sub(self.executed),
            stop: None,
            san: self.san.as_mut(),
            credit: jit.as_ref().map_or(Vec::new(), |j| j.credits()),
            may_compile: jit.is_none() && usable && self.options.engine == Engine::Auto,
            jit,
            reported: Default::default(),
            next_block: 0,
            plan,
            claims: partial && !self.options.sanitize.races && !kernel.orders_blocks(),
            first_block,
            not_sampleable: None,
        };
        exec.run();
        let (stop, executed, printf) = (exec.stop.take(), exec.executed, std::mem::take(&mut exec.printf));
        let (blocks, not_sampleable) = (exec.plan.ran(exec.next_block), exec.not_sampleable.take());
        let compiled = exec.jit.is_some();
        let stopped_at = if matches!(stop, Some(Stop::Exhausted(_))) { exec.somewhere() } else { None };
        drop(exec);
        self.compiled |= compiled;
        self.executed = self.executed.saturating_add(executed);
        self.launches += 1;
        self.end_tracking(partial);
        let findings = findings.take();
        let (status, reason) = match (stop, not_sampleable) {
            (Some(Stop::Exhausted(r)), _) => (Status::Exhausted, Some(r)),
            (Some(Stop::Unsupported(r)), _) | (_, Some(r)) => (Status::Unsupported, Some(r)),
            (Some(Stop::Fault) | None, None) if findings.is_empty() => (Status::Ok, None),
            (Some(Stop::Fault) | None, None) => (Status::Finding, None),
        };
        let coverage = self.coverage();
        Outcome { status, findings, reason, stopped_at, instructions: executed, printf, blocks, coverage }
    }

    /// How many blocks a launch would execute; 0 where it is refused.
    pub fn count_blocks(&self, spec: &LaunchSpec<'_>) -> u64 {
        let threads = spec.block.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        self.plan(spec, threads).map_or(0, |p| p.len())
    }

    /// The blocks that a launch would execute, by linear index, where it leaves any out or names them; `None` where it
    /// executes all or is refused.
    pub fn list_blocks(&self, spec: &LaunchSpec<'_>) -> Option<Vec<u64>> {
        let threads = spec.block.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        self.plan(spec, threads).ok()?.into_list()
    }

    /// Sets the warp-instructions that all launches may execute together, those so far included.
    pub fn set_instruction_budget(&mut self, instructions: u64) {
        self.options.instruction_budget = instructions;
    }

    /// The blocks that a launch asks for.
    fn plan(&self, spec: &LaunchSpec<'_>, threads: u64) -> Result<Plan, String> {
        let buffers = self.user.iter().map(|i| &self.memory.buffers[*i as usize]);
        let extents = buffers.map(|b| Extent {
            elements: b.elements(),
            element_bytes: b.dtype.size_bytes(),
            shape: &b.shape,
        });
        Plan::new(spec.blocks, spec.grid, threads, extents)
    }

    /// Prepares regions for a launch: one that leaves blocks out tracks what is written. Gives the number of its first
    /// block among all that were tracked.
    fn start_tracking(&mut self, plan: &Plan) -> u32 {
        let page_bytes = self.options.page_bytes;
        let count = u32::try_from(plan.len()).unwrap_or(u32::MAX);
        let forget = plan.partial() && self.tracked_blocks.checked_add(count).is_none();
        if forget {
            self.tracked_blocks = 0;
        }
        for r in &mut self.memory.regions {
            if plan.partial() && r.pages.is_none() && !r.constant {
                // What complete launches did to a dense buffer was not noted: they are trusted.
                r.initialised |= self.launches > 0;
                r.pages = Some(Pages::new(r.size_bytes, page_bytes, None));
            }
            if !plan.partial() && !r.partial && !r.sparse() {
                r.pages = None;
            }
            if let Some(p) = &mut r.pages {
                p.start_launch();
                if forget {
                    p.forget_writers();
                }
            }
        }
        let first = self.tracked_blocks.saturating_add(1);
        if plan.partial() {
            self.tracked_blocks = self.tracked_blocks.saturating_add(count);
            self.sampled = true;
        }
        first
    }

    fn end_tracking(&mut self, partial: bool) {
        for r in &mut self.memory.regions {
            if partial && let Some(p) = &mut r.pages {
                r.partial |= p.end_partial();
            }
        }
    }

    /// The parameter block.
    fn bind(&self, kernel: &Kernel, spec: &LaunchSpec<'_>) -> Result<Vec<u8>, SessionError> {
        if kernel.params.len() != spec.args.len() {
            return Err(SessionError::ArgumentCount {
                kernel: spec.kernel.to_owned(),
                expected: kernel.params.len(),
                got: spec.args.len(),
            });
        }
        let mut block = vec![0u8; kernel.param_bytes as usize];
        for (index, (p, a)) in kernel.params.iter().zip(spec.args).enumerate() {
            let bytes = match a {
                Arg::Bytes(b) => b.clone(),
                Arg::Pointer(ptr, offset) => {
                    let address = self.buffer(*ptr).map_or(0, Buffer::address);
                    address.wrapping_add(*offset as u64).to_le_bytes().to_vec()
                }
            };
            if bytes.len() as u64 != p.size {
                return Err(SessionError::ArgumentSize {
                    kernel: spec.kernel.to_owned(),
                    index,
                    expected: p.size,
                    got: bytes.len() as u64,
                });
            }
            let at = p.offset as usize;
            block[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(block)
    }
}

fn early(status: Status, reason: String) -> Outcome {
    Outcome {
        status,
        findings: Vec::new(),
        reason: Some(reason),
        stopped_at: None,
        instructions: 0,
        printf: Vec::new(),
        blocks: BlocksRun::default(),
        coverage: Vec::new(),
    }
}

fn invalid_launch(kernel: &str, what: &str) -> Outcome {
    let mut f = Finding::new(FindingKind::InvalidLaunch, what);
    f.kernel = Some(kernel.to_owned());
    Outcome {
        status: Status::Finding,
        findings: vec![f],
        reason: None,
        stopped_at: None,
        instructions: 0,
        printf: Vec::new(),
        blocks: BlocksRun::default(),
        coverage: Vec::new(),
    }
}

/// Which limit a launch breaks.
fn limits(kernel: &Kernel, spec: &LaunchSpec<'_>) -> Option<String> {
    const AXES: [&str; 3] = ["x", "y", "z"];
    for (k, axis) in AXES.iter().enumerate() {
        if spec.grid[k] == 0 || spec.block[k] == 0 {
            let what = if spec.grid[k] == 0 { "grid" } else { "block" };
            return Some(format!("{what} dimension {axis} is 0"));
        }
        if spec.grid[k] > MAX_GRID[k] {
            return Some(format!("grid dimension {axis} is {}, the limit {}", spec.grid[k], MAX_GRID[k]));
        }
        if spec.block[k] > MAX_BLOCK[k] {
            return Some(format!("block dimension {axis} is {}, the limit {}", spec.block[k], MAX_BLOCK[k]));
        }
    }
    let threads = spec.block.iter().product::<u64>();
    let limit = kernel.max_threads.unwrap_or(MAX_THREADS).min(MAX_THREADS);
    if threads > limit {
        return Some(format!("{threads} threads a block, the limit is {limit}"));
    }
    if let Some(want) = kernel.req_block
        && want != spec.block
    {
        return Some(format!("block {:?}, the kernel requires {want:?}", spec.block));
    }
    if kernel.shared_bytes > MAX_STATIC_SHARED {
        return Some(format!(
            "{} bytes of static shared memory, the limit is {MAX_STATIC_SHARED}",
            kernel.shared_bytes
        ));
    }
    let total = kernel.shared_bytes.saturating_add(spec.dynamic_shared);
    if total > MAX_SHARED {
        return Some(format!("{total} bytes of shared memory, the limit is {MAX_SHARED}"));
    }
    None
}
