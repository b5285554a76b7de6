//! Software floating point: every IEEE format and rounding mode, exact by integer arithmetic.
//!
//! The reference for the fast paths and the implementation of everything that the host's processor does not
//! have: directed rounding, half-precision fused multiply-add, odd conversions. A finite value is
//! `(-1)^sign * mantissa * 2^exp` with a 128-bit mantissa; results are rounded once, in [`round`].
//!
//! Source: IEEE 754-2019; NaN results are the canonical ones of the PTX ISA ("Floating-Point Instructions").

/// A binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Significand bits, the hidden one included.
    pub(crate) precision: u32,
    /// Exponent of the smallest normal number.
    pub(crate) emin: i32,
    /// Total bits.
    pub(crate) bits: u32,
    /// The canonical NaN.
    pub(crate) nan: u64,
}

/// binary16.
pub(crate) const F16: Format = Format { precision: 11, emin: -14, bits: 16, nan: 0x7fff };
/// bfloat16.
pub(crate) const BF16: Format = Format { precision: 8, emin: -126, bits: 16, nan: 0x7fff };
/// binary32.
pub(crate) const F32: Format = Format { precision: 24, emin: -126, bits: 32, nan: 0x7fff_ffff };
/// binary64.
pub(crate) const F64: Format = Format { precision: 53, emin: -1022, bits: 64, nan: 0x7ff8_0000_0000_0000 };

/// The 8-bit format with five exponent bits, which has infinities.
pub(crate) const E5M2: Format = Format { precision: 3, emin: -14, bits: 8, nan: 0x7f };
/// The 8-bit format with four exponent bits, as if it went on to infinity: one more bit than it has. Its largest value
/// is [`E4M3_MAX`], above which is its only NaN, 0x7f.
const E4M3_LONG: Format = Format { precision: 4, emin: -6, bits: 9, nan: 0x7f };
const E4M3_MAX: u64 = 0x7e;
/// The 19 bits of a `.tf32` that count.
pub(crate) const TF32: Format = Format { precision: 11, emin: -126, bits: 19, nan: 0x3_ffff };

/// Converts the low byte, an `.e4m3`, to `to`, which holds every value of the format.
///
/// Source: "FP8 Formats for Deep Learning" (Micikevicius et al. 2022), table 1; PTX ISA, "Alternate Floating-Point Data
/// Formats".
pub(crate) fn e4m3_to(to: Format, bits: u64) -> u64 {
    let magnitude = bits & 0x7f;
    if magnitude > E4M3_MAX {
        return to.nan;
    }
    convert(E4M3_LONG, to, Mode::Even, magnitude | (bits & 0x80) << 1)
}

/// Converts to `.e4m3`, to nearest even; what is too large becomes the largest value.
pub(crate) fn to_e4m3(from: Format, bits: u64) -> u64 {
    if from.is_nan(bits) {
        return 0x7f;
    }
    let long = convert(from, E4M3_LONG, Mode::Even, bits);
    (long & 0xff).min(E4M3_MAX) | long >> 1 & 0x80
}

/// A rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To nearest, ties to even.
    Even,
    /// To nearest, ties away from zero.
    Away,
    /// Towards zero.
    Zero,
    /// Towards negative infinity.
    Down,
    /// Towards positive infinity.
    Up,
}

/// An unpacked value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Not a number.
    Nan,
    /// Infinity, negative if true.
    Inf(bool),
    /// `(-1)^sign * mantissa * 2^exp`; zero has mantissa 0.
    Finite {
        /// Sign.
        sign: bool,
        /// Mantissa.
        mantissa: u128,
        /// Exponent of the mantissa's lowest bit.
        exp: i32,
    },
}

impl Format {
    fn fraction_bits(self) -> u32 {
        self.precision - 1
    }

    fn qmin(self) -> i32 {
        self.emin - self.fraction_bits() as i32
    }

