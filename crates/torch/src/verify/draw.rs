//! Random shapes, values and layouts. Everything is a function of (seed, operator, case).

use assay_tensor::philox::Stream;
use assay_tensor::tensor::write_element;
use assay_tensor::{DType, Tensor};

use crate::client::{Placed, contiguous_strides};

/// Most elements of one drawn tensor.
const MOST_ELEMENTS: u64 = 4096;

/// What the elements of a tensor are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// Normal with this standard deviation; some are exactly 0, 1, -1 or 0.5.
    Normal(f64),
    /// Normal, with NaN, both infinities and both zeros among them.
    Special,
    /// As `Special`, with magnitudes from 1e-42 to 1e38: for operators that look at one element at a time.
    Wild,
    /// Few different whole numbers: ties.
    Ties,
    /// Above zero.
    Positive,
    /// Near one, so that long products stay in range.
    NearOne,
    /// Between 0 and 1; some are exactly 0 or 1.
    Unit,
}

/// One case: a program, its inputs, and what is compared.
#[derive(Clone, Debug)]
pub struct Case {
    /// The reference text.
    pub program: String,
    /// Inputs, as our language sees them, with how they lie for PyTorch.
    pub inputs: Vec<(Tensor, Placed)>,
    /// Names of the outputs.
    pub outputs: Vec<String>,
}

/// A stream of decisions.
pub struct Draw {
    stream: Stream,
    at: u64,
    inputs: Vec<(Tensor, Placed)>,
    repeats: bool,
}

impl Draw {
    /// The decisions of case `case` of the operator of that name.
    pub fn new(seed: u64, operator: &str, case: u64) -> Draw {
        // FNV-1a: the stream's number depends on the name, not on the operator's place in the table.
        let hash = operator
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
        Draw {
            stream: Stream::new(seed, hash ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            at: 0,
            inputs: Vec::new(),
            repeats: true,
        }
    }

    /// No dimension has a stride of 0 from here on. Equal values normalise to the rounding of their mean over the root of
    /// the operator's epsilon, which says nothing about the operator.
    pub fn without_repeats(&mut self) {
        self.repeats = false;
    }

    fn next(&mut self) -> u64 {
        self.at += 1;
        self.at - 1
    }

    /// An integer in `0..n`; 0 where `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let i = self.next();
        if n == 0 { 0 } else { self.stream.below_at(i, n) }
    }

