//! Philox4x32-10, the counter-based generator behind every random value.
//!
//! Source: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), §3.3 and
//! the known-answer vectors of its reference implementation (Random123 `kat_vectors`).

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// Ten rounds of Philox-4x32: four random words from a 128-bit counter and a 64-bit key.
#[inline]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for round in 0..10 {
        if round > 0 {
            k = [k[0].wrapping_add(W0), k[1].wrapping_add(W1)];
        }
        let p0 = u64::from(M0) * u64::from(c[0]);
        let p1 = u64::from(M1) * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
    }
    c
}

/// One sequence of random values: element `i` depends on (seed, stream, i) alone.
///
/// The seed is the key; the counter is (block of four, stream), so streams of one seed never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    seed: u64,
    stream: u64,
}

impl Stream {
    /// The sequence number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Stream { seed, stream }
    }

    /// The four words at block `block`, which are elements `4*block .. 4*block + 4`.
    #[inline]
    pub fn block(&self, block: u64) -> [u32; 4] {
        philox4x32_10(
            [block as u32, (block >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32],
            [self.seed as u32, (self.seed >> 32) as u32],
        )
    }

    /// 32 random bits for element `i`.
    #[inline]
    pub fn u32_at(&self, i: u64) -> u32 {
        self.block(i / 4)[(i % 4) as usize]
    }

    /// 64 random bits for element `i` (two words of block `i`, so not the words of [`Stream::u32_at`]).
    #[inline]
    pub fn u64_at(&self, i: u64) -> u64 {
        let b = self.block(i);
        u64::from(b[0]) | (u64::from(b[1]) << 32)
    }

    /// A value in [0, 1) with 24 random bits, as `torch.rand` has them: never 1.
    #[inline]
    pub fn uniform_at(&self, i: u64) -> f32 {
        unit(self.u32_at(i))
    }

    /// A standard normal value (Box–Muller on two words of block `i`), by a pinned libm.
    #[inline]
    pub fn normal_at(&self, i: u64) -> f64 {
        let b = self.block(i);
        // 53 and 32 bits: u in (0, 1] so that the logarithm is finite.
        let u = ((((u64::from(b[0]) << 21) ^ u64::from(b[1] >> 11)) + 1) as f64)
            * (1.0 / 9_007_199_254_740_993.0);
        let v = f64::from(b[2]) * (1.0 / 4_294_967_296.0);
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(2.0 * core::f64::consts::PI * v)
    }

    /// An integer in `0..n` (n > 0) for element `i`; the bias is below n / 2^64.
    #[inline]
    pub fn below_at(&self, i: u64, n: u64) -> u64 {
        ((u128::from(self.u64_at(i)) * u128::from(n)) >> 64) as u64
    }
}

/// The top 24 bits of a word as a float in [0, 1).
#[inline]
pub fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_reference_implementation_hold() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn uniform_values_stay_below_one_and_have_the_right_mean() {
        let s = Stream::new(7, 0);
        let n = 100_000u64;
        let mean = (0..n).map(|i| f64::from(s.uniform_at(i))).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 5e-3, "mean {mean}");
        assert_eq!(unit(u32::MAX), 1.0 - 1.0 / 16_777_216.0);
    }

    #[test]
    fn normal_values_have_mean_zero_and_unit_variance() {
        let s = Stream::new(1, 3);
        let n = 100_000u64;
        let (mut a, mut b) = (0.0, 0.0);
        for i in 0..n {
            let x = s.normal_at(i);
            a += x;
            b += x * x;
        }
        let (mean, var) = (a / n as f64, b / n as f64);
        assert!(mean.abs() < 1.5e-2 && (var - 1.0).abs() < 2e-2, "mean {mean} variance {var}");
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Stream::new(1, 0).u32_at(5), Stream::new(1, 1).u32_at(5));
        assert_ne!(Stream::new(1, 0).u32_at(5), Stream::new(2, 0).u32_at(5));
    }
}