    /// Bits of positive infinity.
    pub(crate) fn inf(self) -> u64 {
        let exponent_bits = self.bits - self.precision;
        ((1u64 << exponent_bits) - 1) << self.fraction_bits()
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.bits - 1)
    }

    fn mask(self) -> u64 {
        if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }

    /// Unpacks.
    pub(crate) fn unpack(self, bits: u64) -> Value {
        let bits = bits & self.mask();
        let sign = bits & self.sign_bit() != 0;
        let magnitude = bits & !self.sign_bit();
        if magnitude > self.inf() {
            return Value::Nan;
        }
        if magnitude == self.inf() {
            return Value::Inf(sign);
        }
        let field = (magnitude >> self.fraction_bits()) as i32;
        let fraction = magnitude & ((1 << self.fraction_bits()) - 1);
        if field == 0 {
            Value::Finite { sign, mantissa: u128::from(fraction), exp: self.qmin() }
        } else {
            let mantissa = u128::from(fraction | 1 << self.fraction_bits());
            Value::Finite { sign, mantissa, exp: self.qmin() + field - 1 }
        }
    }

    fn signed(self, sign: bool, magnitude: u64) -> u64 {
        if sign { magnitude | self.sign_bit() } else { magnitude }
    }

    /// Subnormal inputs and results become zero of the same sign.
    pub(crate) fn flush(self, bits: u64) -> u64 {
        let magnitude = bits & !self.sign_bit() & self.mask();
        if magnitude >> self.fraction_bits() == 0 { bits & self.sign_bit() } else { bits }
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & self.mask() & !self.sign_bit() > self.inf()
    }
}

/// Rounds `(-1)^sign * (mantissa + s) * 2^exp` to `format`, where 0 <= s < 1 and `sticky` says s > 0.
///
/// If `sticky`, the mantissa has at least two bits more than the format's precision.
pub(crate) fn round(format: Format, mode: Mode, sign: bool, mantissa: u128, exp: i32, sticky: bool) -> u64 {
    if mantissa == 0 && !sticky {
        return format.signed(sign, 0);
    }
    let length = 128 - mantissa.leading_zeros() as i32;
    let quantum = (exp + length - format.precision as i32).max(format.qmin());
    let shift = quantum - exp;
    let (mut m, half, rest) = if shift <= 0 {
        (mantissa << (-shift) as u32, false, sticky)
    } else if shift > 128 {
        (0, false, true)
    } else {
        let kept = if shift == 128 { 0 } else { mantissa >> shift };
        let half = mantissa >> (shift - 1) & 1 != 0;
        let below = if shift == 1 { 0 } else { mantissa << (129 - shift) };
        (kept, half, sticky || below != 0)
    };
    let up = match mode {
        Mode::Even => half && (rest || m & 1 != 0),
        Mode::Away => half,
        Mode::Zero => false,
        Mode::Down => sign && (half || rest),
        Mode::Up => !sign && (half || rest),
    };
    m += u128::from(up);
    let magnitude = ((quantum - format.qmin()) as u128) << format.fraction_bits();
    let magnitude = magnitude.saturating_add(m);
    if magnitude >= u128::from(format.inf()) {
        let to_inf = match mode {
            Mode::Even | Mode::Away => true,
            Mode::Zero => false,
            Mode::Down => sign,
            Mode::Up => !sign,
        };
        let m = if to_inf { format.inf() } else { format.inf() - 1 };
        return format.signed(sign, m);
    }
    format.signed(sign, magnitude as u64)
}

/// Converts `bits` of format `from` to `to`.
pub(crate) fn convert(from: Format, to: Format, mode: Mode, bits: u64) -> u64 {
    match from.unpack(bits) {
        Value::Nan => to.nan,
        Value::Inf(sign) => to.signed(sign, to.inf()),
        Value::Finite { sign, mantissa, exp } => round(to, mode, sign, mantissa, exp, false),
    }
}

/// The exact sum of two finite values as (sign, mantissa, exp, sticky); the sign of an exact zero is `mode`'s.
fn sum(mode: Mode, a: (bool, u128, i32), b: (bool, u128, i32)) -> (bool, u128, i32, bool) {
    let zero_sign = |a: bool, b: bool| if a == b { a } else { mode == Mode::Down };
    if a.1 == 0 && b.1 == 0 {
        return (zero_sign(a.0, b.0), 0, 0, false);
    }
    if a.1 == 0 {
        return (b.0, b.1, b.2, false);
    }
    if b.1 == 0 {
        return (a.0, a.1, a.2, false);
    }
    // Top bit to 125, so that a carry fits and 19 bits below a product of two binary64 are left.
    let normal = |v: (bool, u128, i32)| {
        let up = v.1.leading_zeros() as i32 - 2;
        (v.0, v.1 << up, v.2 - up)
    };
    let (a, b) = (normal(a), normal(b));
    let (big, small) = if (a.2, a.1) >= (b.2, b.1) { (a, b) } else { (b, a) };
    let distance = (big.2 - small.2) as u32;
    let (aligned, lost) = if distance == 0 {
        (small.1, false)
    } else if distance >= 128 {
        (0, true)
    } else {
        (small.1 >> distance, small.1 << (128 - distance) != 0)
    };
    if big.0 == small.0 {
        (big.0, big.1 + aligned, big.2, lost)
    } else {
        // The lost part makes the subtrahend larger: borrow one and keep the sticky bit.
        let m = big.1 - aligned - u128::from(lost);
        if m == 0 && !lost {
            return (mode == Mode::Down, 0, 0, false);
        }
        (big.0, m, big.2, lost)
    }
}

