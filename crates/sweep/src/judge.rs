//! Judging one run: outputs against the float64 product, what the wrong values are, and where they lie.

use std::collections::BTreeMap;

use crate::condition::count;
use crate::emulate::Selection;
use crate::error::SweepError;
use crate::geometry::{Product, Role, View};
use crate::misread::{Misreading, Reader};
use crate::point::{Compare, Point};
use crate::product::exact;
use crate::record::TensorResult;
use crate::values::{Kind, code_prime, transpose};

/// Why reading from a worker stopped.
#[derive(Debug)]
pub enum Stop {
    /// The sweep cannot go on.
    Failed(SweepError),
    /// The worker ended, hung or raised: an outcome.
    Ended(crate::worker::Ended),
}

impl From<SweepError> for Stop {
    fn from(e: SweepError) -> Stop {
        Stop::Failed(e)
    }
}

/// Where outputs come from. Batches arrive in the order asked for, each as `f64` in row-major order of the selection.
pub trait Source {
    /// Hands each of `batches` of `tensor` to `sink`; a sink that returns false ends the reading.
    ///
    /// # Errors
    /// The worker ended, or the sweep cannot go on.
    fn read(
        &mut self,
        tensor: &str,
        batches: &[u64],
        selection: &Selection,
        sink: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<(), Stop>;
}

/// Whether a difference is too large; NaN is never within a limit.
pub fn beyond(difference: f64, limit: f64) -> bool {
    difference.is_nan() || difference > limit
}

/// The batches of a sampled comparison (boundary paper, §3, and its plan): 256 evenly spaced, the first 4, the last 8, and
/// those around every multiple of 2^31 elements, 2^32 elements and 2^32 bytes of each tensor, and around multiples of
/// floor(2^32 / (M N)) batches.
pub fn sampled_batches(point: &Point) -> Vec<u64> {
    let b = point.batch;
    let last = b - 1;
    let mut out: Vec<u64> = (0..256u64)
        .map(|x| (u128::from(x) * u128::from(last) * 2 + 255) / 510)
        .map(|v| u64::try_from(v).unwrap_or(last))
        .collect();
    out.extend(0..4.min(b));
    out.extend(b.saturating_sub(8)..b);
    let size = point.dtype.size_bytes();
    let mut around = |step: u64, per: u64| {
        if step == 0 || per == 0 {
            return;
        }
        for multiple in 1..=1024u64 {
            let Some(element) = step.checked_mul(multiple) else { break };
            let at = element / per;
            if at > last + 2 {
                break;
            }
            out.extend(at.saturating_sub(2)..=(at + 2).min(last));
        }
    };
    for per in [point.shape.a(), point.shape.b(), point.shape.out()] {
        for step in [1u64 << 31, 1 << 32, (1 << 32) / size] {
            around(step, per);
        }
    }
    around(((1u64 << 32) / point.shape.out()).max(1), 1);
    out.retain(|&v| v <= last);
    out.sort_unstable();
    out.dedup();
    out
}

/// The batches that a point compares.
pub fn batches(point: &Point) -> Vec<u64> {
    match point.compare {
        Compare::Full => (0..point.batch).collect(),
        Compare::Sample => sampled_batches(point),
    }
}

/// The corners of a batch and 44 other elements, by a fixed choice from `seed`: rows and columns of a grid.
pub fn grid(rows: u64, cols: u64, seed: u64) -> Selection {
    let pick = |n: u64, want: usize, salt: u32| {
        let mut out = vec![0, n - 1];
        let mut at = 0u32;
        while out.len() < want && (out.len() as u64) < n {
            let word = assay_tensor::philox::philox4x32_10(
                [at, salt, 0, 0x4752_4944],
                [seed as u32, (seed >> 32) as u32],
            );
            let v = u64::from(word[0]) % n;
            if !out.contains(&v) {
                out.push(v);
            }
            at += 1;
        }
        out.sort_unstable();
        out.dedup();
        out
    };
    Selection::Grid(pick(rows, 6, 1), pick(cols, 8, 2))
}

/// A batch with wrong elements.
struct Wrong {
    batch: u64,
    out: Vec<f64>,
    reference: Vec<f64>,
}

/// How many wrong batches at each end hypotheses are tested on.
const ENDS: usize = 16;

/// Compares one tensor.
///
/// An element is wrong when |out - ref| > `tolerance` x max|ref| of its batch; NaN always is. `boundaries` are the element
/// counts at which an index may wrap.
///
/// # Errors
/// The source's.
pub fn compare(
    point: &Point,
    product: &Product,
    boundaries: &[u64],
    tolerance: f64,
    selection: &Selection,
    source: &mut dyn Source,
) -> Result<TensorResult, Stop> {
    let batches = batches(point);
    let (l, r) = (product.left, product.right);
    let (lv, rv) = (point.values(l.role), point.values(r.role));
    let mut reference = Predictor::new(&lv, &rv, product, Misreading::default());
    let mut tally = Tally::default();
    let mut expected = Vec::new();
    let (mut first, mut last): (Vec<Wrong>, std::collections::VecDeque<Wrong>) = Default::default();
    source.read(product.output, &batches, selection, &mut |batch, out| {
        reference.batch(batch, selection, &mut expected);
        if !tally.batch(batch, out, &expected, tolerance) {
            return;
        }
        let kept = Wrong { batch, out: out.to_vec(), reference: expected.clone() };
        if first.len() < ENDS {
            first.push(kept);
        } else {
            if last.len() == ENDS {
                last.pop_front();
            }
            last.push_back(kept);
        }
    })?;
    let (mut result, bad) = tally.finish(&batches, point.kind);
    if !bad.is_empty() {
        first.extend(last);
        result.extents = extents(product, boundaries, &bad, &batches);
        result.hyp_match = hypotheses(point, product, boundaries, tolerance, selection, &first);
        decode_codes(point, product, tolerance, selection, &first, &mut result);
    }
    Ok(result)
}

/// Counts what a comparison finds, batch by batch.
#[derive(Default)]
pub struct Tally {
    result: TensorResult,
    worst: f64,
    bad: Vec<u64>,
}

impl Tally {
    /// Adds a batch: an element is wrong when |out - expected| > `tolerance` x max|expected|. Whether one was.
    pub fn batch(&mut self, batch: u64, out: &[f64], expected: &[f64], tolerance: f64) -> bool {
        let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let limit = tolerance * scale;
        let (mut wrong, mut zero, mut error) = (0u64, 0u64, 0.0f64);
        for (&o, &e) in out.iter().zip(expected) {
            let d = (o - e).abs();
            if beyond(d, limit) {
                wrong += 1;
                zero += u64::from(o == 0.0);
            }
            error = if d.is_nan() { f64::INFINITY } else { error.max(d) };
        }
        if error > 0.0 {
            self.worst = self.worst.max(if scale > 0.0 { error / scale } else { f64::INFINITY });
        }
        self.result.n_batches_compared += 1;
        self.result.elements_compared += expected.len() as u64;
        self.result.elements_wrong += wrong;
        self.result.elements_zero += zero;
        if wrong > 0 {
            self.bad.push(batch);
        }
        wrong > 0
    }

