//! Branches.

use crate::warp::{Decoded, Event, NEGATED, Warp, next};

/// `bra` for all active lanes.
///
/// # Safety
/// As for every handler; `off` leads to an instruction of the same function.
pub(crate) unsafe fn branch(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the decoder's distance stays within the function.
    let target = unsafe { std::ptr::from_ref(d).offset(d.off as isize) };
    w.jump(d, target)
}

/// `@p bra`.
///
/// # Safety
/// As for [`branch`].
pub(crate) unsafe fn branch_if(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the predicate's offset and the distance are the decoder's; a guarded branch is never last.
    unsafe {
        let p = w.pred(d.guard & !NEGATED);
        let taken = w.mask & if d.guard & NEGATED != 0 { !p } else { p };
        if taken == w.mask {
            let target = std::ptr::from_ref(d).offset(d.off as isize);
            return w.jump(d, target);
        }
        if taken == 0 {
            return next(d);
        }
        w.stop(d, Event::Split { taken })
    }
}

/// `bar.sync` of all threads at the barrier `e`.
///
/// # Safety
/// As for every handler.
pub(crate) unsafe fn barrier(w: &mut Warp, d: &Decoded) -> *const Decoded {
    w.stop(d, Event::Barrier)
}
