//! Matrix products of a warp: where the elements of a fragment lie, and what a product gives.
//!
//! **Layouts** are those that the PTX ISA documents for `mma` ("Matrix Fragments for mma.m16n8k16 …"). The layout of
//! a `wmma` fragment is left open there; here it is made of `mma` tiles, as processors from sm_80 on do: a 16x16x16
//! product is two of 16x8x16, 32x8 has two tiles of 16 rows, 8x32 is the transpose of 32x8. Where a fragment has more
//! registers than elements (`.f16`, of which every element is held by two threads) the tiles are repeated.
//!
//! **Numerics**, pinned: products are exact; for `.f32` accumulators they are added to `c` one after the other, k
//! ascending, each sum rounded to nearest even, so an element is a chain of `fma.rn.f32`. `.f16` results are computed
//! so from the widened `c` and rounded once at the end. `.tf32` operands lose their low 13 bits first. `.f64` is a
//! chain of `fma` in the instruction's rounding mode. Integer sums are exact, then wrapped or (`.satfinite`) clamped.
//! NaN results are canonical. A GPU adds groups of 4 to 16 products at once with truncated alignment, in an order that
//! it does not document, so results of float products differ in the last bits; integer and one-bit products agree.

use assay_ptx::{BoolOp, Fragment, Layout as Order, Shape, Ty};

use super::soft::{self, F32, Mode};
use crate::code::Slot;
use crate::cpu::{Simd, fma32, fma64};
use crate::handlers::alu::{f16_to_f32, f32_to_f16};
use crate::warp::LANES;

/// Most registers of a fragment.
pub(crate) const MAX_REGISTERS: usize = 8;
/// Most elements of the first, the second, and the result matrix.
const MAX_A: usize = 1024;
const MAX_B: usize = 512;
const MAX_C: usize = 256;

/// The registers of a fragment, `[register][lane]`, as bits.
pub(crate) type Words = [[u64; LANES]; MAX_REGISTERS];

/// A fragment: registers, and the place of each element in the row-major matrix.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) slots: Vec<Slot>,
    /// Element type; `.b1` elements are handled 32 at a time.
    pub(crate) ty: Ty,
    /// Elements in a register.
    pub(crate) per: usize,
    /// For `register * per + element`: the place in the matrix, by lane.
    pub(crate) at: Vec<[u16; LANES]>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

/// Bits of an element (of a word of 32 for `.b1`).
pub(crate) fn unit_bits(ty: Ty) -> u64 {
    if ty == Ty::B1 { 32 } else { ty.bits() }
}

/// Which product an instruction forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Accumulates in binary32.
    Single,
    /// Accumulates in binary64.
    Double(Mode),
    /// Integers, clamped at the end or not.
    Integer { clamp: bool },
    /// Population count of `and` or `xor`.
    Bits { xor: bool },
}

/// `d = a * b + c`.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// Independent products side by side (`mma.m8n8k4` of `.f16`: four).
    pub(crate) batches: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: Part,
    pub(crate) b: Part,
    pub(crate) c: Part,
    pub(crate) d: Part,
    pub(crate) arithmetic: Arithmetic,
}

/// What decides a fragment's layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub(crate) fragment: Fragment,
    pub(crate) shape: Shape,
    pub(crate) ty: Ty,
    pub(crate) wmma: bool,
    /// Order of the matrix, which matters to `mma.m8n8k4` of `.f16`.
    pub(crate) order: Order,
}

impl Which {
    /// True for the product of sm_70, which is four products of groups of eight threads.
    fn volta(self, half: bool) -> bool {
        !self.wmma && half && self.shape.m == 8 && self.shape.k == 4
    }

