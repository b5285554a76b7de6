//! The state that one warp's instructions see, and the loop that runs them.
//!
//! A register is an array of 32 lanes in the *frame* of a function call: `[u32; 32]` for everything up to
//! 32 bits (8- and 16-bit values zero-extended), `[u64; 32]` for 64 bits. A predicate is one word, a bit per
//! lane. Constants are registers that nothing writes. An instruction is a [`Decoded`] with a function pointer;
//! the loop calls it and goes where it says, until one returns null and leaves an [`Event`].
//!
//! Safety rests on two invariants. Every byte offset in a `Decoded` was made by the decoder from the layout of
//! the frame that is current when the instruction runs, so it lies within it; and every access to memory is
//! checked against the table entry, the shared or the local length before a pointer is formed.

use crate::code::Cold;
use crate::cpu::{Simd, Wide};
use crate::jit::Compiled;
use crate::memory::TableEntry;
use crate::sanitize::shadow::View;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;
/// Bytes of a 32-bit register.
pub(crate) const SLOT: u32 = 128;

/// An instruction's code: gives the next instruction, or null after setting [`Warp::event`].
///
/// # Safety
/// The caller guarantees the module's invariants: the instruction belongs to the code of the current frame.
pub(crate) type Handler = unsafe fn(&mut Warp, &Decoded) -> *const Decoded;

/// A decoded instruction. Operands are byte offsets in the frame.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Decoded {
    /// What to call.
    pub(crate) f: Handler,
    /// Under a guard: what to call with the narrowed mask.
    pub(crate) g: Handler,
    /// Destination.
    pub(crate) d: u32,
    /// First source.
    pub(crate) a: u32,
    /// Second source.
    pub(crate) b: u32,
    /// Third source.
    pub(crate) c: u32,
    /// Fourth operand.
    pub(crate) e: u32,
    /// Predicate of the guard, with [`NEGATED`].
    pub(crate) guard: u32,
    /// Address offset, branch distance in instructions, or other constant.
    pub(crate) off: i64,
    /// Where the address class is kept.
    pub(crate) class: u32,
    /// Index into the cold table.
    pub(crate) aux: u32,
}

/// In [`Decoded::guard`]: the predicate is negated.
pub(crate) const NEGATED: u32 = 1 << 31;

/// Why the loop stopped. The instruction is at [`Warp::at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing happened (never seen outside the loop).
    None,
    /// Fuel is out, or the schedule wants another warp here; `at` has not run yet.
    Yield,
    /// A branch split the mask: `taken` goes to `at + off`, the rest of the mask behind `at`.
    Split {
        /// Lanes that take the branch.
        taken: u32,
    },
    /// The running fragment reached the instruction of another one, or passed it; `at` has not run yet.
    Join,
    /// A memory access that the fast paths cannot do, or that a detector wants to see.
    Memory,
    /// `bar.sync` for the whole block, which does nothing else; its number is in `e`.
    Barrier,
    /// Anything the cold table describes: barriers, warp operations, calls, exits, traps.
    Cold,
}

/// Address class of a register, as of the last classification: lanes 0–15 and 16–31 each either share one
/// address or are consecutive elements.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Class {
    /// 0: neither; 1: consecutive; 2: uniform.
    pub(crate) kind: u32,
    /// [`Warp::generation`] at the classification.
    pub(crate) generation: u32,
    /// Address of lane 0.
    pub(crate) low: u64,
    /// Address of lane 16.
    pub(crate) high: u64,
    /// How far the next access is likely to be from here.
    pub(crate) ahead: u64,
}

