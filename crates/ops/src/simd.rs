//! Run-time choice of the instruction set, without a change of one bit.
//!
//! A [`Kernel`] is written once, generic over how it multiplies and adds, and compiled twice: for the build's own
//! target and, on x86-64, for AVX2 with FMA. The compiler may vectorise across independent output elements only
//! (it never reorders floating-point additions), and both multiply-adds are exact about their number of roundings,
//! so the result does not depend on the choice. `ASSAY_SIMD=portable` forces the plain one.

use std::sync::OnceLock;

use crate::real::Real;

/// How `a * b + c` is rounded.
pub trait MulAdd: Copy {
    /// `a * b + c`.
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T;
}

/// Two roundings.
#[derive(Clone, Copy)]
pub struct Separate;
/// One rounding, by the hardware's instruction.
#[derive(Clone, Copy)]
pub struct Hardware;
/// One rounding, in software.
#[derive(Clone, Copy)]
pub struct Software;

impl MulAdd for Separate {
    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a * b + c
    }
}

impl MulAdd for Hardware {
    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused(b, c)
    }
}

impl MulAdd for Software {
    #[inline(always)]
    fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
        a.fused_portable(b, c)
    }
}

/// A loop nest that is worth compiling per instruction set. `run` must be `#[inline(always)]`.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Runs it.
    fn run<M: MulAdd>(self) -> Self::Output;
}

/// Instruction set in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What the build assumes of every processor.
    Portable,
    /// AVX2 and FMA, found at run time.
    #[cfg(target_arch = "x86_64")]
    Avx2Fma,
}

/// The level chosen for this process.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        if std::env::var_os("ASSAY_SIMD").is_some_and(|v| v == "portable") {
            return Level::Portable;
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Level::Avx2Fma;
        }
        Level::Portable
    })
}

/// Runs a kernel at the process's level, contracted or not.
pub fn dispatch<K: Kernel>(fma: bool, kernel: K) -> K::Output {
    dispatch_at(level(), fma, kernel)
}

/// Runs a kernel at a given level.
pub fn dispatch_at<K: Kernel>(level: Level, fma: bool, kernel: K) -> K::Output {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2Fma => {
            // SAFETY: the level is only chosen where the processor has both features.
            unsafe { if fma { avx2::<K, Hardware>(kernel) } else { avx2::<K, Separate>(kernel) } }
        }
        Level::Portable if !fma => kernel.run::<Separate>(),
        // Where the baseline has the instruction (aarch64) it needs no detection.
        Level::Portable if cfg!(any(target_arch = "aarch64", target_feature = "fma")) => {
            kernel.run::<Hardware>()
        }
        Level::Portable => kernel.run::<Software>(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel, M: MulAdd>(kernel: K) -> K::Output {
    kernel.run::<M>()
}
