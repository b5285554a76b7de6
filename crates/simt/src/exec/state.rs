//! The state of resident blocks: warps, their frames and divergent fragments.

use assay_ptx::Special;

use super::copies::Pending;
use super::rng::Rng;
use crate::code::{Code, Kernel, Kind};
use crate::memory::Bytes;
use crate::warp::{LANES, Phase, Warp};

/// What a fragment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Can run.
    Ready,
    /// At a block barrier.
    Barrier(u8),
    /// At a warp operation, for the lanes of a mask.
    Members(u32),
}

/// Lanes of a warp that share a program counter and a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) frame: u32,
    pub(crate) state: State,
    /// When it last ran, for fairness.
    pub(crate) ran: u64,
}

/// The registers of a function call.
pub(crate) struct Frame {
    pub(crate) code: u32,
    pub(crate) regs: Bytes,
    /// The caller's frame and the instruction behind the call; `u32::MAX` for the entry's frame.
    pub(crate) parent: u32,
    pub(crate) return_pc: u32,
    pub(crate) local_base: u64,
    pub(crate) depth: u32,
    /// Fragments in it and frames called from it.
    pub(crate) users: u32,
}

/// A warp.
pub(crate) struct WarpState {
    pub(crate) w: Warp,
    pub(crate) frames: Vec<Frame>,
    pub(crate) free: Vec<u32>,
    pub(crate) fragments: Vec<Fragment>,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    /// Lanes that exist.
    pub(crate) exists: u32,
    pub(crate) local: Bytes,
    /// Turns that ended for lack of fuel in a row: after a few the oldest fragment runs instead of the first.
    pub(crate) stale_turns: u32,
    /// Turns in a row that ended, with fuel left, while the warp had several fragments.
    pub(crate) yields: u32,
    /// Where lanes last exited: line.
    pub(crate) exit_line: u32,
    /// The entry's frame as the first block had it, where a register may be read before it is written.
    pub(crate) image: Vec<u8>,
    /// The entry's frame was filled.
    pub(crate) filled: bool,
    /// Asynchronous copies that have not landed, and how many groups of them each lane has committed.
    pub(crate) copies: Vec<Pending>,
    pub(crate) groups: [u32; LANES],
}

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Lanes that wait, per warp.
    pub(crate) waiting: Vec<u32>,
    /// Lanes that only arrived, per warp.
    pub(crate) arrived: Vec<u32>,
    /// How many lanes wait in all, and whether any arrived without waiting.
    pub(crate) waiters: u32,
    pub(crate) any_arrived: bool,
    /// Some waiter wants a reduction's result.
    pub(crate) reduces: bool,
    /// Threads that make it complete, if the instruction says it.
    pub(crate) count: Option<u64>,
    /// Running `popc`, `and`, `or` of the predicates.
    pub(crate) popc: u32,
    pub(crate) all: bool,
    pub(crate) any: bool,
    pub(crate) aligned: bool,
}

impl Barrier {
    /// Nobody is there yet.
    pub(crate) fn begin(&mut self, warps: usize) {
        for list in [&mut self.waiting, &mut self.arrived] {
            list.clear();
            list.resize(warps, 0);
        }
        (self.waiters, self.any_arrived, self.reduces, self.count) = (0, false, false, None);
        (self.popc, self.all, self.any, self.aligned) = (0, true, false, true);
    }
}

/// A resident block.
pub(crate) struct Block {
    pub(crate) index: [u32; 3],
    pub(crate) linear: u64,
    /// Number among the blocks that are executed.
    pub(crate) ordinal: u64,
    pub(crate) warps: Vec<WarpState>,
    pub(crate) shared: Bytes,
    pub(crate) barriers: Vec<Barrier>,
    /// Bits of the barriers at which someone is.
    pub(crate) open: u32,
    /// Threads that have not exited.
    pub(crate) live: u32,
    /// Order in which warps take turns.
    pub(crate) order: Vec<u32>,
    pub(crate) active: bool,
    /// Its warps, while all of them are in compiled code.
    pub(crate) convoy: super::convoy::Convoy,
    /// Divergence at a barrier was reported for this block.
    pub(crate) barrier_reported: bool,
}

/// What special registers need to know.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u64; 3],
    pub(crate) block: [u64; 3],
    pub(crate) threads: u64,
    pub(crate) dynamic_shared: u64,
    pub(crate) shared: u64,
}

impl Shape {
    /// threadIdx of a thread of the block.
    pub(crate) fn thread(&self, linear: u64) -> [u32; 3] {
        let [x, y, _] = self.block;
        [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32]
    }
}

