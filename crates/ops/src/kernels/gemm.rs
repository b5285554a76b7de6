//! Matrix products over packed panels.
//!
//! `out[i][j] = sum over k of a[i][k] * b[k][j]`, each output in exactly the plan's order over `k`. A tile of rows and
//! columns is accumulated in registers; the columns of a tile are the vector lanes. Convolutions use the same loop
//! with a packing function that gathers their windows.

use crate::array::numel;
use crate::error::Fault;
use crate::order::{Plan, Sum, accumulate};
use crate::real::Real;
use crate::simd::{Kernel, MulAdd, dispatch};

/// Rows of a tile.
const ROWS: usize = 4;

/// The left matrix, packed in groups of [`ROWS`] rows: `data[group][k][row]`.
pub struct PackedRows<T> {
    rows: usize,
    terms: usize,
    data: Vec<T>,
}

impl<T: Real> PackedRows<T> {
    /// Packs `rows` by `terms` elements given by `at(row, k)`.
    ///
    /// # Errors
    /// A fault where they are too many.
    pub fn new(rows: usize, terms: usize, at: impl Fn(usize, usize) -> T) -> Result<Self, Fault> {
        let groups = rows.div_ceil(ROWS);
        let mut data = vec![T::ZERO; numel(&[groups, terms, ROWS])?];
        for i in 0..rows {
            let (group, r) = (i / ROWS, i % ROWS);
            let block = &mut data[group * terms * ROWS..][..terms * ROWS];
            for k in 0..terms {
                block[k * ROWS + r] = at(i, k);
            }
        }
        Ok(PackedRows { rows, terms, data })
    }
}

/// Columns of a tile for an element type: two AVX2 registers.
pub const fn tile_columns<T>() -> usize {
    64 / size_of::<T>()
}

/// Multiplies: `pack(j0, width, columns, panel)` writes `b[k][j0 + j]` to `panel[k * columns + j]` for `j < width`
/// (whatever is left in the other lanes is computed with and dropped), `store(i, j0, values)` takes finished outputs
/// `out[i][j0..]`.
pub fn multiply<T: Real>(
    fma: bool,
    plan: &Plan,
    a: &PackedRows<T>,
    columns: usize,
    pack: impl FnMut(usize, usize, usize, &mut [T]),
    store: impl FnMut(usize, usize, &[T]),
) -> Result<(), Fault> {
    numel(&[a.terms, tile_columns::<T>()])?;
    if tile_columns::<T>() == 16 {
        dispatch(fma, Tiles::<T, _, _, 16> { plan, a, columns, pack, store });
    } else {
        dispatch(fma, Tiles::<T, _, _, 8> { plan, a, columns, pack, store });
    }
    Ok(())
}

struct Tiles<'a, T, P, S, const N: usize> {
    plan: &'a Plan,
    a: &'a PackedRows<T>,
    columns: usize,
    pack: P,
    store: S,
}

impl<T: Real, P, S, const N: usize> Kernel for Tiles<'_, T, P, S, N>
where
    P: FnMut(usize, usize, usize, &mut [T]),
    S: FnMut(usize, usize, &[T]),
{
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(mut self) {
        let terms = self.a.terms;
        let mut panel = vec![T::ZERO; terms * N];
        let mut j0 = 0;
        while j0 < self.columns {
            let width = N.min(self.columns - j0);
            (self.pack)(j0, width, N, &mut panel);
            for (group, i0) in (0..self.a.rows).step_by(ROWS).enumerate() {
                let block = &self.a.data[group * terms * ROWS..][..terms * ROWS];
                let rows = ROWS.min(self.a.rows - i0);
                if rows == 1 {
                    let acc = accumulate::<T, Sum, 1, N>(self.plan, |k, acc| {
                        let b: &[T] = &panel[k * N..k * N + N];
                        let a = block[k * ROWS];
                        for j in 0..N {
                            acc[0][j] = M::mul_add(a, b[j], acc[0][j]);
                        }
                    });
                    (self.store)(i0, j0, &acc[0][..width]);
                } else {
                    let acc = accumulate::<T, Sum, ROWS, N>(self.plan, |k, acc| {
                        let b: &[T] = &panel[k * N..k * N + N];
                        let a: &[T] = &block[k * ROWS..k * ROWS + ROWS];
                        for r in 0..ROWS {
                            for j in 0..N {
                                acc[r][j] = M::mul_add(a[r], b[j], acc[r][j]);
                            }
                        }
                    });
                    for (r, row) in acc.iter().enumerate().take(rows) {
                        (self.store)(i0 + r, j0, &row[..width]);
                    }
                }
            }
            j0 += N;
        }
    }
}

/// A matrix in memory: element `(i, j)` stands at `i * row + j * column`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Distance of two rows.
    pub row: usize,
    /// Distance of two columns.
    pub column: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A row-major matrix with that many columns.
    pub fn rows(data: &'a [T], columns: usize) -> Self {
        Matrix { data, row: columns, column: 1 }
    }

    /// The transpose.
    pub fn t(self) -> Self {
        Matrix { data: self.data, row: self.column, column: self.row }
    }
}

/// `a` (`m` by `k`) times `b` (`k` by `n`) into the row-major `out` (`m` by `n`).
///
/// # Errors
/// A fault where packed copies would be too large.
pub fn matmul<T: Real>(
    fma: bool,
    plan: &Plan,
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
) -> Result<(), Fault> {
    // Lanes are columns: with few of them the transposed product, which multiplies the same pairs in the same order,
    // fills the lanes better.
    if n < tile_columns::<T>() && m > n {
        let packed = PackedRows::new(n, k, |j, k| b.data[k * b.row + j * b.column])?;
        return multiply(fma, plan, &packed, m, packer(a.t(), k), |j, i0, v| {
            for (i, &x) in v.iter().enumerate() {
                out[(i0 + i) * n + j] = x;
            }
        });
    }
    let packed = PackedRows::new(m, k, |i, k| a.data[i * a.row + k * a.column])?;
    multiply(fma, plan, &packed, n, packer(b, k), |i, j0, v| out[i * n + j0..][..v.len()].copy_from_slice(v))
}

fn packer<T: Real>(b: Matrix<'_, T>, terms: usize) -> impl FnMut(usize, usize, usize, &mut [T]) + '_ {
    move |j0, width, columns, panel| {
        if b.column == 1 {
            for k in 0..terms {
                panel[k * columns..][..width].copy_from_slice(&b.data[k * b.row + j0..][..width]);
            }
        } else {
            for j in 0..width {
                let from = (j0 + j) * b.column;
                for k in 0..terms {
                    panel[k * columns + j] = b.data[from + k * b.row];
                }
            }
        }
    }
}
