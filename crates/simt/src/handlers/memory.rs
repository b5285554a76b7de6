//! Loads and stores of global and shared memory: the fast paths.
//!
//! Under a full mask the address register is classified (once per straight run, see [`Class`]): lanes 0–15 and
//! 16–31 each consecutive or uniform, so that two range checks serve the warp. Otherwise one pass finds the
//! extremes, one check serves all lanes, and the lanes are gathered without further checks. Anything that does
//! not pass ends in [`Event::Memory`], before any register or byte is changed, and the executor does it exactly.
#![allow(clippy::needless_range_loop, reason = "lanes index several arrays at once")]

use super::generic;
use crate::code::{Cold, MemKind};
use crate::cpu::{Portable, Simd, Variant, Wide};
use crate::exec::access;
use crate::memory::{FIRST_REGION, OFFSET_BITS, OFFSET_MASK};
use crate::sanitize::shadow::Run;
use crate::warp::{Class, Decoded, Event, Handler, LANES, Phase, Warp, next};

const HALF: usize = 16;

/// Classifies 64-bit addresses for elements of `stride` bytes.
#[inline(always)]
unsafe fn classify64<S: Simd>(a: *const u64, stride: u64) -> Class {
    // SAFETY: a register of 32 lanes.
    let a = unsafe { &*a.cast::<[u64; LANES]>() };
    Class { kind: S::kind64(a, stride), generation: 0, low: a[0], high: a[HALF], ahead: 0 }
}

/// Classifies 32-bit addresses.
#[inline(always)]
pub(crate) unsafe fn classify32<S: Simd>(a: *const u32, stride: u32) -> Class {
    // SAFETY: a register of 32 lanes.
    let a = unsafe { &*a.cast::<[u32; LANES]>() };
    Class {
        kind: S::kind32(a, stride),
        generation: 0,
        low: u64::from(a[0]),
        high: u64::from(a[HALF]),
        ahead: 0,
    }
}

/// As [`classify64`], by the active lanes alone.
#[inline(always)]
unsafe fn classify64_some<S: Simd>(a: *const u64, stride: u64, mask: u32) -> Class {
    // SAFETY: a register of 32 lanes.
    let a = unsafe { &*a.cast::<[u64; LANES]>() };
    let (x, y) = firsts(mask);
    let (low, high) = (a[x], a[HALF + y]);
    let down = |v: u64, k: usize| v.wrapping_sub(stride.wrapping_mul(k as u64));
    let (from, to) = (down(low, x), down(high, y));
    if S::rises64(a, stride, mask, from, to) {
        return Class { kind: 1, generation: 0, low: from, high: to, ahead: 0 };
    }
    let kind = if S::rises64(a, 0, mask, low, high) { 2 } else { 0 };
    Class { kind, generation: 0, low, high, ahead: 0 }
}

/// As [`classify32`], by the active lanes alone.
#[inline(always)]
unsafe fn classify32_some<S: Simd>(a: *const u32, stride: u32, mask: u32) -> Class {
    // SAFETY: a register of 32 lanes.
    let a = unsafe { &*a.cast::<[u32; LANES]>() };
    let (x, y) = firsts(mask);
    let (low, high) = (a[x], a[HALF + y]);
    let down = |v: u32, k: usize| v.wrapping_sub(stride.wrapping_mul(k as u32));
    let (from, to) = (down(low, x), down(high, y));
    if S::rises32(a, stride, mask, from, to) {
        return Class { kind: 1, generation: 0, low: u64::from(from), high: u64::from(to), ahead: 0 };
    }
    let kind = if S::rises32(a, 0, mask, low, high) { 2 } else { 0 };
    Class { kind, generation: 0, low: u64::from(low), high: u64::from(high), ahead: 0 }
}

/// The first active lane of each half; lane 0 of it if there is none.
#[inline(always)]
fn firsts(mask: u32) -> (usize, usize) {
    (mask.trailing_zeros() as usize % HALF, (mask >> HALF).trailing_zeros() as usize % HALF)
}

