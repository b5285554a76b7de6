//! Matrix products and `ldmatrix` of a whole warp, without the executor.

use crate::code::{Cold, Collective, Kind, MatrixWork, Slot};
use crate::cpu::{Portable, Simd, Wide};
use crate::handlers::generic::cold;
use crate::lanes::Pair;
use crate::semantics::matrix::{MAX_REGISTERS, Part, Words, lanes_to_rows, rows_to_lanes};
use crate::warp::{Decoded, Event, LANES, Warp, next};

/// A register's lanes.
///
/// # Safety
/// `s` belongs to the current frame and is no predicate.
#[inline(always)]
unsafe fn lanes(w: &Warp, s: Slot) -> [u64; LANES] {
    // SAFETY: the caller's promise.
    unsafe {
        match s.kind {
            Kind::W64 => *w.r64(s.at).cast(),
            Kind::W32 | Kind::Pred => {
                let narrow: [u32; LANES] = *w.r32(s.at).cast();
                narrow.map(u64::from)
            }
        }
    }
}

/// # Safety
/// As for [`lanes`].
#[inline(always)]
unsafe fn set_lanes(w: &Warp, s: Slot, v: &[u64; LANES]) {
    // SAFETY: the caller's promise.
    unsafe {
        match s.kind {
            Kind::W64 => *w.r64(s.at).cast() = *v,
            Kind::W32 | Kind::Pred => *w.r32(s.at).cast() = v.map(|x| x as u32),
        }
    }
}

/// # Safety
/// As for [`lanes`].
#[inline(always)]
unsafe fn words(w: &Warp, part: &Part) -> Words {
    let mut out = [[0; LANES]; MAX_REGISTERS];
    for (o, s) in out.iter_mut().zip(&part.slots) {
        // SAFETY: the caller's promise.
        *o = unsafe { lanes(w, *s) };
    }
    out
}

/// # Safety
/// As for every handler; the cold entry is a warp operation.
#[inline(always)]
unsafe fn product<S: Simd>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: slots and cold index are the decoder's; fragments' registers are 32 or 64 bits wide.
    unsafe {
        let Cold::Warp(op) = cold(w, d) else { return w.stop(d, Event::Cold) };
        let (Collective::Matrix(m), u32::MAX) = (&op.op, w.mask) else { return w.stop(d, Event::Cold) };
        let MatrixWork::Product(p) = &m.work else { return w.stop(d, Event::Cold) };
        let out = p.evaluate::<S>(&words(w, &p.a), &words(w, &p.b), &words(w, &p.c));
        for (s, v) in p.d.slots.iter().zip(&out) {
            set_lanes(w, *s, v);
        }
        next(d)
    }
}

/// # Safety
/// As for every [`crate::warp::Handler`], on a processor for which [`crate::cpu::wide_available`] is true.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
unsafe fn product_wide(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { product::<Wide>(w, d) }
}

/// # Safety
/// As for every [`crate::warp::Handler`].
unsafe fn product_portable(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the same promise.
    unsafe { product::<Portable>(w, d) }
}

/// `mma` and `wmma.mma`.
pub(crate) fn product_pair() -> Pair {
    Pair { wide: product_wide, portable: product_portable }
}

/// `ldmatrix` and `stmatrix` of a whole warp from 32-bit addresses that are all in order; anything else goes to the
/// executor.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn rows(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: slots and cold index are the decoder's; addresses are checked against the block's shared memory.
    unsafe {
        let Cold::Warp(op) = cold(w, d) else { return w.stop(d, Event::Cold) };
        let (Collective::Matrix(m), u32::MAX) = (&op.op, w.mask) else { return w.stop(d, Event::Cold) };
        let MatrixWork::Rows(r) = &m.work else { return w.stop(d, Event::Cold) };
        if r.mem.base.kind != Kind::W32 || r.mem.frame_relative {
            return w.stop(d, Event::Cold);
        }
        let base: [u32; LANES] = *w.r32(r.mem.base.at).cast();
        let mut places = [0usize; LANES];
        for (p, a) in places.iter_mut().zip(base).take(8 * r.slots.len()) {
            let address = u64::from(a).wrapping_add(r.mem.offset as u64) & 0xffff_ffff;
            if address & 15 != 0 || address + 16 > w.shared_len {
                return w.stop(d, Event::Cold);
            }
            *p = address as usize;
        }
        for (j, s) in r.slots.iter().enumerate() {
            let places = &places[8 * j..8 * j + 8];
            if r.mem.kind == crate::code::MemKind::Store {
                let list = lanes_to_rows(&*w.r32(s.at).cast(), r.transpose);
                for (row, p) in list.iter().zip(places) {
                    w.shared.add(*p).cast::<[u16; 8]>().write_unaligned(*row);
                }
            } else {
                let mut list = [[0u16; 8]; 8];
                for (row, p) in list.iter_mut().zip(places) {
                    *row = w.shared.add(*p).cast::<[u16; 8]>().read_unaligned();
                }
                *w.r32(s.at).cast() = rows_to_lanes(&list, r.transpose);
            }
        }
        next(d)
    }
}
