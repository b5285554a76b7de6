//! The accumulation order of one reduction, turned into a list of runs.
//!
//! Every order of [`Order`] is: split the `K` terms into runs (start, step, length), add each run from its first
//! term to its last, combine the runs' sums sequentially or in a balanced tree. Kernels write only the step that
//! adds term `k` to all accumulators of a tile of outputs at once, so the order per output is exactly the stated
//! one whatever the tile's width is.

use crate::real::Real;
use crate::simd::MulAdd;
use crate::variant::Order;

/// Terms of a run of [`Order::Pairwise`].
const PAIRWISE_LEAF: usize = 8;

/// The runs of a reduction over `terms` terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    terms: usize,
    runs: usize,
    /// Terms per run; for interleaved runs the distance between two terms of a run.
    len: usize,
    shape: Shape,
    tree: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Forward,
    Backward,
    Strided,
}

/// One run: first term, distance to the next (-1 backward, as a wrapping number), number of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the first term.
    pub start: usize,
    /// Added (wrapping) to get to the next term.
    pub step: usize,
    /// Number of terms.
    pub len: usize,
}

impl Plan {
    /// The plan of `order` over `terms` terms.
    pub fn new(order: Order, terms: usize) -> Plan {
        let whole = Plan { terms, runs: 1, len: terms, shape: Shape::Forward, tree: false };
        let consecutive = |len: usize, tree| {
            let len = len.max(1);
            if len >= terms { whole } else { Plan { runs: terms.div_ceil(len), len, tree, ..whole } }
        };
        match order {
            Order::Sequential => whole,
            Order::Reversed => Plan { shape: Shape::Backward, ..whole },
            Order::Pairwise => consecutive(PAIRWISE_LEAF, true),
            Order::Blocked(n) => consecutive(n as usize, false),
            Order::SplitK(n) => consecutive(terms.div_ceil((n as usize).max(1)), false),
            Order::Interleaved(n) => {
                let n = (n as usize).clamp(1, terms.max(1));
                if n == 1 {
                    whole
                } else {
                    Plan { runs: n, len: n, shape: Shape::Strided, tree: true, ..whole }
                }
            }
        }
    }

    /// Number of runs, at least 1.
    #[inline(always)]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// True where the runs' sums are combined in a balanced tree.
    #[inline(always)]
    pub fn tree(&self) -> bool {
        self.tree
    }

    /// Run number `r`, below [`Plan::runs`].
    #[inline(always)]
    pub fn run(&self, r: usize) -> Run {
        match self.shape {
            Shape::Forward => {
                let start = r * self.len;
                Run { start, step: 1, len: self.len.min(self.terms - start) }
            }
            Shape::Backward => Run { start: self.terms.wrapping_sub(1), step: usize::MAX, len: self.terms },
            Shape::Strided => Run { start: r, step: self.len, len: (self.terms - r).div_ceil(self.len) },
        }
    }

    /// Combines the runs: `run(r)` gives the partial result of a run, `combine(earlier, later)` joins two.
    #[inline(always)]
    pub fn fold<A>(&self, mut run: impl FnMut(Run) -> A, mut combine: impl FnMut(A, A) -> A) -> Option<A> {
        let mut total: Option<A> = None;
        // A binary counter: after r runs the stack holds one sum per set bit of r, the largest at the bottom.
        let mut stack: Vec<A> = Vec::new();
        for r in 0..self.runs {
            // The only call of `run`, so that it is inlined into kernels compiled for a wider instruction set.
            let mut sum = run(self.run(r));
            if !self.tree {
                total = Some(match total {
                    None => sum,
                    Some(earlier) => combine(earlier, sum),
                });
                continue;
            }
            let mut count = r;
            while count & 1 == 1 {
                if let Some(earlier) = stack.pop() {
                    sum = combine(earlier, sum);
                }
                count >>= 1;
            }
            stack.push(sum);
        }
        while let Some(earlier) = stack.pop() {
            total = Some(match total {
                None => earlier,
                Some(later) => combine(earlier, later),
            });
        }
        total
    }
}

