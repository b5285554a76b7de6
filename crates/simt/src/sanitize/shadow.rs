//! Compact shadow memory: what the common case needs to know of each word, in a form that 32 lanes pass quickly.
//!
//! Per word of shared memory 32 bits for the last write (epoch, thread, "all four bytes written", "look in the table of
//! wide cells") and for the reads since (epoch, first reader, "others too"); global memory has 64 bits each, with the
//! block. A word whose history does not fit (accesses of a byte or two, atomics, synchronisation other than whole-block
//! barriers in this epoch) is *wide*: its bit sends every access to the exact path in [`super::race`].
//!
//! The quick checks below allow an access only if the exact path would find nothing, and record it as that would.
//!
//! **Reads of shared memory are noted late.** A read matters only if something is written, or looked at exactly, before
//! the next barrier of the whole block; most are not. So where a read is of words that nothing has written in this epoch
//! ([`View::clean`] knows ranges of such words), it goes to a list, and the list is worked off in order before the next
//! access that needs the shadow ([`View::catch_up`]), or forgotten at the barrier.
#![allow(clippy::needless_range_loop, reason = "one index runs over several arrays")]

use std::cell::{Cell, RefCell};

/// Bits of the thread in a block.
pub(crate) const THREAD: u32 = 0x3ff;
/// In a write: the word is wide.
pub(crate) const WIDE: u32 = 0x400;
/// In a write of shared memory: every byte was written. In a read: more than one thread.
pub(crate) const FULL: u32 = 0x800;
pub(crate) const MANY: u32 = 0x800;
/// Where the epoch begins, and its largest value.
pub(crate) const EPOCH_SHIFT: u32 = 12;
pub(crate) const MAX_EPOCH: u32 = (1 << 20) - 1;

/// One region of global memory.
#[derive(Clone, Copy)]
pub(crate) struct RegionView {
    pub(crate) write: *mut u64,
    pub(crate) read: *mut u64,
    /// Last reader.
    pub(crate) last: *mut u64,
    pub(crate) write_site: *mut u32,
    pub(crate) read_site: *mut u32,
    /// A bit per byte that was initialised; null where all are.
    pub(crate) init: *mut u64,
    pub(crate) words: u64,
    /// Nothing may write here: reads need no record.
    pub(crate) read_only: bool,
}

/// Reads that one note stands for.
enum Note {
    /// Consecutive words, or (true) the same ones in all lanes.
    Run(Run, bool),
    Steps(Steps),
}

/// The loads of a chain (see [`crate::handlers::chain`]): two for each of its steps.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// Offsets in bytes from the two addresses, and whether the second load comes first. Belongs to the kernel.
    pub(crate) steps: *const [(u32, u32, bool)],
    pub(crate) sides: [Side; 2],
    /// Thread of lane 0, and number of the first load. A step is three instructions.
    pub(crate) thread: u32,
    pub(crate) site: u32,
}

/// The address of one of a chain's two loads, without offset.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    /// Of lanes 0 and 16.
    pub(crate) at: [u64; 2],
    /// Half-warps read consecutive words; else each reads one.
    pub(crate) unit: bool,
}

/// Notes kept before they are worked off.
const MOST_NOTES: usize = 4096;

/// What a warp needs to know of the detectors.
pub(crate) struct View {
    pub(crate) write: *mut u32,
    pub(crate) read: *mut u32,
    pub(crate) write_site: *mut u32,
    /// Site and thread of the last reader.
    pub(crate) read_site: *mut u32,
    pub(crate) last: *mut u32,
    pub(crate) words: u64,
    pub(crate) epoch: u32,
    /// Everything takes the exact path: synchronisation that compact clocks do not express happened in this epoch.
    pub(crate) exact: bool,
    /// Block plus one.
    pub(crate) block: u64,
    pub(crate) regions: *const RegionView,
    pub(crate) region_count: u64,
    notes: RefCell<Vec<Note>>,
    /// Ranges of words that were written before this epoch, whole, and are not wide.
    clean: [Cell<(u64, u64)>; 2],
}

/// Which lanes an access has, and how it advances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// First word.
    pub(crate) word: u64,
    /// Thread of the first lane.
    pub(crate) thread: u32,
    /// Lanes.
    pub(crate) lanes: u32,
    /// Words per lane.
    pub(crate) each: u32,
    pub(crate) site: u32,
}

impl View {
    /// A view of nothing.
    pub(crate) fn none() -> View {
        View {
            write: std::ptr::null_mut(),
            read: std::ptr::null_mut(),
            write_site: std::ptr::null_mut(),
            read_site: std::ptr::null_mut(),
            last: std::ptr::null_mut(),
            words: 0,
            epoch: 1,
            exact: true,
            block: 0,
            regions: std::ptr::null(),
            region_count: 0,
            notes: RefCell::new(Vec::new()),
            clean: [Cell::new((0, 0)), Cell::new((0, 0))],
        }
    }