/// Where accesses go.
pub(crate) trait Space: 'static {
    /// Loads ask ahead for the place that is likely to be read next.
    const AHEAD: bool;
    /// Global memory.
    const GLOBAL: bool;
    /// Class of the address register of `d`, by the active lanes.
    unsafe fn classify<S: Simd>(w: &Warp, d: &Decoded, stride: u64) -> Class;
    /// Host pointer of `len` bytes at device address `address` (plus the instruction's offset), or null if that is
    /// not all within memory, or not a multiple of `align`.
    unsafe fn range<const STORE: bool>(w: &Warp, address: u64, len: u64, align: u64) -> *mut u8;
    /// Base pointer for a gather, if every active lane's access of `size` bytes is within one region and aligned:
    /// lane `k` is at the pointer plus the value that `offsets` gets.
    unsafe fn gather<const STORE: bool>(
        w: &Warp,
        d: &Decoded,
        size: u64,
        align: u64,
        offsets: &mut [u64; LANES],
    ) -> *mut u8;
    /// True if the lockstep schedule wants another warp first.
    fn turn(w: &mut Warp, phase: Phase) -> bool;
    /// Shows an access to the detectors: `run.lanes` consecutive lanes from `run.thread` on, at consecutive places from
    /// `address` on or (`same`, loads only) all at that one. False if the exact path has to look at it.
    unsafe fn check<const STORE: bool>(w: &Warp, address: u64, run: Run, same: bool) -> bool;
    /// The part of the active lanes' addresses that `gather` takes off; they share it.
    unsafe fn region(w: &Warp, d: &Decoded) -> u64;
}

/// Global, constant and generic addresses: 64-bit registers.
pub(crate) struct Global;

impl Space for Global {
    const AHEAD: bool = true;
    const GLOBAL: bool = true;

    #[inline(always)]
    unsafe fn classify<S: Simd>(w: &Warp, d: &Decoded, stride: u64) -> Class {
        // SAFETY: the address register of a global access is 64 bits wide.
        let mut c = unsafe {
            if w.mask == u32::MAX {
                classify64::<S>(w.r64(d.a), stride)
            } else {
                classify64_some::<S>(w.r64(d.a), stride, w.mask)
            }
        };
        c.low = c.low.wrapping_add(d.off as u64);
        c.high = c.high.wrapping_add(d.off as u64);
        c
    }

    #[inline(always)]
    unsafe fn range<const STORE: bool>(w: &Warp, address: u64, len: u64, align: u64) -> *mut u8 {
        let region = address >> OFFSET_BITS;
        let offset = address & OFFSET_MASK;
        if region >= w.table_len || address & (align - 1) != 0 {
            return std::ptr::null_mut();
        }
        // SAFETY: `region` is below the table's length.
        let e = unsafe { &*w.table.add(region as usize) };
        let limit = if STORE { e.write_len } else { e.read_len };
        // Neither sum overflows: both are below 2^41.
        if offset + len > limit {
            return std::ptr::null_mut();
        }
        // SAFETY: the offset lies within the region's bytes.
        unsafe { e.base.add(offset as usize) }
    }

    #[inline(always)]
    unsafe fn gather<const STORE: bool>(
        w: &Warp,
        d: &Decoded,
        size: u64,
        align: u64,
        offsets: &mut [u64; LANES],
    ) -> *mut u8 {
        // SAFETY: a 64-bit register.
        let a = unsafe { &*w.r64(d.a).cast::<[u64; LANES]>() };
        let first = a[w.mask.trailing_zeros() as usize & 31].wrapping_add(d.off as u64);
        let region = first >> OFFSET_BITS;
        let (mut other, mut low, mut most) = (0u64, 0u64, 0u64);
        for k in 0..LANES {
            let v = a[k].wrapping_add(d.off as u64);
            let v = if w.mask >> k & 1 != 0 { v } else { first };
            other |= (v >> OFFSET_BITS) ^ region;
            low |= v;
            let o = v & OFFSET_MASK;
            most = if o as i64 > most as i64 { o } else { most };
            offsets[k] = o;
        }
        if other != 0 || low & (align - 1) != 0 || region >= w.table_len {
            return std::ptr::null_mut();
        }
        // SAFETY: `region` is below the table's length.
        let e = unsafe { &*w.table.add(region as usize) };
        let limit = if STORE { e.write_len } else { e.read_len };
        if most + size > limit { std::ptr::null_mut() } else { e.base }
    }

    #[inline(always)]
    fn turn(_w: &mut Warp, _phase: Phase) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn region(w: &Warp, d: &Decoded) -> u64 {
        // SAFETY: a 64-bit register.
        let a = unsafe { *w.r64(d.a).add(w.mask.trailing_zeros() as usize & 31) };
        a.wrapping_add(d.off as u64) & !OFFSET_MASK
    }

