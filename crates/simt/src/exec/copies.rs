//! Asynchronous copies from global to shared memory.
//!
//! The source is read when the copy is issued; the destination is written when the thread waits for it (`wait_group`,
//! `wait_all`), and not at all if it never does. In between, the detectors take the destination as being written: any
//! access to it, by whatever thread, is a race. What this misses: a store to the source between issue and wait.

use super::access::Place;
use super::paged::Site;
use super::{Exec, Step, mbarrier};
use crate::code::{CopyOp, MbarrierOp, MemOp};
use crate::findings::AccessKind;
use crate::handlers::generic::get;
use crate::sanitize::{Access, CopyPhase, Where};
use crate::warp::LANES;

/// A copy that has not landed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    lane: u8,
    size: u8,
    /// Number of its group of the lane, from 1; 0 while it is not committed.
    group: u32,
    /// Offset in shared memory.
    to: u64,
    bytes: [u8; 16],
    ci: u32,
    at: u32,
}

impl Exec<'_> {
    /// `cp.async` for the running fragment.
    pub(super) fn copy(&mut self, slot: usize, wi: usize, fi: usize, ci: u32, at: u32, op: &CopyOp) -> Step {
        let mask = self.blocks[slot].warps[wi].fragments[fi].mask;
        let (mut to, mut from) = ([Place::NOWHERE; LANES], [Place::NOWHERE; LANES]);
        let mut read = [0u64; LANES];
        for k in 0..LANES {
            if mask >> k & 1 == 0 {
                continue;
            }
            let w = &self.blocks[slot].warps[wi].w;
            // SAFETY: operands belong to the current frame.
            let (ignored, part) = unsafe {
                (op.ignore.is_some_and(|s| get(w, s, k) != 0), op.read.map_or(op.size, |s| get(w, s, k)))
            };
            read[k] = if ignored { 0 } else { part.min(op.size) };
            let ends = [(&op.dest, op.size, true), (&op.source, op.size, read[k] > 0)];
            for (end, (mem, size, wanted)) in ends.into_iter().enumerate() {
                if !wanted {
                    continue;
                }
                let address = self.copy_address(slot, wi, k, mem);
                // A partial source need not be there beyond its bytes, but is aligned to the whole.
                let aligned = address & (size - 1) == 0;
                let need = if end == 1 && aligned { read[k] } else { size };
                match self.resolve_aligned(slot, wi, mem, address, need, size) {
                    Ok(p) if end == 0 => to[k] = p,
                    Ok(p) => from[k] = p,
                    Err(why) => {
                        let f = self.refusal(slot, wi, k, ci, at, mem, address, need, &why);
                        self.fault(slot, f);
                        return Step::Ended;
                    }
                }
            }
        }
        // The bytes that are read, one width at a time.
        for size in 1..=op.size {
            let lanes = (0..LANES).filter(|k| mask >> k & 1 != 0 && read[*k] == size);
            let lanes = lanes.fold(0, |m, k| m | 1 << k);
            if lanes != 0 {
                let site = Site { slot, wi, ci, at };
                if self.track(site, &op.source, lanes, &from, size).is_none() {
                    return Step::Ended;
                }
                if self.san.is_some() {
                    self.detect(slot, wi, ci, at, &op.source, lanes, &from, size);
                }
            }
        }
        for k in 0..LANES {
            let Place::Shared(offset) = to[k] else { continue };
            let mut bytes = [0; 16];
            if read[k] > 0 {
                self.peek_bytes(slot, wi, k, from[k], &mut bytes[..read[k] as usize]);
            }
            let pending = Pending { lane: k as u8, size: op.size as u8, group: 0, to: offset, bytes, ci, at };
            self.show_copy(slot, wi, &pending, CopyPhase::Issued);
            self.blocks[slot].warps[wi].copies.push(pending);
        }
        Step::Go(at + 1)
    }

    fn copy_address(&self, slot: usize, wi: usize, lane: usize, mem: &MemOp) -> u64 {
        let w = &self.blocks[slot].warps[wi].w;
        let extra = mem.offset.wrapping_add(if mem.frame_relative { w.local_base as i64 } else { 0 });
        // SAFETY: the base register belongs to the current frame.
        unsafe { get(w, mem.base, lane) }.wrapping_add(extra as u64)
    }

    /// `cp.async.commit_group`: the lanes' copies so far form a group.
    pub(super) fn copy_commit(&mut self, slot: usize, wi: usize, fi: usize, at: u32) -> Step {
        let ws = &mut self.blocks[slot].warps[wi];
        let mask = ws.fragments[fi].mask;
        for k in 0..LANES {
            ws.groups[k] += mask >> k & 1;
        }
        for c in &mut ws.copies {
            if c.group == 0 && mask >> c.lane & 1 != 0 {
                c.group = ws.groups[usize::from(c.lane)];
            }
        }
        Step::Go(at + 1)
    }

    /// `cp.async.wait_group` and `wait_all`: copies of the lanes land, in the order of their issue.
    pub(super) fn copy_wait(
        &mut self,
        slot: usize,
        wi: usize,
        fi: usize,
        at: u32,
        left: Option<u32>,
    ) -> Step {
        let ws = &mut self.blocks[slot].warps[wi];
        let mask = ws.fragments[fi].mask;
        let groups = ws.groups;
        let lands = |c: &Pending| {
            let lane = usize::from(c.lane);
            let due = match left {
                None => true,
                Some(left) => c.group != 0 && c.group.saturating_add(left) <= groups[lane],
            };
            mask >> lane & 1 != 0 && due
        };
        let landed: Vec<Pending> = ws.copies.extract_if(.., |c| lands(c)).collect();
        for c in &landed {
            self.show_copy(slot, wi, c, CopyPhase::Landed);
            let size = usize::from(c.size);
            self.poke_bytes(slot, wi, usize::from(c.lane), Place::Shared(c.to), &c.bytes[..size]);
        }
        Step::Go(at + 1)
    }

    /// `cp.async.mbarrier.arrive`: taken as a wait, which the asynchronous arrival may be as well.
    pub(super) fn copy_arrive(
        &mut self,
        slot: usize,
        wi: usize,
        fi: usize,
        ci: u32,
        at: u32,
        op: Option<&MemOp>,
    ) -> Step {
        let step = self.copy_wait(slot, wi, fi, at, None);
        let Some(op) = op else { return step };
        let mask = self.blocks[slot].warps[wi].fragments[fi].mask;
        for k in 0..LANES {
            if mask >> k & 1 == 0 {
                continue;
            }
            let address = self.copy_address(slot, wi, k, op);
            match self.resolve(slot, wi, op, address, 8) {
                Ok(place) => {
                    let mut places = [Place::NOWHERE; LANES];
                    places[k] = place;
                    if self.san.is_some() {
                        self.detect(slot, wi, ci, at, op, 1 << k, &places, 8);
                    }
                    let mut bytes = [0; 8];
                    self.peek_bytes(slot, wi, k, place, &mut bytes);
                    let arrive = MbarrierOp::Arrive { drop: false };
                    let (new, _) = mbarrier::apply(arrive, u64::from_le_bytes(bytes), 1);
                    self.poke_bytes(slot, wi, k, place, &new.to_le_bytes());
                }
                Err(why) => {
                    let f = self.refusal(slot, wi, k, ci, at, op, address, 8, &why);
                    self.fault(slot, f);
                    return Step::Ended;
                }
            }
        }
        step
    }

    /// Shows a copy's write to the detectors; a finding is at the copy, not at its wait.
    fn show_copy(&mut self, slot: usize, wi: usize, c: &Pending, phase: CopyPhase) {
        if self.san.is_none() {
            return;
        }
        let access = Access {
            slot,
            warp: wi,
            lane: usize::from(c.lane),
            place: Where::Shared { offset: c.to },
            size: u64::from(c.size),
            kind: AccessKind::Write,
            strong: false,
            semantics: None,
            scope: None,
            site: self.site(c.ci, c.at),
            copy: phase,
        };
        self.show(slot, wi, c.ci, c.at, &access);
    }
}