    /// Forgets the reads that were not noted yet: what follows is ordered after them.
    pub(crate) fn forget(&self) {
        self.notes.borrow_mut().clear();
    }

    /// The shadow of writes is about to change.
    #[inline(always)]
    pub(crate) fn soil(&self) {
        self.clean[0].set((0, 0));
        self.clean[1].set((0, 0));
    }

    /// Notes the reads that were put off.
    pub(crate) fn catch_up(&self) {
        let notes = std::mem::take(&mut *self.notes.borrow_mut());
        if notes.is_empty() {
            return;
        }
        for n in &notes {
            match n {
                // SAFETY: the words were within the shadow when the note was taken, and that does not shrink before
                // the notes are forgotten.
                Note::Run(r, same) => unsafe {
                    self.note(*r, *same);
                },
                Note::Steps(s) => {
                    // SAFETY: the kernel outlives the launch, and the notes with it.
                    let steps = unsafe { &*s.steps };
                    for (k, (x, y, swapped)) in steps.iter().enumerate() {
                        let loads = [(s.sides[0], *x), (s.sides[1], *y)];
                        let order = if *swapped { [1, 0] } else { [0, 1] };
                        for (nth, which) in order.into_iter().enumerate() {
                            let (side, offset) = loads[which];
                            for half in 0..2 {
                                let r = Run {
                                    word: (side.at[half] + u64::from(offset)) / 4,
                                    thread: s.thread + 16 * half as u32,
                                    lanes: 16,
                                    each: 1,
                                    site: s.site.wrapping_add((3 * k + nth) as u32),
                                };
                                // SAFETY: as above.
                                unsafe {
                                    self.note(r, !side.unit);
                                }
                            }
                        }
                    }
                }
            }
        }
        // The list's room serves again.
        let mut list = self.notes.borrow_mut();
        *list = notes;
        list.clear();
    }

    fn put_off(&self, n: Note) {
        let full = {
            let mut list = self.notes.borrow_mut();
            list.push(n);
            list.len() >= MOST_NOTES
        };
        if full {
            self.catch_up();
        }
    }

    /// True if `from .. to` of the block's words were written before this epoch, whole, and none is wide. `side` picks
    /// the remembered range that is looked at and grows.
    ///
    /// # Safety
    /// The shadow arrays are as long as `words` says.
    #[inline(always)]
    unsafe fn is_clean(&self, side: usize, from: u64, to: u64) -> bool {
        let (low, high) = self.clean[side].get();
        if low <= from && to <= high {
            return true;
        }
        if to > self.words {
            return false;
        }
        // SAFETY: the range is within the array.
        unsafe { self.look(side, from, to) }
    }

    /// # Safety
    /// The range is within the shadow.
    unsafe fn look(&self, side: usize, from: u64, to: u64) -> bool {
        let key = self.key();
        // SAFETY: the caller's promise.
        let words =
            unsafe { std::slice::from_raw_parts(self.write.add(from as usize), (to - from) as usize) };
        let bad = words
            .iter()
            .fold(0u32, |bad, x| bad | u32::from(x & !0xfff == key) | u32::from(x & (FULL | WIDE) != FULL));
        if bad != 0 {
            return false;
        }
        let (low, high) = self.clean[side].get();
        let touching = from <= high && low <= to;
        self.clean[side].set(if touching { (low.min(from), high.max(to)) } else { (from, to) });
        true
    }

    /// Puts off the reads of a chain, whose offsets are up to `most`; false if they have to be done one by one.
    ///
    /// # Safety
    /// All words are within the block's shared memory.
    #[inline(always)]
    pub(crate) unsafe fn shared_steps(&self, s: Steps, most: [u32; 2]) -> bool {
        if self.exact {
            return false;
        }
        for (k, side) in s.sides.iter().enumerate() {
            let lanes = if side.unit { 16 } else { 1 };
            for at in side.at {
                let (from, to) = (at / 4, (at + u64::from(most[k])) / 4 + lanes);
                // SAFETY: the shadow arrays are as long as `words` says.
                if !unsafe { self.is_clean(k, from, to) } {
                    return false;
                }
            }
        }
        self.put_off(Note::Steps(s));
        true
    }

    /// Notes a read of shared memory; false if it is not as harmless as it should be.
    ///
    /// # Safety
    /// The words are within the shadow.
    #[inline(always)]
    unsafe fn note(&self, r: Run, same: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe { if same { self.note_broadcast(r) } else { self.note_read(r) } }
    }

    #[inline(always)]
    fn key(&self) -> u32 {
        self.epoch << EPOCH_SHIFT
    }

