//! Vectorised arithmetic. Each form here has the same result as its lane function in [`crate::semantics`], which
//! a test checks over edge values and random bits.
#![expect(clippy::neg_cmp_op_on_partial_ord, reason = "the unordered comparisons are complements")]

use assay_ptx::{Cmp, Half, Instr, Mods, Op, Rounding, Ty};

use crate::cpu::{fma32, fma64};
use crate::lanes::{Pair, cmp2, op1, op2, op3};
use crate::semantics::approx;

const NAN32: u32 = 0x7fff_ffff;
const NAN64: u64 = 0x7ff8_0000_0000_0000;

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

#[inline(always)]
fn g(x: u64) -> f64 {
    f64::from_bits(x)
}

/// The bits, a NaN being the canonical one.
///
/// By integers: the compiler may take a selection between a NaN constant and `x` by `x.is_nan()` for `x` itself, since
/// to it the bits of a computed NaN are open.
#[inline(always)]
fn c32(x: f32) -> u32 {
    let b = x.to_bits();
    if b & 0x7fff_ffff > 0x7f80_0000 { NAN32 } else { b }
}

/// As [`c32`].
#[inline(always)]
fn c64(x: f64) -> u64 {
    let b = x.to_bits();
    if b & !(1 << 63) > 0x7ff0_0000_0000_0000 { NAN64 } else { b }
}

/// Flushes a subnormal.
#[inline(always)]
fn z(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

#[inline(always)]
fn sat32(x: u32) -> u32 {
    let v = f(x);
    let v = if v > 0.0 { v } else { 0.0 };
    (if v > 1.0 { 1.0 } else { v }).to_bits()
}

/// Binary16 to binary32, exactly; NaNs stay NaNs.
#[inline(always)]
pub(crate) fn f16_to_f32(h: u32) -> f32 {
    let magnitude = (h & 0x7fff) << 13;
    // Re-bias by a multiplication, which also normalises subnormals.
    let v = (f(magnitude) * f(0x7780_0000)).to_bits();
    let v = if h & 0x7c00 == 0x7c00 { magnitude | 0x7f80_0000 } else { v };
    f(v | (h & 0x8000) << 16)
}

/// Binary32 to binary16, to nearest even; NaN gives the canonical one.
#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u32 {
    let b = x.to_bits();
    let (sign, a) = (b >> 16 & 0x8000, b & 0x7fff_ffff);
    // Below the normal range one unit in the last place is 2^-24, as in 0.5.
    let small = (f(a) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let normal = a.wrapping_add(0xfff).wrapping_add(a >> 13 & 1).wrapping_sub(112 << 23) >> 13;
    let normal = normal.min(0x7c00);
    let r = if a < 0x3880_0000 { small } else { normal };
    let r = if a >= 0x7f80_0000 { 0x7c00 } else { r };
    if a > 0x7f80_0000 { 0x7fff } else { r | sign }
}

/// Binary32 to bfloat16, to nearest even; NaN gives the canonical one.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u32 {
    let b = x.to_bits();
    let r = b.wrapping_add(0x7fff).wrapping_add(b >> 16 & 1) >> 16;
    if x.is_nan() { 0x7fff } else { r }
}

/// Binary64 to binary16 by way of rounding to odd, so that it is rounded once.
#[inline(always)]
fn f64_to_f16(x: f64) -> u32 {
    let b = x as f32;
    let back = f64::from(b);
    // Make an inexact binary32 odd by stepping towards zero where it was rounded up.
    let bits = b.to_bits();
    let up = back.abs() > x.abs();
    let truncated = bits.wrapping_sub(u32::from(up));
    let odd = if back == x || x.is_nan() { bits } else { truncated | 1 };
    f32_to_f16(f(odd))
}

