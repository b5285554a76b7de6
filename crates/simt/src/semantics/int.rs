//! Integer, logic, bit-field and shift instructions.
//!
//! Source: PTX ISA, "Integer Arithmetic Instructions" to "Logic and Shift Instructions". Where the manual
//! leaves a result open (division by zero), this gives all ones for the quotient and the dividend for the
//! remainder.

use assay_ptx::{BoolOp, Cmp, Direction, Half, Imm, Instr, Op, Operand, PrmtMode, ShiftMode, Ty};

use super::{Scalar, mask, sext, value};

/// Applies `f` to both halves of packed 16-bit operands.
fn packed(a: u64, b: u64, f: impl Fn(u64, u64) -> u64) -> u64 {
    (f(a & 0xffff, b & 0xffff) & 0xffff) | ((f(a >> 16 & 0xffff, b >> 16 & 0xffff) & 0xffff) << 16)
}

fn element(ty: Ty) -> Ty {
    match ty {
        Ty::U16x2 => Ty::U16,
        Ty::S16x2 => Ty::S16,
        t => t,
    }
}

/// The wide type of a product.
fn doubled(ty: Ty) -> Option<Ty> {
    Some(match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::U32 => Ty::U64,
        Ty::S32 => Ty::S64,
        _ => return None,
    })
}

fn product(half: Option<Half>, ty: Ty, a: u64, b: u64) -> u64 {
    let p = value(a, ty).wrapping_mul(value(b, ty));
    match half {
        // u64 * u64 does not fit i128 as a number, but its 128 bits are right.
        Some(Half::Hi) => ((p as u128) >> ty.bits()) as u64 & mask(ty),
        Some(Half::Wide) => p as u64,
        Some(Half::Lo) | None => p as u64 & mask(ty),
    }
}

fn product24(half: Option<Half>, ty: Ty, a: u64, b: u64) -> u64 {
    let v = |x: u64| if ty.is_signed() { sext(x, 24) } else { (x & 0xff_ffff) as i64 };
    let p = v(a).wrapping_mul(v(b));
    (match half {
        Some(Half::Hi) => p >> 16,
        _ => p,
    }) as u64
        & 0xffff_ffff
}

