//! Floating-point arithmetic and comparisons, by `rustc_apfloat`.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::table::Spelling;
use super::vectors::mask;
use super::{Oracle, Want};

/// The scalar type of a packed one and how many there are.
pub fn elements(ty: &'static str) -> (&'static str, u32) {
    match ty {
        "f16x2" => ("f16", 2),
        "bf16x2" => ("bf16", 2),
        "f32x2" => ("f32", 2),
        "u16x2" => ("u16", 2),
        "s16x2" => ("s16", 2),
        other => (other, 1),
    }
}

/// Sign, exponent and fraction of a format, and its canonical NaN.
#[derive(Clone, Copy)]
pub struct Format {
    pub bits: u32,
    fraction: u32,
    pub nan: u64,
}

pub fn format(ty: &str) -> Option<Format> {
    Some(match ty {
        "f16" => Format { bits: 16, fraction: 10, nan: 0x7fff },
        "bf16" => Format { bits: 16, fraction: 7, nan: 0x7fff },
        "f32" => Format { bits: 32, fraction: 23, nan: 0x7fff_ffff },
        "f64" => Format { bits: 64, fraction: 52, nan: 0x7ff8_0000_0000_0000 },
        _ => return None,
    })
}

impl Format {
    pub fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    pub fn inf(self) -> u64 {
        (self.sign() - 1) & !mask(self.fraction)
    }

    pub fn is_nan(self, x: u64) -> bool {
        x & (self.sign() - 1) > self.inf()
    }

    /// Subnormals to zero of the same sign.
    pub fn flush(self, x: u64) -> u64 {
        if x & self.inf() == 0 { x & self.sign() } else { x }
    }

    pub fn one(self) -> u64 {
        self.inf() >> 1 & !mask(self.fraction)
    }
}

/// The rounding mode of a spelling.
pub fn round(s: &Spelling) -> Round {
    let has = |list: &[&str]| list.iter().any(|w| s.has(w));
    if has(&["rz", "rzi"]) {
        Round::TowardZero
    } else if has(&["rm", "rmi"]) {
        Round::TowardNegative
    } else if has(&["rp", "rpi"]) {
        Round::TowardPositive
    } else if has(&["rna"]) {
        Round::NearestTiesToAway
    } else {
        Round::NearestTiesToEven
    }
}

/// Which operation of two or three numbers.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
}

fn float<T: Float>(x: u64) -> T {
    T::from_bits(u128::from(x))
}

fn apply<T: Float + FloatConvert<Quad>>(op: Operation, r: Round, v: &[u64]) -> u64
where
    Quad: FloatConvert<T>,
{
    let a: T = float(v[0]);
    let other = |k: usize| -> T { float(v[k]) };
    let out = match op {
        Operation::Add => a.add_r(other(1), r).value,
        Operation::Sub => a.sub_r(other(1), r).value,
        Operation::Mul => a.mul_r(other(1), r).value,
        Operation::Div => a.div_r(other(1), r).value,
        Operation::Fma => a.mul_add_r(other(1), other(2), r).value,
        Operation::Rcp => T::from_u128(1).value.div_r(a, r).value,
        Operation::Sqrt => return sqrt(a, r),
    };
    out.to_bits() as u64
}

/// The square root by integers: with x = m * 2^(2e), the root of m cut off, and a last bit that says whether anything
/// was; that number fits a binary128 exactly and is rounded from there.
fn sqrt<T: Float + FloatConvert<Quad>>(x: T, r: Round) -> u64
where
    Quad: FloatConvert<T>,
{
    if x.is_nan() || x.is_zero() || (x.is_infinite() && !x.is_negative()) {
        return x.to_bits() as u64;
    }
    if x.is_negative() {
        return T::NAN.to_bits() as u64;
    }
    let mut lost = false;
    let wide: Quad = x.convert(&mut lost).value;
    // Bring the value to an integer of 121 or 122 bits.
    let exponent = wide.ilogb();
    let up = 121 - exponent - (121 - exponent).rem_euclid(2);
    let m = wide.scalbn(up).to_u128(128).value;
    let root = m.isqrt();
    let sticky = root * root != m;
    let exact = Quad::from_u128(root << 1 | u128::from(sticky)).value.scalbn(-up / 2 - 1);
    let out: T = exact.convert_r(r, &mut lost).value;
    out.to_bits() as u64
}

