//! The race detector: clocks of threads and blocks, and the exact path of every access.
//!
//! Histories of words live in the compact shadow ([`super::shadow`]); those that do not fit in a table of wide cells.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use assay_ptx::{Scope, Semantics};

use super::clock::{Clock, Know, Shared};
use super::shadow::{EPOCH_SHIFT, FULL, MANY, MAX_EPOCH, RegionView, THREAD, View, WIDE};
use super::{Access, CopyPhase, Other, QuickHasher, Where};
use crate::findings::AccessKind;

/// A remembered access.
#[derive(Clone, Copy, Default)]
struct Record {
    /// Thread through the grid plus one; 0 is none.
    thread: u64,
    clock: Clock,
    site: u32,
    flags: u8,
    size: u8,
}

const STRONG: u8 = 1;
/// Strong, but only within the block.
const BLOCK_SCOPE: u8 = 2;
const ATOMIC: u8 = 4;

/// The accesses to one word (or byte) that matter.
#[derive(Clone, Copy, Default)]
struct Cell {
    write: Record,
    /// The last reader, and an earlier one that is not ordered before it.
    reads: [Record; 2],
}

/// A word whose history is not compact.
#[derive(Clone, Copy, Default)]
struct Wide {
    /// One per byte, or the first for the whole word.
    cells: [Cell; 4],
    split: bool,
    /// An asynchronous copy that has not landed.
    pending: Record,
}

/// Shadow of a block's shared memory.
#[derive(Default)]
struct SharedShadow {
    write: Vec<u32>,
    read: Vec<u32>,
    write_site: Vec<u32>,
    read_site: Vec<u32>,
    last: Vec<u32>,
}

/// Shadow of a region of global memory, or of a page of a sparse one.
#[derive(Default)]
struct GlobalShadow {
    write: Vec<u64>,
    read: Vec<u64>,
    last: Vec<u64>,
    write_site: Vec<u32>,
    read_site: Vec<u32>,
}

impl GlobalShadow {
    /// Nothing happened yet to `words` words; a region that nothing may write keeps no reads.
    fn new(words: usize, read_only: bool) -> GlobalShadow {
        let reads = if read_only { 0 } else { words };
        GlobalShadow {
            write: vec![0; words],
            read: vec![0; reads],
            last: vec![0; reads],
            write_site: vec![0; words],
            read_site: vec![0; reads],
        }
    }

    fn bytes(words: usize, read_only: bool) -> u64 {
        words as u64 * if read_only { 12 } else { 32 }
    }
}

/// Words of a page of shadow.
const PAGE_WORDS: usize = 256;

/// What the detector needs to know of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionShape {
    pub(crate) size_bytes: u64,
    pub(crate) read_only: bool,
    /// Shadow exists only where something was accessed.
    pub(crate) sparse: bool,
}

/// What is known through a location of memory.
#[derive(Clone, Debug, Default)]
struct Sync {
    know: Shared,
    /// Released within one block only.
    block: Option<u64>,
}

/// A thread that did more than pass block barriers.
#[derive(Clone, Debug, Default)]
struct Thread {
    sub: u32,
    know: Shared,
    /// Knowledge at the last fence, and whether that fence was for the block only.
    fence: Option<(Shared, bool)>,
    /// What it read through strong accesses since its last fence, and whether from another block.
    pending: Shared,
    pending_foreign: bool,
}