/// What handlers see.
#[repr(C)]
pub(crate) struct Warp {
    /// The current frame.
    pub(crate) regs: *mut u8,
    /// Active lanes.
    pub(crate) mask: u32,
    /// What was last done to shared memory since a barrier, for the lockstep schedule.
    pub(crate) phase: Phase,
    /// Shared memory of the block.
    pub(crate) shared: *mut u8,
    /// Its length in bytes.
    pub(crate) shared_len: u64,
    /// Regions of global memory.
    pub(crate) table: *const TableEntry,
    /// Their number.
    pub(crate) table_len: u64,
    /// Local memory of the warp: word `w` of lane `k` is at `(32 * w + k) * 4`.
    pub(crate) local: *mut u8,
    /// Bytes of local memory per thread.
    pub(crate) local_len: u64,
    /// First byte of the current frame's local memory, added to frame-relative addresses.
    pub(crate) local_base: u64,
    /// Kernel parameters.
    pub(crate) params: *const u8,
    /// Their length.
    pub(crate) params_len: u64,
    /// Instructions left in this turn.
    pub(crate) fuel: i64,
    /// First instruction of the straight run that is not yet counted.
    pub(crate) mark: *const Decoded,
    /// Instruction at which the event happened.
    pub(crate) at: *const Decoded,
    /// The nearest instruction of another fragment with the same frame, or null. The loop stops there.
    pub(crate) join: *const Decoded,
    /// The event.
    pub(crate) event: Event,
    /// Virtual time of the block, for `%clock`.
    pub(crate) clock: u64,
    /// The warp stopped between reading and writing a place that others may write too.
    pub(crate) contended: bool,
    /// The turn ended at a pause: the fragment that runs waits for another one.
    pub(crate) paused: bool,
    /// Changes whenever the running fragment or its mask does; never 0.
    pub(crate) generation: u32,
    /// The detectors' view, under detectors.
    pub(crate) view: *const View,
    /// First instruction of the current function, and the number of its first instruction in the kernel.
    pub(crate) code: *const Decoded,
    pub(crate) first_site: u32,
    /// Number of the warp's first thread in the block.
    pub(crate) first_thread: u32,
    /// Cold table of the current function.
    pub(crate) cold: *const Cold,
    /// Let others run between a read and a write of one global address.
    pub(crate) interleave: bool,
    /// Stop between loads and stores of shared memory, so that warps go through them in lockstep.
    pub(crate) lockstep: bool,
    /// Compiled code of the entry, where it runs.
    pub(crate) jit: *const Compiled,
    /// The entry of compiled code at which the frame is as compiled code left it, or null.
    pub(crate) expect: *const Decoded,
    /// How well each entry has done in this launch, see [`crate::jit`].
    pub(crate) credit: *mut i32,
    /// Host addresses of compiled code's last global loads, and of those a turn before.
    pub(crate) loaded: [u64; AHEAD],
    pub(crate) earlier: [u64; AHEAD],
}

/// Places of compiled code whose next loads are asked for ahead of time.
pub(crate) const AHEAD: usize = 8;

/// See [`Warp::phase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Nothing yet.
    Fresh,
    /// Loads.
    Loads,
    /// Stores.
    Stores,
}

impl Warp {
    /// A warp with nothing in it.
    pub(crate) fn empty() -> Warp {
        Warp {
            regs: std::ptr::null_mut(),
            mask: 0,
            phase: Phase::Fresh,
            shared: std::ptr::null_mut(),
            shared_len: 0,
            table: std::ptr::null(),
            table_len: 0,
            local: std::ptr::null_mut(),
            local_len: 0,
            local_base: 0,
            params: std::ptr::null(),
            params_len: 0,
            fuel: 0,
            mark: std::ptr::null(),
            at: std::ptr::null(),
            join: std::ptr::null(),
            event: Event::None,
            clock: 0,
            contended: false,
            paused: false,
            generation: 1,
            view: std::ptr::null(),
            code: std::ptr::null(),
            first_site: 0,
            first_thread: 0,
            cold: std::ptr::null(),
            interleave: false,
            lockstep: false,
            jit: std::ptr::null(),
            expect: std::ptr::null(),
            credit: std::ptr::null_mut(),
            loaded: [0; AHEAD],
            earlier: [0; AHEAD],
        }
    }

    /// The 32-bit register at `offset`.
    ///
    /// # Safety
    /// `offset` comes from the decoder of the current frame's function.
    #[inline(always)]
    pub(crate) unsafe fn r32(&self, offset: u32) -> *mut u32 {
        // SAFETY: offsets of the decoder lie within the frame.
        unsafe { self.regs.add(offset as usize).cast() }
    }

    /// The 64-bit register at `offset`.
    ///
    /// # Safety
    /// As for [`Warp::r32`].
    #[inline(always)]
    pub(crate) unsafe fn r64(&self, offset: u32) -> *mut u64 {
        // SAFETY: as above.
        unsafe { self.regs.add(offset as usize).cast() }
    }

