//! Which variant of the handlers runs.
//!
//! Every handler exists twice: compiled for AVX2 + FMA + F16C, and for any processor. Both inline the same
//! generic code; the only difference in the source is how a fused multiply-add is written. The choice is made
//! once per process: by the processor, or `ASSAY_SIMD=portable`.

use std::sync::OnceLock;

/// A handler variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// AVX2, FMA, F16C, BMI.
    Wide,
    /// Any processor.
    Portable,
}

/// Compile-time side of [`Variant`].
pub(crate) trait Simd {
    /// Hardware fused multiply-add.
    const FMA: bool;

    /// The highest bit of each lane, lane 0 lowest.
    #[inline(always)]
    fn high_bits32(lanes: &[u32; 8]) -> u32 {
        lanes.iter().enumerate().fold(0, |m, (k, v)| m | (v >> 31) << k)
    }

    /// As [`Simd::high_bits32`].
    #[inline(always)]
    fn high_bits64(lanes: &[u64; 4]) -> u32 {
        lanes.iter().enumerate().fold(0, |m, (k, v)| m | ((v >> 63) as u32) << k)
    }

    /// `v[order[k]]` in lane k; `order` is below 8.
    #[inline(always)]
    fn permute8(v: &[u32; 8], order: &[u32; 8]) -> [u32; 8] {
        order.map(|k| v[k as usize & 7])
    }

    /// How addresses lie: 1 if lanes 0–15 and 16–31 each rise by `stride`, 2 if each half shares one, else 0.
    #[inline(always)]
    fn kind32(a: &[u32; 2 * HALF], stride: u32) -> u32 {
        let (mut uniform, mut unit) = (0u32, 0u32);
        for k in 0..HALF {
            let step = stride.wrapping_mul(k as u32);
            uniform |= (a[k] ^ a[0]) | (a[HALF + k] ^ a[HALF]);
            unit |= (a[k] ^ a[0].wrapping_add(step)) | (a[HALF + k] ^ a[HALF].wrapping_add(step));
        }
        kind(unit == 0, uniform == 0)
    }

    /// As [`Simd::kind32`].
    #[inline(always)]
    fn kind64(a: &[u64; 2 * HALF], stride: u64) -> u32 {
        let (mut uniform, mut unit) = (0u64, 0u64);
        for k in 0..HALF {
            let step = stride.wrapping_mul(k as u64);
            uniform |= (a[k] ^ a[0]) | (a[HALF + k] ^ a[HALF]);
            unit |= (a[k] ^ a[0].wrapping_add(step)) | (a[HALF + k] ^ a[HALF].wrapping_add(step));
        }
        kind(unit == 0, uniform == 0)
    }

    /// Asks for the line at `p` ahead of time. Any address will do.
    #[inline(always)]
    fn prefetch(_p: *const u8) {}
}

/// Lanes of a half-warp.
const HALF: usize = 16;