#[derive(Default)]
struct Slot {
    linear: u64,
    epoch: u32,
    shadow: SharedShadow,
    threads: Vec<Thread>,
    /// Some thread has more than its start, and knows or awaits something.
    touched: bool,
    knowing: bool,
    /// Known to all threads since the last whole barrier.
    know: Shared,
    /// Contributions of threads that arrived at a barrier without waiting.
    arrivals: HashMap<usize, Shared>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Global(usize, u64),
    Shared(usize, u64),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Races {
    threads_per_block: u64,
    slots: Vec<Slot>,
    #[expect(clippy::vec_box, reason = "warps hold pointers to the views while more are added")]
    views: Vec<Box<View>>,
    regions: Vec<RegionShape>,
    global: Vec<GlobalShadow>,
    /// Shadow of sparse regions, by region and page.
    pages: HashMap<(usize, u64), GlobalShadow, BuildHasherDefault<QuickHasher>>,
    region_views: Vec<RegionView>,
    wide: HashMap<Key, Wide, BuildHasherDefault<QuickHasher>>,
    syncs: HashMap<Key, Sync, BuildHasherDefault<QuickHasher>>,
    bytes: u64,
}

impl Races {
    /// For a launch over these regions with these maps of initialised bytes.
    pub(crate) fn new(threads_per_block: u64, regions: &[RegionShape], init: &mut super::InitMap) -> Races {
        let mut r = Races {
            threads_per_block: threads_per_block.max(1),
            regions: regions.to_vec(),
            ..Races::default()
        };
        for (i, shape) in regions.iter().enumerate() {
            let bytes = if shape.sparse { 0 } else { shape.size_bytes };
            let words = bytes.div_ceil(4) as usize;
            let mut g = GlobalShadow::new(words, shape.read_only);
            r.region_views.push(RegionView {
                write: g.write.as_mut_ptr(),
                read: g.read.as_mut_ptr(),
                last: g.last.as_mut_ptr(),
                write_site: g.write_site.as_mut_ptr(),
                read_site: g.read_site.as_mut_ptr(),
                init: init.words_mut(i),
                words: bytes / 4,
                read_only: shape.read_only,
            });
            r.bytes += GlobalShadow::bytes(words, shape.read_only);
            r.global.push(g);
        }
        r
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes + self.wide.len() as u64 * (size_of::<Wide>() + 32) as u64
    }

    /// The shadow of a word of global memory, and the word's place in it; `None` where nothing is known of it.
    fn global_word(&self, region: usize, word: u64) -> Option<(&GlobalShadow, usize)> {
        if !self.regions.get(region)?.sparse {
            return Some((self.global.get(region)?, word as usize));
        }
        let page = word / PAGE_WORDS as u64;
        Some((self.pages.get(&(region, page))?, (word % PAGE_WORDS as u64) as usize))
    }

    /// The same, made if need be.
    fn global_word_mut(&mut self, region: usize, word: u64) -> (&mut GlobalShadow, usize) {
        let shape = self.regions[region];
        if !shape.sparse {
            return (&mut self.global[region], word as usize);
        }
        let page = word / PAGE_WORDS as u64;
        let bytes = &mut self.bytes;
        let g = self.pages.entry((region, page)).or_insert_with(|| {
            *bytes += GlobalShadow::bytes(PAGE_WORDS, shape.read_only) + 160;
            GlobalShadow::new(PAGE_WORDS, shape.read_only)
        });
        (g, (word % PAGE_WORDS as u64) as usize)
    }

    /// What the warps of a block need; stays where it is until the next launch.
    pub(crate) fn view(&mut self, slot: usize) -> *const View {
        let v: *mut View = &mut *self.views[slot];
        v
    }

    pub(crate) fn start_block(&mut self, slot: usize, linear: u64, shared_bytes: usize, threads: u64) {
        while self.slots.len() <= slot {
            self.slots.push(Slot::default());
            self.views.push(Box::new(View::none()));
        }
        let words = shared_bytes.div_ceil(4);
        let s = &mut self.slots[slot];
        s.linear = linear;
        s.epoch = 1;
        if s.touched || s.threads.len() as u64 != threads {
            s.threads.clear();
            s.threads.resize(threads as usize, Thread::default());
        }
        (s.touched, s.knowing) = (false, false);
        s.know = Shared::default();
        s.arrivals.clear();
        let h = &mut s.shadow;
        for list in [&mut h.write, &mut h.read, &mut h.write_site, &mut h.read_site, &mut h.last] {
            list.clear();
            list.resize(words, 0);
        }
        let v = &mut self.views[slot];
        v.forget();
        v.soil();
        v.write = h.write.as_mut_ptr();
        v.read = h.read.as_mut_ptr();
        v.write_site = h.write_site.as_mut_ptr();
        v.read_site = h.read_site.as_mut_ptr();
        v.last = h.last.as_mut_ptr();
        v.words = shared_bytes as u64 / 4;
        v.epoch = 1;
        // Compact records have 32 bits for the block.
        v.exact = linear >= u64::from(u32::MAX);
        v.block = (linear + 1) & u64::from(u32::MAX);
        v.regions = self.region_views.as_ptr();
        v.region_count = self.region_views.len() as u64;
        if !self.wide.is_empty() {
            self.wide.retain(|k, _| !matches!(k, Key::Shared(s, _) if *s == slot));
        }
        if !self.syncs.is_empty() {
            self.syncs.retain(|k, _| !matches!(k, Key::Shared(s, _) if *s == slot));
        }
    }

