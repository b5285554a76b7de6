//! What each opcode computes, as pure functions of bits.
//!
//! [`scalar`] gives the function of one lane for any arithmetic instruction: the reference. The handlers that
//! run all lanes of common instructions at once are checked against it in tests.

pub(crate) mod approx;
pub(crate) mod cvt;
pub(crate) mod float;
pub(crate) mod int;
pub(crate) mod matrix;
pub(crate) mod soft;

use std::sync::Arc;

use assay_ptx::{Instr, Op, Ty};

/// A lane's function: up to four source operands to the result, all as bits in the low part of a `u64`;
/// predicates are 0 or 1. For `setp` with two results bit 1 is the second.
pub(crate) type LaneFn = Arc<dyn Fn([u64; 4]) -> u64 + Send + Sync>;

/// The function of an instruction with the types of its operands.
pub(crate) struct Scalar {
    pub(crate) f: LaneFn,
    /// Type of the result as the function gives it.
    pub(crate) result: Ty,
    /// Types of the sources; their number is the number of source operands.
    pub(crate) sources: Vec<Ty>,
}

impl Scalar {
    pub(crate) fn new(
        result: Ty,
        sources: &[Ty],
        f: impl Fn([u64; 4]) -> u64 + Send + Sync + 'static,
    ) -> Option<Scalar> {
        Some(Scalar { f: Arc::new(f), result, sources: sources.to_vec() })
    }
}

/// The bits of a type's width.
pub(crate) fn mask(ty: Ty) -> u64 {
    match ty.bits() {
        64.. => u64::MAX,
        n => (1 << n) - 1,
    }
}

/// Sign-extends the low `bits` bits.
pub(crate) fn sext(v: u64, bits: u64) -> i64 {
    let up = 64 - bits.clamp(1, 64);
    ((v << up) as i64) >> up
}

/// The value of `v` as an integer of type `ty`.
pub(crate) fn value(v: u64, ty: Ty) -> i128 {
    if ty.is_signed() { i128::from(sext(v, ty.bits())) } else { i128::from(v & mask(ty)) }
}

/// The lane function of an arithmetic, logic, comparison, conversion or selection instruction; `None` for
/// a form that is not implemented.
pub(crate) fn scalar(i: &Instr) -> Option<Scalar> {
    match i.op {
        Op::Cvt => cvt::build(i),
        Op::Mov => {
            let ty = i.ty()?;
            Scalar::new(ty, &[ty], move |[a, ..]| a & mask(ty))
        }
        Op::Selp => {
            let ty = i.ty()?;
            Scalar::new(ty, &[ty, ty, Ty::Pred], |[a, b, p, _]| if p != 0 { a } else { b })
        }
        Op::Slct => {
            let (ty, c) = (i.ty()?, i.src_ty()?);
            let ftz = i.mods.ftz;
            Scalar::new(ty, &[ty, ty, c], move |[a, b, c_bits, _]| {
                let non_negative = if c == Ty::F32 {
                    let x = f32::from_bits(c_bits as u32);
                    let x = if ftz && x.is_subnormal() { 0.0 } else { x };
                    x >= 0.0
                } else {
                    sext(c_bits, 32) >= 0
                };
                if non_negative { a } else { b }
            })
        }
        Op::Set | Op::Setp => float::comparison(i).or_else(|| int::comparison(i)),
        Op::Copysign | Op::Testp | Op::Fma | Op::Ex2 | Op::Lg2 | Op::Sin | Op::Cos | Op::Tanh => {
            float::build(i)
        }
        Op::Rcp | Op::Rsqrt | Op::Sqrt => float::build(i),
        Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Div | Op::Min | Op::Max | Op::Neg | Op::Abs => {
            if i.ty()?.is_float() { float::build(i) } else { int::build(i) }
        }
        _ => int::build(i),
    }
}
