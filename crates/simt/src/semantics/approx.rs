//! Approximate instructions, pinned: the same bits on every host.
//!
//! Errors that the PTX ISA allows, and what this gives: `ex2` 2 ULP (here below 1), `lg2` absolute 2^-22.6
//! (half an ULP of the exact value), `sin` and `cos` absolute 2^-20.5 in [-pi, pi] (half an ULP), `tanh` relative
//! 2^-11 (half an ULP), `rcp`, `div` and `sqrt` 1 to 2 ULP (correctly rounded), `rsqrt` 2 ULP (half an ULP up to
//! double rounding). So a kernel sees smaller errors than on a GPU, never larger ones.

use crate::cpu::{Portable, Simd, fma32};

const NAN: u32 = 0x7fff_ffff;

/// By integers, see `c32` of the handlers.
#[inline(always)]
fn canonical(x: f32) -> u32 {
    let b = x.to_bits();
    if b & 0x7fff_ffff > 0x7f80_0000 { NAN } else { b }
}

fn canonical64(x: f64) -> u64 {
    let b = x.to_bits();
    if b & !(1 << 63) > 0x7ff0_0000_0000_0000 { 0x7ff8_0000_0000_0000 } else { b }
}

/// 2^x. Subnormal results are kept (the `.ftz` of the instruction flushes them).
pub(crate) fn ex2(a: u32) -> u32 {
    ex2_lane::<Portable>(a)
}

/// 2^x: x = n + r with |r| <= 1/2, a polynomial of degree 6 for 2^r, and two exact steps of scaling.
#[inline(always)]
pub(crate) fn ex2_lane<S: Simd>(a: u32) -> u32 {
    let x = f32::from_bits(a);
    // Beyond these limits the result is infinite or zero in any case; NaN passes through the final select.
    let c = if x.is_nan() { 0.0 } else { x.clamp(-151.0, 129.0) };
    let shifted = c + 12_582_912.0;
    let n = shifted - 12_582_912.0;
    let r = c - n;
    let p = fma32::<S>(r, 1.535_336_2e-4, 1.339_887_4e-3);
    let p = fma32::<S>(r, p, 9.618_437e-3);
    let p = fma32::<S>(r, p, 5.550_332_5e-2);
    let p = fma32::<S>(r, p, 2.402_264_7e-1);
    let p = fma32::<S>(r, p, 6.931_472e-1);
    let p = fma32::<S>(r, p, 1.0);
    // The integer is in the low bits of `shifted`; split it so that each factor is a normal number.
    let n = (shifted.to_bits() as i32).wrapping_sub(0x4b40_0000);
    let half = n >> 1;
    let scale = |e: i32| f32::from_bits((e.wrapping_add(127) as u32) << 23);
    let y = p * scale(half) * scale(n.wrapping_sub(half));
    if x.is_nan() { NAN } else { y.to_bits() }
}

/// log2(x).
pub(crate) fn lg2(a: u32) -> u32 {
    canonical(libm::log2(f64::from(f32::from_bits(a))) as f32)
}

/// sin(x).
pub(crate) fn sin(a: u32) -> u32 {
    canonical(libm::sin(f64::from(f32::from_bits(a))) as f32)
}

/// cos(x).
pub(crate) fn cos(a: u32) -> u32 {
    canonical(libm::cos(f64::from(f32::from_bits(a))) as f32)
}

/// tanh(x).
pub(crate) fn tanh(a: u32) -> u32 {
    canonical(libm::tanh(f64::from(f32::from_bits(a))) as f32)
}

/// 1/sqrt(x).
#[inline(always)]
pub(crate) fn rsqrt(a: u32) -> u32 {
    let x = f32::from_bits(a);
    canonical((1.0 / f64::from(x).sqrt()) as f32)
}

/// x/y with the manual's exception: for 2^126 < |y| < 2^128 the result is 0, NaN if x is infinite.
pub(crate) fn div(a: u64, b: u64) -> u64 {
    u64::from(div_lane(a as u32, b as u32))
}

/// One lane of `div.approx.f32`.
#[inline(always)]
pub(crate) fn div_lane(a: u32, b: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let large = y.abs() > f32::from_bits(0x7e80_0000) && y.is_finite();
    let q = if large { x * 0.0 } else { x / y };
    let q = if large && !q.is_nan() { f32::from_bits((a ^ b) & 0x8000_0000) } else { q };
    canonical(q)
}

/// `rcp.approx.ftz.f64`: the upper word of the reciprocal of the upper word.
pub(crate) fn rcp_f64(a: u64) -> u64 {
    upper(a, |x| 1.0 / x)
}

/// `rsqrt.approx.f64`, and the gross `.ftz` form.
pub(crate) fn rsqrt_f64(a: u64, ftz: bool) -> u64 {
    if ftz {
        return upper(a, |x| 1.0 / x.sqrt());
    }
    let r = 1.0 / f64::from_bits(a).sqrt();
    canonical64(r)
}

fn upper(a: u64, f: impl Fn(f64) -> f64) -> u64 {
    let flush = |b: u64| if b >> 52 & 0x7ff == 0 { b & 1 << 63 } else { b };
    let r = f(f64::from_bits(flush(a & 0xffff_ffff_0000_0000)));
    flush(canonical64(r)) & 0xffff_ffff_0000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ex2_is_within_one_ulp_and_exact_at_integers() {
        for n in -149..=127 {
            let want = libm::exp2(f64::from(n)) as f32;
            assert_eq!(f32::from_bits(ex2((n as f32).to_bits())), want, "2^{n}");
        }
        let mut worst = 0.0f64;
        let mut x = -126.0f32;
        while x < 128.0 {
            let want = libm::exp2(f64::from(x));
            let got = f64::from(f32::from_bits(ex2(x.to_bits())));
            let ulp = libm::exp2(libm::floor(f64::from(x)) - 23.0);
            worst = worst.max((got - want).abs() / ulp);
            x += 0.003_17;
        }
        assert!(worst < 1.0, "{worst} ULP");
        assert_eq!(ex2(f32::INFINITY.to_bits()), f32::INFINITY.to_bits());
        assert_eq!(ex2(f32::NEG_INFINITY.to_bits()), 0);
        assert_eq!(ex2(200f32.to_bits()), f32::INFINITY.to_bits());
        assert_eq!(ex2(0x7fc0_0001), NAN);
    }

    #[test]
    fn approximate_division_of_large_divisors_is_zero() {
        assert_eq!(div_lane(1f32.to_bits(), 3e38f32.to_bits()), 0);
        assert_eq!(div_lane(f32::INFINITY.to_bits(), 3e38f32.to_bits()), NAN);
        assert_eq!(div_lane(1f32.to_bits(), 4f32.to_bits()), 0.25f32.to_bits());
    }

    #[test]
    fn logarithm_sine_and_tanh_are_within_the_manuals_error() {
        for i in 1..20_000 {
            let x = i as f32 * 1.37e-4;
            let err = |got: u32, want: f64| (f64::from(f32::from_bits(got)) - want).abs();
            assert!(err(lg2(x.to_bits()), libm::log2(f64::from(x))) < 1.6e-7 * 12.0);
            assert!(err(sin(x.to_bits()), libm::sin(f64::from(x))) < 6e-8);
            assert!(err(cos(x.to_bits()), libm::cos(f64::from(x))) < 6e-8);
            assert!(err(tanh(x.to_bits()), libm::tanh(f64::from(x))) < 6e-8);
        }
    }
}