    /// Consecutive lanes read consecutive words of shared memory.
    ///
    /// # Safety
    /// The words are within the block's shared memory; so are the shadow arrays.
    #[inline(always)]
    pub(crate) unsafe fn shared_read(&self, r: Run) -> bool {
        let n = u64::from(r.lanes * r.each);
        // SAFETY: the caller's promise.
        unsafe {
            if self.exact || r.word + n > self.words {
                return false;
            }
            if self.is_clean(0, r.word, r.word + n) {
                self.put_off(Note::Run(r, false));
                return true;
            }
            self.catch_up();
            self.note_read(r)
        }
    }

    /// # Safety
    /// The words are within the shadow.
    #[inline(always)]
    unsafe fn note_read(&self, r: Run) -> bool {
        let n = (r.lanes * r.each) as usize;
        let (key, mut bad) = (self.key(), 0u32);
        // SAFETY: the caller's promise.
        unsafe {
            let at = r.word as usize;
            let (w, rd) = (self.write.add(at), self.read.add(at));
            let (site, last) = (self.read_site.add(at), self.last.add(at));
            for j in 0..n {
                let t = r.thread + j as u32 / r.each;
                let x = *w.add(j);
                let foreign = u32::from(x & !0xfff == key) & u32::from(x & THREAD != t);
                bad |= foreign | u32::from(x & (FULL | WIDE) != FULL);
                let old = *rd.add(j);
                let here = old & !0xfff == key;
                // The last reader that is not the first: both are what a write has to be ordered behind.
                let again = here & (old & THREAD == t);
                *rd.add(j) = if again {
                    old
                } else if here {
                    old | MANY
                } else {
                    key | t
                };
                *site.add(j) = if again { *site.add(j) } else { r.site };
                *last.add(j) = if again { *last.add(j) } else { t };
            }
        }
        bad == 0
    }

    /// Several lanes read the same words of shared memory.
    ///
    /// # Safety
    /// As for [`View::shared_read`].
    #[inline(always)]
    pub(crate) unsafe fn shared_broadcast(&self, r: Run) -> bool {
        let n = u64::from(r.each);
        // SAFETY: the caller's promise.
        unsafe {
            if self.exact || r.word + n > self.words {
                return false;
            }
            if self.is_clean(1, r.word, r.word + n) {
                self.put_off(Note::Run(r, true));
                return true;
            }
            self.catch_up();
            self.note_broadcast(r)
        }
    }

    /// # Safety
    /// As for [`View::note_read`].
    #[inline(always)]
    unsafe fn note_broadcast(&self, r: Run) -> bool {
        let (key, mut bad) = (self.key(), 0u32);
        let many = if r.lanes > 1 { MANY } else { 0 };
        // SAFETY: as above.
        unsafe {
            for j in 0..r.each as usize {
                let at = r.word as usize + j;
                let x = *self.write.add(at);
                let foreign = u32::from(x & !0xfff == key) & u32::from(many != 0 || x & THREAD != r.thread);
                bad |= foreign | u32::from(x & (FULL | WIDE) != FULL);
                let old = *self.read.add(at);
                let here = old & !0xfff == key;
                let again = here && old & THREAD == r.thread && many == 0;
                let others = if old & THREAD == r.thread { many } else { MANY };
                *self.read.add(at) = if here { old | others } else { key | r.thread | many };
                if !again {
                    *self.read_site.add(at) = r.site;
                    // If that is the first reader, lane 0 is another one.
                    let end = r.thread + r.lanes - 1;
                    *self.last.add(at) = if here && old & THREAD == end { r.thread } else { end };
                }
            }
        }
        bad == 0
    }

    /// Consecutive lanes write consecutive words of shared memory.
    ///
    /// # Safety
    /// As for [`View::shared_read`].
    #[inline(always)]
    pub(crate) unsafe fn shared_write(&self, r: Run) -> bool {
        let n = (r.lanes * r.each) as usize;
        if self.exact || r.word + n as u64 > self.words {
            return false;
        }
        let (key, mut bad) = (self.key(), 0u32);
        // SAFETY: as above.
        unsafe {
            let at = r.word as usize;
            self.catch_up();
            let (w, rd, site) = (self.write.add(at), self.read.add(at), self.write_site.add(at));
            for j in 0..n {
                let t = r.thread + j as u32 / r.each;
                let x = *w.add(j);
                bad |= (u32::from(x & !0xfff == key) & u32::from(x & THREAD != t)) | (x & WIDE);
                let y = *rd.add(j);
                bad |= u32::from(y & !0xfff == key) & u32::from(y & (THREAD | MANY) != t);
            }
            if bad != 0 {
                return false;
            }
            self.soil();
            for j in 0..n {
                *w.add(j) = key | FULL | (r.thread + j as u32 / r.each);
                *site.add(j) = r.site;
            }
        }
        true
    }