    /// An integer in `lo..=hi`.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.below(hi.saturating_sub(lo) + 1)
    }

    /// True with probability `percent` in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        let i = self.next();
        f64::from(self.stream.uniform_at(i))
    }

    fn normal(&mut self) -> f64 {
        let i = self.next();
        self.stream.normal_at(i)
    }

    /// An extent: small ones, those around vector widths, 1 often and 0 seldom.
    pub fn extent(&mut self) -> u64 {
        self.pick(&[0, 1, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40])
    }

    /// An extent that is not 0.
    pub fn some(&mut self) -> u64 {
        self.extent().max(1)
    }

    /// A shape with `lo..=hi` dimensions.
    pub fn shape(&mut self, lo: u64, hi: u64) -> Vec<u64> {
        let rank = self.between(lo, hi);
        self.shape_of(rank as usize)
    }

    /// A shape with that many dimensions; extents shrink until it is small.
    pub fn shape_of(&mut self, rank: usize) -> Vec<u64> {
        let mut shape: Vec<u64> = (0..rank).map(|_| self.extent()).collect();
        bound(&mut shape);
        shape
    }

    /// As [`Draw::shape_of`], without empty dimensions.
    pub fn filled(&mut self, rank: usize) -> Vec<u64> {
        self.shape_of(rank).into_iter().map(|d| d.max(1)).collect()
    }

    /// A shape that broadcasts with this one: extents become 1 and leading ones go, at random.
    pub fn partner(&mut self, shape: &[u64]) -> Vec<u64> {
        let gone = if self.chance(30) { self.below(shape.len() as u64 + 1) as usize } else { 0 };
        let mut out = shape[gone..].to_vec();
        for d in &mut out {
            if self.chance(25) {
                *d = 1;
            }
        }
        out
    }

    /// A dimension of that many, counted from the front or from the back.
    pub fn dim(&mut self, rank: usize) -> i64 {
        let rank = rank.max(1) as i64;
        let d = self.below(rank as u64) as i64;
        if self.chance(40) { d - rank } else { d }
    }

    /// Adds a float input.
    pub fn float(&mut self, name: &str, shape: &[u64], values: Values) {
        // Half-precision inputs are exact in both precisions.
        let dtype = self.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16]);
        let n = shape.iter().product::<u64>();
        let elements: Vec<f64> = (0..n).map(|_| self.value(values)).collect();
        self.input(name, dtype, shape, &elements);
    }

    /// Adds an input of integers in `lo..=hi`.
    pub fn ints(&mut self, name: &str, shape: &[u64], lo: i64, hi: i64) {
        let dtype = self.pick(&[DType::I64, DType::I64, DType::I32]);
        self.ints_as(name, dtype, shape, lo, hi);
    }

    /// As [`Draw::ints`], in that type.
    pub fn ints_as(&mut self, name: &str, dtype: DType, shape: &[u64], lo: i64, hi: i64) {
        let n = shape.iter().product::<u64>();
        let width = hi.abs_diff(lo) + 1;
        let elements: Vec<f64> = (0..n).map(|_| (lo + self.below(width) as i64) as f64).collect();
        self.input(name, dtype, shape, &elements);
    }

    /// Adds an input of bools.
    pub fn bools(&mut self, name: &str, shape: &[u64]) {
        let n = shape.iter().product::<u64>();
        let elements: Vec<f64> = (0..n).map(|_| self.below(2) as f64).collect();
        self.input(name, DType::Bool, shape, &elements);
    }

    /// The case of this program, whose outputs are `outputs`.
    pub fn case(self, program: String, outputs: &[&str]) -> Case {
        Case { program, inputs: self.inputs, outputs: outputs.iter().map(|&o| o.to_owned()).collect() }
    }

    /// One element.
    pub fn value(&mut self, values: Values) -> f64 {
        const FEW: [f64; 5] = [0.0, -0.0, 1.0, -1.0, 0.5];
        const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
        const WILD: [f64; 16] = [
            1e-42, -1e-42, 1e-38, 1e-20, -1e-8, 1e-4, 6.5, -6.5, 20.0, -20.0, 88.0, -104.0, 300.0, -300.0,
            1e30, -1e38,
        ];
        match values {
            Values::Normal(scale) if self.chance(90) => scale * self.normal(),
            Values::Normal(_) => self.pick(&FEW),
            Values::Special if self.chance(12) => self.pick(&SPECIAL),
            Values::Special => self.normal(),
            Values::Wild if self.chance(30) => self.pick(&SPECIAL),
            Values::Wild if self.chance(50) => self.pick(&WILD),
            Values::Wild => 3.0 * self.normal(),
            Values::Ties => self.below(4) as f64 - 1.0,
            Values::Positive => 0.01 + self.normal().abs(),
            Values::NearOne => 1.0 + 0.1 * self.normal(),
            Values::Unit if self.chance(8) => self.below(2) as f64,
            Values::Unit => self.unit(),
        }
    }

    /// Adds an input of these elements, placed at random: contiguous, with its dimensions in another order, with steps,
    /// behind other elements, or the same element again along a dimension.
    fn input(&mut self, name: &str, dtype: DType, shape: &[u64], elements: &[f64]) {
        let contiguous = contiguous_strides(shape);
        // A stride of 0 wants the first slice everywhere along that dimension.
        let repeated = (self.chance(8) && self.repeats && !shape.is_empty() && !elements.is_empty())
            .then(|| self.below(shape.len() as u64) as usize);
        let mut logical = elements.to_vec();
        if let Some(d) = repeated {
            for (i, slot) in logical.iter_mut().enumerate() {
                let index = (i as u64 / contiguous[d]) % shape[d];
                *slot = elements[i - (index * contiguous[d]) as usize];
            }
        }
        let mut strides = contiguous.clone();
        let mut start = 0;
        let plain = repeated.is_none() && self.chance(50);
        let mut span = elements.len() as u64;
        if !plain && !elements.is_empty() {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            if self.chance(60) {
                for i in (1..order.len()).rev() {
                    order.swap(i, self.below(i as u64 + 1) as usize);
                }
            }
            let mut step = if self.chance(40) { self.between(2, 3) } else { 1 };
            start = if self.chance(40) { self.between(1, 5) } else { 0 };
            for &d in order.iter().rev() {
                if repeated == Some(d) {
                    strides[d] = 0;
                } else {
                    strides[d] = step;
                    step *= shape[d];
                }
            }
            span = 1 + shape.iter().zip(&strides).map(|(n, s)| (n - 1) * s).sum::<u64>();
        }
        let size = dtype.size_bytes();
        let mut storage = vec![0u8; ((start + span) * size) as usize];
        // What must not be read would show: the largest number of the type.
        for slot in storage.chunks_exact_mut(size as usize) {
            write_element(dtype, if dtype.is_float() { 60000.0 } else { 100.0 }, slot);
        }
        let mut data = vec![0u8; logical.len() * size as usize];
        for (i, (&v, slot)) in logical.iter().zip(data.chunks_exact_mut(size as usize)).enumerate() {
            write_element(dtype, v, slot);
            let mut rest = i as u64;
            let mut at = start;
            for d in (0..shape.len()).rev() {
                at += (rest % shape[d]) * strides[d];
                rest /= shape[d];
            }
            storage[(at * size) as usize..((at + 1) * size) as usize].copy_from_slice(slot);
        }
        // The shape and the bytes were made together.
        let tensor = Tensor { dtype, shape: shape.to_vec(), data };
        let placed = Placed { name: name.to_owned(), dtype, shape: shape.to_vec(), strides, start, storage };
        self.inputs.push((tensor, placed));
    }
}

