//! Block barriers: arrival, completion, reductions, divergence.
//!
//! A barrier without a count is complete when every thread of the block that has not exited waits or has arrived
//! (so exited threads leave the expected count, as from sm_70 on). One with a count is complete when so many
//! threads have; a warp of which every living thread has arrived counts as 32.

use super::state::State;
use super::{Exec, Step, plural};
use crate::code::{BarOp, Kind, Slot};
use crate::findings::{Finding, FindingKind, OtherAccess};
use crate::handlers::generic::{get, put};
use crate::warp::{LANES, Phase};
use assay_ptx::BarRed;

impl Exec<'_> {
    /// A fragment arrives at a barrier.
    pub(super) fn arrive(&mut self, slot: usize, wi: usize, fi: usize, ci: u32, at: u32, op: &BarOp) -> Step {
        let f = self.blocks[slot].warps[wi].fragments[fi];
        let lane = f.mask.trailing_zeros() as usize;
        let w = &self.blocks[slot].warps[wi].w;
        // SAFETY: operands belong to the current frame.
        let (id, count, popc) = unsafe {
            let id = get(w, op.id, lane);
            let count = op.count.map(|c| get(w, c, lane));
            let popc = op.red.map_or(0, |(_, p, _)| {
                let m = w.pred(p.at);
                (if p.negated { !m } else { m }) & f.mask
            });
            (id, count, popc)
        };
        if id > 15 || count == Some(0) {
            let what = if id > 15 {
                format!("barrier {id} does not exist: a block has 16")
            } else {
                "a barrier for 0 threads never completes".to_owned()
            };
            let mut found = Finding::new(FindingKind::BarrierDivergence, what);
            self.locate(&mut found, slot, wi, lane, ci, at);
            self.fault(slot, found);
            return Step::Ended;
        }
        let warps = self.blocks[slot].warps.len();
        let block = &mut self.blocks[slot];
        let b = &mut block.barriers[id as usize];
        if block.open >> id & 1 == 0 {
            block.open |= 1 << id;
            b.begin(warps);
        }
        if count.is_some() {
            b.count = count;
        }
        b.aligned &= op.aligned;
        b.reduces |= op.red.is_some();
        b.popc += popc.count_ones();
        b.all &= popc == f.mask;
        b.any |= popc != 0;
        if op.arrive {
            b.arrived[wi] |= f.mask;
            b.any_arrived = true;
        } else {
            b.waiting[wi] |= f.mask;
            b.waiters += f.mask.count_ones();
            let ws = &mut self.blocks[slot].warps[wi];
            ws.fragments[fi].state = State::Barrier(id as u8);
            ws.fragments[fi].pc = at;
            ws.merge();
        }
        if let Some(san) = self.san.as_deref_mut()
            && op.arrive
        {
            san.arrive(slot, wi, f.mask, id as usize);
        }
        // Nothing has changed for the other barriers.
        if self.is_complete(slot, id as usize) {
            self.release_barrier(slot, id as usize);
        }
        if !self.blocks[slot].active {
            return Step::Ended;
        }
        if op.arrive { Step::Go(at + 1) } else { Step::Repick }
    }

    /// The common arrival: a warp whose living lanes are together waits at a barrier for the whole block, as
    /// [`Exec::arrive`] would have it. False, and nothing is done, if it is not that simple.
    pub(super) fn wait(&mut self, slot: usize, wi: usize, at: u32) -> bool {
        let block = &mut self.blocks[slot];
        let warps = block.warps.len();
        let ws = &mut block.warps[wi];
        let [f] = &mut ws.fragments[..] else { return false };
        // SAFETY: the event left `at` in `w` at an instruction of `control::barrier`, with the number in `e`.
        let id = unsafe { (*ws.w.at).e };
        ws.w.fuel -= 1;
        let b = &mut block.barriers[id as usize];
        if block.open >> id & 1 == 0 {
            block.open |= 1 << id;
            b.begin(warps);
        }
        b.waiting[wi] |= f.mask;
        b.waiters += f.mask.count_ones();
        // As a predicate that holds nowhere, if others wait for a reduction.
        b.all = false;
        (f.state, f.pc) = (State::Barrier(id as u8), at);
        if self.is_complete(slot, id as usize) {
            self.complete_barriers(slot);
        }
        true
    }

    /// Lets go everyone who waits at a barrier that is complete.
    pub(super) fn complete_barriers(&mut self, slot: usize) {
        let mut open = self.blocks[slot].open;
        while open != 0 {
            let id = open.trailing_zeros() as usize;
            open &= open - 1;
            if self.is_complete(slot, id) {
                self.release_barrier(slot, id);
                if !self.blocks[slot].active {
                    return;
                }
            }
        }
    }

    fn is_complete(&self, slot: usize, id: usize) -> bool {
        let block = &self.blocks[slot];
        let b = &block.barriers[id];
        let here = |wi: usize| b.waiting[wi] | b.arrived[wi];
        match b.count {
            // Who waits is alive.
            None if !b.any_arrived => b.waiters == block.live && b.waiters > 0,
            None => {
                block.warps.iter().enumerate().all(|(wi, ws)| ws.live & !here(wi) == 0)
                    && (0..block.warps.len()).any(|wi| here(wi) != 0)
            }
            Some(count) => {
                let of = |(wi, ws): (usize, &super::state::WarpState)| {
                    let h = here(wi);
                    if h == 0 {
                        0
                    } else if ws.live & !h == 0 {
                        LANES as u64
                    } else {
                        u64::from(h.count_ones())
                    }
                };
                block.warps.iter().enumerate().map(of).sum::<u64>() >= count.next_multiple_of(LANES as u64)
            }
        }
    }

    fn release_barrier(&mut self, slot: usize, id: usize) {
        if self.options.sanitize.barriers {
            self.check_divergence(slot, id);
        }
        let kernel = self.kernel;
        self.blocks[slot].open &= !(1 << id);
        let b = std::mem::take(&mut self.blocks[slot].barriers[id]);
        let whole = b.count.is_none_or(|c| c >= self.shape.threads);
        if let Some(san) = self.san.as_deref_mut() {
            san.barrier(slot, id, &b.waiting, whole && !b.any_arrived);
        }
        for wi in 0..self.blocks[slot].warps.len() {
            let ws = &mut self.blocks[slot].warps[wi];
            if b.waiting[wi] == 0 {
                continue;
            }
            for fi in 0..ws.fragments.len() {
                let f = ws.fragments[fi];
                if f.state != State::Barrier(id as u8) {
                    continue;
                }
                let code = &kernel.codes[ws.frames[f.frame as usize].code as usize];
                if b.reduces
                    && let crate::code::Cold::Bar(op) = &code.cold[code.plain[f.pc as usize].aux as usize]
                    && let Some((mode, _, dest)) = op.red
                {
                    let v = match mode {
                        BarRed::Popc => u64::from(b.popc),
                        BarRed::And => u64::from(b.all),
                        BarRed::Or => u64::from(b.any),
                    };
                    write_lanes(ws, f.frame, dest, f.mask, v);
                }
                ws.fragments[fi].state = State::Ready;
                ws.fragments[fi].pc = f.pc + 1;
            }
            ws.w.phase = Phase::Fresh;
            ws.stale_turns = 0;
            ws.yields = 0;
            ws.merge();
        }
        // Its lists serve the next time.
        self.blocks[slot].barriers[id] = b;
    }

    /// Divergence at a barrier that is about to open: fragments of one warp at different instructions, warps at
    /// different lines, threads that left before it.
    fn check_divergence(&mut self, slot: usize, id: usize) {
        let block = &self.blocks[slot];
        if block.barrier_reported {
            return;
        }
        let b = &block.barriers[id];
        let mut places: Vec<(usize, u32, u32, u32)> = Vec::new();
        for (wi, ws) in block.warps.iter().enumerate() {
            for f in &ws.fragments {
                if f.state == State::Barrier(id as u8) {
                    places.push((wi, ws.frames[f.frame as usize].code, f.pc, f.mask));
                }
            }
        }
        let Some(&(wi, ci, pc, mask)) = places.first() else { return };
        let line = |c: u32, p: u32| self.kernel.codes[c as usize].lines[p as usize].0;
        let lane = mask.trailing_zeros() as usize;
        let mut found = None;
        for &(wj, cj, pj, mj) in &places[1..] {
            let elsewhere = if wi == wj {
                // One warp, two fragments: an aligned barrier wants the whole warp at one instruction.
                (cj, pj) != (ci, pc) && b.aligned
            } else {
                b.count.is_none()
                    && (cj, pj) != (ci, pc)
                    && (line(cj, pj) != line(ci, pc) || line(ci, pc) == 0)
            };
            if elsewhere {
                let mut f = Finding::new(
                    FindingKind::BarrierDivergence,
                    format!(
                        "threads of one block wait at different barriers: {} here, others elsewhere",
                        plural(mask.count_ones(), "thread")
                    ),
                );
                f.other = Some(OtherAccess {
                    access: None,
                    thread: Some(self.thread(slot, wj, mj.trailing_zeros() as usize)),
                    size_bytes: None,
                    ..OtherAccess::at(self.place(cj, pj))
                });
                found = Some(f);
                break;
            }
        }
        let left = block.warps.iter().enumerate().find(|(_, ws)| ws.exists & !ws.live != 0);
        if found.is_none()
            && b.count.is_none()
            && let Some((wj, ws)) = left
        {
            let gone = ws.exists & !ws.live;
            let mut f = Finding::new(
                FindingKind::BarrierDivergence,
                format!(
                    "{} of the block left before a barrier that the others reach",
                    plural(block.warps.iter().map(|w| (w.exists & !w.live).count_ones()).sum(), "thread")
                ),
            );
            f.other = Some(OtherAccess {
                access: None,
                thread: Some(self.thread(slot, wj, gone.trailing_zeros() as usize)),
                size_bytes: None,
                line: Some(ws.exit_line).filter(|l| *l > 0),
                ..OtherAccess::at(None)
            });
            found = Some(f);
        }
        if let Some(mut f) = found {
            self.locate(&mut f, slot, wi, lane, ci, pc);
            self.findings.add(f);
            self.blocks[slot].barrier_reported = true;
        }
    }
}

/// Writes `v` to the lanes of `mask` of a register in `frame`, which need not be the current one.
pub(super) fn write_lanes(ws: &mut super::state::WarpState, frame: u32, dest: Slot, mask: u32, v: u64) {
    let regs = ws.frames[frame as usize].regs.as_ptr();
    let kept = std::mem::replace(&mut ws.w.regs, regs);
    for k in 0..LANES {
        if mask >> k & 1 != 0 {
            // SAFETY: the slot belongs to the frame that was just made current.
            unsafe { put(&ws.w, dest, k, v) };
        }
    }
    ws.w.regs = kept;
    debug_assert!(matches!(dest.kind, Kind::Pred | Kind::W32 | Kind::W64));
}
