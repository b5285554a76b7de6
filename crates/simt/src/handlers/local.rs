//! Loads and stores of local memory: the fast paths.
//!
//! Word `w` of lane `k` lies at `(32 * w + k) * 4`, so that a place which all lanes address alike, as spilled registers
//! and arrays with a common index are, is one row per word. Lanes that differ are done one after the other. Anything
//! outside, misaligned or of another size ends in [`Event::Memory`] before anything is changed.
#![allow(clippy::needless_range_loop, reason = "lanes index several arrays at once")]

use crate::cpu::Variant;
use crate::memory::OFFSET_MASK;
use crate::warp::{Decoded, Event, Handler, LANES, Warp, next};

use super::memory::data;

/// The row of the word at `offset`.
#[inline(always)]
unsafe fn row(w: &Warp, offset: u64) -> *mut u32 {
    // SAFETY: the caller checked that the word lies within local memory, which has 32 lanes of it.
    unsafe { w.local.cast::<u32>().add((offset >> 2) as usize * LANES) }
}

/// Reads an element of lane `k`.
#[inline(always)]
unsafe fn get<const SIZE: usize, const SIGNED: bool>(w: &Warp, offset: u64, k: usize) -> u64 {
    // SAFETY: the caller checked the element; it does not cross a word, or is two of them.
    unsafe {
        let word = *row(w, offset).add(k);
        let part = word >> (8 * (offset as u32 & 3));
        match (SIZE, SIGNED) {
            (1, false) => u64::from(part as u8),
            (1, true) => i64::from(part as u8 as i8) as u64,
            (2, false) => u64::from(part as u16),
            (2, true) => i64::from(part as u16 as i16) as u64,
            (4, _) => u64::from(word),
            _ => u64::from(word) | u64::from(*row(w, offset + 4).add(k)) << 32,
        }
    }
}

/// Writes an element of lane `k`.
#[inline(always)]
unsafe fn put<const SIZE: usize>(w: &Warp, offset: u64, k: usize, v: u64) {
    // SAFETY: as for `get`.
    unsafe {
        let word = row(w, offset).add(k);
        let shift = 8 * (offset as u32 & 3);
        match SIZE {
            1 => *word = (*word & !(0xff << shift)) | (v as u32 & 0xff) << shift,
            2 => *word = (*word & !(0xffff << shift)) | (v as u32 & 0xffff) << shift,
            4 => *word = v as u32,
            _ => {
                *word = v as u32;
                *row(w, offset + 4).add(k) = (v >> 32) as u32;
            }
        }
    }
}

/// The lane's element of the `j`-th data register.
#[inline(always)]
unsafe fn register<const SIZE: usize>(w: &Warp, d: &Decoded, j: usize, k: usize) -> u64 {
    // SAFETY: data registers are 64 bits wide for 8-byte elements, else 32.
    unsafe { if SIZE == 8 { *w.r64(data(d, j)).add(k) } else { u64::from(*w.r32(data(d, j)).add(k)) } }
}

/// Writes the lane's element of the `j`-th data register.
#[inline(always)]
unsafe fn set_register<const SIZE: usize>(w: &Warp, d: &Decoded, j: usize, k: usize, v: u64) {
    // SAFETY: as for `register`.
    unsafe {
        match SIZE {
            8 => *w.r64(data(d, j)).add(k) = v,
            4 => *w.r32(data(d, j)).add(k) = v as u32,
            // A 16-bit register keeps its upper half zero.
            _ => *w.r32(d.d).add(k) = v as u32 & d.e,
        }
    }
}

/// One element of the lanes of `mask`, at `offset(k)` of each.
#[inline(always)]
unsafe fn element<const STORE: bool, const SIZE: usize, const SIGNED: bool>(
    w: &Warp,
    d: &Decoded,
    j: usize,
    offset: impl Fn(usize) -> u64,
) {
    // SAFETY: the caller checked the elements of the active lanes.
    unsafe {
        let mut m = w.mask;
        while m != 0 {
            let k = m.trailing_zeros() as usize;
            m &= m - 1;
            if STORE {
                put::<SIZE>(w, offset(k), k, register::<SIZE>(w, d, j, k));
            } else {
                set_register::<SIZE>(w, d, j, k, get::<SIZE, SIGNED>(w, offset(k), k));
            }
        }
    }
}

