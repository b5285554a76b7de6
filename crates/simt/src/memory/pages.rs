//! Pages: bytes of a region that exist only where something wrote, and who wrote them.
//!
//! A *sparse* region keeps its bytes here; what no page holds is made by its [`Source`] from the position alone. A dense
//! region is *tracked* during a launch of sampled blocks: its bytes stay where they are, its pages hold only which of
//! them were written and by whom.
//!
//! **Who wrote.** Each granule (four bytes, fewer where an access is narrower) keeps a stamp: the executed block, the
//! thread, the instruction. Two executed blocks that store to one granule are a hazard, whatever they store, unless
//! both did it strongly (atomics, volatile).
#![warn(clippy::arithmetic_side_effects)]

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::fill::Pattern;
use crate::options::Generated;
use crate::sanitize::QuickHasher;

/// Bytes of a page, unless the options say less.
pub(crate) const PAGE_BYTES: u64 = 1024;
/// Smallest page: one word of the map of written bytes.
pub(crate) const MIN_PAGE_BYTES: u64 = 64;

/// What the bytes that nothing wrote hold.
pub(crate) struct Source {
    /// The first bytes, as given.
    pub(crate) base: Vec<u8>,
    /// The elements behind them.
    pub(crate) elements: Option<Generated>,
    /// Bytes of an element: a power of two.
    pub(crate) element_bytes: u64,
    /// What is left: fresh memory.
    pub(crate) pattern: Pattern,
}

impl Source {
    /// Writes what lies at `from` into `out`.
    fn read(&self, from: u64, out: &mut [u8]) {
        let mut rest = out;
        let mut at = from;
        if let Some(b) = usize::try_from(from).ok().and_then(|f| self.base.get(f..)) {
            let n = b.len().min(rest.len());
            let (head, tail) = rest.split_at_mut(n);
            head.copy_from_slice(&b[..n]);
            rest = tail;
            at = at.saturating_add(n as u64);
        }
        if rest.is_empty() {
            return;
        }
        let Some(g) = &self.elements else {
            self.pattern.write(rest, at);
            return;
        };
        let size = self.element_bytes.max(1);
        let below = size.wrapping_sub(1);
        let shift = size.trailing_zeros();
        let mut one = [0u8; 8];
        let part = (at & below) as usize;
        if part > 0 {
            // In the middle of an element.
            let whole = &mut one[..size as usize];
            g.fill(at >> shift, whole);
            let n = whole.len().saturating_sub(part).min(rest.len());
            let (head, tail) = rest.split_at_mut(n);
            head.copy_from_slice(&whole[part..part.saturating_add(n)]);
            rest = tail;
            at = at.saturating_add(n as u64);
        }
        let whole = rest.len() & !(below as usize);
        let (middle, end) = rest.split_at_mut(whole);
        if !middle.is_empty() {
            g.fill(at >> shift, middle);
        }
        if !end.is_empty() {
            let whole = &mut one[..size as usize];
            g.fill(at.saturating_add(middle.len() as u64) >> shift, whole);
            let n = end.len();
            end.copy_from_slice(&whole[..n]);
        }
    }
}

/// Bytes set between launches, as by `cudaMemset`.
#[derive(Clone, Copy, Debug)]
struct Set {
    from: u64,
    to: u64,
    value: u8,
    /// Blocks that were not executed may have written it since.
    stale: bool,
}

/// Who stored to a granule, packed: executed block (from 1), thread, strong, instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

const SITES: u32 = 1 << 21;

impl Stamp {
    /// `block` counts the executed blocks of the session from 1.
    pub(crate) fn new(block: u32, thread: u32, strong: bool, site: u32) -> Stamp {
        let site = u64::from(site.min(SITES.wrapping_sub(1)));
        Stamp(u64::from(block) << 32 | u64::from(thread & 0x3ff) << 22 | u64::from(strong) << 21 | site)
    }

    /// That of the thread `lanes` further on.
    fn lane(self, lanes: u64) -> Stamp {
        Stamp(self.0.wrapping_add(lanes << 22))
    }

