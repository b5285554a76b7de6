//! Which legitimate way of computing is meant: precision, accumulation order, contraction, algorithms.
//!
//! Floating-point addition is not associative, so a kernel that adds in another order than the reference is not
//! wrong. The *legitimate-variance ensemble* is a set of such ways; the spread of their results says which
//! tolerance an input supports. *Held-out* ways are never used for that, only to count false kills.

use std::fmt;
use std::str::FromStr;

/// Precision of every intermediate and of floating-point outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// Everything in float64, inputs up-cast: the truth.
    F64,
    /// Everything in float32, as PyTorch evaluates a float32 model.
    F32,
}

/// Order in which the terms of a reduction are added. Reductions are sums, products, means, moments, matrix
/// products, convolutions and normalisations; `K` is the number of terms of one output element.
///
/// A scan (`cumsum`, `cumprod`) has no free choice of the whole order; what each order means there is documented
/// in `kernels::scan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// `((t0 + t1) + t2) + …`
    Sequential,
    /// `((t[K-1] + t[K-2]) + …) + t0`
    Reversed,
    /// Runs of 8 consecutive terms added sequentially, their sums combined in a balanced binary tree.
    Pairwise,
    /// Runs of `n` consecutive terms added sequentially, their sums added sequentially.
    Blocked(u32),
    /// `n` equal consecutive parts, each added sequentially, their sums added sequentially (a split-K kernel).
    SplitK(u32),
    /// `n` interleaved accumulators (term `i` goes to accumulator `i mod n`), combined in a balanced binary tree:
    /// what the threads of a block or the lanes of a vector do.
    Interleaved(u32),
}

/// How softmax finds its maximum and its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Softmax {
    /// The maximum first, then the sum of exponentials.
    TwoPass,
    /// Both in one pass, the sum rescaled whenever the maximum grows (Milakov and Gimelshein 2018).
    Online,
}

/// How variances are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variance {
    /// The mean first, then the sum of squared differences.
    TwoPass,
    /// Welford's update, partial results merged by Chan's formula.
    Welford,
}

/// One legitimate way of evaluating a reference.
///
/// Its name (Display and FromStr round trip) is `PRECISION-ORDER[-fma][-online][-welford]`, as in `f32-blk128-fma`;
/// names are stable and stored in run files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// Precision of intermediates and outputs.
    pub precision: Precision,
    /// Order of additions.
    pub sum: Order,
    /// True where `a * b + c` is contracted to one rounding.
    pub fma: bool,
    /// Softmax algorithm.
    pub softmax: Softmax,
    /// Variance algorithm.
    pub variance: Variance,
}

const fn f32_variant(sum: Order, fma: bool, softmax: Softmax, variance: Variance) -> Variant {
    Variant { precision: Precision::F32, sum, fma, softmax, variance }
}

const ENSEMBLE: [Variant; 8] = [
    f32_variant(Order::Sequential, false, Softmax::TwoPass, Variance::TwoPass),
    f32_variant(Order::Sequential, true, Softmax::Online, Variance::Welford),
    f32_variant(Order::Reversed, true, Softmax::TwoPass, Variance::TwoPass),
    f32_variant(Order::Pairwise, true, Softmax::TwoPass, Variance::TwoPass),
    f32_variant(Order::Blocked(16), false, Softmax::Online, Variance::TwoPass),
    f32_variant(Order::Blocked(128), true, Softmax::TwoPass, Variance::Welford),
    f32_variant(Order::SplitK(4), true, Softmax::Online, Variance::Welford),
    f32_variant(Order::Interleaved(256), true, Softmax::TwoPass, Variance::TwoPass),
];

const HELD_OUT: [Variant; 4] = [
    f32_variant(Order::Reversed, false, Softmax::Online, Variance::Welford),
    f32_variant(Order::Blocked(32), true, Softmax::TwoPass, Variance::TwoPass),
    f32_variant(Order::SplitK(7), false, Softmax::TwoPass, Variance::Welford),
    f32_variant(Order::Interleaved(32), true, Softmax::Online, Variance::TwoPass),
];

