//! Decoded code: what the decoder makes and the executor runs.

use std::sync::Arc;

use assay_ptx::{AtomOp, BarRed, Loc, MatchMode, Scope, Semantics, ShflMode, Space, Special, Ty, VoteMode};

use crate::findings::SourcePlace;
use crate::handlers::chain::ChainOp;
use crate::semantics::LaneFn;
use crate::semantics::matrix::{MAX_REGISTERS, Part, Product, Words};
use crate::warp::{Decoded, LANES};

/// Width class of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// One word with a bit per lane.
    Pred,
    /// `[u32; 32]`.
    W32,
    /// `[u64; 32]`.
    W64,
}

/// A register (or constant) of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Byte offset in the frame.
    pub(crate) at: u32,
    pub(crate) kind: Kind,
    /// A negated predicate.
    pub(crate) negated: bool,
}

/// An instruction done lane by lane.
pub(crate) struct LaneOp {
    pub(crate) f: LaneFn,
    pub(crate) sources: Vec<Slot>,
    pub(crate) dest: Option<Slot>,
    /// Second predicate of `setp`: bit 1 of the result.
    pub(crate) second: Option<Slot>,
}

/// Instructions on the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryOp {
    /// a + b (+ carry).
    Add,
    /// a - b (- borrow).
    Sub,
    /// low half of a * b, + c (+ carry).
    MadLo,
    /// high half of a * b, + c (+ carry).
    MadHi,
}

/// See [`CarryOp`].
pub(crate) struct Carry {
    pub(crate) op: CarryOp,
    pub(crate) ty: Ty,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
    pub(crate) dest: Option<Slot>,
    /// The flag: a predicate.
    pub(crate) flag: u32,
}

/// What a memory instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemKind {
    Load,
    Store,
    /// `atom` and `red`.
    Atomic(AtomOp),
    /// An operation on an `mbarrier` object, see [`crate::exec::mbarrier`].
    Mbarrier(MbarrierOp),
}

/// What is done to an `mbarrier` object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarrierOp {
    Init,
    Inval,
    /// The number of arrivals is the operand, 1 without one; `drop`: these threads do not come again.
    Arrive {
        drop: bool,
    },
    /// The operand is a state that an arrival gave, or (`parity`) the parity of a phase.
    Test {
        parity: bool,
    },
}

/// A memory instruction, for the path that does everything.
#[derive(Clone, Debug)]
pub(crate) struct MemOp {
    pub(crate) kind: MemKind,
    /// `None`: generic addresses.
    pub(crate) space: Option<Space>,
    /// Register (or constant) with the address.
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    /// Add the frame's local base (symbols in local memory, parameters of device functions).
    pub(crate) frame_relative: bool,
    /// Bytes of an element.
    pub(crate) size: u8,
    /// Element type: signedness of loads, arithmetic of atomics.
    pub(crate) ty: Ty,
    /// Loaded or stored elements; `None` for `_`. For atomics the destination.
    pub(crate) data: Vec<Option<Slot>>,
    /// Operands of an atomic.
    pub(crate) b: Option<Slot>,
    pub(crate) c: Option<Slot>,
    /// Volatile, relaxed, acquire, …: not a data race with another such access.
    pub(crate) strong: bool,
    pub(crate) semantics: Option<Semantics>,
    pub(crate) scope: Option<Scope>,
    /// Bytes that the program uses of what it loads, bit k for byte k; all ones where it uses all.
    pub(crate) used: u32,
}

/// An argument or result on the caller's side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Bytes of the caller's local frame.
    Local { offset: u64 },
    /// A register or constant.
    Slot(Slot),
}

/// A parameter or result on the callee's side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// Bytes of the callee's local frame.
    Local { offset: u64, size: u64 },
    /// A register.
    Slot { slot: Slot, size: u64 },
}

/// What is called.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    /// A function of this kernel.
    Code(u32),
    /// An address in a register: codes by function address.
    Indirect(Slot),
    /// `vprintf(format, arguments)`.
    Printf,
    /// `__assertfail(message, file, line, function, size)`.
    AssertFail,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallOp {
    pub(crate) callee: Callee,
    pub(crate) args: Vec<Value>,
    pub(crate) returns: Vec<Value>,
}

/// A block barrier.
#[derive(Clone, Debug)]
pub(crate) struct BarOp {
    pub(crate) id: Slot,
    pub(crate) count: Option<Slot>,
    /// Does not wait.
    pub(crate) arrive: bool,
    /// Reduction: mode, predicate, destination.
    pub(crate) red: Option<(BarRed, Slot, Slot)>,
    pub(crate) aligned: bool,
}

/// Operations of a warp that wait for the lanes of a mask.
#[derive(Clone, Debug)]
pub(crate) enum Collective {
    Shfl { mode: ShflMode },
    Vote { mode: VoteMode },
    Match { mode: MatchMode, wide: bool },
    Redux { op: AtomOp, ty: Ty },
    Sync,
    Elect,
    Matrix(Arc<MatrixOp>),
}