/// The lane function of an integer instruction.
pub(crate) fn build(i: &Instr) -> Option<Scalar> {
    let m = &i.mods;
    let ty = i.ty().unwrap_or(Ty::B32);
    let bits = ty.bits();
    let el = element(ty);
    let two = matches!(ty, Ty::U16x2 | Ty::S16x2);
    if m.cc {
        return None;
    }
    match i.op {
        Op::Add | Op::Sub => {
            let minus = i.op == Op::Sub;
            let one = move |a: u64, b: u64| if minus { a.wrapping_sub(b) } else { a.wrapping_add(b) };
            if two {
                return Scalar::new(ty, &[ty, ty], move |[a, b, ..]| packed(a, b, one));
            }
            if m.sat {
                return Scalar::new(ty, &[ty, ty], move |[a, b, ..]| {
                    let (a, b) = (sext(a, 32), sext(b, 32));
                    let r = if minus { a - b } else { a + b };
                    r.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64 & 0xffff_ffff
                });
            }
            Scalar::new(ty, &[ty, ty], move |[a, b, ..]| one(a, b) & mask(ty))
        }
        Op::Mul => {
            let half = m.half;
            let result = if half == Some(Half::Wide) { doubled(ty)? } else { ty };
            Scalar::new(result, &[ty, ty], move |[a, b, ..]| product(half, ty, a, b) & mask(result))
        }
        Op::Mad => {
            let (half, sat) = (m.half, m.sat);
            let result = if half == Some(Half::Wide) { doubled(ty)? } else { ty };
            Scalar::new(result, &[ty, ty, result], move |[a, b, c, _]| {
                if sat {
                    let hi = sext(product(half, ty, a, b), 32) + sext(c, 32);
                    return hi.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64 & 0xffff_ffff;
                }
                product(half, ty, a, b).wrapping_add(c) & mask(result)
            })
        }
        Op::Mul24 => {
            let half = m.half;
            Scalar::new(ty, &[ty, ty], move |[a, b, ..]| product24(half, ty, a, b))
        }
        Op::Mad24 => {
            let (half, sat) = (m.half, m.sat);
            Scalar::new(ty, &[ty, ty, ty], move |[a, b, c, _]| {
                let p = product24(half, ty, a, b);
                if sat {
                    let r = sext(p, 32) + sext(c, 32);
                    return r.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64 & 0xffff_ffff;
                }
                p.wrapping_add(c) & 0xffff_ffff
            })
        }
        Op::Sad => Scalar::new(ty, &[ty, ty, ty], move |[a, b, c, _]| {
            let d = value(a, ty) - value(b, ty);
            c.wrapping_add(d.unsigned_abs() as u64) & mask(ty)
        }),
        Op::Div => Scalar::new(ty, &[ty, ty], move |[a, b, ..]| {
            let (x, y) = (value(a, ty), value(b, ty));
            if y == 0 { mask(ty) } else { (x / y) as u64 & mask(ty) }
        }),
        Op::Rem => Scalar::new(ty, &[ty, ty], move |[a, b, ..]| {
            let (x, y) = (value(a, ty), value(b, ty));
            if y == 0 { a & mask(ty) } else { (x % y) as u64 & mask(ty) }
        }),
        Op::Abs => Scalar::new(ty, &[ty], move |[a, ..]| value(a, ty).unsigned_abs() as u64 & mask(ty)),
        Op::Neg => Scalar::new(ty, &[ty], move |[a, ..]| a.wrapping_neg() & mask(ty)),
        Op::Min | Op::Max => {
            let (least, relu) = (i.op == Op::Min, m.relu);
            let one = move |a: u64, b: u64| {
                let (x, y) = (value(a, el), value(b, el));
                let r = if least { x.min(y) } else { x.max(y) };
                (if relu { r.max(0) } else { r }) as u64 & mask(el)
            };
            if two {
                return Scalar::new(ty, &[ty, ty], move |[a, b, ..]| packed(a, b, one));
            }
            Scalar::new(ty, &[ty, ty], move |[a, b, ..]| one(a, b))
        }
        Op::And => Scalar::new(ty, &[ty, ty], |[a, b, ..]| a & b),
        Op::Or => Scalar::new(ty, &[ty, ty], |[a, b, ..]| a | b),
        Op::Xor => Scalar::new(ty, &[ty, ty], |[a, b, ..]| a ^ b),
        Op::Not => Scalar::new(ty, &[ty], move |[a, ..]| !a & mask(ty)),
        Op::Cnot => Scalar::new(ty, &[ty], move |[a, ..]| u64::from(a & mask(ty) == 0)),
        // With a predicate result it has a decoder of its own.
        Op::Lop3 if m.lop3_bool.is_none() => {
            let Some(Operand::Imm(Imm::Int(table))) = i.operands.get(4) else { return None };
            let table = *table;
            Scalar::new(ty, &[ty, ty, ty], move |[a, b, c, _]| lop3(a, b, c, table) & 0xffff_ffff)
        }
        Op::Shl => {
            Scalar::new(ty, &[ty, Ty::U32], move |[a, n, ..]| if n >= bits { 0 } else { a << n & mask(ty) })
        }
        Op::Shr => Scalar::new(ty, &[ty, Ty::U32], move |[a, n, ..]| {
            if ty.is_signed() {
                (sext(a, bits) >> n.min(bits - 1)) as u64 & mask(ty)
            } else if n >= bits {
                0
            } else {
                (a & mask(ty)) >> n
            }
        }),
        Op::Shf => {
            let (left, wrap) = (m.direction == Some(Direction::Left), m.shift == Some(ShiftMode::Wrap));
            Scalar::new(ty, &[ty, ty, Ty::U32], move |[a, b, c, _]| {
                let n = if wrap { c & 31 } else { c.min(32) };
                let both = (b & 0xffff_ffff) << 32 | (a & 0xffff_ffff);
                (if left { both << n >> 32 } else { both >> n }) & 0xffff_ffff
            })
        }
        // The state that an arrival gave: see `crate::exec::mbarrier`.
        Op::MbarrierPendingCount => {
            Scalar::new(Ty::U32, &[Ty::B64], |[a, ..]| crate::exec::mbarrier::pending(a))
        }
        Op::Popc => Scalar::new(Ty::U32, &[ty], |[a, ..]| u64::from(a.count_ones())),
        Op::Clz => Scalar::new(Ty::U32, &[ty], move |[a, ..]| u64::from(a.leading_zeros()) - (64 - bits)),
        Op::Brev => Scalar::new(ty, &[ty], move |[a, ..]| a.reverse_bits() >> (64 - bits)),
        Op::Bfind => {
            let shiftamt = m.shiftamt;
            Scalar::new(Ty::U32, &[ty], move |[a, ..]| {
                let a = if ty.is_signed() && sext(a, bits) < 0 { !a & mask(ty) } else { a };
                if a == 0 {
                    return 0xffff_ffff;
                }
                let top = 63 - u64::from(a.leading_zeros());
                if shiftamt { bits - 1 - top } else { top }
            })
        }
        Op::Fns => {
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32, Ty::S32], |[m, base, offset, _]| fns(m, base, offset))
        }
        Op::Bfe => Scalar::new(ty, &[ty, Ty::U32, Ty::U32], move |[a, pos, len, _]| {
            let (pos, len) = (pos & 0xff, len & 0xff);
            if len == 0 {
                return 0;
            }
            let sign_at = (pos + len - 1).min(bits - 1);
            let fill = if ty.is_signed() && a >> sign_at & 1 != 0 { mask(ty) } else { 0 };
            let moved = if pos >= bits { 0 } else { (a & mask(ty)) >> pos };
            let have = len.min(bits.saturating_sub(pos));
            let low = if have >= 64 { u64::MAX } else { (1 << have) - 1 };
            ((moved & low) | (fill & !low)) & mask(ty)
        }),
        Op::Bfi => Scalar::new(ty, &[ty, ty, Ty::U32, Ty::U32], move |[a, b, pos, len]| {
            let (pos, len) = (pos & 0xff, len & 0xff);
            if pos >= bits || len == 0 {
                return b;
            }
            let low = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
            let field = low << pos & mask(ty);
            (a << pos & field) | (b & !field)
        }),
        Op::Bmsk => {
            let wrap = m.shift == Some(ShiftMode::Wrap);
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32], move |[a, b, ..]| {
                let (a, b) = if wrap { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
                (((1u64 << b) - 1) << a) & 0xffff_ffff
            })
        }
        Op::Szext => {
            let clamp = m.shift == Some(ShiftMode::Clamp);
            Scalar::new(ty, &[ty, Ty::U32], move |[a, b, ..]| {
                let n = b & 31;
                let high = if clamp && b >= 32 { 0 } else { (u64::MAX << n) & 0xffff_ffff };
                let negative = ty.is_signed() && n > 0 && high != 0 && a >> (n - 1) & 1 != 0;
                (a & !high & 0xffff_ffff) | if negative { high } else { 0 }
            })
        }
        Op::Prmt => {
            let mode = m.prmt;
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32, Ty::B32], move |[a, b, c, _]| prmt(mode, a, b, c))
        }
        Op::Dp4a => {
            let (at, bt) = (i.ty()?, i.src_ty()?);
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32, Ty::B32], move |[a, b, c, _]| {
                let byte = |v: u64, k: u64, t: Ty| {
                    let x = v >> (8 * k) & 0xff;
                    if t.is_signed() { sext(x, 8) } else { x as i64 }
                };
                let sum: i64 = (0..4).map(|k| byte(a, k, at) * byte(b, k, bt)).sum();
                (sum as u64).wrapping_add(c) & 0xffff_ffff
            })
        }
        Op::Dp2a => {
            let (at, bt, hi) = (i.ty()?, i.src_ty()?, m.half == Some(Half::Hi));
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32, Ty::B32], move |[a, b, c, _]| {
                let part = |v: u64, bits: u64, k: u64, t: Ty| {
                    let x = v >> (bits * k) & ((1 << bits) - 1);
                    if t.is_signed() { sext(x, bits) } else { x as i64 }
                };
                let first = if hi { 2 } else { 0 };
                let sum: i64 = (0..2).map(|k| part(a, 16, k, at) * part(b, 8, first + k, bt)).sum();
                (sum as u64).wrapping_add(c) & 0xffff_ffff
            })
        }
        Op::Vabsdiff4 => {
            // Each of the three types has a sign of its own; `.sat` clamps to the bytes of the result's.
            let (add, sat) = (m.accumulate, m.sat);
            let signed = i.types.map(|t| t.is_some_and(Ty::is_signed));
            let limit = if signed[0] { 127 } else { 255 };
            Scalar::new(Ty::B32, &[Ty::B32, Ty::B32, Ty::B32], move |[a, b, c, _]| {
                let mut sum = c;
                let mut bytes = 0;
                for k in 0..4 {
                    let v = |x: u64, signed: bool| {
                        let x = x >> (8 * k) & 0xff;
                        if signed { sext(x, 8) } else { x as i64 }
                    };
                    let d = (v(a, signed[1]) - v(b, signed[2])).unsigned_abs();
                    let d = if sat { d.min(limit) } else { d };
                    sum = sum.wrapping_add(d);
                    bytes |= (d & 0xff) << (8 * k);
                }
                (if add { sum } else { bytes }) & 0xffff_ffff
            })
        }
        _ => None,
    }
}

