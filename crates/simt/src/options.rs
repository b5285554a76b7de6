//! What a caller chooses: memory model, fill, schedule, checks, limits, buffers and launches.

use std::sync::Arc;

use assay_tensor::{DType, Generator};
use serde::{Deserialize, Serialize};

use crate::blocks::{Blocks, BlocksRun};

/// How buffers are laid out and what an access outside one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Every buffer exact: an access outside is a finding and ends the block.
    #[default]
    Strict,
    /// Buffers laid out as a caching allocator would by their official sizes; only leaving the segment is a
    /// finding.
    Arena,
}

/// What fresh memory (uninitialised buffers, slack between buffers, shared and local memory) holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Finite values of the buffer's dtype, uniform in [-1, 1], from `Options::fill_seed`.
    #[default]
    Noise,
    /// Zero bytes.
    Zeros,
    /// NaN of the buffer's dtype (all bits set).
    Nan,
    /// What the caller says was there before ([`Init::Previous`]), noise elsewhere.
    Previous,
}

/// The order in which warps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Round-robin in near lockstep, with a small seeded jitter: races seldom show.
    #[default]
    Hardware,
    /// One warp runs until it blocks, in seeded order: races show.
    RunAhead,
    /// For tests: at every turn and every choice another warp or divergent group of lanes, at random, for a few
    /// instructions. A kernel without hazards gives the same under it.
    #[doc(hidden)]
    Shuffled,
}

/// Which detectors run beyond the bounds and alignment checks that always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Sanitize {
    /// Data races in shared and global memory.
    pub races: bool,
    /// Reads of bytes never written, in shared, global and local memory.
    pub initialised: bool,
    /// Barrier divergence and an exit before a barrier that others still reach.
    pub barriers: bool,
    /// Output bytes never written, at [`crate::Session::finish`].
    pub unwritten: bool,
}

impl Sanitize {
    /// Nothing beyond bounds and alignment: the plain, fast mode.
    pub const OFF: Sanitize =
        Sanitize { races: false, initialised: false, barriers: false, unwritten: false };
    /// Every detector.
    pub const ALL: Sanitize = Sanitize { races: true, initialised: true, barriers: true, unwritten: true };

    /// True where shadow memory is needed while the kernel runs.
    pub fn needs_shadow(self) -> bool {
        self.races || self.initialised || self.unwritten
    }
}

/// What executes kernels. Results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The interpreter at first; compiled code where a launch is long enough for it to pay.
    #[default]
    Auto,
    /// The interpreter.
    Interp,
    /// Compiled code from the start, where it can: without detectors, on a processor with AVX2 and FMA.
    Jit,
}

/// Everything about a [`crate::Session`] that can change a result or a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Memory model.
    pub memory: Memory,
    /// Contents of fresh memory.
    pub fill: Fill,
    /// Detectors.
    pub sanitize: Sanitize,
    /// Warp order.
    pub schedule: Schedule,
    /// Seed of the schedule.
    pub seed: u64,
    /// Seed of the fill.
    pub fill_seed: u64,
    /// Warp-instructions that all launches of the session may execute together.
    pub instruction_budget: u64,
    /// Bytes that buffers, pages, shared, local and shadow memory may take together.
    pub memory_cap_bytes: u64,
    /// Bytes of a page of a sparse buffer: a power of two from 64 to 1024. Changes no result.
    pub page_bytes: u64,
    /// What executes kernels; changes no result.
    #[serde(default)]
    pub engine: Engine,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: Memory::Strict,
            fill: Fill::Noise,
            sanitize: Sanitize::OFF,
            schedule: Schedule::Hardware,
            seed: 0,
            fill_seed: 0,
            instruction_budget: 2_000_000_000,
            memory_cap_bytes: 4 << 30,
            page_bytes: crate::memory::pages::PAGE_BYTES,
            engine: Engine::Auto,
        }
    }
}

/// What a buffer is to the computation; also the order of the arena: parameters, inputs, scratch, outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A weight or another parameter tensor: read only.
    Parameter,
    /// An input tensor: read only.
    Input,
    /// A temporary.
    Scratch,
    /// A result.
    Output,
}

/// Values of a buffer's elements as a function of their index: what a sparse buffer holds where nothing wrote.
pub trait Elements: Send + Sync {
    /// Writes elements `first`, `first + 1`, … into `out`: whole elements of the buffer's dtype, little-endian.
    fn fill(&self, first: u64, out: &mut [u8]);
}

impl<F: Fn(u64, &mut [u8]) + Send + Sync> Elements for F {
    fn fill(&self, first: u64, out: &mut [u8]) {
        self(first, out);
    }
}

/// [`Elements`] that sessions share.
#[derive(Clone)]
pub struct Generated(Arc<dyn Elements>);

impl Generated {
    /// The elements of a generator in a dtype.
    pub fn new(dtype: DType, generator: Generator) -> Generated {
        Generated::from_fn(move |first, out: &mut [u8]| generator.fill_at(dtype, first, out))
    }