fn dispatch(ty: &str, op: Operation, r: Round, v: &[u64]) -> u64 {
    match ty {
        "f16" => apply::<Half>(op, r, v),
        "bf16" => apply::<BFloat>(op, r, v),
        "f32" => apply::<Single>(op, r, v),
        _ => apply::<Double>(op, r, v),
    }
}

/// Applies `f` to each element of packed operands.
fn each(count: u32, bits: u32, v: &[u64], f: impl Fn(&[u64]) -> u64) -> u64 {
    (0..count).fold(0, |r, k| {
        let part: Vec<u64> = v.iter().map(|x| x >> (bits * k) & mask(bits)).collect();
        r | (f(&part) & mask(bits)) << (bits * k)
    })
}

pub fn saturate(f: Format, x: u64) -> u64 {
    if f.is_nan(x) || x & f.sign() != 0 {
        0
    } else if x > f.one() {
        f.one()
    } else {
        x
    }
}

pub fn oracle(s: &Spelling) -> Option<Oracle> {
    if matches!(s.name(), "set" | "setp") {
        return compare(s);
    }
    let (ty, count) = elements(s.ty(0));
    let f = format(ty)?;
    let (ftz, sat, relu) = (s.has("ftz"), s.has("sat"), s.has("relu"));
    let r = round(s);
    let op = match s.name() {
        "add" => Operation::Add,
        "sub" => Operation::Sub,
        "mul" => Operation::Mul,
        "fma" | "mad" => Operation::Fma,
        "div" => Operation::Div,
        "rcp" => Operation::Rcp,
        "sqrt" => Operation::Sqrt,
        "min" | "max" => return extremum(s, f, count),
        "neg" | "abs" => {
            let neg = s.name() == "neg";
            return Some(Box::new(move |v| {
                Want::bits(each(count, f.bits, v, |v| {
                    let x = if ftz { f.flush(v[0]) } else { v[0] };
                    if neg { x ^ f.sign() } else { x & !f.sign() }
                }))
            }));
        }
        "copysign" => {
            return Some(Box::new(move |v| Want::bits((v[0] & f.sign()) | (v[1] & (f.sign() - 1)))));
        }
        "testp" => return testp(s, f),
        _ => return None,
    };
    Some(Box::new(move |v| {
        Want::bits(each(count, f.bits, v, |v| {
            let v: Vec<u64> = v.iter().map(|x| if ftz { f.flush(*x) } else { *x }).collect();
            let x = dispatch(ty, op, r, &v);
            let x = if f.is_nan(x) { f.nan } else { x };
            let x = if ftz { f.flush(x) } else { x };
            if sat {
                saturate(f, x)
            } else if relu && !f.is_nan(x) && x & f.sign() != 0 {
                0
            } else {
                x
            }
        }))
    }))
}

/// `min` and `max` by the rules of the manual: NaN loses (or, with `.NaN`, wins), -0 is below +0.
fn extremum(s: &Spelling, f: Format, count: u32) -> Option<Oracle> {
    let (ftz, nan, xorsign, min) = (s.has("ftz"), s.has("NaN"), s.has("xorsign"), s.name() == "min");
    let three = s.operands.len() > 3;
    let two = move |a: u64, b: u64| {
        let sign = (a ^ b) & f.sign();
        let (a, b) = if xorsign { (a & !f.sign(), b & !f.sign()) } else { (a, b) };
        if nan && (f.is_nan(a) || f.is_nan(b)) || f.is_nan(a) && f.is_nan(b) {
            return f.nan;
        }
        let r = if f.is_nan(a) {
            b
        } else if f.is_nan(b) {
            a
        } else {
            // Order of magnitudes by bits, negative ones reversed; -0 comes right before +0.
            let rank = |x: u64| {
                if x & f.sign() != 0 { -1 - i128::from(x & !f.sign()) } else { i128::from(x) }
            };
            if (rank(a) <= rank(b)) == min { a } else { b }
        };
        if xorsign { r & !f.sign() | sign } else { r }
    };
    Some(Box::new(move |v| {
        Want::bits(each(count, f.bits, v, |v| {
            let v: Vec<u64> = v.iter().map(|x| if ftz { f.flush(*x) } else { *x }).collect();
            let r = two(v[0], v[1]);
            if three { two(r, v[2]) } else { r }
        }))
    }))
}