/// Three-input logic: bit `k` of the table is the result for inputs of which a is bit 2 of `k`, c bit 0.
pub(crate) fn lop3(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let mut r = 0;
    for k in 0..8 {
        if table >> k & 1 != 0 {
            let pick = |x: u64, bit: u64| if k >> bit & 1 != 0 { x } else { !x };
            r |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    r
}

fn fns(mask: u64, base: u64, offset: u64) -> u64 {
    let (base, offset) = (sext(base, 32), sext(offset, 32));
    let set = |pos: i64| (0..32).contains(&pos) && mask >> pos & 1 != 0;
    if offset == 0 {
        return if set(base) { base as u64 } else { 0xffff_ffff };
    }
    let step = offset.signum();
    let mut left = offset.unsigned_abs() - 1;
    let mut pos = base;
    while (0..32).contains(&pos) {
        if set(pos) {
            if left == 0 {
                return pos as u64;
            }
            left -= 1;
        }
        pos += step;
    }
    0xffff_ffff
}

/// Byte permutation.
pub(crate) fn prmt(mode: Option<PrmtMode>, a: u64, b: u64, c: u64) -> u64 {
    let bytes = (b & 0xffff_ffff) << 32 | (a & 0xffff_ffff);
    let byte = |n: u64| bytes >> (8 * (n & 7)) & 0xff;
    let Some(mode) = mode else {
        return (0..4).fold(0, |r, k| {
            let sel = c >> (4 * k) & 0xf;
            let v = byte(sel);
            let v = if sel & 8 == 0 {
                v
            } else if v & 0x80 != 0 {
                0xff
            } else {
                0
            };
            r | v << (8 * k)
        });
    };
    // Rows of the manual's table, most significant byte first.
    let row: [u64; 4] = match (mode, c & 3) {
        (PrmtMode::F4e, n) => [n + 3, n + 2, n + 1, n],
        (PrmtMode::B4e, n) => [n + 5, n + 6, n + 7, n],
        (PrmtMode::Rc8, n) => [n; 4],
        (PrmtMode::Ecl, n) => [3, n.max(2), n.max(1), n],
        (PrmtMode::Ecr, n) => [n, n.min(2), n.min(1), 0],
        (PrmtMode::Rc16, n) => {
            if n & 1 == 0 {
                [1, 0, 1, 0]
            } else {
                [3, 2, 3, 2]
            }
        }
    };
    row.iter().fold(0, |r, n| r << 8 | byte(*n))
}

/// `set` and `setp` on integers and bits.
pub(crate) fn comparison(i: &Instr) -> Option<Scalar> {
    let cmp = i.mods.cmp?;
    let ty = if i.op == Op::Set { i.src_ty()? } else { i.ty()? };
    let test = integer_test(cmp, ty)?;
    finish_comparison(i, ty, move |a, b| u64::from(test(a, b)))
}

/// The comparison of integers of type `ty`.
pub(crate) fn integer_test(cmp: Cmp, ty: Ty) -> Option<fn(u64, u64) -> bool> {
    macro_rules! by_type {
        (|$a:ident, $b:ident| $e:expr) => {
            match ty {
                Ty::S16 => |a, b| {
                    let ($a, $b) = (a as i16, b as i16);
                    $e
                },
                Ty::S32 => |a, b| {
                    let ($a, $b) = (a as i32, b as i32);
                    $e
                },
                Ty::S64 => |a, b| {
                    let ($a, $b) = (a as i64, b as i64);
                    $e
                },
                Ty::U16 | Ty::B16 => |a, b| {
                    let ($a, $b) = (a as u16, b as u16);
                    $e
                },
                Ty::U32 | Ty::B32 => |a, b| {
                    let ($a, $b) = (a as u32, b as u32);
                    $e
                },
                Ty::U64 | Ty::B64 => |a, b| {
                    let ($a, $b) = (a, b);
                    $e
                },
                _ => return None,
            }
        };
    }
    Some(match cmp {
        Cmp::Eq => by_type!(|a, b| a == b),
        Cmp::Ne => by_type!(|a, b| a != b),
        Cmp::Lt | Cmp::Lo => by_type!(|a, b| a < b),
        Cmp::Le | Cmp::Ls => by_type!(|a, b| a <= b),
        Cmp::Gt | Cmp::Hi => by_type!(|a, b| a > b),
        Cmp::Ge | Cmp::Hs => by_type!(|a, b| a >= b),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => return None,
    })
}

/// Wraps a comparison of two operands (bit 0: the result; for packed types bit 1: the upper half's) into `set`
/// or `setp` with their boolean operator.
pub(crate) fn finish_comparison(
    i: &Instr,
    ty: Ty,
    test: impl Fn(u64, u64) -> u64 + Send + Sync + 'static,
) -> Option<Scalar> {
    let bool_op = i.mods.bool_op;
    let combine = move |t: u64, p: u64| match bool_op {
        None => t,
        Some(BoolOp::And) => t & p,
        Some(BoolOp::Or) => t | p,
        Some(BoolOp::Xor) => t ^ p,
    };
    let mut sources = vec![ty, ty];
    if bool_op.is_some() {
        sources.push(Ty::Pred);
    }
    let two = matches!(ty, Ty::F16x2 | Ty::Bf16x2);
    // The third operand may be `!p`; the decoder hands over its value.
    if i.op == Op::Setp {
        return Scalar::new(Ty::Pred, &sources, move |[a, b, p, _]| {
            let t = test(a, b);
            if two {
                combine(t & 1, p) | combine(t >> 1 & 1, p) << 1
            } else {
                combine(t & 1, p) | combine(!t & 1, p) << 1
            }
        });
    }
    let dst = i.ty()?;
    let yes = match dst {
        Ty::F32 => 0x3f80_0000,
        Ty::F16 => 0x3c00,
        Ty::Bf16 => 0x3f80,
        Ty::F16x2 => 0x3c00,
        Ty::Bf16x2 => 0x3f80,
        Ty::U16 | Ty::S16 => 0xffff,
        _ if two => 0xffff,
        _ => 0xffff_ffff,
    };
    Scalar::new(dst, &sources, move |[a, b, p, _]| {
        let t = test(a, b);
        if two {
            let half = |t: u64| if combine(t & 1, p) != 0 { yes } else { 0 };
            half(t) | half(t >> 1) << 16
        } else if combine(t & 1, p) != 0 {
            yes
        } else {
            0
        }
    })
}