    #[inline(always)]
    unsafe fn check<const STORE: bool>(w: &Warp, address: u64, run: Run, same: bool) -> bool {
        let region = (address >> OFFSET_BITS) - FIRST_REGION;
        let run = Run { word: (address & OFFSET_MASK) / 4, ..run };
        // SAFETY: under detectors the view is set; the access is within its region, as `range` or `gather` checked.
        unsafe {
            if STORE { (*w.view).global_write(region, run) } else { (*w.view).global_read(region, run, same) }
        }
    }
}

/// Shared memory: 32-bit registers.
pub(crate) struct Shared;

impl Space for Shared {
    const AHEAD: bool = false;
    const GLOBAL: bool = false;

    #[inline(always)]
    unsafe fn classify<S: Simd>(w: &Warp, d: &Decoded, stride: u64) -> Class {
        // SAFETY: the address register of such an access is 32 bits wide.
        let mut c = unsafe {
            if w.mask == u32::MAX {
                classify32::<S>(w.r32(d.a), stride as u32)
            } else {
                classify32_some::<S>(w.r32(d.a), stride as u32, w.mask)
            }
        };
        c.low = c.low.wrapping_add(d.off as u64) & 0xffff_ffff;
        c.high = c.high.wrapping_add(d.off as u64) & 0xffff_ffff;
        c
    }

    #[inline(always)]
    unsafe fn range<const STORE: bool>(w: &Warp, address: u64, len: u64, align: u64) -> *mut u8 {
        if address + len > w.shared_len || address & (align - 1) != 0 {
            return std::ptr::null_mut();
        }
        // SAFETY: within the block's shared memory.
        unsafe { w.shared.add(address as usize) }
    }

    #[inline(always)]
    unsafe fn gather<const STORE: bool>(
        w: &Warp,
        d: &Decoded,
        size: u64,
        align: u64,
        offsets: &mut [u64; LANES],
    ) -> *mut u8 {
        // SAFETY: a 32-bit register.
        let a = unsafe { &*w.r32(d.a).cast::<[u32; LANES]>() };
        let off = d.off as u32;
        let first = a[w.mask.trailing_zeros() as usize & 31];
        let (mut low, mut most) = (0u32, 0u32);
        for k in 0..LANES {
            let v = (if w.mask >> k & 1 != 0 { a[k] } else { first }).wrapping_add(off);
            low |= v;
            most = most.max(v);
            offsets[k] = u64::from(v);
        }
        if u64::from(most) + size > w.shared_len || u64::from(low) & (align - 1) != 0 {
            return std::ptr::null_mut();
        }
        w.shared
    }

    #[inline(always)]
    fn turn(w: &mut Warp, phase: Phase) -> bool {
        if w.phase == phase {
            return false;
        }
        let stop = w.lockstep && w.phase != Phase::Fresh;
        // Fresh after a stop, so that the same instruction goes on when the warp's turn comes.
        w.phase = if stop { Phase::Fresh } else { phase };
        stop
    }

    #[inline(always)]
    unsafe fn region(_w: &Warp, _d: &Decoded) -> u64 {
        0
    }

    #[inline(always)]
    unsafe fn check<const STORE: bool>(w: &Warp, address: u64, run: Run, same: bool) -> bool {
        let run = Run { word: address / 4, ..run };
        // SAFETY: as for global memory.
        unsafe {
            match (STORE, same) {
                (true, _) => (*w.view).shared_write(run),
                (false, true) => (*w.view).shared_broadcast(run),
                (false, false) => (*w.view).shared_read(run),
            }
        }
    }
}

/// The part of a [`Run`] that does not depend on the address.
#[inline(always)]
fn lanes_of(w: &Warp, d: &Decoded, first: usize, lanes: usize, total: u64) -> Run {
    let at = (std::ptr::from_ref(d) as usize).wrapping_sub(w.code as usize) / size_of::<Decoded>();
    Run {
        word: 0,
        thread: w.first_thread + first as u32,
        lanes: lanes as u32,
        each: (total / 4) as u32,
        site: w.first_site.wrapping_add(at as u32),
    }
}

/// A step by which an access may move on from one time to the next; beyond it the register had another use.
const MOST_AHEAD: i64 = 1 << 20;

