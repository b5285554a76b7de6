//! Input values: element = f(seed, operand, batch, index), independent of layout, never zero where it is a number.
//!
//! A batch gets a 64-bit key from Philox4x32-10 at counter (batch, operand); an element mixes the key with its index by a
//! 32-bit finalizer. Floating-point values are multiples of a power of two in [-1, 1] that the dtype holds exactly
//! (2^-20 in f32 and f64, 2^-10 in f16, 2^-7 in bf16), zero replaced by 0.5 as in the boundary paper, so a product of up
//! to 2^13 terms is exact in float64 whatever its order, with or without fused multiply-add: a reference has the same
//! bits on every host.

use assay_tensor::DType;
use assay_tensor::philox::philox4x32_10;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::geometry::{Role, Shape, View};

/// What the inputs of a point hold (boundary paper, §3 "Index-encoded inputs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Random values.
    #[serde(rename = "random")]
    Random,
    /// `a` holds its batch index, `b` selects.
    #[serde(rename = "a_batch")]
    ABatch,
    /// `a` holds the index within the batch, `b` selects.
    #[serde(rename = "a_rc")]
    ARc,
    /// `b` holds its batch index, `a` selects.
    #[serde(rename = "b_batch")]
    BBatch,
    /// `b` holds the index within the batch, `a` selects.
    #[serde(rename = "b_rc")]
    BRc,
}

impl Kind {
    /// The four index-encoded kinds.
    pub const ENCODED: [Kind; 4] = [Kind::ABatch, Kind::ARc, Kind::BBatch, Kind::BRc];

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Random => "random",
            Kind::ABatch => "a_batch",
            Kind::ARc => "a_rc",
            Kind::BBatch => "b_batch",
            Kind::BRc => "b_rc",
        }
    }

    /// The operand that carries the index.
    pub fn encoded(self) -> Option<Role> {
        match self {
            Kind::Random => None,
            Kind::ABatch | Kind::ARc => Some(Role::A),
            Kind::BBatch | Kind::BRc => Some(Role::B),
        }
    }

    /// Whether the code is that of the batch (not of the place within it).
    pub fn by_batch(self) -> bool {
        matches!(self, Kind::ABatch | Kind::BBatch)
    }
}

/// The prime of the index encoding: the largest whose codes the dtype holds exactly, so that a shift by a power of two
/// cannot hide.
pub fn code_prime(dtype: DType) -> u64 {
    match dtype {
        DType::BF16 => 251,
        DType::F16 | DType::I16 | DType::U16 => 2_039,
        DType::I8 | DType::U8 | DType::Bool => 113,
        _ => 1_048_573,
    }
}

/// The constant of leading batch `j` of an offset storage: 2 + (1 + j mod 61) / 64, which no random value takes.
pub fn leading_constant(j: u64) -> f32 {
    2.0 + (1 + j % 61) as f32 / 64.0
}

/// The values of one operand. Every value is exact in `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    seed: u64,
    role: Role,
    kind: Kind,
    dtype: DType,
    /// Rows and columns of a logical batch.
    rows: u64,
    cols: u64,
    /// Whether the leading batches of the storage hold constants (the offset layout).
    constants: bool,
}

/// The key of one batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchKey([u32; 2]);

const DOMAIN: u32 = 0x5357_4545; // "SWEE": apart from every other use of the same seed

impl Values {
    /// The values of `view` for inputs of `kind`, in its untransposed logical order.
    pub fn new(seed: u64, kind: Kind, dtype: DType, role: Role, shape: Shape, constants: bool) -> Values {
        let (rows, cols) = match role {
            Role::A => (shape.m, shape.k),
            Role::B => (shape.k, shape.n),
            Role::G => (shape.m, shape.n),
        };
        Values { seed, role, kind, dtype, rows, cols, constants }
    }

    /// Whether leading batches hold constants.
    pub(crate) fn constant_leading(&self) -> bool {
        self.constants
    }

