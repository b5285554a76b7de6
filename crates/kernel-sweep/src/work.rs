//! The operations: their tensors, what every output element is in terms of input elements, and the inputs as functions
//! of the index.
//!
//! | operation | tensors | extents | out |
//! |---|---|---|---|
//! | `copy` | `x[N]`, `out[N]` | `N` | `out[i] = x[i]` |
//! | `transpose` | `x[R,C]`, `out[C,R]` | `R`, `C` | `out[c,r] = x[r,c]` |
//! | `gather` | `x[R,D]`, `index[N]`, `out[N,D]` | `R`, `N`, `D` | `out[n,d] = x[index[n],d]` |
//! | `bmm` | `a[B,M,K]`, `b[B,K,N]`, `out[B,M,N]` | `B`, `M`, `K`, `N` | `out[b] = a[b] @ b[b]` |

use std::sync::Arc;

use assay_simt::Generated;
use assay_tensor::DType;
use half::{bf16, f16};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Batched matrix product.
    Bmm,
    /// Matrix transpose.
    Transpose,
    /// Rows by number.
    Gather,
    /// Element by element.
    Copy,
}

impl Op {
    /// Every operation.
    pub const ALL: [Op; 4] = [Op::Bmm, Op::Transpose, Op::Gather, Op::Copy];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Op::Bmm => "bmm",
            Op::Transpose => "transpose",
            Op::Gather => "gather",
            Op::Copy => "copy",
        }
    }

    /// The operation of that name.
    pub fn parse(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|o| o.name() == name)
    }

    /// The inputs, in order; the output is `out`.
    pub fn inputs(self) -> &'static [&'static str] {
        match self {
            Op::Bmm => &["a", "b"],
            Op::Transpose | Op::Copy => &["x"],
            Op::Gather => &["x", "index"],
        }
    }

    /// Names of the extents that `launch` may take.
    pub fn extents(self) -> &'static [&'static str] {
        match self {
            Op::Bmm => &["B", "M", "K", "N"],
            Op::Transpose => &["R", "C"],
            Op::Gather => &["R", "N", "D"],
            Op::Copy => &["N"],
        }
    }

    /// The word for one step of a series.
    pub fn step(self) -> &'static str {
        match self {
            Op::Bmm => "batch",
            Op::Transpose | Op::Gather => "row",
            Op::Copy => "element",
        }
    }
}

/// What a series keeps fixed while one extent grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Family {
    /// The operation.
    pub op: Op,
    /// Element type of all tensors but `index`.
    pub dtype: DType,
    /// Element type of `index`; of no meaning elsewhere.
    pub index_dtype: DType,
    /// The tensor that crosses the boundaries.
    pub cross: &'static str,
    /// The extents in the order of [`Op::extents`]; that of `grows` is ignored.
    pub fixed: Vec<u64>,
    /// Which of them grows.
    pub grows: usize,
}

impl Family {
    /// The work at a size.
    pub fn at(&self, size: u64) -> Work {
        let mut extents = self.fixed.clone();
        if let Some(e) = extents.get_mut(self.grows) {
            *e = size;
        }
        Work { family: self.clone(), extents }
    }

    /// Elements of the crossing tensor for each step of the extent that grows.
    pub fn per_step(&self) -> u64 {
        let one = self.at(1);
        one.tensor(self.cross).map_or(1, |t| t.elements()).max(1)
    }

    /// The series' name: crossing tensor and fixed extents.
    pub fn shape_id(&self) -> String {
        let fixed: Vec<String> = (self.op.extents().iter().zip(&self.fixed).enumerate())
            .filter(|(i, _)| *i != self.grows)
            .map(|(_, (n, v))| format!("{n}={v}"))
            .collect();
        if fixed.is_empty() { self.cross.to_owned() } else { format!("{} {}", self.cross, fixed.join(",")) }
    }
}

/// A tensor's place in an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
}

impl TensorSpec {
    /// Elements; extents are checked to be small enough when a plan is made.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, d| n.saturating_mul(*d))
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.dtype.size_bytes())
    }
}

/// An operation at its extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// What is fixed.
    pub family: Family,
    /// Extents in the order of [`Op::extents`].
    pub extents: Vec<u64>,
}

impl Work {
    fn e(&self, k: usize) -> u64 {
        self.extents.get(k).copied().unwrap_or(1)
    }

