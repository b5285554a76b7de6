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

    /// `new` in the lanes whose bits in `mask` are set, `old` in the others.
    #[inline(always)]
    fn blend32(old: &[u32; 8], new: &[u32; 8], mask: u32) -> [u32; 8] {
        std::array::from_fn(|k| if mask >> k & 1 != 0 { new[k] } else { old[k] })
    }

    /// As [`Simd::blend32`], of 4 lanes.
    #[inline(always)]
    fn blend64(old: &[u64; 4], new: &[u64; 4], mask: u32) -> [u64; 4] {
        std::array::from_fn(|k| if mask >> k & 1 != 0 { new[k] } else { old[k] })
    }

    /// The words at `p` in the lanes whose bits in `mask` are set, `old` in the others, whose words are not touched.
    ///
    /// # Safety
    /// 4 bytes can be read at `p + 4 * k` for the lanes `k` of `mask`.
    #[inline(always)]
    unsafe fn load_some(p: *const u8, old: &[u32; 8], mask: u32) -> [u32; 8] {
        let mut out = *old;
        for (k, out) in out.iter_mut().enumerate() {
            if mask >> k & 1 != 0 {
                // SAFETY: the caller's promise.
                *out = unsafe { p.wrapping_add(4 * k).cast::<u32>().read_unaligned() };
            }
        }
        out
    }

    /// `v[(k + by) % 32]` in lane k; `by` is below 32.
    #[inline(always)]
    fn rotate32(v: &[u32; 2 * HALF], by: usize) -> [u32; 2 * HALF] {
        std::array::from_fn(|k| v[(k + by) % (2 * HALF)])
    }

    /// `v[k ^ with]` in lane k; `with` is below 32.
    #[inline(always)]
    fn exchange32(v: &[u32; 2 * HALF], with: usize) -> [u32; 2 * HALF] {
        std::array::from_fn(|k| v[(k ^ with) % (2 * HALF)])
    }

    /// True if all lanes are the same.
    #[inline(always)]
    fn uniform32(v: &[u32; 2 * HALF]) -> bool {
        v.iter().fold(0, |m, x| m | (x ^ v[0])) == 0
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

    /// True if the addresses of the lanes of `mask` are `low` or `high` (lanes 16 to 31) and `stride` more for each lane
    /// of the half.
    #[inline(always)]
    fn rises32(a: &[u32; 2 * HALF], stride: u32, mask: u32, low: u32, high: u32) -> bool {
        (0..2 * HALF).all(|k| {
            let base = if k < HALF { low } else { high };
            mask >> k & 1 == 0 || a[k] == base.wrapping_add(stride.wrapping_mul((k % HALF) as u32))
        })
    }

    /// As [`Simd::rises32`].
    #[inline(always)]
    fn rises64(a: &[u64; 2 * HALF], stride: u64, mask: u32, low: u64, high: u64) -> bool {
        (0..2 * HALF).all(|k| {
            let base = if k < HALF { low } else { high };
            mask >> k & 1 == 0 || a[k] == base.wrapping_add(stride.wrapping_mul((k % HALF) as u64))
        })
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
    fn blend32(old: &[u32; 8], new: &[u32; 8], mask: u32) -> [u32; 8] {
        use std::arch::x86_64::{_mm256_blendv_epi8, _mm256_loadu_si256, _mm256_storeu_si256};
        let mut out = [0; 8];
        // SAFETY: 32 bytes each; code of this variant runs only where AVX2 is available.
        unsafe {
            let (x, y) = (_mm256_loadu_si256(old.as_ptr().cast()), _mm256_loadu_si256(new.as_ptr().cast()));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_blendv_epi8(x, y, lanes_of(mask)));
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn blend64(old: &[u64; 4], new: &[u64; 4], mask: u32) -> [u64; 4] {
        use std::arch::x86_64::*;
        let mut out = [0; 4];
        // SAFETY: as above.
        unsafe {
            let (x, y) = (_mm256_loadu_si256(old.as_ptr().cast()), _mm256_loadu_si256(new.as_ptr().cast()));
            let bits = _mm256_setr_epi64x(1, 2, 4, 8);
            let all = _mm256_and_si256(_mm256_set1_epi64x(i64::from(mask)), bits);
            let chosen = _mm256_cmpeq_epi64(all, bits);
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_blendv_epi8(x, y, chosen));
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_some(p: *const u8, old: &[u32; 8], mask: u32) -> [u32; 8] {
        use std::arch::x86_64::*;
        let mut out = [0; 8];
        // SAFETY: as above; lanes that are not chosen are not read.
        unsafe {
            let chosen = lanes_of(mask);
            let new = _mm256_maskload_epi32(p.cast(), chosen);
            let x = _mm256_loadu_si256(old.as_ptr().cast());
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_blendv_epi8(x, new, chosen));
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn rotate32(v: &[u32; 2 * HALF], by: usize) -> [u32; 2 * HALF] {
        use std::arch::x86_64::*;
        let mut out = [0; 2 * HALF];
        // SAFETY: 32 bytes at multiples of 8 words below 32; AVX2 as above.
        unsafe {
            let at = |j: usize| _mm256_loadu_si256(v.as_ptr().add(8 * (j & 3)).cast());
            let count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            // The permutation takes its indices modulo 8.
            let order = _mm256_add_epi32(count, _mm256_set1_epi32(by as i32 & 7));
            let next = _mm256_cmpgt_epi32(order, _mm256_set1_epi32(7));
            for j in 0..4 {
                let x = _mm256_permutevar8x32_epi32(at(j + by / 8), order);
                let y = _mm256_permutevar8x32_epi32(at(j + by / 8 + 1), order);
                _mm256_storeu_si256(out[8 * j..].as_mut_ptr().cast(), _mm256_blendv_epi8(x, y, next));
            }
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn exchange32(v: &[u32; 2 * HALF], with: usize) -> [u32; 2 * HALF] {
        use std::arch::x86_64::*;
        let mut out = [0; 2 * HALF];
        // SAFETY: as above.
        unsafe {
            let at = |j: usize| _mm256_loadu_si256(v.as_ptr().add(8 * (j & 3)).cast());
            let count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let order = _mm256_xor_si256(count, _mm256_set1_epi32(with as i32 & 7));
            for j in 0..4 {
                let x = _mm256_permutevar8x32_epi32(at(j ^ (with / 8)), order);
                _mm256_storeu_si256(out[8 * j..].as_mut_ptr().cast(), x);
            }
        }
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn uniform32(v: &[u32; 2 * HALF]) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: four times 32 bytes, as above.
        unsafe {
            let first = _mm256_set1_epi32(v[0] as i32);
            let differ = |j: usize| _mm256_xor_si256(_mm256_loadu_si256(v[8 * j..].as_ptr().cast()), first);
            let bits =
                _mm256_or_si256(_mm256_or_si256(differ(0), differ(1)), _mm256_or_si256(differ(2), differ(3)));
            _mm256_testz_si256(bits, bits) != 0
        }
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
    fn rises32(a: &[u32; 2 * HALF], stride: u32, mask: u32, low: u32, high: u32) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: four times 32 bytes; code of this variant runs only where AVX2 is available.
        unsafe {
            let s = stride as i32;
            let steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(s));
            let eight = s.wrapping_mul(8);
            let bases = [low as i32, (low as i32).wrapping_add(eight)];
            let above = [high as i32, (high as i32).wrapping_add(eight)];
            let mut bits = _mm256_setzero_si256();
            for (j, base) in bases.into_iter().chain(above).enumerate() {
                let want = _mm256_add_epi32(_mm256_set1_epi32(base), steps);
                let differ = _mm256_xor_si256(_mm256_loadu_si256(a[8 * j..].as_ptr().cast()), want);
                bits = _mm256_or_si256(bits, _mm256_and_si256(differ, lanes_of(mask >> (8 * j))));
            }
            _mm256_testz_si256(bits, bits) != 0
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn rises64(a: &[u64; 2 * HALF], stride: u64, mask: u32, low: u64, high: u64) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: eight times 32 bytes, as above.
        unsafe {
            let s = stride as i64;
            let four = _mm256_set1_epi64x(s.wrapping_mul(4));
            let steps = _mm256_setr_epi64x(0, s, s.wrapping_mul(2), s.wrapping_mul(3));
            let lanes = _mm256_setr_epi64x(1, 2, 4, 8);
            let mut bits = _mm256_setzero_si256();
            let mut want = steps;
            for j in 0..8 {
                if j % 4 == 0 {
                    let base = if j == 0 { low } else { high };
                    want = _mm256_add_epi64(_mm256_set1_epi64x(base as i64), steps);
                }
                let differ = _mm256_xor_si256(_mm256_loadu_si256(a[4 * j..].as_ptr().cast()), want);
                let some = _mm256_and_si256(_mm256_set1_epi64x(i64::from(mask >> (4 * j))), lanes);
                bits = _mm256_or_si256(bits, _mm256_and_si256(differ, _mm256_cmpeq_epi64(some, lanes)));
                want = _mm256_add_epi64(want, four);
            }
            _mm256_testz_si256(bits, bits) != 0
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

/// All ones in the lanes whose bits in `mask` are set.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn lanes_of(mask: u32) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::*;
    // SAFETY: the caller's promise.
    unsafe {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
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
    fn addresses_of_some_lanes_rise_whatever_the_others_hold() {
        let mut state = 1u32;
        for round in 0..400u32 {
            state = state.wrapping_mul(0x9e37_79b9).wrapping_add(round);
            let mask = state ^ state >> 15;
            let stride = [0, 1, 4, 8][round as usize % 4];
            let at =
                |k: usize| (if k < 16 { 900 } else { u32::MAX - 20 }).wrapping_add(stride * (k as u32 % 16));
            // Lanes that do not count hold something else.
            let a: [u32; 32] = std::array::from_fn(|k| at(k) ^ u32::from(mask >> k & 1 == 0));
            let rise = |a: &[u32; 32]| {
                let wide = a.map(|v| u64::from(v) << 31);
                let (low, high) = (900, u32::MAX - 20);
                let (far, up) = (u64::from(low) << 31, u64::from(high) << 31);
                // The lanes behind the wrap in 32 bits do not wrap in 64.
                let short = mask & if stride == 0 { u32::MAX } else { 0xffff | 3 << 16 };
                let mut all = vec![
                    Portable::rises32(a, stride, mask, low, high),
                    Portable::rises64(&wide, u64::from(stride) << 31, short, far, up),
                ];
                if wide_available() {
                    all.push(Wide::rises32(a, stride, mask, low, high));
                    all.push(Wide::rises64(&wide, u64::from(stride) << 31, short, far, up));
                }
                all
            };
            assert!(rise(&a).into_iter().all(|r| r), "{mask:#x} {stride}");
            let lane = (state >> 7) as usize % 32;
            let mut broken = a;
            broken[lane] ^= 0x4000;
            let counts = mask >> lane & 1 != 0;
            let short = counts && (stride == 0 || lane < 18);
            let want = [!counts, !short, !counts, !short];
            assert_eq!(rise(&broken), want[..rise(&broken).len()], "{mask:#x} {stride} {lane}");
        }
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

    /// What a variant makes of moves between lanes.
    fn moves<S: Simd>(v: &[u32; 32], by: usize, mask: u32) -> Vec<u32> {
        let (old, new) = (v[..8].as_array().expect("8"), v[8..16].as_array().expect("8"));
        let wide = |from: usize| -> [u64; 4] { std::array::from_fn(|k| u64::from(v[from + k]) << 20 | 5) };
        let mut out = S::rotate32(v, by).to_vec();
        out.extend(S::exchange32(v, by));
        out.extend(S::blend32(old, new, mask));
        out.extend(S::blend64(&wide(0), &wide(4), mask).map(|x| (x >> 20) as u32));
        // SAFETY: eight words behind the eighth.
        out.extend(unsafe { S::load_some(v[8..].as_ptr().cast(), old, mask) });
        out.push(u32::from(S::uniform32(v)));
        out
    }

    #[test]
    fn both_variants_move_lanes_alike() {
        let v: [u32; 32] = std::array::from_fn(|k| (k as u32 + 1).wrapping_mul(0x9e37_79b9));
        for by in 0..32 {
            for mask in 0..256 {
                let portable = moves::<Portable>(&v, by, mask);
                assert_eq!((portable[0], portable[32]), (v[by], v[by]), "{by}");
                if wide_available() {
                    assert_eq!(moves::<Wide>(&v, by, mask), portable, "{by} {mask:#x}");
                }
            }
        }
        for k in 0..32 {
            let mut same = [7; 32];
            assert!(Portable::uniform32(&same) && (!wide_available() || Wide::uniform32(&same)));
            same[k] = 8;
            assert!(!Portable::uniform32(&same));
            assert!(!wide_available() || !Wide::uniform32(&same));
        }
    }

    #[test]
    fn lanes_that_are_not_chosen_are_not_read() {
        // The first four words are the last of their allocation's: what lies behind must not be touched.
        let words = vec![1u32, 2, 3, 4].into_boxed_slice();
        let old = [9; 8];
        let want = [1, 9, 3, 4, 9, 9, 9, 9];
        // SAFETY: the chosen lanes are within the four words.
        unsafe {
            assert_eq!(Portable::load_some(words.as_ptr().cast(), &old, 0b1101), want);
            if wide_available() {
                assert_eq!(Wide::load_some(words.as_ptr().cast(), &old, 0b1101), want);
            }
        }
    }
}
