//! Lane-wise handlers, generic over the operation.
//!
//! An operation is a type with a pure function of its operands' bits; [`op1!`], [`op2!`], [`op3!`], [`cmp2!`]
//! make one from a closure. The generic code computes all 32 lanes (operations never fault, so what inactive
//! lanes give is harmless) in chunks that the compiler vectorises, and stores them all under a full mask or
//! blends them under a partial one.

use crate::cpu::{Portable, Simd, Variant, Wide};
use crate::warp::{Decoded, Handler, LANES, Warp, next};

/// A lane's type in a register: `u32` or `u64`.
pub(crate) trait Lane: Copy + Default + 'static {
    /// All bits set, or none.
    fn all(set: bool) -> Self;
    /// The highest bit of each lane, below those of `mask`.
    fn bits<S: Simd>(mask: u32, lanes: &[Self; 8]) -> u32;
    /// `new` in the lanes whose bits in `mask` are set, `old` in the others.
    fn blend<S: Simd>(old: &[Self; 8], new: &[Self; 8], mask: u32) -> [Self; 8];
}

impl Lane for u32 {
    #[inline(always)]
    fn all(set: bool) -> u32 {
        if set { u32::MAX } else { 0 }
    }

    #[inline(always)]
    fn bits<S: Simd>(mask: u32, lanes: &[u32; 8]) -> u32 {
        mask << 8 | S::high_bits32(lanes)
    }

    #[inline(always)]
    fn blend<S: Simd>(old: &[u32; 8], new: &[u32; 8], mask: u32) -> [u32; 8] {
        S::blend32(old, new, mask)
    }
}

impl Lane for u64 {
    #[inline(always)]
    fn all(set: bool) -> u64 {
        if set { u64::MAX } else { 0 }
    }

    #[inline(always)]
    fn bits<S: Simd>(mask: u32, lanes: &[u64; 8]) -> u32 {
        let [a, b, c, d, e, f, g, h] = *lanes;
        let mask = mask << 4 | S::high_bits64(&[e, f, g, h]);
        mask << 4 | S::high_bits64(&[a, b, c, d])
    }

    #[inline(always)]
    fn blend<S: Simd>(old: &[u64; 8], new: &[u64; 8], mask: u32) -> [u64; 8] {
        let half = |v: &[u64; 8], h: usize| -> [u64; 4] { std::array::from_fn(|k| v[4 * h + k]) };
        let [a, b, c, d] = S::blend64(&half(old, 0), &half(new, 0), mask);
        let [e, f, g, h] = S::blend64(&half(old, 1), &half(new, 1), mask >> 4);
        [a, b, c, d, e, f, g, h]
    }
}

/// Lanes handled together: a chunk is read whole before it is written, since a destination may be a source.
const CHUNK: usize = 16;

/// The two variants of one handler.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) wide: Handler,
    pub(crate) portable: Handler,
}

impl Pair {
    pub(crate) fn pick(self, variant: Variant) -> Handler {
        match variant {
            Variant::Wide => self.wide,
            Variant::Portable => self.portable,
        }
    }
}

/// A function of one operand.
pub(crate) trait Unary: 'static {
    type A: Lane;
    type R: Lane;
    fn eval<S: Simd>(a: Self::A) -> Self::R;
}

/// A function of two operands.
pub(crate) trait Binary: 'static {
    type A: Lane;
    type B: Lane;
    type R: Lane;
    fn eval<S: Simd>(a: Self::A, b: Self::B) -> Self::R;
}

/// A function of three operands.
pub(crate) trait Ternary: 'static {
    type A: Lane;
    type B: Lane;
    type C: Lane;
    type R: Lane;
    fn eval<S: Simd>(a: Self::A, b: Self::B, c: Self::C) -> Self::R;
}

/// A predicate of two operands.
pub(crate) trait Compare: 'static {
    type A: Lane;
    fn eval<S: Simd>(a: Self::A, b: Self::A) -> bool;
}

/// Stores lanes `8 * j` to `8 * j + 7`, of which `mask` has some.
///
/// # Safety
/// `d` is a register of the current frame, `j` below 4.
#[inline(always)]
pub(crate) unsafe fn blend<S: Simd, T: Lane>(d: *mut T, j: usize, value: &[T; 8], mask: u32) {
    // SAFETY: a register has 32 lanes.
    unsafe {
        let at: *mut [T; 8] = d.add(8 * j).cast();
        *at = T::blend::<S>(&*at, value, mask >> (8 * j));
    }
}

/// Reads eight lanes.
///
/// # Safety
/// As for [`blend`].
#[inline(always)]
pub(crate) unsafe fn eight<T: Lane>(p: *const T, j: usize) -> [T; 8] {
    // SAFETY: the lanes lie within the register.
    unsafe { *p.add(8 * j).cast() }
}