/// Classes are kept with the instruction's offset taken out, for accesses with the same register and others.
#[inline(always)]
unsafe fn class_of<S: Simd, M: Space, const CACHED: bool>(w: &Warp, d: &Decoded, stride: u64) -> Class {
    // SAFETY: the class slot is the decoder's; `CACHED` instructions follow one that wrote it, or (accesses of other
    // sizes than a word, and under detectors) none that did under this partial mask, so that the generation is another.
    unsafe {
        let slot: *mut Class = w.regs.add(d.class as usize).cast();
        if CACHED && (*slot).generation == w.generation {
            let mut c = *slot;
            c.low = c.low.wrapping_add(d.off as u64);
            c.high = c.high.wrapping_add(d.off as u64);
            c
        } else {
            let mut c = M::classify::<S>(w, d, stride);
            let mut kept = c;
            kept.generation = w.generation;
            kept.low = kept.low.wrapping_sub(d.off as u64);
            kept.high = kept.high.wrapping_sub(d.off as u64);
            if M::AHEAD {
                let moved = kept.low.wrapping_sub((*slot).low);
                let again = moved != 0 && (-MOST_AHEAD..MOST_AHEAD).contains(&(moved as i64));
                // At first: where the next warp of a block mostly goes.
                kept.ahead = if again { moved } else { stride * LANES as u64 };
                c.ahead = kept.ahead;
            }
            // A guard narrows the mask for one instruction: what holds of these lanes need not hold of all.
            if w.mask == u32::MAX || d.guard == 0 {
                *slot = kept;
            }
            c
        }
    }
}

#[inline(always)]
unsafe fn read<const SIZE: usize, const SIGNED: bool>(p: *const u8) -> u64 {
    // SAFETY: the caller checked `SIZE` bytes at `p`; alignment is not assumed.
    unsafe {
        match (SIZE, SIGNED) {
            (1, false) => u64::from(*p),
            (1, true) => i64::from(*p.cast::<i8>()) as u64,
            (2, false) => u64::from(p.cast::<u16>().read_unaligned()),
            (2, true) => i64::from(p.cast::<i16>().read_unaligned()) as u64,
            (4, _) => u64::from(p.cast::<u32>().read_unaligned()),
            _ => p.cast::<u64>().read_unaligned(),
        }
    }
}

#[inline(always)]
unsafe fn write<const SIZE: usize>(p: *mut u8, v: u64) {
    // SAFETY: as for `read`.
    unsafe {
        match SIZE {
            1 => *p = v as u8,
            2 => p.cast::<u16>().write_unaligned(v as u16),
            4 => p.cast::<u32>().write_unaligned(v as u32),
            _ => p.cast::<u64>().write_unaligned(v),
        }
    }
}

#[inline(always)]
pub(super) fn data(d: &Decoded, j: usize) -> u32 {
    match j {
        0 => d.d,
        1 => d.b,
        2 => d.c,
        _ => d.e,
    }
}

/// Writes lane `k` of the `j`-th data register.
#[inline(always)]
unsafe fn set_lane<const SIZE: usize, const COUNT: usize>(w: &Warp, d: &Decoded, j: usize, k: usize, v: u64) {
    // SAFETY: data registers are 64 bits wide for 8-byte elements, else 32.
    unsafe {
        if SIZE == 8 {
            *w.r64(data(d, j)).add(k) = v;
        } else if SIZE < 4 && COUNT == 1 {
            // A 16-bit register keeps its upper half zero.
            *w.r32(d.d).add(k) = v as u32 & d.e;
        } else {
            *w.r32(data(d, j)).add(k) = v as u32;
        }
    }
}

#[inline(always)]
unsafe fn get_lane<const SIZE: usize>(w: &Warp, d: &Decoded, j: usize, k: usize) -> u64 {
    // SAFETY: as for `set_lane`.
    unsafe { if SIZE == 8 { *w.r64(data(d, j)).add(k) } else { u64::from(*w.r32(data(d, j)).add(k)) } }
}

/// # Safety
/// As for every handler.
#[inline(always)]
unsafe fn load<
    S: Simd,
    M: Space,
    const SIZE: usize,
    const COUNT: usize,
    const SIGNED: bool,
    const CACHED: bool,
    const CHECK: bool,