    /// The result, of the batches `compared`, with inputs of `kind`; and the wrong batches.
    pub fn finish(self, compared: &[u64], kind: Kind) -> (TensorResult, Vec<u64>) {
        let Tally { mut result, worst, bad } = self;
        result.max_rel_err = worst.is_finite().then_some(worst);
        result.n_batches_bad = bad.len() as u64;
        result.bad = runs(&bad, compared);
        result.cls = class(&result, kind).to_owned();
        (result, bad)
    }
}

fn class(r: &TensorResult, kind: Kind) -> &'static str {
    if r.n_batches_bad == 0 {
        "ok"
    } else if kind == Kind::Random && r.elements_zero * 10 >= r.elements_wrong * 9 {
        "truncated"
    } else {
        "wrong"
    }
}

/// The wrong batches as runs of neighbours among those compared; the first 64.
fn runs(bad: &[u64], compared: &[u64]) -> Vec<[u64; 2]> {
    let mut out: Vec<[u64; 2]> = Vec::new();
    let mut next = usize::MAX;
    for &b in bad {
        let at = compared.binary_search(&b).unwrap_or(0);
        if at != next {
            if out.len() == 64 {
                break;
            }
            out.push([b, b]);
        }
        if let Some(run) = out.last_mut() {
            run[1] = b;
        }
        next = at + 1;
    }
    out
}

