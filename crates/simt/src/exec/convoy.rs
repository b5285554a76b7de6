//! Turns of a block whose warps each go one way, on their way from barrier to barrier.
//!
//! The scheduler's bookkeeping costs more than the code between two barriers of a tiled product. While every warp of a
//! block has its lanes in one fragment of the entry, ready or waiting at one and the same barrier, the block is a
//! *convoy*: what changes from turn to turn is kept in a small record a warp, and a warp's state is set up once. Turns,
//! fuel, random numbers and the order of warps are those of [`Exec::turn`]. The first warp to which something else happens
//! than a barrier or the end of its turn dissolves the convoy, and goes on in the middle of its turn.
//!
//! Within a turn a warp changes between compiled code and the interpreter as ever; what it is in when the turn ends is in
//! [`Rider::entry`]. Under detectors there are no convoys: those want to see every barrier.

use super::Exec;
use super::state::{Block, Fragment, State, WarpState};
use super::{BLOCK_COST, quantum};
use crate::code::Cold;
use crate::jit::{Compiled, ExitKind, land};
use crate::options::Schedule;
use crate::warp::{Decoded, Event, Phase, Warp, run};

/// A warp of a convoy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rider {
    /// Where it goes on in compiled code; `u32::MAX` if the interpreter does, at `at` (behind it, if it waits there).
    entry: u32,
    /// Decoded instruction: where it goes on, or the barrier at which it waits.
    at: u32,
    mask: u32,
    waits: bool,
    /// As [`Fragment::ran`], [`super::state::WarpState::stale_turns`] and [`super::state::WarpState::yields`].
    ran: u64,
    stale: u32,
    yields: u32,
}

/// See the module. Without riders there is no convoy.
#[derive(Debug, Default)]
pub(crate) struct Convoy {
    pub(crate) riders: Vec<Rider>,
    /// Riders that wait, and the number of their barrier.
    waiting: u32,
    barrier: u8,
}