    #[inline(always)]
    unsafe fn region(&self, region: u64) -> Option<&RegionView> {
        // SAFETY: the view's table has that many entries.
        (region < self.region_count).then(|| unsafe { &*self.regions.add(region as usize) })
    }

    /// Lanes read words of global memory: consecutive ones, or all the same (`same`).
    ///
    /// # Safety
    /// The words are within the region.
    #[inline(always)]
    pub(crate) unsafe fn global_read(&self, region: u64, r: Run, same: bool) -> bool {
        // SAFETY: `region` is checked; arrays are as long as `words` says.
        unsafe {
            let Some(g) = self.region(region) else { return false };
            let n = if same { r.each } else { r.lanes * r.each } as usize;
            if r.word + n as u64 > g.words {
                return false;
            }
            if !g.init.is_null() && !initialised(g.init, r.word * 4, n as u64 * 4) {
                return false;
            }
            if g.read_only {
                return true;
            }
            if self.exact {
                return false;
            }
            let head = self.block << 32 | u64::from(self.key());
            let at = r.word as usize;
            let many = u64::from(if same && r.lanes > 1 { MANY } else { 0 });
            let mut bad = 0u64;
            for j in 0..n {
                let t = u64::from(if same { r.thread } else { r.thread + j as u32 / r.each });
                let x = *g.write.add(at + j);
                let mine = x >> 32 == self.block;
                let now = x & !0xfff == head;
                let other = many != 0 || x & u64::from(THREAD) != t;
                bad |= u64::from(x != 0 && (!mine || (now && other))) | (x & u64::from(WIDE));
                let old = *g.read.add(at + j);
                let fresh = old == 0
                    || (old & u64::from(MANY) == 0 && old >> 32 == self.block && old & !0xfff != head);
                let first = old >> 32 == self.block && old & u64::from(THREAD) == t;
                if first && !fresh && many == 0 {
                    // The first reader again. The last one that is another stays: a write has to be ordered behind both.
                    *g.read.add(at + j) = head | t | (old & u64::from(MANY));
                    continue;
                }
                *g.read.add(at + j) = if fresh { head | t | many } else { old | u64::from(MANY) };
                let end = head | (t + if same { u64::from(r.lanes) - 1 } else { 0 });
                // Where the last lane was the first reader, lane 0 is another.
                *g.last.add(at + j) = if !fresh && old & !u64::from(MANY) == end { head | t } else { end };
                *g.read_site.add(at + j) = r.site;
            }
            bad == 0
        }
    }

    /// Consecutive lanes write consecutive words of global memory.
    ///
    /// # Safety
    /// As for [`View::global_read`].
    #[inline(always)]
    pub(crate) unsafe fn global_write(&self, region: u64, r: Run) -> bool {
        // SAFETY: as above.
        unsafe {
            let Some(g) = self.region(region) else { return false };
            let n = (r.lanes * r.each) as usize;
            if self.exact || r.word + n as u64 > g.words {
                return false;
            }
            let head = self.block << 32 | u64::from(self.key());
            let at = r.word as usize;
            let mut bad = 0u64;
            for j in 0..n {
                let t = u64::from(r.thread + j as u32 / r.each);
                let x = *g.write.add(at + j);
                let clash = |v: u64| {
                    v != 0 && (v >> 32 != self.block || (v & !0xfff == head && v & u64::from(THREAD) != t))
                };
                let y = *g.read.add(at + j);
                bad |= u64::from(clash(x) || clash(y)) | (x & u64::from(WIDE)) | (y & u64::from(MANY));
            }
            if bad != 0 {
                return false;
            }
            for j in 0..n {
                *g.write.add(at + j) = head | u64::from(r.thread + j as u32 / r.each);
                *g.write_site.add(at + j) = r.site;
            }
            if !g.init.is_null() {
                set(g.init, r.word * 4, n as u64 * 4);
            }
            true
        }
    }
}

#[inline(always)]
fn each(offset: u64, size: u64, mut f: impl FnMut(usize, u64)) {
    let (mut at, end) = (offset, offset + size);
    while at < end {
        let n = (64 - (at & 63)).min(end - at);
        let ones = if n == 64 { u64::MAX } else { (1 << n) - 1 };
        f((at >> 6) as usize, ones << (at & 63));
        at += n;
    }
}

/// # Safety
/// The bits are within the map.
#[inline(always)]
unsafe fn initialised(map: *mut u64, offset: u64, size: u64) -> bool {
    let mut ok = true;
    // SAFETY: the caller's promise.
    each(offset, size, |w, m| ok &= unsafe { *map.add(w) } & m == m);
    ok
}

/// # Safety
/// As for [`initialised`].
#[inline(always)]
unsafe fn set(map: *mut u64, offset: u64, size: u64) {
    // SAFETY: the caller's promise.
    each(offset, size, |w, m| unsafe { *map.add(w) |= m });
}