    pub(crate) fn block(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn thread(self) -> u64 {
        self.0 >> 22 & 0x3ff
    }

    fn strong(self) -> bool {
        self.0 >> 21 & 1 != 0
    }

    /// The instruction, if it has a number that fits.
    pub(crate) fn site(self) -> Option<u32> {
        let site = self.0 as u32 & SITES.wrapping_sub(1);
        (site < SITES.wrapping_sub(1)).then_some(site)
    }
}

/// The writers of a page's granules.
#[derive(Debug)]
struct Writers {
    /// Bytes of a granule, as a power of two.
    shift: u32,
    stamps: Vec<Stamp>,
}

struct Page {
    number: u64,
    /// Empty in tracked regions.
    data: Box<[u8]>,
    /// A bit per byte.
    written: Box<[u64]>,
    writers: Option<Writers>,
}

/// The pages of a region.
pub(crate) struct Pages {
    shift: u32,
    size_bytes: u64,
    map: HashMap<u64, u32, BuildHasherDefault<QuickHasher>>,
    list: Vec<Page>,
    /// The page of the last look-up.
    last: Cell<(u64, u32)>,
    sets: Vec<Set>,
    /// What unwritten bytes hold; `None` where the region has bytes of its own.
    source: Option<Source>,
    /// Bytes of memory taken.
    taken: u64,
    /// Written in this launch.
    touched: bool,
}

impl Pages {
    /// No pages yet, for a region of `size_bytes`. `page_bytes` is brought to a power of two from 64 to 1024.
    pub(crate) fn new(size_bytes: u64, page_bytes: u64, source: Option<Source>) -> Pages {
        let page = page_bytes.clamp(MIN_PAGE_BYTES, PAGE_BYTES).next_power_of_two();
        Pages {
            shift: page.trailing_zeros(),
            size_bytes,
            map: HashMap::default(),
            list: Vec::new(),
            last: Cell::new((u64::MAX, 0)),
            sets: Vec::new(),
            taken: source.as_ref().map_or(0, |s| s.base.len() as u64),
            source,
            touched: false,
        }
    }

    /// True if the bytes are here and nowhere else.
    pub(crate) fn sparse(&self) -> bool {
        self.source.is_some()
    }

    /// Bytes of host memory taken.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken
    }

    fn page_bytes(&self) -> u64 {
        1 << self.shift
    }

    fn find(&self, number: u64) -> Option<usize> {
        let (last, at) = self.last.get();
        if last == number {
            return Some(at as usize);
        }
        if self.list.is_empty() {
            return None;
        }
        let at = *self.map.get(&number)?;
        self.last.set((number, at));
        Some(at as usize)
    }

    /// What lies at `from` where no page is.
    fn unwritten(&self, from: u64, out: &mut [u8]) {
        let Some(source) = &self.source else { return };
        source.read(from, out);
        for s in &self.sets {
            let to = from.saturating_add(out.len() as u64);
            let (a, b) = (s.from.max(from), s.to.min(to));
            if a < b {
                out[a.saturating_sub(from) as usize..b.saturating_sub(from) as usize].fill(s.value);
            }
        }
    }

    fn make(&mut self, number: u64) -> usize {
        if let Some(i) = self.find(number) {
            return i;
        }
        let size = self.page_bytes();
        let start = number << self.shift;
        let mut data = Box::default();
        if self.sparse() {
            let len = size.min(self.size_bytes.saturating_sub(start)) as usize;
            let mut d = vec![0; size as usize].into_boxed_slice();
            self.unwritten(start, &mut d[..len]);
            data = d;
        }
        let words = (size / 64) as usize;
        let i = self.list.len();
        let overhead = size_of::<Page>().saturating_add(32) as u64;
        self.taken =
            self.taken.saturating_add(data.len() as u64).saturating_add(size / 8).saturating_add(overhead);
        self.list.push(Page { number, data, written: vec![0; words].into_boxed_slice(), writers: None });
        self.map.insert(number, i as u32);
        self.last.set((number, i as u32));
        i
    }

