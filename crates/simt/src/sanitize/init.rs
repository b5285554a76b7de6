//! Which bytes of global memory hold a value that someone wrote.
#![warn(clippy::arithmetic_side_effects)]

/// A bit per byte of each region; a region without a map is initialised throughout.
#[derive(Default)]
pub(crate) struct InitMap {
    regions: Vec<Option<Vec<u64>>>,
}

impl InitMap {
    /// Declares a region of `size` bytes, none of them initialised.
    pub(crate) fn add(&mut self, region: usize, size: u64) {
        if self.regions.len() <= region {
            self.regions.resize(region.saturating_add(1), None);
        }
        self.regions[region] = Some(vec![0; size.div_ceil(64) as usize]);
    }

    /// The words of a region's map; null where there is none.
    pub(crate) fn words_mut(&mut self, region: usize) -> *mut u64 {
        match self.regions.get_mut(region) {
            Some(Some(map)) => map.as_mut_ptr(),
            _ => std::ptr::null_mut(),
        }
    }

    /// Marks bytes as initialised.
    pub(crate) fn set(&mut self, region: usize, offset: u64, size: u64) {
        let Some(Some(map)) = self.regions.get_mut(region) else { return };
        each_word(offset, size, |w, m| {
            if let Some(word) = map.get_mut(w) {
                *word |= m;
            }
        });
    }

    /// True if all of the bytes are initialised.
    pub(crate) fn is_set(&self, region: usize, offset: u64, size: u64) -> bool {
        let Some(Some(map)) = self.regions.get(region) else { return true };
        let mut ok = true;
        each_word(offset, size, |w, m| ok &= map.get(w).is_none_or(|word| word & m == m));
        ok
    }

    /// First byte in a range that is not initialised, and how many there are.
    pub(crate) fn missing(&self, region: usize, offset: u64, size: u64) -> Option<(u64, u64)> {
        let Some(Some(map)) = self.regions.get(region) else { return None };
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
}