>(
    w: &mut Warp,
    d: &Decoded,
) -> *const Decoded {
    let total = (SIZE * COUNT) as u64;
    // SAFETY: registers at the decoder's offsets; memory only where `range` and `gather` allow it.
    unsafe {
        if M::turn(w, Phase::Loads) {
            return w.stop(d, Event::Yield);
        }
        if !CHECK && COUNT == 1 && SIZE == 4 && w.mask != u32::MAX {
            // Every load and store of a word classifies, whatever the mask.
            let c = class_of::<S, M, CACHED>(w, d, total);
            if c.kind != 0 {
                return load_some::<S, M>(w, d, c);
            }
        }
        if w.mask == u32::MAX {
            let c = class_of::<S, M, CACHED>(w, d, total);
            if c.kind == 1 {
                let p = M::range::<false>(w, c.low, total * HALF as u64, total);
                let q = M::range::<false>(w, c.high, total * HALF as u64, total);
                if p.is_null() || q.is_null() {
                    return w.stop(d, Event::Memory);
                }
                if M::AHEAD {
                    S::prefetch(p.wrapping_add(c.ahead as usize));
                    S::prefetch(q.wrapping_add(c.ahead as usize));
                }
                if CHECK {
                    let ok = M::check::<false>(w, c.low, lanes_of(w, d, 0, HALF, total), false)
                        && M::check::<false>(w, c.high, lanes_of(w, d, HALF, HALF, total), false);
                    if !ok {
                        return w.stop(d, Event::Memory);
                    }
                }
                if COUNT == 1 && SIZE == 4 {
                    let (x, y): ([u32; HALF], [u32; HALF]) =
                        (p.cast::<[u32; HALF]>().read_unaligned(), q.cast::<[u32; HALF]>().read_unaligned());
                    *w.r32(d.d).cast() = x;
                    *w.r32(d.d).add(HALF).cast() = y;
                } else if COUNT == 1 && SIZE == 8 {
                    let (x, y): ([u64; HALF], [u64; HALF]) =
                        (p.cast::<[u64; HALF]>().read_unaligned(), q.cast::<[u64; HALF]>().read_unaligned());
                    *w.r64(d.d).cast() = x;
                    *w.r64(d.d).add(HALF).cast() = y;
                } else {
                    for (half, p) in [p, q].into_iter().enumerate() {
                        for k in 0..HALF {
                            for j in 0..COUNT {
                                let v = read::<SIZE, SIGNED>(p.add((k * COUNT + j) * SIZE));
                                set_lane::<SIZE, COUNT>(w, d, j, half * HALF + k, v);
                            }
                        }
                    }
                }
                return next(d);
            }
            if c.kind == 2 {
                let p = M::range::<false>(w, c.low, total, total);
                let q = M::range::<false>(w, c.high, total, total);
                if p.is_null() || q.is_null() {
                    return w.stop(d, Event::Memory);
                }
                if CHECK {
                    let ok = M::check::<false>(w, c.low, lanes_of(w, d, 0, HALF, total), true)
                        && M::check::<false>(w, c.high, lanes_of(w, d, HALF, HALF, total), true);
                    if !ok {
                        return w.stop(d, Event::Memory);
                    }
                }
                for j in 0..COUNT {
                    let (x, y) =
                        (read::<SIZE, SIGNED>(p.add(j * SIZE)), read::<SIZE, SIGNED>(q.add(j * SIZE)));
                    for k in 0..HALF {
                        set_lane::<SIZE, COUNT>(w, d, j, k, x);
                    }
                    for k in HALF..LANES {
                        set_lane::<SIZE, COUNT>(w, d, j, k, y);
                    }
                }
                return next(d);
            }
        }
        let mut offsets = [0u64; LANES];
        let base = M::gather::<false>(w, d, total, total, &mut offsets);
        if base.is_null() || (CHECK && !check_lanes::<M, false>(w, d, &offsets, total)) {
            return w.stop(d, Event::Memory);
        }
        if w.mask == u32::MAX {
            for j in 0..COUNT {
                for k in 0..LANES {
                    let v = read::<SIZE, SIGNED>(base.add(offsets[k] as usize + j * SIZE));
                    set_lane::<SIZE, COUNT>(w, d, j, k, v);
                }
            }
        } else {
            let mut m = w.mask;
            while m != 0 {
                let k = m.trailing_zeros() as usize;
                m &= m - 1;
                for j in 0..COUNT {
                    let v = read::<SIZE, SIGNED>(base.add(offsets[k] as usize + j * SIZE));
                    set_lane::<SIZE, COUNT>(w, d, j, k, v);
                }
            }
        }
        next(d)
    }
}

