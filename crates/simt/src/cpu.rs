//! Which variant of the handlers runs.
//!
//! Every handler exists twice: compiled for AVX2 + FMA + F16C, and for any processor. Both inline the same
//! generic code; the only difference in the source is how a fused multiply-add is written. The choice is made
//! once per process: by the processor, or `ASSAY_SIMD=portable`.

use std::sync::OnceLock;

/// A handler variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// AVX2, FMA, F16C, BMI.
    Wide,
    /// Any processor.
    Portable,
}

/// Compile-time side of [`Variant`].
pub(crate) trait Simd {
    /// Hardware fused multiply-add.
    const FMA: bool;
}

/// [`Variant::Wide`].
pub(crate) struct Wide;
impl Simd for Wide {
    const FMA: bool = true;
}

/// [`Variant::Portable`].
pub(crate) struct Portable;
impl Simd for Portable {
    const FMA: bool = false;
}

/// The variant of this process.
pub(crate) fn variant() -> Variant {
    static CHOICE: OnceLock<Variant> = OnceLock::new();
    *CHOICE.get_or_init(|| {
        if std::env::var_os("ASSAY_SIMD").is_some_and(|v| v == "portable") {
            return Variant::Portable;
        }
        if wide_available() { Variant::Wide } else { Variant::Portable }
    })
}

/// True if the processor has what [`Variant::Wide`] needs.
pub(crate) fn wide_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Fused multiply-add, rounded once.
#[inline(always)]
pub(crate) fn fma32<S: Simd>(a: f32, b: f32, c: f32) -> f32 {
    if S::FMA { a.mul_add(b, c) } else { libm::fmaf(a, b, c) }
}

/// Fused multiply-add, rounded once.
#[inline(always)]
pub(crate) fn fma64<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::FMA { a.mul_add(b, c) } else { libm::fma(a, b, c) }
}