impl Variant {
    /// The truth: float64 throughout, pairwise sums, so that its own error is far below every tolerance in use.
    pub const fn truth() -> Variant {
        Variant {
            precision: Precision::F64,
            sum: Order::Pairwise,
            fma: true,
            softmax: Softmax::TwoPass,
            variance: Variance::TwoPass,
        }
    }

    /// What the benchmark's own check compares with: float32 with pairwise sums and contraction, which is how
    /// PyTorch sums (cascades over vector lanes) and what its matrix libraries come close to.
    pub const fn official() -> Variant {
        f32_variant(Order::Pairwise, true, Softmax::TwoPass, Variance::TwoPass)
    }

    /// The legitimate-variance ensemble that decides validity. [`Variant::official`] is a member.
    pub const fn ensemble() -> &'static [Variant] {
        &ENSEMBLE
    }

    /// Ways that the ensemble does not use; correct implementations for counting false kills.
    pub const fn held_out() -> &'static [Variant] {
        &HELD_OUT
    }

    /// The stable short name, as Display prints it.
    pub fn name(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.precision {
            Precision::F64 => "f64-",
            Precision::F32 => "f32-",
        })?;
        match self.sum {
            Order::Sequential => f.write_str("seq")?,
            Order::Reversed => f.write_str("rev")?,
            Order::Pairwise => f.write_str("pair")?,
            Order::Blocked(n) => write!(f, "blk{n}")?,
            Order::SplitK(n) => write!(f, "split{n}")?,
            Order::Interleaved(n) => write!(f, "lanes{n}")?,
        }
        if self.fma {
            f.write_str("-fma")?;
        }
        if self.softmax == Softmax::Online {
            f.write_str("-online")?;
        }
        if self.variance == Variance::Welford {
            f.write_str("-welford")?;
        }
        Ok(())
    }
}

/// A text that names no variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown variant `{0}` (form: `f32-ORDER[-fma][-online][-welford]`, ORDER one of seq rev pair blkN splitN lanesN)"
)]
pub struct UnknownVariant(pub String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || UnknownVariant(s.to_owned());
        let mut parts = s.split('-');
        let precision = match parts.next() {
            Some("f64") => Precision::F64,
            Some("f32") => Precision::F32,
            _ => return Err(bad()),
        };
        let order = parts.next().ok_or_else(bad)?;
        let count =
            |prefix: &str| order.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok()).filter(|&n| n > 0);
        let sum = match order {
            "seq" => Order::Sequential,
            "rev" => Order::Reversed,
            "pair" => Order::Pairwise,
            _ => count("blk")
                .map(Order::Blocked)
                .or_else(|| count("split").map(Order::SplitK))
                .or_else(|| count("lanes").map(Order::Interleaved))
                .ok_or_else(bad)?,
        };
        let mut v =
            Variant { precision, sum, fma: false, softmax: Softmax::TwoPass, variance: Variance::TwoPass };
        for flag in parts {
            match flag {
                "fma" => v.fma = true,
                "online" => v.softmax = Softmax::Online,
                "welford" => v.variance = Variance::Welford,
                _ => return Err(bad()),
            }
        }
        // One spelling per variant, so that stored names can be compared as text.
        if v.to_string() == s { Ok(v) } else { Err(bad()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for v in Variant::ensemble().iter().chain(Variant::held_out()).chain([&Variant::truth()]) {
            assert_eq!(v.to_string().parse::<Variant>().as_ref(), Ok(v));
            assert!(seen.insert(v.to_string()), "{v} appears twice");
        }
        assert!(Variant::ensemble().contains(&Variant::official()));
    }

    #[test]
    fn unknown_names_are_refused() {
        for s in ["", "f32", "f32-blk0", "f32-seq-fma-fma", "f32-welford", "f16-seq", "f32-seq-welford-fma"] {
            assert!(s.parse::<Variant>().is_err(), "{s}");
        }
    }
}