/// Fused multiply-add of binary32 rounded towards negative infinity.
///
/// The product is exact in binary64; the rounding error of the sum is exact too (Knuth's two-sum), and tells on
/// which side of the rounded sum the true one lies.
#[inline(always)]
fn fma_down(a: f32, b: f32, c: f32) -> u32 {
    let p = f64::from(a) * f64::from(b);
    let d = f64::from(c);
    let s = p + d;
    let bb = s - p;
    let e = (p - (s - bb)) + (d - bb);
    let r = s as f32;
    let wide = f64::from(r);
    let above = wide > s || (wide == s && e < 0.0);
    let bits = r.to_bits();
    let down = if bits & 0x7fff_ffff == 0 {
        0x8000_0001
    } else if bits & 0x8000_0000 != 0 {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    let r = if above { down } else { bits };
    // An exact zero is -0, unless both addends are +0.
    let plus = p.to_bits() == 0 && d.to_bits() == 0;
    let r = if s == 0.0 && !above { if plus { 0 } else { 0x8000_0000 } } else { r };
    if s.is_nan() { NAN32 } else { r }
}

#[inline(always)]
fn fma_up(a: f32, b: f32, c: f32) -> u32 {
    let r = fma_down(-a, b, -c);
    if r == NAN32 { r } else { r ^ 0x8000_0000 }
}

/// Towards zero: down if the result is positive, up if negative.
#[inline(always)]
fn fma_zero(a: f32, b: f32, c: f32) -> u32 {
    let (down, up) = (fma_down(a, b, c), fma_up(a, b, c));
    // Both are NaN, or bracket the result with one sign; an exact zero is +0 unless both addends are -0.
    if up & 0x8000_0000 != 0 {
        up
    } else if down & 0x7fff_ffff == 0 {
        up & down
    } else {
        down.min(up)
    }
}

#[inline(always)]
fn min32(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    // Equal operands differ at most in the sign of zero: the one with the sign is the lesser.
    let r = if x < y {
        a
    } else if x == y {
        a | b
    } else {
        b
    };
    if x.is_nan() {
        if y.is_nan() { NAN32 } else { b }
    } else if y.is_nan() {
        a
    } else {
        r
    }
}

#[inline(always)]
fn max32(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    let r = if x > y {
        a
    } else if x == y {
        a & b
    } else {
        b
    };
    if x.is_nan() {
        if y.is_nan() { NAN32 } else { b }
    } else if y.is_nan() {
        a
    } else {
        r
    }
}

#[inline(always)]
fn min64(a: u64, b: u64) -> u64 {
    let (x, y) = (g(a), g(b));
    let r = if x < y {
        a
    } else if x == y {
        a | b
    } else {
        b
    };
    if x.is_nan() {
        if y.is_nan() { NAN64 } else { b }
    } else if y.is_nan() {
        a
    } else {
        r
    }
}

#[inline(always)]
fn max64(a: u64, b: u64) -> u64 {
    let (x, y) = (g(a), g(b));
    let r = if x > y {
        a
    } else if x == y {
        a & b
    } else {
        b
    };
    if x.is_nan() {
        if y.is_nan() { NAN64 } else { b }
    } else if y.is_nan() {
        a
    } else {
        r
    }
}

/// True if nothing but rounding to nearest, `.ftz` and `.approx`/`.full` is asked for.
fn plain(m: &Mods) -> bool {
    !m.sat && !m.relu && !m.nan && !m.xorsign_abs && !m.oob && matches!(m.rounding, None | Some(Rounding::Rn))
}

/// The vectorised form of an instruction, if there is one.
pub(crate) fn fast(i: &Instr) -> Option<Pair> {
    let m = &i.mods;
    if m.cc {
        return None;
    }
    match i.op {
        Op::Setp => return compare(i),
        Op::Cvt => return cvt(i),
        _ => {}
    }
    match i.ty()? {
        Ty::F32 => float32(i),
        Ty::F64 => float64(i),
        Ty::F16 => float16(i),
        Ty::F16x2 => float16x2(i),
        Ty::U16 | Ty::S16 | Ty::B16 => int16(i),
        Ty::U32 | Ty::S32 | Ty::B32 => int32(i),
        Ty::U64 | Ty::S64 | Ty::B64 => int64(i),
        _ => None,
    }
}

fn float32(i: &Instr) -> Option<Pair> {
    let m = &i.mods;
    if i.op == Op::Mov {
        return Some(op1!(S, |a: u32| -> u32 { a }));
    }
    if i.op == Op::Fma && !m.ftz && !m.sat && !m.oob {
        match m.rounding {
            Some(Rounding::Rm) => {
                return Some(op3!(S, |a: u32, b: u32, c: u32| -> u32 { fma_down(f(a), f(b), f(c)) }));
            }
            Some(Rounding::Rp) => {
                return Some(op3!(S, |a: u32, b: u32, c: u32| -> u32 { fma_up(f(a), f(b), f(c)) }));
            }
            Some(Rounding::Rz) => {
                return Some(op3!(S, |a: u32, b: u32, c: u32| -> u32 { fma_zero(f(a), f(b), f(c)) }));
            }
            _ => {}
        }
    }
    if !plain(m) {
        return None;
    }
    Some(match (i.op, m.ftz) {
        (Op::Add, false) => op2!(S, |a: u32, b: u32| -> u32 { c32(f(a) + f(b)) }),
        (Op::Add, true) => op2!(S, |a: u32, b: u32| -> u32 { z(c32(f(z(a)) + f(z(b)))) }),
        (Op::Sub, false) => op2!(S, |a: u32, b: u32| -> u32 { c32(f(a) - f(b)) }),
        (Op::Sub, true) => op2!(S, |a: u32, b: u32| -> u32 { z(c32(f(z(a)) - f(z(b)))) }),
        (Op::Mul, false) => op2!(S, |a: u32, b: u32| -> u32 { c32(f(a) * f(b)) }),
        (Op::Mul, true) => op2!(S, |a: u32, b: u32| -> u32 { z(c32(f(z(a)) * f(z(b)))) }),
        (Op::Fma | Op::Mad, false) => {
            op3!(S, |a: u32, b: u32, c: u32| -> u32 { c32(fma32::<S>(f(a), f(b), f(c))) })
        }
        (Op::Fma | Op::Mad, true) => {
            op3!(S, |a: u32, b: u32, c: u32| -> u32 { z(c32(fma32::<S>(f(z(a)), f(z(b)), f(z(c))))) })
        }
        (Op::Div, _) if m.approx && !m.ftz => {
            op2!(S, |a: u32, b: u32| -> u32 { approx::div_lane(a, b) })
        }
        (Op::Div, false) if !m.approx => op2!(S, |a: u32, b: u32| -> u32 { c32(f(a) / f(b)) }),
        (Op::Div, true) if !m.approx => op2!(S, |a: u32, b: u32| -> u32 { z(c32(f(z(a)) / f(z(b)))) }),
        (Op::Rcp, false) => op1!(S, |a: u32| -> u32 { c32(1.0 / f(a)) }),
        (Op::Rcp, true) => op1!(S, |a: u32| -> u32 { z(c32(1.0 / f(z(a)))) }),
        (Op::Sqrt, false) => op1!(S, |a: u32| -> u32 { c32(f(a).sqrt()) }),
        (Op::Sqrt, true) => op1!(S, |a: u32| -> u32 { z(c32(f(z(a)).sqrt())) }),
        (Op::Rsqrt, false) => op1!(S, |a: u32| -> u32 { approx::rsqrt(a) }),
        (Op::Rsqrt, true) => op1!(S, |a: u32| -> u32 { z(approx::rsqrt(z(a))) }),
        (Op::Ex2, false) => op1!(S, |a: u32| -> u32 { approx::ex2_lane::<S>(a) }),
        (Op::Ex2, true) => op1!(S, |a: u32| -> u32 { z(approx::ex2_lane::<S>(z(a))) }),
        (Op::Min, false) if i.operands.len() == 3 => op2!(S, |a: u32, b: u32| -> u32 { min32(a, b) }),
        (Op::Max, false) if i.operands.len() == 3 => op2!(S, |a: u32, b: u32| -> u32 { max32(a, b) }),
        (Op::Min, true) if i.operands.len() == 3 => op2!(S, |a: u32, b: u32| -> u32 { z(min32(z(a), z(b))) }),
        (Op::Max, true) if i.operands.len() == 3 => op2!(S, |a: u32, b: u32| -> u32 { z(max32(z(a), z(b))) }),
        (Op::Neg, false) => op1!(S, |a: u32| -> u32 { a ^ 0x8000_0000 }),
        (Op::Neg, true) => op1!(S, |a: u32| -> u32 { z(a) ^ 0x8000_0000 }),
        (Op::Abs, false) => op1!(S, |a: u32| -> u32 { a & 0x7fff_ffff }),
        (Op::Abs, true) => op1!(S, |a: u32| -> u32 { z(a) & 0x7fff_ffff }),
        (Op::Copysign, _) => op2!(S, |a: u32, b: u32| -> u32 { (a & 0x8000_0000) | (b & 0x7fff_ffff) }),
        _ => return None,
    })
}

fn float64(i: &Instr) -> Option<Pair> {
    if i.op == Op::Mov {
        return Some(op1!(S, |a: u64| -> u64 { a }));
    }
    if !plain(&i.mods) || i.mods.approx {
        return None;
    }
    Some(match i.op {
        Op::Add => op2!(S, |a: u64, b: u64| -> u64 { c64(g(a) + g(b)) }),
        Op::Sub => op2!(S, |a: u64, b: u64| -> u64 { c64(g(a) - g(b)) }),
        Op::Mul => op2!(S, |a: u64, b: u64| -> u64 { c64(g(a) * g(b)) }),
        Op::Fma | Op::Mad => {
            op3!(S, |a: u64, b: u64, c: u64| -> u64 { c64(fma64::<S>(g(a), g(b), g(c))) })
        }
        Op::Div => op2!(S, |a: u64, b: u64| -> u64 { c64(g(a) / g(b)) }),
        Op::Rcp => op1!(S, |a: u64| -> u64 { c64(1.0 / g(a)) }),
        Op::Sqrt => op1!(S, |a: u64| -> u64 { c64(g(a).sqrt()) }),
        Op::Min => op2!(S, |a: u64, b: u64| -> u64 { min64(a, b) }),
        Op::Max => op2!(S, |a: u64, b: u64| -> u64 { max64(a, b) }),
        Op::Neg => op1!(S, |a: u64| -> u64 { a ^ (1 << 63) }),
        Op::Abs => op1!(S, |a: u64| -> u64 { a & !(1 << 63) }),
        _ => return None,
    })
}

#[inline(always)]
fn pair16(a: u32, b: u32, h: impl Fn(f32, f32) -> f32) -> u32 {
    let lo = f32_to_f16(h(f16_to_f32(a & 0xffff), f16_to_f32(b & 0xffff)));
    lo | f32_to_f16(h(f16_to_f32(a >> 16), f16_to_f32(b >> 16))) << 16
}

/// Exact up to the one rounding: the product has 22 bits, and where the sum does not fit 53 bits one of the
/// addends is too small to matter (or the result overflows).
#[inline(always)]
fn fma16(a: u32, b: u32, c: u32) -> u32 {
    let (x, y, v) = (f16_to_f32(a), f16_to_f32(b), f16_to_f32(c));
    f64_to_f16(f64::from(x) * f64::from(y) + f64::from(v))
}

fn float16(i: &Instr) -> Option<Pair> {
    if !plain(&i.mods) || i.mods.ftz {
        return None;
    }
    Some(match i.op {
        Op::Add => op2!(S, |a: u32, b: u32| -> u32 { f32_to_f16(f16_to_f32(a) + f16_to_f32(b)) }),
        Op::Sub => op2!(S, |a: u32, b: u32| -> u32 { f32_to_f16(f16_to_f32(a) - f16_to_f32(b)) }),
        Op::Mul => op2!(S, |a: u32, b: u32| -> u32 { f32_to_f16(f16_to_f32(a) * f16_to_f32(b)) }),
        Op::Fma => op3!(S, |a: u32, b: u32, c: u32| -> u32 { fma16(a, b, c) }),
        _ => return None,
    })
}

fn float16x2(i: &Instr) -> Option<Pair> {
    if !plain(&i.mods) || i.mods.ftz {
        return None;
    }
    Some(match i.op {
        Op::Add => op2!(S, |a: u32, b: u32| -> u32 { pair16(a, b, |x, y| x + y) }),
        Op::Sub => op2!(S, |a: u32, b: u32| -> u32 { pair16(a, b, |x, y| x - y) }),
        Op::Mul => op2!(S, |a: u32, b: u32| -> u32 { pair16(a, b, |x, y| x * y) }),
        Op::Fma => op3!(S, |a: u32, b: u32, c: u32| -> u32 {
            fma16(a & 0xffff, b & 0xffff, c & 0xffff) | fma16(a >> 16, b >> 16, c >> 16) << 16
        }),
        _ => return None,
    })
}

fn int16(i: &Instr) -> Option<Pair> {
    let signed = i.ty() == Some(Ty::S16);
    Some(match i.op {
        Op::Mov => op1!(S, |a: u32| -> u32 { a & 0xffff }),
        Op::And => op2!(S, |a: u32, b: u32| -> u32 { a & b }),
        Op::Or => op2!(S, |a: u32, b: u32| -> u32 { a | b }),
        Op::Xor => op2!(S, |a: u32, b: u32| -> u32 { a ^ b }),
        Op::Add => op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_add(b) & 0xffff }),
        Op::Sub => op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_sub(b) & 0xffff }),
        Op::Mul if i.mods.half == Some(Half::Lo) => {
            op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) & 0xffff })
        }
        Op::Mul if i.mods.half == Some(Half::Wide) && signed => {
            op2!(S, |a: u32, b: u32| -> u32 { (i32::from(a as i16) * i32::from(b as i16)) as u32 })
        }
        Op::Mul if i.mods.half == Some(Half::Wide) => {
            op2!(S, |a: u32, b: u32| -> u32 { (a & 0xffff).wrapping_mul(b & 0xffff) })
        }
        _ => return None,
    })
}