/// Halves the largest extent until the shape is small.
fn bound(shape: &mut [u64]) {
    while shape.iter().map(|&d| d.max(1)).product::<u64>() > MOST_ELEMENTS {
        if let Some(largest) = shape.iter_mut().max() {
            *largest = largest.div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placed_tensor_reads_as_the_tensor_that_our_language_gets() {
        for case in 0..400 {
            let mut draw = Draw::new(3, "test", case);
            let shape = draw.shape(0, 4);
            match case % 3 {
                0 => draw.float("x", &shape, Values::Special),
                1 => draw.ints("x", &shape, -9, 9),
                _ => draw.bools("x", &shape),
            }
            let (tensor, placed) = &draw.inputs[0];
            let size = placed.dtype.size_bytes() as usize;
            for i in 0..tensor.len() {
                let mut rest = i;
                let mut at = placed.start;
                for d in (0..shape.len()).rev() {
                    at += (rest % shape[d]) * placed.strides[d];
                    rest /= shape[d];
                }
                let at = at as usize * size;
                let i = i as usize * size;
                assert_eq!(placed.storage[at..at + size], tensor.data[i..i + size], "case {case}");
            }
        }
    }

    #[test]
    fn cases_depend_on_operator_and_number_alone() {
        let draw = |name: &str, case| {
            let mut d = Draw::new(0, name, case);
            d.float("x", &[3], Values::Normal(1.0));
            d.inputs[0].0.data.clone()
        };
        assert_eq!(draw("add", 4), draw("add", 4));
        assert_ne!(draw("add", 4), draw("add", 5));
        assert_ne!(draw("add", 4), draw("sub", 4));
    }
}