    /// The tensors, inputs first, the output last.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let dtype = self.family.dtype;
        let t = |name, shape: &[u64]| TensorSpec { name, dtype, shape: shape.to_vec() };
        match self.family.op {
            Op::Copy => vec![t("x", &[self.e(0)]), t("out", &[self.e(0)])],
            Op::Transpose => vec![t("x", &[self.e(0), self.e(1)]), t("out", &[self.e(1), self.e(0)])],
            Op::Gather => vec![
                t("x", &[self.e(0), self.e(2)]),
                TensorSpec { name: "index", dtype: self.family.index_dtype, shape: vec![self.e(1)] },
                t("out", &[self.e(1), self.e(2)]),
            ],
            Op::Bmm => vec![
                t("a", &[self.e(0), self.e(1), self.e(2)]),
                t("b", &[self.e(0), self.e(2), self.e(3)]),
                t("out", &[self.e(0), self.e(1), self.e(3)]),
            ],
        }
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<TensorSpec> {
        self.tensors().into_iter().find(|t| t.name == name)
    }

    /// Elements of the output.
    pub fn output_elements(&self) -> u64 {
        self.tensor("out").map_or(0, |t| t.elements())
    }

    /// Elements of the output's innermost dimensions that one step holds: a row, a matrix, an element.
    pub fn row_of(&self, operand: &str) -> u64 {
        match (self.family.op, operand) {
            (Op::Bmm, _) => {
                let t = self.tensor(operand);
                t.map_or(1, |t| t.shape.iter().skip(1).fold(1, |n: u64, d| n.saturating_mul(*d)))
            }
            (Op::Copy, _) => 1,
            (_, name) => self.tensor(name).and_then(|t| t.shape.last().copied()).unwrap_or(1),
        }
    }

    /// Element `t` of the output, in float64, where `at(operand, i)` gives element `i` of an input; `None` where that
    /// does. The order of the operands is [`Op::inputs`]'.
    pub fn value(&self, t: u64, at: &mut dyn FnMut(usize, u64) -> Option<f64>) -> Option<f64> {
        match self.family.op {
            Op::Copy => at(0, t),
            Op::Transpose => {
                let (rows, cols) = (self.e(0).max(1), self.e(1));
                at(0, t % rows * cols + t / rows)
            }
            Op::Gather => {
                let dim = self.e(2).max(1);
                let row = at(1, t / dim)?;
                at(0, row as u64 * dim + t % dim)
            }
            Op::Bmm => {
                let (m, k, n) = (self.e(1).max(1), self.e(2), self.e(3).max(1));
                let (batch, row, col) = (t / (m * n), t / n % m, t % n);
                let mut sum = 0.0;
                for j in 0..k {
                    sum += at(0, (batch * m + row) * k + j)? * at(1, (batch * k + j) * n + col)?;
                }
                Some(sum)
            }
        }
    }

    /// Rows of `x` that a gather asks for besides random ones: the ends, and both sides of every boundary that a row
    /// begins at or spans.
    fn telling_rows(&self) -> Vec<u64> {
        let (rows, dim) = (self.e(0), self.e(2).max(1));
        let mut out: Vec<u64> = (0..4).filter_map(|k| rows.checked_sub(k + 1)).chain(0..2).collect();
        for boundary in [1u64 << 31, 1 << 32, (1 << 32) / self.family.dtype.size_bytes()] {
            let row = boundary / dim;
            out.extend([row.saturating_sub(1), row, row + 1].into_iter().filter(|r| *r < rows));
        }
        out.dedup();
        out
    }
}

/// The inputs of a work and a seed, as functions of the index.
#[derive(Clone, Debug)]
pub struct Inputs {
    work: Work,
    seed: u64,
    rows: Arc<[u64]>,
}

/// Scrambles 64 bits (the finaliser of SplitMix64; see `SOURCES.md`).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Inputs {
    /// The inputs of `work`.
    pub fn new(work: &Work, seed: u64) -> Inputs {
        let rows = if work.family.op == Op::Gather { work.telling_rows() } else { Vec::new() };
        Inputs { work: work.clone(), seed, rows: rows.into() }
    }

    fn hash(&self, operand: usize, i: u64) -> u64 {
        let stream = mix(self.seed.wrapping_mul(8).wrapping_add(operand as u64).wrapping_add(1));
        mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream)
    }

    /// Element `i` of an input as its dtype holds it: in (-1, 1), never zero; of `index` a row of `x`, every second one
    /// at an end of it or beside a boundary.
    pub fn at(&self, operand: usize, i: u64) -> f64 {
        let h = self.hash(operand, i);
        if self.work.family.op == Op::Gather && operand == 1 {
            let row = if i.is_multiple_of(2) {
                self.rows.get((i / 2 % self.rows.len().max(1) as u64) as usize).copied().unwrap_or(0)
            } else {
                h % self.work.e(0).max(1)
            };
            return row as f64;
        }
        // 24 bits and a half: an odd multiple of 2^-24.
        let v = ((h >> 40) as f64 + 0.5) / f64::from(1 << 23) - 1.0;
        match self.work.family.dtype {
            DType::F16 => f64::from(f16::from_f64(v)),
            DType::BF16 => f64::from(bf16::from_f64(v)),
            DType::F32 => f64::from(v as f32),
            _ => v,
        }
    }

    /// Element `t` of the output.
    pub fn output(&self, t: u64) -> f64 {
        self.work.value(t, &mut |o, i| Some(self.at(o, i))).unwrap_or(f64::NAN)
    }

    /// An input for the device, from its element `from` on.
    pub fn generated(&self, operand: usize, dtype: DType, from: u64) -> Generated {
        let me = self.clone();
        let size = dtype.size_bytes() as usize;
        Generated::from_fn(move |first, out: &mut [u8]| {
            for (i, place) in (from + first..).zip(out.chunks_exact_mut(size)) {
                assay_tensor::tensor::write_element(dtype, me.at(operand, i), place);
            }
        })
    }
}