/// An operation of a whole warp on matrices.
#[derive(Debug)]
pub(crate) struct MatrixOp {
    /// The opcode, for findings.
    pub(crate) name: &'static str,
    pub(crate) work: MatrixWork,
}

/// See [`MatrixOp`].
#[derive(Debug)]
pub(crate) enum MatrixWork {
    /// `mma`, `wmma.mma`.
    Product(Product),
    /// `ldmatrix`, `stmatrix`.
    Rows(RowsOp),
    /// `wmma.load`, `wmma.store`.
    Tile(TileOp),
    /// `movmatrix`.
    Transpose { dest: Slot, source: Slot },
}

/// Loads or stores of 8x8 matrices, a row of 16 bytes by an address of each lane.
#[derive(Debug)]
pub(crate) struct RowsOp {
    pub(crate) mem: MemOp,
    pub(crate) transpose: bool,
    /// One register per matrix.
    pub(crate) slots: Vec<Slot>,
}

/// A load or store of a `wmma` fragment.
#[derive(Debug)]
pub(crate) struct TileOp {
    pub(crate) mem: MemOp,
    pub(crate) part: Part,
    /// Columns lie one after the other instead of rows.
    pub(crate) by_column: bool,
    /// Elements from one line to the next.
    pub(crate) stride: Slot,
    /// As [`Part::at`], counted along the lines in memory.
    pub(crate) order: Vec<[u16; LANES]>,
}

impl TileOp {
    /// Registers from the lines, one after the other without gaps; elements of `SIZE` bytes.
    #[inline(always)]
    pub(crate) fn gather<const SIZE: usize>(&self, lines: &[u8]) -> Words {
        let mut words = [[0; LANES]; MAX_REGISTERS];
        for (k, places) in self.order.iter().enumerate() {
            let shift = 8 * SIZE * (k % self.part.per);
            let word = &mut words[k / self.part.per];
            for (w, at) in word.iter_mut().zip(places) {
                let from = usize::from(*at) * SIZE;
                let mut v = [0; 8];
                v[..SIZE].copy_from_slice(&lines[from..from + SIZE]);
                *w |= u64::from_le_bytes(v) << shift;
            }
        }
        words
    }

    /// The reverse of [`TileOp::gather`].
    #[inline(always)]
    pub(crate) fn scatter<const SIZE: usize>(&self, words: &Words, lines: &mut [u8]) {
        for (k, places) in self.order.iter().enumerate() {
            let shift = 8 * SIZE * (k % self.part.per);
            for (w, at) in words[k / self.part.per].iter().zip(places) {
                let to = usize::from(*at) * SIZE;
                lines[to..to + SIZE].copy_from_slice(&(w >> shift).to_le_bytes()[..SIZE]);
            }
        }
    }
}

/// `cp.async`: a copy from global to shared memory that happens later.
#[derive(Debug)]
pub(crate) struct CopyOp {
    pub(crate) source: MemOp,
    pub(crate) dest: MemOp,
    /// Bytes written: 4, 8 or 16.
    pub(crate) size: u64,
    /// Bytes read, the rest being zeros.
    pub(crate) read: Option<Slot>,
    /// Where it holds nothing is read.
    pub(crate) ignore: Option<Slot>,
}

