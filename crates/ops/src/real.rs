//! The two floating-point types, with every function that an operator may call.
//!
//! Transcendental functions come from the pure-Rust `libm` crate at a pinned version, never from the host's C
//! library, so that results are the same on every machine. Square root, rounding and fused multiply-add are exact
//! by IEEE 754 and may use the hardware.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

use assay_tensor::{DType, Tensor, TensorError};

/// `f64` or `f32`.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Negative infinity.
    const NEG_INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// Distance from 1 to the next value.
    const EPSILON: Self;

    /// Nearest value.
    fn from_f64(x: f64) -> Self;
    /// Nearest value.
    fn from_i64(x: i64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// True for NaN.
    fn is_nan(self) -> bool;
    /// `self * b + c` with one rounding. Compiles to one instruction where the target has it, and is slow (but
    /// exact) elsewhere.
    fn fused(self, b: Self, c: Self) -> Self;
    /// `self * b + c` with one rounding, in software or by the `libm` crate's own run-time choice.
    fn fused_portable(self, b: Self, c: Self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;
    /// `exp(x) - 1`.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `log(1 + x)`.
    fn log1p(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Power.
    fn pow(self, e: Self) -> Self;
    /// Remainder of the truncated quotient, exact.
    fn fmod(self, y: Self) -> Self;
    /// All elements of a tensor, converted to this type (nearest).
    fn read(t: &Tensor) -> Vec<Self>;
    /// A tensor of these values.
    ///
    /// # Errors
    /// As `Tensor::from_f64`.
    fn write(shape: &[u64], values: &[Self]) -> Result<Tensor, TensorError>;
}

macro_rules! real {
    ($t:ident, $exp:ident $expm1:ident $log:ident $log1p:ident $tanh:ident $erf:ident $pow:ident $fmod:ident $fma:ident, $as_own:ident $from_own:ident, $dtype:ident) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $t::INFINITY;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const NAN: Self = $t::NAN;
            const EPSILON: Self = $t::EPSILON;
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            fn fused_portable(self, b: Self, c: Self) -> Self {
                libm::$fma(self, b, c)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self.floor()
            }
            fn exp(self) -> Self {
                libm::$exp(self)
            }
            fn expm1(self) -> Self {
                libm::$expm1(self)
            }
            fn log(self) -> Self {
                libm::$log(self)
            }
            fn log1p(self) -> Self {
                libm::$log1p(self)
            }
            fn tanh(self) -> Self {
                libm::$tanh(self)
            }
            fn erf(self) -> Self {
                libm::$erf(self)
            }
            fn pow(self, e: Self) -> Self {
                libm::$pow(self, e)
            }
            fn fmod(self, y: Self) -> Self {
                libm::$fmod(self, y)
            }
            fn read(t: &Tensor) -> Vec<Self> {
                match (t.dtype, t.$as_own()) {
                    (DType::$dtype, Some(own)) => own.to_vec(),
                    (DType::F32, _) if t.as_f32().is_some() => {
                        t.as_f32().unwrap_or(&[]).iter().map(|&x| x as $t).collect()
                    }
                    // Bytes that are not aligned for the element type land here too.
                    _ => (0..t.len()).map(|i| t.get_f64(i) as $t).collect(),
                }
            }
            fn write(shape: &[u64], values: &[Self]) -> Result<Tensor, TensorError> {
                Tensor::$from_own(shape, values)
            }
        }
    };
}

real!(f64, exp expm1 log log1p tanh erf pow fmod fma, as_f64 from_f64, F64);
real!(f32, expf expm1f logf log1pf tanhf erff powf fmodf fmaf, as_f32 from_f32, F32);
