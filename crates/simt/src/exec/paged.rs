//! Accesses of regions with pages: sparse buffers, and all buffers while blocks are left out.
//!
//! Lanes at consecutive addresses are served together, so that a generator is asked once for a warp. While blocks are
//! left out, two things are watched without any detector: a load of what such a block should have written makes the
//! result unsupported, and two executed blocks that store to one element are a race.
//!
//! What it misses: stores of two blocks, where the kernel has fences, releases or acquires that may order them (the race
//! detector knows better).
#![warn(clippy::arithmetic_side_effects)]

use assay_ptx::Space;

use super::access::{Place, access_kind, join};
use super::{Exec, Stop};
use crate::code::{MemKind, MemOp};
use crate::findings::{AccessKind, Finding, FindingKind, FindingSpace, OtherAccess, ThreadId};
use crate::handlers::generic::{get, put};
use crate::memory::pages::Stamp;
use crate::memory::{FIRST_REGION, OFFSET_BITS, OFFSET_MASK};
use crate::semantics::sext;
use crate::warp::LANES;

/// Bytes of the widest access of a warp.
const WARP_BYTES: usize = 16 * LANES;

/// An instruction of a warp: block slot, warp, function, place in it.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) slot: usize,
    pub(super) wi: usize,
    pub(super) ci: u32,
    pub(super) at: u32,
}

/// Active lanes in order, at consecutive places of one region.
#[derive(Clone, Copy)]
struct Run {
    region: usize,
    offset: u64,
    first: usize,
    lanes: usize,
}

/// The runs of an access.
struct Runs {
    list: [Run; LANES],
    count: usize,
    /// Every active lane goes to global memory.
    whole: bool,
}

impl Runs {
    fn new(mask: u32, places: &[Place; LANES], total: u64) -> Runs {
        let mut list = [Run { region: 0, offset: 0, first: 0, lanes: 0 }; LANES];
        let mut count = 0usize;
        let mut whole = true;
        for (k, place) in places.iter().enumerate() {
            if mask >> k & 1 == 0 {
                continue;
            }
            let Place::Global(region, offset) = *place else {
                whole = false;
                continue;
            };
            if let Some(r) = count.checked_sub(1).and_then(|i| list.get_mut(i)) {
                let lanes = r.lanes as u64;
                let follows = r.first.saturating_add(r.lanes) == k
                    && r.region == region
                    && r.offset.saturating_add(lanes.saturating_mul(total)) == offset;
                if follows {
                    r.lanes = r.lanes.saturating_add(1);
                    continue;
                }
            }
            list[count] = Run { region, offset, first: k, lanes: 1 };
            count = count.saturating_add(1);
        }
        Runs { list, count, whole }
    }

    fn iter(&self) -> impl Iterator<Item = Run> {
        self.list.iter().copied().take(self.count)
    }
}