/// A load of words by a part of the lanes, whose addresses are consecutive or uniform over half-warps: nothing is looked at
/// but what lies between the first and the last lane that takes part.
///
/// # Safety
/// As for every handler; `c` is the class of the address register with the offset.
#[inline(always)]
unsafe fn load_some<S: Simd, M: Space>(w: &mut Warp, d: &Decoded, c: Class) -> *const Decoded {
    // SAFETY: registers at the decoder's offsets; memory only where `range` allows it.
    unsafe {
        let mut from = [std::ptr::null_mut::<u8>(); 2];
        for (h, from) in from.iter_mut().enumerate() {
            let lanes = w.mask >> (HALF * h) & 0xffff;
            if lanes == 0 {
                continue;
            }
            let at = if h == 0 { c.low } else { c.high };
            let (first, last) = (u64::from(lanes.trailing_zeros()), u64::from(lanes.ilog2()));
            let (up, len) = if c.kind == 1 { (4 * first, 4 * (last - first + 1)) } else { (0, 4) };
            let p = M::range::<false>(w, at.wrapping_add(up), len, 4);
            if p.is_null() {
                return w.stop(d, Event::Memory);
            }
            *from = p.wrapping_sub(up as usize);
        }
        for j in 0..LANES / 8 {
            let lanes = w.mask >> (8 * j) & 0xff;
            if lanes == 0 {
                continue;
            }
            let dst: *mut [u32; 8] = w.r32(d.d).add(8 * j).cast();
            let p = from[j / 2];
            *dst = if c.kind == 1 {
                S::load_some(p.wrapping_add(32 * (j % 2)), &*dst, lanes)
            } else {
                S::blend32(&*dst, &[p.cast::<u32>().read_unaligned(); 8], lanes)
            };
        }
        next(d)
    }
}

/// As [`load_some`], for a store of words to consecutive addresses.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn store_some<M: Space>(w: &mut Warp, d: &Decoded, c: Class) -> *const Decoded {
    // SAFETY: as there.
    unsafe {
        let mut to = [std::ptr::null_mut::<u8>(); 2];
        for (h, to) in to.iter_mut().enumerate() {
            let lanes = w.mask >> (HALF * h) & 0xffff;
            if lanes == 0 {
                continue;
            }
            let at = if h == 0 { c.low } else { c.high };
            let (first, last) = (u64::from(lanes.trailing_zeros()), u64::from(lanes.ilog2()));
            let p = M::range::<true>(w, at.wrapping_add(4 * first), 4 * (last - first + 1), 4);
            if p.is_null() {
                return w.stop(d, Event::Memory);
            }
            *to = p.wrapping_sub(4 * first as usize);
        }
        for j in 0..LANES / 8 {
            let mut lanes = w.mask >> (8 * j) & 0xff;
            let (from, p) = (w.r32(d.d).add(8 * j), to[j / 2].wrapping_add(32 * (j % 2)));
            if lanes == 0xff {
                p.cast::<[u32; 8]>().write_unaligned(*from.cast());
                continue;
            }
            while lanes != 0 {
                let k = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                p.wrapping_add(4 * k).cast::<u32>().write_unaligned(*from.add(k));
            }
        }
        next(d)
    }
}

/// # Safety
/// As for every handler.
#[inline(always)]
unsafe fn store<
    S: Simd,
    M: Space,
    const SIZE: usize,
    const COUNT: usize,
    const SIGNED: bool,
    const CACHED: bool,
    const CHECK: bool,
>(
    w: &mut Warp,
    d: &Decoded,
) -> *const Decoded {
    let total = (SIZE * COUNT) as u64;
    // SAFETY: as in `load`.
    unsafe {
        if M::turn(w, Phase::Stores) {
            return w.stop(d, Event::Yield);
        }
        if w.mask == u32::MAX {
            let c = class_of::<S, M, CACHED>(w, d, total);
            if c.kind == 1 {
                let p = M::range::<true>(w, c.low, total * HALF as u64, total);
                let q = M::range::<true>(w, c.high, total * HALF as u64, total);
                if p.is_null() || q.is_null() {
                    return w.stop(d, Event::Memory);
                }
                if CHECK {
                    let ok = M::check::<true>(w, c.low, lanes_of(w, d, 0, HALF, total), false)
                        && M::check::<true>(w, c.high, lanes_of(w, d, HALF, HALF, total), false);
                    if !ok {
                        return w.stop(d, Event::Memory);
                    }
                }
                if COUNT == 1 && SIZE == 4 {
                    let (x, y): ([u32; HALF], [u32; HALF]) =
                        (*w.r32(d.d).cast(), *w.r32(d.d).add(HALF).cast());
                    p.cast::<[u32; HALF]>().write_unaligned(x);
                    q.cast::<[u32; HALF]>().write_unaligned(y);
                } else {
                    for (half, p) in [p, q].into_iter().enumerate() {
                        for k in 0..HALF {
                            for j in 0..COUNT {
                                let v = get_lane::<SIZE>(w, d, j, half * HALF + k);
                                write::<SIZE>(p.add((k * COUNT + j) * SIZE), v);
                            }
                        }
                    }
                }
                return next(d);
            }
        } else if !CHECK && COUNT == 1 && SIZE == 4 {
            // As in `load`, so that accesses behind this one find the class.
            let c = class_of::<S, M, CACHED>(w, d, total);
            if c.kind == 1 {
                return store_some::<M>(w, d, c);
            }
        }
        let mut offsets = [0u64; LANES];
        let base = M::gather::<true>(w, d, total, total, &mut offsets);
        if base.is_null() || (CHECK && !check_lanes::<M, true>(w, d, &offsets, total)) {
            return w.stop(d, Event::Memory);
        }
        let mut m = w.mask;
        while m != 0 {
            let k = m.trailing_zeros() as usize;
            m &= m - 1;
            for j in 0..COUNT {
                write::<SIZE>(base.add(offsets[k] as usize + j * SIZE), get_lane::<SIZE>(w, d, j, k));
            }
        }
        next(d)
    }
}

