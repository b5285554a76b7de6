//! Handlers that work lane by lane from the cold table, the guard, and small ones without operands to vectorise.

use crate::code::{Carry, CarryOp, Cold, Kind, Slot};
use crate::semantics::sext;
use crate::warp::{Decoded, Event, LANES, NEGATED, Warp, next};

/// One lane of a register, as bits.
///
/// # Safety
/// `slot` belongs to the current frame; `lane` is below 32.
#[inline(always)]
pub(crate) unsafe fn get(w: &Warp, slot: Slot, lane: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match slot.kind {
            Kind::W32 => u64::from(*w.r32(slot.at).add(lane)),
            Kind::W64 => *w.r64(slot.at).add(lane),
            Kind::Pred => {
                let p = w.pred(slot.at);
                u64::from((if slot.negated { !p } else { p }) >> lane & 1)
            }
        }
    }
}

/// Writes one lane of a register.
///
/// # Safety
/// As for [`get`].
#[inline(always)]
pub(crate) unsafe fn put(w: &Warp, slot: Slot, lane: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match slot.kind {
            Kind::W32 => *w.r32(slot.at).add(lane) = value as u32,
            Kind::W64 => *w.r64(slot.at).add(lane) = value,
            Kind::Pred => {
                let p = w.r32(slot.at);
                *p = (*p & !(1 << lane)) | ((value as u32 & 1) << lane);
            }
        }
    }
}

/// The cold entry of `d`.
///
/// # Safety
/// `d` belongs to the code whose cold table `w.cold` is.
#[inline(always)]
pub(crate) unsafe fn cold<'c>(w: &Warp, d: &Decoded) -> &'c Cold {
    // SAFETY: the decoder wrote the index; the table outlives the launch.
    unsafe { &*w.cold.add(d.aux as usize) }
}

/// Applies a lane function to the active lanes.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn lane_op(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: slots and cold index are the decoder's.
    unsafe {
        let Cold::Lane(op) = cold(w, d) else { return w.stop(d, Event::Cold) };
        let mut m = w.mask;
        while m != 0 {
            let k = m.trailing_zeros() as usize;
            m &= m - 1;
            let mut v = [0u64; 4];
            for (v, s) in v.iter_mut().zip(&op.sources) {
                *v = get(w, *s, k);
            }
            let r = (op.f)(v);
            if let Some(dest) = op.dest {
                put(w, dest, k, r);
            }
            if let Some(second) = op.second {
                put(w, second, k, r >> 1);
            }
        }
        next(d)
    }
}

/// Extended-precision arithmetic on the carry flag.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn carry_op(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: slots and cold index are the decoder's.
    unsafe {
        let Cold::Carry(c) = cold(w, d) else { return w.stop(d, Event::Cold) };
        let flag = Slot { at: c.flag, kind: Kind::Pred, negated: false };
        for k in 0..LANES {
            if w.mask >> k & 1 == 0 {
                continue;
            }
            let carry = if c.reads { get(w, flag, k) } else { 0 };
            let (r, out) = carry_lane(c, get(w, c.a, k), get(w, c.b, k), get(w, c.c, k), carry);
            if let Some(dest) = c.dest {
                put(w, dest, k, r);
            }
            if c.writes {
                put(w, flag, k, out);
            }
        }
        next(d)
    }
}

/// One lane: the result and the carry (borrow) out.
pub(crate) fn carry_lane(c: &Carry, a: u64, b: u64, add: u64, carry: u64) -> (u64, u64) {
    let bits = c.ty.bits() as u32;
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let wide = |x: u64| u128::from(x & mask);
    let (x, y) = match c.op {
        CarryOp::Add | CarryOp::Sub => (wide(a), wide(b)),
        CarryOp::MadLo | CarryOp::MadHi => {
            let value = |v: u64| {
                if c.ty.is_signed() { i128::from(sext(v, c.ty.bits())) } else { i128::from(v & mask) }
            };
            let p = value(a).wrapping_mul(value(b)) as u128;
            let part = if c.op == CarryOp::MadHi { p >> bits } else { p };
            (wide(part as u64), wide(add))
        }
    };
    if c.op == CarryOp::Sub {
        let r = x.wrapping_sub(y).wrapping_sub(u128::from(carry));
        return (r as u64 & mask, u64::from(r >> bits & 1 != 0));
    }
    let r = x + y + u128::from(carry);
    (r as u64 & mask, u64::from(r >> bits & 1 != 0))
}

/// Runs `g` for the lanes of the guard.
///
/// # Safety
/// As for every handler; `g` never stops for anything but [`Event::Memory`] (the decoder guards everything else
/// by a branch), and the executor restores the mask then.
pub(crate) unsafe fn guarded(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the guard's offset is the decoder's.
    unsafe {
        let p = w.pred(d.guard & !NEGATED);
        let all = w.mask;
        let narrowed = all & if d.guard & NEGATED != 0 { !p } else { p };
        if narrowed == 0 {
            return next(d);
        }
        w.mask = narrowed;
        let to = (d.g)(w, d);
        w.mask = all;
        to
    }
}

