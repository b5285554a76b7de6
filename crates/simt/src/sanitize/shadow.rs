//! Compact shadow memory: what the common case needs to know of each word, in a form that 32 lanes pass quickly.
//!
//! Per word of shared memory 32 bits for the last write (epoch, thread, "all four bytes written", "look in the table of
//! wide cells") and for the reads since (epoch, first reader, "others too"); global memory has 64 bits each, with the
//! block. A word whose history does not fit (accesses of a byte or two, atomics, synchronisation other than whole-block
//! barriers in this epoch) is *wide*: its bit sends every access to the exact path in [`super::race`].
//!
//! The quick checks below allow an access only if the exact path would find nothing, and record it as that would.
#![allow(clippy::needless_range_loop, reason = "one index runs over several arrays")]

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
}

/// Which lanes an access has, and how it advances.
#[derive(Clone, Copy)]
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
        }
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
        let n = (r.lanes * r.each) as usize;
        if self.exact || r.word + n as u64 > self.words {
            return false;
        }
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
                let others = if old & THREAD == t { 0 } else { MANY };
                *rd.add(j) = if here { old | others } else { key | t };
                *site.add(j) = r.site;
                *last.add(j) = t;
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
        if self.exact || r.word + u64::from(r.each) > self.words {
            return false;
        }
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
                let others = if old & THREAD == r.thread { many } else { MANY };
                *self.read.add(at) = if here { old | others } else { key | r.thread | many };
                *self.read_site.add(at) = r.site;
                *self.last.add(at) = r.thread + r.lanes - 1;
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
                let others = if old & !u64::from(MANY) == head | t { many } else { u64::from(MANY) };
                *g.read.add(at + j) = if fresh { head | t | many } else { old | others };
                *g.last.add(at + j) = head | (t + if same { u64::from(r.lanes) - 1 } else { 0 });
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
