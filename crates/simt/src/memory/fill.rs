//! What fresh memory holds.
//!
//! Every byte is a function of (seed, position), so it does not matter when it is produced. The hash is
//! a 32-bit finaliser (two multiplications and three shifts), which vectorises: fills are on the way of every
//! evaluation.
#![warn(clippy::arithmetic_side_effects)]

use assay_tensor::DType;
use half::{bf16, f16};

use crate::options::Fill;

/// How to fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: Fill,
    pub(crate) dtype: DType,
    pub(crate) seed: u32,
}

/// The seed of buffer number `index`.
pub(crate) fn seed_of(fill_seed: u64, index: u64) -> u32 {
    mix((fill_seed as u32) ^ mix((fill_seed >> 32) as u32 ^ 0x9e37_79b9)) ^ mix(index as u32 ^ 0x85eb_ca6b)
}

#[inline(always)]
fn mix(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// Uniform in [-1, 1) with 24 random bits.
#[inline(always)]
fn unit(x: u32) -> f32 {
    (x >> 8) as f32 * (1.0 / 8_388_608.0) - 1.0
}

impl Pattern {
    /// Fills `bytes`, which begin `from` bytes into the buffer.
    pub(crate) fn write(self, bytes: &mut [u8], from: u64) {
        match self.kind {
            Fill::Zeros => bytes.fill(0),
            Fill::Nan => bytes.fill(0xff),
            Fill::Noise | Fill::Previous => self.noise(bytes, from),
        }
    }

    fn noise(self, bytes: &mut [u8], from: u64) {
        // Sizes are powers of two: shifts and masks cannot go wrong.
        let size = self.dtype.size_bytes();
        let (shift, below) = (size.trailing_zeros(), size.wrapping_sub(1));
        let element = |i: u64| mix((i as u32) ^ mix(self.seed ^ ((i >> 32) as u32)));
        let first = from >> shift;
        let misaligned = from & below != 0;
        match self.dtype {
            DType::F32 if !misaligned => {
                // The seed part is constant unless the index passes 2^32 elements.
                let salt = mix(self.seed);
                let mut chunks = bytes.chunks_exact_mut(4);
                if first.saturating_add((chunks.len() as u64).saturating_add(1)) < 1 << 32 {
                    for (i, c) in (first as u32..=u32::MAX).zip(&mut chunks) {
                        c.copy_from_slice(&unit(mix(i ^ salt)).to_le_bytes());
                    }
                } else {
                    for (i, c) in (first..=u64::MAX).zip(&mut chunks) {
                        c.copy_from_slice(&unit(element(i)).to_le_bytes());
                    }
                }
                let i = first.saturating_add((bytes.len() / 4) as u64);
                let rest = bytes.chunks_exact_mut(4).into_remainder();
                let v = unit(element(i)).to_le_bytes();
                let n = rest.len();
                rest.copy_from_slice(&v[..n]);
            }
            _ => {
                let mut at = from;
                let mut rest = bytes;
                while !rest.is_empty() {
                    let v = self.element_bytes(element(at >> shift));
                    let skip = (at & below) as usize;
                    let n = (size as usize).saturating_sub(skip).min(rest.len());
                    let (head, tail) = rest.split_at_mut(n);
                    head.copy_from_slice(&v[skip..skip.saturating_add(n)]);
                    rest = tail;
                    at = at.saturating_add(n as u64);
                }
            }
        }
    }

    /// One element from its hash, little-endian in the first `size_bytes`.
    fn element_bytes(self, h: u32) -> [u8; 8] {
        let mut out = [0; 8];
        let mut put = |b: &[u8]| out[..b.len()].copy_from_slice(b);
        let u = unit(h);
        // -1, 0 or 1 for signed integers: noise that is still a small index.
        let small = i64::from(h % 3).wrapping_sub(1);
        match self.dtype {
            DType::F32 => put(&u.to_le_bytes()),
            DType::F64 => put(&f64::from(u).to_le_bytes()),
            DType::F16 => put(&f16::from_f32(u).to_le_bytes()),
            DType::BF16 => put(&bf16::from_f32(u).to_le_bytes()),
            DType::Bool | DType::U8 => put(&[(h & 1) as u8]),
            DType::I8 => put(&(small as i8).to_le_bytes()),
            DType::I16 => put(&(small as i16).to_le_bytes()),
            DType::U16 => put(&((h & 1) as u16).to_le_bytes()),
            DType::I32 => put(&(small as i32).to_le_bytes()),
            DType::U32 => put(&(h & 1).to_le_bytes()),
            DType::I64 => put(&small.to_le_bytes()),
            DType::U64 => put(&u64::from(h & 1).to_le_bytes()),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_finite_within_one_and_independent_of_how_it_is_cut() {
        for dtype in DType::ALL {
            let p = Pattern { kind: Fill::Noise, dtype, seed: seed_of(3, 1) };
            let mut whole = vec![0; 1003];
            p.write(&mut whole, 0);
            let mut parts = vec![0; 1003];
            let (a, b) = parts.split_at_mut(517);
            p.write(a, 0);
            p.write(b, 517);
            assert_eq!(whole, parts, "{dtype}");
        }
        let p = Pattern { kind: Fill::Noise, dtype: DType::F32, seed: seed_of(3, 1) };
        let mut b = vec![0; 40_000];
        p.write(&mut b, 0);
        let v: Vec<f32> = b.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
        assert!(v.iter().all(|x| x.abs() <= 1.0));
        let mean = v.iter().sum::<f32>() / v.len() as f32;
        assert!(mean.abs() < 0.02 && v.iter().any(|x| *x > 0.99) && v.iter().any(|x| *x < -0.99), "{mean}");
    }

    #[test]
    fn nan_fill_is_nan_in_every_float_type() {
        let mut b = [0u8; 8];
        Pattern { kind: Fill::Nan, dtype: DType::F64, seed: 0 }.write(&mut b, 0);
        assert!(f64::from_le_bytes(b).is_nan() && f32::from_le_bytes(b[..4].try_into().unwrap()).is_nan());
    }
}