/// Statements about where the wrong batches lie that hold for every batch compared.
fn extents(product: &Product, boundaries: &[u64], bad: &[u64], compared: &[u64]) -> Vec<String> {
    let mut out = Vec::new();
    let is_bad: std::collections::HashSet<u64> = bad.iter().copied().collect();
    let exactly = |beyond: &dyn Fn(u64) -> bool| {
        let expected = compared.iter().filter(|&&b| beyond(b)).count();
        expected == bad.len() && bad.iter().all(|&b| beyond(b))
    };
    if is_bad.len() == compared.len() {
        out.push("every batch".to_owned());
    }
    let operand = |v: &View, b: u64, k: u64| (v.skip + b + 1) * v.per_batch() > k;
    let per_out = product.left.rows * product.right.cols;
    for &k in boundaries {
        if exactly(&|b| operand(&product.left, b, k) || operand(&product.right, b, k)) {
            out.push(format!("batches beyond element {} of an operand", count(k)));
        }
        if exactly(&|b| (b + 1) * per_out > k) {
            out.push(format!("batches beyond element {} of the output", count(k)));
        }
    }
    if out.is_empty() {
        let tail = bad.first().is_some_and(|&f| exactly(&|b| b >= f));
        out.push(if tail { "a tail of the batches" } else { "some batches" }.to_owned());
    }
    out
}

/// What a product would be under a misreading of its operands.
pub struct Predictor<'a> {
    left: Reader<'a>,
    right: Reader<'a>,
    inner: usize,
    l: Vec<f32>,
    r: Vec<f32>,
    columns: Vec<f32>,
    dims: (u64, u64),
}

impl<'a> Predictor<'a> {
    /// The product of `product` with both operands read as `misreading` says.
    pub fn new(
        left: &'a crate::values::Values,
        right: &'a crate::values::Values,
        product: &Product,
        misreading: Misreading,
    ) -> Predictor<'a> {
        Predictor {
            left: Reader::new(left, product.left, misreading),
            right: Reader::new(right, product.right, misreading),
            inner: product.left.cols as usize,
            l: Vec::new(),
            r: Vec::new(),
            columns: Vec::new(),
            dims: (product.left.rows, product.right.cols),
        }
    }

    /// One batch, exact in float64.
    pub fn batch(&mut self, batch: u64, selection: &Selection, out: &mut Vec<f64>) {
        let (rows, cols) = match selection {
            Selection::Whole => {
                self.left.batch(batch, &mut self.l);
                self.right.batch(batch, &mut self.r);
                (self.dims.0 as usize, self.dims.1 as usize)
            }
            Selection::Grid(rows, cols) => {
                self.left.rows(batch, rows, &mut self.l);
                self.right.cols(batch, cols, &mut self.columns);
                self.r.resize(self.columns.len(), 0.0);
                transpose(&self.columns, cols.len(), self.inner, &mut self.r);
                (rows.len(), cols.len())
            }
        };
        exact(&self.l, &self.r, rows, self.inner, cols, out);
    }
}

/// The misreadings that could matter for a product.
pub fn candidates(product: &Product, boundaries: &[u64]) -> Vec<Misreading> {
    let sides = [product.left, product.right];
    let mut out = Vec::new();
    let transposed = sides.iter().any(|v| v.transposed);
    if transposed {
        out.push(Misreading { ignore_strides: true, ..Misreading::default() });
    }
    for &k in boundaries {
        if sides.iter().any(|v| v.storage_numel() > k) {
            out.push(Misreading { wrap: Some(k), ..Misreading::default() });
            if transposed {
                out.push(Misreading { wrap: Some(k), ignore_strides: true, ..Misreading::default() });
            }
        }
    }
    if sides.iter().any(|v| v.skip > 0) {
        out.push(Misreading { ignore_offset: true, ..Misreading::default() });
    }
    out
}

fn hypotheses(
    point: &Point,
    product: &Product,
    boundaries: &[u64],
    tolerance: f64,
    selection: &Selection,
    wrong: &[Wrong],
) -> BTreeMap<String, f64> {
    let (lv, rv) = (point.values(product.left.role), point.values(product.right.role));
    let mut out = BTreeMap::new();
    for m in candidates(product, boundaries) {
        let mut predictor = Predictor::new(&lv, &rv, product, m);
        let (mut hits, mut all) = (0u64, 0u64);
        let mut predicted = Vec::new();
        for w in wrong {
            predictor.batch(w.batch, selection, &mut predicted);
            let limit = tolerance * w.reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for ((&o, &e), &p) in w.out.iter().zip(&w.reference).zip(&predicted) {
                if beyond((o - e).abs(), limit) {
                    all += 1;
                    hits += u64::from((o - p).abs() <= limit);
                }
            }
        }
        if all > 0 {
            out.insert(m.name(), hits as f64 / all as f64);
        }
    }
    out
}

