//! Running a launch: resident blocks, turns of warps, and everything that handlers leave to be done.
//!
//! **Fairness.** At least eight blocks are resident. A round gives every warp that can run a turn; a turn ends when
//! the warp blocks, when its fuel is out, or (lockstep) between a warp's loads and stores of shared memory, so that
//! warps of a block go through such phases together as they nearly do on a GPU. Within a warp, divergent fragments
//! run lowest instruction first, which lets them reconverge; after turns that end for lack of fuel the one that
//! has waited longest runs, so that a spin on a lane of the same warp ends.
//!
//! **Order.** Everything follows from the schedule and its seed: no clocks, no threads.

pub(crate) mod access;
mod barrier;
mod call;
mod collective;
mod convoy;
mod copies;
mod matrix;
pub(crate) mod mbarrier;
mod paged;
pub(crate) mod rng;
pub(crate) mod state;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::blocks::Plan;
use crate::code::{Cold, Kernel};
use crate::findings::{Collector, Finding, FindingKind, SourcePlace, ThreadId};
use crate::jit::Compiled;
use crate::memory::{GlobalMemory, TableEntry};
use crate::options::{Fill, Memory, Options, Schedule};
use crate::sanitize::{QuickHasher, Sanitizer};
use crate::warp::{Event, LANES, NEGATED, Phase, run};

use rng::Rng;
use state::{Block, Fragment, Shape, State, refill_frame};

/// Blocks resident at a time.
const RESIDENT: u64 = 8;
/// Rounds that a block gets before the next one.
const ROUNDS: u32 = 8;
/// Fuel of a turn in instructions under the two schedules.
const TURN: i64 = 1024;
const TURN_AHEAD: i64 = 65_536;
/// What the start of a block counts against the instruction budget, so that a grid without end of empty blocks is
/// exhausted too. Less than the shortest kernels execute in ten blocks, so that no budget of a multiple of what a
/// correct kernel needs is used up by it.
const BLOCK_COST: u64 = 32;
/// Turns in a row that a fragment may end of itself while others of its warp could run.
const MOST_YIELDS: u32 = 32;
/// Printed text kept per launch.
const PRINTF_LINES: usize = 10_000;
const PRINTF_BYTES: usize = 1 << 20;

/// Under [`crate::Engine::Auto`]: instructions after which a launch may be compiled for, and how many more it must be
/// expected to execute, which grow with the kernel as the time to compile it does.
const WARM: u64 = 300_000;
const LONG: u64 = 2_000_000;
const LONG_EACH: u64 = 20_000;

/// Why a launch ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Exhausted(String),
    Unsupported(String),
    /// A fault that ends the launch (arena).
    Fault,
}

/// How a warp goes on after the executor did something for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The same fragment, at this instruction.
    Go(u32),
    /// Choose a fragment anew.
    Repick,
    /// The block has ended.
    Ended,
}

/// A launch in progress.
pub(crate) struct Exec<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) memory: &'a mut GlobalMemory,
    pub(crate) table: Vec<TableEntry>,
    pub(crate) options: &'a Options,
    pub(crate) findings: &'a mut Collector,
    pub(crate) printf: Vec<String>,
    pub(crate) printf_bytes: usize,
    pub(crate) shape: Shape,
    pub(crate) params: Vec<u8>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) rng: Rng,
    pub(crate) now: u64,
    pub(crate) executed: u64,
    pub(crate) budget: u64,
    pub(crate) stop: Option<Stop>,
    pub(crate) san: Option<&'a mut Sanitizer>,
    /// Compiled code of the entry, for launches without detectors.
    pub(crate) jit: Option<std::sync::Arc<Compiled>>,
    /// How well its entries do.
    pub(crate) credit: Vec<i32>,
    /// Compile when it pays.
    pub(crate) may_compile: bool,
    /// Reports made already, so that a race on every element is described once: by kind, instruction and buffer.
    pub(crate) reported: HashMap<(FindingKind, u32, u64), Option<usize>, BuildHasherDefault<QuickHasher>>,
    /// Finished blocks may reuse their slots; blocks started so far.
    pub(crate) next_block: u64,
    /// Which blocks they are.
    pub(crate) plan: Plan,
    /// Stores of two executed blocks to one element are a finding without the race detector: blocks are left out, and
    /// nothing in the kernel orders blocks.
    pub(crate) claims: bool,
    /// Number of the first block among all whose stores were tracked.
    pub(crate) first_block: u32,
    /// Why the result says nothing, although the blocks ran to their end.
    pub(crate) not_sampleable: Option<String>,
}