/// `a` holds the address, `off` is added to it, and the frame's base if `class` is not 0.
///
/// # Safety
/// As for every handler; the address register is 64 bits wide.
#[inline(always)]
unsafe fn access<const STORE: bool, const SIZE: usize, const COUNT: usize, const SIGNED: bool>(
    w: &mut Warp,
    d: &Decoded,
) -> *const Decoded {
    let total = (SIZE * COUNT) as u64;
    // SAFETY: registers at the decoder's offsets; memory only where it was checked.
    unsafe {
        let a: &[u64; LANES] = &*w.r64(d.a).cast();
        let extra = (d.off as u64).wrapping_add(if d.class != 0 { w.local_base } else { 0 });
        let first = a[w.mask.trailing_zeros() as usize & 31];
        let mut differ = 0u64;
        for k in 0..LANES {
            differ |= if w.mask >> k & 1 != 0 { a[k] ^ first } else { 0 };
        }
        let fits = |at: u64| at + total <= w.local_len && at & (total - 1) == 0;
        let at = first.wrapping_add(extra) & OFFSET_MASK;
        if differ == 0 {
            if !fits(at) {
                return w.stop(d, Event::Memory);
            }
            for j in 0..COUNT {
                let from = at + (j * SIZE) as u64;
                if w.mask != u32::MAX {
                    element::<STORE, SIZE, SIGNED>(w, d, j, |_| from);
                    continue;
                }
                for k in 0..LANES {
                    if STORE {
                        put::<SIZE>(w, from, k, register::<SIZE>(w, d, j, k));
                    } else {
                        set_register::<SIZE>(w, d, j, k, get::<SIZE, SIGNED>(w, from, k));
                    }
                }
            }
            return next(d);
        }
        let mut offsets = [0u64; LANES];
        let mut all = true;
        for k in 0..LANES {
            offsets[k] = a[k].wrapping_add(extra) & OFFSET_MASK;
            all &= w.mask >> k & 1 == 0 || fits(offsets[k]);
        }
        if !all {
            return w.stop(d, Event::Memory);
        }
        for j in 0..COUNT {
            element::<STORE, SIZE, SIGNED>(w, d, j, |k| offsets[k] + (j * SIZE) as u64);
        }
        next(d)
    }
}

/// # Safety
/// As for every handler, on a processor for which [`crate::cpu::wide_available`] is true.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
unsafe fn wide<const STORE: bool, const SIZE: usize, const COUNT: usize, const SIGNED: bool>(
    w: &mut Warp,
    d: &Decoded,
) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { access::<STORE, SIZE, COUNT, SIGNED>(w, d) }
}

/// # Safety
/// As for every handler.
unsafe fn portable<const STORE: bool, const SIZE: usize, const COUNT: usize, const SIGNED: bool>(
    w: &mut Warp,
    d: &Decoded,
) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { access::<STORE, SIZE, COUNT, SIGNED>(w, d) }
}

/// The handler of an access to `count` elements of `size` bytes; `None` where only the slow path does it.
pub(crate) fn handler(
    store: bool,
    size: u8,
    count: usize,
    signed: bool,
    variant: Variant,
) -> Option<Handler> {
    macro_rules! pick {
        ($($size:literal $count:literal $signed:literal;)*) => {
            match (size, count, signed) {
                $(($size, $count, $signed) => Some(match (store, variant) {
                    (false, Variant::Wide) => wide::<false, $size, $count, $signed>,
                    (true, Variant::Wide) => wide::<true, $size, $count, $signed>,
                    (false, Variant::Portable) => portable::<false, $size, $count, $signed>,
                    (true, Variant::Portable) => portable::<true, $size, $count, $signed>,
                }),)*
                _ => None,
            }
        };
    }
    pick! { 1 1 false; 1 1 true; 2 1 false; 2 1 true; 4 1 false; 8 1 false; 4 2 false; 4 4 false; 8 2 false; }
}