/// `a * b + c`, rounded once.
pub(crate) fn fma(f: Format, mode: Mode, a: u64, b: u64, c: u64) -> u64 {
    use Value::{Finite, Inf, Nan};
    let (a, b, c) = (f.unpack(a), f.unpack(b), f.unpack(c));
    let product = match (a, b) {
        (Nan, _) | (_, Nan) => return f.nan,
        (Inf(s), Inf(t)) => Inf(s != t),
        (Inf(s), Finite { sign, mantissa, .. }) | (Finite { sign, mantissa, .. }, Inf(s)) => {
            if mantissa == 0 {
                return f.nan;
            }
            Inf(s != sign)
        }
        (Finite { sign: s, mantissa: m, exp: e }, Finite { sign: t, mantissa: n, exp: g }) => {
            Finite { sign: s != t, mantissa: m * n, exp: e + g }
        }
    };
    match (product, c) {
        (_, Nan) | (Nan, _) => f.nan,
        (Inf(s), Inf(t)) if s != t => f.nan,
        (Inf(s), _) | (_, Inf(s)) => f.signed(s, f.inf()),
        (Finite { sign: s, mantissa: m, exp: e }, Finite { sign: t, mantissa: n, exp: g }) => {
            let (sign, mantissa, exp, sticky) = sum(mode, (s, m, e), (t, n, g));
            round(f, mode, sign, mantissa, exp, sticky)
        }
    }
}

/// `a + b`.
pub(crate) fn add(f: Format, mode: Mode, a: u64, b: u64) -> u64 {
    use Value::{Finite, Inf, Nan};
    match (f.unpack(a), f.unpack(b)) {
        (Nan, _) | (_, Nan) => f.nan,
        (Inf(s), Inf(t)) if s != t => f.nan,
        (Inf(s), _) | (_, Inf(s)) => f.signed(s, f.inf()),
        (Finite { sign: s, mantissa: m, exp: e }, Finite { sign: t, mantissa: n, exp: g }) => {
            let (sign, mantissa, exp, sticky) = sum(mode, (s, m, e), (t, n, g));
            round(f, mode, sign, mantissa, exp, sticky)
        }
    }
}

/// `a * b`.
pub(crate) fn mul(f: Format, mode: Mode, a: u64, b: u64) -> u64 {
    use Value::{Finite, Inf, Nan};
    match (f.unpack(a), f.unpack(b)) {
        (Nan, _) | (_, Nan) => f.nan,
        (Inf(s), Inf(t)) => f.signed(s != t, f.inf()),
        (Inf(s), Finite { sign, mantissa, .. }) | (Finite { sign, mantissa, .. }, Inf(s)) => {
            if mantissa == 0 { f.nan } else { f.signed(s != sign, f.inf()) }
        }
        (Finite { sign: s, mantissa: m, exp: e }, Finite { sign: t, mantissa: n, exp: g }) => {
            round(f, mode, s != t, m * n, e + g, false)
        }
    }
}

/// `a / b`.
pub(crate) fn div(f: Format, mode: Mode, a: u64, b: u64) -> u64 {
    use Value::{Finite, Inf, Nan};
    match (f.unpack(a), f.unpack(b)) {
        (Nan, _) | (_, Nan) | (Inf(_), Inf(_)) => f.nan,
        (Inf(s), Finite { sign, .. }) => f.signed(s != sign, f.inf()),
        (Finite { sign, .. }, Inf(s)) => f.signed(s != sign, 0),
        (Finite { sign: s, mantissa: m, exp: e }, Finite { sign: t, mantissa: n, exp: g }) => {
            if n == 0 {
                return if m == 0 { f.nan } else { f.signed(s != t, f.inf()) };
            }
            if m == 0 {
                return f.signed(s != t, 0);
            }
            // Both normalised first, so that the quotient has at least 127 - 53 bits more than the divisor's.
            let up = m.leading_zeros() as i32 - 1;
            let (m, e) = (m << up, e - up);
            let (q, r) = (m / n, m % n);
            round(f, mode, s != t, q, e - g, r != 0)
        }
    }
}