/// A float element from its bytes.
pub fn decode(dtype: DType, b: &[u8; 8]) -> f64 {
    match dtype {
        DType::F16 => f64::from(f16::from_le_bytes([b[0], b[1]])),
        DType::BF16 => f64::from(bf16::from_le_bytes([b[0], b[1]])),
        DType::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        _ => f64::from_le_bytes(*b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(op: Op, cross: &'static str, fixed: &[u64], grows: usize) -> Family {
        Family { op, dtype: DType::F32, index_dtype: DType::I64, cross, fixed: fixed.to_vec(), grows }
    }

    #[test]
    fn every_output_element_is_made_of_the_inputs_that_the_definition_names() {
        let read = |w: &Work, t: u64| {
            let mut seen = Vec::new();
            w.value(t, &mut |o, i| {
                seen.push((o, i));
                Some(if o == 1 && w.family.op == Op::Gather { 3.0 } else { 1.0 })
            });
            seen
        };
        assert_eq!(read(&family(Op::Copy, "x", &[0], 0).at(9), 7), [(0, 7)]);
        // Column 2, row 1 of 5 rows of 4.
        assert_eq!(read(&family(Op::Transpose, "x", &[0, 4], 0).at(5), 2 * 5 + 1), [(0, 4 + 2)]);
        assert_eq!(read(&family(Op::Gather, "x", &[0, 6, 10], 0).at(8), 23), [(1, 2), (0, 33)]);
        // Batch 1, row 1, column 0 of 2 x 2, over 3.
        let bmm = family(Op::Bmm, "out", &[0, 2, 3, 2], 0).at(2);
        assert_eq!(read(&bmm, 6), [(0, 9), (1, 6), (0, 10), (1, 8), (0, 11), (1, 10)]);
    }

    #[test]
    fn values_are_never_zero_and_differ_2_to_the_31_and_32_further() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
            let f = Family { dtype, ..family(Op::Copy, "x", &[0], 0) };
            let inputs = Inputs::new(&f.at(1 << 33), 0);
            let mut same = 0;
            for i in 0..2000u64 {
                let v = inputs.at(0, i);
                assert!(v != 0.0 && v.abs() <= 1.0, "{dtype} {i}: {v}");
                same +=
                    u32::from(inputs.at(0, i + (1 << 31)) == v) + u32::from(inputs.at(0, i + (1 << 32)) == v);
            }
            assert!(same < if dtype == DType::BF16 { 100 } else { 10 }, "{dtype}: {same}");
        }
    }

    #[test]
    fn a_gather_asks_for_the_last_row_and_for_both_sides_of_a_boundary() {
        let w = family(Op::Gather, "x", &[0, 100, 1024], 0).at((1 << 22) + 3);
        let inputs = Inputs::new(&w, 1);
        let rows: Vec<u64> = (0..100).map(|i| inputs.at(1, i) as u64).collect();
        for row in [(1 << 22) + 2, 1 << 22, (1 << 22) - 1, 1 << 21, (1 << 21) - 1, 0] {
            assert!(rows.contains(&row), "{row}");
        }
        assert!(rows.iter().all(|r| *r < (1 << 22) + 3));
    }

    #[test]
    fn the_device_sees_the_values_of_the_reference() {
        let w = family(Op::Copy, "x", &[0], 0).at(1 << 33);
        let inputs = Inputs::new(&w, 2);
        let mut bytes = [0; 16];
        inputs.generated(0, DType::F32, 1 << 32).fill(0, &mut bytes);
        for (i, b) in ((1u64 << 32)..).zip(bytes.chunks(4)) {
            let mut word = [0; 8];
            word[..4].copy_from_slice(b);
            assert_eq!(decode(DType::F32, &word), inputs.at(0, i));
        }
    }
}