    fn key(&self, batch: i64) -> BatchKey {
        let operand = match self.role {
            Role::A => 0,
            Role::B => 1,
            Role::G => 2,
        };
        let b = batch as u64;
        let words = philox4x32_10(
            [b as u32, (b >> 32) as u32, operand, DOMAIN],
            [self.seed as u32, (self.seed >> 32) as u32],
        );
        BatchKey([words[0], words[1]])
    }

    /// The element at `index` (row-major, logical) of logical batch `batch`; -1 and below are leading batches of the
    /// slice layout.
    #[inline]
    pub fn at(&self, batch: i64, index: u64) -> f32 {
        self.with_key(self.key(batch), batch, index)
    }

    #[inline]
    fn with_key(&self, key: BatchKey, batch: i64, index: u64) -> f32 {
        match self.kind.encoded() {
            None => random(self.dtype, word(key, index as u32)),
            Some(role) if role == self.role => self.code(batch, index),
            Some(_) => self.select(index),
        }
    }

    fn code(&self, batch: i64, index: u64) -> f32 {
        let p = code_prime(self.dtype);
        let field = if self.kind.by_batch() { batch.rem_euclid(p as i64) as u64 } else { index % p };
        (field + 1) as f32
    }

    /// The one-hot selection: `a[m, k] = 1` where k = m mod K, `b[k, n] = 1` where k = n mod K.
    fn select(&self, index: u64) -> f32 {
        let (row, col) = (index / self.cols, index % self.cols);
        let hit = match self.role {
            Role::A => col == row % self.cols,
            _ => row == col % self.rows,
        };
        f32::from(u8::from(hit))
    }

    /// A whole logical batch into `out` (rows x columns, row-major).
    pub fn batch(&self, batch: i64, out: &mut [f32]) {
        debug_assert_eq!(out.len() as u64, self.rows * self.cols);
        match self.kind.encoded() {
            None => fill_random(self.dtype, self.key(batch), out),
            Some(role) if role == self.role => {
                if self.kind.by_batch() {
                    out.fill(self.code(batch, 0));
                } else {
                    for (i, v) in out.iter_mut().enumerate() {
                        *v = self.code(batch, i as u64);
                    }
                }
            }
            Some(_) => {
                for (i, v) in out.iter_mut().enumerate() {
                    *v = self.select(i as u64);
                }
            }
        }
    }

    /// The storage batch `j` behind `view` into `out`, in storage order.
    pub fn storage_batch(&self, view: &View, j: u64, out: &mut [f32], scratch: &mut Vec<f32>) {
        if j < view.skip && self.constants {
            out.fill(leading_constant(j));
            return;
        }
        let logical = j as i64 - view.skip as i64;
        if view.stored_transposed() {
            scratch.resize(out.len(), 0.0);
            self.batch(logical, scratch);
            transpose(scratch, self.rows as usize, self.cols as usize, out);
        } else {
            self.batch(logical, out);
        }
    }
}

impl Values {
    /// `n` elements of logical batch `batch` from `first` on, `step` apart.
    pub fn strided(&self, batch: i64, first: u64, step: u64, out: &mut [f32]) {
        if self.kind == Kind::Random {
            fill_strided(self.dtype, self.key(batch), first as u32, step as u32, out);
        } else {
            let key = self.key(batch);
            for (i, v) in out.iter_mut().enumerate() {
                *v = self.with_key(key, batch, first + i as u64 * step);
            }
        }
    }
}

/// Reads single elements of a storage; remembers the key of the batch it read last.
#[derive(Clone)]
pub struct Storage<'a> {
    values: &'a Values,
    skip: u64,
    transposed: bool,
    last: Option<(i64, BatchKey)>,
}