    /// Cuts `offset .. offset + len` at page boundaries: page, offset in it, offset in the range, length.
    fn cut(&self, offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> + use<> {
        let (shift, size) = (self.shift, self.page_bytes());
        let mut done = 0usize;
        std::iter::from_fn(move || {
            if done >= len {
                return None;
            }
            let at = offset.saturating_add(done as u64);
            let within = at & size.wrapping_sub(1);
            let n = (size.saturating_sub(within) as usize).min(len.saturating_sub(done));
            let item = (at >> shift, within as usize, done, n);
            done = done.saturating_add(n);
            Some(item)
        })
    }

    /// Bytes of a sparse region. The range is within it.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        for (number, within, at, n) in self.cut(offset, out.len()) {
            let part = &mut out[at..at.saturating_add(n)];
            match self.find(number) {
                Some(i) => part.copy_from_slice(&self.list[i].data[within..within.saturating_add(n)]),
                None => self.unwritten(offset.saturating_add(at as u64), part),
            }
        }
    }

    /// Stores to a sparse region, or notes a store to a tracked one. The range is within it.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.touched = true;
        for (number, within, at, n) in self.cut(offset, bytes.len()) {
            let i = self.make(number);
            let page = &mut self.list[i];
            if !page.data.is_empty() {
                page.data[within..within.saturating_add(n)].copy_from_slice(&bytes[at..at.saturating_add(n)]);
            }
            each_word(within as u64, n as u64, |w, m| page.written[w] |= m);
        }
    }

    /// Sets bytes between launches: nobody's store, but data. The range is within the region.
    pub(crate) fn set(&mut self, offset: u64, len: u64, value: u8) {
        let to = offset.saturating_add(len);
        self.sets.retain(|s| s.from < offset || s.to > to);
        self.sets.push(Set { from: offset, to, value, stale: false });
        let shift = self.shift;
        for p in &mut self.list {
            let start = p.number << shift;
            let (a, b) = (offset.max(start), to.min(start.saturating_add(1 << shift)));
            if a < b && !p.data.is_empty() {
                p.data[a.saturating_sub(start) as usize..b.saturating_sub(start) as usize].fill(value);
            }
        }
    }

    /// True if every byte was stored or set, as far as blocks that ran can tell.
    pub(crate) fn has_data(&self, offset: u64, len: u64) -> bool {
        self.cut(offset, len as usize).all(|(number, within, at, n)| {
            let written = self.find(number).is_some_and(|i| {
                let mut all = true;
                each_word(within as u64, n as u64, |w, m| all &= self.list[i].written[w] & m == m);
                all
            });
            let from = offset.saturating_add(at as u64);
            let to = from.saturating_add(n as u64);
            written || self.sets.iter().any(|s| !s.stale && s.from <= from && to <= s.to) || {
                // Byte by byte, where stores and sets meet.
                (from..to).all(|b| {
                    self.is_written(b) || self.sets.iter().any(|s| !s.stale && s.from <= b && b < s.to)
                })
            }
        })
    }

    fn is_written(&self, byte: u64) -> bool {
        let within = byte & self.page_bytes().wrapping_sub(1);
        self.find(byte >> self.shift)
            .is_some_and(|i| self.list[i].written[(within >> 6) as usize] >> (within & 63) & 1 != 0)
    }

    /// True if any of the bytes was stored.
    pub(crate) fn any_written(&self, offset: u64, len: u64) -> bool {
        (offset..offset.saturating_add(len)).any(|b| self.is_written(b))
    }

    /// Notes that consecutive threads from that of `me` on store `width` bytes each (a power of two) to `len` bytes, and
    /// gives the stamp of another executed block (numbered from `first` in this launch) that stored there, with the
    /// offset.
    pub(crate) fn claim(
        &mut self,
        offset: u64,
        len: u64,
        width: u64,
        me: Stamp,
        first: u32,
    ) -> Option<(Stamp, u64)> {
        let mut clash = None;
        let lane_shift = width.trailing_zeros();
        for (number, within, at, n) in self.cut(offset, len as usize) {
            let i = self.make(number);
            let size = self.page_bytes() as usize;
            let page = &mut self.list[i];
            let finest = (within | n).trailing_zeros().min(2).min(lane_shift);
            let writers = page.writers.get_or_insert_with(|| {
                self.taken = self.taken.saturating_add((size >> finest).saturating_mul(8) as u64);
                Writers { shift: finest, stamps: vec![Stamp::default(); size >> finest] }
            });
            if writers.shift > finest {
                let each = 1usize << writers.shift.saturating_sub(finest);
                let finer =
                    writers.stamps.iter().flat_map(|s| std::iter::repeat_n(*s, each)).collect::<Vec<_>>();
                let more = finer.len().saturating_sub(writers.stamps.len()).saturating_mul(8);
                self.taken = self.taken.saturating_add(more as u64);
                *writers = Writers { shift: finest, stamps: finer };
            }
            let shift = writers.shift;
            let range = within >> shift..within.saturating_add(n) >> shift;
            for g in range {
                let byte = (g << shift).saturating_sub(within).saturating_add(at) as u64;
                let old = writers.stamps[g];
                let other = old.block() >= first && old.block() != me.block();
                if clash.is_none() && other && !(old.strong() && me.strong()) {
                    clash = Some((old, offset.saturating_add(byte)));
                }
                writers.stamps[g] = me.lane(byte >> lane_shift);
            }
        }
        clash
    }

    /// Forgets all writers: the numbers of executed blocks begin anew.
    pub(crate) fn forget_writers(&mut self) {
        for p in &mut self.list {
            p.writers = None;
        }
    }

    /// A launch begins.
    pub(crate) fn start_launch(&mut self) {
        self.touched = false;
    }

    /// A launch that left blocks out has ended: true if it wrote here, so that what it did not write may be stale.
    pub(crate) fn end_partial(&mut self) -> bool {
        if self.touched {
            for s in &mut self.sets {
                s.stale = true;
            }
        }
        self.touched
    }

    /// The elements (of `size` bytes, a power of two up to 8) in `offset .. offset + len` of which a byte was stored:
    /// their byte offsets, ascending.
    pub(crate) fn written(&self, offset: u64, len: u64, size: u64) -> impl Iterator<Item = u64> + use<'_> {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        order.sort_unstable_by_key(|i| self.list[*i as usize].number);
        let end = offset.saturating_add(len);
        let ones = if size >= 64 { u64::MAX } else { (1u64 << size).wrapping_sub(1) };
        order.into_iter().flat_map(move |i| {
            let p = &self.list[i as usize];
            let start = p.number << self.shift;
            (0..self.page_bytes()).step_by(size.max(1) as usize).filter_map(move |b| {
                let hit = p.written[(b >> 6) as usize] >> (b & 63) & ones != 0;
                let at = start.saturating_add(b);
                (hit && at >= offset && at < end).then_some(at)
            })
        })
    }

    /// The bytes of `offset .. offset + len` that were neither stored nor set, as far as blocks that ran can tell: ascending
    /// ranges, none of them empty.
    pub(crate) fn gaps(&self, offset: u64, len: u64) -> Vec<std::ops::Range<u64>> {
        let end = offset.saturating_add(len);
        let mut known: Vec<std::ops::Range<u64>> = Vec::new();
        for p in &self.list {
            let start = p.number << self.shift;
            for (k, word) in p.written.iter().enumerate() {
                let at = start.saturating_add((k as u64) << 6);
                let mut rest = *word;
                while rest != 0 {
                    let from = rest.trailing_zeros();
                    let ones = (rest >> from).trailing_ones();
                    let to = from.saturating_add(ones);
                    known.push(at.saturating_add(u64::from(from))..at.saturating_add(u64::from(to)));
                    rest = if to >= 64 { 0 } else { rest >> to << to };
                }
            }
        }
        known.extend(self.sets.iter().filter(|s| !s.stale).map(|s| s.from..s.to));
        known.sort_unstable_by_key(|r| r.start);
        let (mut out, mut at) = (Vec::new(), offset);
        for r in known {
            if r.start > at && at < end {
                out.push(at..r.start.min(end));
            }
            at = at.max(r.end);
        }
        if at < end {
            out.push(at..end);
        }
        out
    }

    /// How many elements [`Pages::written`] gives.
    pub(crate) fn count_written(&self, offset: u64, len: u64, size: u64) -> u64 {
        self.written(offset, len, size).fold(0, |n, _| n.saturating_add(1))
    }
}

