//! Conversions, by `rustc_apfloat`.

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::float::{Format, elements, format, round, saturate};
use super::table::Spelling;
use super::vectors::{bits_of, mask};
use super::{Oracle, Want};

/// A number of a format, exactly.
fn widen(ty: &str, x: u64) -> Quad {
    fn go<T: Float + FloatConvert<Quad>>(x: u64) -> Quad {
        T::from_bits(u128::from(x)).convert(&mut false).value
    }
    match ty {
        "f16" => go::<Half>(x),
        "bf16" => go::<BFloat>(x),
        "f32" => go::<Single>(x),
        "e4m3" => go::<Float8E4M3FN>(x),
        "e5m2" => go::<Float8E5M2>(x),
        _ => go::<Double>(x),
    }
}

/// A number rounded to a format; NaN is the canonical one.
fn narrow(ty: &str, r: Round, x: Quad) -> u64 {
    fn go<T: Float>(r: Round, x: Quad) -> u64
    where
        Quad: FloatConvert<T>,
    {
        let out: T = x.convert_r(r, &mut false).value;
        out.to_bits() as u64
    }
    let bits = match ty {
        "f16" => go::<Half>(r, x),
        "bf16" => go::<BFloat>(r, x),
        "f32" => go::<Single>(r, x),
        _ => go::<Double>(r, x),
    };
    match format(ty) {
        Some(f) if f.is_nan(bits) => f.nan,
        _ => bits,
    }
}