impl<'a> Storage<'a> {
    /// The storage behind `view`.
    pub fn new(values: &'a Values, view: &View) -> Storage<'a> {
        Storage { values, skip: view.skip, transposed: view.stored_transposed(), last: None }
    }

    /// Element `position` of the storage: what an index into memory finds there.
    #[inline]
    pub fn at(&mut self, position: u64) -> f32 {
        let v = self.values;
        let per = v.rows * v.cols;
        let (j, inner) = (position / per, position % per);
        if j < self.skip && v.constants {
            return leading_constant(j);
        }
        let index = if self.transposed { (inner % v.rows) * v.cols + inner / v.rows } else { inner };
        let batch = j as i64 - self.skip as i64;
        let key = match self.last {
            Some((b, key)) if b == batch => key,
            _ => {
                let key = v.key(batch);
                self.last = Some((batch, key));
                key
            }
        };
        v.with_key(key, batch, index)
    }
}

/// `source` is rows x cols; `out` becomes cols x rows.
pub fn transpose<T: Copy>(source: &[T], rows: usize, cols: usize, out: &mut [T]) {
    const TILE: usize = 16;
    for r0 in (0..rows).step_by(TILE) {
        for c0 in (0..cols).step_by(TILE) {
            for r in r0..(r0 + TILE).min(rows) {
                for c in c0..(c0 + TILE).min(cols) {
                    out[c * rows + r] = source[r * cols + c];
                }
            }
        }
    }
}

/// 32 random bits of element `index` (finalizer constants: C. Wellons, "hash-prospector", the two-round triple).
#[inline(always)]
fn word(key: BatchKey, index: u32) -> u32 {
    let mut x = index.wrapping_mul(0x9E37_79B1) ^ key.0[0];
    x ^= x >> 16;
    x = x.wrapping_mul(0x21F0_AAAD).wrapping_add(key.0[1]);
    x ^= x >> 15;
    x = x.wrapping_mul(0x735A_2D97);
    x ^ (x >> 15)
}

/// Random bits as a value of `dtype`.
#[inline(always)]
fn random(dtype: DType, word: u32) -> f32 {
    let float = |bits: u32| {
        let half = 1i32 << (bits - 1);
        let k = (word >> (32 - bits)) as i32 - half;
        let v = k as f32 * (1.0 / half as f32);
        if k == 0 { 0.5 } else { v }
    };
    match dtype {
        DType::F32 | DType::F64 => float(21),
        DType::F16 => float(11),
        DType::BF16 => float(8),
        DType::Bool => (word >> 31) as f32,
        DType::I8 | DType::U8 => (1 + (word >> 26)) as f32,
        DType::I16 | DType::U16 => (1 + (word >> 18)) as f32,
        DType::I32 | DType::U32 | DType::I64 | DType::U64 => (1 + (word >> 12)) as f32,
    }
}

fn fill_random(dtype: DType, key: BatchKey, out: &mut [f32]) {
    fill_strided(dtype, key, 0, 1, out);
}

fn fill_strided(dtype: DType, key: BatchKey, first: u32, step: u32, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, asked just above.
        unsafe { fill_strided_avx2(dtype, key, first, step, out) };
        return;
    }
    fill_strided_any(dtype, key, first, step, out);
}

/// The same loop with eight lanes; integer and exact float steps alone, so the same bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_strided_avx2(dtype: DType, key: BatchKey, first: u32, step: u32, out: &mut [f32]) {
    fill_strided_any(dtype, key, first, step, out);
}

#[inline(always)]
fn fill_strided_any(dtype: DType, key: BatchKey, first: u32, step: u32, out: &mut [f32]) {
    let at = |i: u32| word(key, first.wrapping_add(i.wrapping_mul(step)));
    // One loop a class of dtypes, so that each is vectorised.
    match dtype {
        DType::F32 | DType::F64 => each(out, |i| random(DType::F32, at(i))),
        DType::F16 => each(out, |i| random(DType::F16, at(i))),
        DType::BF16 => each(out, |i| random(DType::BF16, at(i))),
        other => each(out, |i| random(other, at(i))),
    }
}

#[inline(always)]
fn each(out: &mut [f32], f: impl Fn(u32) -> f32) {
    for (i, v) in out.iter_mut().enumerate() {
        *v = f(i as u32);
    }
}