    /// The fragment in `slots`; `half` says that the product's inputs are `.f16`. `None` if their number is wrong.
    pub(crate) fn part(self, slots: Vec<Slot>, half: bool) -> Option<Part> {
        let (m, n) = (usize::from(self.shape.m), usize::from(self.shape.n));
        let words = if self.ty == Ty::B1 { 32 } else { 1 };
        let k = match self.fragment {
            Fragment::A | Fragment::B => usize::from(self.shape.k) / words,
            Fragment::C | Fragment::D => usize::from(self.shape.k),
        };
        let (rows, cols) = match self.fragment {
            Fragment::A => (m, k),
            Fragment::B => (k, n),
            Fragment::C | Fragment::D => (m, n),
        };
        let bits = unit_bits(self.ty) as usize;
        let per = (32 / bits).max(1);
        if slots.len() > MAX_REGISTERS {
            return None;
        }
        let batches = if self.volta(half) { 4 } else { 1 };
        let mut at = Vec::with_capacity(slots.len() * per);
        for register in 0..slots.len() {
            for element in 0..per {
                let mut places = [0u16; LANES];
                for (lane, place) in places.iter_mut().enumerate() {
                    let index = if batches == 4 {
                        let (row, col) = self.volta_place(lane, register * per + element);
                        ((lane / 4 % 4) * rows + row) * cols + col
                    } else {
                        let (row, col) = self.place(lane, register, element, per, (rows, cols))?;
                        row * cols + col
                    };
                    if index >= batches * rows * cols {
                        return None;
                    }
                    *place = index as u16;
                }
                at.push(places);
            }
        }
        Some(Part { slots, ty: self.ty, per, at, rows: rows * batches, cols })
    }

    /// Row and column of an element of a lane.
    fn place(
        self,
        lane: usize,
        register: usize,
        element: usize,
        per: usize,
        (rows, cols): (usize, usize),
    ) -> Option<(usize, usize)> {
        if !self.wmma {
            return Some(tile(self.fragment, rows, per, lane, register, element));
        }
        let (m, n) = (usize::from(self.shape.m), usize::from(self.shape.n));
        if m == 8 && n == 32 {
            // The transpose of 32x8: `a` is laid out as its `b`, `b` as its `a`.
            let fragment = match self.fragment {
                Fragment::A => Fragment::B,
                Fragment::B => Fragment::A,
                other => other,
            };
            let (row, col) = tiled(fragment, (cols, rows), per, lane, register, element);
            return Some((col, row));
        }
        Some(tiled(self.fragment, (rows, cols), per, lane, register, element))
    }

    /// PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
    fn volta_place(self, lane: usize, i: usize) -> (usize, usize) {
        let high = if lane >= 16 { 4 } else { 0 };
        let row = lane % 4;
        match (self.fragment, self.order) {
            (Fragment::A, Order::Row) => (row + high, i),
            (Fragment::A, Order::Col) => (i % 4 + high, row),
            (Fragment::B, Order::Row) => (row, i + high),
            (Fragment::B, Order::Col) => (i, row + high),
            (_, _) if self.ty == Ty::F16 => (row + high, i),
            (_, _) => ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)),
        }
    }
}

/// An element of a fragment of one `mma`, whose result has 8 or 16 rows and 8 columns.
fn tile(
    f: Fragment,
    rows: usize,
    per: usize,
    lane: usize,
    register: usize,
    element: usize,
) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    match f {
        Fragment::A if rows == 8 => (group, thread * per + element + 4 * per * register),
        Fragment::A => (group + 8 * (register & 1), thread * per + element + 4 * per * (register >> 1)),
        Fragment::B => (thread * per + element + 4 * per * register, group),
        Fragment::C | Fragment::D => {
            let i = register * per + element;
            (group + 8 * (i >> 1), thread * 2 + (i & 1))
        }
    }
}