    /// Compact clocks do not tell what comes next in this epoch from what came before.
    fn go_exact(&mut self, slot: usize) {
        self.views[slot].catch_up();
        self.views[slot].exact = true;
        (self.slots[slot].touched, self.slots[slot].knowing) = (true, true);
    }

    fn lanes(warp: usize, mask: u32, threads: usize) -> impl Iterator<Item = usize> {
        (0..32usize)
            .filter(move |k| mask >> k & 1 != 0)
            .map(move |k| warp * 32 + k)
            .filter(move |t| *t < threads)
    }

    /// Everything that thread `t` of a slot knows, itself included.
    fn knowledge(&self, slot: usize, t: usize) -> Shared {
        let s = &self.slots[slot];
        let mut k = Know::default();
        k.threads.insert(
            s.linear * self.threads_per_block + t as u64,
            Clock { epoch: s.epoch, sub: s.threads[t].sub },
        );
        k.blocks.insert(s.linear, s.epoch);
        let mut all = Shared::new(k);
        all.join(&s.know);
        all.join(&s.threads[t].know);
        all
    }

    /// A fence: what was read before it is acquired, what was done before it can be released after it.
    pub(crate) fn fence(&mut self, slot: usize, warp: usize, mask: u32, scope: Scope) {
        let block_only = scope == Scope::Cta;
        self.go_exact(slot);
        let n = self.slots[slot].threads.len();
        for t in Self::lanes(warp, mask, n) {
            let th = &mut self.slots[slot].threads[t];
            if !(block_only && th.pending_foreign) {
                let pending = std::mem::take(&mut th.pending);
                th.know.join(&pending);
                th.pending_foreign = false;
            }
            let all = self.knowledge(slot, t);
            let th = &mut self.slots[slot].threads[t];
            th.fence = Some((all, block_only));
            th.sub += 1;
        }
    }

    /// `bar.arrive`: the threads' past is released to those who wait.
    pub(crate) fn arrive(&mut self, slot: usize, warp: usize, mask: u32, id: usize) {
        self.go_exact(slot);
        let n = self.slots[slot].threads.len();
        for t in Self::lanes(warp, mask, n) {
            let all = self.knowledge(slot, t);
            let s = &mut self.slots[slot];
            s.arrivals.entry(id).or_default().join(&all);
            s.threads[t].sub += 1;
        }
    }

    /// A barrier opens for the threads that wait.
    pub(crate) fn barrier(&mut self, slot: usize, id: usize, waiting: &[u32], whole: bool) {
        let n = self.slots[slot].threads.len();
        let lanes = || waiting.iter().enumerate().flat_map(|(w, m)| Self::lanes(w, *m, n));
        if whole {
            let s = &mut self.slots[slot];
            if s.knowing {
                let mut know = std::mem::take(&mut s.know);
                for t in lanes() {
                    let th = &mut s.threads[t];
                    know.join(&th.know);
                    know.join(&th.pending);
                    th.know = Shared::default();
                    th.pending = Shared::default();
                }
                s.know = know;
                s.knowing = s.threads.iter().any(|t| !t.know.is_empty() || !t.pending.is_empty());
            }
            s.epoch += 1;
            // Everything in the block is ordered now, so compact clocks are enough again; beyond the largest epoch
            // they never are.
            let v = &mut self.views[slot];
            v.forget();
            v.epoch = s.epoch.min(MAX_EPOCH);
            v.exact = s.epoch >= MAX_EPOCH || s.linear >= u64::from(u32::MAX);
            return;
        }
        self.go_exact(slot);
        let lanes: Vec<usize> = lanes().collect();
        let mut joint = self.slots[slot].arrivals.remove(&id).unwrap_or_default();
        for &t in &lanes {
            joint.join(&self.knowledge(slot, t));
        }
        self.share(slot, &lanes, &joint);
    }

    /// `bar.warp.sync`.
    pub(crate) fn warp_sync(&mut self, slot: usize, warp: usize, mask: u32) {
        self.go_exact(slot);
        let n = self.slots[slot].threads.len();
        let lanes: Vec<usize> = Self::lanes(warp, mask, n).collect();
        let mut joint = Shared::default();
        for &t in &lanes {
            joint.join(&self.knowledge(slot, t));
        }
        self.share(slot, &lanes, &joint);
    }