/// Reads a chunk.
///
/// # Safety
/// `p` is a register and `j * CHUNK` below 32.
#[inline(always)]
unsafe fn chunk<T: Lane>(p: *const T, j: usize) -> [T; CHUNK] {
    // SAFETY: the chunk lies within the 32 lanes; registers are aligned to 64 bytes.
    unsafe { *p.add(j * CHUNK).cast() }
}

/// # Safety
/// As for every [`Handler`].
#[inline(always)]
unsafe fn unary<S: Simd, O: Unary>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: offsets are the decoder's, with the widths of `O`.
    unsafe {
        let a: *const O::A = w.regs.add(d.a as usize).cast();
        let dst: *mut O::R = w.regs.add(d.d as usize).cast();
        if w.mask == u32::MAX {
            for j in 0..LANES / CHUNK {
                let x = chunk(a, j);
                let mut r = [O::R::default(); CHUNK];
                for k in 0..CHUNK {
                    r[k] = O::eval::<S>(x[k]);
                }
                *dst.add(j * CHUNK).cast() = r;
            }
        } else {
            for j in 0..LANES / 8 {
                let r = eight(a, j).map(|x| O::eval::<S>(x));
                blend::<S, _>(dst, j, &r, w.mask);
            }
        }
        next(d)
    }
}

/// # Safety
/// As for every [`Handler`].
#[inline(always)]
unsafe fn binary<S: Simd, O: Binary>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: as in `unary`.
    unsafe {
        let a: *const O::A = w.regs.add(d.a as usize).cast();
        let b: *const O::B = w.regs.add(d.b as usize).cast();
        let dst: *mut O::R = w.regs.add(d.d as usize).cast();
        if w.mask == u32::MAX {
            for j in 0..LANES / CHUNK {
                let (x, y) = (chunk(a, j), chunk(b, j));
                let mut r = [O::R::default(); CHUNK];
                for k in 0..CHUNK {
                    r[k] = O::eval::<S>(x[k], y[k]);
                }
                *dst.add(j * CHUNK).cast() = r;
            }
        } else {
            for j in 0..LANES / 8 {
                let (x, y) = (eight(a, j), eight(b, j));
                let mut r = [O::R::default(); 8];
                for k in 0..8 {
                    r[k] = O::eval::<S>(x[k], y[k]);
                }
                blend::<S, _>(dst, j, &r, w.mask);
            }
        }
        next(d)
    }
}

/// # Safety
/// As for every [`Handler`].
#[inline(always)]
unsafe fn ternary<S: Simd, O: Ternary>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: as in `unary`.
    unsafe {
        let a: *const O::A = w.regs.add(d.a as usize).cast();
        let b: *const O::B = w.regs.add(d.b as usize).cast();
        let c: *const O::C = w.regs.add(d.c as usize).cast();
        let dst: *mut O::R = w.regs.add(d.d as usize).cast();
        if w.mask == u32::MAX {
            for j in 0..LANES / CHUNK {
                let (x, y, z) = (chunk(a, j), chunk(b, j), chunk(c, j));
                let mut r = [O::R::default(); CHUNK];
                for k in 0..CHUNK {
                    r[k] = O::eval::<S>(x[k], y[k], z[k]);
                }
                *dst.add(j * CHUNK).cast() = r;
            }
        } else {
            for j in 0..LANES / 8 {
                let (x, y, z) = (eight(a, j), eight(b, j), eight(c, j));
                let mut r = [O::R::default(); 8];
                for k in 0..8 {
                    r[k] = O::eval::<S>(x[k], y[k], z[k]);
                }
                blend::<S, _>(dst, j, &r, w.mask);
            }
        }
        next(d)
    }
}

/// Bits of the lanes for which `O` holds.
///
/// # Safety
/// `a` and `b` are registers of `O`'s width.
#[inline(always)]
unsafe fn compare_mask<S: Simd, O: Compare>(a: *const O::A, b: *const O::A) -> u32 {
    let mut mask = 0;
    // The last lanes first: a chain of shifts, which the compiler leaves in scalar registers.
    for j in (0..LANES / 8).rev() {
        // All ones or zeros, in the operands' width, which vectorises without conversions.
        let mut ones = [O::A::default(); 8];
        for (k, one) in ones.iter_mut().enumerate() {
            // SAFETY: registers have 32 lanes.
            *one = O::A::all(unsafe { O::eval::<S>(*a.add(8 * j + k), *b.add(8 * j + k)) });
        }
        mask = O::A::bits::<S>(mask, &ones);
    }
    mask
}