/// An element of a fragment of several tiles, repeated if there are registers left.
fn tiled(
    f: Fragment,
    (rows, cols): (usize, usize),
    per: usize,
    lane: usize,
    register: usize,
    element: usize,
) -> (usize, usize) {
    let (tile_rows, tile_cols) = match f {
        Fragment::A => (rows.min(16), cols),
        Fragment::B => (rows, 8),
        Fragment::C | Fragment::D => (rows.min(16), 8),
    };
    let registers = (tile_rows * tile_cols / LANES / per).max(1);
    let tiles = rows * cols / (tile_rows * tile_cols);
    let register = register % (registers * tiles);
    let (number, register) = (register / registers, register % registers);
    let (row, col) = tile(f, tile_rows, per, lane, register, element);
    let across = cols / tile_cols;
    (row + number / across * tile_rows, col + number % across * tile_cols)
}

impl Part {
    /// Spreads registers over the matrix.
    #[inline(always)]
    fn spread<T: Copy>(&self, words: &Words, out: &mut [T], value: impl Fn(u64) -> T) {
        let bits = unit_bits(self.ty) as u32;
        for (register, word) in words.iter().enumerate().take(self.slots.len()) {
            for element in 0..self.per {
                let shift = bits * element as u32;
                let places = &self.at[register * self.per + element];
                for (w, at) in word.iter().zip(places) {
                    out[usize::from(*at)] = value(w >> shift);
                }
            }
        }
    }

    /// Registers from the matrix.
    #[inline(always)]
    fn gather<T: Copy>(&self, from: &[T], bits: impl Fn(T) -> u64) -> Words {
        let width = unit_bits(self.ty) as u32;
        let mut words = [[0; LANES]; MAX_REGISTERS];
        for (register, word) in words.iter_mut().enumerate().take(self.slots.len()) {
            for element in 0..self.per {
                let shift = width * element as u32;
                let places = &self.at[register * self.per + element];
                for (w, at) in word.iter_mut().zip(places) {
                    *w |= bits(from[usize::from(*at)]) << shift;
                }
            }
        }
        words
    }

    /// The matrix as bits of its elements, row by row.
    pub(crate) fn matrix(&self, words: &Words) -> Vec<u64> {
        let mut out = vec![0; self.rows * self.cols];
        let mask = super::mask(if self.ty == Ty::B1 { Ty::B32 } else { self.ty });
        self.spread(words, &mut out, |w| w & mask);
        out
    }

    /// Registers that hold the elements of a matrix, row by row.
    pub(crate) fn words(&self, matrix: &[u64]) -> Words {
        self.gather(matrix, |v| v)
    }

    #[inline(always)]
    fn floats(&self, words: &Words, out: &mut [f32]) {
        match self.ty {
            Ty::F16 => self.spread(words, out, |w| f16_to_f32(w as u32 & 0xffff)),
            Ty::Bf16 => self.spread(words, out, |w| f32::from_bits((w as u32) << 16)),
            Ty::Tf32 => self.spread(words, out, |w| tf32(w as u32)),
            Ty::E4m3 => self.spread(words, out, |w| single(soft::e4m3_to(F32, w))),
            Ty::E5m2 => {
                self.spread(words, out, |w| single(soft::convert(soft::E5M2, F32, Mode::Even, w & 0xff)))
            }
            _ => self.spread(words, out, |w| f32::from_bits(w as u32)),
        }
    }

    #[inline(always)]
    fn integers(&self, words: &Words, out: &mut [i32]) {
        match self.ty {
            Ty::S8 => self.spread(words, out, |w| i32::from(w as i8)),
            Ty::U8 => self.spread(words, out, |w| i32::from(w as u8)),
            Ty::S4 => self.spread(words, out, |w| i32::from((w as i8) << 4 >> 4)),
            Ty::U4 => self.spread(words, out, |w| (w & 15) as i32),
            _ => self.spread(words, out, |w| w as i32),
        }
    }
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The value of a `.tf32` operand: the low 13 bits do not count (a NaN stays one).
#[inline(always)]
fn tf32(bits: u32) -> f32 {
    let cut = bits & 0xffff_e000;
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { cut })
}

