//! Which bytes of global memory hold a value that someone wrote.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

/// A bit per byte of each region; a region without a map is initialised throughout.
#[derive(Default)]
pub(crate) struct InitMap {
    regions: Vec<Map>,
}

/// Words of 64 bits that a sparse map keeps together.
const CHUNK: usize = 16;
/// Longer ranges of a sparse map are kept as ranges.
const LONG: u64 = 1 << 16;

#[derive(Default)]
enum Map {
    /// Initialised throughout.
    #[default]
    All,
    Dense(Vec<u64>),
    Sparse(Sparse),
}

/// The map of a sparse region: words where something was stored, and what was set at once.
#[derive(Default)]
struct Sparse {
    chunks: BTreeMap<usize, [u64; CHUNK]>,
    /// Disjoint ranges of bytes, by where they begin.
    ranges: BTreeMap<u64, u64>,
}

impl Sparse {
    fn stored(&self, word: usize) -> u64 {
        self.chunks.get(&(word / CHUNK)).map_or(0, |c| c[word % CHUNK])
    }

    /// Bits of a word that ranges cover.
    fn ranged(&self, word: usize) -> u64 {
        let from = (word as u64).saturating_mul(64);
        let to = from.saturating_add(64);
        let mut bits = 0;
        for (a, b) in self.ranges.range(..to).rev().take_while(|(_, b)| **b > from) {
            each_word((*a).max(from), (*b).min(to).saturating_sub((*a).max(from)), |_, m| bits |= m);
        }
        bits
    }

    fn set(&mut self, offset: u64, size: u64) {
        if size > LONG {
            let (mut from, mut to) = (offset, offset.saturating_add(size));
            // Take in the ranges that this one touches.
            while let Some((a, b)) = self.ranges.range(..=to).next_back().map(|(a, b)| (*a, *b)) {
                if b < from {
                    break;
                }
                self.ranges.remove(&a);
                from = from.min(a);
                to = to.max(b);
            }
            self.ranges.insert(from, to);
            return;
        }
        each_word(offset, size, |w, m| self.chunks.entry(w / CHUNK).or_insert([0; CHUNK])[w % CHUNK] |= m);
    }

    fn missing(&self, offset: u64, size: u64) -> Option<(u64, u64)> {
        let end = offset.saturating_add(size);
        let mut have = 0u64;
        for (a, b) in &self.ranges {
            have = have.saturating_add((*b).min(end).saturating_sub((*a).max(offset)));
        }
        // The first gap: behind everything that leads up to it.
        let mut first = offset;
        let grow = |first: &mut u64| {
            if let Some((_, b)) = self.ranges.range(..=*first).next_back()
                && *b > *first
            {
                *first = *b;
            }
        };
        grow(&mut first);
        for (c, words) in self.chunks.range((offset / 64) as usize / CHUNK..) {
            for (k, stored) in words.iter().enumerate() {
                let word = c.saturating_mul(CHUNK).saturating_add(k);
                let from = (word as u64).saturating_mul(64);
                let (a, b) = (from.max(offset), from.saturating_add(64).min(end));
                if *stored == 0 || a >= b {
                    continue;
                }
                let mut within = 0;
                each_word(a, b.saturating_sub(a), |_, m| within = m);
                let alone = stored & within & !self.ranged(word);
                have = have.saturating_add(u64::from(alone.count_ones()));
                while first >= a && first < b && alone >> (first & 63) & 1 != 0 {
                    first = first.saturating_add(1);
                    grow(&mut first);
                }
            }
        }
        let gone = size.saturating_sub(have);
        (gone > 0).then(|| (first.saturating_sub(offset), gone))
    }
}

impl InitMap {
    fn declare(&mut self, region: usize, map: Map) {
        if self.regions.len() <= region {
            self.regions.resize_with(region.saturating_add(1), Map::default);
        }
        self.regions[region] = map;
    }

    /// Declares a region of `size` bytes, none of them initialised.
    pub(crate) fn add(&mut self, region: usize, size: u64) {
        self.declare(region, Map::Dense(vec![0; size.div_ceil(64) as usize]));
    }

    /// The same for a sparse region.
    pub(crate) fn add_sparse(&mut self, region: usize) {
        self.declare(region, Map::Sparse(Sparse::default()));
    }

    /// The words of a region's map; null where there is none, or none that handlers can use.
    pub(crate) fn words_mut(&mut self, region: usize) -> *mut u64 {
        match self.regions.get_mut(region) {
            Some(Map::Dense(map)) => map.as_mut_ptr(),
            _ => std::ptr::null_mut(),
        }
    }