    fn share(&mut self, slot: usize, lanes: &[usize], joint: &Shared) {
        for &t in lanes {
            let th = &mut self.slots[slot].threads[t];
            let pending = std::mem::take(&mut th.pending);
            th.know = joint.clone();
            th.know.join(&pending);
            th.sub += 1;
        }
    }

    /// True if the recorded access is ordered before thread `t` of `slot` now.
    fn ordered(&self, r: &Record, slot: usize, t: usize) -> bool {
        let s = &self.slots[slot];
        let thread = r.thread - 1;
        let block = thread / self.threads_per_block;
        if block == s.linear && (r.clock.epoch < s.epoch || thread % self.threads_per_block == t as u64) {
            return true;
        }
        s.threads[t].know.covers(block, thread, r.clock) || s.know.covers(block, thread, r.clock)
    }

    /// Records an access and gives the earlier one that it races with, if any.
    pub(crate) fn access(&mut self, a: &Access) -> Option<Other> {
        let t = a.warp * 32 + a.lane;
        let s = &self.slots[a.slot];
        if t >= s.threads.len() {
            return None;
        }
        // Nothing may write there, so a read races with nothing (as in `View::global_read`).
        if let Where::Global { region, .. } = a.place
            && a.kind == AccessKind::Read
            && !a.strong
            && self.region_views.get(region).is_some_and(|v| v.read_only)
        {
            return None;
        }
        let mut flags = 0;
        if a.strong {
            flags |= STRONG;
            if a.scope == Some(Scope::Cta) {
                flags |= BLOCK_SCOPE;
            }
        }
        if a.kind == AccessKind::Atomic {
            flags |= ATOMIC;
        }
        let record = Record {
            thread: s.linear * self.threads_per_block + t as u64 + 1,
            clock: Clock { epoch: s.epoch, sub: s.threads[t].sub },
            site: a.site,
            flags,
            size: a.size as u8,
        };
        let base = match a.place {
            Where::Global { offset, .. } | Where::Shared { offset } => offset,
            Where::Local { .. } => return None,
        };
        let key = |word: u64| match a.place {
            Where::Global { region, .. } => Key::Global(region, word),
            _ => Key::Shared(a.slot, word),
        };
        if let Where::Shared { .. } = a.place {
            self.views[a.slot].catch_up();
            self.views[a.slot].soil();
        }
        let mut found = None;
        let end = base + a.size;
        let mut at = base;
        while at < end {
            let word = at / 4;
            let to = ((word + 1) * 4).min(end);
            let k = key(word);
            if let Some(mut wide) = self.expand(k) {
                let bytes = (at % 4) as usize..(at % 4 + to - at) as usize;
                if !wide.split && bytes.len() < 4 {
                    wide.split = true;
                    wide.cells = [wide.cells[0]; 4];
                }
                let cells = if wide.split { &mut wide.cells[bytes] } else { &mut wide.cells[..1] };
                for c in cells {
                    found = found.or(self.step(c, &record, a, t));
                }
                let p = wide.pending;
                let mine = p.thread == record.thread;
                if p.thread != 0 && !(mine && a.copy == CopyPhase::Landed) {
                    found = Some(self.other(&p, AccessKind::Write, true));
                }
                match a.copy {
                    CopyPhase::Issued => wide.pending = record,
                    CopyPhase::Landed if mine => wide.pending = Record::default(),
                    CopyPhase::Landed | CopyPhase::None => {}
                }
                self.compress(k, wide, a.slot);
            }
            at = to;
        }
        if a.strong {
            self.synchronise(a, key(base / 4), t);
        }
        found
    }

