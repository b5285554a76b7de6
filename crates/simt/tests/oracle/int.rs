//! Integers, logic, selection, by 128-bit arithmetic and the manual's pseudocode.

use super::table::Spelling;
use super::vectors::{bits_of, mask};
use super::{Oracle, Want};

/// The number that bits of a type stand for.
pub fn signed(ty: &str, x: u64) -> i128 {
    let bits = bits_of(ty);
    let x = i128::from(x & mask(bits));
    if ty.starts_with('s') && x >> (bits - 1) != 0 { x - (1i128 << bits) } else { x }
}

fn bits(f: impl Fn(&[u64]) -> u64 + 'static) -> Option<Oracle> {
    Some(Box::new(move |v| Want::bits(f(v))))
}

/// Two's-complement bits of a number.
fn wrap(width: u32, x: i128) -> u64 {
    x as u64 & mask(width)
}

pub fn oracle(s: &Spelling) -> Option<Oracle> {
    let ty = s.ty(0);
    let (element, count) = super::float::elements(ty);
    let width = bits_of(element);
    let is_signed = ty.starts_with('s');
    let has = |w: &str| s.has(w);
    let n = move |v: u64| signed(ty, v);
    match s.name() {
        "add" | "sub" | "addc" | "subc" if has("cc") || s.name().ends_with('c') => carry(s),
        "mad" | "madc" if has("cc") || s.name() == "madc" => carry(s),
        "add" | "sub" => {
            let (minus, sat) = (s.name() == "sub", has("sat"));
            bits(move |v| {
                (0..count).fold(0, |r, k| {
                    let part = |x: u64| signed(element, x >> (16 * k));
                    let (a, b) = if count == 2 { (part(v[0]), part(v[1])) } else { (n(v[0]), n(v[1])) };
                    let x = if minus { a - b } else { a + b };
                    let x = if sat { x.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) } else { x };
                    r | wrap(width, x) << (16 * k)
                })
            })
        }
        "mul" | "mad" => {
            let (hi, wide, sat) = (has("hi"), has("wide"), has("sat"));
            let result = if wide { 2 * width } else { width };
            bits(move |v| {
                // Products of two `.u64` need all 128 bits.
                let p = n(v[0]).wrapping_mul(n(v[1]));
                let p = if hi { p >> width } else { p };
                let add = v.get(2).copied().unwrap_or(0);
                if sat {
                    let x = signed("s32", wrap(32, p)) + signed("s32", add);
                    return wrap(32, x.clamp(i128::from(i32::MIN), i128::from(i32::MAX)));
                }
                wrap(result, p).wrapping_add(add) & mask(result)
            })
        }
        "mul24" | "mad24" => {
            let (hi, sat) = (has("hi"), has("sat"));
            bits(move |v| {
                let low = |x: u64| {
                    let x = i128::from(x & 0xff_ffff);
                    if is_signed && x >> 23 != 0 { x - (1 << 24) } else { x }
                };
                let p = low(v[0]) * low(v[1]);
                let p = wrap(32, if hi { p >> 16 } else { p });
                let add = v.get(2).copied().unwrap_or(0);
                if sat {
                    let x = signed("s32", p) + signed("s32", add);
                    return wrap(32, x.clamp(i128::from(i32::MIN), i128::from(i32::MAX)));
                }
                p.wrapping_add(add) & mask(32)
            })
        }
        "sad" => bits(move |v| wrap(width, i128::from(v[2]) + (n(v[0]) - n(v[1])).abs())),
        // Division by zero is unspecified (manual, `div`).
        "div" => Some(Box::new(move |v| Want {
            first: (n(v[1]) != 0).then(|| wrap(width, n(v[0]) / n(v[1]))),
            second: None,
        })),
        "rem" => Some(Box::new(move |v| Want {
            first: (n(v[1]) != 0).then(|| wrap(width, n(v[0]) % n(v[1]))),
            second: None,
        })),
        "abs" => bits(move |v| wrap(width, n(v[0]).abs())),
        "neg" => bits(move |v| wrap(width, -n(v[0]))),
        "min" | "max" => {
            let (min, relu) = (s.name() == "min", has("relu"));
            bits(move |v| {
                (0..count).fold(0, |r, k| {
                    let part = |x: u64| if count == 2 { signed(element, x >> (16 * k)) } else { n(x) };
                    let (a, b) = (part(v[0]), part(v[1]));
                    let x = if min { a.min(b) } else { a.max(b) };
                    r | wrap(width, if relu { x.max(0) } else { x }) << (16 * k)
                })
            })
        }
        "and" => bits(|v| v[0] & v[1]),
        "or" => bits(|v| v[0] | v[1]),
        "xor" => bits(|v| v[0] ^ v[1]),
        "not" => bits(move |v| !v[0] & mask(width)),
        "cnot" => bits(|v| u64::from(v[0] == 0)),
        "shl" => bits(move |v| if v[1] >= u64::from(width) { 0 } else { v[0] << v[1] & mask(width) }),
        "shr" => bits(move |v| wrap(width, n(v[0]) >> v[1].min(64))),
        "shf" => {
            let (left, clamp) = (has("l"), has("clamp"));
            bits(move |v| {
                let by = if clamp { v[2].min(32) } else { v[2] & 31 } as u32;
                let (a, b) = (v[0] as u128, v[1] as u128);
                let both = b << 32 | a;
                wrap(32, if left { (both << by >> 32) as i128 } else { (both >> by) as i128 })
            })
        }
        "lop3" => {
            let or = has("or");
            let with_predicate = has("and") || or;
            Some(Box::new(move |v| {
                // a, b, c, (q,) table.
                let table = v[v.len() - 1];
                let d = (0..32).fold(0u64, |d, k| {
                    let at = (v[0] >> k & 1) << 2 | (v[1] >> k & 1) << 1 | (v[2] >> k & 1);
                    d | (table >> at & 1) << k
                });
                let q = with_predicate && v[3] != 0;
                let p = if or { d != 0 || q } else { d != 0 && q };
                Want { first: Some(d), second: Some(u64::from(p)) }
            }))
        }
        "popc" => bits(|v| (0..64).map(|k| v[0] >> k & 1).sum()),
        "clz" => bits(move |v| (0..width).take_while(|k| v[0] >> (width - 1 - k) & 1 == 0).count() as u64),
        "brev" => bits(move |v| (0..width).fold(0, |r, k| r | (v[0] >> k & 1) << (width - 1 - k))),
        "bfind" => {
            let amount = has("shiftamt");
            bits(move |v| {
                let msb = width - 1;
                let x = if is_signed && n(v[0]) < 0 { !v[0] & mask(width) } else { v[0] };
                match (0..=msb).rev().find(|k| x >> k & 1 != 0) {
                    None => 0xffff_ffff,
                    Some(k) if amount => u64::from(msb - k),
                    Some(k) => u64::from(k),
                }
            })
        }
        "fns" => bits(|v| {
            let (m, base, offset) = (v[0], signed("s32", v[1]), signed("s32", v[2]));
            let set = |p: i128| (0..32).contains(&p) && m >> p & 1 != 0;
            if offset == 0 {
                return if set(base) { base as u64 } else { 0xffff_ffff };
            }
            let mut position = base;
            let mut count = offset.abs() - 1;
            while (0..32).contains(&position) {
                if set(position) {
                    if count == 0 {
                        return position as u64;
                    }
                    count -= 1;
                }
                position += offset.signum();
            }
            0xffff_ffff
        }),
        "bfe" => bits(move |v| {
            let msb = width - 1;
            let (pos, len) = ((v[1] & 0xff) as u32, (v[2] & 0xff) as u32);
            let sign = if !is_signed || len == 0 { 0 } else { v[0] >> (pos + len - 1).min(msb) & 1 };
            (0..=msb).fold(0, |d, i| {
                let bit = if i < len && pos + i <= msb { v[0] >> (pos + i) & 1 } else { sign };
                d | bit << i
            })
        }),
        "bfi" => bits(move |v| {
            let msb = width - 1;
            let (pos, len) = ((v[2] & 0xff) as u32, (v[3] & 0xff) as u32);
            let mut f = v[1];
            for i in (0..len).take_while(|i| pos + i <= msb) {
                f = f & !(1 << (pos + i)) | (v[0] >> i & 1) << (pos + i);
            }
            f
        }),
        "bmsk" => {
            let clamp = has("clamp");
            bits(move |v| {
                let (a, b) = (v[0], v[1]);
                let mask0 = (u64::from(u32::MAX) << (a & 31)) & mask(32);
                let sum = (a & 31) + (b & 31);
                let mask1 = if sum >= 32 { 0 } else { (u64::from(u32::MAX) << sum) & mask(32) };
                if clamp && a >= 32 {
                    0
                } else if sum >= 32 || (clamp && b >= 32) {
                    mask0
                } else {
                    mask0 & !mask1
                }
            })
        }
        "szext" => {
            let clamp = has("clamp");
            bits(move |v| {
                let b1 = v[1] & 31;
                let too_large = v[1] >= 32 && clamp;
                let high = if too_large { 0 } else { (u64::from(u32::MAX) << b1) & mask(32) };
                let position = b1.wrapping_sub(1) & 31;
                let sign = !(b1 == 0 || too_large || !is_signed) && v[0] >> position & 1 != 0;
                (v[0] & !high) | if sign { high } else { 0 }
            })
        }
        "prmt" => {
            let mode = s.of("PRMT");
            bits(move |v| {
                let byte = |k: u64| (if k & 4 == 0 { v[0] } else { v[1] }) >> (8 * (k & 3)) & 0xff;
                let pick =
                    |list: [u64; 4]| (0..4).fold(0, |d, k| d | byte(list[3 - k] & 7) << (8 * k as u64));
                let c = v[2] & 3;
                // Rows of the manual's table, most significant byte first.
                match mode {
                    None => (0..4).fold(0, |d, k| {
                        let nibble = v[2] >> (4 * k) & 15;
                        let b = byte(nibble & 7);
                        let b = if nibble & 8 == 0 { b } else { [0, 0xff][usize::from(b >> 7 != 0)] };
                        d | b << (8 * k)
                    }),
                    Some("f4e") => pick([[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]][c as usize]),
                    Some("b4e") => pick([[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]][c as usize]),
                    Some("rc8") => pick([c; 4]),
                    Some("ecl") => pick([[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]][c as usize]),
                    Some("ecr") => pick([[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]][c as usize]),
                    _ => pick([[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]][c as usize]),
                }
            })
        }
        "dp4a" | "dp2a" => {
            let (at, bt) = (s.ty(0), s.ty(1));
            let (four, hi) = (s.name() == "dp4a", has("hi"));
            let part = |ty: &str, wide: bool| match (ty, wide) {
                ("s32", true) => "s16",
                ("s32", false) => "s8",
                (_, true) => "u16",
                (_, false) => "u8",
            };
            let (at, bt) = (part(at, !four), part(bt, false));
            bits(move |v| {
                let count = if four { 4 } else { 2 };
                let first = if hi { 2 } else { 0 };
                let sum: i128 = (0..count)
                    .map(|k| signed(at, v[0] >> (bits_of(at) * k)) * signed(bt, v[1] >> (8 * (first + k))))
                    .sum();
                wrap(32, sum + i128::from(v[2]))
            })
        }
        "vabsdiff4" => {
            let (dt, at, bt) = (s.ty(0), s.ty(1), s.ty(2));
            let part = |ty: &str| if ty == "s32" { "s8" } else { "u8" };
            let (at, bt, add, sat) = (part(at), part(bt), has("add"), has("sat"));
            let (low, high) = if dt == "s32" { (-128, 127) } else { (0, 255) };
            bits(move |v| {
                let each = (0..4).map(|k| {
                    let d = (signed(at, v[0] >> (8 * k)) - signed(bt, v[1] >> (8 * k))).abs();
                    if sat { d.clamp(low, high) } else { d }
                });
                if add {
                    return wrap(32, each.sum::<i128>() + i128::from(v[2]));
                }
                each.enumerate().fold(0, |d, (k, x)| d | wrap(8, x) << (8 * k))
            })
        }
        "selp" => bits(|v| if v[2] != 0 { v[0] } else { v[1] }),
        "slct" => {
            let (float, ftz) = (s.ty(1) == "f32", has("ftz"));
            bits(move |v| {
                let c = v[2];
                let least = if float {
                    let nan = c & 0x7fff_ffff > 0x7f80_0000;
                    let zero = c & 0x7fff_ffff == 0 || (ftz && c & 0x7f80_0000 == 0);
                    !nan && (c >> 31 == 0 || zero)
                } else {
                    c >> 31 & 1 == 0
                };
                if least { v[0] } else { v[1] }
            })
        }
        _ => None,
    }
}

/// Extended precision: the operand before the last is the carry that comes in, the second result what goes out.
fn carry(s: &Spelling) -> Option<Oracle> {
    let ty = s.ty(0);
    let width = bits_of(ty);
    let (name, hi) = (s.name(), s.has("hi"));
    let reads = name.ends_with('c');
    let writes = s.has("cc");
    let operation = name.trim_end_matches('c');
    Some(Box::new(move |v| {
        let unsigned = |x: u64| i128::from(x & mask(width));
        let flag = v[v.len() - 1] != 0;
        let carried = i128::from(flag && reads);
        let (x, borrow) = match operation {
            "add" => (unsigned(v[0]) + unsigned(v[1]) + carried, false),
            "sub" => (unsigned(v[0]) - unsigned(v[1]) - carried, true),
            _ => {
                let p = signed(ty, v[0]).wrapping_mul(signed(ty, v[1]));
                let part = if hi { p >> width } else { p };
                (unsigned(part as u64) + unsigned(v[2]) + carried, false)
            }
        };
        let out = if borrow { x < 0 } else { x >> width != 0 };
        // An instruction without `.cc` leaves the flag alone.
        Want { first: Some(wrap(width, x)), second: Some(u64::from(if writes { out } else { flag })) }
    }))
}
