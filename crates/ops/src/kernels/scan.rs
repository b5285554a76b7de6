//! Running sums and products.
//!
//! What each order means for a scan of `K` terms:
//! - sequential: one running value;
//! - blocked(n), split-K(n): a running value per block of `n` terms (per `n`-th part), the totals of earlier blocks
//!   added afterwards, as a two-level scan of a GPU does;
//! - pairwise: the same with blocks of 8 whose totals are scanned in the same way, recursively;
//! - interleaved(n): Hillis and Steele's scan (as a warp does with shuffles) within blocks of `n`, a running carry
//!   between them;
//! - reversed: within blocks of 16, every prefix is added up from its own last term backward.

use crate::real::Real;
use crate::variant::Order;

/// Scans every column of a `[terms, inner]` block in place.
pub fn scan_block<T: Real>(order: Order, data: &mut [T], inner: usize, f: impl Fn(T, T) -> T + Copy) {
    if inner == 0 || data.is_empty() {
        return;
    }
    let terms = data.len() / inner;
    match order {
        Order::Sequential => running(data, inner, f),
        Order::Blocked(n) => blocked(data, inner, n as usize, f, |totals| running(totals, inner, f)),
        Order::SplitK(n) => {
            blocked(data, inner, terms.div_ceil((n as usize).max(1)), f, |totals| running(totals, inner, f));
        }
        Order::Pairwise => pairwise(data, inner, f),
        Order::Interleaved(n) => shuffled(data, inner, n as usize, f),
        Order::Reversed => backward(data, inner, f),
    }
}

/// One running value per column of a `[terms, inner]` block, in place.
pub fn running<T: Copy>(data: &mut [T], inner: usize, f: impl Fn(T, T) -> T) {
    let terms = data.len() / inner;
    if inner == 1 {
        let mut total = None;
        for x in data {
            let t = total.map_or(*x, |t| f(t, *x));
            *x = t;
            total = Some(t);
        }
        return;
    }
    for k in 1..terms {
        let (before, rest) = data.split_at_mut(k * inner);
        for (x, &t) in rest[..inner].iter_mut().zip(&before[(k - 1) * inner..]) {
            *x = f(t, *x);
        }
    }
}

fn blocked<T: Real>(
    data: &mut [T],
    inner: usize,
    block: usize,
    f: impl Fn(T, T) -> T + Copy,
    scan_totals: impl FnOnce(&mut [T]),
) {
    let size = block.max(1).saturating_mul(inner);
    let mut totals = Vec::new();
    for part in data.chunks_mut(size) {
        running(part, inner, f);
        totals.extend_from_slice(&part[part.len() - inner..]);
    }
    if totals.len() > inner {
        scan_totals(&mut totals);
    }
    for (part, carry) in data.chunks_mut(size).skip(1).zip(totals.chunks_exact(inner)) {
        for row in part.chunks_exact_mut(inner) {
            for (x, &c) in row.iter_mut().zip(carry) {
                *x = f(c, *x);
            }
        }
    }
}

fn pairwise<T: Real>(data: &mut [T], inner: usize, f: impl Fn(T, T) -> T + Copy) {
    // Each level is 8 times shorter, so the recursion is shallow.
    blocked(data, inner, 8, f, |totals| pairwise_dyn(totals, inner, &f));
}

// The recursion goes through a function pointer type of its own, else every level would be another instance.
fn pairwise_dyn<T: Real>(data: &mut [T], inner: usize, f: &dyn Fn(T, T) -> T) {
    blocked(data, inner, 8, f, |totals| pairwise_dyn(totals, inner, f));
}

fn shuffled<T: Real>(data: &mut [T], inner: usize, lanes: usize, f: impl Fn(T, T) -> T) {
    let size = lanes.max(1).saturating_mul(inner);
    let mut carry: Option<Vec<T>> = None;
    for part in data.chunks_mut(size) {
        let terms = part.len() / inner;
        let mut distance = 1;
        while distance < terms {
            // From the back, so that every term reads what its partner was before this step.
            for k in (distance..terms).rev() {
                for j in 0..inner {
                    part[k * inner + j] = f(part[(k - distance) * inner + j], part[k * inner + j]);
                }
            }
            distance *= 2;
        }
        if let Some(carry) = &carry {
            for row in part.chunks_exact_mut(inner) {
                for (x, &c) in row.iter_mut().zip(carry) {
                    *x = f(c, *x);
                }
            }
        }
        carry = Some(part[part.len() - inner..].to_vec());
    }
}

fn backward<T: Real>(data: &mut [T], inner: usize, f: impl Fn(T, T) -> T) {
    const BLOCK: usize = 16;
    let mut carry: Option<Vec<T>> = None;
    for part in data.chunks_mut(BLOCK * inner) {
        let terms = part.len() / inner;
        for j in 0..inner {
            // The longest prefix first: it overwrites only what no other prefix needs.
            for k in (0..terms).rev() {
                let mut total = part[k * inner + j];
                for i in (0..k).rev() {
                    total = f(total, part[i * inner + j]);
                }
                part[k * inner + j] = carry.as_ref().map_or(total, |c| f(c[j], total));
            }
        }
        carry = Some(part[part.len() - inner..].to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_gives_the_prefix_sums() {
        let orders = [
            Order::Sequential,
            Order::Reversed,
            Order::Pairwise,
            Order::Blocked(3),
            Order::SplitK(4),
            Order::Interleaved(8),
        ];
        for order in orders {
            for terms in 0..70usize {
                for inner in [1usize, 3] {
                    let mut data: Vec<f64> = (0..terms * inner).map(|i| i as f64).collect();
                    let mut want = data.clone();
                    for i in inner..want.len() {
                        want[i] += want[i - inner];
                    }
                    scan_block(order, &mut data, inner, |a, b| a + b);
                    // Whole numbers: every order is exact.
                    assert_eq!(data, want, "{order:?}, {terms} terms, inner {inner}");
                }
            }
        }
    }
}