/// Reads the codes of an index-encoded operand off the wrong elements.
fn decode_codes(
    point: &Point,
    product: &Product,
    tolerance: f64,
    selection: &Selection,
    wrong: &[Wrong],
    result: &mut TensorResult,
) {
    let Some(role) = point.kind.encoded() else { return };
    if product.output != "out" {
        return;
    }
    let cols = if role == Role::A { product.left.cols } else { product.right.cols };
    let p = code_prime(point.dtype);
    for w in wrong {
        let limit = tolerance * w.reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (i, (&o, &e)) in w.out.iter().zip(&w.reference).enumerate() {
            if (o - e).abs() <= limit || !(o.is_finite() && o >= 1.0 && o.fract() == 0.0) {
                continue;
            }
            if point.kind.by_batch() {
                *result.shifts.entry(format!("{}", o - e)).or_insert(0) += 1;
            } else if result.misplaced.len() < 4 {
                let (expected, read) = (e as u64 - 1, o as u64 - 1);
                let per = if role == Role::A { product.left.per_batch() } else { product.right.per_batch() };
                // Beyond the prime a code stands for several places.
                if per <= p {
                    let _ = (selection, i);
                    result.misplaced.push([expected / cols, expected % cols, read / cols, read % cols]);
                }
            }
        }
    }
    // The four most frequent.
    if result.shifts.len() > 4 {
        let mut all: Vec<_> = std::mem::take(&mut result.shifts).into_iter().collect();
        all.sort_by(|x, y| y.1.cmp(&x.1).then_with(|| x.0.cmp(&y.0)));
        result.shifts = all.into_iter().take(4).collect();
    }
}

/// Whether a misreading changes any element of the batches that a rule says are wrong: of some index-encoded inputs it does
/// not (boundary paper, §4.1).
pub fn changes(point: &Point, product: &Product, misreading: Misreading, batches: &[u64]) -> bool {
    let (lv, rv) = (point.values(product.left.role), point.values(product.right.role));
    let mut right = Predictor::new(&lv, &rv, product, Misreading::default());
    let mut misread = Predictor::new(&lv, &rv, product, misreading);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    batches.iter().any(|&batch| {
        right.batch(batch, &Selection::Whole, &mut a);
        misread.batch(batch, &Selection::Whole, &mut b);
        a != b
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Layout, Shape};
    use crate::point::Phase;
    use assay_tensor::DType;

    pub(crate) fn point(layout: Layout, batch: u64) -> Point {
        Point {
            phase: Phase::Search,
            shape: Shape { m: 256, k: 64, n: 256 },
            dtype: DType::F32,
            layout,
            kind: Kind::Random,
            batch,
            offset: 0,
            seed: 0,
            compare: Compare::Sample,
            backward: false,
        }
    }

    #[test]
    fn sampled_comparisons_take_266_to_281_batches_as_published() {
        let counts: Vec<usize> = [4096, 16_383, 32_768, 50_000, 65_536, 65_538]
            .into_iter()
            .map(|b| sampled_batches(&point(Layout::Contig, b)).len())
            .collect();
        assert!(counts.iter().all(|n| (264..=285).contains(n)), "{counts:?}");
        let b = sampled_batches(&point(Layout::Contig, 65_538));
        for near in [0, 1, 2, 3, 32_766, 32_767, 32_768, 32_769, 65_534, 65_535, 65_536, 65_537] {
            assert!(b.binary_search(&near).is_ok(), "{near}");
        }
    }

    #[test]
    fn wrong_batches_are_told_as_runs_and_none_that_was_right_is_among_them() {
        let compared: Vec<u64> = (0..1000).collect();
        assert_eq!(runs(&[0, 1, 2, 7, 9, 10], &compared), [[0, 2], [7, 7], [9, 10]]);
        // Neighbours among those compared need not be neighbours.
        assert_eq!(runs(&[4, 8], &[0, 4, 8, 12]), [[4, 8]]);
        // The 65th run is left out, and does not lengthen the 64th.
        let mut many: Vec<u64> = (0..64).map(|i| i * 3).collect();
        many.extend([600, 601, 602]);
        let told = runs(&many, &compared);
        assert_eq!((told.len(), told[63]), (64, [189, 189]));
    }

    #[test]
    fn a_grid_has_the_corners_and_stays_inside() {
        for (rows, cols) in [(1, 1), (2, 3), (7, 8), (256, 64)] {
            let Selection::Grid(r, c) = grid(rows, cols, 9) else { panic!() };
            assert!(r.contains(&0) && r.contains(&(rows - 1)) && c.contains(&0) && c.contains(&(cols - 1)));
            assert!(r.iter().all(|&v| v < rows) && c.iter().all(|&v| v < cols));
            assert!(rows < 6 || r.len() * c.len() >= 36);
        }
    }
}
