//! `cvt` in all its forms.
//!
//! Source: PTX ISA, "Data Movement and Conversion Instructions: cvt". Float to integer clamps to the range of
//! the destination; NaN gives zero, or the top bit where the source is `.f64` or the destination has 64 bits.
//! The 8-bit formats come in pairs; results that are too large for them become the largest value (`.satfinite`).

use assay_ptx::{Instr, Rounding, Ty};

use super::float::{format, mode, saturate};
use super::soft::{self, E5M2, F16, F32, Format, Mode, TF32};
use super::{Scalar, mask, value};

/// The lane function of a `cvt`.
pub(crate) fn build(i: &Instr) -> Option<Scalar> {
    let (to, from) = (i.ty()?, i.src_ty()?);
    let m = i.mods;
    if to == Ty::Tf32 && from == Ty::F32 {
        let mode = mode(&m);
        return Scalar::new(Ty::B32, &[Ty::F32], move |[a, ..]| {
            if F32.is_nan(a) { F32.nan } else { finish(TF32, F32, mode, false, &m, a) << 13 }
        });
    }
    if let Some(s) = eight_bits(i, to, from) {
        return Some(s);
    }
    match (format(to), format(from)) {
        (Some((t, true)), Some((f, false))) if f == F32 => packed(i, t),
        (Some((_, true)), _) | (_, Some((_, true))) => None,
        (Some((t, false)), Some((f, false))) => float_to_float(i, t, f),
        (Some((t, false)), None) if is_int(from) => int_to_float(i, t, from),
        (None, Some((f, false))) if is_int(to) => float_to_int(i, to, f),
        (None, None) if is_int(to) && is_int(from) => int_to_int(i, to, from),
        _ => None,
    }
}

/// Conversions from and to pairs of 8-bit floats.
fn eight_bits(i: &Instr, to: Ty, from: Ty) -> Option<Scalar> {
    let relu = i.mods.relu;
    let is_pair = |ty: Ty| matches!(ty, Ty::E4m3x2 | Ty::E5m2x2);
    if is_pair(from) && to == Ty::F16x2 {
        return Scalar::new(to, &[from], move |[a, ..]| {
            let half = |b: u64| {
                let h = match from {
                    Ty::E4m3x2 => soft::e4m3_to(F16, b),
                    _ => soft::convert(E5M2, F16, Mode::Even, b),
                };
                if relu && !F16.is_nan(h) && h & F16.sign_bit() != 0 { 0 } else { h }
            };
            half(a & 0xff) | half(a >> 8 & 0xff) << 16
        });
    }
    if !is_pair(to) {
        return None;
    }
    let narrow = move |f: Format, x: u64| {
        let x = if relu && !f.is_nan(x) && x & f.sign_bit() != 0 { 0 } else { x };
        if to == Ty::E4m3x2 {
            return soft::to_e4m3(f, x);
        }
        let r = soft::convert(f, E5M2, Mode::Even, x);
        if r & 0x7f == E5M2.inf() { r - 1 } else { r }
    };
    match from {
        // `a` goes to the upper byte.
        Ty::F32 => Scalar::new(to, &[from, from], move |[a, b, ..]| narrow(F32, a) << 8 | narrow(F32, b)),
        Ty::F16x2 => Scalar::new(to, &[from], move |[a, ..]| {
            narrow(F16, a & 0xffff) | narrow(F16, a >> 16 & 0xffff) << 8
        }),
        _ => None,
    }
}

fn is_int(ty: Ty) -> bool {
    matches!(ty, Ty::U8 | Ty::S8 | Ty::U16 | Ty::S16 | Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64)
}

/// The least and greatest value of an integer type.
fn range(ty: Ty) -> (i128, i128) {
    let bits = ty.bits() as u32;
    if ty.is_signed() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

fn int_to_int(i: &Instr, to: Ty, from: Ty) -> Option<Scalar> {
    let sat = i.mods.sat;
    Scalar::new(to, &[from], move |[a, ..]| {
        let v = value(a, from);
        let v = if sat { v.clamp(range(to).0, range(to).1) } else { v };
        v as u64 & mask(to)
    })
}

fn int_to_float(i: &Instr, t: Format, from: Ty) -> Option<Scalar> {
    let (mode, sat, relu) = (mode(&i.mods), i.mods.sat, i.mods.relu);
    Scalar::new(i.ty()?, &[from], move |[a, ..]| {
        let v = value(a, from);
        let r = soft::from_int(t, mode, v < 0, v.unsigned_abs() as u64);
        if sat {
            saturate(t, r)
        } else if relu && v < 0 {
            0
        } else {
            r
        }
    })
}

fn float_to_int(i: &Instr, to: Ty, f: Format) -> Option<Scalar> {
    let (mode, ftz) = (mode(&i.mods), i.mods.ftz && f == F32);
    let (lo, hi) = range(to);
    let nan = if f.bits == 64 || to.bits() == 64 { 1 << (to.bits() - 1) } else { 0 };
    Scalar::new(to, &[i.src_ty()?], move |[a, ..]| {
        let a = if ftz { f.flush(a) } else { a };
        match soft::to_integral(f, mode, a) {
            None => nan,
            Some((sign, m)) => {
                let v = i128::try_from(m).unwrap_or(i128::MAX);
                (if sign { -v } else { v }).clamp(lo, hi) as u64 & mask(to)
            }
        }
    })
}

fn float_to_float(i: &Instr, t: Format, f: Format) -> Option<Scalar> {
    let m = i.mods;
    let mode = mode(&m);
    let integral = matches!(m.rounding, Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi));
    Scalar::new(i.ty()?, &[i.src_ty()?], move |[a, ..]| finish(t, f, mode, integral, &m, a))
}

fn finish(t: Format, f: Format, mode: Mode, integral: bool, m: &assay_ptx::Mods, a: u64) -> u64 {
    // Only `.f32` operands and results are flushed.
    let a = if m.ftz && f == F32 { f.flush(a) } else { a };
    let r = if integral && t == f { soft::round_integral(f, mode, a) } else { soft::convert(f, t, mode, a) };
    let r = if m.ftz && t == F32 { t.flush(r) } else { r };
    if m.sat {
        return saturate(t, r);
    }
    let negative = r & t.sign_bit() != 0;
    if m.relu && negative && !t.is_nan(r) {
        return 0;
    }
    if m.satfinite && r & !t.sign_bit() == t.inf() {
        return (r & t.sign_bit()) | (t.inf() - 1);
    }
    r
}

/// `cvt.rn.f16x2.f32 d, a, b`: `a` goes to the upper half.
fn packed(i: &Instr, t: Format) -> Option<Scalar> {
    let m = i.mods;
    let mode = mode(&m);
    Scalar::new(i.ty()?, &[Ty::F32, Ty::F32], move |[a, b, ..]| {
        finish(t, F32, mode, false, &m, a) << 16 | finish(t, F32, mode, false, &m, b)
    })
}
