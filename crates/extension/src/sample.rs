//! Launches of which a sample of the blocks runs, and what stands where the others would have written.
//!
//! What no block that ran has written is not known. [`Poison`] takes its place, in every buffer that such a launch wrote
//! to, so that whatever is computed from it afterwards, by kernels or by PyTorch, differs from poison to poison: a value
//! that is the same bit by bit under all three came from blocks that ran.

use std::collections::BTreeSet;

use assay_tensor::DType;
use half::{bf16, f16};

/// Elements after which a poison repeats: a prime, so that rows of any usual length differ.
const PERIOD: usize = 61;

/// What stands in place of a value that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// One pattern for all elements: for floating-point a NaN that no arithmetic makes.
    Nan,
    /// Large positive numbers.
    Large,
    /// Large negative ones, of other magnitudes.
    Negative,
}

impl Poison {
    /// All of them: what is the same under each is known.
    pub const ALL: [Poison; 3] = [Poison::Nan, Poison::Large, Poison::Negative];

    /// Element `i` of the pattern, as the first bytes of the array.
    fn element(self, dtype: DType, i: usize) -> [u8; 8] {
        let mut out = [0u8; 8];
        let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
        // From 1 to 2, other ones for each sign.
        let part = match self {
            Poison::Nan => 1.0,
            Poison::Large => 1.0 + i as f64 / PERIOD as f64,
            Poison::Negative => -(1.0 + (PERIOD - i) as f64 / (PERIOD + 3) as f64),
        };
        let whole = |most: i64| match self {
            Poison::Nan => most / 3,
            Poison::Large => most - i as i64,
            Poison::Negative => -most / 2 + 2 * i as i64,
        };
        let nan = self == Poison::Nan;
        match dtype {
            DType::F64 if nan => put(&0x7ffc_a5a5_a5a5_a5a5u64.to_le_bytes()),
            DType::F64 => put(&(part * 1e15).to_le_bytes()),
            DType::F32 if nan => put(&0x7fe5_a5a5u32.to_le_bytes()),
            DType::F32 => put(&((part * 1e15) as f32).to_le_bytes()),
            DType::F16 if nan => put(&0x7fa5u16.to_le_bytes()),
            DType::F16 => put(&f16::from_f64(part * 2e4).to_le_bytes()),
            DType::BF16 if nan => put(&0x7fe5u16.to_le_bytes()),
            DType::BF16 => put(&bf16::from_f64(part * 1e15).to_le_bytes()),
            DType::Bool => put(&[match self {
                Poison::Nan => u8::from(i % 2 == 1),
                Poison::Large => 1,
                Poison::Negative => 0,
            }]),
            DType::I8 | DType::U8 => put(&whole(0x7f).to_le_bytes()[..1]),
            DType::I16 | DType::U16 => put(&whole(0x7fff).to_le_bytes()[..2]),
            DType::I32 | DType::U32 => put(&whole(0x7fff_ffff).to_le_bytes()[..4]),
            DType::I64 | DType::U64 => put(&whole(0x7fff_ffff_ffff).to_le_bytes()),
        }
        out
    }

    /// Overwrites `bytes`, which lie `from` bytes into elements of a dtype.
    pub fn fill(self, dtype: DType, from: u64, bytes: &mut [u8]) {
        let size = dtype.size_bytes() as usize;
        let pattern: Vec<u8> =
            (0..PERIOD).flat_map(|i| self.element(dtype, i)[..size].to_vec()).collect::<Vec<u8>>();
        let mut at = (from % pattern.len() as u64) as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let n = (pattern.len() - at).min(rest.len());
            let (head, tail) = rest.split_at_mut(n);
            head.copy_from_slice(&pattern[at..at + n]);
            (rest, at) = (tail, 0);
        }
    }

    /// Is an element of a floating-point dtype [`Poison::Nan`] as it was put there?
    pub fn is_nan(dtype: DType, element: &[u8]) -> bool {
        dtype.is_float() && element == &Poison::Nan.element(dtype, 0)[..element.len().min(8)]
    }
}

/// How launches are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Seed of the random blocks.
    pub seed: u64,
    /// Random blocks of a launch, beside the first and last ones.
    pub random: u64,
    /// Launches that run whole, by number; the first of the pass is 0.
    pub whole: BTreeSet<u64>,
    /// What takes the place of what is not known.
    pub poison: Poison,
    /// The number of the next launch.
    pub next: u64,
    /// Launches of which a sample ran.
    pub sampled: u64,
}

impl Sample {
    /// A sample of every launch that `whole` does not name.
    pub fn new(seed: u64, random: u64, whole: BTreeSet<u64>, poison: Poison) -> Sample {
        Sample { seed, random, whole, poison, next: 0, sampled: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_differs_between_the_poisons_and_a_run_begins_anywhere() {
        for dtype in DType::ALL {
            let size = dtype.size_bytes() as usize;
            let all: Vec<Vec<u8>> = Poison::ALL
                .iter()
                .map(|p| {
                    let mut bytes = vec![0; size * 200];
                    p.fill(dtype, 0, &mut bytes);
                    let mut part = vec![0; size * 100];
                    p.fill(dtype, (size * 70 + 1) as u64, &mut part);
                    assert_eq!(part, bytes[size * 70 + 1..size * 170 + 1]);
                    bytes
                })
                .collect();
            for i in 0..200 {
                let of = |k: usize| &all[k][i * size..(i + 1) * size];
                assert!(of(0) != of(1) || of(0) != of(2), "{dtype:?} {i}");
                assert_ne!(of(1), of(2), "{dtype:?} {i}");
                assert_eq!(Poison::is_nan(dtype, of(0)), dtype.is_float());
                assert!(!Poison::is_nan(dtype, of(1)) && !Poison::is_nan(dtype, of(2)));
            }
        }
    }
}
