//! Products of single batches: exact in float64 for references, in float32 with a stated order for emulated devices.

/// `left` (rows x inner) times `right` (inner x cols) in float64. For values of [`crate::values`] and up to 2^13 terms
/// every partial sum is exact, so the order that the library takes does not matter.
pub fn exact(left: &[f32], right: &[f32], rows: usize, inner: usize, cols: usize, out: &mut Vec<f64>) {
    thread_local! {
        static WIDE: std::cell::RefCell<(Vec<f64>, Vec<f64>)> = const { std::cell::RefCell::new((Vec::new(), Vec::new())) };
    }
    assert!(left.len() == rows * inner && right.len() == inner * cols);
    out.clear();
    out.resize(rows * cols, 0.0);
    if rows == 0 || inner == 0 || cols == 0 {
        return;
    }
    WIDE.with_borrow_mut(|(l, r)| {
        l.clear();
        l.extend(left.iter().map(|&v| f64::from(v)));
        r.clear();
        r.extend(right.iter().map(|&v| f64::from(v)));
        // SAFETY: the three matrices are row-major with the lengths asserted above, and `out` is not aliased.
        unsafe {
            matrixmultiply::dgemm(
                rows,
                inner,
                cols,
                1.0,
                l.as_ptr(),
                inner as isize,
                1,
                r.as_ptr(),
                cols as isize,
                1,
                0.0,
                out.as_mut_ptr(),
                cols as isize,
                1,
            );
        }
    });
}

/// The same product in float32, each element summed in order of the inner index, product and sum rounded apart: the bits
/// are the same on every host.
pub fn ordered(left: &[f32], right: &[f32], rows: usize, inner: usize, cols: usize, out: &mut Vec<f32>) {
    assert!(left.len() == rows * inner && right.len() == inner * cols);
    out.clear();
    out.resize(rows * cols, 0.0);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, asked just above.
        unsafe { ordered_avx2(left, right, rows, inner, cols, out) };
        return;
    }
    ordered_any(left, right, rows, inner, cols, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn ordered_avx2(l: &[f32], r: &[f32], rows: usize, inner: usize, cols: usize, out: &mut [f32]) {
    ordered_any(l, r, rows, inner, cols, out);
}

#[inline(always)]
fn ordered_any(l: &[f32], r: &[f32], rows: usize, inner: usize, cols: usize, out: &mut [f32]) {
    let mut row = 0;
    while row < rows {
        let high = if rows - row >= 4 { 4 } else { (rows - row).min(2) };
        let mut col = 0;
        while col < cols {
            let wide = match cols - col {
                16.. => 16,
                8.. => 8,
                _ => 1,
            };
            match (high, wide) {
                (4, 16) => block::<4, 16>(l, r, (row, col), inner, cols, out),
                (4, 8) => block::<4, 8>(l, r, (row, col), inner, cols, out),
                (4, _) => block::<4, 1>(l, r, (row, col), inner, cols, out),
                (2, 16) => block::<2, 16>(l, r, (row, col), inner, cols, out),
                (2, 8) => block::<2, 8>(l, r, (row, col), inner, cols, out),
                (2, _) => block::<2, 1>(l, r, (row, col), inner, cols, out),
                (_, 16) => block::<1, 16>(l, r, (row, col), inner, cols, out),
                (_, 8) => block::<1, 8>(l, r, (row, col), inner, cols, out),
                _ => block::<1, 1>(l, r, (row, col), inner, cols, out),
            }
            col += wide;
        }
        row += high;
    }
}

/// R rows by C columns of the product, at `at`.
#[inline(always)]
fn block<const R: usize, const C: usize>(
    l: &[f32],
    r: &[f32],
    at: (usize, usize),
    inner: usize,
    cols: usize,
    out: &mut [f32],
) {
    let (row, col) = at;
    let mut acc = [[0.0f32; C]; R];
    for k in 0..inner {
        let Some(b) = r[k * cols + col..].first_chunk::<C>() else { break };
        for (i, acc) in acc.iter_mut().enumerate() {
            let a = l[(row + i) * inner + k];
            for (slot, &b) in acc.iter_mut().zip(b) {
                *slot += a * b;
            }
        }
    }
    for (i, acc) in acc.iter().enumerate() {
        let to = (row + i) * cols + col;
        out[to..to + C].copy_from_slice(acc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Role, Shape};
    use crate::values::{Kind, Values};
    use assay_tensor::DType;

    fn operands(shape: Shape, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let fill = |role, n: u64| {
            let mut out = vec![0.0; n as usize];
            Values::new(seed, Kind::Random, DType::F32, role, shape, false).batch(0, &mut out);
            out
        };
        (fill(Role::A, shape.a()), fill(Role::B, shape.b()))
    }

    #[test]
    fn the_float64_product_is_exact() {
        for (seed, (m, k, n)) in
            [(3, 64, 5), (17, 511, 33), (1, 8192, 2), (64, 1, 16)].into_iter().enumerate()
        {
            let shape = Shape { m, k, n };
            let (a, b) = operands(shape, seed as u64);
            let (m, k, n) = (m as usize, k as usize, n as usize);
            let mut out = Vec::new();
            exact(&a, &b, m, k, n, &mut out);
            for i in 0..m {
                for j in 0..n {
                    // Integer arithmetic on the multiples of 2^-20.
                    let sum: i128 = (0..k)
                        .map(|p| {
                            let whole = |v: f32| (f64::from(v) * 1_048_576.0) as i128;
                            whole(a[i * k + p]) * whole(b[p * n + j])
                        })
                        .sum();
                    assert_eq!(out[i * n + j], sum as f64 / (1u64 << 40) as f64);
                }
            }
        }
    }

    #[test]
    fn the_ordered_product_sums_in_order_with_every_rounding() {
        for (m, k, n) in
            [(4, 64, 16), (5, 33, 35), (9, 7, 16), (1, 1, 1), (3, 100, 47), (6, 64, 8), (7, 5, 25)]
        {
            let shape = Shape { m, k, n };
            let (a, b) = operands(shape, 3);
            let (m, k, n) = (m as usize, k as usize, n as usize);
            let mut out = Vec::new();
            ordered(&a, &b, m, k, n, &mut out);
            for i in 0..m {
                for j in 0..n {
                    let mut acc = 0.0f32;
                    for p in 0..k {
                        let product = a[i * k + p] * b[p * n + j];
                        acc += product;
                    }
                    assert_eq!(out[i * n + j].to_bits(), acc.to_bits());
                }
            }
        }
    }
}
