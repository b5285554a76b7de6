//! Bytes as a sequence of choices: what a fuzzer's input, or a seed, decides.

/// Reads choices off bytes. When they are used up every choice is the first of its alternatives, so alternatives are
/// listed simplest first.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    /// The choices that `bytes` make.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, at: 0 }
    }

    /// True if all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let b = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        b
    }

    /// 64 bits, eight bytes of input.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |w, k| w | u64::from(self.byte()) << (8 * k))
    }

    /// One of `0..n`; 0 for `n` below 2, which takes no byte.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0 | 1 => 0,
            2..=256 => usize::from(self.byte()) * n / 256,
            _ => {
                let w = u64::from(self.byte()) << 16 | u64::from(self.byte()) << 8 | u64::from(self.byte());
                ((w * n as u64) >> 24) as usize
            }
        }
    }

    /// True in about `per_256` of 256 cases; false when nothing is left.
    pub fn chance(&mut self, per_256: u16) -> bool {
        u16::from(self.byte()) >= 256u16.saturating_sub(per_256)
    }

    /// One of a list.
    ///
    /// # Panics
    /// On an empty list.
    pub fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the bytes of seeded runs.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// That many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.word().to_le_bytes()).collect();
        out.truncate(len);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_stay_in_range_and_end_in_the_first() {
        let bytes = Random(1).bytes(4096);
        let mut c = Choices::new(&bytes);
        let mut seen = [0usize; 5];
        for _ in 0..1000 {
            seen[c.below(5)] += 1;
            assert!(c.below(1000) < 1000);
        }
        assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
        let mut empty = Choices::new(&[]);
        assert!(empty.is_empty());
        assert_eq!((empty.below(9), empty.word(), empty.chance(255)), (0, 0, false));
        assert!(Choices::new(&[0]).chance(256));
    }
}
