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

/// Packs the columns from `j0`, `width` of them, into a panel of so many columns.
pub type Pack<'a, T> = &'a mut dyn FnMut(usize, usize, usize, &mut [T]);
/// Takes finished outputs of a row from column `j0`.
pub type Store<'a, T> = &'a mut dyn FnMut(usize, usize, &[T]);

/// Multiplies: `pack(j0, width, columns, panel)` writes `b[k][j0 + j]` to `panel[k * columns + j]` for `j < width`
/// (whatever is left in the other lanes is computed with and dropped), `store(i, j0, values)` takes finished outputs
/// `out[i][j0..]`.
pub fn multiply<T: Real>(
    fma: bool,
    plan: &Plan,
    a: &PackedRows<T>,
    columns: usize,
    // Not generic: each is called once per tile, and every instance would compile the tile loops anew.
    pack: Pack<'_, T>,
    store: Store<'_, T>,
) -> Result<(), Fault> {
    numel(&[a.terms, tile_columns::<T>()])?;
    if tile_columns::<T>() == 16 {
        dispatch(fma, Tiles::<T, 16> { plan, a, columns, pack, store });
    } else {
        dispatch(fma, Tiles::<T, 8> { plan, a, columns, pack, store });
    }
    Ok(())
}

struct Tiles<'a, T, const N: usize> {
    plan: &'a Plan,
    a: &'a PackedRows<T>,
    columns: usize,
    pack: Pack<'a, T>,
    store: Store<'a, T>,
}

impl<T: Real, const N: usize> Kernel for Tiles<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(self) {
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
    // A matrix in contiguous rows times a vector: packing would cost as much as the product.
    if n == 1 && a.column == 1 && b.row == 1 {
        dispatch(
            fma,
            Rows { plan, matrix: a.data, distance: a.row, vector: b.data, terms: k, out: &mut out[..m] },
        );
        return Ok(());
    }
    if m == 1 && b.row == 1 && a.column == 1 {
        dispatch(
            fma,
            Rows { plan, matrix: b.data, distance: b.column, vector: a.data, terms: k, out: &mut out[..n] },
        );
        return Ok(());
    }
    // Lanes are columns: with few of them the transposed product, which multiplies the same pairs in the same order,
    // fills the lanes better.
    if n < tile_columns::<T>() && m > n {
        let packed = PackedRows::new(n, k, |j, k| b.data[k * b.row + j * b.column])?;
        return multiply(fma, plan, &packed, m, &mut packer(a.t(), k), &mut |j, i0, v| {
            for (i, &x) in v.iter().enumerate() {
                out[(i0 + i) * n + j] = x;
            }
        });
    }
    let packed = PackedRows::new(m, k, |i, k| a.data[i * a.row + k * a.column])?;
    multiply(fma, plan, &packed, n, &mut packer(b, k), &mut |i, j0, v| {
        out[i * n + j0..][..v.len()].copy_from_slice(v);
    })
}

/// One dot product per contiguous row; the rows of a group are the lanes.
struct Rows<'a, T> {
    plan: &'a Plan,
    matrix: &'a [T],
    distance: usize,
    vector: &'a [T],
    terms: usize,
    out: &'a mut [T],
}

impl<T: Real> Rows<'_, T> {
    #[inline(always)]
    fn rows<M: MulAdd, const N: usize>(&mut self, row: usize) {
        let rows: [&[T]; N] =
            std::array::from_fn(|r| &self.matrix[(row + r) * self.distance..][..self.terms]);
        let vector = &self.vector[..self.terms];
        let acc = accumulate::<T, Sum, 1, N>(self.plan, |k, acc| {
            for r in 0..N {
                acc[0][r] = M::mul_add(rows[r][k], vector[k], acc[0][r]);
            }
        });
        self.out[row..row + N].copy_from_slice(&acc[0]);
    }
}

impl<T: Real> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<M: MulAdd>(mut self) {
        let rows = self.out.len();
        let mut row = 0;
        while row + 4 <= rows {
            self.rows::<M, 4>(row);
            row += 4;
        }
        while row < rows {
            self.rows::<M, 1>(row);
            row += 1;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Order;

    const ORDERS: [Order; 6] = [
        Order::Sequential,
        Order::Reversed,
        Order::Pairwise,
        Order::Blocked(5),
        Order::SplitK(3),
        Order::Interleaved(4),
    ];

    /// One output, term by term with the software's fused multiply-add.
    fn by_hand(plan: &Plan, fma: bool, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
        plan.fold(
            |run| {
                let (mut acc, mut k) = (0.0f32, run.start);
                for _ in 0..run.len {
                    acc = if fma { libm::fmaf(a(k), b(k), acc) } else { acc + a(k) * b(k) };
                    k = k.wrapping_add(run.step);
                }
                acc
            },
            |x, y| x + y,
        )
        .unwrap()
    }

    #[test]
    fn every_output_is_accumulated_in_exactly_the_stated_order() {
        let value = |i: usize| ((i * 2_654_435_761) % 4_294_967_296) as f32 / 4_294_967_296.0 - 0.5;
        for [m, k, n] in
            [[5, 37, 19], [1, 64, 33], [9, 21, 1], [13, 0, 4], [4, 8, 16], [1, 50, 1], [40, 17, 3]]
        {
            let a: Vec<f32> = (0..m * k).map(value).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i + 7919)).collect();
            for order in ORDERS {
                for fma in [false, true] {
                    let plan = Plan::new(order, k);
                    let want: Vec<f32> = (0..m * n)
                        .map(|o| by_hand(&plan, fma, |t| a[o / n * k + t], |t| b[t * n + o % n]))
                        .collect();
                    let mut got = vec![0.0f32; m * n];
                    matmul(fma, &plan, [m, k, n], Matrix::rows(&a, k), Matrix::rows(&b, n), &mut got)
                        .unwrap();
                    assert_eq!(got, want, "{m}x{k}x{n} {order:?} fma {fma}");
                    // The same through a transposed right matrix, which takes other paths.
                    let bt: Vec<f32> = (0..n * k).map(|i| b[i % k.max(1) * n + i / k.max(1)]).collect();
                    let mut got = vec![0.0f32; m * n];
                    matmul(fma, &plan, [m, k, n], Matrix::rows(&a, k), Matrix::rows(&bt, k).t(), &mut got)
                        .unwrap();
                    assert_eq!(got, want, "{m}x{k}x{n} transposed {order:?} fma {fma}");
                }
            }
        }
    }
}