fn int32(i: &Instr) -> Option<Pair> {
    let m = &i.mods;
    let signed = i.ty() == Some(Ty::S32);
    if m.sat || m.relu {
        return None;
    }
    Some(match (i.op, m.half) {
        (Op::Mov, _) => op1!(S, |a: u32| -> u32 { a }),
        (Op::Add, _) => op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_add(b) }),
        (Op::Sub, _) => op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_sub(b) }),
        (Op::Mul, Some(Half::Lo)) => op2!(S, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
        (Op::Mul, Some(Half::Hi)) if signed => {
            op2!(S, |a: u32, b: u32| -> u32 { ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32 })
        }
        (Op::Mul, Some(Half::Hi)) => {
            op2!(S, |a: u32, b: u32| -> u32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 })
        }
        (Op::Mul, Some(Half::Wide)) if signed => {
            op2!(S, |a: u32, b: u32| -> u64 { (i64::from(a as i32) * i64::from(b as i32)) as u64 })
        }
        (Op::Mul, Some(Half::Wide)) => op2!(S, |a: u32, b: u32| -> u64 { u64::from(a) * u64::from(b) }),
        (Op::Mad, Some(Half::Lo)) => {
            op3!(S, |a: u32, b: u32, c: u32| -> u32 { a.wrapping_mul(b).wrapping_add(c) })
        }
        (Op::Mad, Some(Half::Wide)) if signed => op3!(S, |a: u32, b: u32, c: u64| -> u64 {
            ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
        }),
        (Op::Mad, Some(Half::Wide)) => {
            op3!(S, |a: u32, b: u32, c: u64| -> u64 { (u64::from(a) * u64::from(b)).wrapping_add(c) })
        }
        (Op::And, _) => op2!(S, |a: u32, b: u32| -> u32 { a & b }),
        (Op::Or, _) => op2!(S, |a: u32, b: u32| -> u32 { a | b }),
        (Op::Xor, _) => op2!(S, |a: u32, b: u32| -> u32 { a ^ b }),
        (Op::Not, _) => op1!(S, |a: u32| -> u32 { !a }),
        (Op::Neg, _) => op1!(S, |a: u32| -> u32 { a.wrapping_neg() }),
        (Op::Abs, _) => op1!(S, |a: u32| -> u32 { (a as i32).wrapping_abs() as u32 }),
        (Op::Shl, _) => op2!(S, |a: u32, n: u32| -> u32 { if n > 31 { 0 } else { a << (n & 31) } }),
        (Op::Shr, _) if signed => op2!(S, |a: u32, n: u32| -> u32 { ((a as i32) >> n.min(31)) as u32 }),
        (Op::Shr, _) => op2!(S, |a: u32, n: u32| -> u32 { if n > 31 { 0 } else { a >> (n & 31) } }),
        (Op::Min, _) if signed => op2!(S, |a: u32, b: u32| -> u32 { (a as i32).min(b as i32) as u32 }),
        (Op::Min, _) => op2!(S, |a: u32, b: u32| -> u32 { a.min(b) }),
        (Op::Max, _) if signed => op2!(S, |a: u32, b: u32| -> u32 { (a as i32).max(b as i32) as u32 }),
        (Op::Max, _) => op2!(S, |a: u32, b: u32| -> u32 { a.max(b) }),
        (Op::Div, _) if signed => op2!(S, |a: u32, b: u32| -> u32 {
            if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
        }),
        (Op::Div, _) => op2!(S, |a: u32, b: u32| -> u32 { a.checked_div(b).unwrap_or(u32::MAX) }),
        (Op::Rem, _) if signed => op2!(S, |a: u32, b: u32| -> u32 {
            if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 }
        }),
        (Op::Rem, _) => op2!(S, |a: u32, b: u32| -> u32 { a.checked_rem(b).unwrap_or(a) }),
        (Op::Popc, _) => op1!(S, |a: u32| -> u32 { a.count_ones() }),
        (Op::Clz, _) => op1!(S, |a: u32| -> u32 { a.leading_zeros() }),
        (Op::Brev, _) => op1!(S, |a: u32| -> u32 { a.reverse_bits() }),
        _ => return None,
    })
}