/// Shows the active lanes to the detectors one by one.
///
/// # Safety
/// As for every handler; `gather` gave the offsets.
#[inline(always)]
unsafe fn check_lanes<M: Space, const STORE: bool>(
    w: &Warp,
    d: &Decoded,
    offsets: &[u64; LANES],
    total: u64,
) -> bool {
    let mut m = w.mask;
    // SAFETY: the caller's promise. For global memory the region is that of any active lane.
    unsafe {
        let region = M::region(w, d);
        while m != 0 {
            let k = m.trailing_zeros() as usize;
            m &= m - 1;
            if !M::check::<STORE>(w, region | offsets[k], lanes_of(w, d, k, 1, total), false) {
                return false;
            }
        }
    }
    true
}

macro_rules! access_variants {
    ($inner:ident $wide:ident $portable:ident) => {
        /// # Safety
        /// As for every handler, on a processor for which [`crate::cpu::wide_available`] is true.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
        unsafe fn $wide<
            M: Space,
            const SIZE: usize,
            const COUNT: usize,
            const SIGNED: bool,
            const CACHED: bool,
            const CHECK: bool,
        >(
            w: &mut Warp,
            d: &Decoded,
        ) -> *const Decoded {
            // SAFETY: the same promise.
            unsafe { $inner::<Wide, M, SIZE, COUNT, SIGNED, CACHED, CHECK>(w, d) }
        }

        /// # Safety
        /// As for every handler.
        unsafe fn $portable<
            M: Space,
            const SIZE: usize,
            const COUNT: usize,
            const SIGNED: bool,
            const CACHED: bool,
            const CHECK: bool,
        >(
            w: &mut Warp,
            d: &Decoded,
        ) -> *const Decoded {
            // SAFETY: the same promise.
            unsafe { $inner::<Portable, M, SIZE, COUNT, SIGNED, CACHED, CHECK>(w, d) }
        }
    };
}
access_variants!(load load_wide load_portable);
access_variants!(store store_wide store_portable);

/// The form of an access that has a fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) store: bool,
    /// Shared memory with a 32-bit register; else 64-bit global or generic addresses.
    pub(crate) shared: bool,
    pub(crate) size: u8,
    pub(crate) count: usize,
    pub(crate) signed: bool,
    /// An earlier access of the straight run classified the same register for the same total size.
    pub(crate) cached: bool,
}

