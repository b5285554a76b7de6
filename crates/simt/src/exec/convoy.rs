//! Turns of a block whose warps are all in compiled code, on their way from barrier to barrier.
//!
//! The scheduler's bookkeeping costs more than the code between two barriers of a tiled product. While every warp of a
//! block has all its lanes in one fragment that is about to enter compiled code, or waits at one and the same barrier, the
//! block is a *convoy*: what changes from turn to turn is kept in a small record a warp. Turns, fuel, random numbers and
//! the order of warps are those of [`Exec::turn`]. The first warp that leaves compiled code for another reason dissolves
//! the convoy, and goes on in the middle of its turn.

use super::Exec;
use super::state::{Fragment, State};
use crate::code::Cold;
use crate::jit::{Compiled, ExitKind, land};
use crate::warp::Phase;

/// A warp of a convoy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rider {
    /// Where it goes on in compiled code.
    entry: u32,
    /// Decoded instruction: the entry, or the barrier at which it waits.
    at: u32,
    waits: bool,
    /// As [`Fragment::ran`] and [`super::state::WarpState::stale_turns`].
    ran: u64,
    stale: u32,
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
    /// Makes a convoy of a block's warps if they are fit for it.
    pub(super) fn form_convoy(&mut self, slot: usize) {
        let Some(jit) = self.jit.clone() else { return };
        if !self.blocks[slot].convoy.riders.is_empty() || self.options.sanitize.barriers {
            return;
        }
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
            let entry = jit.entry_at.get(pc as usize).copied().unwrap_or(u32::MAX);
            // SAFETY: `pc` is an instruction of the list, or just behind its last.
            let expected = std::ptr::eq(ws.w.expect, unsafe { jit.list.as_ptr().add(pc as usize) });
            if f.mask != u32::MAX || f.frame != 0 || entry == u32::MAX || !expected {
                break;
            }
            let (waits, stale) = (f.state != State::Ready, ws.stale_turns);
            block.convoy.riders.push(Rider { entry, at: f.pc, waits, ran: f.ran, stale });
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
        for ws in &mut block.warps {
            ws.w.jit = std::sync::Arc::as_ptr(&jit);
            ws.w.credit = self.credit.as_mut_ptr();
            ws.w.regs = ws.frames[0].regs.as_ptr();
            ws.w.cold = code.cold.as_ptr();
            ws.w.code = jit.list.as_ptr();
            ws.w.first_site = code.first_site;
            ws.w.local_base = ws.frames[0].local_base;
            ws.w.mask = u32::MAX;
            ws.w.join = std::ptr::null();
        }
    }

    /// One turn of a warp of a convoy; false if it waits.
    pub(super) fn convoy_turn(&mut self, slot: usize, wi: usize) -> bool {
        let quantum = self.quantum();
        let Some(jit) = &self.jit else { return false };
        let jit: *const Compiled = std::sync::Arc::as_ptr(jit);
        // SAFETY: the launch holds the `Arc` to its end.
        let jit = unsafe { &*jit };
        let block = &mut self.blocks[slot];
        let riders = &mut block.convoy.riders[..];
        let all = riders.len() as u32;
        let rider = &mut riders[wi];
        if rider.waits {
            rider.stale = 0;
            return false;
        }
        let w = &mut block.warps[wi].w;
        w.fuel = quantum;
        w.paused = false;
        loop {
            self.now += 1;
            block.convoy.riders[wi].ran = self.now;
            let w = &mut block.warps[wi].w;
            // SAFETY: the convoy keeps the entry's frame current, and its registers as compiled code left them.
            let exit = unsafe { jit.run(w, block.convoy.riders[wi].entry) };
            let x = &jit.exits[exit as usize];
            let rider = &mut block.convoy.riders[wi];
            match x.kind {
                ExitKind::Barrier(id)
                    if x.entry != u32::MAX && (block.convoy.waiting == 0 || block.convoy.barrier == id) =>
                {
                    w.fuel -= i64::from(x.count) + 1;
                    (rider.entry, rider.at, rider.waits) = (x.entry, x.at, true);
                    block.convoy.barrier = id;
                    block.convoy.waiting += 1;
                    let out = w.fuel <= 0;
                    if block.convoy.waiting < all {
                        break;
                    }
                    block.convoy.waiting = 0;
                    for (r, ws) in block.convoy.riders.iter_mut().zip(&mut block.warps) {
                        r.waits = false;
                        r.stale = 0;
                        r.at += 1;
                        ws.w.phase = Phase::Fresh;
                    }
                    if out {
                        break;
                    }
                }
                ExitKind::Turn if x.entry != u32::MAX => {
                    w.fuel -= i64::from(x.count);
                    (rider.entry, rider.at) = (x.entry, x.at);
                    break;
                }
                _ => return self.leave_convoy(slot, wi, quantum, exit),
            }
        }
        let w = &mut block.warps[wi].w;
        let rider = &mut block.convoy.riders[wi];
        let used = (quantum - w.fuel).max(0) as u64;
        rider.stale = if w.fuel <= 0 { rider.stale + 1 } else { 0 };
        w.clock = w.clock.wrapping_add(used);
        self.spend(used);
        true
    }

    /// Gives every warp its fragment back.
    fn dissolve(&mut self, slot: usize) {
        let Some(jit) = &self.jit else { return };
        let list = jit.list.as_ptr();
        let code = &self.kernel.codes[0];
        let block = &mut self.blocks[slot];
        let id = block.convoy.barrier;
        let barrier = &mut block.barriers[id as usize];
        if block.convoy.waiting > 0 {
            let warps = block.warps.len();
            block.open |= 1 << id;
            barrier.begin(warps);
            barrier.waiters = 32 * block.convoy.waiting;
            barrier.all = false;
        }
        for (wi, (r, ws)) in block.convoy.riders.iter().zip(&mut block.warps).enumerate() {
            let state = if r.waits { State::Barrier(id) } else { State::Ready };
            ws.fragments[0] = Fragment { pc: r.at, mask: u32::MAX, frame: 0, state, ran: r.ran };
            ws.stale_turns = r.stale;
            // SAFETY: a barrier is not the last instruction; entries are instructions.
            ws.w.expect = unsafe { list.add(r.at as usize + usize::from(r.waits)) };
            if r.waits {
                barrier.waiting[wi] = u32::MAX;
                if let Cold::Bar(op) = &code.cold[code.plain[r.at as usize].aux as usize] {
                    barrier.aligned &= op.aligned;
                }
            }
        }
        block.convoy.riders.clear();
        block.convoy.waiting = 0;
    }

    /// A warp has left compiled code by `exit`: the convoy is over, and the warp's turn goes on.
    fn leave_convoy(&mut self, slot: usize, wi: usize, quantum: i64, exit: u32) -> bool {
        self.dissolve(slot);
        let w = &mut self.blocks[slot].warps[wi].w;
        // SAFETY: just after compiled code gave `exit`; what `land` gives is an instruction of the list.
        let (pc, event) = unsafe {
            let to = land(w, exit);
            let at = if to.is_null() { w.at } else { to };
            if at > w.mark {
                w.count_through(&*at.sub(1));
            }
            w.mark = at;
            (at.offset_from(w.code) as u32, to.is_null().then_some(w.event))
        };
        self.save(slot, wi, 0, pc);
        self.turn_from(slot, wi, quantum, true, event)
    }
}