#[inline(always)]
fn canonical(x: f32) -> u32 {
    let b = x.to_bits();
    if b & 0x7fff_ffff > 0x7f80_0000 { F32.nan as u32 } else { b }
}

impl Product {
    /// The result's registers from those of the operands.
    #[inline(always)]
    pub(crate) fn evaluate<S: Simd>(&self, a: &Words, b: &Words, c: &Words) -> Words {
        match self.arithmetic {
            Arithmetic::Single => self.single::<S>(a, b, c),
            Arithmetic::Double(mode) => self.double::<S>(mode, a, b, c),
            Arithmetic::Integer { clamp } => self.integer(clamp, a, b, c),
            Arithmetic::Bits { xor } => self.bits(xor, a, b, c),
        }
    }

    #[inline(always)]
    fn single<S: Simd>(&self, a: &Words, b: &Words, c: &Words) -> Words {
        let (mut x, mut y, mut z) = ([0f32; MAX_A], [0f32; MAX_B], [0f32; MAX_C]);
        self.a.floats(a, &mut x);
        self.b.floats(b, &mut y);
        self.c.floats(c, &mut z);
        for batch in 0..self.batches {
            for row in batch * self.m..(batch + 1) * self.m {
                // Eight columns at a time: one vector register.
                for col in (0..self.n).step_by(8) {
                    let at = row * self.n + col;
                    let mut sum = [0f32; 8];
                    sum.copy_from_slice(&z[at..at + 8]);
                    for k in 0..self.k {
                        let v = x[row * self.k + k];
                        let from = (batch * self.k + k) * self.n + col;
                        let line = &y[from..from + 8];
                        for j in 0..8 {
                            sum[j] = fma32::<S>(v, line[j], sum[j]);
                        }
                    }
                    z[at..at + 8].copy_from_slice(&sum);
                }
            }
        }
        match self.d.ty {
            Ty::F16 => self.d.gather(&z, |v: f32| u64::from(f32_to_f16(v))),
            _ => self.d.gather(&z, |v: f32| u64::from(canonical(v))),
        }
    }

    #[inline(always)]
    fn double<S: Simd>(&self, mode: Mode, a: &Words, b: &Words, c: &Words) -> Words {
        let (mut x, mut y, mut z) = ([0u64; MAX_A], [0u64; MAX_B], [0u64; MAX_C]);
        self.a.spread(a, &mut x, |w| w);
        self.b.spread(b, &mut y, |w| w);
        self.c.spread(c, &mut z, |w| w);
        for row in 0..self.m {
            for col in 0..self.n {
                let mut sum = z[row * self.n + col];
                for k in 0..self.k {
                    let (v, w) = (x[row * self.k + k], y[k * self.n + col]);
                    sum = if mode == Mode::Even {
                        fma64::<S>(f64::from_bits(v), f64::from_bits(w), f64::from_bits(sum)).to_bits()
                    } else {
                        soft::fma(soft::F64, mode, v, w, sum)
                    };
                }
                z[row * self.n + col] = if soft::F64.is_nan(sum) { soft::F64.nan } else { sum };
            }
        }
        self.d.gather(&z, |v| v)
    }

    #[inline(always)]
    fn integer(&self, clamp: bool, a: &Words, b: &Words, c: &Words) -> Words {
        let (mut x, mut y, mut z) = ([0i32; MAX_A], [0i32; MAX_B], [0i32; MAX_C]);
        self.a.integers(a, &mut x);
        self.b.integers(b, &mut y);
        self.c.integers(c, &mut z);
        for row in 0..self.m {
            for col in 0..self.n {
                // 64 products of two bytes fit easily.
                let dot: i32 = (0..self.k).map(|k| x[row * self.k + k] * y[k * self.n + col]).sum();
                let z = &mut z[row * self.n + col];
                *z = if clamp { z.saturating_add(dot) } else { z.wrapping_add(dot) };
            }
        }
        self.d.gather(&z, |v: i32| u64::from(v as u32))
    }