/// Calls `f(word, mask)` for the words that bits `offset .. offset + size` touch.
fn each_word(offset: u64, size: u64, mut f: impl FnMut(usize, u64)) {
    let end = offset.saturating_add(size);
    let mut at = offset;
    while at < end {
        let from = at & 63;
        let n = 64u64.saturating_sub(from).min(end.saturating_sub(at));
        let ones = if n >= 64 { u64::MAX } else { (1u64 << n).wrapping_sub(1) };
        f((at >> 6) as usize, ones << from);
        at = at.saturating_add(n);
    }
}

#[cfg(test)]
mod tests {
    use assay_tensor::{DType, Generator};

    use super::*;
    use crate::memory::fill::seed_of;
    use crate::options::Fill;

    fn source(elements: Option<Generated>) -> Source {
        let pattern = Pattern { kind: Fill::Noise, dtype: DType::F32, seed: seed_of(1, 0) };
        Source { base: Vec::new(), elements, element_bytes: 4, pattern }
    }

    fn pages(page_bytes: u64) -> Pages {
        let g = Generated::new(DType::F32, Generator::Index(9_999_991));
        Pages::new(1 << 36, page_bytes, Some(source(Some(g))))
    }

    fn f32_at(p: &Pages, element: u64) -> f32 {
        let mut b = [0; 4];
        p.read(element << 2, &mut b);
        f32::from_le_bytes(b)
    }