impl Exec<'_> {
    /// Places of the active lanes, where all of them lie within one region that has pages, at multiples of `total`.
    pub(super) fn resolve_paged(
        &self,
        op: &MemOp,
        mask: u32,
        addresses: &[u64; LANES],
        total: u64,
        places: &mut [Place; LANES],
    ) -> bool {
        if !matches!(op.space, None | Some(Space::Global)) {
            return false;
        }
        let first = addresses[mask.trailing_zeros() as usize & 31];
        let Some(index) = self.memory.region_index(first) else { return false };
        let region = &self.memory.regions[index];
        if region.pages.is_none() {
            return false;
        }
        let (mut other, mut low, mut most) = (0u64, 0u64, 0u64);
        for (k, (a, p)) in addresses.iter().zip(places).enumerate() {
            if mask >> k & 1 != 0 {
                other |= (a ^ first) & !OFFSET_MASK;
                low |= a;
                most = most.max(a & OFFSET_MASK);
                *p = Place::Global(index, a & OFFSET_MASK);
            }
        }
        other == 0 && low & total.saturating_sub(1) == 0 && most.saturating_add(total) <= region.len()
    }

    /// Looks at an access before it is done: whether a lane goes to a region with pages, or `None` if the launch ends
    /// here.
    pub(super) fn track(
        &mut self,
        site: Site,
        op: &MemOp,
        mask: u32,
        places: &[Place; LANES],
        total: u64,
    ) -> Option<bool> {
        if !self.any_paged(mask, places) {
            return Some(false);
        }
        let runs = Runs::new(mask, places, total);
        let cap = self.options.memory_cap_bytes;
        if op.kind != MemKind::Load && self.memory.host_bytes() > cap {
            let reason = format!("pages of sparse buffers pass the memory cap of {cap} bytes");
            self.stop = Some(Stop::Exhausted(reason));
        } else if self.may_read_unwritten(site, op, &runs, total) {
            self.claim_stores(site, op, &runs, total);
            return Some(true);
        }
        self.blocks[site.slot].active = false;
        None
    }

    /// True if an active lane goes to a region with pages.
    fn any_paged(&self, mask: u32, places: &[Place; LANES]) -> bool {
        places.iter().enumerate().any(|(k, p)| {
            let Place::Global(region, _) = *p else { return false };
            mask >> k & 1 != 0 && self.memory.regions[region].pages.is_some()
        })
    }

    /// False if the access loads what a block that is left out should have written.
    fn may_read_unwritten(&mut self, site: Site, op: &MemOp, runs: &Runs, total: u64) -> bool {
        if op.kind == MemKind::Store {
            return true;
        }
        let partial = self.plan.partial();
        for run in runs.iter() {
            let r = &self.memory.regions[run.region];
            if r.constant || !(partial || r.partial) {
                continue;
            }
            if !r.has_data(run.offset, total.saturating_mul(run.lanes as u64)) {
                let lane = |k: usize| run.offset.saturating_add(total.saturating_mul(k as u64));
                let missing = (0..run.lanes).map(lane).find(|o| !r.has_data(*o, total));
                let (name, byte, element) = self.place_of(run.region, missing.unwrap_or(run.offset));
                let line = self.line(site);
                self.stop = Some(Stop::Unsupported(format!(
                    "not sampleable: `{}`{line} reads {total} bytes at offset {byte} (element {element}) of \
                     `{name}`, which no block that ran has written",
                    self.kernel.name
                )));
                return false;
            }
            if partial && matches!(op.kind, MemKind::Atomic(_)) && self.not_sampleable.is_none() {
                let (name, ..) = self.place_of(run.region, run.offset);
                let line = self.line(site);
                self.not_sampleable = Some(format!(
                    "not sampleable: `{}`{line} updates `{name}` atomically, and blocks that did not run may \
                     contribute",
                    self.kernel.name
                ));
            }
        }
        true
    }

    fn line(&self, site: Site) -> String {
        let place = self.place(site.ci, site.at);
        place.map_or_else(String::new, |p| format!(" (line {})", p.line))
    }

    /// Buffer, byte and element of a place.
    fn place_of(&self, region: usize, offset: u64) -> (String, i64, i64) {
        let address = (region as u64).saturating_add(FIRST_REGION) << OFFSET_BITS | offset;
        let (buffer, byte) = self.global_place(address);
        match buffer.and_then(|b| self.memory.buffers.get(b)) {
            Some(b) => (b.name.clone(), byte, byte >> b.dtype.size_bytes().trailing_zeros()),
            None => ("?".into(), byte, byte),
        }
    }

    /// Notes which block stores where, and reports a second one.
    fn claim_stores(&mut self, site: Site, op: &MemOp, runs: &Runs, total: u64) {
        if !self.claims || op.kind == MemKind::Load {
            return;
        }
        let strong = op.strong || matches!(op.kind, MemKind::Atomic(_));
        let number = self.site(site.ci, site.at);
        let first = self.first_block;
        let mine = first.saturating_add(self.blocks[site.slot].ordinal as u32);
        for run in runs.iter() {
            let Some(pages) = &mut self.memory.regions[run.region].pages else { continue };
            let thread = site.wi.saturating_mul(LANES).saturating_add(run.first) as u32;
            let stamp = Stamp::new(mine, thread, strong, number);
            let len = total.saturating_mul(run.lanes as u64);
            if let Some((other, at)) = pages.claim(run.offset, len, total, stamp, first) {
                let lane = at.saturating_sub(run.offset).checked_div(total).unwrap_or(0);
                let lane = run.first.saturating_add(lane as usize);
                self.two_blocks(site, op, lane, run.region, at, total, other);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the place of an instruction and what was found")]
    fn two_blocks(
        &mut self,
        site: Site,
        op: &MemOp,
        lane: usize,
        region: usize,
        offset: u64,
        total: u64,
        other: Stamp,
    ) {
        let number = self.site(site.ci, site.at);
        let kind = FindingKind::RaceGlobal;
        if self.seen(kind, number, region as u64) {
            return;
        }
        let (name, byte, element) = self.place_of(region, offset);
        let theirs = self.plan.linear(u64::from(other.block().saturating_sub(self.first_block)));
        let them = ThreadId { block: self.block_index(theirs), thread: self.shape.thread(other.thread()) };
        let me = self.thread(site.slot, site.wi, lane);
        let access = access_kind(op);
        // Where each thread has an element of its own, a 32-bit index makes those meet that are 2^32 apart.
        let flat = |block: u64, thread: u64| {
            u128::from(block).wrapping_mul(u128::from(self.shape.threads)).wrapping_add(u128::from(thread))
        };
        let mine = self.blocks[site.slot].linear;
        let my_thread = (site.wi.saturating_mul(LANES)).saturating_add(lane) as u64;
        let apart = flat(mine, my_thread).abs_diff(flat(theirs, other.thread()));
        let wrapped = apart != 0 && apart.trailing_zeros() >= 32;
        let note = if wrapped {
            format!("; the two are {apart} threads of the grid apart: did a 32-bit index wrap at 2^32?")
        } else {
            String::new()
        };
        let mut f = Finding::new(
            kind,
            format!(
                "two blocks write element {element} of `{name}` (offset {byte}): {} by thread ({}) of block ({}) \
                 and store by thread ({}) of block ({}){note}",
                access.noun(),
                join(me.thread),
                join(me.block),
                join(them.thread),
                join(them.block),
            ),
        );
        f.space = Some(FindingSpace::Global);
        f.buffer = Some(name);
        f.offset_bytes = Some(byte);
        f.size_bytes = Some(total);
        f.access = Some(access);
        f.other = Some(OtherAccess {
            access: Some(AccessKind::Write),
            thread: Some(them),
            ..OtherAccess::at(other.site().and_then(|s| self.kernel.place_of_site(s)))
        });
        self.locate(&mut f, site.slot, site.wi, lane, site.ci, site.at);
        self.report(f, number, region as u64);
    }

    /// Loads or stores by runs of lanes; false where the access is none of these.
    pub(super) fn paged_access(
        &mut self,
        site: Site,
        op: &MemOp,
        mask: u32,
        places: &[Place; LANES],
        total: u64,
    ) -> bool {
        let runs = Runs::new(mask, places, total);
        if !runs.whole {
            return false;
        }
        let size = usize::from(op.size);
        let width = total as usize;
        let mut bytes = [0u8; WARP_BYTES];
        // Lane `k` has `width` bytes from `k * width` on.
        let range = |r: &Run| {
            let from = r.first.saturating_mul(width);
            from..from.saturating_add(r.lanes.saturating_mul(width))
        };
        let of = |k: usize, j: usize| {
            let from = k.saturating_mul(width).saturating_add(j.saturating_mul(size));
            from..from.saturating_add(size)
        };
        match op.kind {
            MemKind::Load => {
                for r in runs.iter() {
                    self.memory.regions[r.region].read(r.offset, &mut bytes[range(&r)]);
                }
                for (j, dest) in op.data.iter().enumerate() {
                    let Some(dest) = dest else { continue };
                    let narrow = self.narrow(site.ci, site.at, j);
                    for k in 0..LANES {
                        if mask >> k & 1 == 0 {
                            continue;
                        }
                        let mut word = [0; 8];
                        word[..size].copy_from_slice(&bytes[of(k, j)]);
                        let v = u64::from_le_bytes(word);
                        let v = if op.ty.is_signed() { sext(v, op.ty.bits()) as u64 } else { v };
                        let v = if narrow { v & 0xffff } else { v };
                        // SAFETY: the destination belongs to the current frame.
                        unsafe { put(&self.blocks[site.slot].warps[site.wi].w, *dest, k, v) };
                    }
                }
            }
            MemKind::Store if op.data.iter().all(Option::is_some) => {
                for (j, source) in op.data.iter().enumerate() {
                    let Some(source) = source else { continue };
                    for k in 0..LANES {
                        if mask >> k & 1 == 0 {
                            continue;
                        }
                        // SAFETY: the source belongs to the current frame.
                        let v = unsafe { get(&self.blocks[site.slot].warps[site.wi].w, *source, k) };
                        bytes[of(k, j)].copy_from_slice(&v.to_le_bytes()[..size]);
                    }
                }
                for r in runs.iter() {
                    self.memory.regions[r.region].write(r.offset, &bytes[range(&r)]);
                }
            }
            // Barrier objects lie in shared memory.
            MemKind::Store | MemKind::Atomic(_) | MemKind::Mbarrier(_) => return false,
        }
        true
    }
}

/// What explains an offset outside a buffer: an index of 32 bits that wrapped, if undoing that leads inside. `width` is the
/// size of the access, `element` that of the buffer's elements, both powers of two.
pub(super) fn wrap_note(offset: i64, width: u64, element: u64, size_bytes: u64) -> Option<String> {
    const WRAP: i64 = 1 << 32;
    let inside = |index: i64, unit: i64| {
        let from = index.checked_mul(unit).and_then(|b| u64::try_from(b).ok());
        from.and_then(|b| b.checked_add(width)).is_some_and(|end| end <= size_bytes)
    };
    let units = [(element, "element"), (width, "vector"), (1, "byte")];
    let mut known = Vec::new();
    for (unit, what) in units {
        let Ok(unit) = i64::try_from(unit) else { continue };
        if unit == 0 || offset.checked_rem(unit) != Some(0) || known.contains(&unit) {
            continue;
        }
        known.push(unit);
        let index = offset.checked_div(unit)?;
        if (-(1 << 31)..0).contains(&index) && inside(index.saturating_add(WRAP), unit) {
            let right = index.saturating_add(WRAP);
            return Some(format!(
                "; {what} {index} is exactly 2^32 below {what} {right}, which is inside: did a 32-bit index wrap \
                 at 2^31?"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_wrapped_is_recognised_in_elements_vectors_and_bytes() {
        let note = |offset, width, element, size| wrap_note(offset, width, element, size).unwrap_or_default();
        let big = 1u64 << 36;
        assert_eq!(
            note(-(1i64 << 33), 4, 4, big),
            "; element -2147483648 is exactly 2^32 below element 2147483648, which is inside: did a 32-bit index \
             wrap at 2^31?"
        );
        assert!(note(-4, 4, 4, big).contains("element -1 is exactly 2^32 below element 4294967295"));
        // A vector of four: its index wrapped, which in elements is too far.
        assert!(note(-(1i64 << 35), 16, 4, 1 << 37).contains("vector -2147483648"));
        assert!(note(-6, 2, 4, big).contains("vector -3"), "not a whole element");
        assert!(
            note(-(1i64 << 31), 4, 4, 3 << 30).contains("byte -2147483648"),
            "bytes where elements do not fit"
        );
        assert_eq!(note(-4, 4, 4, 1 << 30), "", "the buffer has no such element");
        assert_eq!(note(-(1i64 << 40), 4, 4, big), "");
        assert_eq!(note(big as i64, 4, 4, big), "", "past the end");
    }

    #[test]
    fn consecutive_lanes_are_one_run() {
        let mut places = [Place::Param(0); LANES];
        for (k, p) in places.iter_mut().enumerate() {
            *p = Place::Global(2, 100 + 4 * k as u64 + if k >= 20 { 400 } else { 0 });
        }
        let cut = |mask, total| {
            let runs = Runs::new(mask, &places, total);
            assert!(runs.whole);
            runs.iter().map(|r| (r.first, r.lanes, r.offset)).collect::<Vec<_>>()
        };
        assert_eq!(cut(u32::MAX, 4), [(0, 20, 100), (20, 12, 580)]);
        assert_eq!(cut(0b1101, 4), [(0, 1, 100), (2, 2, 108)]);
        assert_eq!(cut(0b11, 8), [(0, 1, 100), (1, 1, 104)], "overlapping lanes are apart");
        places[3] = Place::Shared(0);
        assert!(!Runs::new(u32::MAX, &places, 4).whole && Runs::new(0b111, &places, 4).whole);
    }
}