    fn bits(&self, xor: bool, a: &Words, b: &Words, c: &Words) -> Words {
        let (mut x, mut y, mut z) = ([0u32; MAX_A], [0u32; MAX_B], [0u32; MAX_C]);
        self.a.spread(a, &mut x, |w| w as u32);
        self.b.spread(b, &mut y, |w| w as u32);
        self.c.spread(c, &mut z, |w| w as u32);
        for row in 0..self.m {
            for col in 0..self.n {
                let count: u32 = (0..self.k)
                    .map(|k| {
                        let (v, w) = (x[row * self.k + k], y[k * self.n + col]);
                        (if xor { v ^ w } else { v & w }).count_ones()
                    })
                    .sum();
                let z = &mut z[row * self.n + col];
                *z = z.wrapping_add(count);
            }
        }
        self.d.gather(&z, u64::from)
    }
}

/// The arithmetic of a product of elements of type `input`; `None` for what is not implemented.
pub(crate) fn arithmetic(input: Ty, mode: Mode, satfinite: bool, bits: Option<BoolOp>) -> Option<Arithmetic> {
    Some(match input {
        Ty::F16 | Ty::Bf16 | Ty::Tf32 | Ty::E4m3 | Ty::E5m2 if !satfinite => Arithmetic::Single,
        Ty::F64 if !satfinite => Arithmetic::Double(mode),
        Ty::S8 | Ty::U8 | Ty::S4 | Ty::U4 => Arithmetic::Integer { clamp: satfinite },
        Ty::B1 => Arithmetic::Bits { xor: bits? == BoolOp::Xor },
        _ => return None,
    })
}

/// Rows of an 8x8 matrix of 16-bit elements, and the registers of its fragment: lane `l` holds elements `2 * (l % 4)`
/// and the next of row `l / 4`. Source: PTX ISA, `ldmatrix`, `movmatrix`.
pub(crate) fn rows_to_lanes(rows: &[[u16; 8]; 8], transpose: bool) -> [u32; LANES] {
    std::array::from_fn(|lane| {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        let element = |c: usize| u32::from(if transpose { rows[c][row] } else { rows[row][c] });
        element(col) | element(col + 1) << 16
    })
}

