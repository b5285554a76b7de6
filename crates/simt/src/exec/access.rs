//! Memory accesses that handlers hand over: every space, atomics, findings, detectors.
#![warn(clippy::arithmetic_side_effects)]
#![allow(clippy::needless_range_loop, reason = "lanes index several arrays at once")]

use assay_ptx::{AtomOp, Space, Ty};

use super::mbarrier;
use super::paged::{Site, wrap_note};
use super::{Exec, Step};
use crate::code::{Cold, Kind, MbarrierOp, MemKind, MemOp};
use crate::decode::PARAM_WINDOW;
use crate::findings::{AccessKind, Finding, FindingKind, FindingSpace, OtherAccess};
use crate::handlers::generic::{get, put};
use crate::memory::{FIRST_REGION, LOCAL_WINDOW, OFFSET_BITS, OFFSET_MASK, SHARED_WINDOW};
use crate::sanitize::{Access, CopyPhase, Report, Where};
use crate::semantics::soft::{self, BF16, F16, F32, F64, Mode};
use crate::semantics::{mask as type_mask, sext, value};
use crate::warp::LANES;

/// Where a lane's access lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Region index and offset.
    Global(usize, u64),
    Shared(u64),
    Local(u64),
    Param(u64),
}

impl Place {
    /// For lanes that do nothing.
    pub(super) const NOWHERE: Place = Place::Param(0);
}

/// Why a lane's access cannot be done.
pub(super) enum Refused {
    Outside(FindingSpace),
    Misaligned(FindingSpace),
    Constant,
}