    /// The history of a word; `None` outside (which the caller has excluded) and in memory that is not tracked.
    fn expand(&self, key: Key) -> Option<Wide> {
        let record = |thread: u64, epoch: u32, site: u32| Record {
            thread: thread + 1,
            clock: Clock { epoch, sub: 0 },
            site,
            flags: 0,
            size: 4,
        };
        let mut cell = Cell::default();
        match key {
            Key::Shared(slot, word) => {
                let (s, i) = (&self.slots[slot], word as usize);
                let w = *s.shadow.write.get(i)?;
                if w & WIDE != 0 {
                    return self.wide.get(&key).copied();
                }
                let base = s.linear * self.threads_per_block;
                let thread = |v: u32| base + u64::from(v & THREAD);
                if w >> EPOCH_SHIFT != 0 {
                    cell.write = record(thread(w), w >> EPOCH_SHIFT, s.shadow.write_site[i]);
                }
                let r = s.shadow.read[i];
                let epoch = r >> EPOCH_SHIFT;
                if epoch != 0 {
                    cell.reads[0] = record(thread(r), epoch, s.shadow.read_site[i]);
                    if r & MANY != 0 {
                        cell.reads[1] = cell.reads[0];
                        cell.reads[0] = record(thread(s.shadow.last[i]), epoch, s.shadow.read_site[i]);
                    }
                }
            }
            Key::Global(region, word) => {
                let shape = self.regions.get(region)?;
                let Some((g, i)) = self.global_word(region, word) else {
                    // A page of a sparse region that nothing touched; the caller has excluded what lies outside.
                    return shape.sparse.then(Wide::default);
                };
                let w = *g.write.get(i)?;
                if w & u64::from(WIDE) != 0 {
                    return self.wide.get(&key).copied();
                }
                let unpack = |v: u64, site: u32| {
                    let thread = ((v >> 32) - 1) * self.threads_per_block + (v & u64::from(THREAD));
                    record(thread, (v as u32) >> EPOCH_SHIFT, site)
                };
                if w != 0 {
                    cell.write = unpack(w, g.write_site[i]);
                }
                if let Some(&r) = g.read.get(i)
                    && r != 0
                {
                    cell.reads[0] = unpack(g.last[i], g.read_site[i]);
                    if r & u64::from(MANY) != 0 {
                        cell.reads[1] = unpack(r, g.read_site[i]);
                    }
                }
            }
        }
        Some(Wide { cells: [cell; 4], split: false, pending: Record::default() })
    }

    /// Writes a word's history back, compactly if it fits.
    fn compress(&mut self, key: Key, mut wide: Wide, slot: usize) {
        let epoch = self.slots[slot].epoch;
        let per = self.threads_per_block;
        if let Key::Shared(..) = key {
            // What an earlier epoch did is ordered before everything to come in this block.
            for c in &mut wide.cells {
                for r in std::iter::once(&mut c.write).chain(&mut c.reads) {
                    if r.clock.epoch < epoch {
                        *r = Record::default();
                    }
                }
                if c.reads[0].thread == 0 {
                    c.reads = [c.reads[1], c.reads[0]];
                }
            }
            let empty = |c: &Cell| c.write.thread == 0 && c.reads[0].thread == 0 && c.reads[1].thread == 0;
            if wide.split && wide.cells.iter().all(empty) {
                wide.split = false;
            }
        }
        let cell = wide.cells[0];
        let plain = |r: &Record| {
            r.thread == 0
                || (r.flags == 0 && r.clock.epoch <= MAX_EPOCH && (r.thread - 1) / per < u64::from(u32::MAX))
        };
        let fits = !wide.split
            && wide.pending.thread == 0
            && !self.views[slot].exact
            && plain(&cell.write)
            && plain(&cell.reads[0])
            && plain(&cell.reads[1])
            // A read alone in the second place has no compact form.
            && (cell.reads[1].thread == 0 || cell.reads[0].thread != 0);
        let narrow = |r: &Record| r.clock.epoch << EPOCH_SHIFT | ((r.thread - 1) % per) as u32;
        match key {
            Key::Shared(s, word) => {
                let (h, i) = (&mut self.slots[s].shadow, word as usize);
                let full = h.write[i] & FULL;
                // Reads of two epochs cannot be told apart compactly; the compression above leaves one epoch only.
                let same_epoch =
                    cell.reads[1].thread == 0 || cell.reads[1].clock.epoch == cell.reads[0].clock.epoch;
                if fits && same_epoch {
                    self.wide.remove(&key);
                    h.write[i] = full | if cell.write.thread == 0 { 0 } else { narrow(&cell.write) };
                    h.write_site[i] = cell.write.site;
                    let [last, first] = cell.reads;
                    h.read[i] = match (last.thread, first.thread) {
                        (0, _) => 0,
                        (_, 0) => narrow(&last),
                        _ => narrow(&first) | MANY,
                    };
                    h.read_site[i] = last.site;
                    h.last[i] = if last.thread == 0 { 0 } else { narrow(&last) & THREAD };
                } else {
                    h.write[i] = full | WIDE;
                    self.wide.insert(key, wide);
                }
            }
            Key::Global(region, word) => {
                let shape = self.regions[region];
                if shape.sparse && shape.read_only && wide.cells.iter().all(|c| c.write.thread == 0) {
                    // Reads alone of what nothing may write need no shadow.
                    return;
                }
                let pack = |r: &Record| {
                    if r.thread == 0 { 0 } else { ((r.thread - 1) / per + 1) << 32 | u64::from(narrow(r)) }
                };
                if fits {
                    self.wide.remove(&key);
                    let (g, i) = self.global_word_mut(region, word);
                    g.write[i] = pack(&cell.write);
                    g.write_site[i] = cell.write.site;
                    if let Some(read) = g.read.get_mut(i) {
                        let [last, first] = cell.reads;
                        *read = match (last.thread, first.thread) {
                            (0, _) => 0,
                            (_, 0) => pack(&last),
                            _ => pack(&first) | u64::from(MANY),
                        };
                        g.last[i] = pack(&last);
                        g.read_site[i] = last.site;
                    }
                } else {
                    let (g, i) = self.global_word_mut(region, word);
                    g.write[i] = u64::from(WIDE);
                    self.wide.insert(key, wide);
                }
            }
        }
    }