    /// Marks bytes as initialised.
    pub(crate) fn set(&mut self, region: usize, offset: u64, size: u64) {
        match self.regions.get_mut(region) {
            Some(Map::Dense(map)) => each_word(offset, size, |w, m| {
                if let Some(word) = map.get_mut(w) {
                    *word |= m;
                }
            }),
            Some(Map::Sparse(map)) => map.set(offset, size),
            Some(Map::All) | None => {}
        }
    }

    /// True if all of the bytes are initialised.
    pub(crate) fn is_set(&self, region: usize, offset: u64, size: u64) -> bool {
        let mut ok = true;
        match self.regions.get(region) {
            Some(Map::Dense(map)) => {
                each_word(offset, size, |w, m| ok &= map.get(w).is_none_or(|word| word & m == m));
            }
            Some(Map::Sparse(map)) => {
                each_word(offset, size, |w, m| ok &= (map.stored(w) | map.ranged(w)) & m == m);
            }
            Some(Map::All) | None => {}
        }
        ok
    }

    /// First byte in a range that is not initialised, and how many there are.
    pub(crate) fn missing(&self, region: usize, offset: u64, size: u64) -> Option<(u64, u64)> {
        let map = match self.regions.get(region) {
            Some(Map::Dense(map)) => map,
            Some(Map::Sparse(map)) => return map.missing(offset, size),
            Some(Map::All) | None => return None,
        };
        let (mut first, mut count) = (None, 0u64);
        each_word(offset, size, |w, m| {
            let gone = m & !map.get(w).copied().unwrap_or(u64::MAX);
            if gone != 0 {
                let at = (w as u64).saturating_mul(64).saturating_add(u64::from(gone.trailing_zeros()));
                first = first.or(Some(at.saturating_sub(offset)));
                count = count.saturating_add(u64::from(gone.count_ones()));
            }
        });
        first.map(|f| (f, count))
    }

    /// Bytes that sparse maps take.
    pub(crate) fn sparse_bytes(&self) -> u64 {
        let sparse = self.regions.iter().map(|m| match m {
            Map::Sparse(s) => (s.chunks.len() as u64).saturating_mul(160),
            Map::All | Map::Dense(_) => 0,
        });
        sparse.fold(0, u64::saturating_add)
    }
}

/// Calls `f(word, mask)` for the words that bits `offset .. offset + size` touch.
fn each_word(offset: u64, size: u64, mut f: impl FnMut(usize, u64)) {
    let end = offset.saturating_add(size);
    let mut at = offset;
    while at < end {
        let word = at >> 6;
        let from = at & 63;
        let n = 64u64.saturating_sub(from).min(end.saturating_sub(at));
        let ones = if n >= 64 { u64::MAX } else { (1u64 << n).wrapping_sub(1) };
        f(word as usize, ones << from);
        at = at.saturating_add(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_tracked_one_by_one() {
        let mut m = InitMap::default();
        m.add(1, 200);
        assert!(m.is_set(0, 0, 1000), "a region without a map is initialised");
        assert_eq!(m.missing(1, 0, 200), Some((0, 200)));
        m.set(1, 0, 63);
        m.set(1, 64, 136);
        assert_eq!(m.missing(1, 0, 200), Some((63, 1)));
        assert!(!m.is_set(1, 60, 4) && m.is_set(1, 60, 3) && m.is_set(1, 64, 100));
        m.set(1, 62, 4);
        assert_eq!(m.missing(1, 0, 200), None);
    }

    #[test]
    fn a_sparse_map_says_the_same_as_a_dense_one() {
        let size = 1 << 19;
        let mut m = InitMap::default();
        m.add(0, size);
        m.add_sparse(1);
        let mut state = 7u32;
        let mut next = |below: u64| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from(state >> 4) % below
        };
        for step in 0..400 {
            let len = if step % 20 == 3 { LONG + next(9000) } else { next(300) };
            let from = if step % 7 == 0 { 0 } else { next(size - len) };
            m.set(0, from, len);
            m.set(1, from, len);
            let (a, n) = (next(size / 2), next(size / 2));
            assert_eq!(m.missing(0, a, n), m.missing(1, a, n), "step {step}: {a} + {n}");
            let (a, n) = (next(size - 100), 1 + next(99));
            assert_eq!(m.is_set(0, a, n), m.is_set(1, a, n), "step {step}: {a} + {n}");
        }
        assert_eq!(m.missing(0, 0, size), m.missing(1, 0, size));
        let mut far = InitMap::default();
        far.add_sparse(0);
        assert_eq!(far.missing(0, 0, 1 << 38), Some((0, 1 << 38)));
        far.set(0, 0, 1 << 38);
        assert_eq!(far.missing(0, 0, 1 << 38), None);
    }
}
