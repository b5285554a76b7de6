//! Values to try: edges of every type, values near each other, random bits.

/// Bits of a type by its name.
pub fn bits_of(ty: &str) -> u32 {
    match ty {
        "pred" => 1,
        "b8" | "u8" | "s8" => 8,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 16,
        "b32" | "u32" | "s32" | "f32" | "tf32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" => 32,
        "b64" | "u64" | "s64" | "f64" | "f32x2" => 64,
        other => panic!("type `{other}`"),
    }
}

pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Numbers that look random, the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Sign bit apart: (fraction bits, exponent bits).
fn layout(ty: &str) -> Option<(u32, u32)> {
    Some(match ty {
        "f16" => (10, 5),
        "bf16" => (7, 8),
        "f32" => (23, 8),
        "f64" => (52, 11),
        _ => return None,
    })
}

/// Edge values of a type.
fn edges(ty: &str) -> Vec<u64> {
    let bits = bits_of(ty);
    if let Some((fraction, exponent)) = layout(ty) {
        let inf = mask(exponent) << fraction;
        let one = (mask(exponent) >> 1) << fraction;
        let unit = 1u64 << fraction;
        let mut v = vec![0, 1, 2, unit - 1, unit, unit + 1, one, one + 1, one - 1, one + unit, one - unit];
        v.extend([inf - 1, inf - 2, inf - unit, inf, inf | 1, inf | unit >> 1, inf | (unit - 1)]);
        // 0.5, 1.5, 2.5, 3, ties and powers that integers end at.
        v.extend([one + unit / 2, one + unit + unit / 4, one + unit + unit / 2]);
        for power in [7u64, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64] {
            let p = one.wrapping_add(power << fraction);
            if p < inf {
                v.extend([p, p - 1, p + 1]);
            }
        }
        let sign = 1u64 << (bits - 1);
        let negative: Vec<u64> = v.iter().map(|x| x | sign).collect();
        v.extend(negative);
        return v;
    }
    let mut v = vec![0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256];
    for k in [7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62, 63] {
        v.extend([1u64 << k, (1u64 << k) - 1, (1u64 << k) + 1]);
    }
    let negative: Vec<u64> = v.iter().map(|x| x.wrapping_neg()).collect();
    v.extend(negative);
    v.iter().map(|x| x & mask(bits)).collect()
}

/// A value of a type.
pub fn value(ty: &str, r: &mut Random) -> u64 {
    let part = match ty {
        "f16x2" => Some(("f16", 16)),
        "bf16x2" => Some(("bf16", 16)),
        "u16x2" | "s16x2" => Some(("u16", 16)),
        "f32x2" => Some(("f32", 32)),
        _ => None,
    };
    if let Some((part, bits)) = part {
        return value(part, r) | value(part, r) << bits;
    }
    let bits = bits_of(ty);
    let list = edges(ty);
    let pick = r.next();
    match pick % 8 {
        0..=3 => list[r.below(list.len() as u64) as usize],
        4 | 5 if layout(ty).is_some() => {
            // Of like magnitude, so that sums cancel, tie and round.
            let (fraction, exponent) = layout(ty).expect("a float");
            let one = mask(exponent) >> 1;
            let e = one + r.below(8) - 4;
            let f = if pick & 64 == 0 { r.next() } else { r.next() & r.next() & r.next() };
            (r.next() & 1) << (bits - 1) | e << fraction | f & mask(fraction)
        }
        4 => r.next() & r.next() & mask(bits),
        5 => r.next() & 0xff & mask(bits),
        _ => r.next() & mask(bits),
    }
}