/// `values` as elements of `dtype`, appended to `out`, little-endian. Every value must be exact in `dtype`.
pub fn encode(dtype: DType, values: &[f32], out: &mut [u8]) {
    fn put<const N: usize>(values: &[f32], out: &mut [u8], f: impl Fn(f32) -> [u8; N]) {
        for (v, slot) in values.iter().zip(out.chunks_exact_mut(N)) {
            slot.copy_from_slice(&f(*v));
        }
    }
    match dtype {
        DType::F32 => put(values, out, f32::to_le_bytes),
        DType::F64 => put(values, out, |v| f64::from(v).to_le_bytes()),
        DType::F16 => put(values, out, |v| f16::from_f32(v).to_le_bytes()),
        DType::BF16 => put(values, out, |v| bf16::from_f32(v).to_le_bytes()),
        DType::Bool => put(values, out, |v| [u8::from(v != 0.0)]),
        DType::I8 => put(values, out, |v| (v as i8).to_le_bytes()),
        DType::U8 => put(values, out, |v| (v as u8).to_le_bytes()),
        DType::I16 => put(values, out, |v| (v as i16).to_le_bytes()),
        DType::U16 => put(values, out, |v| (v as u16).to_le_bytes()),
        DType::I32 => put(values, out, |v| (v as i32).to_le_bytes()),
        DType::U32 => put(values, out, |v| (v as u32).to_le_bytes()),
        DType::I64 => put(values, out, |v| (v as i64).to_le_bytes()),
        DType::U64 => put(values, out, |v| (v as u64).to_le_bytes()),
    }
}

/// Float64 values as elements of `dtype`, rounded to the nearest; integers truncated.
pub fn encode_wide(dtype: DType, values: &[f64], out: &mut [u8]) {
    let size = dtype.size_bytes() as usize;
    for (v, slot) in values.iter().zip(out.chunks_exact_mut(size)) {
        match dtype {
            DType::F64 => slot.copy_from_slice(&v.to_le_bytes()),
            DType::F16 => slot.copy_from_slice(&f16::from_f64(*v).to_le_bytes()),
            DType::BF16 => slot.copy_from_slice(&bf16::from_f64(*v).to_le_bytes()),
            DType::I64 | DType::U64 => slot.copy_from_slice(&(*v as i64).to_le_bytes()),
            DType::I32 => slot.copy_from_slice(&(*v as i32).to_le_bytes()),
            _ => encode(dtype, &[*v as f32], slot),
        }
    }
}