fn int64(i: &Instr) -> Option<Pair> {
    let signed = i.ty() == Some(Ty::S64);
    Some(match (i.op, i.mods.half) {
        (Op::Mov | Op::Cvta, _) => op1!(S, |a: u64| -> u64 { a }),
        (Op::Add, _) => op2!(S, |a: u64, b: u64| -> u64 { a.wrapping_add(b) }),
        (Op::Sub, _) => op2!(S, |a: u64, b: u64| -> u64 { a.wrapping_sub(b) }),
        (Op::Mul, Some(Half::Lo)) => op2!(S, |a: u64, b: u64| -> u64 { a.wrapping_mul(b) }),
        (Op::Mad, Some(Half::Lo)) => {
            op3!(S, |a: u64, b: u64, c: u64| -> u64 { a.wrapping_mul(b).wrapping_add(c) })
        }
        (Op::And, _) => op2!(S, |a: u64, b: u64| -> u64 { a & b }),
        (Op::Or, _) => op2!(S, |a: u64, b: u64| -> u64 { a | b }),
        (Op::Xor, _) => op2!(S, |a: u64, b: u64| -> u64 { a ^ b }),
        (Op::Not, _) => op1!(S, |a: u64| -> u64 { !a }),
        (Op::Neg, _) => op1!(S, |a: u64| -> u64 { a.wrapping_neg() }),
        (Op::Shl, _) => op2!(S, |a: u64, n: u32| -> u64 { if n > 63 { 0 } else { a << (n & 63) } }),
        (Op::Shr, _) if signed => op2!(S, |a: u64, n: u32| -> u64 { ((a as i64) >> n.min(63)) as u64 }),
        (Op::Shr, _) => op2!(S, |a: u64, n: u32| -> u64 { if n > 63 { 0 } else { a >> (n & 63) } }),
        (Op::Min, _) if signed => op2!(S, |a: u64, b: u64| -> u64 { (a as i64).min(b as i64) as u64 }),
        (Op::Min, _) => op2!(S, |a: u64, b: u64| -> u64 { a.min(b) }),
        (Op::Max, _) if signed => op2!(S, |a: u64, b: u64| -> u64 { (a as i64).max(b as i64) as u64 }),
        (Op::Max, _) => op2!(S, |a: u64, b: u64| -> u64 { a.max(b) }),
        (Op::Div, _) if signed => op2!(S, |a: u64, b: u64| -> u64 {
            if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
        }),
        (Op::Div, _) => op2!(S, |a: u64, b: u64| -> u64 { a.checked_div(b).unwrap_or(u64::MAX) }),
        (Op::Rem, _) if signed => op2!(S, |a: u64, b: u64| -> u64 {
            if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 }
        }),
        (Op::Rem, _) => op2!(S, |a: u64, b: u64| -> u64 { a.checked_rem(b).unwrap_or(a) }),
        _ => return None,
    })
}

