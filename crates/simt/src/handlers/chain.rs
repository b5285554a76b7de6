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
    /// The registers of the sum before and after, by their offsets in the frame.
    pub(crate) sums: (u32, u32),
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

/// One step of a half-warp.
#[inline(always)]
unsafe fn one<S: Simd, const A: bool, const B: bool>(
    sum: [f32; HALF],
    a: *const u8,
    b: *const u8,
) -> [f32; HALF] {
    // SAFETY: the caller checked both ranges.
    let (u, v) = unsafe { (words::<A>(a), words::<B>(b)) };
    let mut r = sum;
    for k in 0..HALF {
        r[k] = fma32::<S>(u[k], v[k], r[k]);
    }
    r
}

/// All steps of both half-warps side by side: each sum waits for its last addition, so four vectors in flight are
/// better than two.
#[inline(always)]
unsafe fn products<S: Simd, const A: bool, const B: bool>(
    acc: *const f32,
    out: *mut u32,
    op: &ChainOp,
    a: [*const u8; 2],
    b: [*const u8; 2],
) {
    // SAFETY: the caller checked all offsets of both; `acc` and `out` are registers.
    unsafe {
        let mut low: [f32; HALF] = *acc.cast();
        let mut high: [f32; HALF] = *acc.add(HALF).cast();
        for (x, y, _) in &op.steps {
            let (x, y) = (*x as usize, *y as usize);
            low = one::<S, A, B>(low, a[0].wrapping_add(x), b[0].wrapping_add(y));
            high = one::<S, A, B>(high, a[1].wrapping_add(x), b[1].wrapping_add(y));
        }
        *out.cast() = canonical(&low);
        *out.add(HALF).cast() = canonical(&high);
    }
}

/// Compiled code's call of a chain: the frame, the chain, and of the registers' addresses, of which `A` and `B` say whether
/// they are consecutive or uniform in each half, the host's for lanes 0 and 16.
pub(crate) type Product =
    unsafe extern "C" fn(*mut u8, *const ChainOp, *const u8, *const u8, *const u8, *const u8);

/// # Safety
/// `op` is a chain of the function whose frame this is; all its offsets from the four addresses were checked.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
unsafe extern "C" fn product<const A: bool, const B: bool>(
    frame: *mut u8,
    op: *const ChainOp,
    a0: *const u8,
    a1: *const u8,
    b0: *const u8,
    b1: *const u8,
) {
    // SAFETY: the caller's promise; the registers are the decoder's.
    unsafe {
        let op = &*op;
        let (acc, out) = (frame.add(op.sums.0 as usize), frame.add(op.sums.1 as usize));
        products::<Wide, A, B>(acc.cast(), out.cast(), op, [a0, a1], [b0, b1]);
    }
}

/// As [`product`], with a vector for each half: fewer instructions, so that more warps' sums are in flight at a time.
///
/// # Safety
/// As there, on a processor with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe extern "C" fn product_512<const A: bool, const B: bool>(
    frame: *mut u8,
    op: *const ChainOp,
    a0: *const u8,
    a1: *const u8,
    b0: *const u8,
    b1: *const u8,
) {
    use std::arch::x86_64::*;
    // SAFETY: as there.
    unsafe {
        let op = &*op;
        let (acc, out) = (frame.add(op.sums.0 as usize), frame.add(op.sums.1 as usize));
        let mut low = _mm512_loadu_ps(acc.cast());
        let mut high = _mm512_loadu_ps(acc.add(64).cast());
        macro_rules! words {
            ($unit:expr, $p:expr) => {
                if $unit {
                    _mm512_loadu_ps($p.cast())
                } else {
                    _mm512_set1_ps($p.cast::<f32>().read_unaligned())
                }
            };
        }
        for (x, y, _) in &op.steps {
            let (x, y) = (*x as usize, *y as usize);
            low = _mm512_fmadd_ps(words!(A, a0.wrapping_add(x)), words!(B, b0.wrapping_add(y)), low);
            high = _mm512_fmadd_ps(words!(A, a1.wrapping_add(x)), words!(B, b1.wrapping_add(y)), high);
        }
        for (sum, out) in [(low, out), (high, out.add(64))] {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
            let bits = _mm512_mask_set1_epi32(_mm512_castps_si512(sum), nan, 0x7fff_ffff);
            _mm512_storeu_si512(out.cast(), bits);
        }
    }
}

/// The code for a chain of which the first and the second address are consecutive (or uniform) in each half.
pub(crate) fn call(a: bool, b: bool) -> Product {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return match (a, b) {
            (true, true) => product_512::<true, true>,
            (true, false) => product_512::<true, false>,
            (false, true) => product_512::<false, true>,
            (false, false) => product_512::<false, false>,
        };
    }
    call_256(a, b)
}

/// As [`call`], for processors without AVX-512.
fn call_256(a: bool, b: bool) -> Product {
    match (a, b) {
        (true, true) => product::<true, true>,
        (true, false) => product::<true, false>,
        (false, true) => product::<false, true>,
        (false, false) => product::<false, false>,
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
            (true, true) => products::<S, true, true>(acc, out, op, p, q),
            (true, false) => products::<S, true, false>(acc, out, op, p, q),
            (false, true) => products::<S, false, true>(acc, out, op, p, q),
            (false, false) => products::<S, false, false>(acc, out, op, p, q),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_compiled_code_give_the_bits_of_the_portable_steps() {
        if !crate::cpu::wide_available() {
            return;
        }
        let mut state = 7u32;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        let special = [0x7f80_0000, 0xff80_0000, 0x7fc0_1234, 0xffff_ffff, 0, 0x8000_0000, 1, 0x7f7f_ffff];
        for round in 0..200 {
            // Finite values, now and then a special one.
            let words: Vec<u32> = (0..400)
                .map(|_| {
                    let r = random();
                    if round % 2 == 0 && r % 61 == 0 { special[r as usize / 61 % 8] } else { r % 0x7f00_0000 }
                })
                .map(|w| if w < 0x7f00_0000 { w % 0x0800_0000 + 0x3b00_0000 } else { w })
                .collect();
            let count = 1 + random() as usize % 20;
            let steps: Vec<(u32, u32, bool)> =
                (0..count).map(|_| (4 * (random() % 64), 4 * (random() % 64), false)).collect();
            let op = ChainOp { steps, most: (252, 252), cached: (false, false), len: 0, sums: (0, 128) };
            let at = |k: u32| words[32 + k as usize..].as_ptr().cast::<u8>();
            let (a, b) = ([at(random() % 90), at(random() % 90)], [at(random() % 90), at(random() % 90)]);
            for (x, y) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut want = [0u32; 64];
                want[..32].copy_from_slice(&words[..32]);
                let frame = want;
                let (acc, out) = (want.as_ptr().cast(), want[32..].as_mut_ptr());
                // SAFETY: the largest offset and 16 lanes stay within the words.
                unsafe {
                    match (x, y) {
                        (false, false) => products::<Portable, false, false>(acc, out, &op, a, b),
                        (false, true) => products::<Portable, false, true>(acc, out, &op, a, b),
                        (true, false) => products::<Portable, true, false>(acc, out, &op, a, b),
                        (true, true) => products::<Portable, true, true>(acc, out, &op, a, b),
                    }
                }
                for f in [call(x, y), call_256(x, y)] {
                    let mut got = frame;
                    // SAFETY: as above; the frame has both registers.
                    unsafe { f(got.as_mut_ptr().cast(), &raw const op, a[0], a[1], b[0], b[1]) };
                    assert_eq!(got, want, "{x} {y} {:?}", op.steps);
                }
            }
        }
    }
}