    /// The predicate at `offset`.
    ///
    /// # Safety
    /// As for [`Warp::r32`].
    #[inline(always)]
    pub(crate) unsafe fn pred(&self, offset: u32) -> u32 {
        // SAFETY: as above.
        unsafe { *self.r32(offset) }
    }

    /// Writes the active lanes of the predicate at `offset`.
    ///
    /// # Safety
    /// As for [`Warp::r32`].
    #[inline(always)]
    pub(crate) unsafe fn set_pred(&mut self, offset: u32, value: u32) {
        // SAFETY: as above.
        unsafe {
            let p = self.r32(offset);
            *p = (*p & !self.mask) | (value & self.mask);
        }
    }

    /// Stops the loop at `d`.
    #[inline(always)]
    pub(crate) fn stop(&mut self, d: &Decoded, event: Event) -> *const Decoded {
        self.event = event;
        self.at = d;
        std::ptr::null()
    }

    /// Counts the straight run that ends with `d` (which is included).
    #[inline(always)]
    pub(crate) fn count_through(&mut self, d: &Decoded) {
        let n = (std::ptr::from_ref(d) as usize).wrapping_sub(self.mark as usize) / size_of::<Decoded>();
        self.fuel -= n as i64 + 1;
    }

    /// Asks for what the next turn's loads of compiled code are likely to read: as far on as the last were from those
    /// before. `sites` is at most [`AHEAD`].
    #[inline(always)]
    pub(crate) fn prefetch(&mut self, sites: u32) {
        for k in 0..(sites as usize).min(AHEAD) {
            let (now, before) = (self.loaded[k], self.earlier[k]);
            self.earlier[k] = now;
            Wide::prefetch(now.wrapping_add(now.wrapping_sub(before)) as *const u8);
        }
    }

    /// Jumps from `d` to `target` (both of one function), counting; a backward jump may end the turn.
    #[inline(always)]
    pub(crate) fn jump(&mut self, d: &Decoded, target: *const Decoded) -> *const Decoded {
        self.count_through(d);
        self.mark = target;
        if self.fuel <= 0 && target <= std::ptr::from_ref(d) {
            self.event = Event::Yield;
            self.at = target;
            return std::ptr::null();
        }
        target
    }
}

/// The instruction behind `d`.
///
/// # Safety
/// `d` is not the last instruction of its function (those do not fall through: the parser guarantees it).
#[inline(always)]
pub(crate) unsafe fn next(d: &Decoded) -> *const Decoded {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::from_ref(d).add(1) }
}

/// Runs `w` from `pc` until an event. On return `w.at` is where it happened and the instructions before it are
/// counted; `at` itself is counted by whoever executes it.
///
/// # Safety
/// `pc` is an instruction of the function whose frame is current, and the pointers in `w` are valid for the
/// lengths beside them.
pub(crate) unsafe fn run(w: &mut Warp, pc: *const Decoded) -> Event {
    let mut pc = pc;
    w.mark = pc;
    if w.join.is_null() {
        loop {
            // SAFETY: `pc` is an instruction of the current function: the caller's promise at first, the
            // handlers' afterwards.
            let d = unsafe { &*pc };
            // SAFETY: as above.
            pc = unsafe { (d.f)(w, d) };
            if pc.is_null() {
                break;
            }
        }
    } else {
        let join = w.join;
        loop {
            // SAFETY: as above.
            let d = unsafe { &*pc };
            // SAFETY: as above.
            let to = unsafe { (d.f)(w, d) };
            if to.is_null() {
                break;
            }
            // At the other fragment's instruction, or past it: time to merge or to let it catch up.
            if to >= join && pc < join {
                w.event = Event::Join;
                w.at = to;
                if w.mark != to {
                    w.count_through(d);
                }
                w.mark = to;
                return Event::Join;
            }
            pc = to;
        }
    }
    if w.at != w.mark && w.at > w.mark {
        // SAFETY: `at` is behind `mark` in the same function, so there is an instruction before it.
        let last = unsafe { &*w.at.sub(1) };
        w.count_through(last);
    }
    w.mark = w.at;
    w.event
}
