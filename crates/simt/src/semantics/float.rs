//! Floating-point instructions.
//!
//! Source: PTX ISA, "Floating-Point Instructions", "Half Precision Floating-Point Instructions" and "Comparison
//! and Selection Instructions". NaN results are canonical; `abs`, `neg` and `copysign` change the sign bit only.

use assay_ptx::{Cmp, Instr, Mods, Op, Rounding, TestProperty, Ty};

use super::approx;
use super::int::finish_comparison;
use super::soft::{self, BF16, F16, F32, F64, Format, Mode};
use super::{Scalar, mask};

/// The format of a type's elements and whether there are two of them. (`.f32x2` is not packed here: see [`build`].)
pub(crate) fn format(ty: Ty) -> Option<(Format, bool)> {
    Some(match ty {
        Ty::F16 => (F16, false),
        Ty::F16x2 => (F16, true),
        Ty::Bf16 => (BF16, false),
        Ty::Bf16x2 => (BF16, true),
        Ty::F32 => (F32, false),
        Ty::F64 => (F64, false),
        _ => return None,
    })
}

/// The rounding mode of an instruction; nearest even if none is written.
pub(crate) fn mode(m: &Mods) -> Mode {
    match m.rounding {
        Some(Rounding::Rz | Rounding::Rzi) => Mode::Zero,
        Some(Rounding::Rm | Rounding::Rmi) => Mode::Down,
        Some(Rounding::Rp | Rounding::Rpi) => Mode::Up,
        Some(Rounding::Rna) => Mode::Away,
        Some(Rounding::Rn | Rounding::Rni) | None => Mode::Even,
    }
}

/// What is done to every result: flush, saturate, clamp.
#[derive(Clone, Copy)]
struct Finish {
    f: Format,
    ftz: bool,
    sat: bool,
    relu: bool,
}

impl Finish {
    fn input(self, x: u64) -> u64 {
        if self.ftz { self.f.flush(x) } else { x }
    }

    fn output(self, x: u64) -> u64 {
        let x = if self.ftz { self.f.flush(x) } else { x };
        if self.sat {
            return saturate(self.f, x);
        }
        if self.relu && !self.f.is_nan(x) && x & self.f.sign_bit() != 0 { 0 } else { x }
    }
}

/// One in `f`.
pub(crate) fn one(f: Format) -> u64 {
    soft::from_int(f, Mode::Even, false, 1)
}

/// Clamps to [0, 1]; NaN gives +0.
pub(crate) fn saturate(f: Format, x: u64) -> u64 {
    if f.is_nan(x) || x & f.sign_bit() != 0 { 0 } else { x.min(one(f)) }
}

/// Applies `g` to each element of packed operands.
fn both(two: bool, [a, b, c, d]: [u64; 4], g: impl Fn(u64, u64, u64) -> u64) -> u64 {
    let _ = d;
    if two {
        let h = |s: u32| g(a >> s & 0xffff, b >> s & 0xffff, c >> s & 0xffff) & 0xffff;
        h(0) | h(16) << 16
    } else {
        g(a, b, c)
    }
}

/// `min` and `max`: -0 is below +0; a NaN loses, unless `.NaN`.
fn least(f: Format, m: &Mods, min: bool) -> impl Fn(u64, u64) -> u64 + Send + Sync + Clone + 'static {
    let (nan, xorsign) = (m.nan, m.xorsign_abs);
    move |a, b| {
        let sign = if xorsign { (a ^ b) & f.sign_bit() } else { 0 };
        let strip = |x: u64| if xorsign { x & !f.sign_bit() } else { x };
        let (a, b) = (strip(a), strip(b));
        let r = match (f.is_nan(a), f.is_nan(b)) {
            (true, true) => return f.nan,
            (true, false) | (false, true) if nan => return f.nan,
            (true, false) => b,
            (false, true) => a,
            (false, false) => {
                // Total order of sign-magnitude bits.
                let key =
                    |x: u64| if x & f.sign_bit() != 0 { -((x & !f.sign_bit()) as i64) - 1 } else { x as i64 };
                if (key(a) < key(b)) == min { a } else { b }
            }
        };
        if xorsign { r & !f.sign_bit() | sign } else { r }
    }
}