fn limits(ty: &str) -> (i128, i128) {
    let bits = bits_of(ty);
    if ty.starts_with('s') {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

fn is_int(ty: &str) -> bool {
    ty.starts_with('u') || ty.starts_with('s')
}

/// `.relu` and `.satfinite` of a result.
fn finish(s: &Spelling) -> impl Fn(Format, u64) -> u64 + use<> {
    let (sat, relu, satfinite) = (s.has("sat"), s.has("relu"), s.has("satfinite"));
    move |f, x| {
        if sat {
            return saturate(f, x);
        }
        if relu && !f.is_nan(x) && x & f.sign() != 0 {
            return 0;
        }
        if satfinite && x & !f.sign() == f.inf() { x - 1 } else { x }
    }
}

pub fn oracle(s: &Spelling) -> Option<Oracle> {
    if s.name() != "cvt" {
        return None;
    }
    let (to, from) = (s.ty(0), s.ty(1));
    let r = round(s);
    let ftz = s.has("ftz");
    let done = finish(s);
    if to == "tf32" {
        return Some(tf32(r, done));
    }
    if to.starts_with('e') || from.starts_with('e') {
        return eight_bits(s);
    }
    if let (("f16" | "bf16", 2), "f32") = (elements(to), from) {
        let (to, _) = elements(to);
        let f = format(to)?;
        return Some(Box::new(move |v| {
            let half = |x: u64| done(f, narrow(to, r, widen("f32", x)));
            Want::bits(half(v[0]) << 16 | half(v[1]))
        }));
    }
    Some(match (format(to), format(from)) {
        (Some(t), Some(f)) => {
            let integral = s.of("RNDI").is_some();
            Box::new(move |v| {
                // Only `.f32` operands and results flush (manual, `cvt`).
                let x = if ftz && from == "f32" { f.flush(v[0]) } else { v[0] };
                let wide = widen(from, x);
                let wide = if integral { wide.round_to_integral(r).value } else { wide };
                let out = narrow(to, r, wide);
                let out = if ftz && to == "f32" { t.flush(out) } else { out };
                Want::bits(done(t, out))
            })
        }
        (Some(t), None) if is_int(from) => Box::new(move |v| {
            let x = super::int::signed(from, v[0]);
            // Every 64-bit integer fits a binary128.
            Want::bits(done(t, narrow(to, r, Quad::from_i128(x).value)))
        }),
        (None, Some(f)) if is_int(to) => {
            let (low, high) = limits(to);
            // Manual, `cvt`: NaN gives 0, or the top bit where the source or the destination has 64 bits.
            let nan = if f.bits == 64 || bits_of(to) == 64 { 1u64 << (bits_of(to) - 1) } else { 0 };
            Box::new(move |v| {
                let x = if ftz && from == "f32" { f.flush(v[0]) } else { v[0] };
                let wide = widen(from, x);
                if wide.is_nan() {
                    return Want::bits(extended(to, nan));
                }
                let whole = wide.round_to_integral(r).value;
                let n = whole.to_i128_r(128, r, &mut false).value;
                Want::bits(extended(to, n.clamp(low, high) as u64 & mask(bits_of(to))))
            })
        }
        (None, None) if is_int(to) && is_int(from) => {
            let sat = s.has("sat");
            let (low, high) = limits(to);
            Box::new(move |v| {
                let x = super::int::signed(from, v[0]);
                let x = if sat { x.clamp(low, high) } else { x };
                Want::bits(extended(to, x as u64 & mask(bits_of(to))))
            })
        }
        _ => return None,
    })
}

/// An 8-bit result in a 16-bit register.
fn extended(to: &str, x: u64) -> u64 {
    if to == "s8" { super::int::signed("s8", x) as u64 & 0xffff } else { x }
}

/// binary32 with 13 fraction bits fewer: rounded by integers.
fn tf32(r: Round, done: impl Fn(Format, u64) -> u64 + 'static) -> Oracle {
    let f = format("f32").expect("a format");
    Box::new(move |v| {
        let x = v[0];
        if f.is_nan(x) {
            return Want::bits(f.nan);
        }
        let (sign, m) = (x & f.sign(), x & !f.sign());
        let low = m & 0x1fff;
        let up = match r {
            Round::NearestTiesToAway => low >= 0x1000,
            Round::NearestTiesToEven => low > 0x1000 || (low == 0x1000 && m & 0x2000 != 0),
            _ => false,
        };
        let m = if m == f.inf() { m } else { (m & !0x1fff) + if up { 0x2000 } else { 0 } };
        // The largest value has 13 zero bits at its end, unlike that of binary32.
        let out = done(f, sign | m);
        Want::bits(if out & !f.sign() == f.inf() - 1 { (out & f.sign()) | 0x7f7f_e000 } else { out })
    })
}

fn eight_bits(s: &Spelling) -> Option<Oracle> {
    let (to, from) = (s.ty(0), s.ty(1));
    let relu = s.has("relu");
    let negative = move |x: &Quad| relu && !x.is_nan() && x.is_negative();
    if to == "f16x2" {
        let element = if from == "e4m3x2" { "e4m3" } else { "e5m2" };
        return Some(Box::new(move |v| {
            let half = |x: u64| {
                let wide = widen(element, x);
                if negative(&wide) { 0 } else { narrow("f16", Round::NearestTiesToEven, wide) }
            };
            Want::bits(half(v[0] & 0xff) | half(v[0] >> 8 & 0xff) << 16)
        }));
    }
    let byte = move |wide: Quad| {
        if wide.is_nan() {
            return 0x7f;
        }
        if negative(&wide) {
            return 0;
        }
        let even = Round::NearestTiesToEven;
        let sign = if wide.is_negative() { 0x80 } else { 0 };
        let largest = if to == "e4m3x2" { widen("e4m3", 0x7e) } else { widen("e5m2", 0x7b) };
        if wide.abs() > largest {
            return sign | if to == "e4m3x2" { 0x7e } else { 0x7b };
        }
        let bits = if to == "e4m3x2" {
            let x: Float8E4M3FN = wide.convert_r(even, &mut false).value;
            x.to_bits()
        } else {
            let x: Float8E5M2 = wide.convert_r(even, &mut false).value;
            x.to_bits()
        };
        bits as u64
    };
    Some(match from {
        "f32" => Box::new(move |v| Want::bits(byte(widen("f32", v[0])) << 8 | byte(widen("f32", v[1])))),
        "f16x2" => Box::new(move |v| {
            Want::bits(byte(widen("f16", v[0] & 0xffff)) | byte(widen("f16", v[0] >> 16)) << 8)
        }),
        _ => return None,
    })
}