/// `setp` without a boolean operator. (Its second result needs no form of its own.)
fn compare(i: &Instr) -> Option<Pair> {
    let m = &i.mods;
    if m.bool_op.is_some() || m.ftz {
        return None;
    }
    macro_rules! table {
        ($A:ty, $cast:expr) => {
            match m.cmp? {
                Cmp::Eq => cmp2!(|a: $A, b| { $cast(a) == $cast(b) }),
                Cmp::Ne => cmp2!(|a: $A, b| { $cast(a) != $cast(b) }),
                Cmp::Lt | Cmp::Lo => cmp2!(|a: $A, b| { $cast(a) < $cast(b) }),
                Cmp::Le | Cmp::Ls => cmp2!(|a: $A, b| { $cast(a) <= $cast(b) }),
                Cmp::Gt | Cmp::Hi => cmp2!(|a: $A, b| { $cast(a) > $cast(b) }),
                Cmp::Ge | Cmp::Hs => cmp2!(|a: $A, b| { $cast(a) >= $cast(b) }),
                _ => return None,
            }
        };
    }
    // For floats `ne` is ordered, and the `u` comparisons are the complements of the opposite ones.
    macro_rules! float_table {
        ($A:ty, $cast:expr) => {
            match m.cmp? {
                Cmp::Eq => cmp2!(|a: $A, b| { $cast(a) == $cast(b) }),
                Cmp::Ne => cmp2!(|a: $A, b| { $cast(a) < $cast(b) || $cast(a) > $cast(b) }),
                Cmp::Lt => cmp2!(|a: $A, b| { $cast(a) < $cast(b) }),
                Cmp::Le => cmp2!(|a: $A, b| { $cast(a) <= $cast(b) }),
                Cmp::Gt => cmp2!(|a: $A, b| { $cast(a) > $cast(b) }),
                Cmp::Ge => cmp2!(|a: $A, b| { $cast(a) >= $cast(b) }),
                Cmp::Equ => cmp2!(|a: $A, b| { !($cast(a) < $cast(b) || $cast(a) > $cast(b)) }),
                Cmp::Neu => cmp2!(|a: $A, b| { $cast(a) != $cast(b) }),
                Cmp::Ltu => cmp2!(|a: $A, b| { !($cast(a) >= $cast(b)) }),
                Cmp::Leu => cmp2!(|a: $A, b| { !($cast(a) > $cast(b)) }),
                Cmp::Gtu => cmp2!(|a: $A, b| { !($cast(a) <= $cast(b)) }),
                Cmp::Geu => cmp2!(|a: $A, b| { !($cast(a) < $cast(b)) }),
                Cmp::Num => cmp2!(|a: $A, b| { !$cast(a).is_nan() && !$cast(b).is_nan() }),
                Cmp::Nan => cmp2!(|a: $A, b| { $cast(a).is_nan() || $cast(b).is_nan() }),
                _ => return None,
            }
        };
    }
    Some(match i.ty()? {
        Ty::S32 => table!(u32, |x: u32| x as i32),
        Ty::U32 | Ty::B32 => table!(u32, |x: u32| x),
        Ty::S64 => table!(u64, |x: u64| x as i64),
        Ty::U64 | Ty::B64 => table!(u64, |x: u64| x),
        Ty::S16 => table!(u32, |x: u32| x as i16),
        Ty::U16 | Ty::B16 => table!(u32, |x: u32| x as u16),
        Ty::F32 => float_table!(u32, |x: u32| f(x)),
        Ty::F64 => float_table!(u64, |x: u64| g(x)),
        _ => return None,
    })
}