/// A store to a global address that the thread has just read (`y[i] += x` without an atomic). In lockstep the warp
/// lets others run in between, as they would on a GPU where all of them read at nearly the same time; unless its
/// lanes go to consecutive addresses, which others hardly share. `g` does the store.
///
/// # Safety
/// As for every handler; the address register is 64 bits wide.
pub(crate) unsafe fn contended(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the decoder's register.
    unsafe {
        if w.interleave && !w.contended && !consecutive(&*w.r64(d.a).cast::<[u64; LANES]>(), w.mask) {
            w.contended = true;
            return w.stop(d, Event::Yield);
        }
        w.contended = false;
        (d.g)(w, d)
    }
}

/// True if the addresses of two or more active lanes rise by one step of at most 16 bytes.
fn consecutive(a: &[u64; LANES], mask: u32) -> bool {
    let mut lanes = (0..LANES).filter(|k| mask >> k & 1 != 0);
    let (Some(first), Some(second)) = (lanes.next(), lanes.next()) else { return false };
    let step = a[second].wrapping_sub(a[first]);
    let even = |k: usize| a[k] == a[first].wrapping_add(step.wrapping_mul((k - first) as u64));
    second == first + 1 && (1..=16).contains(&step) && lanes.all(even)
}

/// Hands the instruction to the executor.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn to_cold(w: &mut Warp, d: &Decoded) -> *const Decoded {
    w.stop(d, Event::Cold)
}

/// Hands a memory access to the executor.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn to_memory(w: &mut Warp, d: &Decoded) -> *const Decoded {
    w.stop(d, Event::Memory)
}

/// Lets other warps run.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn pause(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the decoder puts no such instruction last.
    w.at = unsafe { next(d) };
    w.event = Event::Yield;
    w.paused = true;
    std::ptr::null()
}

/// As [`pause`], unless the predicate `a` holds in all active lanes: behind a test that a loop repeats until it holds.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn pause_unless(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: a predicate of the decoder's; it puts no such instruction last.
    unsafe { if w.mask & !w.pred(d.a) == 0 { next(d) } else { pause(w, d) } }
}

/// Does nothing.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn nothing(_w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the decoder puts no such instruction last.
    unsafe { next(d) }
}

/// `activemask`.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn activemask(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the destination is the decoder's.
    unsafe {
        let dst = w.r32(d.d);
        for k in 0..LANES {
            if w.mask >> k & 1 != 0 {
                *dst.add(k) = w.mask;
            }
        }
        next(d)
    }
}

/// `mov` from a clock: `off` is 0 for the low word, 1 for the high word, 2 for 64 bits, 4 more for nanoseconds.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn clock(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the destination is the decoder's.
    unsafe {
        // Every read is later than the one before: a kernel that waits for time to pass sees it pass.
        w.clock = w.clock.wrapping_add(32);
        let t = w.clock;
        for k in 0..LANES {
            if w.mask >> k & 1 != 0 {
                match d.off & 3 {
                    0 => *w.r32(d.d).add(k) = t as u32,
                    1 => *w.r32(d.d).add(k) = (t >> 32) as u32,
                    _ => *w.r64(d.d).add(k) = t,
                }
            }
        }
        next(d)
    }
}

/// The address of something in the frame's local memory: `off` plus the frame's base.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn local_address(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the destination is the decoder's; `e` says whether it is 64 bits wide.
    unsafe {
        let a = w.local_base.wrapping_add(d.off as u64);
        for k in 0..LANES {
            if w.mask >> k & 1 != 0 {
                if d.e == 0 {
                    *w.r32(d.d).add(k) = a as u32;
                } else {
                    *w.r64(d.d).add(k) = a;
                }
            }
        }
        next(d)
    }
}

macro_rules! predicate_logic {
    ($($name:ident |$a:ident, $b:ident| $e:expr;)*) => {$(
        /// # Safety
        /// As for every handler; bit 0 of `off` negates `a`, bit 1 negates `b`.
        pub(crate) unsafe fn $name(w: &mut Warp, d: &Decoded) -> *const Decoded {
            // SAFETY: predicates at the decoder's offsets.
            unsafe {
                let $a = w.pred(d.a) ^ if d.off & 1 != 0 { u32::MAX } else { 0 };
                let $b = w.pred(d.b) ^ if d.off & 2 != 0 { u32::MAX } else { 0 };
                w.set_pred(d.d, $e);
                next(d)
            }
        }
    )*};
}
predicate_logic! {
    pred_and |a, b| a & b;
    pred_or |a, b| a | b;
    pred_xor |a, b| a ^ b;
    pred_not |a, _b| !a;
    pred_mov |a, _b| a;
}