/// The reverse of [`rows_to_lanes`].
pub(crate) fn lanes_to_rows(lanes: &[u32; LANES], transpose: bool) -> [[u16; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (lane, word) in lanes.iter().enumerate() {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        for (c, v) in [(col, *word as u16), (col + 1, (*word >> 16) as u16)] {
            if transpose {
                rows[c][row] = v;
            } else {
                rows[row][c] = v;
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Kind;

    fn shape(m: u16, n: u16, k: u16) -> Shape {
        Shape { m, n, k }
    }

    fn part(fragment: Fragment, shape: Shape, ty: Ty, registers: usize, wmma: bool) -> Part {
        let slot = Slot { at: 0, kind: Kind::W32, negated: false };
        let which = Which { fragment, shape, ty, wmma, order: Order::Row };
        which.part(vec![slot; registers], ty == Ty::F16).expect("a layout")
    }

    /// Every element of the matrix is held equally often.
    fn covers(p: &Part) {
        let mut count = vec![0usize; p.rows * p.cols];
        p.at.iter().flatten().for_each(|i| count[usize::from(*i)] += 1);
        let held = p.slots.len() * p.per * LANES;
        assert!(count.iter().all(|c| *c == held / count.len()), "{p:?}");
    }

    #[test]
    fn fragments_hold_every_element_equally_often() {
        use Fragment::{A, B, C};
        for (f, s, ty, registers, wmma) in [
            (A, shape(16, 8, 16), Ty::F16, 4, false),
            (B, shape(16, 8, 16), Ty::F16, 2, false),
            (C, shape(16, 8, 16), Ty::F16, 2, false),
            (C, shape(16, 8, 16), Ty::F32, 4, false),
            (A, shape(16, 8, 32), Ty::S8, 4, false),
            (B, shape(16, 8, 64), Ty::S4, 2, false),
            (A, shape(16, 8, 256), Ty::B1, 4, false),
            (A, shape(16, 8, 16), Ty::F64, 8, false),
            (A, shape(8, 8, 4), Ty::F64, 1, false),
            (A, shape(8, 8, 4), Ty::F16, 2, false),
            (C, shape(8, 8, 4), Ty::F16, 4, false),
            (A, shape(16, 16, 16), Ty::F16, 8, true),
            (B, shape(16, 16, 16), Ty::F16, 8, true),
            (A, shape(8, 32, 16), Ty::F16, 8, true),
            (B, shape(8, 32, 16), Ty::F16, 8, true),
            (B, shape(32, 8, 16), Ty::Bf16, 2, true),
            (A, shape(32, 8, 16), Ty::S8, 4, true),
            (C, shape(8, 32, 16), Ty::F32, 8, true),
            (C, shape(32, 8, 16), Ty::F16, 4, true),
            (A, shape(16, 16, 8), Ty::Tf32, 4, true),
            (B, shape(16, 16, 8), Ty::Tf32, 4, true),
        ] {
            covers(&part(f, s, ty, registers, wmma));
        }
    }

    #[test]
    fn layouts_are_those_of_the_manual() {
        // mma.m16n8k16, .f16: a4 and a5 of lane 5 are row 1, columns 10 and 11.
        let a = part(Fragment::A, shape(16, 8, 16), Ty::F16, 4, false);
        assert_eq!([a.at[4][5], a.at[5][5]], [16 + 10, 16 + 11]);
        // a2 of lane 31 is row 15, column 6.
        assert_eq!(a.at[2][31], 15 * 16 + 6);
        // b2 of lane 6 is row 12, column 1.
        let b = part(Fragment::B, shape(16, 8, 16), Ty::F16, 2, false);
        assert_eq!(b.at[2][6], 12 * 8 + 1);
        // c3 of lane 9 is row 10, column 3.
        let c = part(Fragment::C, shape(16, 8, 16), Ty::F32, 4, false);
        assert_eq!(c.at[3][9], 10 * 8 + 3);
        // mma.m16n8k8, .tf32: a1 of lane 5 is row 9, column 1; a2 row 1, column 5.
        let a = part(Fragment::A, shape(16, 8, 8), Ty::Tf32, 4, false);
        assert_eq!([a.at[1][5], a.at[2][5]], [9 * 8 + 1, 8 + 5]);
        // mma.m16n8k32, .s8: a8 of lane 5 is row 1, column 20.
        let a = part(Fragment::A, shape(16, 8, 32), Ty::S8, 4, false);
        assert_eq!(a.at[8][5], 32 + 20);
        // mma.m8n8k4, .f32 accumulators: c6 of lane 19 is in the first product, row 4 + 1 + 2, column 4 + 2.
        let c = Which {
            fragment: Fragment::C,
            shape: shape(8, 8, 4),
            ty: Ty::F32,
            wmma: false,
            order: Order::Row,
        };
        let c = c.part(vec![Slot { at: 0, kind: Kind::W32, negated: false }; 8], true).expect("a layout");
        assert_eq!(c.at[6][19], 7 * 8 + 6);
    }

    #[test]
    fn a_fragment_of_rows_comes_back() {
        let rows: [[u16; 8]; 8] = std::array::from_fn(|r| std::array::from_fn(|c| (r * 8 + c) as u16));
        for transpose in [false, true] {
            assert_eq!(lanes_to_rows(&rows_to_lanes(&rows, transpose), transpose), rows);
        }
        assert_eq!(rows_to_lanes(&rows, false)[5], 10 | 11 << 16);
        assert_eq!(rows_to_lanes(&rows, true)[5], 17 | 25 << 16);
    }
}