    /// Marks a word of shared memory as initialised throughout, or says whether it is.
    pub(crate) fn full(&mut self, slot: usize, word: u64, set: bool) -> bool {
        let Some(w) = self.slots[slot].shadow.write.get_mut(word as usize) else { return false };
        if set {
            *w |= FULL;
        }
        *w & FULL != 0
    }

    /// A recorded access as a report shows it.
    fn other(&self, r: &Record, kind: AccessKind, pending: bool) -> Other {
        let thread = r.thread - 1;
        Other {
            kind: if r.flags & ATOMIC != 0 { AccessKind::Atomic } else { kind },
            block: thread / self.threads_per_block,
            thread: thread % self.threads_per_block,
            site: r.site,
            size: u64::from(r.size),
            pending,
        }
    }

    /// Checks one cell and records the access in it.
    fn step(&self, cell: &mut Cell, me: &Record, a: &Access, t: usize) -> Option<Other> {
        let races = |r: &Record| {
            if r.thread == 0 || r.thread == me.thread {
                return false;
            }
            if r.flags & me.flags & STRONG != 0 {
                let same_block =
                    (r.thread - 1) / self.threads_per_block == (me.thread - 1) / self.threads_per_block;
                if same_block || (r.flags | me.flags) & BLOCK_SCOPE == 0 {
                    return false;
                }
            }
            !self.ordered(r, a.slot, t)
        };
        let mut found = None;
        if races(&cell.write) {
            found = Some(self.other(&cell.write, AccessKind::Write, false));
        }
        if a.kind == AccessKind::Read {
            let last = cell.reads[0];
            if last.thread != me.thread && last.thread != 0 && !self.ordered(&last, a.slot, t) {
                cell.reads[1] = last;
            }
            cell.reads[0] = *me;
        } else {
            for r in &cell.reads {
                if found.is_none() && races(r) {
                    found = Some(self.other(r, AccessKind::Read, false));
                }
            }
            cell.write = *me;
            cell.reads = [Record::default(); 2];
        }
        found
    }