    /// Elements of the caller's own: `f(first, out)` as in [`Elements::fill`]. Must give the same values whenever
    /// and however often it is called.
    pub fn from_fn(f: impl Fn(u64, &mut [u8]) + Send + Sync + 'static) -> Generated {
        Generated(Arc::new(f))
    }

    /// See [`Elements::fill`].
    pub fn fill(&self, first: u64, out: &mut [u8]) {
        self.0.fill(first, out);
    }
}

impl From<Arc<dyn Elements>> for Generated {
    fn from(e: Arc<dyn Elements>) -> Generated {
        Generated(e)
    }
}

impl std::fmt::Debug for Generated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Generated")
    }
}

/// The contents of a buffer before the first launch.
#[derive(Clone, Copy, Debug)]
pub enum Init<'a> {
    /// These bytes, exactly `size_bytes` of them; every byte counts as initialised.
    Bytes(&'a [u8]),
    /// These elements; every byte counts as initialised. The size is a whole number of elements.
    Generated(&'a Generated),
    /// Fresh memory in which these bytes (at most `size_bytes`) lay before: seen under [`Fill::Previous`] only,
    /// and uninitialised to the detectors in any case.
    Previous(&'a [u8]),
    /// Fresh memory.
    Uninit,
}

/// A buffer to allocate.
#[derive(Clone, Copy, Debug)]
pub struct BufferSpec<'a> {
    /// Name for findings.
    pub name: &'a str,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Length in bytes that it would have at official extents (arena layout); 0 means `size_bytes`.
    pub official_bytes: u64,
    /// Role; under `may_write == false` a store to an input or parameter is `input_modified`.
    pub role: Role,
    /// Element type: decides the fill.
    pub dtype: DType,
    /// Contents.
    pub init: Init<'a>,
    /// True if kernels may write it even though its role is `Input` or `Parameter` (in-place problems).
    pub may_write: bool,
    /// Pages instead of bytes: memory is taken only where kernels write. Up to 2^39 bytes; needs
    /// [`Memory::Strict`].
    pub sparse: bool,
    /// Extents, outermost first, or nothing: where a sample looks for the blocks at a boundary.
    pub shape: &'a [u64],
}

impl<'a> BufferSpec<'a> {
    /// A buffer whose official size is its own, written only if its role is `Scratch` or `Output`.
    pub fn new(name: &'a str, size_bytes: u64, role: Role, dtype: DType, init: Init<'a>) -> Self {
        BufferSpec {
            name,
            size_bytes,
            official_bytes: size_bytes,
            role,
            dtype,
            init,
            may_write: false,
            sparse: false,
            shape: &[],
        }
    }
}

/// A buffer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ptr(pub(crate) u32);

/// A kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The parameter's bytes, little-endian, exactly as long as the parameter.
    Bytes(Vec<u8>),
    /// The address of a buffer plus a byte offset.
    Pointer(Ptr, i64),
}

/// One kernel launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSpec<'a> {
    /// PTX name of the entry.
    pub kernel: &'a str,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads per block in x, y, z.
    pub block: [u64; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u64,
    /// One argument per parameter.
    pub args: &'a [Arg],
    /// Which blocks are executed. Leaving some out needs [`Memory::Strict`].
    pub blocks: &'a Blocks,
}

/// How a launch, or the session so far, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ran to its end, nothing found.
    Ok,
    /// At least one finding.
    Finding,
    /// Met something that the device does not implement; says nothing about the kernel.
    Unsupported,
    /// Out of instruction budget or memory cap; says nothing about the kernel.
    Exhausted,
}

/// What a launch gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// How it ended. `Exhausted` and `Unsupported` win over `Finding`, whose findings are listed all the same.
    pub status: Status,
    /// Distinct findings of this launch, in order of discovery.
    pub findings: Vec<crate::Finding>,
    /// Why the status is `Unsupported` or `Exhausted`.
    pub reason: Option<String>,
    /// Where a thread was when the budget ran out: a place within the loop that does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<crate::SourcePlace>,
    /// Warp-instructions executed.
    pub instructions: u64,
    /// Text that the kernel printed, one entry per call and thread.
    pub printf: Vec<String>,
    /// Which blocks were started.
    pub blocks: BlocksRun,
    /// Per output that is sparse, or that a launch of sampled blocks wrote: what was written where it matters.
    pub coverage: Vec<Coverage>,
}

/// What is written of an output: the last element and both sides of each boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The buffer.
    pub buffer: String,
    /// Its elements.
    pub elements: u64,
    /// Elements of which a byte was written, by this launch or an earlier one.
    pub written: u64,
    /// The elements that tell.
    pub points: Vec<CoveragePoint>,
}

/// One element of [`Coverage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoveragePoint {
    /// `last`, or the boundary: `2^31 elements`, `2^32 elements`, `2^32 bytes`.
    pub at: String,
    /// The element: the last one, the last below the boundary, or the first at it.
    pub index: u64,
    /// Whether a byte of it was written.
    pub written: bool,
}

impl Outcome {
    /// True if the block was ended by a fault (an access outside, a trap, an assertion, a deadlock, an invalid
    /// launch), so that a GPU would have reported an error.
    pub fn faulted(&self) -> bool {
        self.findings.iter().any(|f| f.kind.is_fault())
    }
}