/// The value of a special register in one lane.
fn special(s: Special, shape: &Shape, block: &Block, warp: usize, lane: usize) -> u64 {
    let t = shape.thread((warp * LANES + lane) as u64);
    let below = (1u64 << lane) - 1;
    match s {
        Special::TidX => u64::from(t[0]),
        Special::TidY => u64::from(t[1]),
        Special::TidZ => u64::from(t[2]),
        Special::NtidX => shape.block[0],
        Special::NtidY => shape.block[1],
        Special::NtidZ => shape.block[2],
        Special::CtaidX | Special::ClusteridX => u64::from(block.index[0]),
        Special::CtaidY | Special::ClusteridY => u64::from(block.index[1]),
        Special::CtaidZ | Special::ClusteridZ => u64::from(block.index[2]),
        Special::NctaidX | Special::NclusteridX => shape.grid[0],
        Special::NctaidY | Special::NclusteridY => shape.grid[1],
        Special::NctaidZ | Special::NclusteridZ => shape.grid[2],
        Special::ClusterCtaidX | Special::ClusterCtaidY | Special::ClusterCtaidZ => 0,
        Special::ClusterNctaidX | Special::ClusterNctaidY | Special::ClusterNctaidZ => 1,
        Special::ClusterCtarank => 0,
        Special::ClusterNctarank => 1,
        Special::IsExplicitCluster => 0,
        Special::Laneid => lane as u64,
        Special::Warpid => warp as u64,
        Special::Nwarpid => shape.threads.div_ceil(LANES as u64),
        // One multiprocessor per resident block, of which there are eight.
        Special::Smid => block.linear % 8,
        Special::Nsmid => 8,
        Special::Gridid => 1,
        Special::LanemaskEq => 1 << lane,
        Special::LanemaskLt => below,
        Special::LanemaskLe => below | 1 << lane,
        Special::LanemaskGt => 0xffff_ffff & !(below | 1 << lane),
        Special::LanemaskGe => 0xffff_ffff & !below,
        Special::DynamicSmemSize => shape.dynamic_shared,
        Special::TotalSmemSize | Special::AggrSmemSize => shape.shared,
        Special::Clock | Special::ClockHi | Special::Clock64 => 0,
        Special::Globaltimer | Special::GlobaltimerLo | Special::GlobaltimerHi => 0,
        Special::ReservedSmemOffsetBegin
        | Special::ReservedSmemOffsetEnd
        | Special::ReservedSmemOffsetCap => 0,
        Special::Envreg1 | Special::Envreg2 => 0,
        Special::ReservedSmemOffset0 | Special::ReservedSmemOffset1 | Special::CurrentGraphExec => 0,
    }
}

/// True if a special register differs between blocks.
fn of_block(s: Special) -> bool {
    matches!(
        s,
        Special::CtaidX
            | Special::CtaidY
            | Special::CtaidZ
            | Special::ClusteridX
            | Special::ClusteridY
            | Special::ClusteridZ
            | Special::Smid
    )
}

/// Fills a fresh frame.
pub(crate) fn fill_frame(regs: &mut Bytes, code: &Code, shape: &Shape, block: &Block, warp: usize) {
    let bytes = regs.as_mut_slice();
    bytes[..code.template.len()].copy_from_slice(&code.template);
    fill_specials(bytes, code, shape, block, warp);
}

/// Fills the entry's frame of a warp for another block. `whole`: it may hold anything. Else it is as the block before
/// left it, and `image` what its first block's was, where it matters.
pub(crate) fn refill_frame(
    regs: &mut Bytes,
    image: &mut Vec<u8>,
    code: &Code,
    shape: &Shape,
    block: &Block,
    warp: usize,
    whole: bool,
) {
    if whole {
        fill_frame(regs, code, shape, block, warp);
        image.clear();
        if code.unset {
            image.extend_from_slice(regs.as_slice());
        }
        return;
    }
    let bytes = regs.as_mut_slice();
    if code.unset {
        bytes.copy_from_slice(image);
    }
    // These are the same in all lanes.
    for (s, at, kind) in code.specials.iter().filter(|(s, ..)| of_block(*s)) {
        let at = *at as usize;
        let v = special(*s, shape, block, warp, 0);
        match kind {
            Kind::W32 => fill(&mut bytes[at..at + 128], (v as u32).to_le_bytes()),
            Kind::W64 => fill(&mut bytes[at..at + 256], v.to_le_bytes()),
            Kind::Pred => fill(&mut bytes[at..at + 4], (0u32.wrapping_sub(v as u32 & 1)).to_le_bytes()),
        }
    }
}

/// Repeats `value`.
fn fill<const N: usize>(bytes: &mut [u8], value: [u8; N]) {
    bytes.as_chunks_mut::<N>().0.fill(value);
}

fn fill_specials(bytes: &mut [u8], code: &Code, shape: &Shape, block: &Block, warp: usize) {
    for (s, at, kind) in &code.specials {
        let at = *at as usize;
        match kind {
            Kind::W32 => {
                for (k, c) in bytes[at..at + 128].chunks_exact_mut(4).enumerate() {
                    c.copy_from_slice(&(special(*s, shape, block, warp, k) as u32).to_le_bytes());
                }
            }
            Kind::W64 => {
                for (k, c) in bytes[at..at + 256].chunks_exact_mut(8).enumerate() {
                    c.copy_from_slice(&special(*s, shape, block, warp, k).to_le_bytes());
                }
            }
            Kind::Pred => {
                let m =
                    (0..LANES).fold(0u32, |m, k| m | (special(*s, shape, block, warp, k) as u32 & 1) << k);
                bytes[at..at + 4].copy_from_slice(&m.to_le_bytes());
            }
        }
    }
}