    /// Release and acquire through a location.
    fn synchronise(&mut self, a: &Access, key: Key, t: usize) {
        let reads = a.kind != AccessKind::Write;
        let writes = a.kind != AccessKind::Read;
        let me = self.slots[a.slot].linear;
        let acquires = matches!(a.semantics, Some(Semantics::Acquire | Semantics::AcqRel | Semantics::Sc));
        let releases = matches!(a.semantics, Some(Semantics::Release | Semantics::AcqRel | Semantics::Sc));
        if reads && let Some(sync) = self.syncs.get(&key) {
            let visible = sync.block.is_none_or(|b| b == me);
            if visible && !sync.know.is_empty() {
                let know = sync.know.clone();
                (self.slots[a.slot].touched, self.slots[a.slot].knowing) = (true, true);
                let foreign = know.get().is_some_and(|k| k.blocks.keys().any(|b| *b != me));
                let th = &mut self.slots[a.slot].threads[t];
                if acquires {
                    th.know.join(&know);
                } else {
                    th.pending.join(&know);
                    th.pending_foreign |= foreign;
                }
            }
        }
        if !writes {
            return;
        }
        let released = if releases {
            self.go_exact(a.slot);
            let all = self.knowledge(a.slot, t);
            self.slots[a.slot].threads[t].sub += 1;
            Some((all, a.scope == Some(Scope::Cta)))
        } else {
            self.slots[a.slot].threads[t].fence.clone()
        };
        match released {
            Some((know, block_only)) => {
                let sync = self.syncs.entry(key).or_default();
                if a.kind == AccessKind::Write {
                    sync.know = Shared::default();
                }
                sync.know.join(&know);
                sync.block = block_only.then_some(me);
            }
            // A plain strong store ends the release sequence; an atomic continues it.
            None if a.kind == AccessKind::Write => {
                self.syncs.remove(&key);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shadow::{Run, Side, Steps};
    use super::super::{CopyPhase, InitMap};
    use super::*;

    const WORDS: u64 = 96;
    const THREADS: u64 = 64;

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }
    }

    /// What a warp does to shared memory.
    #[derive(Clone, Debug)]
    enum Deed {
        Read(Run, bool),
        Write(Run),
        Steps(usize, [u64; 2], [bool; 2], u32, u32),
        Byte { thread: u64, offset: u64, kind: AccessKind },
        Barrier,
        WarpSync(usize),
    }

    fn deed(r: &mut Random, site: u32, calm: bool) -> Deed {
        let warp = r.below(2) as u32;
        let first = warp * 32 + 16 * r.below(2) as u32;
        match r.below(if calm { 40 } else { 16 }) {
            0 => Deed::Byte {
                thread: r.below(THREADS),
                offset: r.below(WORDS * 4 - 4),
                kind: [AccessKind::Read, AccessKind::Write, AccessKind::Atomic][r.below(3) as usize],
            },
            1 if !calm => Deed::WarpSync(warp as usize),
            1..4 => Deed::Barrier,
            4..7 => {
                let each = 1 << r.below(2);
                let word = r.below(WORDS - 16 * u64::from(each));
                Deed::Write(Run { word, thread: first, lanes: 16, each, site })
            }
            7..10 => {
                let sides = [0; 2].map(|_| 4 * r.below(WORDS - 24));
                Deed::Steps(r.below(3) as usize, sides, [0; 2].map(|_| r.below(2) == 0), warp * 32, site)
            }
            k => {
                let same = k % 2 == 0;
                let each = 1 << r.below(2);
                let word = r.below(WORDS - 16 * u64::from(each));
                Deed::Read(Run { word, thread: first, lanes: 16, each, site }, same)
            }
        }
    }

    const STEPS: [&[(u32, u32, bool)]; 3] = [
        &[(0, 0, false), (4, 8, true)],
        &[(0, 16, true), (4, 12, false), (8, 8, false), (28, 0, true)],
        &[(0, 0, false), (0, 0, true), (16, 28, false)],
    ];

    /// How a detector is driven.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Drive {
        /// As it is.
        Late,
        /// Every read is noted at once.
        AtOnce,
    }

    struct Rig {
        races: Races,
        drive: Drive,
    }

    impl Rig {
        fn new(drive: Drive) -> Rig {
            let mut races = Races::new(THREADS, &[], &mut InitMap::default());
            races.start_block(0, 3, WORDS as usize * 4, THREADS);
            // Every word was written before; otherwise the quick path leaves it to the exact one.
            (0..WORDS).for_each(|w| {
                races.full(0, w, true);
            });
            Rig { races, drive }
        }

        fn exactly(
            &mut self,
            thread: u64,
            offset: u64,
            size: u64,
            kind: AccessKind,
            site: u32,
        ) -> Option<Other> {
            self.races.access(&Access {
                slot: 0,
                warp: thread as usize / 32,
                lane: thread as usize % 32,
                place: Where::Shared { offset },
                size,
                kind,
                strong: kind == AccessKind::Atomic,
                semantics: None,
                scope: None,
                copy: CopyPhase::None,
                site,
            })
        }

        fn run(&mut self, r: Run, same: bool, kind: AccessKind) -> Vec<Option<Other>> {
            let quick = {
                // SAFETY: the view is that of the block that was started; the words are within it.
                unsafe {
                    let v = &*self.races.view(0);
                    match (kind, same) {
                        (AccessKind::Write, _) => v.shared_write(r),
                        (_, true) => v.shared_broadcast(r),
                        (_, false) => v.shared_read(r),
                    }
                }
            };
            if quick {
                return vec![None; 16];
            }
            let lane = |k: u64| (r.word + if same { 0 } else { k * u64::from(r.each) }) * 4;
            (0..16)
                .map(|k| self.exactly(u64::from(r.thread) + k, lane(k), 4 * u64::from(r.each), kind, r.site))
                .collect()
        }

