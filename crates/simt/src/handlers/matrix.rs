//! Matrix products and loads and stores of fragments by a whole warp, without the executor.

use assay_ptx::Space;

use crate::code::{Cold, Collective, Kind, MatrixWork, MemKind, Slot};
use crate::cpu::{Portable, Simd, Wide};
use crate::handlers::generic::{cold, get};
use crate::lanes::Pair;
use crate::memory::{OFFSET_BITS, OFFSET_MASK, SHARED_WINDOW};
use crate::semantics::matrix::{MAX_REGISTERS, Part, Words, lanes_to_rows, rows_to_lanes, unit_bits};
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
            if r.mem.kind == MemKind::Store {
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

/// The pointer to `len` bytes at `address`, null if they are not all there in one piece.
///
/// # Safety
/// As for every handler.
unsafe fn window(w: &Warp, space: Option<Space>, address: u64, len: u64, store: bool) -> *mut u8 {
    let shared = match space {
        Some(Space::Shared) => Some(address & 0xffff_ffff),
        None if address & !OFFSET_MASK == SHARED_WINDOW => Some(address & OFFSET_MASK),
        _ => None,
    };
    // SAFETY: offsets are compared with the lengths beside the pointers.
    unsafe {
        if let Some(offset) = shared {
            return if offset + len <= w.shared_len {
                w.shared.add(offset as usize)
            } else {
                std::ptr::null_mut()
            };
        }
        let (region, offset) = (address >> OFFSET_BITS, address & OFFSET_MASK);
        if !matches!(space, None | Some(Space::Global)) || region >= w.table_len {
            return std::ptr::null_mut();
        }
        let e = &*w.table.add(region as usize);
        let limit = if store { e.write_len } else { e.read_len };
        if offset + len <= limit { e.base.add(offset as usize) } else { std::ptr::null_mut() }
    }
}

/// Most bytes of a `wmma` matrix in memory: 32 by 16 halves, 16 by 16 words.
const TILE_BYTES: usize = 1024;

/// `wmma.load` and `wmma.store` of a whole warp in memory that is all there; anything else goes to the executor.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn tile(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: slots and cold index are the decoder's; `window` has checked every line.
    unsafe {
        let Cold::Warp(op) = cold(w, d) else { return w.stop(d, Event::Cold) };
        let (Collective::Matrix(m), u32::MAX) = (&op.op, w.mask) else { return w.stop(d, Event::Cold) };
        let MatrixWork::Tile(t) = &m.work else { return w.stop(d, Event::Cold) };
        let size = (unit_bits(t.part.ty) / 8) as usize;
        if size == 0 || t.mem.frame_relative || t.part.rows * t.part.cols * size > TILE_BYTES {
            return w.stop(d, Event::Cold);
        }
        let (lines, length) =
            if t.by_column { (t.part.cols, t.part.rows) } else { (t.part.rows, t.part.cols) };
        let line = length * size;
        // Lane 0's pointer and stride, as in the executor; 32 bits of stride and a few lines do not overflow.
        let base = get(w, t.mem.base, 0).wrapping_add(t.mem.offset as u64);
        let step = (get(w, t.stride, 0) & 0xffff_ffff) * t.part.ty.bits() / 8;
        let span = step * (lines as u64 - 1) + line as u64;
        let store = t.mem.kind == MemKind::Store;
        let from = window(w, t.mem.space, base, span, store);
        if from.is_null() || (base | step) & 15 != 0 {
            return w.stop(d, Event::Cold);
        }
        let mut bytes = [0u8; TILE_BYTES];
        if store {
            let words = words(w, &t.part);
            match size {
                1 => t.scatter::<1>(&words, &mut bytes),
                2 => t.scatter::<2>(&words, &mut bytes),
                4 => t.scatter::<4>(&words, &mut bytes),
                _ => t.scatter::<8>(&words, &mut bytes),
            }
        }
        for l in 0..lines {
            let (memory, own) = (from.add(l * step as usize), bytes.as_mut_ptr().add(l * line));
            if store {
                std::ptr::copy_nonoverlapping(own, memory, line);
            } else {
                std::ptr::copy_nonoverlapping(memory, own, line);
            }
        }
        if !store {
            let words = match size {
                1 => t.gather::<1>(&bytes),
                2 => t.gather::<2>(&bytes),
                4 => t.gather::<4>(&bytes),
                _ => t.gather::<8>(&bytes),
            };
            for (s, v) in t.part.slots.iter().zip(&words) {
                set_lanes(w, *s, v);
            }
        }
        next(d)
    }
}
