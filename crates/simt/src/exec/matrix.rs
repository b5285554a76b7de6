//! Operations of a whole warp on matrices, where a handler does not do them: loads and stores of fragments, warps
//! that are not complete, everything under detectors.

use super::access::Place;
use super::paged::Site;
use super::state::Fragment;
use super::{Exec, plural};
use crate::code::{Kind, MatrixOp, MatrixWork, MemKind, RowsOp, Slot, TileOp};
use crate::cpu::Portable;
use crate::findings::{Finding, FindingKind};
use crate::handlers::generic::{get, put};
use crate::semantics::matrix::{MAX_REGISTERS, Part, Words, lanes_to_rows, rows_to_lanes, unit_bits};
use crate::warp::LANES;

/// Where an operation of a warp happens.
#[derive(Clone, Copy)]
struct Here<'g> {
    slot: usize,
    wi: usize,
    /// The fragments that meet.
    group: &'g [Fragment],
    ci: u32,
    at: u32,
}

impl Exec<'_> {
    /// Does one operation for the fragments of `group`, which are at one instruction.
    pub(super) fn matrix(&mut self, slot: usize, wi: usize, group: &[Fragment], op: &MatrixOp) {
        let Some(first) = group.first() else { return };
        let ci = self.blocks[slot].warps[wi].frames[first.frame as usize].code;
        let h = Here { slot, wi, group, ci, at: first.pc };
        let lanes = group.iter().fold(0, |m, f| m | f.mask);
        let site = self.site(ci, first.pc);
        if lanes != u32::MAX && !self.seen(FindingKind::BadShuffleMask, site, 2) {
            let mut found = Finding::new(
                FindingKind::BadShuffleMask,
                format!(
                    "`{}` needs all 32 lanes of its warp, {} part",
                    op.name,
                    plural(lanes.count_ones(), "lane")
                        .replace("lanes", "lanes take")
                        .replace("1 lane", "1 lane takes")
                ),
            );
            self.locate(&mut found, slot, wi, lanes.trailing_zeros() as usize, ci, first.pc);
            self.report(found, site, 2);
        }
        match &op.work {
            MatrixWork::Product(p) => {
                let out =
                    p.evaluate::<Portable>(&self.words(h, &p.a), &self.words(h, &p.b), &self.words(h, &p.c));
                self.set_words(h, &p.d, &out);
            }
            MatrixWork::Transpose { dest, source } => {
                let lanes = self.lanes(h, *source).map(|x| x as u32);
                let out = rows_to_lanes(&lanes_to_rows(&lanes, false), true);
                self.set_lanes(h, *dest, &out.map(u64::from));
            }
            MatrixWork::Rows(r) => self.rows(h, r),
            MatrixWork::Tile(t) => self.tile(h, t),
        }
    }

    /// A register of all lanes that take part; zeros elsewhere.
    fn lanes(&mut self, h: Here<'_>, s: Slot) -> [u64; LANES] {
        let ws = &mut self.blocks[h.slot].warps[h.wi];
        let kept = ws.w.regs;
        let mut out = [0; LANES];
        for f in h.group {
            ws.w.regs = ws.frames[f.frame as usize].regs.as_ptr();
            for (k, o) in out.iter_mut().enumerate() {
                if f.mask >> k & 1 != 0 {
                    // SAFETY: the slot belongs to the function whose frame was just made current.
                    *o = unsafe { get(&ws.w, s, k) };
                }
            }
        }
        ws.w.regs = kept;
        out
    }

    fn set_lanes(&mut self, h: Here<'_>, s: Slot, v: &[u64; LANES]) {
        debug_assert!(s.kind != Kind::Pred);
        let ws = &mut self.blocks[h.slot].warps[h.wi];
        let kept = ws.w.regs;
        for f in h.group {
            ws.w.regs = ws.frames[f.frame as usize].regs.as_ptr();
            for (k, v) in v.iter().enumerate() {
                if f.mask >> k & 1 != 0 {
                    // SAFETY: as in `lanes`.
                    unsafe { put(&ws.w, s, k, *v) };
                }
            }
        }
        ws.w.regs = kept;
    }

    fn words(&mut self, h: Here<'_>, part: &Part) -> Words {
        let mut out = [[0; LANES]; MAX_REGISTERS];
        for (o, s) in out.iter_mut().zip(&part.slots) {
            *o = self.lanes(h, *s);
        }
        out
    }

    fn set_words(&mut self, h: Here<'_>, part: &Part, words: &Words) {
        for (s, v) in part.slots.iter().zip(words) {
            self.set_lanes(h, *s, v);
        }
    }

    /// `ldmatrix` and `stmatrix`. A row counts as the access of the lane that gives its address.
    fn rows(&mut self, h: Here<'_>, r: &RowsOp) {
        let base = self.lanes(h, r.mem.base);
        let addresses = base.map(|a| a.wrapping_add(self.extra(h, &r.mem) as u64));
        let count = 8 * r.slots.len();
        let lanes = h.group.iter().fold(0, |m, f| m | f.mask);
        let wanted = lanes & if count >= LANES { u32::MAX } else { (1 << count) - 1 };
        let Some(places) = self.pieces(h, &r.mem, wanted, &addresses, 16) else { return };
        for (j, s) in r.slots.iter().enumerate() {
            let there = |row: usize| wanted >> (8 * j + row) & 1 != 0;
            if r.mem.kind == MemKind::Store {
                let lanes = self.lanes(h, *s).map(|x| x as u32);
                for (row, v) in
                    lanes_to_rows(&lanes, r.transpose).iter().enumerate().filter(|(k, _)| there(*k))
                {
                    let lane = 8 * j + row;
                    let mut bytes = [0; 16];
                    for (b, v) in bytes.chunks_exact_mut(2).zip(v) {
                        b.copy_from_slice(&v.to_le_bytes());
                    }
                    self.poke_bytes(h.slot, h.wi, lane, places[lane], &bytes);
                }
            } else {
                let mut list = [[0u16; 8]; 8];
                for (row, v) in list.iter_mut().enumerate().filter(|(k, _)| there(*k)) {
                    let lane = 8 * j + row;
                    let mut bytes = [0; 16];
                    self.peek_bytes(h.slot, h.wi, lane, places[lane], &mut bytes);
                    for (b, v) in bytes.chunks_exact(2).zip(v) {
                        *v = u16::from_le_bytes([b[0], b[1]]);
                    }
                }
                self.set_lanes(h, *s, &rows_to_lanes(&list, r.transpose).map(u64::from));
            }
        }
    }

    fn extra(&self, h: Here<'_>, mem: &crate::code::MemOp) -> i64 {
        let w = &self.blocks[h.slot].warps[h.wi].w;
        mem.offset.wrapping_add(if mem.frame_relative { w.local_base as i64 } else { 0 })
    }

    /// Checks an access of `size` bytes in each lane of `mask`, and shows it to the detectors; `None` after a fault.
    fn pieces(
        &mut self,
        h: Here<'_>,
        mem: &crate::code::MemOp,
        mask: u32,
        addresses: &[u64; LANES],
        size: u64,
    ) -> Option<[Place; LANES]> {
        let mut places = [Place::NOWHERE; LANES];
        for k in 0..LANES {
            if mask >> k & 1 == 0 {
                continue;
            }
            match self.resolve(h.slot, h.wi, mem, addresses[k], size) {
                Ok(p) => places[k] = p,
                Err(why) => {
                    let f = self.refusal(h.slot, h.wi, k, h.ci, h.at, mem, addresses[k], size, &why);
                    self.fault(h.slot, f);
                    return None;
                }
            }
        }
        let site = Site { slot: h.slot, wi: h.wi, ci: h.ci, at: h.at };
        self.track(site, mem, mask, &places, size)?;
        self.note_modified_inputs(h.slot, h.wi, h.ci, h.at, mem, mask, &places, size);
        if self.san.is_some() {
            self.detect(h.slot, h.wi, h.ci, h.at, mem, mask, &places, size);
        }
        Some(places)
    }

    /// `wmma.load` and `wmma.store`: lines of the matrix in pieces of 16 bytes, which count as accesses of the lanes
    /// in turn (the PTX ISA does not say which thread touches what). The pointer is that of the first lane; every line
    /// has to start at a multiple of 16 bytes, which is less than the 32 that CUDA asks of the pointer.
    fn tile(&mut self, h: Here<'_>, t: &TileOp) {
        let lane = h.group[0].mask.trailing_zeros() as usize;
        let base = self.lanes(h, t.mem.base)[lane].wrapping_add(self.extra(h, &t.mem) as u64);
        let stride = self.lanes(h, t.stride)[lane] & 0xffff_ffff;
        let bits = unit_bits(t.part.ty);
        let (lines, length) =
            if t.by_column { (t.part.cols, t.part.rows) } else { (t.part.rows, t.part.cols) };
        let line_bytes = length as u64 * bits / 8;
        // The stride counts elements, of which a one-bit word has 32.
        let step = stride.wrapping_mul(t.part.ty.bits()) / 8;
        let per_line = (line_bytes / 16).max(1) as usize;
        let size = line_bytes.min(16);
        let total = lines * per_line;
        let mut bytes = vec![0u8; lines * line_bytes as usize];
        let store = t.mem.kind == MemKind::Store;
        // Element `e` of line `l` in the row-major matrix.
        let index = |l: usize, e: usize| if t.by_column { e * t.part.cols + l } else { l * t.part.cols + e };
        let width = bits as usize;
        if store {
            let words = self.words(h, &t.part);
            let matrix = t.part.matrix(&words);
            for l in 0..lines {
                for e in 0..length {
                    write_bits(&mut bytes, (l * length + e) * width, width, matrix[index(l, e)]);
                }
            }
        }
        for first in (0..total).step_by(LANES) {
            let mut addresses = [0; LANES];
            let count = (total - first).min(LANES);
            for (k, a) in addresses.iter_mut().enumerate().take(count) {
                let piece = first + k;
                let (l, p) = (piece / per_line, piece % per_line);
                *a = base.wrapping_add((l as u64).wrapping_mul(step)).wrapping_add(p as u64 * 16);
            }
            let mask = if count == LANES { u32::MAX } else { (1 << count) - 1 };
            let Some(places) = self.pieces(h, &t.mem, mask, &addresses, size) else { return };
            for (k, place) in places.iter().enumerate().take(count) {
                let from = (first + k) * size as usize;
                let piece = &mut bytes[from..from + size as usize];
                if store {
                    self.poke_bytes(h.slot, h.wi, k, *place, piece);
                } else {
                    self.peek_bytes(h.slot, h.wi, k, *place, piece);
                }
            }
        }
        if !store {
            let mut matrix = vec![0u64; t.part.rows * t.part.cols];
            for l in 0..lines {
                for e in 0..length {
                    matrix[index(l, e)] = read_bits(&bytes, (l * length + e) * width, width);
                }
            }
            let words = t.part.words(&matrix);
            self.set_words(h, &t.part, &words);
        }
    }
}

/// `width` bits (4, or whole bytes) at bit `at`.
fn read_bits(bytes: &[u8], at: usize, width: usize) -> u64 {
    if width < 8 {
        return u64::from(bytes[at / 8] >> (at % 8)) & ((1 << width) - 1);
    }
    bytes[at / 8..(at + width) / 8].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

fn write_bits(bytes: &mut [u8], at: usize, width: usize, v: u64) {
    if width < 8 {
        bytes[at / 8] |= ((v & ((1 << width) - 1)) as u8) << (at % 8);
        return;
    }
    let n = width / 8;
    bytes[at / 8..at / 8 + n].copy_from_slice(&v.to_le_bytes()[..n]);
}