impl Exec<'_> {
    pub(super) fn resolve(
        &mut self,
        slot: usize,
        wi: usize,
        op: &MemOp,
        address: u64,
        total: u64,
    ) -> Result<Place, Refused> {
        self.resolve_aligned(slot, wi, op, address, total, total)
    }

    /// As [`Exec::resolve`], where the address has to be a multiple of something else than the size.
    pub(super) fn resolve_aligned(
        &mut self,
        slot: usize,
        wi: usize,
        op: &MemOp,
        address: u64,
        total: u64,
        align: u64,
    ) -> Result<Place, Refused> {
        let w = &self.blocks[slot].warps[wi].w;
        let (space, address) = match op.space {
            None => match address & !OFFSET_MASK {
                SHARED_WINDOW => (FindingSpace::Shared, address & OFFSET_MASK),
                LOCAL_WINDOW => (FindingSpace::Local, address & OFFSET_MASK),
                PARAM_WINDOW => (FindingSpace::Param, address & OFFSET_MASK),
                _ => (FindingSpace::Global, address),
            },
            Some(Space::Global) => (FindingSpace::Global, address),
            Some(Space::Const) => (FindingSpace::Const, address),
            Some(Space::Shared) => (FindingSpace::Shared, address & 0xffff_ffff),
            Some(Space::Local) => (FindingSpace::Local, address & OFFSET_MASK),
            Some(Space::Param) => (FindingSpace::Param, address & OFFSET_MASK),
        };
        let within = |len: u64| address.checked_add(total).is_some_and(|end| end <= len);
        let place = match space {
            FindingSpace::Global | FindingSpace::Const => {
                let offset = address & OFFSET_MASK;
                let Some(region) = self.memory.region_index(address) else {
                    return Err(Refused::Outside(space));
                };
                let have = self.memory.regions[region].len();
                if offset.checked_add(total).is_none_or(|end| end > have) {
                    if !self.memory.extend(address, total) {
                        return Err(Refused::Outside(space));
                    }
                    self.refresh_table(region);
                }
                if self.memory.regions[region].constant && op.kind != MemKind::Load {
                    return Err(Refused::Constant);
                }
                Place::Global(region, offset)
            }
            FindingSpace::Shared if within(w.shared_len) => Place::Shared(address),
            FindingSpace::Local if within(w.local_len) => Place::Local(address),
            FindingSpace::Param if within(w.params_len) && op.kind == MemKind::Load => Place::Param(address),
            _ => return Err(Refused::Outside(space)),
        };
        // Regions start at multiples of 64; sizes are powers of two.
        if address & align.saturating_sub(1) != 0 {
            return Err(Refused::Misaligned(space));
        }
        Ok(place)
    }

    fn refresh_table(&mut self, region: usize) {
        let r = &mut self.memory.regions[region];
        let e = &mut self.table[region.saturating_add(FIRST_REGION as usize)];
        e.base = r.bytes.as_ptr();
        (e.read_len, e.write_len) = r.open();
    }

    fn peek(&self, slot: usize, wi: usize, lane: usize, place: Place, size: usize) -> u64 {
        let mut b = [0u8; 8];
        let out = &mut b[..size];
        match place {
            Place::Global(region, offset) => {
                self.memory.regions[region].read(offset, out);
            }
            Place::Shared(offset) => {
                let from = offset as usize;
                if let Some(s) = self.blocks[slot].shared.as_slice().get(from..from.saturating_add(size)) {
                    out.copy_from_slice(s);
                }
            }
            Place::Param(offset) => {
                let from = offset as usize;
                if let Some(s) = self.params.get(from..from.saturating_add(size)) {
                    out.copy_from_slice(s);
                }
            }
            Place::Local(offset) => {
                let local = self.blocks[slot].warps[wi].local.as_slice();
                for (k, o) in out.iter_mut().enumerate() {
                    let at = local_byte(offset.saturating_add(k as u64), lane);
                    *o = local.get(at).copied().unwrap_or(0);
                }
            }
        }
        u64::from_le_bytes(b)
    }

    fn poke(&mut self, slot: usize, wi: usize, lane: usize, place: Place, size: usize, v: u64) {
        let b = v.to_le_bytes();
        let b = &b[..size];
        match place {
            Place::Global(region, offset) => {
                self.memory.regions[region].write(offset, b);
            }
            Place::Shared(offset) => {
                let from = offset as usize;
                let bytes = self.blocks[slot].shared.as_mut_slice();
                if let Some(s) = bytes.get_mut(from..from.saturating_add(size)) {
                    s.copy_from_slice(b);
                }
            }
            Place::Param(_) => {}
            Place::Local(offset) => {
                let local = self.blocks[slot].warps[wi].local.as_mut_slice();
                for (k, v) in b.iter().enumerate() {
                    let at = local_byte(offset.saturating_add(k as u64), lane);
                    if let Some(o) = local.get_mut(at) {
                        *o = *v;
                    }
                }
            }
        }
    }

    /// Reads as many bytes as `out` has.
    pub(super) fn peek_bytes(&self, slot: usize, wi: usize, lane: usize, place: Place, out: &mut [u8]) {
        for (j, piece) in out.chunks_mut(8).enumerate() {
            let v = self.peek(slot, wi, lane, step(place, j, 8), piece.len()).to_le_bytes();
            let len = piece.len();
            piece.copy_from_slice(&v[..len]);
        }
    }

    pub(super) fn poke_bytes(&mut self, slot: usize, wi: usize, lane: usize, place: Place, bytes: &[u8]) {
        for (j, piece) in bytes.chunks(8).enumerate() {
            let mut v = [0; 8];
            v[..piece.len()].copy_from_slice(piece);
            self.poke(slot, wi, lane, step(place, j, 8), piece.len(), u64::from_le_bytes(v));
        }
    }

    /// Reads bytes of a thread's generic memory, for strings; `None` outside.
    pub(crate) fn read_generic(&mut self, slot: usize, wi: usize, lane: usize, address: u64) -> Option<u8> {
        let op = MemOp {
            kind: MemKind::Load,
            space: None,
            base: crate::code::Slot { at: 0, kind: Kind::W64, negated: false },
            offset: 0,
            frame_relative: false,
            size: 1,
            ty: Ty::U8,
            data: Vec::new(),
            b: None,
            c: None,
            strong: false,
            semantics: None,
            scope: None,
            used: u32::MAX,
        };
        let place = self.resolve(slot, wi, &op, address, 1).ok()?;
        Some(self.peek(slot, wi, lane, place, 1) as u8)
    }

    /// Reads `size` bytes of a thread's local memory.
    pub(crate) fn read_local(&self, slot: usize, wi: usize, lane: usize, offset: u64, size: usize) -> u64 {
        self.peek(slot, wi, lane, Place::Local(offset), size)
    }

    /// Writes `size` bytes of a thread's local memory.
    pub(crate) fn write_local(
        &mut self,
        slot: usize,
        wi: usize,
        lane: usize,
        offset: u64,
        size: usize,
        v: u64,
    ) {
        self.poke(slot, wi, lane, Place::Local(offset), size, v);
    }

    /// Does the memory instruction at `at` for the lanes of `mask`.
    pub(crate) fn memory_access(&mut self, slot: usize, wi: usize, ci: u32, at: u32, mask: u32) -> Step {
        let kernel = self.kernel;
        let code = &kernel.codes[ci as usize];
        let Cold::Memory(op) = &code.cold[code.plain[at as usize].aux as usize] else {
            return Step::Go(at.saturating_add(1));
        };
        let size = usize::from(op.size);
        let total = u64::from(op.size).saturating_mul(op.data.len() as u64);
        let mut places = [Place::Param(0); LANES];
        let w = &self.blocks[slot].warps[wi].w;
        let extra = op.offset.wrapping_add(if op.frame_relative { w.local_base as i64 } else { 0 });
        let mut addresses = [0u64; LANES];
        for (k, a) in addresses.iter_mut().enumerate() {
            // SAFETY: the base register belongs to the current frame.
            *a = unsafe { get(w, op.base, k) }.wrapping_add(extra as u64);
        }
        let quick = self.resolve_paged(op, mask, &addresses, total, &mut places);
        for k in 0..LANES {
            if mask >> k & 1 == 0 || quick {
                continue;
            }
            match self.resolve(slot, wi, op, addresses[k], total) {
                Ok(p) => places[k] = p,
                Err(refused) => {
                    let f = self.refusal(slot, wi, k, ci, at, op, addresses[k], total, &refused);
                    self.fault(slot, f);
                    return Step::Ended;
                }
            }
        }
        let site = Site { slot, wi, ci, at };
        let Some(paged) = self.track(site, op, mask, &places, total) else { return Step::Ended };
        self.note_modified_inputs(slot, wi, ci, at, op, mask, &places, total);
        if self.san.is_some() {
            self.detect(slot, wi, ci, at, op, mask, &places, total);
        }
        if paged && self.paged_access(site, op, mask, &places, total) {
            return Step::Go(at.saturating_add(1));
        }
        match op.kind {
            MemKind::Load => {
                for (j, dest) in op.data.iter().enumerate() {
                    let Some(dest) = dest else { continue };
                    for k in 0..LANES {
                        if mask >> k & 1 == 0 {
                            continue;
                        }
                        let v = self.peek(slot, wi, k, step(places[k], j, size), size);
                        let v = if op.ty.is_signed() { sext(v, op.ty.bits()) as u64 } else { v };
                        let v = if self.narrow(ci, at, j) { v & 0xffff } else { v };
                        // SAFETY: the destination belongs to the current frame.
                        unsafe { put(&self.blocks[slot].warps[wi].w, *dest, k, v) };
                    }
                }
            }
            MemKind::Store => {
                for k in 0..LANES {
                    if mask >> k & 1 == 0 {
                        continue;
                    }
                    for (j, source) in op.data.iter().enumerate() {
                        let Some(source) = source else { continue };
                        // SAFETY: the source belongs to the current frame.
                        let v = unsafe { get(&self.blocks[slot].warps[wi].w, *source, k) };
                        self.poke(slot, wi, k, step(places[k], j, size), size, v);
                    }
                }
            }
            MemKind::Mbarrier(barrier) => {
                for k in 0..LANES {
                    if mask >> k & 1 == 0 {
                        continue;
                    }
                    let old = self.peek(slot, wi, k, places[k], size);
                    let w = &self.blocks[slot].warps[wi].w;
                    // SAFETY: operand and destination belong to the current frame.
                    let new = unsafe {
                        let operand = op.b.map_or(0, |s| get(w, s, k));
                        let (new, result) = mbarrier::apply(barrier, old, operand);
                        if let Some(Some(dest)) = op.data.first() {
                            put(w, *dest, k, result);
                        }
                        new
                    };
                    self.poke(slot, wi, k, places[k], size, new);
                }
            }
            MemKind::Atomic(atom) => {
                for k in 0..LANES {
                    if mask >> k & 1 == 0 {
                        continue;
                    }
                    let old = self.peek(slot, wi, k, places[k], size);
                    let w = &self.blocks[slot].warps[wi].w;
                    // SAFETY: operands belong to the current frame.
                    let (b, c) =
                        unsafe { (op.b.map_or(0, |s| get(w, s, k)), op.c.map_or(0, |s| get(w, s, k))) };
                    let global = matches!(places[k], Place::Global(..));
                    let new = atomic(atom, op.ty, old, b, c, global);
                    if let Some(Some(dest)) = op.data.first() {
                        // SAFETY: as above.
                        unsafe { put(w, *dest, k, old) };
                    }
                    self.poke(slot, wi, k, places[k], size, new);
                }
            }
        }
        Step::Go(at.saturating_add(1))
    }

    /// True if the `j`-th destination of the load at `at` is a 16-bit register.
    pub(super) fn narrow(&self, ci: u32, at: u32, j: usize) -> bool {
        let code = &self.kernel.codes[ci as usize];
        code.narrow.binary_search(&(at, j as u32)).is_ok()
    }

    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and what it wanted")]
    pub(super) fn refusal(
        &self,
        slot: usize,
        wi: usize,
        lane: usize,
        ci: u32,
        at: u32,
        op: &MemOp,
        address: u64,
        total: u64,
        why: &Refused,
    ) -> Finding {
        let access = access_kind(op);
        let (space, kind) = match (why, op.kind) {
            (Refused::Misaligned(s), _) => (*s, FindingKind::MisalignedAccess),
            (Refused::Outside(s), MemKind::Load) => (*s, FindingKind::OobRead),
            (Refused::Outside(s), _) => (*s, FindingKind::OobWrite),
            (Refused::Constant, _) => (FindingSpace::Const, FindingKind::OobWrite),
        };
        let mut f = Finding::new(kind, String::new());
        f.space = Some(space);
        f.size_bytes = Some(total);
        f.access = Some(access);
        let what = match why {
            Refused::Misaligned(_) => "misaligned",
            Refused::Outside(_) => "out-of-bounds",
            Refused::Constant => "forbidden",
        };
        let noun = access.noun();
        match space {
            FindingSpace::Global | FindingSpace::Const => {
                let (buffer, offset) = self.global_place(address);
                f.offset_bytes = Some(offset);
                f.message = match buffer {
                    Some(b) => {
                        let b = &self.memory.buffers[b];
                        f.buffer = Some(b.name.clone());
                        let wrapped = match why {
                            Refused::Outside(_) => {
                                wrap_note(offset, total, b.dtype.size_bytes(), b.size_bytes)
                            }
                            Refused::Misaligned(_) | Refused::Constant => None,
                        };
                        format!(
                            "{what} {noun} of {total} bytes at offset {offset} of `{}` ({} bytes, {}){}",
                            b.name,
                            b.size_bytes,
                            space.name(),
                            wrapped.unwrap_or_default()
                        )
                    }
                    None => {
                        f.offset_bytes = Some(address as i64);
                        let null = if address < 1 << 20 { " (a null pointer)" } else { "" };
                        format!("{what} {noun} of {total} bytes at address {address:#x}{null}, in no buffer")
                    }
                };
            }
            FindingSpace::Shared | FindingSpace::Local | FindingSpace::Param => {
                let offset = if op.space == Some(Space::Shared) {
                    address & 0xffff_ffff
                } else {
                    address & OFFSET_MASK
                };
                let w = &self.blocks[slot].warps[wi].w;
                let len = match space {
                    FindingSpace::Shared => self.shape.shared,
                    FindingSpace::Local => w.local_len,
                    _ => w.params_len,
                };
                let names = &self.kernel.shared_names;
                if space == FindingSpace::Shared
                    && let Some((name, ..)) = names.iter().rfind(|(_, from, _)| *from <= offset)
                {
                    f.buffer = Some(name.clone());
                }
                f.offset_bytes = Some(offset as i64);
                f.message = format!(
                    "{what} {noun} of {total} bytes at offset {offset} of {} memory ({len} bytes)",
                    space.name()
                );
            }
        }
        self.locate(&mut f, slot, wi, lane, ci, at);
        f
    }

    /// The buffer (index into the session's list) that an address outside belongs to, and the offset from it; a
    /// pointer a little before a region counts as a negative offset.
    pub(crate) fn global_place(&self, address: u64) -> (Option<usize>, i64) {
        let offset = address & OFFSET_MASK;
        if offset > OFFSET_MASK >> 1 {
            let next = (address >> OFFSET_BITS).saturating_add(1) << OFFSET_BITS;
            let p = self.memory.place(next);
            return (p.buffer.map(|b| b as usize), (address as i64).wrapping_sub(next as i64));
        }
        let p = self.memory.place(address);
        (p.buffer.map(|b| b as usize), p.offset)
    }

    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and what it did")]
    pub(super) fn note_modified_inputs(
        &mut self,
        slot: usize,
        wi: usize,
        ci: u32,
        at: u32,
        op: &MemOp,
        mask: u32,
        places: &[Place; LANES],
        total: u64,
    ) {
        if op.kind == MemKind::Load {
            return;
        }
        for (k, place) in places.iter().enumerate() {
            let Place::Global(region, offset) = *place else { continue };
            if mask >> k & 1 == 0 || !self.memory.regions[region].read_only {
                continue;
            }
            let address = (region as u64).saturating_add(FIRST_REGION) << OFFSET_BITS | offset;
            let (buffer, at_byte) = self.global_place(address);
            let Some(buffer) = buffer else { continue };
            let site = self.site(ci, at);
            if self.seen(FindingKind::InputModified, site, buffer as u64) {
                continue;
            }
            let name = self.memory.buffers[buffer].name.clone();
            let access = access_kind(op);
            let mut f = Finding::new(
                FindingKind::InputModified,
                format!(
                    "{} of {total} bytes at offset {at_byte} of `{name}`, which is an input",
                    access.noun()
                ),
            );
            f.space = Some(FindingSpace::Global);
            f.buffer = Some(name);
            f.offset_bytes = Some(at_byte);
            f.size_bytes = Some(total);
            f.access = Some(access);
            self.locate(&mut f, slot, wi, k, ci, at);
            self.report(f, site, buffer as u64);
        }
    }

    /// Shows the access to the detectors and turns what they report into findings.
    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and what it did")]
    pub(super) fn detect(
        &mut self,
        slot: usize,
        wi: usize,
        ci: u32,
        at: u32,
        op: &MemOp,
        mask: u32,
        places: &[Place; LANES],
        total: u64,
    ) {
        let Some(san) = self.san.take() else { return };
        let kind = access_kind(op);
        let mut reports = Vec::new();
        for (k, place) in places.iter().enumerate() {
            if mask >> k & 1 == 0 {
                continue;
            }
            for (from, size) in used_runs(op.used, total) {
                let at_place = match *place {
                    Place::Global(region, offset) => {
                        if self.memory.regions[region].constant {
                            continue;
                        }
                        Where::Global { region, offset: offset.saturating_add(from) }
                    }
                    Place::Shared(offset) => Where::Shared { offset: offset.saturating_add(from) },
                    Place::Local(offset) => Where::Local { offset: offset.saturating_add(from) },
                    Place::Param(_) => continue,
                };
                let access = Access {
                    slot,
                    warp: wi,
                    lane: k,
                    place: at_place,
                    size,
                    kind,
                    strong: op.strong,
                    semantics: op.semantics,
                    scope: op.scope,
                    site: self.site(ci, at),
                    copy: CopyPhase::None,
                };
                reports.clear();
                san.access(&access, &mut |r| reports.push(r));
                self.publish(slot, wi, ci, at, &access, &reports);
            }
        }
        if san.bytes() > self.options.memory_cap_bytes {
            self.stop = Some(super::Stop::Exhausted("shadow memory passes the memory cap".into()));
        }
        self.san = Some(san);
    }

    /// Shows one access to the detectors.
    pub(super) fn show(&mut self, slot: usize, wi: usize, ci: u32, at: u32, access: &Access) {
        let Some(san) = self.san.take() else { return };
        let mut reports = Vec::new();
        san.access(access, &mut |r| reports.push(r));
        self.publish(slot, wi, ci, at, access, &reports);
        self.san = Some(san);
    }

    /// Makes findings of what the detectors reported, the first of its kind at an instruction described.
    fn publish(&mut self, slot: usize, wi: usize, ci: u32, at: u32, access: &Access, reports: &[Report]) {
        for report in reports {
            let (kind, place) = self.report_key(access, report);
            if !self.seen(kind, access.site, place) {
                let f = self.describe(slot, wi, access.lane, ci, at, kind, access, report);
                self.report(f, access.site, place);
            }
        }
    }

    /// The kind of a report, and a number for the buffer or variable that it is about.
    fn report_key(&self, a: &Access, report: &Report) -> (FindingKind, u64) {
        let race = matches!(report, Report::Race(_));
        match a.place {
            Where::Global { region, offset } => {
                let address = (region as u64).saturating_add(FIRST_REGION) << OFFSET_BITS | offset;
                let kind = if race { FindingKind::RaceGlobal } else { FindingKind::UninitReadGlobal };
                (kind, self.global_place(address).0.map_or(u64::MAX, |b| b as u64))
            }
            Where::Shared { offset } => {
                let kind = if race { FindingKind::RaceShared } else { FindingKind::UninitReadShared };
                let names = &self.kernel.shared_names;
                (kind, names.partition_point(|(_, from, _)| *from <= offset) as u64)
            }
            Where::Local { .. } => (FindingKind::UninitReadLocal, 0),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and what was found")]
    fn describe(
        &self,
        slot: usize,
        wi: usize,
        lane: usize,
        ci: u32,
        at: u32,
        kind: FindingKind,
        a: &Access,
        report: &Report,
    ) -> Finding {
        let (space, buffer, offset) = match a.place {
            Where::Global { region, offset } => {
                let address = (region as u64).saturating_add(FIRST_REGION) << OFFSET_BITS | offset;
                let (b, o) = self.global_place(address);
                (FindingSpace::Global, b.map(|b| self.memory.buffers[b].name.clone()), o)
            }
            Where::Shared { offset } => {
                let names = &self.kernel.shared_names;
                let hit = names
                    .iter()
                    .rfind(|(_, from, size)| *from <= offset && offset < from.saturating_add(*size));
                let (name, from) = hit.map_or((None, 0), |(n, from, _)| (Some(n.clone()), *from));
                (FindingSpace::Shared, name, offset.saturating_sub(from) as i64)
            }
            Where::Local { offset } => (FindingSpace::Local, None, offset as i64),
        };
        let whose = buffer.as_ref().map_or_else(|| format!("{} memory", space.name()), |b| format!("`{b}`"));
        let (message, other) = match report {
            Report::Uninitialised => {
                let m = format!(
                    "{} of {} bytes at offset {offset} of {whose}, which nothing wrote",
                    a.kind.noun(),
                    a.size
                );
                (m, None)
            }
            Report::Race(o) => {
                // The detectors number the blocks that are executed.
                let block = self.block_index(self.plan.linear(o.block));
                let place = self.kernel.place_of_site(o.site);
                let thread = crate::findings::ThreadId { block, thread: self.shape.thread(o.thread) };
                let me = self.thread(slot, wi, lane);
                let who = |t: &crate::findings::ThreadId| {
                    if me.block == thread.block {
                        format!("thread ({})", join(t.thread))
                    } else {
                        format!("thread ({}) of block ({})", join(t.thread), join(t.block))
                    }
                };
                let m = if o.pending {
                    format!(
                        "race on {whose} at offset {offset}: {} by {} while an asynchronous copy of {} writes there",
                        a.kind.noun(),
                        who(&me),
                        if me == thread { "the same thread".to_owned() } else { who(&thread) },
                    )
                } else {
                    format!(
                        "race on {whose} at offset {offset}: {} by {} and {} by {} are not ordered",
                        a.kind.noun(),
                        who(&me),
                        o.kind.noun(),
                        who(&thread),
                    )
                };
                let other = OtherAccess {
                    access: Some(o.kind),
                    thread: Some(thread),
                    size_bytes: Some(o.size),
                    ..OtherAccess::at(place)
                };
                (m, Some(other))
            }
        };
        let mut f = Finding::new(kind, message);
        f.space = Some(space);
        f.buffer = buffer;
        f.offset_bytes = Some(offset);
        f.size_bytes = Some(a.size);
        f.access = Some(a.kind);
        f.other = other;
        self.locate(&mut f, slot, wi, lane, ci, at);
        f
    }
}

pub(super) fn join(t: [u32; 3]) -> String {
    format!("{},{},{}", t[0], t[1], t[2])
}

pub(super) fn access_kind(op: &MemOp) -> AccessKind {
    match op.kind {
        MemKind::Load => AccessKind::Read,
        MemKind::Store => AccessKind::Write,
        MemKind::Mbarrier(MbarrierOp::Init | MbarrierOp::Inval) => AccessKind::Write,
        MemKind::Atomic(_) | MemKind::Mbarrier(_) => AccessKind::Atomic,
    }
}

fn step(p: Place, j: usize, size: usize) -> Place {
    let by = (j as u64).saturating_mul(size as u64);
    match p {
        Place::Global(r, o) => Place::Global(r, o.saturating_add(by)),
        Place::Shared(o) => Place::Shared(o.saturating_add(by)),
        Place::Local(o) => Place::Local(o.saturating_add(by)),
        Place::Param(o) => Place::Param(o.saturating_add(by)),
    }
}

/// Byte `offset` of lane `lane` in a warp's local memory: words of the lanes are interleaved.
fn local_byte(offset: u64, lane: usize) -> usize {
    let word = (offset >> 2).saturating_mul(LANES as u64).saturating_add(lane as u64);
    word.saturating_mul(4).saturating_add(offset & 3) as usize
}

/// `a + b` of binary32, rounded to nearest by the processor.
fn add_f32(a: u64, b: u64) -> u64 {
    let r = u64::from((f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits());
    if F32.is_nan(r) { F32.nan } else { r }
}

/// The new value of an atomic operation.
pub(crate) fn atomic(op: AtomOp, ty: Ty, old: u64, b: u64, c: u64, global: bool) -> u64 {
    let m = type_mask(ty);
    let (old, b) = (old & m, b & m);
    let halves = |f| {
        let h = |s: u32| soft::add(f, Mode::Even, old >> s & 0xffff, b >> s & 0xffff);
        h(0) | h(16) << 16
    };
    match op {
        AtomOp::Add => match ty {
            // Global f32 flushes subnormals, shared does not (PTX ISA, `atom`).
            Ty::F32 if global => F32.flush(add_f32(F32.flush(old), F32.flush(b))),
            Ty::F32 => add_f32(old, b),
            Ty::F64 => soft::add(F64, Mode::Even, old, b),
            Ty::F16 => soft::add(F16, Mode::Even, old, b),
            Ty::Bf16 => soft::add(BF16, Mode::Even, old, b),
            Ty::F16x2 => halves(F16),
            Ty::Bf16x2 => halves(BF16),
            _ => old.wrapping_add(b) & m,
        },
        AtomOp::And => old & b,
        AtomOp::Or => old | b,
        AtomOp::Xor => old ^ b,
        AtomOp::Exch => b,
        AtomOp::Cas => {
            if old == b {
                c & m
            } else {
                old
            }
        }
        AtomOp::Inc => {
            if old >= b {
                0
            } else {
                old.wrapping_add(1)
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old.wrapping_sub(1)
            }
        }
        AtomOp::Min => {
            if value(old, ty) <= value(b, ty) {
                old
            } else {
                b
            }
        }
        AtomOp::Max => {
            if value(old, ty) >= value(b, ty) {
                old
            } else {
                b
            }
        }
    }
}

/// The runs of bytes that an access of `total` bytes uses: offset and length.
fn used_runs(used: u32, total: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if used == u32::MAX {
            let all = (at < total).then_some((at, total));
            at = total;
            return all;
        }
        let rest = u64::from(used).checked_shr(at as u32).unwrap_or(0);
        if rest == 0 {
            return None;
        }
        let from = at.saturating_add(u64::from(rest.trailing_zeros()));
        let len = u64::from((u64::from(used) >> from).trailing_ones());
        at = from.saturating_add(len);
        Some((from, len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_follow_the_manual() {
        let go = |op, ty, old, b, c| atomic(op, ty, old, b, c, true);
        assert_eq!(go(AtomOp::Inc, Ty::U32, 7, 7, 0), 0);
        assert_eq!(go(AtomOp::Inc, Ty::U32, 6, 7, 0), 7);
        assert_eq!(go(AtomOp::Dec, Ty::U32, 0, 7, 0), 7);
        assert_eq!(go(AtomOp::Dec, Ty::U32, 9, 7, 0), 7);
        assert_eq!(go(AtomOp::Dec, Ty::U32, 5, 7, 0), 4);
        assert_eq!(go(AtomOp::Cas, Ty::B32, 5, 5, 9), 9);
        assert_eq!(go(AtomOp::Cas, Ty::B32, 4, 5, 9), 4);
        assert_eq!(go(AtomOp::Max, Ty::S32, 0xffff_ffff, 1, 0), 1);
        assert_eq!(go(AtomOp::Max, Ty::U32, 0xffff_ffff, 1, 0), 0xffff_ffff);
        assert_eq!(go(AtomOp::Add, Ty::F32, u64::from(1f32.to_bits()), 1, 0), u64::from(1f32.to_bits()));
        assert_eq!(go(AtomOp::Add, Ty::F32, 1, 1, 0), 0, "subnormals are flushed in global memory");
        assert_eq!(atomic(AtomOp::Add, Ty::F32, 1, 1, 0, false), 2);
        assert_eq!(go(AtomOp::Add, Ty::F16x2, 0x3c00_3c00, 0x3c00_4000, 0), 0x4000_4200);
        assert_eq!(go(AtomOp::Add, Ty::U64, u64::MAX, 2, 0), 1);
    }
}
