//! Detectors that need memory of their own: uninitialised reads and data races.
//!
//! **Initialisation** is kept per byte: a bit per byte of global and shared memory, a bit per byte and lane of local
//! memory.
//!
//! **Races** follow CUDA's rules, not what happened to be observed. A hazard is two accesses to one byte by
//! different threads, at least one of them a write, not both atomic (or volatile, or with a memory order), that no
//! chain of synchronisation orders: block barriers, `bar.warp.sync` for its lanes, release and acquire, and a fence
//! with an atomic or volatile access of one location. Equal values do not excuse; shuffles and votes order nothing.
//! Every thread has a clock (its block's epoch, advanced by whole-block barriers, and a count of its own releases);
//! what a thread *knows* is a map from threads to clocks and from blocks to epochs. Each word remembers its last
//! write and two readers.
//!
//! An asynchronous copy (`cp.async`) counts as a write at its issue and again where its thread waits for it; any access
//! to its destination in between is a race, those of the same thread too.
//!
//! What it misses: a race with a reader that two later, mutually unordered readers have displaced; races that need
//! another control path; a fence between atomic and access is taken for granted where a block barrier stands there.

mod clock;
mod init;
mod race;
pub(crate) mod shadow;

pub(crate) use init::InitMap;
pub(crate) use race::RegionShape;

use assay_ptx::{Scope, Semantics};

use crate::findings::AccessKind;
use crate::options::Sanitize;
use crate::warp::LANES;

/// A hasher for small keys that come from the device itself: multiply and rotate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuickHasher(u64);

impl std::hash::Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v));
    }

    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }

    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(23) ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    fn write_isize(&mut self, v: isize) {
        self.write_u64(v as u64);
    }
}

/// Where an access lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Global { region: usize, offset: u64 },
    Shared { offset: u64 },
    Local { offset: u64 },
}

/// What an access has to do with an asynchronous copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPhase {
    /// Nothing.
    None,
    /// The copy may write from now on.
    Issued,
    /// The thread waited for the copy: it has written.
    Landed,
}

/// One lane's access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) slot: usize,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) place: Where,
    pub(crate) size: u64,
    pub(crate) kind: AccessKind,
    pub(crate) strong: bool,
    pub(crate) semantics: Option<Semantics>,
    pub(crate) scope: Option<Scope>,
    pub(crate) site: u32,
    pub(crate) copy: CopyPhase,
}

/// The earlier access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) kind: AccessKind,
    /// Linear index of the block, and of the thread in it.
    pub(crate) block: u64,
    pub(crate) thread: u64,
    pub(crate) site: u32,
    pub(crate) size: u64,
    /// An asynchronous copy that has not been waited for.
    pub(crate) pending: bool,
}

/// What an access gave rise to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Uninitialised,
    Race(Other),
}

/// All detectors of a session.
pub(crate) struct Sanitizer {
    what: Sanitize,
    init: InitMap,
    races: race::Races,
    /// Shared bytes written, per slot; local bytes written by lane, per slot and warp.
    shared: Vec<Vec<u64>>,
    local: Vec<Vec<Vec<u32>>>,
}

impl Sanitizer {
    pub(crate) fn new(what: Sanitize) -> Sanitizer {
        Sanitizer {
            what,
            init: InitMap::default(),
            races: race::Races::default(),
            shared: Vec::new(),
            local: Vec::new(),
        }
    }

    /// The map of initialised global bytes.
    pub(crate) fn init_mut(&mut self) -> &mut InitMap {
        &mut self.init
    }

    pub(crate) fn init(&self) -> &InitMap {
        &self.init
    }

    /// Forgets accesses: a new launch begins, which is ordered after the one before.
    pub(crate) fn start_launch(&mut self, threads_per_block: u64, regions: &[RegionShape]) {
        self.races = race::Races::new(threads_per_block, regions, &mut self.init);
        self.shared.clear();
        self.local.clear();
    }

    pub(crate) fn start_block(&mut self, slot: usize, linear: u64, shared_bytes: usize, threads: u64) {
        let warps = threads.div_ceil(LANES as u64) as usize;
        if self.shared.len() <= slot {
            self.shared.resize(slot + 1, Vec::new());
            self.local.resize(slot + 1, Vec::new());
        }
        self.shared[slot].clear();
        self.shared[slot].resize(shared_bytes.div_ceil(64), 0);
        self.local[slot].clear();
        self.local[slot].resize(warps, Vec::new());
        self.races.start_block(slot, linear, shared_bytes, threads);
    }