/// The square root.
pub(crate) fn sqrt(f: Format, mode: Mode, a: u64) -> u64 {
    match f.unpack(a) {
        Value::Nan | Value::Inf(true) => f.nan,
        Value::Inf(false) => f.inf(),
        Value::Finite { sign, mantissa: 0, .. } => f.signed(sign, 0),
        Value::Finite { sign: true, .. } => f.nan,
        Value::Finite { mantissa, exp, .. } => {
            let mut up = mantissa.leading_zeros() as i32 - 1;
            if (exp - up) % 2 != 0 {
                up -= 1;
            }
            let (m, e) = (mantissa << up, exp - up);
            let root = m.isqrt();
            round(f, mode, false, root, e / 2, root * root != m)
        }
    }
}

/// An integer `(-1)^sign * magnitude` as a float.
pub(crate) fn from_int(f: Format, mode: Mode, sign: bool, magnitude: u64) -> u64 {
    // An integer zero is +0.
    round(f, mode, sign && magnitude != 0, u128::from(magnitude), 0, false)
}

/// The integral value nearest by `mode`, as (sign, magnitude), magnitude saturated at `u128::MAX`; `None` for
/// NaN, infinities saturate.
pub(crate) fn to_integral(f: Format, mode: Mode, bits: u64) -> Option<(bool, u128)> {
    match f.unpack(bits) {
        Value::Nan => None,
        Value::Inf(sign) => Some((sign, u128::MAX)),
        Value::Finite { sign, mantissa, exp } => {
            if exp >= 0 {
                let fits = mantissa == 0 || exp as u32 <= mantissa.leading_zeros();
                return Some((sign, if fits { mantissa << exp.min(127) } else { u128::MAX }));
            }
            let shift = (-exp) as u32;
            let (kept, half, rest) = if shift > 127 {
                (0, false, mantissa != 0)
            } else {
                let low = mantissa & ((1 << shift) - 1);
                (mantissa >> shift, low >> (shift - 1) & 1 != 0, low & ((1 << (shift - 1)) - 1) != 0)
            };
            let up = match mode {
                Mode::Even => half && (rest || kept & 1 != 0),
                Mode::Away => half,
                Mode::Zero => false,
                Mode::Down => sign && (half || rest),
                Mode::Up => !sign && (half || rest),
            };
            Some((sign, kept + u128::from(up)))
        }
    }
}