/// [`Variant::Wide`].
pub(crate) struct Wide;
impl Simd for Wide {
    const FMA: bool = true;

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn high_bits32(lanes: &[u32; 8]) -> u32 {
        use std::arch::x86_64::{_mm256_castsi256_ps, _mm256_loadu_si256, _mm256_movemask_ps};
        // SAFETY: 32 bytes; code of this variant runs only where AVX2 is available.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_loadu_si256(lanes.as_ptr().cast()))) as u32 }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn high_bits64(lanes: &[u64; 4]) -> u32 {
        use std::arch::x86_64::{_mm256_castsi256_pd, _mm256_loadu_si256, _mm256_movemask_pd};
        // SAFETY: as above.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_loadu_si256(lanes.as_ptr().cast()))) as u32 }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn permute8(v: &[u32; 8], order: &[u32; 8]) -> [u32; 8] {
        use std::arch::x86_64::{_mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_storeu_si256};
        let mut out = [0; 8];
        // SAFETY: 32 bytes each; code of this variant runs only where AVX2 is available.
        unsafe {
            let (v, order) =
                (_mm256_loadu_si256(v.as_ptr().cast()), _mm256_loadu_si256(order.as_ptr().cast()));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_permutevar8x32_epi32(v, order));
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn kind32(a: &[u32; 2 * HALF], stride: u32) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: four times 32 bytes; code of this variant runs only where AVX2 is available.
        unsafe {
            let at = |k: usize| _mm256_loadu_si256(a[k..].as_ptr().cast());
            let differ = |v, w| _mm256_xor_si256(v, w);
            let (low, high) = (_mm256_set1_epi32(a[0] as i32), _mm256_set1_epi32(a[HALF] as i32));
            let s = stride as i32;
            let steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(s));
            let more = _mm256_add_epi32(steps, _mm256_set1_epi32(s.wrapping_mul(8)));
            let (v, w, x, y) = (at(0), at(8), at(16), at(24));
            let l = _mm256_or_si256(
                differ(v, _mm256_add_epi32(low, steps)),
                differ(w, _mm256_add_epi32(low, more)),
            );
            let h = _mm256_or_si256(
                differ(x, _mm256_add_epi32(high, steps)),
                differ(y, _mm256_add_epi32(high, more)),
            );
            let bits = _mm256_or_si256(l, h);
            if _mm256_testz_si256(bits, bits) != 0 {
                return 1;
            }
            let l = _mm256_or_si256(differ(v, low), differ(w, low));
            let h = _mm256_or_si256(differ(x, high), differ(y, high));
            let bits = _mm256_or_si256(l, h);
            kind(false, _mm256_testz_si256(bits, bits) != 0)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn kind64(a: &[u64; 2 * HALF], stride: u64) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: eight times 32 bytes, as above.
        unsafe {
            let at = |k: usize| _mm256_loadu_si256(a[k..].as_ptr().cast());
            let (low, high) = (_mm256_set1_epi64x(a[0] as i64), _mm256_set1_epi64x(a[HALF] as i64));
            let s = stride as i64;
            let four = _mm256_set1_epi64x(s.wrapping_mul(4));
            let mut steps = _mm256_setr_epi64x(0, s, s.wrapping_mul(2), s.wrapping_mul(3));
            let mut bits = _mm256_setzero_si256();
            for k in [0, 4, 8, 12] {
                let l = _mm256_xor_si256(at(k), _mm256_add_epi64(low, steps));
                let h = _mm256_xor_si256(at(HALF + k), _mm256_add_epi64(high, steps));
                bits = _mm256_or_si256(bits, _mm256_or_si256(l, h));
                steps = _mm256_add_epi64(steps, four);
            }
            if _mm256_testz_si256(bits, bits) != 0 {
                return 1;
            }
            let mut bits = _mm256_setzero_si256();
            for k in [0, 4, 8, 12] {
                let (l, h) = (_mm256_xor_si256(at(k), low), _mm256_xor_si256(at(HALF + k), high));
                bits = _mm256_or_si256(bits, _mm256_or_si256(l, h));
            }
            kind(false, _mm256_testz_si256(bits, bits) != 0)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn prefetch(p: *const u8) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which does nothing where the address is not mapped.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
}

#[inline(always)]
fn kind(unit: bool, uniform: bool) -> u32 {
    if unit {
        1
    } else if uniform {
        2
    } else {
        0
    }
}

/// [`Variant::Portable`].
pub(crate) struct Portable;
impl Simd for Portable {
    const FMA: bool = false;
}

/// The variant of this process.
pub(crate) fn variant() -> Variant {
    static CHOICE: OnceLock<Variant> = OnceLock::new();
    *CHOICE.get_or_init(|| {
        if std::env::var_os("ASSAY_SIMD").is_some_and(|v| v == "portable") {
            return Variant::Portable;
        }
        if wide_available() { Variant::Wide } else { Variant::Portable }
    })
}

/// True if the processor has what [`Variant::Wide`] needs.
pub(crate) fn wide_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Fused multiply-add, rounded once.
#[inline(always)]
pub(crate) fn fma32<S: Simd>(a: f32, b: f32, c: f32) -> f32 {
    if S::FMA { a.mul_add(b, c) } else { libm::fmaf(a, b, c) }
}

/// Fused multiply-add, rounded once.
#[inline(always)]
pub(crate) fn fma64<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::FMA { a.mul_add(b, c) } else { libm::fma(a, b, c) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both variants on `a`.
    fn kinds(a: &[u32; 32], stride: u32) -> [u32; 4] {
        let wide = a.map(|v| u64::from(v) << 33 | 7);
        let far = u64::from(stride) << 33;
        let portable = [Portable::kind32(a, stride), Portable::kind64(&wide, far)];
        if !wide_available() {
            return [portable[0], portable[1], portable[0], portable[1]];
        }
        [portable[0], portable[1], Wide::kind32(a, stride), Wide::kind64(&wide, far)]
    }

    #[test]
    fn addresses_are_told_apart_by_halves() {
        let from = |f: fn(u32) -> u32| -> [u32; 32] { std::array::from_fn(|k| f(k as u32)) };
        for stride in [1, 4, 16] {
            let unit: [u32; 32] =
                std::array::from_fn(|k| (if k < 16 { 900 } else { 77 }) + stride * (k as u32 % 16));
            assert_eq!(kinds(&unit, stride), [1; 4]);
            for k in 0..32 {
                let mut broken = unit;
                broken[k] ^= 0x8000;
                assert_eq!(kinds(&broken, stride), [0; 4], "lane {k}");
            }
        }
        let uniform = from(|k| if k < 16 { 5 } else { 8 });
        assert_eq!(kinds(&uniform, 4), [2; 4]);
        for k in 0..32 {
            let mut broken = uniform;
            broken[k] += 1;
            assert_eq!(kinds(&broken, 4), [0; 4], "lane {k}");
        }
        // Around the end of the address space.
        assert_eq!(kinds(&from(|k| (k % 16).wrapping_sub(8).wrapping_mul(4)), 4), [1; 4]);
        assert_eq!(kinds(&from(|_| 9), 0), [1; 4]);
    }

    #[test]
    fn masks_take_the_highest_bit_of_each_lane() {
        let a: [u32; 8] = [1, 1 << 31, 0, u32::MAX, 0x7fff_ffff, 1 << 31, 0, 1 << 31];
        let b: [u64; 4] = [1 << 63, u64::MAX >> 1, 1 << 31, u64::MAX];
        assert_eq!((Portable::high_bits32(&a), Portable::high_bits64(&b)), (0b1010_1010, 0b1001));
        if wide_available() {
            assert_eq!((Wide::high_bits32(&a), Wide::high_bits64(&b)), (0b1010_1010, 0b1001));
        }
    }
}