/// The handler of a form, without or with detectors; `None` where only the slow path does it.
pub(crate) fn handler(f: Form, variant: Variant, check: bool) -> Option<Handler> {
    macro_rules! pick {
        ($check:literal: $($size:literal $count:literal $signed:literal;)*) => {
            match (f.size, f.count, f.signed) {
                $(($size, $count, $signed) => Some(match (f.store, f.shared, f.cached, variant) {
                    (false, false, false, Variant::Wide) => load_wide::<Global, $size, $count, $signed, false, $check>,
                    (false, false, true, Variant::Wide) => load_wide::<Global, $size, $count, $signed, true, $check>,
                    (false, true, false, Variant::Wide) => load_wide::<Shared, $size, $count, $signed, false, $check>,
                    (false, true, true, Variant::Wide) => load_wide::<Shared, $size, $count, $signed, true, $check>,
                    (true, false, false, Variant::Wide) => store_wide::<Global, $size, $count, false, false, $check>,
                    (true, false, true, Variant::Wide) => store_wide::<Global, $size, $count, false, true, $check>,
                    (true, true, false, Variant::Wide) => store_wide::<Shared, $size, $count, false, false, $check>,
                    (true, true, true, Variant::Wide) => store_wide::<Shared, $size, $count, false, true, $check>,
                    (false, false, false, Variant::Portable) => load_portable::<Global, $size, $count, $signed, false, $check>,
                    (false, false, true, Variant::Portable) => load_portable::<Global, $size, $count, $signed, true, $check>,
                    (false, true, false, Variant::Portable) => load_portable::<Shared, $size, $count, $signed, false, $check>,
                    (false, true, true, Variant::Portable) => load_portable::<Shared, $size, $count, $signed, true, $check>,
                    (true, false, false, Variant::Portable) => store_portable::<Global, $size, $count, false, false, $check>,
                    (true, false, true, Variant::Portable) => store_portable::<Global, $size, $count, false, true, $check>,
                    (true, true, false, Variant::Portable) => store_portable::<Shared, $size, $count, false, false, $check>,
                    (true, true, true, Variant::Portable) => store_portable::<Shared, $size, $count, false, true, $check>,
                }),)*
                _ => None,
            }
        };
    }
    if check {
        // Accesses of less than a word take the exact path.
        pick! { true: 4 1 false; 8 1 false; 4 2 false; 4 4 false; 8 2 false; }
    } else {
        pick! {
            false: 1 1 false; 1 1 true; 2 1 false; 2 1 true; 4 1 false; 8 1 false; 4 2 false; 4 4 false; 8 2 false;
        }
    }
}

/// `atom` and `red` of words or double words: lane after lane, in order, as the executor does them.
///
/// # Safety
/// As for every handler; `aux` is a memory operation whose address register fits `M`.
pub(crate) unsafe fn atomic<M: Space>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: registers and the cold index are the decoder's; memory only where `gather` allows it.
    unsafe {
        let Cold::Memory(op) = &*w.cold.add(d.aux as usize) else { return w.stop(d, Event::Memory) };
        let MemKind::Atomic(what) = op.kind else { return w.stop(d, Event::Memory) };
        let size = u64::from(op.size);
        let mut offsets = [0u64; LANES];
        let base = M::gather::<true>(w, d, size, size, &mut offsets);
        if base.is_null() {
            return w.stop(d, Event::Memory);
        }
        let dest = op.data.first().copied().flatten();
        let mut m = w.mask;
        while m != 0 {
            let k = m.trailing_zeros() as usize;
            m &= m - 1;
            let p = base.add(offsets[k] as usize);
            let old = if size == 8 { read::<8, false>(p) } else { read::<4, false>(p) };
            let b = op.b.map_or(0, |s| generic::get(w, s, k));
            let c = op.c.map_or(0, |s| generic::get(w, s, k));
            let new = access::atomic(what, op.ty, old, b, c, M::GLOBAL);
            if let Some(dest) = dest {
                generic::put(w, dest, k, old);
            }
            if size == 8 {
                write::<8>(p, new);
            } else {
                write::<4>(p, new);
            }
        }
        next(d)
    }
}

/// `ld.param` of a kernel at a fixed offset (`off`, checked by the decoder): `e` is the size and, from bit 8, 1
/// for sign extension; `b` the mask for narrow registers, `c` 1 for a 64-bit register.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn load_param(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the decoder checked that the parameter lies within the block that the launch sized.
    unsafe {
        let p = w.params.add(d.off as usize);
        let v = match (d.e & 0xff, d.e >> 8 != 0) {
            (1, false) => read::<1, false>(p),
            (1, true) => read::<1, true>(p),
            (2, false) => read::<2, false>(p),
            (2, true) => read::<2, true>(p),
            (4, false) => read::<4, false>(p),
            (4, true) => i64::from(read::<4, false>(p) as i32) as u64,
            _ => read::<8, false>(p),
        };
        if w.mask == u32::MAX {
            if d.c != 0 {
                *w.r64(d.d).cast() = [v; LANES];
            } else {
                *w.r32(d.d).cast() = [v as u32 & d.b; LANES];
            }
            return next(d);
        }
        for k in 0..LANES {
            if w.mask >> k & 1 != 0 {
                if d.c != 0 {
                    *w.r64(d.d).add(k) = v;
                } else {
                    *w.r32(d.d).add(k) = v as u32 & d.b;
                }
            }
        }
        next(d)
    }
}