impl Exec<'_> {
    /// The instructions that warps in the entry run.
    fn entry_list(&self) -> *const Decoded {
        self.jit.as_ref().map_or(self.kernel.codes[0].plain.as_ptr(), |j| j.list.as_ptr())
    }

    /// Makes a convoy of a block's warps if they are fit for it.
    pub(super) fn form_convoy(&mut self, slot: usize) {
        if !self.blocks[slot].convoy.riders.is_empty() || self.san.is_some() || self.options.sanitize.barriers
        {
            return;
        }
        #[cfg(test)]
        if tests::APART.get() {
            return;
        }
        let list = self.entry_list();
        let code = &self.kernel.codes[0];
        let block = &mut self.blocks[slot];
        let mut barrier = None;
        let mut waiting = 0;
        for ws in &block.warps {
            let [f] = ws.fragments[..] else { break };
            let pc = match f.state {
                State::Ready => f.pc,
                State::Barrier(id) => {
                    if barrier.is_some_and(|b| b != id) {
                        break;
                    }
                    barrier = Some(id);
                    waiting += 1;
                    f.pc + 1
                }
                State::Members(_) => break,
            };
            if f.frame != 0 {
                break;
            }
            let mut entry = u32::MAX;
            if let Some(jit) = &self.jit {
                // SAFETY: `pc` is an instruction of the list, or just behind its last.
                let expected = std::ptr::eq(ws.w.expect, unsafe { list.add(pc as usize) });
                if expected && f.mask == u32::MAX {
                    entry = jit.entry_at.get(pc as usize).copied().unwrap_or(u32::MAX);
                }
            }
            let (waits, stale, yields) = (f.state != State::Ready, ws.stale_turns, ws.yields);
            block.convoy.riders.push(Rider {
                entry,
                at: f.pc,
                mask: f.mask,
                waits,
                ran: f.ran,
                stale,
                yields,
            });
        }
        let whole = block.convoy.riders.len() == block.warps.len();
        let simple = barrier.is_none_or(|id| {
            let b = &block.barriers[id as usize];
            b.count.is_none() && !b.any_arrived && !b.reduces
        });
        if !whole || !simple {
            block.convoy.riders.clear();
            return;
        }
        block.convoy.waiting = waiting;
        block.convoy.barrier = barrier.unwrap_or(0);
        if let Some(id) = barrier {
            block.open &= !(1 << id);
        }
        for (ws, r) in block.warps.iter_mut().zip(&block.convoy.riders) {
            if let Some(jit) = &self.jit {
                ws.w.jit = std::sync::Arc::as_ptr(jit);
                ws.w.credit = self.credit.as_mut_ptr();
            }
            ws.w.regs = ws.frames[0].regs.as_ptr();
            ws.w.cold = code.cold.as_ptr();
            ws.w.code = list;
            ws.w.first_site = code.first_site;
            ws.w.local_base = ws.frames[0].local_base;
            ws.w.mask = r.mask;
            if r.mask != u32::MAX {
                // As in [`Exec::turn_from`].
                ws.w.expect = std::ptr::null();
            }
            ws.w.generation = ws.w.generation.wrapping_add(1).max(1);
            ws.w.join = std::ptr::null();
        }
    }

    /// Turns of a convoy's warps from the `from`-th in order on, up to one that goes on in the interpreter. Gives the number
    /// of the next warp's turn, and whether any ran; something may have stopped the launch, the block or the convoy.
    pub(super) fn convoy_turns(&mut self, slot: usize, from: usize) -> (usize, bool) {
        // SAFETY: the launch holds the `Arc` to its end.
        let jit: Option<&Compiled> = self.jit.as_ref().map(|jit| unsafe { &*std::sync::Arc::as_ptr(jit) });
        // As in `spend`; no block starts meanwhile.
        let limit = self.budget.saturating_sub(self.next_block.saturating_mul(BLOCK_COST));
        let schedule = self.options.schedule;
        let Block { convoy, warps, order, .. } = &mut self.blocks[slot];
        let mut ran = false;
        for (k, wi) in order.iter().enumerate().skip(from) {
            let wi = *wi as usize;
            let quantum = quantum(schedule, &mut self.rng);
            let rider = &mut convoy.riders[wi];
            if rider.waits {
                (rider.stale, rider.yields) = (0, 0);
                continue;
            }
            ran = true;
            let w = &mut warps[wi].w;
            w.fuel = quantum;
            w.paused = false;
            let slow = loop {
                let rider = &mut convoy.riders[wi];
                let w = &mut warps[wi].w;
                let (Some(jit), true) = (jit, rider.entry != u32::MAX) else { break Some(None) };
                self.now += 1;
                rider.ran = self.now;
                // SAFETY: the convoy keeps the entry's frame current, and its registers as compiled code left them.
                let exit = unsafe { jit.run(w, rider.entry) };
                let x = &jit.exits[exit as usize];
                match x.kind {
                    ExitKind::Barrier(id)
                        if x.entry != u32::MAX && (convoy.waiting == 0 || convoy.barrier == id) =>
                    {
                        w.fuel -= i64::from(x.count) + 1;
                        (rider.entry, rider.at) = (x.entry, x.at);
                        w.prefetch(x.ahead);
                        if !convoy.arrives(warps, wi, id) {
                            break None;
                        }
                    }
                    ExitKind::Turn if x.entry != u32::MAX => {
                        w.fuel -= i64::from(x.count);
                        (rider.entry, rider.at) = (x.entry, x.at);
                        break None;
                    }
                    _ => break Some(Some(exit)),
                }
            };
            if let Some(exit) = slow {
                self.interpret(slot, wi, quantum, exit);
                return (k + 1, true);
            }
            let used = end_turn(&mut convoy.riders[wi], &mut warps[wi].w, quantum);
            self.executed = self.executed.saturating_add(used);
            if self.executed > limit {
                self.spend(0);
                return (k + 1, true);
            }
        }
        (usize::MAX, ran)
    }

    /// The rest of a turn, after `exit` from compiled code or where the warp stands.
    #[inline(never)]
    fn interpret(&mut self, slot: usize, wi: usize, quantum: i64, exit: Option<u32>) {
        // SAFETY: the launch holds the `Arc` to its end.
        let jit: Option<&Compiled> = self.jit.as_ref().map(|jit| unsafe { &*std::sync::Arc::as_ptr(jit) });
        let block = &mut self.blocks[slot];
        let mut event = None;
        if let Some(exit) = exit {
            let w = &mut block.warps[wi].w;
            // SAFETY: just after compiled code gave `exit`; what `land` gives is an instruction of the list.
            unsafe {
                let to = land(w, exit);
                let at = if to.is_null() { w.at } else { to };
                if at > w.mark {
                    w.count_through(&*at.sub(1));
                }
                w.mark = at;
                block.convoy.riders[wi].at = at.offset_from(w.code) as u32;
                event = to.is_null().then_some(w.event);
            }
        }
        loop {
            self.now += 1;
            let w = &mut block.warps[wi].w;
            let rider = &mut block.convoy.riders[wi];
            rider.ran = self.now;
            let mut pc = rider.at;
            let happened = loop {
                let happened = match event.take() {
                    Some(e) => e,
                    // SAFETY: `pc` is an instruction of the entry, whose frame is current; the pointers in `w` were set
                    // from live buffers of the lengths beside them, which nothing moves while it runs.
                    None => unsafe { run(w, w.code.add(pc as usize)) },
                };
                // SAFETY: `at` points into the same code.
                let at = unsafe { w.at.offset_from(w.code) } as u32;
                rider.at = at;
                let jitter = happened == Event::Yield
                    && w.fuel > 0
                    && self.options.schedule == Schedule::Hardware
                    && self.rng.next() & 31 == 0;
                if !jitter {
                    break happened;
                }
                pc = at;
            };
            if happened == Event::Yield {
                rider.entry = entry_of(jit, w, rider.at);
                break;
            }
            // SAFETY: `at` is an instruction, of `control::barrier` with the number in `e` if it is a barrier.
            let id = unsafe { (*w.at).e } as u8;
            if happened != Event::Barrier || block.convoy.waiting > 0 && block.convoy.barrier != id {
                // Anything else, or a second barrier beside the first.
                rider.entry = u32::MAX;
                self.dissolve(slot);
                self.turn_from(slot, wi, quantum, true, Some(happened));
                return;
            }
            w.fuel -= 1;
            rider.entry = entry_of(jit, w, rider.at + 1);
            if !block.convoy.arrives(&mut block.warps, wi, id) {
                break;
            }
        }
        let used = end_turn(&mut block.convoy.riders[wi], &mut block.warps[wi].w, quantum);
        self.spend(used);
    }

    /// Gives every warp its fragment back.
    pub(super) fn dissolve(&mut self, slot: usize) {
        let list = self.entry_list();
        let code = &self.kernel.codes[0];
        let block = &mut self.blocks[slot];
        let id = block.convoy.barrier;
        let barrier = &mut block.barriers[id as usize];
        if block.convoy.waiting > 0 {
            let warps = block.warps.len();
            block.open |= 1 << id;
            barrier.begin(warps);
            barrier.all = false;
        }
        for (wi, (r, ws)) in block.convoy.riders.iter().zip(&mut block.warps).enumerate() {
            let state = if r.waits { State::Barrier(id) } else { State::Ready };
            ws.fragments[0] = Fragment { pc: r.at, mask: r.mask, frame: 0, state, ran: r.ran };
            (ws.stale_turns, ws.yields) = (r.stale, r.yields);
            if r.entry != u32::MAX {
                // SAFETY: a barrier is not the last instruction; entries are instructions.
                ws.w.expect = unsafe { list.add(r.at as usize + usize::from(r.waits)) };
            }
            if r.waits {
                barrier.waiting[wi] = r.mask;
                barrier.waiters += r.mask.count_ones();
                if let Cold::Bar(op) = &code.cold[code.plain[r.at as usize].aux as usize] {
                    barrier.aligned &= op.aligned;
                }
            }
        }
        block.convoy.riders.clear();
        block.convoy.waiting = 0;
    }
}