/// `setp`: `d` gets the comparison, `e` its complement if it is not 0. (Offset 0 is never a predicate.)
///
/// # Safety
/// As for every [`Handler`].
#[inline(always)]
unsafe fn compare<S: Simd, O: Compare>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: as in `unary`.
    unsafe {
        let m = compare_mask::<S, O>(w.regs.add(d.a as usize).cast(), w.regs.add(d.b as usize).cast());
        w.set_pred(d.d, m);
        if d.e != 0 {
            w.set_pred(d.e, !m);
        }
        next(d)
    }
}

/// `selp`: `a` where the predicate `c` holds (bit 0 of `off`: does not hold), else `b`.
///
/// # Safety
/// As for every [`Handler`].
#[inline(always)]
unsafe fn select<S: Simd, T: Lane>(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: registers of `T`'s width and a predicate, at the decoder's offsets.
    unsafe {
        let p = w.pred(d.c) ^ if d.off & 1 != 0 { u32::MAX } else { 0 };
        let a: *const T = w.regs.add(d.a as usize).cast();
        let b: *const T = w.regs.add(d.b as usize).cast();
        let dst: *mut T = w.regs.add(d.d as usize).cast();
        for j in 0..LANES / 8 {
            let r = T::blend::<S>(&eight(b, j), &eight(a, j), p >> (8 * j));
            if w.mask == u32::MAX {
                *dst.add(8 * j).cast() = r;
            } else {
                blend::<S, _>(dst, j, &r, w.mask);
            }
        }
        next(d)
    }
}

macro_rules! variants {
    ($($make:ident $inner:ident $wide:ident $portable:ident $bound:ident;)*) => {$(
        /// # Safety
        /// As for every [`Handler`], on a processor for which [`crate::cpu::wide_available`] is true.
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"))]
        unsafe fn $wide<O: $bound>(w: &mut Warp, d: &Decoded) -> *const Decoded {
            // SAFETY: the same promise.
            unsafe { $inner::<Wide, O>(w, d) }
        }

        /// # Safety
        /// As for every [`Handler`].
        unsafe fn $portable<O: $bound>(w: &mut Warp, d: &Decoded) -> *const Decoded {
            // SAFETY: the same promise.
            unsafe { $inner::<Portable, O>(w, d) }
        }

        /// Both variants for one operation.
        pub(crate) fn $make<O: $bound>() -> Pair {
            Pair { wide: $wide::<O>, portable: $portable::<O> }
        }
    )*};
}
variants! {
    unary_pair unary unary_wide unary_portable Unary;
    binary_pair binary binary_wide binary_portable Binary;
    ternary_pair ternary ternary_wide ternary_portable Ternary;
    compare_pair compare compare_wide compare_portable Compare;
    select_pair select select_wide select_portable Lane;
}

/// `op1!(S, |a: u32| -> u32 { … })`: a [`Pair`].
macro_rules! op1 {
    ($S:ident, |$a:ident: $A:ty| -> $R:ty $body:block) => {{
        struct O;
        impl $crate::lanes::Unary for O {
            type A = $A;
            type R = $R;
            #[inline(always)]
            fn eval<$S: $crate::cpu::Simd>($a: $A) -> $R $body
        }
        $crate::lanes::unary_pair::<O>()
    }};
}

/// `op2!(S, |a: u32, b: u32| -> u32 { … })`: a [`Pair`].
macro_rules! op2 {
    ($S:ident, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {{
        struct O;
        impl $crate::lanes::Binary for O {
            type A = $A;
            type B = $B;
            type R = $R;
            #[inline(always)]
            fn eval<$S: $crate::cpu::Simd>($a: $A, $b: $B) -> $R $body
        }
        $crate::lanes::binary_pair::<O>()
    }};
}

/// `op3!(S, |a: u32, b: u32, c: u32| -> u32 { … })`: a [`Pair`].
macro_rules! op3 {
    ($S:ident, |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty $body:block) => {{
        struct O;
        impl $crate::lanes::Ternary for O {
            type A = $A;
            type B = $B;
            type C = $C;
            type R = $R;
            #[inline(always)]
            fn eval<$S: $crate::cpu::Simd>($a: $A, $b: $B, $c: $C) -> $R $body
        }
        $crate::lanes::ternary_pair::<O>()
    }};
}

/// `cmp2!(|a: u32, b: u32| { … })`: a [`Pair`] that writes predicates.
macro_rules! cmp2 {
    (|$a:ident: $A:ty, $b:ident| $body:block) => {{
        struct O;
        impl $crate::lanes::Compare for O {
            type A = $A;
            #[inline(always)]
            fn eval<S: $crate::cpu::Simd>($a: $A, $b: $A) -> bool $body
        }
        $crate::lanes::compare_pair::<O>()
    }};
}
pub(crate) use {cmp2, op1, op2, op3};