        fn go(&mut self, d: &Deed, site: u32) -> Vec<Option<Other>> {
            let out = match *d {
                Deed::Read(r, same) => self.run(r, same, AccessKind::Read),
                Deed::Write(r) => self.run(r, false, AccessKind::Write),
                Deed::Steps(which, at, unit, thread, site) => {
                    let list = STEPS[which];
                    let sides = [0, 1].map(|k| Side { at: [at[k], at[k] + 4 * (k as u64)], unit: unit[k] });
                    let quick = {
                        let s = Steps { steps: &raw const *list, sides, thread, site };
                        // SAFETY: as above.
                        unsafe { (*self.races.view(0)).shared_steps(s, [28, 28]) }
                    };
                    let mut found = Vec::new();
                    if !quick {
                        for (k, (x, y, swapped)) in list.iter().enumerate() {
                            let loads = if *swapped { [(1, *y), (0, *x)] } else { [(0, *x), (1, *y)] };
                            for (nth, (side, offset)) in loads.into_iter().enumerate() {
                                let site = site + 3 * k as u32 + nth as u32;
                                let halves = [0u64, 1].map(|half| Run {
                                    word: (at[side] + 4 * side as u64 * half + u64::from(offset)) / 4,
                                    thread: thread + 16 * half as u32,
                                    lanes: 16,
                                    each: 1,
                                    site,
                                });
                                for r in halves {
                                    found.extend(self.run(r, !unit[side], AccessKind::Read));
                                }
                            }
                        }
                    }
                    found.resize(16 * 4 * list.len(), None);
                    found
                }
                Deed::Byte { thread, offset, kind } => {
                    let (offset, size) =
                        if kind == AccessKind::Atomic { (offset / 4 * 4, 4) } else { (offset, 1) };
                    vec![self.exactly(thread, offset, size, kind, site)]
                }
                Deed::Barrier => {
                    self.races.barrier(0, 0, &[u32::MAX; 2], true);
                    vec![]
                }
                Deed::WarpSync(w) => {
                    self.races.warp_sync(0, w, u32::MAX);
                    vec![]
                }
            };
            if self.drive == Drive::AtOnce {
                // SAFETY: as above.
                let v = unsafe { &*self.races.view(0) };
                v.catch_up();
                v.soil();
            }
            out
        }

        fn history(&self, word: u64) -> Option<String> {
            let wide = self.races.expand(Key::Shared(0, word))?;
            let epoch = self.races.slots[0].epoch;
            // What was before this epoch is ordered, whatever it was.
            let show = |r: &Record| {
                (r.clock.epoch >= epoch).then_some((
                    r.thread,
                    r.clock.epoch,
                    r.clock.sub,
                    r.site,
                    r.flags,
                    r.size,
                ))
            };
            let cells = if wide.split { &wide.cells[..] } else { &wide.cells[..1] };
            Some(
                cells
                    .iter()
                    .map(|c| format!("{:?} {:?}", show(&c.write), c.reads.each_ref().map(show)))
                    .collect(),
            )
        }
    }

    #[test]
    fn reads_noted_late_find_what_reads_noted_at_once_find() {
        let mut r = Random(0x1234_5678_9abc_def1);
        let (mut quiet, mut races) = (0u64, 0u64);
        for round in 0..90u32 {
            let calm = round % 3 != 0;
            let mut rigs = [Drive::Late, Drive::AtOnce].map(Rig::new);
            for step in 0..80u32 {
                let site = 1000 * step;
                let d = deed(&mut r, site, calm);
                let [late, once] = rigs.each_mut().map(|rig| rig.go(&d, site));
                assert_eq!(late, once, "round {round}, step {step}: {d:?}");
                if late.iter().all(Option::is_none) {
                    quiet += 1;
                } else {
                    races += 1;
                }
                if step % 16 == 15 {
                    // SAFETY: as above.
                    unsafe { (*rigs[0].races.view(0)).catch_up() };
                    for word in 0..WORDS {
                        let (a, b) = (rigs[0].history(word), rigs[1].history(word));
                        assert_eq!(a, b, "round {round}, step {step}, word {word}");
                    }
                }
            }
        }
        assert!(quiet > 500 && races > 500, "{quiet} quiet, {races} races");
    }
}
