//! The race detector: clocks of threads and blocks, and the last accesses of every word.

use std::collections::HashMap;

use assay_ptx::{Scope, Semantics};

use super::clock::{Clock, Know, Shared};
use super::{Access, Other, Where};
use crate::findings::AccessKind;

/// Words per page of shadow memory.
const PAGE: usize = 512;

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
    /// The last reader, and the last one before it that is not ordered before it.
    reads: [Record; 2],
    /// Bytes of this word are tracked apart.
    split: bool,
}

type Pages = Vec<Option<Box<[Cell; PAGE]>>>;

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

#[derive(Clone, Debug, Default)]
struct Slot {
    linear: u64,
    epoch: u32,
    threads: Vec<Thread>,
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
    global: Vec<Pages>,
    shared: Vec<Pages>,
    split: HashMap<Key, [Cell; 4]>,
    syncs: HashMap<Key, Sync>,
    pages: u64,
}

impl Races {
    pub(crate) fn new(threads_per_block: u64) -> Races {
        Races { threads_per_block: threads_per_block.max(1), ..Races::default() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let cell = size_of::<Cell>() as u64;
        self.pages * PAGE as u64 * cell + self.split.len() as u64 * cell * 4
    }

    pub(crate) fn start_block(&mut self, slot: usize, linear: u64, shared_bytes: usize, threads: u64) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot::default());
            self.shared.resize_with(slot + 1, Vec::new);
        }
        let s = &mut self.slots[slot];
        s.linear = linear;
        s.epoch = 1;
        s.threads.clear();
        s.threads.resize(threads as usize, Thread::default());
        s.know = Shared::default();
        s.arrivals.clear();
        self.shared[slot].clear();
        self.shared[slot].resize_with(shared_bytes.div_ceil(4 * PAGE), || None);
        self.split.retain(|k, _| !matches!(k, Key::Shared(s, _) if *s == slot));
        self.syncs.retain(|k, _| !matches!(k, Key::Shared(s, _) if *s == slot));
    }

    fn lanes(warp: usize, mask: u32, threads: usize) -> impl Iterator<Item = usize> {
        (0..32usize)
            .filter(move |k| mask >> k & 1 != 0)
            .map(move |k| warp * 32 + k)
            .filter(move |t| *t < threads)
    }

    /// Everything that thread `t` of a slot knows, itself included.
    fn full(&self, slot: usize, t: usize) -> Shared {
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
        let n = self.slots[slot].threads.len();
        for t in Self::lanes(warp, mask, n) {
            let th = &mut self.slots[slot].threads[t];
            if !(block_only && th.pending_foreign) {
                let pending = std::mem::take(&mut th.pending);
                th.know.join(&pending);
                th.pending_foreign = false;
            }
            let all = self.full(slot, t);
            let th = &mut self.slots[slot].threads[t];
            th.fence = Some((all, block_only));
            th.sub += 1;
        }
    }

    /// `bar.arrive`: the threads' past is released to those who wait.
    pub(crate) fn arrive(&mut self, slot: usize, warp: usize, mask: u32, id: usize) {
        let n = self.slots[slot].threads.len();
        for t in Self::lanes(warp, mask, n) {
            let all = self.full(slot, t);
            let s = &mut self.slots[slot];
            s.arrivals.entry(id).or_default().join(&all);
            s.threads[t].sub += 1;
        }
    }

    /// A barrier opens for the threads that wait.
    pub(crate) fn barrier(&mut self, slot: usize, id: usize, waiting: &[u32], whole: bool) {
        let n = self.slots[slot].threads.len();
        let lanes: Vec<usize> = waiting.iter().enumerate().flat_map(|(w, m)| Self::lanes(w, *m, n)).collect();
        if whole {
            let s = &mut self.slots[slot];
            let mut know = std::mem::take(&mut s.know);
            for &t in &lanes {
                let th = &mut s.threads[t];
                know.join(&th.know);
                know.join(&th.pending);
                th.know = Shared::default();
                th.pending = Shared::default();
            }
            s.know = know;
            s.epoch += 1;
            return;
        }
        let mut joint = self.slots[slot].arrivals.remove(&id).unwrap_or_default();
        for &t in &lanes {
            joint.join(&self.full(slot, t));
        }
        self.share(slot, &lanes, &joint);
    }

    /// `bar.warp.sync`.
    pub(crate) fn warp_sync(&mut self, slot: usize, warp: usize, mask: u32) {
        let n = self.slots[slot].threads.len();
        let lanes: Vec<usize> = Self::lanes(warp, mask, n).collect();
        let mut joint = Shared::default();
        for &t in &lanes {
            joint.join(&self.full(slot, t));
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
        if block == s.linear {
            if r.clock.epoch < s.epoch || thread % self.threads_per_block == t as u64 {
                return true;
            }
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
        let (base, key): (u64, fn(&Access, u64) -> Key) = match a.place {
            Where::Global { offset, .. } => (offset, |a, w| match a.place {
                Where::Global { region, .. } => Key::Global(region, w),
                _ => Key::Shared(a.slot, w),
            }),
            Where::Shared { offset } => (offset, |a, w| Key::Shared(a.slot, w)),
            Where::Local { .. } => return None,
        };
        let mut found = None;
        let end = base + a.size;
        let mut at = base;
        while at < end {
            let word = at / 4;
            let to = ((word + 1) * 4).min(end);
            let whole = at.is_multiple_of(4) && to - at == 4;
            let k = key(a, word);
            let Some(mut cell) = self.cell(k).copied() else {
                at = to;
                continue;
            };
            if whole && !cell.split {
                found = found.or(self.step(&mut cell, &record, a, t));
            } else {
                let mut bytes =
                    if cell.split { self.split.get(&k).copied().unwrap_or_default() } else { [cell; 4] };
                for b in &mut bytes[(at % 4) as usize..(at % 4 + to - at) as usize] {
                    found = found.or(self.step(b, &record, a, t));
                }
                self.split.insert(k, bytes);
                cell.split = true;
            }
            if let Some(c) = self.cell(k) {
                *c = cell;
            }
            at = to;
        }
        if a.strong {
            self.synchronise(a, key(a, base), t);
        }
        found
    }

    /// The cell of a word; `None` outside (which the caller has excluded).
    fn cell(&mut self, key: Key) -> Option<&mut Cell> {
        let (pages, word) = match key {
            Key::Global(region, word) => {
                if self.global.len() <= region {
                    self.global.resize_with(region + 1, Vec::new);
                }
                (&mut self.global[region], word as usize)
            }
            Key::Shared(slot, word) => (self.shared.get_mut(slot)?, word as usize),
        };
        let page = word / PAGE;
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        if pages[page].is_none() {
            self.pages += 1;
            pages[page] = Some(Box::new([Cell::default(); PAGE]));
        }
        pages[page].as_mut().map(|p| &mut p[word % PAGE])
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
        let other = |r: &Record, kind: AccessKind| {
            let thread = r.thread - 1;
            Other {
                kind: if r.flags & ATOMIC != 0 { AccessKind::Atomic } else { kind },
                block: thread / self.threads_per_block,
                thread: thread % self.threads_per_block,
                site: r.site,
                size: u64::from(r.size),
            }
        };
        let mut found = None;
        if races(&cell.write) {
            found = Some(other(&cell.write, AccessKind::Write));
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
                    found = Some(other(r, AccessKind::Read));
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
            let all = self.full(a.slot, t);
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