impl Convoy {
    /// A rider is at a barrier; true if it goes on in this turn, since all others wait there and it has fuel.
    #[inline(always)]
    fn arrives(&mut self, warps: &mut [WarpState], wi: usize, id: u8) -> bool {
        self.riders[wi].waits = true;
        self.barrier = id;
        self.waiting += 1;
        if (self.waiting as usize) < self.riders.len() {
            return false;
        }
        self.waiting = 0;
        for (r, ws) in self.riders.iter_mut().zip(warps.iter_mut()) {
            r.waits = false;
            (r.stale, r.yields) = (0, 0);
            r.at += 1;
            ws.w.phase = Phase::Fresh;
        }
        warps[wi].w.fuel > 0
    }
}

/// What the end of a turn leaves in a warp and its rider. Gives the instructions of the turn.
#[inline(always)]
fn end_turn(rider: &mut Rider, w: &mut Warp, quantum: i64) -> u64 {
    let used = (quantum - w.fuel).max(0) as u64;
    rider.stale = if w.fuel <= 0 || w.paused { rider.stale + 1 } else { 0 };
    rider.yields = 0;
    w.clock = w.clock.wrapping_add(used);
    used
}

/// The entry of compiled code at an instruction, if the warp's frame is as compiled code left it there.
fn entry_of(jit: Option<&Compiled>, w: &Warp, at: u32) -> u32 {
    let Some(jit) = jit else { return u32::MAX };
    // SAFETY: `at` is an instruction of the code, or just behind its last.
    let expected = w.mask == u32::MAX && std::ptr::eq(w.expect, unsafe { w.code.add(at as usize) });
    if expected { jit.entry_at.get(at as usize).copied().unwrap_or(u32::MAX) } else { u32::MAX }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use assay_tensor::DType;

    use crate::{
        Arg, Blocks, BufferSpec, Engine, Init, LaunchSpec, Loaded, Options, Role, Schedule, Session,
    };

    thread_local! {
        /// No convoys in this thread.
        pub(super) static APART: Cell<bool> = const { Cell::new(false) };
    }

    /// Every thread takes a ticket between steps, so that the tickets tell the order in which warps ran. `STEP` is one of
    /// the things that end a turn or a convoy.
    const TICKETS: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 count)
{
.shared .align 4 .b8 tile[4096];
.reg .pred %p<4>;
.reg .b32 %r<20>;
.reg .b64 %d<8>;
ld.param.u64 %d0, [out];
ld.param.u64 %d1, [count];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.u32 %r3, %r1, %r2, %r0;
mul.wide.u32 %d2, %r3, 32;
add.u64 %d3, %d0, %d2;
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r6, %r5, %r4;
xor.b32 %r7, %r4, 128;
add.u32 %r7, %r7, %r5;
mov.u32 %r8, 0;
st.shared.u32 [%r6], %r8;
bar.sync 0;
$L:
ld.shared.u32 %r9, [%r6];
add.u32 %r9, %r9, 1;
STEP
atom.global.add.u32 %r10, [%d1], %r9;
st.shared.u32 [%r6], %r10;
st.global.u32 [%d3], %r10;
add.u64 %d3, %d3, 4;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p1, %r8, 8;
@%p1 bra $L;
bar.sync 0;
ret;
}";

    const STEPS: [&str; 7] = [
        "",
        "bar.sync 0;",
        "bar.sync 0;\nld.shared.u32 %r11, [%r7];\nadd.u32 %r9, %r9, %r11;\nbar.sync 0;",
        // A part of a warp, and a warp less than the others.
        "setp.lt.u32 %p2, %r0, 7;\n@%p2 add.u32 %r9, %r9, 1;\nsetp.ge.u32 %p3, %r0, 40;\n@%p3 bra $M;\n\
         ld.shared.u32 %r11, [%r6];\nadd.u32 %r9, %r9, %r11;\n$M:\nbar.sync 0;",
        // A long way between barriers.
        "mov.u32 %r12, 0;\n$N:\nadd.u32 %r12, %r12, 1;\nsetp.lt.u32 %p2, %r12, 700;\n@%p2 bra $N;\nbar.sync 0;",
        // Two barriers at a time.
        "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra $M;\nbar.sync 1, 64;\nbra $O;\n$M:\nbar.sync 2, 32;\n$O:\nbar.sync 0;",
        "nanosleep.u32 100;\nshfl.sync.bfly.b32 %r11, %r9, 1, 31, -1;\nadd.u32 %r9, %r9, %r11;",
    ];

    /// Tickets and instructions of a launch.
    fn run(loaded: &Arc<Loaded>, threads: u64, options: &Options) -> (Vec<u8>, u64) {
        let mut s = Session::new(Arc::clone(loaded), options.clone());
        let zero = [0u8; 4];
        let bytes = threads * 12 * 32;
        let out =
            s.alloc(BufferSpec::new("out", bytes, Role::Output, DType::U32, Init::Uninit)).expect("room");
        let count = BufferSpec::new("count", 4, Role::Scratch, DType::U32, Init::Bytes(&zero));
        let count = s.alloc(count).expect("room");
        let o = s.launch(&LaunchSpec {
            kernel: "k",
            grid: [12, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared: 0,
            args: &[Arg::Pointer(out, 0), Arg::Pointer(count, 0)],
            blocks: &Blocks::All,
        });
        assert_eq!(o.status, crate::Status::Ok, "{o:?}");
        (s.read(out).to_vec(), o.instructions)
    }

    #[test]
    fn a_convoys_warps_run_in_the_order_in_which_they_would_run_alone() {
        let engines: &[Engine] =
            if crate::jit::available() { &[Engine::Interp, Engine::Jit] } else { &[Engine::Interp] };
        for step in STEPS {
            let text = TICKETS.replace("STEP", step);
            let module = assay_ptx::parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let loaded = Arc::new(Loaded::new(&module).expect("supported"));
            let mut orders = std::collections::BTreeSet::new();
            for threads in [32, 96, 100] {
                if step.contains("bar.sync 1, 64") && threads != 96 {
                    continue;
                }
                for schedule in [Schedule::Hardware, Schedule::RunAhead] {
                    for (seed, engine) in (0..3).flat_map(|s| engines.iter().map(move |e| (s, *e))) {
                        let options = Options { schedule, seed, engine, ..Options::default() };
                        APART.set(true);
                        let want = run(&loaded, threads, &options);
                        APART.set(false);
                        let got = run(&loaded, threads, &options);
                        assert!(want == got, "{threads} {options:?}\n{text}");
                        orders.insert(got.0);
                    }
                }
            }
            // The tickets do tell schedules apart.
            assert!(orders.len() >= 4, "{step}");
        }
    }
}