impl Exec<'_> {
    /// Runs the grid.
    pub(crate) fn run(&mut self) {
        let warps = self.shape.threads.div_ceil(LANES as u64) as usize;
        let shared = self.shared_len();
        let slots = self.plan.len().min(RESIDENT);
        let frames = warps as u64 * self.kernel.codes[0].template.len() as u64 * slots;
        let local = self.kernel.codes[0].local_bytes.saturating_mul(warps as u64 * 32 * slots);
        let need = frames.saturating_add(shared * slots).saturating_add(local);
        let left = self.options.memory_cap_bytes.saturating_sub(self.memory.host_bytes());
        if need > left {
            let reason = format!("resident blocks need {need} bytes, {left} are left of the memory cap");
            self.stop = Some(Stop::Exhausted(reason));
            return;
        }
        self.blocks = (0..slots).map(|_| Block::new(shared as usize, warps)).collect();
        loop {
            for slot in 0..self.blocks.len() {
                if !self.blocks[slot].active && self.next_block < self.plan.len() {
                    let ordinal = self.next_block;
                    self.next_block += 1;
                    self.start_block(slot, ordinal);
                }
            }
            let mut order: Vec<u32> = (0..self.blocks.len() as u32).collect();
            if self.options.schedule != Schedule::Hardware {
                self.rng.shuffle(&mut order);
            }
            let mut any = false;
            for slot in order {
                if self.blocks[slot as usize].active {
                    any = true;
                    self.rounds(slot as usize);
                    if self.stop.is_some() {
                        return;
                    }
                }
            }
            if !any {
                return;
            }
            if self.may_compile && self.executed >= WARM {
                self.consider_compiling();
            }
        }
    }

    /// Compiles if what is left of the launch is worth it. Results do not depend on when.
    fn consider_compiling(&mut self) {
        let resident = self.blocks.iter().filter(|b| b.active).count() as u64;
        let done = self.next_block - resident;
        let left = match self.executed.checked_div(done) {
            Some(each) => each.saturating_mul(self.plan.len().saturating_sub(done)),
            // Blocks that take long: as much again.
            None => self.executed,
        };
        if left >= LONG + LONG_EACH * self.kernel.codes[0].plain.len() as u64 {
            self.may_compile = false;
            self.jit = self.kernel.jit.compile(self.kernel, self.shape.block);
            self.credit = self.jit.as_ref().map_or(Vec::new(), |j| j.credits());
            // Convoys are of the list that ran so far.
            for slot in 0..self.blocks.len() {
                if !self.blocks[slot].convoy.riders.is_empty() {
                    self.dissolve(slot);
                }
            }
        }
    }

    /// Bytes of a block's shared memory: exact, or rounded to the hardware's granularity in the arena.
    fn shared_len(&self) -> u64 {
        match self.options.memory {
            Memory::Strict => self.shape.shared,
            Memory::Arena => self.shape.shared.next_multiple_of(128),
        }
    }

    /// blockIdx of a block by its linear index.
    pub(crate) fn block_index(&self, linear: u64) -> [u32; 3] {
        let [gx, gy, _] = self.shape.grid;
        [(linear % gx) as u32, (linear / gx % gy) as u32, (linear / (gx * gy)) as u32]
    }

    /// Starts the `ordinal`-th block to execute.
    fn start_block(&mut self, slot: usize, ordinal: u64) {
        let linear = self.plan.linear(ordinal);
        let index = self.block_index(linear);
        let shape = self.shape;
        let first = self.blocks[slot].ordinal == 0 && ordinal == slot as u64;
        let block = &mut self.blocks[slot];
        block.index = index;
        block.linear = linear;
        block.ordinal = ordinal;
        block.active = true;
        block.barrier_reported = false;
        block.open = 0;
        block.live = shape.threads as u32;
        block.convoy.riders.clear();
        let previous = self.options.fill == Fill::Previous && !first;
        if block.shared.len() > 0 && !previous {
            let pattern = crate::memory::fill::Pattern {
                kind: self.options.fill,
                dtype: assay_tensor::DType::F32,
                seed: crate::memory::fill::seed_of(self.options.fill_seed ^ 0x5a5a, linear),
            };
            pattern.write(block.shared.as_mut_slice(), 0);
        }
        if self.options.schedule == Schedule::RunAhead {
            self.rng.shuffle(&mut block.order);
        }
        let code = &self.kernel.codes[0];
        let many = block.warps.len() > 1;
        for wi in 0..self.blocks[slot].warps.len() {
            let lanes = shape.threads - (wi * LANES) as u64;
            let mut ws = std::mem::replace(&mut self.blocks[slot].warps[wi], state::WarpState::new());
            ws.start(self.kernel, lanes.min(32) as u32);
            // Classes of addresses are told from older ones by the generation: before that comes round they all go.
            let whole = !ws.filled || ws.w.generation > u32::MAX / 2;
            if whole {
                (ws.filled, ws.w.generation) = (true, 1);
            }
            let regs = &mut ws.frames[0].regs;
            refill_frame(regs, &mut ws.image, code, &shape, &self.blocks[slot], wi, whole);
            let local = code.local_bytes as usize * LANES;
            if ws.local.len() < local {
                ws.local = crate::memory::Bytes::zeroed(local);
            }
            if local > 0 {
                let pattern = crate::memory::fill::Pattern {
                    kind: if self.options.fill == Fill::Previous { Fill::Noise } else { self.options.fill },
                    dtype: assay_tensor::DType::F32,
                    seed: crate::memory::fill::seed_of(
                        self.options.fill_seed ^ 0xa5a5,
                        linear << 6 | wi as u64,
                    ),
                };
                pattern.write(&mut ws.local.as_mut_slice()[..local], 0);
            }
            let block = &mut self.blocks[slot];
            ws.w.shared = block.shared.as_ptr();
            ws.w.shared_len = block.shared.len() as u64;
            ws.w.table = self.table.as_ptr();
            ws.w.table_len = self.table.len() as u64;
            ws.w.local = ws.local.as_ptr();
            ws.w.local_len = code.local_bytes;
            ws.w.params = self.params.as_ptr();
            ws.w.params_len = self.params.len() as u64;
            ws.w.first_thread = (wi * LANES) as u32;
            ws.w.expect = self.jit.as_ref().map_or(std::ptr::null(), |j| j.list.as_ptr());
            ws.w.interleave = self.options.schedule == Schedule::Hardware;
            ws.w.contended = false;
            ws.w.lockstep = many && self.options.schedule == Schedule::Hardware;
            block.warps[wi] = ws;
        }
        if let Some(san) = self.san.as_deref_mut() {
            san.start_block(slot, ordinal, self.blocks[slot].shared.len(), shape.threads);
            let view = san.view(slot);
            for ws in &mut self.blocks[slot].warps {
                ws.w.view = view;
            }
        }
    }

    /// Some rounds of a block, until it is done or its share is over.
    fn rounds(&mut self, slot: usize) {
        if self.options.schedule != Schedule::Shuffled {
            self.form_convoy(slot);
        }
        for _ in 0..ROUNDS {
            let mut ran = false;
            if self.options.schedule == Schedule::Shuffled {
                self.rng.shuffle(&mut self.blocks[slot].order);
            }
            let mut k = 0;
            while k < self.blocks[slot].order.len() {
                if self.blocks[slot].convoy.riders.is_empty() {
                    let wi = self.blocks[slot].order[k] as usize;
                    ran |= self.turn(slot, wi);
                    k += 1;
                } else {
                    let (next, some) = self.convoy_turns(slot, k);
                    ran |= some;
                    k = next;
                }
                if self.stop.is_some() {
                    return;
                }
                if !self.blocks[slot].active {
                    return;
                }
            }
            let contended = self.blocks[slot].warps.iter().any(|ws| ws.w.contended);
            if !self.blocks[slot].convoy.riders.is_empty() {
                if contended {
                    return;
                }
                continue;
            }
            if self.blocks[slot].done() {
                self.blocks[slot].active = false;
                return;
            }
            if !ran {
                self.deadlock(slot);
                return;
            }
            if contended {
                // Other blocks may want the same place.
                return;
            }
        }
    }

    fn deadlock(&mut self, slot: usize) {
        let block = &self.blocks[slot];
        let mut found = None;
        for (wi, ws) in block.warps.iter().enumerate() {
            for f in &ws.fragments {
                found = found.or(Some((wi, *f)));
            }
        }
        let Some((wi, f)) = found else { return };
        let waits = match f.state {
            State::Barrier(id) => format!("at barrier {id}"),
            State::Members(m) => format!("for the lanes of mask {m:#010x}"),
            State::Ready => "for nothing".to_owned(),
        };
        let code = self.blocks[slot].warps[wi].frames[f.frame as usize].code;
        let lane = f.mask.trailing_zeros() as usize;
        let mut finding = Finding::new(
            FindingKind::Deadlock,
            format!("no thread of the block can run: {} wait {waits}", plural(f.mask.count_ones(), "thread")),
        );
        self.locate(&mut finding, slot, wi, lane, code, f.pc);
        self.fault(slot, finding);
    }

    /// Fills in thread, line, file and kernel.
    pub(crate) fn locate(&self, f: &mut Finding, slot: usize, wi: usize, lane: usize, code: u32, pc: u32) {
        f.thread = Some(self.thread(slot, wi, lane));
        if let Some(place) = self.place(code, pc) {
            f.line = Some(place.line);
            f.column = place.column;
            f.file = place.file;
            f.inlined_at = place.inlined_at;
        }
        f.kernel = Some(self.kernel.name.clone());
    }

    /// Where an instruction stands in the source.
    pub(crate) fn place(&self, code: u32, pc: u32) -> Option<SourcePlace> {
        let loc = self.kernel.codes[code as usize].locs.get(pc as usize).copied().flatten()?;
        self.kernel.place_of(loc)
    }

    /// Where the first thread is that still runs.
    pub(crate) fn somewhere(&self) -> Option<SourcePlace> {
        let warps = self.blocks.iter().filter(|b| b.active).flat_map(|b| &b.warps);
        let mut at = warps.flat_map(|w| {
            w.fragments.iter().filter_map(|f| Some((w.frames.get(f.frame as usize)?.code, f.pc)))
        });
        at.find_map(|(code, pc)| self.place(code, pc))
    }

    pub(crate) fn thread(&self, slot: usize, wi: usize, lane: usize) -> ThreadId {
        ThreadId { block: self.blocks[slot].index, thread: self.shape.thread((wi * LANES + lane) as u64) }
    }

    /// True (and counted) if the like was reported before.
    pub(crate) fn seen(&mut self, kind: FindingKind, site: u32, place: u64) -> bool {
        let Some(known) = self.reported.get(&(kind, site, place)) else { return false };
        if let Some(i) = *known {
            self.findings.again(i);
        }
        true
    }

    /// Reports a finding that [`Exec::seen`] did not know.
    pub(crate) fn report(&mut self, finding: Finding, site: u32, place: u64) {
        let kind = finding.kind;
        let i = self.findings.add(finding);
        self.reported.insert((kind, site, place), i);
    }

    /// The number of an instruction in the kernel.
    pub(crate) fn site(&self, ci: u32, at: u32) -> u32 {
        self.kernel.codes[ci as usize].first_site.saturating_add(at)
    }

    /// Records a fault: it ends the block, and in the arena the launch.
    pub(crate) fn fault(&mut self, slot: usize, finding: Finding) {
        self.findings.add(finding);
        self.blocks[slot].active = false;
        if self.options.memory == Memory::Arena {
            self.stop = Some(Stop::Fault);
        }
    }

    /// One turn of a warp; false if nothing of it can run.
    fn turn(&mut self, slot: usize, wi: usize) -> bool {
        if self.blocks[slot].warps[wi].fragments.is_empty() {
            return false;
        }
        let quantum = quantum(self.options.schedule, &mut self.rng);
        self.blocks[slot].warps[wi].w.fuel = quantum;
        self.blocks[slot].warps[wi].w.paused = false;
        self.turn_from(slot, wi, quantum, false, None)
    }

    /// The rest of a turn. `begun`: its only fragment is in the middle of it, at its program counter or with `event`.
    fn turn_from(
        &mut self,
        slot: usize,
        wi: usize,
        quantum: i64,
        begun: bool,
        mut event: Option<Event>,
    ) -> bool {
        let checked = self.san.is_some();
        let mut resumed = begun;
        let mut ran = begun;
        let mut over = false;
        while !over {
            let ws = &mut self.blocks[slot].warps[wi];
            if ran && ws.w.fuel <= 0 && !resumed {
                // Loops through splits, table branches and calls end here; plain ones at their branch.
                over = true;
                break;
            }
            resumed = false;
            let picked = match self.options.schedule {
                Schedule::Hardware | Schedule::RunAhead => ws.pick(),
                Schedule::Shuffled => ws.pick_any(&mut self.rng),
            };
            let Some(fi) = picked else { break };
            ran = true;
            self.now += 1;
            ws.fragments[fi].ran = self.now;
            let Fragment { pc, mask, frame, .. } = ws.fragments[fi];
            let ci = ws.frames[frame as usize].code;
            let code = &self.kernel.codes[ci as usize];
            let list = match &self.jit {
                _ if checked => &code.checked,
                Some(jit) if ci == 0 => {
                    ws.w.jit = std::sync::Arc::as_ptr(jit);
                    ws.w.credit = self.credit.as_mut_ptr();
                    &jit.list
                }
                _ => &code.plain,
            };
            let base = list.as_ptr();
            if ci == 0 && mask != u32::MAX {
                // Part of the lanes goes on without the others, say after a call that they left one by one: what
                // compiled code knew of the registers holds no more, even if all meet again where it is expected.
                ws.w.expect = std::ptr::null();
            }
            ws.w.regs = ws.frames[frame as usize].regs.as_ptr();
            ws.w.cold = code.cold.as_ptr();
            ws.w.code = base;
            ws.w.first_site = code.first_site;
            ws.w.local_base = ws.frames[frame as usize].local_base;
            ws.w.mask = mask;
            ws.w.generation = ws.w.generation.wrapping_add(1).max(1);
            let ahead = ws
                .fragments
                .iter()
                .enumerate()
                .filter(|(i, f)| *i != fi && f.frame == frame && f.pc > pc && f.state == State::Ready);
            let join = if ws.fragments.len() == 1 { None } else { ahead.map(|(_, f)| f.pc).min() };
            // SAFETY: fragments' program counters are indices of their function's code.
            ws.w.join = join.map_or(std::ptr::null(), |j| unsafe { base.add(j as usize) });
            let mut pc = pc;
            loop {
                let w = &mut self.blocks[slot].warps[wi].w;
                // SAFETY: `pc` is an index of the code whose frame is current; the pointers in `w` were set from
                // live buffers of the lengths beside them, which nothing moves while it runs.
                let event = match event.take() {
                    Some(e) => e,
                    None => unsafe { run(w, base.add(pc as usize)) },
                };
                // SAFETY: `at` points into the same code.
                let at = unsafe { w.at.offset_from(base) } as u32;
                match event {
                    Event::Yield => {
                        let jitter = w.fuel > 0
                            && self.options.schedule == Schedule::Hardware
                            && self.rng.next() & 31 == 0;
                        if jitter {
                            pc = at;
                            continue;
                        }
                        self.save(slot, wi, fi, at);
                        over = true;
                        break;
                    }
                    Event::Join => {
                        self.save(slot, wi, fi, at);
                        self.blocks[slot].warps[wi].merge();
                        break;
                    }
                    Event::Split { taken } => {
                        w.fuel -= 1;
                        // SAFETY: `at` is an instruction.
                        let off = unsafe { (*w.at).off };
                        self.split(slot, wi, fi, at, taken, off);
                        break;
                    }
                    Event::Memory => {
                        w.fuel -= 1;
                        // SAFETY: `at` is an instruction and its guard a predicate of the current frame.
                        let mask = unsafe {
                            let d = &*w.at;
                            let m = w.mask;
                            if d.guard == 0 {
                                m
                            } else if d.guard & NEGATED != 0 {
                                m & !w.pred(d.guard & !NEGATED)
                            } else {
                                m & w.pred(d.guard)
                            }
                        };
                        match self.memory_access(slot, wi, ci, at, mask) {
                            Step::Go(next) => pc = next,
                            Step::Repick => break,
                            Step::Ended => return true,
                        }
                        // The loop looks for the join at jumps and handlers, and starts behind this one.
                        if join == Some(pc) {
                            self.save(slot, wi, fi, pc);
                            self.blocks[slot].warps[wi].merge();
                            break;
                        }
                    }
                    Event::Barrier if self.wait(slot, wi, at) => {
                        let block = &mut self.blocks[slot];
                        if !block.active {
                            return true;
                        }
                        break;
                    }
                    Event::Barrier | Event::Cold | Event::None => {
                        let w = &mut self.blocks[slot].warps[wi].w;
                        w.fuel -= 1;
                        match self.cold(slot, wi, fi, ci, at) {
                            Step::Go(next) => pc = next,
                            Step::Repick => break,
                            Step::Ended => return true,
                        }
                    }
                }
                if self.blocks[slot].warps[wi].w.fuel <= -TURN_AHEAD {
                    // Only slow instructions, and no backward branch among them, for a long time.
                    self.save(slot, wi, fi, pc);
                    over = true;
                    break;
                }
            }
        }
        let ws = &mut self.blocks[slot].warps[wi];
        let used = (quantum - ws.w.fuel).max(0) as u64;
        let waits = ws.w.fuel <= 0 || ws.w.paused;
        let crowded = ws.fragments.len() > 1;
        if over && waits {
            ws.stale_turns += 1;
        } else {
            // A fragment that gives way to other warps at every turn must not keep the others from theirs.
            ws.yields = if over && crowded { ws.yields.saturating_add(1) } else { 0 };
            ws.stale_turns = if ws.yields > MOST_YIELDS { 2 } else { 0 };
        }
        ws.w.clock = ws.w.clock.wrapping_add(used);
        self.spend(used);
        ran
    }

    /// Counts the instructions of a turn, and stops where the budget is out.
    #[inline(always)]
    fn spend(&mut self, used: u64) {
        self.executed = self.executed.saturating_add(used);
        let blocks = self.next_block.saturating_mul(BLOCK_COST);
        if self.executed.saturating_add(blocks) > self.budget {
            let reason = format!("more than {} warp-instructions", self.options.instruction_budget);
            self.stop = Some(Stop::Exhausted(reason));
        }
    }

    fn save(&mut self, slot: usize, wi: usize, fi: usize, pc: u32) {
        self.blocks[slot].warps[wi].fragments[fi].pc = pc;
    }

    fn split(&mut self, slot: usize, wi: usize, fi: usize, at: u32, taken: u32, off: i64) {
        let ws = &mut self.blocks[slot].warps[wi];
        let f = ws.fragments[fi];
        ws.fragments[fi].mask = f.mask & !taken;
        ws.fragments[fi].pc = at + 1;
        ws.fragments.push(Fragment { mask: taken, pc: (i64::from(at) + off) as u32, ..f });
        ws.frames[f.frame as usize].users += 1;
        ws.merge();
    }

    /// Does what the cold table says.
    fn cold(&mut self, slot: usize, wi: usize, fi: usize, ci: u32, at: u32) -> Step {
        let kernel = self.kernel;
        let code = &kernel.codes[ci as usize];
        let aux = code.plain[at as usize].aux as usize;
        match &code.cold[aux] {
            Cold::Exit => self.exit(slot, wi, fi, ci, at),
            Cold::Ret => self.ret(slot, wi, fi, ci),
            Cold::Call(op) => self.call(slot, wi, fi, ci, at, op),
            Cold::Bar(op) => self.arrive(slot, wi, fi, ci, at, op),
            Cold::Warp(op) => self.warp_op(slot, wi, fi, ci, at, op),
            Cold::Copy(op) => self.copy(slot, wi, fi, ci, at, op),
            Cold::CopyCommit => self.copy_commit(slot, wi, fi, at),
            Cold::CopyArrive(op) => self.copy_arrive(slot, wi, fi, ci, at, op.as_deref()),
            Cold::CopyWait(left) => self.copy_wait(slot, wi, fi, at, *left),
            Cold::Brx { index, targets } => self.brx(slot, wi, fi, ci, at, *index, targets),
            Cold::Fence { scope } => {
                let mask = self.blocks[slot].warps[wi].fragments[fi].mask;
                if let Some(san) = self.san.as_deref_mut() {
                    san.fence(slot, wi, mask, *scope);
                }
                Step::Go(at + 1)
            }
            Cold::Trap | Cold::Brkpt => {
                let what =
                    if matches!(code.cold[aux], Cold::Trap) { "`trap` executed" } else { "`brkpt` executed" };
                let mut f = Finding::new(FindingKind::Trap, what);
                let lane = self.blocks[slot].warps[wi].fragments[fi].mask.trailing_zeros() as usize;
                self.locate(&mut f, slot, wi, lane, ci, at);
                self.fault(slot, f);
                Step::Ended
            }
            // Done by handlers.
            Cold::Lane(_) | Cold::Carry(_) | Cold::Chain(_) | Cold::Memory(_) => Step::Go(at + 1),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and its two operands")]
    fn brx(
        &mut self,
        slot: usize,
        wi: usize,
        fi: usize,
        ci: u32,
        at: u32,
        index: crate::code::Slot,
        targets: &[u32],
    ) -> Step {
        let ws = &mut self.blocks[slot].warps[wi];
        let f = ws.fragments[fi];
        let mut left = f.mask;
        let mut parts: Vec<Fragment> = Vec::new();
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            // SAFETY: the slot belongs to the current frame.
            let i = unsafe { crate::handlers::generic::get(&ws.w, index, lane) };
            let Some(&pc) = targets.get(i as usize) else {
                let mut f = Finding::new(
                    FindingKind::Trap,
                    format!("branch index {i} outside a table of {}", plural(targets.len() as u32, "target")),
                );
                self.locate(&mut f, slot, wi, lane, ci, at);
                self.fault(slot, f);
                return Step::Ended;
            };
            match parts.iter_mut().find(|p| p.pc == pc) {
                Some(p) => p.mask |= 1 << lane,
                None => parts.push(Fragment { pc, mask: 1 << lane, ..f }),
            }
        }
        let ws = &mut self.blocks[slot].warps[wi];
        if let [only] = parts[..] {
            ws.fragments[fi].pc = only.pc;
        } else {
            ws.frames[f.frame as usize].users += parts.len() as u32 - 1;
            ws.fragments[fi] = parts[0];
            ws.fragments.extend(&parts[1..]);
        }
        ws.merge();
        Step::Repick
    }

    /// The lanes of a fragment exit.
    fn exit(&mut self, slot: usize, wi: usize, fi: usize, ci: u32, at: u32) -> Step {
        let ws = &mut self.blocks[slot].warps[wi];
        let f = ws.fragments.swap_remove(fi);
        ws.live &= !f.mask;
        self.blocks[slot].live -= f.mask.count_ones();
        let ws = &mut self.blocks[slot].warps[wi];
        ws.exit_line = self.kernel.codes[ci as usize].lines[at as usize].0;
        ws.w.phase = Phase::Fresh;
        ws.release_frame(f.frame);
        if ws.live != 0 {
            self.release_members(slot, wi);
        }
        self.complete_barriers(slot);
        if self.blocks[slot].active { Step::Repick } else { Step::Ended }
    }
}

/// Fuel of a turn.
#[inline(always)]
fn quantum(schedule: Schedule, rng: &mut Rng) -> i64 {
    match schedule {
        Schedule::Hardware => TURN + (rng.next() & 63) as i64,
        Schedule::RunAhead => TURN_AHEAD,
        Schedule::Shuffled => 1 + rng.below(64) as i64,
    }
}

/// `1 thread`, `3 threads`.
pub(crate) fn plural(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
