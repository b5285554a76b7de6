//! Chains: runs of (load, load, fused multiply-add) on shared memory, the inner loop of tiled products, done at once.
//!
//! The decoder puts a chain before the instructions that it stands for. If both address registers are consecutive or
//! uniform over half-warps, one range check serves all loads, the sum stays in registers, and the loaded values,
//! which nothing else reads, are never stored. Otherwise the chain does nothing and the instructions follow.

use crate::code::Cold;
use crate::cpu::{Portable, Simd, Wide, fma32};
use crate::lanes::Pair;
use crate::sanitize::shadow::{Side, Steps};
use crate::warp::{Class, Decoded, Event, Phase, Warp, next};

use super::memory::{Shared, Space, classify32};

const HALF: usize = 16;

/// What a chain does, beside the registers in its instruction.
#[derive(Clone, Debug)]
pub(crate) struct ChainOp {
    /// Offsets from the two address registers, multiples of 4, not negative; whether the second load comes first.
    pub(crate) steps: Vec<(u32, u32, bool)>,
    /// Largest offsets.
    pub(crate) most: (u32, u32),
    /// The class of the register is known already.
    pub(crate) cached: (bool, bool),
    /// Instructions that it stands for.
    pub(crate) len: u32,
}

/// Class of the register at `base` for words, without offset.
#[inline(always)]
unsafe fn class<S: Simd>(w: &Warp, base: u32, slot: u32, cached: bool) -> Class {
    // SAFETY: register and slot are the decoder's.
    unsafe {
        let slot: *mut Class = w.regs.add(slot as usize).cast();
        if cached && (*slot).generation == w.generation {
            return *slot;
        }
        let c = Class { generation: w.generation, ..classify32::<S>(w.r32(base), 4) };
        *slot = c;
        c
    }
}

/// 16 lanes of words at `p`: consecutive, or one for all.
#[inline(always)]
unsafe fn words<const UNIT: bool>(p: *const u8) -> [f32; HALF] {
    // SAFETY: the caller checked the range.
    unsafe {
        if UNIT { p.cast::<[f32; HALF]>().read_unaligned() } else { [p.cast::<f32>().read_unaligned(); HALF] }
    }
}

/// The bits, NaNs being the canonical one. A NaN stays one through all steps, whichever it is, so that once is enough.
#[inline(always)]
fn canonical(sum: &[f32; HALF]) -> [u32; HALF] {
    let mut r = [0u32; HALF];
    for k in 0..HALF {
        let bits = sum[k].to_bits();
        r[k] = if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits };
    }
    r
}

/// All steps of both half-warps side by side: each sum waits for its last addition, so four vectors in flight are
/// better than two.
#[inline(always)]
unsafe fn products<S: Simd, const A: bool, const B: bool>(
    acc: *const f32,
    out: *mut u32,
    steps: &[(u32, u32, bool)],
    a: [*const u8; 2],
    b: [*const u8; 2],
) {
    // SAFETY: the caller checked all offsets of both; `acc` and `out` are registers.
    unsafe {
        let mut low: [f32; HALF] = *acc.cast();
        let mut high: [f32; HALF] = *acc.add(HALF).cast();
        for (x, y, _) in steps {
            let (x, y) = (*x as usize, *y as usize);
            let (u, v) = (words::<A>(a[0].add(x)), words::<B>(b[0].add(y)));
            for k in 0..HALF {
                low[k] = fma32::<S>(u[k], v[k], low[k]);
            }
            let (u, v) = (words::<A>(a[1].add(x)), words::<B>(b[1].add(y)));
            for k in 0..HALF {
                high[k] = fma32::<S>(u[k], v[k], high[k]);
            }
        }
        *out.cast() = canonical(&low);
        *out.add(HALF).cast() = canonical(&high);
    }
}

/// # Safety
/// As for every handler.
#[inline(always)]
unsafe fn chain<S: Simd, const CHECK: bool>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: registers, slots and the cold index are the decoder's; memory is checked before it is touched.
    unsafe {
        let Cold::Chain(op) = &*w.cold.add(d.aux as usize) else { return next(d) };
        if w.mask != u32::MAX {
            return next(d);
        }
        if Shared::turn(w, Phase::Loads) {
            return w.stop(d, Event::Yield);
        }
        let a = class::<S>(w, d.a, d.class, op.cached.0);
        let b = class::<S>(w, d.b, d.e, op.cached.1);
        let fits = |c: &Class, most: u32| {
            let len = u64::from(most) + if c.kind == 1 { 64 } else { 4 };
            c.kind != 0
                && c.low + len <= w.shared_len
                && c.high + len <= w.shared_len
                && (c.low | c.high) & 3 == 0
        };
        if !fits(&a, op.most.0) || !fits(&b, op.most.1) {
            return next(d);
        }
        if CHECK {
            let side = |c: &Class| Side { at: [c.low, c.high], unit: c.kind == 1 };
            let at = (std::ptr::from_ref(d) as usize).wrapping_sub(w.code as usize) / size_of::<Decoded>();
            let reads = Steps {
                steps: &raw const op.steps[..],
                sides: [side(&a), side(&b)],
                thread: w.first_thread,
                site: w.first_site.wrapping_add(at as u32).wrapping_add(1),
            };
            if !(*w.view).shared_steps(reads, [op.most.0, op.most.1]) {
                return next(d);
            }
        }
        let (acc, out): (*const f32, *mut u32) = (w.r32(d.c).cast(), w.r32(d.d));
        let at = |address: u64| w.shared.add(address as usize).cast_const();
        let (p, q) = ([at(a.low), at(a.high)], [at(b.low), at(b.high)]);
        match (a.kind == 1, b.kind == 1) {
            (true, true) => products::<S, true, true>(acc, out, &op.steps, p, q),
            (true, false) => products::<S, true, false>(acc, out, &op.steps, p, q),
            (false, true) => products::<S, false, true>(acc, out, &op.steps, p, q),
            (false, false) => products::<S, false, false>(acc, out, &op.steps, p, q),
        }
        std::ptr::from_ref(d).add(1 + op.len as usize)
    }
}

/// # Safety
/// As for every handler, on a processor for which [`crate::cpu::wide_available`] is true.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
unsafe fn chain_wide<const CHECK: bool>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { chain::<Wide, CHECK>(w, d) }
}

/// # Safety
/// As for every handler.
unsafe fn chain_portable<const CHECK: bool>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { chain::<Portable, CHECK>(w, d) }
}

/// Both variants, without or with detectors.
pub(crate) fn pair(check: bool) -> Pair {
    if check {
        Pair { wide: chain_wide::<true>, portable: chain_portable::<true> }
    } else {
        Pair { wide: chain_wide::<false>, portable: chain_portable::<false> }
    }
}