    /// What a block's warps need.
    pub(crate) fn view(&mut self, slot: usize) -> *const shadow::View {
        self.races.view(slot)
    }

    /// Bytes of shadow memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.races.bytes() + self.init.sparse_bytes()
    }

    pub(crate) fn fence(&mut self, slot: usize, warp: usize, mask: u32, scope: Scope) {
        if self.what.races {
            self.races.fence(slot, warp, mask, scope);
        }
    }

    pub(crate) fn arrive(&mut self, slot: usize, warp: usize, mask: u32, id: usize) {
        if self.what.races {
            self.races.arrive(slot, warp, mask, id);
        }
    }

    pub(crate) fn barrier(&mut self, slot: usize, id: usize, waiting: &[u32], whole: bool) {
        if self.what.races {
            self.races.barrier(slot, id, waiting, whole);
        }
    }

    pub(crate) fn warp_sync(&mut self, slot: usize, warp: usize, lanes: u32) {
        if self.what.races {
            self.races.warp_sync(slot, warp, lanes);
        }
    }

    /// A call's local frame is fresh.
    pub(crate) fn call(&mut self, slot: usize, warp: usize, base: u64, bytes: u64, lanes: u32) {
        let map = &mut self.local[slot][warp];
        let (from, to) = (base as usize, (base + bytes) as usize);
        if map.len() < to {
            map.resize(to, 0);
        }
        for m in &mut map[from..to] {
            *m &= !lanes;
        }
    }

    /// Local bytes written by the device itself (arguments, results).
    pub(crate) fn local_written(&mut self, slot: usize, warp: usize, offset: u64, size: u64, lanes: u32) {
        let map = &mut self.local[slot][warp];
        let to = (offset + size) as usize;
        if map.len() < to {
            map.resize(to, 0);
        }
        for m in &mut map[offset as usize..to] {
            *m |= lanes;
        }
    }

    /// Looks at one lane's access.
    pub(crate) fn access(&mut self, a: &Access, report: &mut dyn FnMut(Report)) {
        let reads = a.kind != AccessKind::Write;
        let writes = a.kind != AccessKind::Read;
        let initialised = match a.place {
            // The bytes come when it lands.
            _ if a.copy == CopyPhase::Issued => true,
            Where::Global { region, offset } => {
                let ok = !reads || self.init.is_set(region, offset, a.size);
                if writes || !ok {
                    self.init.set(region, offset, a.size);
                }
                ok
            }
            Where::Shared { offset } => {
                let map = &mut self.shared[a.slot];
                let words = offset / 4..(offset + a.size).div_ceil(4);
                // The quick path notes whole words only.
                for w in words.clone() {
                    if self.races.full(a.slot, w, false) {
                        bits(map, w * 4, 4, false, true);
                    }
                }
                let ok = bits(map, offset, a.size, reads, writes);
                for w in words {
                    if bits(map, w * 4, 4, true, false) {
                        self.races.full(a.slot, w, true);
                    }
                }
                ok
            }
            Where::Local { offset } => {
                let map = &mut self.local[a.slot][a.warp];
                let to = (offset + a.size) as usize;
                if map.len() < to {
                    map.resize(to, 0);
                }
                let bytes = &mut map[offset as usize..to];
                let ok = !reads || bytes.iter().all(|m| m >> a.lane & 1 != 0);
                for m in bytes {
                    *m |= 1 << a.lane;
                }
                ok
            }
        };
        if !initialised && self.what.initialised {
            report(Report::Uninitialised);
        }
        if !matches!(a.place, Where::Local { .. })
            && let Some(o) = self.races.access(a)
            && self.what.races
        {
            report(Report::Race(o));
        }
    }
}

/// Tests or sets bits of a byte map.
fn bits(map: &mut [u64], offset: u64, size: u64, reads: bool, writes: bool) -> bool {
    let mut ok = true;
    for b in offset..offset + size {
        let Some(word) = map.get_mut((b >> 6) as usize) else { return true };
        let bit = 1 << (b & 63);
        ok &= !reads || *word & bit != 0;
        if writes {
            *word |= bit;
        }
    }
    ok
}