/// The lane function of a floating-point instruction.
pub(crate) fn build(i: &Instr) -> Option<Scalar> {
    let ty = i.ty()?;
    let m = i.mods;
    if i.op == Op::Testp {
        return testp(i);
    }
    if ty == Ty::F32x2 {
        // Two of the same on the halves of 64 bits.
        let mut one = i.clone();
        one.types[0] = Some(Ty::F32);
        let Scalar { f, sources, .. } = build(&one)?;
        let types = vec![ty; sources.len()];
        return Scalar::new(ty, &types, move |v| f(v.map(|x| x & 0xffff_ffff)) | f(v.map(|x| x >> 32)) << 32);
    }
    let (f, two) = format(ty)?;
    let fin = Finish { f, ftz: m.ftz, sat: m.sat, relu: m.relu };
    let mode = mode(&m);
    if m.oob {
        return None;
    }
    macro_rules! nary {
        ($types:expr, |$a:ident, $b:ident, $c:ident| $e:expr) => {
            Scalar::new(ty, $types, move |v| {
                both(two, v, |a, b, c| {
                    let ($a, $b, $c) = (fin.input(a), fin.input(b), fin.input(c));
                    let _ = ($b, $c);
                    fin.output($e)
                })
            })
        };
    }
    match i.op {
        Op::Add => nary!(&[ty, ty], |a, b, c| soft::add(f, mode, a, b)),
        Op::Sub => nary!(&[ty, ty], |a, b, c| soft::add(f, mode, a, b ^ f.sign_bit())),
        Op::Mul => nary!(&[ty, ty], |a, b, c| soft::mul(f, mode, a, b)),
        Op::Fma | Op::Mad => nary!(&[ty, ty, ty], |a, b, c| soft::fma(f, mode, a, b, c)),
        Op::Div if m.approx && ty == Ty::F32 => nary!(&[ty, ty], |a, b, c| approx::div(a, b)),
        Op::Div => nary!(&[ty, ty], |a, b, c| soft::div(f, mode, a, b)),
        Op::Min | Op::Max => {
            let g = least(f, &m, i.op == Op::Min);
            if i.operands.len() > 3 {
                return nary!(&[ty, ty, ty], |a, b, c| g(g(a, b), c));
            }
            nary!(&[ty, ty], |a, b, c| g(a, b))
        }
        Op::Neg => nary!(&[ty], |a, b, c| a ^ f.sign_bit()),
        Op::Abs => nary!(&[ty], |a, b, c| a & !f.sign_bit()),
        Op::Copysign => {
            Scalar::new(ty, &[ty, ty], move |[a, b, ..]| (a & f.sign_bit()) | (b & !f.sign_bit() & mask(ty)))
        }
        Op::Rcp if m.approx && ty == Ty::F64 => Scalar::new(ty, &[ty], |[a, ..]| approx::rcp_f64(a)),
        Op::Rcp => nary!(&[ty], |a, b, c| soft::div(f, mode, one(f), a)),
        Op::Rsqrt if ty == Ty::F64 => {
            let ftz = m.ftz;
            Scalar::new(ty, &[ty], move |[a, ..]| approx::rsqrt_f64(a, ftz))
        }
        Op::Rsqrt => nary!(&[ty], |a, b, c| u64::from(approx::rsqrt(a as u32))),
        Op::Sqrt => nary!(&[ty], |a, b, c| soft::sqrt(f, mode, a)),
        Op::Ex2 if ty == Ty::F32 => nary!(&[ty], |a, b, c| u64::from(approx::ex2(a as u32))),
        Op::Lg2 if ty == Ty::F32 => nary!(&[ty], |a, b, c| u64::from(approx::lg2(a as u32))),
        Op::Sin if ty == Ty::F32 => nary!(&[ty], |a, b, c| u64::from(approx::sin(a as u32))),
        Op::Cos if ty == Ty::F32 => nary!(&[ty], |a, b, c| u64::from(approx::cos(a as u32))),
        Op::Tanh if ty == Ty::F32 => nary!(&[ty], |a, b, c| u64::from(approx::tanh(a as u32))),
        Op::Ex2 | Op::Tanh => {
            // Half precision: through binary64, whose error is far below half an ULP of either format.
            let g: fn(f64) -> f64 = if i.op == Op::Ex2 { libm::exp2 } else { libm::tanh };
            nary!(&[ty], |a, b, c| {
                let x = f64::from_bits(soft::convert(f, F64, Mode::Even, a));
                soft::convert(F64, f, Mode::Even, g(x).to_bits())
            })
        }
        _ => None,
    }
}