fn testp(s: &Spelling, f: Format) -> Option<Oracle> {
    let property = s.of("PROP")?;
    Some(Box::new(move |v| {
        let m = v[0] & (f.sign() - 1);
        let subnormal = m != 0 && m & f.inf() == 0;
        Want::bits(u64::from(match property {
            "finite" => m < f.inf(),
            "infinite" => m == f.inf(),
            "number" => m <= f.inf(),
            "notanumber" => m > f.inf(),
            "subnormal" => subnormal,
            _ => m < f.inf() && !subnormal,
        }))
    }))
}

/// Whether `a cmp b` holds; `None` for a comparison that numbers of the kind do not have.
fn holds(cmp: &str, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let Some(order) = order else {
        return matches!(cmp, "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" | "nan");
    };
    match cmp {
        "eq" | "equ" => order == Equal,
        "ne" | "neu" => order != Equal,
        "lt" | "lo" | "ltu" => order == Less,
        "le" | "ls" | "leu" => order != Greater,
        "gt" | "hi" | "gtu" => order == Greater,
        "ge" | "hs" | "geu" => order != Less,
        "num" => true,
        _ => false,
    }
}

/// `set` and `setp`, on integers too.
fn compare(s: &Spelling) -> Option<Oracle> {
    let source = if s.name() == "set" { s.ty(1) } else { s.ty(0) };
    let (ty, count) = elements(source);
    let cmp = s.of("CMP")?;
    let logic = s.of("LOGIC");
    let ftz = s.has("ftz");
    let bits = super::vectors::bits_of(ty);
    let order = move |a: u64, b: u64| -> Option<std::cmp::Ordering> {
        match format(ty) {
            Some(f) => {
                let (a, b) = if ftz { (f.flush(a), f.flush(b)) } else { (a, b) };
                if f.is_nan(a) || f.is_nan(b) {
                    return None;
                }
                let rank = |x: u64| {
                    let m = i128::from(x & !f.sign());
                    if x & f.sign() != 0 { -m } else { m }
                };
                Some(rank(a).cmp(&rank(b)))
            }
            None => Some(super::int::signed(ty, a).cmp(&super::int::signed(ty, b))),
        }
    };
    let combine = move |t: bool, p: Option<&u64>| match (logic, p) {
        (Some("and"), Some(p)) => t && *p != 0,
        (Some("or"), Some(p)) => t || *p != 0,
        (Some("xor"), Some(p)) => t != (*p != 0),
        _ => t,
    };
    let half = move |v: &[u64], k: u32| {
        let part = |x: u64| x >> (bits * k) & mask(bits);
        holds(cmp, order(part(v[0]), part(v[1])))
    };
    if s.name() == "setp" {
        return Some(Box::new(move |v| {
            let t = half(v, 0);
            // Two elements: one predicate each. One: the comparison and its complement.
            let second = if count == 2 { half(v, 1) } else { !t };
            Want {
                first: Some(u64::from(combine(t, v.get(2)))),
                second: Some(u64::from(combine(second, v.get(2)))),
            }
        }));
    }
    let yes = match s.ty(0) {
        "f32" => 0x3f80_0000,
        "f16" | "f16x2" => 0x3c00,
        "bf16" | "bf16x2" => 0x3f80,
        "u16" | "s16" => 0xffff,
        _ if count == 2 => 0xffff,
        _ => 0xffff_ffff,
    };
    Some(Box::new(move |v| {
        let part = |k: u32| if combine(half(v, k), v.get(2)) { yes } else { 0 };
        Want::bits(if count == 2 { part(0) | part(1) << 16 } else { part(0) })
    }))
}