/// Little-endian elements of `dtype` as `f64`; `i64` and `u64` beyond 2^53 are rounded.
pub fn decode(dtype: DType, bytes: &[u8], out: &mut Vec<f64>) {
    fn take<const N: usize>(bytes: &[u8], out: &mut Vec<f64>, f: impl Fn([u8; N]) -> f64) {
        let (chunks, _) = bytes.as_chunks::<N>();
        out.extend(chunks.iter().map(|c| f(*c)));
    }
    match dtype {
        DType::F32 => take(bytes, out, |b| f64::from(f32::from_le_bytes(b))),
        DType::F64 => take(bytes, out, f64::from_le_bytes),
        DType::F16 => take(bytes, out, |b| f16::from_le_bytes(b).to_f64()),
        DType::BF16 => take(bytes, out, |b| bf16::from_le_bytes(b).to_f64()),
        DType::Bool | DType::U8 => take(bytes, out, |b: [u8; 1]| f64::from(b[0])),
        DType::I8 => take(bytes, out, |b| f64::from(i8::from_le_bytes(b))),
        DType::I16 => take(bytes, out, |b| f64::from(i16::from_le_bytes(b))),
        DType::U16 => take(bytes, out, |b| f64::from(u16::from_le_bytes(b))),
        DType::I32 => take(bytes, out, |b| f64::from(i32::from_le_bytes(b))),
        DType::U32 => take(bytes, out, |b| f64::from(u32::from_le_bytes(b))),
        DType::I64 => take(bytes, out, |b| i64::from_le_bytes(b) as f64),
        DType::U64 => take(bytes, out, |b| u64::from_le_bytes(b) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, Layout};

    const SHAPE: Shape = Shape { m: 5, k: 3, n: 7 };

    #[test]
    fn a_value_depends_on_seed_operand_batch_and_index_alone() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I64, DType::Bool] {
            let v = Values::new(7, Kind::Random, dtype, Role::A, SHAPE, false);
            let mut whole = vec![0.0; 15];
            v.batch(3, &mut whole);
            for (i, &x) in whole.iter().enumerate() {
                assert_eq!(x, v.at(3, i as u64));
            }
            let other = Values::new(7, Kind::Random, dtype, Role::B, SHAPE, false);
            assert!((0..15).any(|i| other.at(3, i) != v.at(3, i)));
            assert!((0..15).any(|i| v.at(4, i) != v.at(3, i)));
        }
    }

    #[test]
    fn numbers_are_exact_in_their_dtype_within_one_and_never_zero() {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32] {
            let v = Values::new(1, Kind::Random, dtype, Role::A, Shape { m: 64, k: 64, n: 1 }, false);
            let mut values = vec![0.0; 4096];
            let (mut sum, size) = (0.0, dtype.size_bytes() as usize);
            for batch in 0..32 {
                v.batch(batch, &mut values);
                let mut bytes = vec![0u8; 4096 * size];
                encode(dtype, &values, &mut bytes);
                let mut back = Vec::new();
                decode(dtype, &bytes, &mut back);
                for (&x, &y) in values.iter().zip(&back) {
                    assert!(x != 0.0 && f64::from(x) == y, "{dtype} {x} {y}");
                    assert!(!dtype.is_float() || x.abs() <= 1.0);
                    sum += y;
                }
            }
            if dtype.is_float() {
                assert!((sum / 131_072.0).abs() < 0.01, "{dtype} mean {}", sum / 131_072.0);
            }
        }
    }

    #[test]
    fn the_vector_path_makes_the_bits_of_the_plain_one() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32] {
            let (mut fast, mut plain) = (vec![0.0; 1003], vec![0.0; 1003]);
            for key in 0..50 {
                let key = BatchKey([key * 77_777, key ^ 0xABCD]);
                fill_random(dtype, key, &mut fast);
                for (i, v) in plain.iter_mut().enumerate() {
                    *v = random(dtype, word(key, i as u32));
                }
                assert_eq!(fast, plain);
            }
        }
    }

    #[test]
    fn storages_hold_the_same_logical_values_in_every_layout() {
        for layout in Layout::ALL {
            for kind in [Kind::Random, Kind::ARc, Kind::BBatch] {
                let g = Geometry::new(SHAPE, layout, 4, 6);
                for view in [g.a, g.b] {
                    let v = Values::new(5, kind, DType::F32, view.role, SHAPE, layout == Layout::Offset);
                    for view in [view, view.transpose()] {
                        let mut storage = Storage::new(&v, &view);
                        for (r, c) in [(0, 0), (1, 2), (2, 1), (2, 2)] {
                            let (row, col) = if view.flipped { (c, r) } else { (r, c) };
                            let logical = v.at(2, row * v.cols + col);
                            assert_eq!(storage.at(view.position(2, r, c)), logical, "{layout} {kind:?}");
                        }
                    }
                    let mut whole = vec![0.0; view.per_batch() as usize];
                    let mut storage = Storage::new(&v, &view);
                    for j in 0..view.skip + 4 {
                        v.storage_batch(&view, j, &mut whole, &mut Vec::new());
                        for (i, &x) in whole.iter().enumerate() {
                            assert_eq!(
                                x,
                                storage.at(j * view.per_batch() + i as u64),
                                "{layout} {kind:?} {j}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_encoded_product_tells_what_was_read() {
        let shape = Shape { m: 4, k: 3, n: 6 };
        let a = Values::new(0, Kind::BRc, DType::F32, Role::A, shape, false);
        let b = Values::new(0, Kind::BRc, DType::F32, Role::B, shape, false);
        for m in 0..4u64 {
            for n in 0..6u64 {
                let out: f32 = (0..3).map(|k| a.at(9, m * 3 + k) * b.at(9, k * 6 + n)).sum();
                assert_eq!(out, ((m % 3) * 6 + n + 1) as f32);
            }
        }
    }
}