fn testp(i: &Instr) -> Option<Scalar> {
    let ty = i.ty()?;
    let (f, _) = format(ty)?;
    let property = i.mods.testp?;
    Scalar::new(Ty::Pred, &[ty], move |[a, ..]| {
        let magnitude = a & !f.sign_bit() & mask(ty);
        let normal = magnitude >> (f.precision - 1) != 0 && magnitude < f.inf();
        u64::from(match property {
            TestProperty::Finite => magnitude < f.inf(),
            TestProperty::Infinite => magnitude == f.inf(),
            TestProperty::Number => !f.is_nan(a),
            TestProperty::Notanumber => f.is_nan(a),
            // Zero counts as normal (manual, `testp`).
            TestProperty::Normal => normal || magnitude == 0,
            TestProperty::Subnormal => !normal && magnitude != 0 && magnitude < f.inf(),
        })
    })
}

/// The result of `cmp` on two values as (less, equal, unordered).
fn ordered(f: Format, a: u64, b: u64) -> (bool, bool, bool) {
    if f.is_nan(a) || f.is_nan(b) {
        return (false, false, true);
    }
    let key = |x: u64| {
        let magnitude = (x & !f.sign_bit()) as i64;
        if x & f.sign_bit() != 0 { -magnitude } else { magnitude }
    };
    (key(a) < key(b), key(a) == key(b), false)
}

fn test(f: Format, cmp: Cmp, a: u64, b: u64) -> bool {
    let (less, equal, unordered) = ordered(f, a, b);
    let greater = !less && !equal && !unordered;
    match cmp {
        Cmp::Eq => equal,
        Cmp::Ne => less || greater,
        Cmp::Lt | Cmp::Lo => less,
        Cmp::Le | Cmp::Ls => less || equal,
        Cmp::Gt | Cmp::Hi => greater,
        Cmp::Ge | Cmp::Hs => greater || equal,
        Cmp::Equ => equal || unordered,
        Cmp::Neu => !equal,
        Cmp::Ltu => less || unordered,
        Cmp::Leu => less || equal || unordered,
        Cmp::Gtu => greater || unordered,
        Cmp::Geu => greater || equal || unordered,
        Cmp::Num => !unordered,
        Cmp::Nan => unordered,
    }
}

/// `set` and `setp` on floats; `None` for other types.
pub(crate) fn comparison(i: &Instr) -> Option<Scalar> {
    let cmp = i.mods.cmp?;
    let ty = if i.op == Op::Set { i.src_ty()? } else { i.ty()? };
    let (f, two) = format(ty)?;
    let ftz = i.mods.ftz;
    let input = move |x: u64| if ftz { f.flush(x) } else { x };
    finish_comparison(i, ty, move |a, b| {
        if two {
            let h = |s: u32| u64::from(test(f, cmp, input(a >> s & 0xffff), input(b >> s & 0xffff)));
            h(0) | h(16) << 1
        } else {
            u64::from(test(f, cmp, input(a), input(b)))
        }
    })
}
