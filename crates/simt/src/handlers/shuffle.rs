//! `shfl.sync` of a whole warp: the common case, without the executor.

use assay_ptx::ShflMode;

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

/// All 32 lanes are here and the member mask names them all; anything else goes to the executor. `a`, `b`, `c` are the
/// operands, `class` the member mask, `d` and `e` the results, `off` the mode as a number.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn whole(w: &mut Warp, d: &Decoded) -> *const Decoded {
    if w.mask != u32::MAX {
        return w.stop(d, Event::Cold);
    }
    // SAFETY: 32-bit registers and a predicate at the decoder's offsets.
    unsafe {
        let members: [u32; LANES] = *w.r32(d.class).cast();
        if members.iter().fold(u32::MAX, |m, x| m & x) != u32::MAX {
            return w.stop(d, Event::Cold);
        }
        let (v, b, c): ([u32; LANES], [u32; LANES], [u32; LANES]) =
            (*w.r32(d.a).cast(), *w.r32(d.b).cast(), *w.r32(d.c).cast());
        let mode = match d.off {
            0 => ShflMode::Up,
            1 => ShflMode::Down,
            2 => ShflMode::Bfly,
            _ => ShflMode::Idx,
        };
        let mut out = [0u32; LANES];
        let mut within = 0u32;
        for (k, o) in out.iter_mut().enumerate() {
            let (s, ok) = source(mode, k as u32, b[k], c[k]);
            *o = v[s as usize];
            within |= u32::from(ok) << k;
        }
        *w.r32(d.d).cast() = out;
        if d.e != 0 {
            *w.r32(d.e) = within;
        }
        next(d)
    }
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