/// A reduction: where it starts, how a term enters, how two partial results join.
pub trait Fold {
    /// The neutral element.
    fn start<T: Real>() -> T;
    /// One term more.
    fn step<T: Real, M: MulAdd>(acc: T, x: T) -> T;
    /// Two partial results, the earlier first.
    fn combine<T: Real>(a: T, b: T) -> T;
}

/// Sum of the terms.
pub struct Sum;
/// Product of the terms.
pub struct Product;
/// Sum of the terms' squares.
pub struct SumSquares;

macro_rules! fold {
    ($name:ident, $start:ident, |$m:ident, $acc:ident, $x:ident| $step:expr, |$a:ident, $b:ident| $combine:expr) => {
        impl Fold for $name {
            #[inline(always)]
            fn start<T: Real>() -> T {
                T::$start
            }
            #[inline(always)]
            fn step<T: Real, $m: MulAdd>($acc: T, $x: T) -> T {
                $step
            }
            #[inline(always)]
            fn combine<T: Real>($a: T, $b: T) -> T {
                $combine
            }
        }
    };
}

fold!(Sum, ZERO, |M, acc, x| acc + x, |a, b| a + b);
fold!(Product, ONE, |M, acc, x| acc * x, |a, b| a * b);
fold!(SumSquares, ZERO, |M, acc, x| M::mul_add(x, x, acc), |a, b| a + b);

/// Accumulates a tile of `R` by `N` outputs at once: `step(k, acc)` lets term `k` of every output enter.
#[inline(always)]
pub fn accumulate<T: Real, F: Fold, const R: usize, const N: usize>(
    plan: &Plan,
    mut step: impl FnMut(usize, &mut [[T; N]; R]),
) -> [[T; N]; R] {
    plan.fold(
        |run| {
            let mut acc = [[F::start::<T>(); N]; R];
            let mut k = run.start;
            for _ in 0..run.len {
                step(k, &mut acc);
                k = k.wrapping_add(run.step);
            }
            acc
        },
        |mut a, b| {
            for (row, other) in a.iter_mut().zip(&b) {
                for (x, y) in row.iter_mut().zip(other) {
                    *x = F::combine(*x, *y);
                }
            }
            a
        },
    )
    .unwrap_or([[F::start::<T>(); N]; R])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(order: Order, terms: usize) -> String {
        Plan::new(order, terms)
            .fold(
                |run| {
                    let mut k = run.start;
                    let mut s = String::new();
                    for _ in 0..run.len {
                        s.push_str(&k.to_string());
                        k = k.wrapping_add(run.step);
                    }
                    s
                },
                |a, b| format!("({a}+{b})"),
            )
            .unwrap()
    }

    #[test]
    fn every_order_adds_in_the_stated_order() {
        assert_eq!(spelled(Order::Sequential, 5), "01234");
        assert_eq!(spelled(Order::Reversed, 5), "43210");
        assert_eq!(spelled(Order::Blocked(2), 5), "((01+23)+4)");
        assert_eq!(spelled(Order::SplitK(2), 5), "(012+34)");
        assert_eq!(spelled(Order::Interleaved(4), 6), "((04+15)+(2+3))");
        assert_eq!(spelled(Order::Interleaved(3), 5), "((03+14)+2)");
        assert_eq!(spelled(Order::Pairwise, 8), "01234567");
        assert_eq!(spelled(Order::Pairwise, 10), "(01234567+89)");
    }

    #[test]
    fn every_term_is_used_once_whatever_the_order() {
        let orders = [
            Order::Sequential,
            Order::Reversed,
            Order::Pairwise,
            Order::Blocked(3),
            Order::SplitK(4),
            Order::Interleaved(5),
        ];
        for order in orders {
            for terms in 0..70 {
                let mut seen = Plan::new(order, terms)
                    .fold(
                        |run| {
                            let mut k = run.start;
                            let mut v = Vec::new();
                            for _ in 0..run.len {
                                v.push(k);
                                k = k.wrapping_add(run.step);
                            }
                            v
                        },
                        |mut a, b| {
                            a.extend(b);
                            a
                        },
                    )
                    .unwrap();
                seen.sort_unstable();
                assert_eq!(seen, (0..terms).collect::<Vec<_>>(), "{order:?} over {terms}");
            }
        }
    }
}