    #[test]
    fn unwritten_elements_come_from_their_index_and_written_ones_stay() {
        let mut p = pages(1024);
        let far = (1u64 << 33) + 5;
        assert_eq!(f32_at(&p, far), (far % 9_999_991 + 1) as f32);
        p.write(far * 4, &7f32.to_le_bytes());
        assert_eq!(f32_at(&p, far), 7.0);
        assert_eq!(f32_at(&p, far + 1), ((far + 1) % 9_999_991 + 1) as f32);
        assert_eq!(p.written(0, 1 << 36, 4).collect::<Vec<_>>(), [far * 4]);
        assert!(p.taken_bytes() < 2048, "{}", p.taken_bytes());
    }

    #[test]
    fn any_cut_of_a_range_reads_the_same_bytes() {
        for page in [64, 1024] {
            let mut p = pages(page);
            p.write(1000, &[0xab; 77]);
            p.set(1200, 300, 0xcd);
            let mut whole = vec![0; 3000];
            p.read(0, &mut whole);
            for cut in [1usize, 3, 7, 64, 1023] {
                let mut parts = vec![0; 3000];
                for (k, c) in parts.chunks_mut(cut).enumerate() {
                    p.read((k * cut) as u64, c);
                }
                assert_eq!(parts, whole, "page {page}, cut {cut}");
            }
            assert!(p.has_data(1000, 77) && p.has_data(1200, 300) && !p.has_data(1000, 78));
            p.write(1190, &[1; 10]);
            assert!(p.has_data(1190, 60), "a store beside a set");
        }
    }

    #[test]
    fn a_set_covers_pages_that_exist_and_pages_that_do_not() {
        let mut p = pages(64);
        p.write(0, &[9; 8]);
        p.set(4, 1 << 30, 0);
        let mut b = [1; 8];
        p.read(0, &mut b);
        assert_eq!(b, [9, 9, 9, 9, 0, 0, 0, 0]);
        p.read((1 << 30) - 4, &mut b);
        assert_eq!(b, [0; 8]);
        assert!(p.has_data(0, 100), "stored or set");
    }

    #[test]
    fn two_blocks_at_one_byte_clash_whatever_the_width_and_strong_ones_do_not() {
        let stamp = |block, strong| Stamp::new(block, 3, strong, 77);
        struct Claims(Pages);
        impl Claims {
            fn claim(&mut self, at: u64, len: u64, me: Stamp, first: u32) -> Option<(Stamp, u64)> {
                self.0.claim(at, len, len, me, first)
            }
        }
        let mut p = Claims(pages(64));
        assert_eq!(p.claim(16, 4, stamp(5, false), 5), None);
        assert_eq!(p.claim(20, 4, stamp(6, false), 5), None, "another word");
        assert_eq!(p.claim(16, 4, stamp(5, false), 5), None, "the same block");
        // A byte of the first word: granules become bytes.
        let (who, at) = p.claim(18, 1, stamp(7, false), 5).unwrap();
        assert_eq!((who.block(), who.thread(), who.site(), at), (5, 3, Some(77), 18));
        assert_eq!(p.claim(19, 1, stamp(5, false), 5), None);
        // An earlier launch is ordered before this one.
        assert_eq!(p.claim(18, 1, stamp(9, false), 8), None);
        assert_eq!(p.claim(32, 4, stamp(5, true), 5), None);
        assert_eq!(p.claim(32, 4, stamp(6, true), 5), None, "atomics of two blocks");
        assert!(p.claim(32, 4, stamp(7, false), 5).is_some());
        // Lanes from one page to the next, in pairs of words.
        let mut p = p.0;
        assert_eq!(p.claim(56, 32, 8, stamp(10, false), 10), None);
        let (who, at) = p.claim(76, 4, 4, stamp(11, false), 10).unwrap();
        assert_eq!((who.thread(), at), (3 + 2, 76));
    }
}