/// Rounds to an integral value in the same format (`cvt.rni.f32.f32`).
pub(crate) fn round_integral(f: Format, mode: Mode, bits: u64) -> u64 {
    if let Value::Finite { sign, exp, .. } = f.unpack(bits)
        && exp < 0
        && let Some((_, m)) = to_integral(f, mode, bits)
    {
        return round(f, Mode::Even, sign, m, 0, false);
    }
    if f.is_nan(bits) { f.nan } else { bits & f.mask() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_apfloat::{Float, Round, ieee};

    /// Edge values and random bits.
    fn values(f: Format, random: u64) -> Vec<u64> {
        let mut v = vec![0, 1, 2, f.inf() - 1, f.inf(), f.nan, f.inf() | 1];
        let one = (f.inf() >> (f.precision - 1) >> 1) << (f.precision - 1);
        v.extend([one, one + 1, one - 1, one + (1 << (f.precision - 1)), (1 << (f.precision - 1)) - 1]);
        v.push(1 << (f.precision - 1));
        let mut s = 0x1234_5678_9abc_def0u64;
        for i in 0..random {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut x = (s ^ (s >> 29)) & f.mask();
            if i % 2 == 0 {
                // Exponents near each other: where cancellation and ties happen.
                x = (x & (f.sign_bit() | ((1 << (f.precision - 1)) - 1)))
                    | (one & !((1 << (f.precision - 1)) - 1));
                x = x.wrapping_add((s >> 50 & 7) << (f.precision - 1));
            }
            v.push(x & f.mask());
        }
        let negative: Vec<u64> = v.iter().map(|x| x ^ f.sign_bit()).collect();
        v.extend(negative);
        v
    }

    fn modes() -> [(Mode, Round); 5] {
        [
            (Mode::Even, Round::NearestTiesToEven),
            (Mode::Away, Round::NearestTiesToAway),
            (Mode::Zero, Round::TowardZero),
            (Mode::Down, Round::TowardNegative),
            (Mode::Up, Round::TowardPositive),
        ]
    }

    fn check<T: Float>(f: Format, random: u64) {
        let v = values(f, random);
        let same = |want: T, got: u64, what: &str| {
            let want = if want.is_nan() { f.nan } else { want.to_bits() as u64 };
            assert_eq!(got, want, "{what}: got {got:#x}, want {want:#x}");
        };
        let from = |b: u64| T::from_bits(u128::from(b));
        for (i, &a) in v.iter().enumerate() {
            for (mode, round) in modes() {
                for step in [1usize, 3, 7, 11] {
                    let b = v[(i * step + step) % v.len()];
                    let c = v[(i * 5 + step * 13) % v.len()];
                    let what = format!("{mode:?} {a:#x} {b:#x} {c:#x}");
                    same(from(a).add_r(from(b), round).value, add(f, mode, a, b), &format!("add {what}"));
                    same(from(a).mul_r(from(b), round).value, mul(f, mode, a, b), &format!("mul {what}"));
                    same(from(a).div_r(from(b), round).value, div(f, mode, a, b), &format!("div {what}"));
                    let want = from(a).mul_add_r(from(b), from(c), round).value;
                    same(want, fma(f, mode, a, b, c), &format!("fma {what}"));
                }
                let what = format!("{mode:?} {a:#x}");
                let want = from(a).round_to_integral(round).value;
                same(want, round_integral(f, mode, a), &format!("round_integral {what}"));
            }
        }
    }

    #[test]
    fn binary16_agrees_with_apfloat_in_every_mode() {
        check::<ieee::Half>(F16, 400);
    }

    #[test]
    fn bfloat16_agrees_with_apfloat_in_every_mode() {
        check::<ieee::BFloat>(BF16, 400);
    }

    #[test]
    fn binary32_agrees_with_apfloat_in_every_mode() {
        check::<ieee::Single>(F32, 400);
    }

    #[test]
    fn binary64_agrees_with_apfloat_in_every_mode() {
        check::<ieee::Double>(F64, 400);
    }

    #[test]
    fn square_roots_are_the_nearest_and_directed_ones_bracket_them() {
        for a in values(F32, 1000) {
            let x = f32::from_bits(a as u32);
            let got = sqrt(F32, Mode::Even, a);
            let want = if x.sqrt().is_nan() { F32.nan } else { u64::from(x.sqrt().to_bits()) };
            assert_eq!(got, want, "{x}");
            if x > 0.0 && x.is_finite() {
                let (lo, hi) = (sqrt(F32, Mode::Down, a), sqrt(F32, Mode::Up, a));
                let square =
                    |b: u64| f64::from(f32::from_bits(b as u32)) * f64::from(f32::from_bits(b as u32));
                assert!(square(lo) <= f64::from(x) && square(hi) >= f64::from(x) && hi - lo <= 1, "{x}");
                assert_eq!(lo, sqrt(F32, Mode::Zero, a));
            }
        }
        for a in values(F64, 1000) {
            let want = f64::from_bits(a).sqrt().to_bits();
            let want = if F64.is_nan(want) { F64.nan } else { want };
            assert_eq!(sqrt(F64, Mode::Even, a), want);
        }
    }

    #[test]
    fn conversions_between_formats_round_once() {
        for a in values(F64, 2000) {
            let x = f64::from_bits(a);
            if !x.is_nan() {
                assert_eq!(convert(F64, F32, Mode::Even, a), u64::from((x as f32).to_bits()));
                assert_eq!(
                    convert(F64, F16, Mode::Even, a),
                    u64::from(half::f16::from_f64(x).to_bits()),
                    "{x}"
                );
            }
        }
        for a in values(F16, 1000) {
            let x = half::f16::from_bits(a as u16);
            if !x.is_nan() {
                assert_eq!(convert(F16, F32, Mode::Even, a), u64::from(x.to_f32().to_bits()));
            }
        }
    }

    #[test]
    fn integers_convert_like_the_language_does_when_in_range() {
        for i in [0u64, 1, 3, 16_777_217, 16_777_219, u64::MAX, 1 << 63, (1 << 53) + 1] {
            assert_eq!(from_int(F32, Mode::Even, false, i), u64::from((i as f32).to_bits()));
            assert_eq!(from_int(F64, Mode::Even, false, i), (i as f64).to_bits());
        }
        assert_eq!(to_integral(F32, Mode::Even, u64::from(2.5f32.to_bits())), Some((false, 2)));
        assert_eq!(to_integral(F32, Mode::Down, u64::from((-2.5f32).to_bits())), Some((true, 3)));
        assert_eq!(to_integral(F64, Mode::Zero, 1e30f64.to_bits()), Some((false, 1e30f64 as u128)));
        assert_eq!(to_integral(F32, Mode::Zero, F32.inf()), Some((false, u128::MAX)));
    }
}