fn cvt(i: &Instr) -> Option<Pair> {
    let m = &i.mods;
    let (to, from) = (i.ty()?, i.src_ty()?);
    if m.relu || m.satfinite {
        return None;
    }
    if m.sat {
        return match (to, from, m.ftz, m.rounding) {
            (Ty::F32, Ty::F32, false, None) => Some(op1!(S, |a: u32| -> u32 { sat32(a) })),
            _ => None,
        };
    }
    let nearest = matches!(m.rounding, None | Some(Rounding::Rn));
    Some(match (to, from) {
        (Ty::S64, Ty::S32) => op1!(S, |a: u32| -> u64 { i64::from(a as i32) as u64 }),
        (Ty::U64 | Ty::S64, Ty::U32) => op1!(S, |a: u32| -> u64 { u64::from(a) }),
        (Ty::U32 | Ty::S32, Ty::U64 | Ty::S64) => op1!(S, |a: u64| -> u32 { a as u32 }),
        (Ty::U32 | Ty::S32, Ty::U32 | Ty::S32) => op1!(S, |a: u32| -> u32 { a }),
        (Ty::U32 | Ty::S32, Ty::U16) => op1!(S, |a: u32| -> u32 { a & 0xffff }),
        (Ty::S32 | Ty::U32, Ty::S16) => op1!(S, |a: u32| -> u32 { i32::from(a as i16) as u32 }),
        (Ty::S32 | Ty::U32, Ty::S8) => op1!(S, |a: u32| -> u32 { i32::from(a as i8) as u32 }),
        (Ty::U16, Ty::U32 | Ty::S32) => op1!(S, |a: u32| -> u32 { a & 0xffff }),
        (Ty::F32, Ty::S32) if nearest => op1!(S, |a: u32| -> u32 { (a as i32 as f32).to_bits() }),
        (Ty::F32, Ty::U32) if nearest => op1!(S, |a: u32| -> u32 { (a as f32).to_bits() }),
        (Ty::F64, Ty::S32) => op1!(S, |a: u32| -> u64 { f64::from(a as i32).to_bits() }),
        (Ty::F64, Ty::U32) => op1!(S, |a: u32| -> u64 { f64::from(a).to_bits() }),
        (Ty::F32, Ty::S64) if nearest => op1!(S, |a: u64| -> u32 { (a as i64 as f32).to_bits() }),
        (Ty::S32, Ty::F32) if m.rounding == Some(Rounding::Rzi) && !m.ftz => {
            op1!(S, |a: u32| -> u32 { f(a) as i32 as u32 })
        }
        (Ty::U32, Ty::F32) if m.rounding == Some(Rounding::Rzi) && !m.ftz => {
            op1!(S, |a: u32| -> u32 { f(a) as u32 })
        }
        (Ty::F64, Ty::F32) if !m.ftz => op1!(S, |a: u32| -> u64 { c64(f64::from(f(a))) }),
        (Ty::F32, Ty::F64) if nearest && !m.ftz => op1!(S, |a: u64| -> u32 { c32(g(a) as f32) }),
        (Ty::F32, Ty::F16) if !m.ftz => op1!(S, |a: u32| -> u32 { c32(f16_to_f32(a)) }),
        (Ty::F16, Ty::F32) if nearest && !m.ftz => op1!(S, |a: u32| -> u32 { f32_to_f16(f(a)) }),
        (Ty::F32, Ty::Bf16) if !m.ftz => op1!(S, |a: u32| -> u32 { c32(f(a << 16)) }),
        (Ty::Bf16, Ty::F32) if nearest && !m.ftz => op1!(S, |a: u32| -> u32 { f32_to_bf16(f(a)) }),
        (Ty::F16x2, Ty::F32) if nearest && !m.ftz => {
            op2!(S, |a: u32, b: u32| -> u32 { f32_to_f16(f(a)) << 16 | f32_to_f16(f(b)) })
        }
        (Ty::Bf16x2, Ty::F32) if nearest && !m.ftz => {
            op2!(S, |a: u32, b: u32| -> u32 { f32_to_bf16(f(a)) << 16 | f32_to_bf16(f(b)) })
        }
        (Ty::F32, Ty::F32) if !m.ftz => match m.rounding {
            Some(Rounding::Rmi) => op1!(S, |a: u32| -> u32 { c32(libm_free_floor(f(a))) }),
            Some(Rounding::Rpi) => op1!(S, |a: u32| -> u32 { c32(-libm_free_floor(-f(a))) }),
            None => op1!(S, |a: u32| -> u32 { c32(f(a)) }),
            _ => return None,
        },
        _ => return None,
    })
}

/// The floor by integer conversion (no libm call): values of 2^23 and more are integral already.
#[inline(always)]
fn libm_free_floor(x: f32) -> f32 {
    let t = x as i32 as f32;
    let r = if t > x { t - 1.0 } else { t };
    let r = if x.abs() < 8_388_608.0 { r } else { x };
    // Keep the sign of zero: floor(-0.0) is -0.0, floor(-0.5) is -1.
    f(r.to_bits() | (x.to_bits() & 0x8000_0000))
}
