//! The comparison loops: one element at a time, and a fast version that skips whole blocks.
//!
//! The fast version asks of a block of 64 elements, without any division and without branches, whether an element
//! could raise one of the three maxima; only then it walks the block one element at a time. Both give the same
//! [`Maxima`], indices included: the block test is conservative by more than the rounding of its own arithmetic,
//! and the slow walk alone decides. Random data raise a maximum O(log n) times, so nearly all blocks are skipped.

/// Elements per block of the fast version.
const BLOCK: usize = 64;

/// Bounds are lowered by this factor: the block test rounds at most four times (4 * 2^-53 < 1e-15).
const SLACK: f64 = 1.0 - 1e-15;

/// Below this a relative slack is no longer one (subnormal products); such blocks are always walked.
const TINY: f64 = 1e-290;

/// The three maxima and where they stand; ties keep the lowest index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Maxima {
    pub threshold: f64,
    pub threshold_at: u64,
    pub abs: f64,
    pub abs_at: u64,
    pub rel: f64,
    pub rel_at: u64,
    /// Elements where a NaN or an infinity stands on either side and does not match.
    pub non_finite: u64,
}

impl Maxima {
    pub(crate) const ZERO: Maxima =
        Maxima { threshold: 0.0, threshold_at: 0, abs: 0.0, abs_at: 0, rel: 0.0, rel_at: 0, non_finite: 0 };

    /// Takes in a pair of finite values' errors: `d` absolute (finite), `t` over 1 + |ref|, `rel` over |ref|.
    #[inline]
    fn raise(&mut self, i: u64, d: f64, t: f64, rel: Option<f64>) {
        if t > self.threshold {
            (self.threshold, self.threshold_at) = (t, i);
        }
        if d > self.abs {
            (self.abs, self.abs_at) = (d, i);
        }
        if let Some(rel) = rel
            && rel > self.rel
        {
            (self.rel, self.rel_at) = (rel, i);
        }
    }

    /// Takes in a pair that differs however large the tolerance is.
    #[inline]
    pub(crate) fn raise_to_infinity(&mut self, i: u64) {
        if self.threshold < f64::INFINITY {
            (self.threshold, self.threshold_at) = (f64::INFINITY, i);
        }
    }

    /// Takes in element `i`.
    #[inline]
    pub(crate) fn step(&mut self, i: u64, out: f64, reference: f64, nan_ok: bool) {
        // Equal infinities match; their difference would be NaN.
        if out == reference {
            return;
        }
        if out.is_finite() && reference.is_finite() {
            let (d, t) = errors(out, reference);
            let size = reference.abs();
            // 0/0 has no meaning and d/0 would hide every other ratio.
            let rel = (size > 0.0).then(|| (d / size).min(f64::MAX));
            self.raise(i, d, t, rel);
        } else if !(nan_ok && out.is_nan() && reference.is_nan()) {
            self.non_finite += 1;
            self.raise_to_infinity(i);
        }
    }

    /// Takes in element `i` of exact integers.
    #[inline]
    pub(crate) fn step_integer(&mut self, i: u64, out: i128, reference: i128, exact: bool) {
        if out == reference {
            return;
        }
        // Both come from at most 64 bits, so neither operation overflows.
        let d = (out - reference).unsigned_abs() as f64;
        let size = reference.unsigned_abs() as f64;
        let rel = (reference != 0).then_some(d / size);
        self.raise(i, d, d / (1.0 + size), rel);
        if exact {
            self.raise_to_infinity(i);
        }
    }
}

/// |out - ref|, saturated at the largest float, and |out - ref| / (1 + |ref|), of two finite values.
#[inline]
pub(crate) fn errors(out: f64, reference: f64) -> (f64, f64) {
    let d = (out - reference).abs();
    let size = reference.abs();
    if d.is_finite() {
        (d, d / (1.0 + size))
    } else {
        // The difference of two float64 can overflow although the ratio does not: halve everything.
        (f64::MAX, (0.5 * out - 0.5 * reference).abs() / (0.5 + 0.5 * size))
    }
}

/// One element after the other: the definition.
pub(crate) fn walk<A: Copy + Into<f64>, B: Copy + Into<f64>>(
    maxima: &mut Maxima,
    first: u64,
    out: &[A],
    reference: &[B],
    nan_ok: bool,
) {
    for (i, (&o, &r)) in (first..).zip(out.iter().zip(reference)) {
        maxima.step(i, o.into(), r.into(), nan_ok);
    }
}

/// May an element of this block raise a maximum? Never false where one does.
#[inline(always)]
fn may_raise<A: Copy + Into<f64>, B: Copy + Into<f64>>(maxima: &Maxima, out: &[A], reference: &[B]) -> bool {
    // Zeros in place of the output tie at a relative error of one everywhere. The product with a power of two is
    // exact, so that such ties need no slack and their blocks no walk.
    let exact_product = maxima.rel.is_normal() && maxima.rel.to_bits() & ((1 << 52) - 1) == 0;
    let rel = if exact_product { maxima.rel } else { maxima.rel * SLACK };
    let (threshold, abs) = (maxima.threshold * SLACK, maxima.abs);
    let mut any = false;
    for (&o, &r) in out.iter().zip(reference) {
        let (o, r): (f64, f64) = (o.into(), r.into());
        let size = r.abs();
        let d = (o - r).abs();
        // NaN and infinity are never at or below the largest absolute error, which is finite, so a block with
        // a non-finite difference is walked.
        let within = (d <= abs) & (d <= threshold * (1.0 + size));
        let within_rel = (d <= rel * size) | (size == 0.0);
        let tiny = (d > 0.0) & (d < TINY);
        any |= !within | !within_rel | tiny;
    }
    any
}

#[inline(always)]
fn blocks<A: Copy + Into<f64>, B: Copy + Into<f64>>(out: &[A], reference: &[B], nan_ok: bool) -> Maxima {
    let mut maxima = Maxima::ZERO;
    let mut first = 0u64;
    for (o, r) in out.chunks(BLOCK).zip(reference.chunks(BLOCK)) {
        if may_raise(&maxima, o, r) {
            walk(&mut maxima, first, o, r, nan_ok);
        }
        first += o.len() as u64;
    }
    maxima
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn blocks_avx2<A: Copy + Into<f64>, B: Copy + Into<f64>>(out: &[A], reference: &[B], nan_ok: bool) -> Maxima {
    blocks(out, reference, nan_ok)
}

/// The maxima over two slices of equal length; the same value as [`walk`] from zero gives.
pub(crate) fn maxima<A: Copy + Into<f64>, B: Copy + Into<f64>>(
    out: &[A],
    reference: &[B],
    nan_ok: bool,
) -> Maxima {
    // Wider registers change nothing in the result: every operation is IEEE, and none is contracted.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the only feature that the function asks for, as just tested.
        return unsafe { blocks_avx2(out, reference, nan_ok) };
    }
    blocks(out, reference, nan_ok)
}