impl WarpState {
    pub(crate) fn new() -> WarpState {
        WarpState {
            w: Warp::empty(),
            frames: Vec::new(),
            free: Vec::new(),
            fragments: Vec::new(),
            live: 0,
            exists: 0,
            local: Bytes::zeroed(0),
            stale_turns: 0,
            yields: 0,
            exit_line: 0,
            image: Vec::new(),
            filled: false,
            copies: Vec::new(),
            groups: [0; LANES],
        }
    }

    /// Makes the warp ready for a block's start: one fragment at the entry's first instruction.
    pub(crate) fn start(&mut self, kernel: &Kernel, lanes: u32) {
        let mask = if lanes >= 32 { u32::MAX } else { (1 << lanes) - 1 };
        self.live = mask;
        self.exists = mask;
        self.stale_turns = 0;
        self.yields = 0;
        self.exit_line = 0;
        self.copies.clear();
        self.groups = [0; LANES];
        self.fragments.clear();
        self.fragments.push(Fragment { pc: 0, mask, frame: 0, state: State::Ready, ran: 0 });
        if self.frames.is_empty() {
            let len = kernel.codes[0].template.len();
            self.frames.push(Frame {
                code: 0,
                regs: Bytes::zeroed(len),
                parent: u32::MAX,
                return_pc: 0,
                local_base: 0,
                depth: 0,
                users: 1,
            });
        }
        self.frames.truncate(1);
        self.free.clear();
        self.frames[0].users = 1;
        self.w.phase = Phase::Fresh;
        self.w.clock = 0;
    }

    /// A frame for a call of `code` from `parent`.
    pub(crate) fn push_frame(&mut self, frame: Frame) -> u32 {
        let parent = frame.parent as usize;
        self.frames[parent].users += 1;
        if let Some(i) = self.free.pop() {
            self.frames[i as usize] = frame;
            i
        } else {
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        }
    }

    /// One user of a frame is gone; frames without users are freed, up the chain.
    pub(crate) fn release_frame(&mut self, frame: u32) {
        let mut at = frame;
        while at != u32::MAX {
            let f = &mut self.frames[at as usize];
            f.users = f.users.saturating_sub(1);
            if f.users > 0 || at == 0 {
                return;
            }
            let parent = f.parent;
            f.regs = Bytes::zeroed(0);
            self.free.push(at);
            at = parent;
        }
    }

    /// Merges fragments that are at one place in one state. The generation of the warp changes if any did.
    pub(crate) fn merge(&mut self) {
        if self.fragments.len() == 1 {
            return;
        }
        let mut i = 0;
        while i < self.fragments.len() {
            let mut j = i + 1;
            while j < self.fragments.len() {
                let (a, b) = (self.fragments[i], self.fragments[j]);
                if a.pc == b.pc && a.frame == b.frame && a.state == b.state {
                    self.fragments[i].mask |= b.mask;
                    self.fragments.swap_remove(j);
                    self.release_frame(b.frame);
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// The fragment to run: the deepest call's lowest instruction, so that those behind catch up; after turns
    /// without progress the one that has waited longest.
    pub(crate) fn pick(&self) -> Option<usize> {
        if let [only] = &self.fragments[..] {
            return (only.state == State::Ready).then_some(0);
        }
        let ready = (0..self.fragments.len()).filter(|i| self.fragments[*i].state == State::Ready);
        if self.stale_turns > 1 {
            return ready.min_by_key(|i| self.fragments[*i].ran);
        }
        ready.min_by_key(|i| {
            let f = &self.fragments[*i];
            (u32::MAX - self.frames[f.frame as usize].depth, f.pc)
        })
    }

    /// Any fragment that can run.
    pub(crate) fn pick_any(&self, rng: &mut Rng) -> Option<usize> {
        let ready: Vec<usize> =
            (0..self.fragments.len()).filter(|i| self.fragments[*i].state == State::Ready).collect();
        let n = rng.below(ready.len().max(1) as u64);
        ready.get(n as usize).copied()
    }
}

impl Block {
    pub(crate) fn new(shared_bytes: usize, warps: usize) -> Block {
        Block {
            index: [0; 3],
            linear: 0,
            ordinal: 0,
            warps: (0..warps).map(|_| WarpState::new()).collect(),
            shared: Bytes::with_capacity(shared_bytes, shared_bytes + 64),
            barriers: vec![Barrier::default(); 16],
            open: 0,
            live: 0,
            order: (0..warps as u32).collect(),
            active: false,
            convoy: super::convoy::Convoy::default(),
            barrier_reported: false,
        }
    }

    /// True if every thread has exited.
    pub(crate) fn done(&self) -> bool {
        self.live == 0
    }
}