impl Collective {
    /// True if lanes at the two instructions meet.
    pub(crate) fn meets(&self, other: &Collective) -> bool {
        match (self, other) {
            (Collective::Shfl { mode: a }, Collective::Shfl { mode: b }) => a == b,
            (Collective::Vote { mode: a }, Collective::Vote { mode: b }) => a == b,
            (Collective::Match { mode: a, wide: x }, Collective::Match { mode: b, wide: y }) => {
                a == b && x == y
            }
            (Collective::Redux { op: a, ty: s }, Collective::Redux { op: b, ty: t }) => a == b && s == t,
            (Collective::Sync, Collective::Sync) | (Collective::Elect, Collective::Elect) => true,
            // All of them are `.aligned`: one instruction.
            (Collective::Matrix(a), Collective::Matrix(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A collective with its operands.
#[derive(Clone, Debug)]
pub(crate) struct WarpOp {
    pub(crate) op: Collective,
    pub(crate) dest: Option<Slot>,
    pub(crate) pred: Option<Slot>,
    /// Value operands: `a`, and for `shfl` `b` and `c`.
    pub(crate) sources: Vec<Slot>,
    /// Member mask.
    pub(crate) members: Slot,
}

/// What the slow path of an instruction needs.
pub(crate) enum Cold {
    Lane(LaneOp),
    Carry(Carry),
    Memory(MemOp),
    Brx {
        index: Slot,
        targets: Vec<u32>,
    },
    Call(CallOp),
    Ret,
    Exit,
    Bar(BarOp),
    Chain(ChainOp),
    Warp(WarpOp),
    Copy(Box<CopyOp>),
    /// `cp.async.commit_group`.
    CopyCommit,
    /// `cp.async.wait_group`: groups that may stay open; `None` waits for everything.
    CopyWait(Option<u32>),
    /// `cp.async.mbarrier.arrive`: copies land, then the lanes arrive (if they count, `.noinc`).
    CopyArrive(Option<Box<MemOp>>),
    Fence {
        scope: Scope,
    },
    Trap,
    Brkpt,
}

/// The body of a function, decoded for one kernel.
pub(crate) struct Code {
    /// Instructions as run without detectors.
    pub(crate) plain: Vec<Decoded>,
    /// The same with every memory access made visible.
    pub(crate) checked: Vec<Decoded>,
    pub(crate) cold: Vec<Cold>,
    /// Source line and file index per instruction; line 0 is unknown.
    pub(crate) lines: Vec<(u32, u32)>,
    /// What `.loc` says of an instruction.
    pub(crate) locs: Vec<Option<Loc>>,
    /// A fresh frame: zeros and constants.
    pub(crate) template: Vec<u8>,
    /// Some register may be read before it is written, so that it matters what a fresh frame holds.
    pub(crate) unset: bool,
    /// Where parameters and results are (device functions).
    pub(crate) params: Vec<Home>,
    pub(crate) returns: Vec<Home>,
    /// Special registers used: which, where, 64 bits or not.
    pub(crate) specials: Vec<(Special, u32, Kind)>,
    /// Bytes of local memory of a frame.
    pub(crate) local_bytes: u64,
    /// Number of the first instruction in the kernel.
    pub(crate) first_site: u32,
    /// Loads into 16-bit registers: (instruction, element), sorted.
    pub(crate) narrow: Vec<(u32, u32)>,
    /// An entry as the JIT reads it, where it can.
    pub(crate) source: Option<crate::jit::source::Source>,
}

// SAFETY: a `Decoded` holds function pointers and numbers only; the rest of `Code` is plain data behind `Arc`s of
// `Send + Sync` functions.
unsafe impl Send for Code {}
// SAFETY: as above; `Code` is never changed after it was made.
unsafe impl Sync for Code {}

/// A parameter of an entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryParam {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// An entry with everything that it can reach.
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// The entry is the first; the others are the device functions that it can reach.
    pub(crate) codes: Vec<Code>,
    /// Address index (of the module's functions) to code.
    pub(crate) by_function: Vec<Option<u32>>,
    pub(crate) params: Vec<EntryParam>,
    pub(crate) param_bytes: u64,
    /// Static shared memory.
    pub(crate) shared_bytes: u64,
    /// Alignment of dynamic shared memory.
    pub(crate) dynamic_align: u64,
    /// Shared variables: name, offset, size.
    pub(crate) shared_names: Vec<(String, u64, u64)>,
    pub(crate) max_threads: Option<u64>,
    pub(crate) req_block: Option<[u64; 3]>,
    pub(crate) files: Arc<Vec<String>>,
    /// It, or a function that it reaches, names a global or constant variable of its module.
    pub(crate) touches_variables: bool,
    /// Compiled code of the entry.
    pub(crate) jit: crate::jit::Cache,
}

impl Kernel {
    /// True if something in it can order accesses of different blocks: a fence, a release, an acquire.
    pub(crate) fn orders_blocks(&self) -> bool {
        let orders = |c: &Cold| match c {
            Cold::Fence { scope } => *scope != Scope::Cta,
            Cold::Memory(op) => {
                let orders = [Semantics::Acquire, Semantics::Release, Semantics::AcqRel, Semantics::Sc];
                op.scope != Some(Scope::Cta) && op.semantics.is_some_and(|s| orders.contains(&s))
            }
            _ => false,
        };
        self.codes.iter().any(|c| c.cold.iter().any(orders))
    }

    /// The place of an instruction numbered through the kernel.
    pub(crate) fn place_of_site(&self, site: u32) -> Option<SourcePlace> {
        let k = self.codes.partition_point(|c| c.first_site <= site).checked_sub(1)?;
        let c = &self.codes[k];
        self.place_of((*c.locs.get((site - c.first_site) as usize)?)?)
    }

    /// The place that `.loc` names, with the one where it was inlined.
    pub(crate) fn place_of(&self, loc: Loc) -> Option<SourcePlace> {
        let place = |file: u32, line: u32, column: u32| SourcePlace {
            file: self.files.get(file as usize).cloned(),
            line,
            column: Some(column).filter(|c| *c > 0),
            inlined_at: None,
        };
        let outer = loc.outermost.filter(|o| o.line > 0).map(|o| Box::new(place(o.file, o.line, o.column)));
        (loc.line > 0).then(|| SourcePlace { inlined_at: outer, ..place(loc.file, loc.line, loc.column) })
    }
}
