//! `shfl.sync` of a whole warp: the common case, without the executor.

use assay_ptx::ShflMode;

use crate::cpu::{Portable, Simd, Wide};
use crate::lanes::Pair;
use crate::warp::{Decoded, Event, LANES, Warp, next};

/// The source lane of a shuffle and whether it is within range. Source: PTX ISA, `shfl.sync`, the pseudocode.
#[inline(always)]
pub(crate) fn source(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (clamp, segment) = (c & 0x1f, c >> 8 & 0x1f);
    let b = b & 0x1f;
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (source, ok) = match mode {
        ShflMode::Up => {
            let s = lane as i32 - b as i32;
            (s, s >= most as i32)
        }
        ShflMode::Down => {
            let s = (lane + b) as i32;
            (s, s <= most as i32)
        }
        ShflMode::Bfly => {
            let s = (lane ^ b) as i32;
            (s, s <= most as i32)
        }
        ShflMode::Idx => {
            let s = (least | (b & !segment)) as i32;
            (s, s <= most as i32)
        }
    };
    (if ok { source as u32 & 31 } else { lane }, ok)
}

/// Bits of the lanes below `n`.
#[inline(always)]
fn below(n: u32) -> u32 {
    if n >= 32 { u32::MAX } else { (1 << n) - 1 }
}

/// Lane `k + from` around the warp for the lanes of `within`; the others keep their own value.
#[inline(always)]
fn shifted<S: Simd>(v: &[u32; LANES], from: usize, within: u32) -> ([u32; LANES], u32) {
    let around = S::rotate32(v, from % LANES);
    let mut out = [0u32; LANES];
    for j in 0..LANES / 8 {
        let eight = |v: &[u32; LANES]| -> [u32; 8] { std::array::from_fn(|k| v[8 * j + k]) };
        let some = S::blend32(&eight(v), &eight(&around), within >> (8 * j));
        out[8 * j..8 * j + 8].copy_from_slice(&some);
    }
    (out, within)
}

/// A shuffle whose `b` and `c` are the same in all lanes and do not split the warp; `None` for a pattern that is not worth
/// its own code. Gives the values and the lanes whose source is within range.
#[inline(always)]
fn uniform<S: Simd>(mode: ShflMode, v: &[u32; LANES], b: u32, c: u32) -> Option<([u32; LANES], u32)> {
    if c >> 8 & 0x1f != 0 {
        return None;
    }
    let (b, clamp) = (b & 0x1f, c & 0x1f);
    Some(match mode {
        ShflMode::Down => shifted::<S>(v, b as usize, below((clamp + 1).saturating_sub(b))),
        ShflMode::Up => shifted::<S>(v, LANES - b as usize, !below(clamp + b)),
        ShflMode::Idx if b <= clamp => ([v[b as usize]; LANES], u32::MAX),
        ShflMode::Idx => (*v, 0),
        ShflMode::Bfly if clamp == 31 => (S::exchange32(v, b as usize), u32::MAX),
        ShflMode::Bfly => return None,
    })
}

/// All 32 lanes are here and the member mask names them all; anything else goes to the executor. `a`, `b`, `c` are the
/// operands, `class` the member mask, `d` and `e` the results, `off` the mode as a number.
///
/// # Safety
/// As for every handler.
#[inline(always)]
unsafe fn whole<S: Simd>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    if w.mask != u32::MAX {
        return w.stop(d, Event::Cold);
    }
    // SAFETY: 32-bit registers and a predicate at the decoder's offsets.
    unsafe {
        let members: &[u32; LANES] = &*w.r32(d.class).cast();
        if members[0] != u32::MAX || !S::uniform32(members) {
            return w.stop(d, Event::Cold);
        }
        let v: [u32; LANES] = *w.r32(d.a).cast();
        let (b, c): (&[u32; LANES], &[u32; LANES]) = (&*w.r32(d.b).cast(), &*w.r32(d.c).cast());
        let mode = match d.off {
            0 => ShflMode::Up,
            1 => ShflMode::Down,
            2 => ShflMode::Bfly,
            _ => ShflMode::Idx,
        };
        let same = S::uniform32(b) && S::uniform32(c);
        let same = if same { uniform::<S>(mode, &v, b[0], c[0]) } else { None };
        let (out, within) = same.unwrap_or_else(|| each(mode, &v, b, c));
        *w.r32(d.d).cast() = out;
        if d.e != 0 {
            *w.r32(d.e) = within;
        }
        next(d)
    }
}

/// Lane by lane.
fn each(mode: ShflMode, v: &[u32; LANES], b: &[u32; LANES], c: &[u32; LANES]) -> ([u32; LANES], u32) {
    let mut out = [0u32; LANES];
    let mut within = 0u32;
    for (k, o) in out.iter_mut().enumerate() {
        let (s, ok) = source(mode, k as u32, b[k], c[k]);
        *o = v[s as usize];
        within |= u32::from(ok) << k;
    }
    (out, within)
}

/// # Safety
/// As for every handler, on a processor for which [`crate::cpu::wide_available`] is true.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
unsafe fn whole_wide(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { whole::<Wide>(w, d) }
}

/// # Safety
/// As for every handler.
unsafe fn whole_portable(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { whole::<Portable>(w, d) }
}

/// Both variants.
pub(crate) fn pair() -> Pair {
    Pair { wide: whole_wide, portable: whole_portable }
}

/// The number of a mode in [`Decoded::off`].
pub(crate) fn number(mode: ShflMode) -> i64 {
    match mode {
        ShflMode::Up => 0,
        ShflMode::Down => 1,
        ShflMode::Bfly => 2,
        ShflMode::Idx => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::wide_available;

    #[test]
    fn uniform_shuffles_are_those_of_single_lanes() {
        let v: [u32; LANES] = std::array::from_fn(|k| 100 + 3 * k as u32);
        let mut short = 0;
        for mode in [ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx] {
            for b in (0..40).chain([255, u32::MAX]) {
                for c in [0, 1, 7, 16, 30, 31, 0x1f1f, 0x181f, 0x1c00, 0x100, u32::MAX] {
                    let want = each(mode, &v, &[b; LANES], &[c; LANES]);
                    let portable = uniform::<Portable>(mode, &v, b, c);
                    short += u32::from(portable.is_some());
                    assert_eq!(portable.unwrap_or(want), want, "{mode:?} {b} {c:#x}");
                    if wide_available() {
                        assert_eq!(uniform::<Wide>(mode, &v, b, c), portable, "{mode:?} {b} {c:#x}");
                    }
                }
            }
        }
        assert!(short > 500, "{short}");
    }
}
