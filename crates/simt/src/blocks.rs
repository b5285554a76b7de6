//! Which blocks of a grid are executed: all, a list, or a sample that looks where 32-bit arithmetic breaks.
//!
//! A sample holds the first and last blocks; those around block 2^31 and 2^32 and around global thread 2^31 and 2^32;
//! for every buffer that is large enough those that should work around elements 2^31 and 2^32 and byte 2^32, estimated
//! from elements per block in each order of the grid's axes, from tiles where the shape is known, and, where threads
//! have more than one element, for a grid-stride loop; and seeded random ones, each with the block whose elements lie 2^32 further, so that an index that
//! wraps meets the element that it wraps to. Time and memory depend on the sample, not on the grid.
//!
//! What it misses: the estimates suppose that blocks share the elements evenly, in some order of the axes; where they do
//! not, a boundary's element may belong to a block that is not in the sample.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeSet;

use assay_tensor::philox::Stream;
use serde::{Deserialize, Serialize};

/// Which blocks of a launch are executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Blocks {
    /// Every block, in linear order.
    #[default]
    All,
    /// First, last, those around each boundary, and `random` more.
    Sample {
        /// Seed of the random ones.
        seed: u64,
        /// How many of them.
        random: u64,
    },
    /// These, by linear index `x + gridDim.x * (y + gridDim.y * z)`, in the order given; repeated ones run once. At most
    /// [`Blocks::MAX_LISTED`].
    List(Vec<u64>),
}

impl Blocks {
    /// Most blocks of a list.
    pub const MAX_LISTED: usize = 1 << 24;
    /// Random blocks of a usual sample.
    pub const RANDOM: u64 = 16;

    /// The usual sample.
    pub fn sample(seed: u64) -> Blocks {
        Blocks::Sample { seed, random: Blocks::RANDOM }
    }

    /// The linear index of block `x, y, z`; `None` outside the grid.
    pub fn linear(grid: [u64; 3], [x, y, z]: [u64; 3]) -> Option<u64> {
        let inside = x < grid[0] && y < grid[1] && z < grid[2];
        let plane = y.checked_add(z.checked_mul(grid[1])?)?;
        plane.checked_mul(grid[0])?.checked_add(x).filter(|_| inside)
    }
}

/// Which blocks a launch started.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct BlocksRun {
    /// Blocks started.
    pub executed: u64,
    /// Blocks of the grid.
    pub total: u64,
    /// Linear indices in the order of their start; empty where every block was wanted.
    pub list: Vec<u64>,
}

/// The blocks of a launch, by number of execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    total: u64,
    /// `None`: all.
    list: Option<Vec<u64>>,
}

/// A buffer that a launch may work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent<'a> {
    pub(crate) elements: u64,
    /// Bytes of an element: a power of two.
    pub(crate) element_bytes: u64,
    /// Extents, outermost first; empty where they are not known.
    pub(crate) shape: &'a [u64],
}

impl Extent<'_> {
    /// Elements at which 32-bit numbers break, with their names.
    pub(crate) fn boundaries(self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let byte = (1u64 << 32) >> self.element_bytes.trailing_zeros();
        let elements = self.elements;
        [("2^31 elements", 1 << 31), ("2^32 elements", 1 << 32), ("2^32 bytes", byte)]
            .into_iter()
            .filter(move |(_, e)| *e < elements)
    }
}

impl Plan {
    /// The blocks that `blocks` asks for.
    ///
    /// # Errors
    /// What is wrong with a list.
    pub(crate) fn new<'a>(
        blocks: &Blocks,
        grid: [u64; 3],
        threads: u64,
        extents: impl Iterator<Item = Extent<'a>>,
    ) -> Result<Plan, String> {
        // Below 2^63 within the limits of a launch.
        let total = grid.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        let list = match blocks {
            Blocks::All => None,
            Blocks::Sample { seed, random } => {
                let mut s = Sampler { grid, total, threads: threads.max(1), set: BTreeSet::new() };
                s.fill(*seed, *random, extents);
                Some(s.set.into_iter().collect())
            }
            Blocks::List(list) if list.len() > Blocks::MAX_LISTED => {
                return Err(format!(
                    "{} blocks are listed, at most {} can be",
                    list.len(),
                    Blocks::MAX_LISTED
                ));
            }
            Blocks::List(list) => {
                if let Some(b) = list.iter().find(|b| **b >= total) {
                    return Err(format!("block {b} is listed, the grid has {total}"));
                }
                let mut known = BTreeSet::new();
                Some(list.iter().copied().filter(|b| known.insert(*b)).collect())
            }
        };
        Ok(Plan { total, list })
    }

    /// Blocks to execute.
    pub(crate) fn len(&self) -> u64 {
        self.list.as_ref().map_or(self.total, |l| l.len() as u64)
    }

    /// The blocks, where not simply all.
    pub(crate) fn into_list(self) -> Option<Vec<u64>> {
        self.list
    }

    /// True if blocks are left out.
    pub(crate) fn partial(&self) -> bool {
        self.len() < self.total
    }

    /// Linear index of the `n`-th block to execute.
    pub(crate) fn linear(&self, n: u64) -> u64 {
        self.list.as_ref().map_or(n, |l| l.get(n as usize).copied().unwrap_or(n))
    }

    /// What ran, if the first `executed` blocks did.
    pub(crate) fn ran(&self, executed: u64) -> BlocksRun {
        let list = self.list.as_ref().map(|l| l.iter().copied().take(executed as usize).collect());
        BlocksRun { executed, total: self.total, list: list.unwrap_or_default() }
    }
}

/// Neighbours on either side.
const AROUND: u64 = 2;

struct Sampler {
    grid: [u64; 3],
    total: u64,
    threads: u64,
    set: BTreeSet<u64>,
}

impl Sampler {
    fn around(&mut self, block: u64) {
        for b in block.saturating_sub(AROUND)..=block.saturating_add(AROUND) {
            if b < self.total {
                self.set.insert(b);
            }
        }
    }

    fn fill<'a>(&mut self, seed: u64, random: u64, extents: impl Iterator<Item = Extent<'a>>) {
        let last = self.total.saturating_sub(1);
        self.around(0);
        self.around(last);
        for b in [1u64 << 31, 1 << 32] {
            if b < self.total {
                self.around(b);
            }
            self.around(b.checked_div(self.threads).unwrap_or(0));
        }
        // Blocks from an element to the one 2^32 further.
        let mut aliases = BTreeSet::new();
        for e in extents {
            for (_, element) in e.boundaries() {
                self.near_element(element, e.elements);
                self.at_coordinates(element.saturating_sub(1), e.shape);
                self.at_coordinates(element, e.shape);
            }
            if e.elements > 1 << 32 {
                aliases.extend(self.block_of(1 << 32, e.elements));
            }
        }
        let stream = Stream::new(seed, 0x0062_6c6f_636b);
        let random = (0..random).map(|i| stream.below_at(i, self.total.max(1))).collect::<Vec<_>>();
        for b in random.into_iter().chain([last]) {
            if b < self.total {
                self.set.insert(b);
            }
            for a in &aliases {
                for partner in [b.checked_add(*a), b.checked_sub(*a)].into_iter().flatten() {
                    if partner < self.total {
                        self.set.insert(partner);
                    }
                }
            }
        }
    }

    /// The block at an element, if all share them evenly.
    fn block_of(&self, element: u64, elements: u64) -> Option<u64> {
        // A product of two u64 fits.
        let b = u128::from(element).wrapping_mul(u128::from(self.total)).checked_div(u128::from(elements))?;
        u64::try_from(b).ok()
    }

    fn near_element(&mut self, element: u64, elements: u64) {
        let Some(b) = self.block_of(element, elements) else { return };
        self.around(b);
        let per_round = self.total.saturating_mul(self.threads);
        if per_round < elements {
            // A grid-stride loop comes round to it.
            let at = element.checked_div(self.threads).unwrap_or(0).checked_rem(self.total).unwrap_or(0);
            self.around(at);
        }
        for order in [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
            self.in_order(b, order);
        }
    }

    /// The blocks at an element of a tensor of this shape, if each axis of the grid cuts a dimension of it into tiles of
    /// one size.
    fn at_coordinates(&mut self, element: u64, shape: &[u64]) {
        if shape.is_empty() || shape.len() > 8 {
            return;
        }
        let mut rest = element;
        let mut tiles = [[0u64; 3]; 8];
        for (d, extent) in shape.iter().enumerate().rev() {
            let at = rest.checked_rem(*extent).unwrap_or(0);
            rest = rest.checked_div(*extent).unwrap_or(0);
            for (tile, blocks) in tiles[d].iter_mut().zip(self.grid) {
                let size = extent.div_ceil(blocks.max(1)).max(1);
                *tile = at.checked_div(size).unwrap_or(0);
            }
        }
        // Every way to give each axis a dimension of its own, or none where it has one block.
        let dims = shape.len();
        let choice = |axis: usize| if self.grid[axis] > 1 { 0..dims } else { dims..dims.saturating_add(1) };
        let mut found = Vec::new();
        for x in choice(0) {
            for y in choice(1) {
                for z in choice(2) {
                    let distinct = (x == dims || (x != y && x != z)) && (y == dims || y != z);
                    let tile = |d: usize, axis: usize| if d == dims { 0 } else { tiles[d][axis] };
                    if distinct {
                        found.extend(Blocks::linear(self.grid, [tile(x, 0), tile(y, 1), tile(z, 2)]));
                    }
                }
            }
        }
        self.set.extend(found);
    }

    /// The block that is `b`-th where axis `order[0]` runs fastest, its neighbours along that axis and the next, and the
    /// ends of the line that it lies in.
    fn in_order(&mut self, b: u64, order: [usize; 3]) {
        let [fast, next, slow] = order;
        let extent = |axis: usize| self.grid[axis].max(1);
        let x = b.checked_rem(extent(fast)).unwrap_or(0);
        let rest = b.checked_div(extent(fast)).unwrap_or(0);
        let y = rest.checked_rem(extent(next)).unwrap_or(0);
        let z = rest.checked_div(extent(next)).unwrap_or(0);
        let end = extent(fast).saturating_sub(1);
        for y in y.saturating_sub(1)..=y.saturating_add(1) {
            for x in [x.saturating_sub(1), x, x.saturating_add(1), 0, end] {
                let mut at = [0; 3];
                (at[fast], at[next], at[slow]) = (x, y, z);
                if let Some(b) = Blocks::linear(self.grid, at) {
                    self.set.insert(b);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(blocks: &Blocks, grid: [u64; 3], extents: &[Extent<'_>]) -> Vec<u64> {
        let p = Plan::new(blocks, grid, 256, extents.iter().copied()).unwrap();
        (0..p.len()).map(|n| p.linear(n)).collect()
    }

    fn floats(elements: u64) -> Extent<'static> {
        Extent { elements, element_bytes: 4, shape: &[] }
    }

    #[test]
    fn a_sample_holds_both_ends_and_both_sides_of_every_boundary() {
        let grid = [(1 << 31) - 1, 4, 1];
        let total = grid[0] * 4;
        let elements = total * 256;
        let s = plan(&Blocks::sample(7), grid, &[floats(elements)]);
        // By block, by thread and element (256 of each in a block), by byte.
        for b in
            [0, 1, total - 1, total - 2, 1 << 31, 1 << 32, (1 << 31) / 256, (1 << 32) / 256, (1 << 30) / 256]
        {
            assert!(s.binary_search(&b).is_ok(), "block {b}");
            assert!(b == 0 || s.binary_search(&(b - 1)).is_ok(), "the block before {b}");
        }
        assert!(s.is_sorted() && s.windows(2).all(|w| w[0] != w[1]));
        assert!(s.len() < 400, "{}", s.len());
        assert_eq!(s, plan(&Blocks::sample(7), grid, &[floats(elements)]));
        assert_ne!(s, plan(&Blocks::sample(8), grid, &[floats(elements)]));
    }

    #[test]
    fn a_random_block_comes_with_the_one_whose_elements_lie_2_to_the_32_further() {
        let grid = [1 << 26, 1, 1];
        let s = plan(&Blocks::Sample { seed: 1, random: 8 }, grid, &[floats(1 << 34)]);
        let step = 1 << 24;
        let alone =
            |b: &&u64| !(b.checked_sub(step).is_some_and(|p| s.contains(&p)) || s.contains(&(**b + step)));
        let stream = Stream::new(1, 0x0062_6c6f_636b);
        let random: Vec<u64> = (0..8).map(|i| stream.below_at(i, 1 << 26)).collect();
        assert_eq!(random.iter().find(alone), None);
    }

    #[test]
    fn a_transposed_output_is_met_at_its_boundary_too() {
        // 32 x 32 tiles of a matrix of 2^17 x 2^16 that is written transposed.
        let grid = [1 << 11, 1 << 12, 1];
        let s = plan(&Blocks::sample(0), grid, &[floats(1 << 33)]);
        // Element 2^32 of the output is in its row 2^15, so in the input's column 2^15, row 0.
        let b = Blocks::linear(grid, [1 << 10, 0, 0]).unwrap();
        let before = Blocks::linear(grid, [(1 << 10) - 1, (1 << 12) - 1, 0]).unwrap();
        assert!(s.contains(&b) && s.contains(&before));
    }

    #[test]
    fn a_shape_tells_the_tile_that_holds_a_boundary() {
        // Tiles of 32 x 32 of 70,001 x 70,007 written as 70,007 x 70,001, and of 16 x 16 of a batch.
        let grid = [2188, 2188, 1];
        let shape = [70_007, 70_001];
        let out = Extent { elements: 70_007 * 70_001, element_bytes: 4, shape: &shape };
        let s = plan(&Blocks::Sample { seed: 0, random: 0 }, grid, &[out]);
        for e in [1u64 << 31, (1 << 32) - 1, 1 << 32] {
            let (row, col) = (e / 70_001, e % 70_001);
            assert!(s.contains(&Blocks::linear(grid, [row / 32, col / 32, 0]).unwrap()));
            assert!(s.contains(&Blocks::linear(grid, [col / 32, row / 32, 0]).unwrap()));
        }
        let (grid, shape) = ([30, 20, 50_000], [50_000, 320, 480]);
        let out = Extent { elements: 50_000 * 320 * 480, element_bytes: 4, shape: &shape };
        let s = plan(&Blocks::Sample { seed: 0, random: 0 }, grid, &[out]);
        let e = 1u64 << 32;
        let at = [e % 480 / 16, e / 480 % 320 / 16, e / 480 / 320];
        assert!(s.contains(&Blocks::linear(grid, at).unwrap()));
    }

    #[test]
    fn a_grid_stride_loop_is_met_where_it_comes_round() {
        let grid = [1000, 1, 1];
        let s = plan(&Blocks::Sample { seed: 0, random: 0 }, grid, &[floats(5 << 30)]);
        for e in [1u64 << 31, 1 << 32] {
            assert!(s.contains(&(e / 256 % 1000)) && s.contains(&((e - 1) / 256 % 1000)));
        }
    }

    #[test]
    fn lists_keep_their_order_lose_repeats_and_are_checked() {
        assert_eq!(plan(&Blocks::List(vec![3, 1, 3, 0]), [4, 1, 1], &[]), [3, 1, 0]);
        let refused =
            |l: Vec<u64>| Plan::new(&Blocks::List(l), [4, 1, 1], 1, std::iter::empty()).unwrap_err();
        assert_eq!(refused(vec![1, 4]), "block 4 is listed, the grid has 4");
        assert!(refused(vec![0; Blocks::MAX_LISTED + 1]).contains("at most 16777216"));
        assert_eq!(Blocks::linear([4, 3, 2], [1, 2, 1]), Some(1 + 4 * (2 + 3)));
        assert_eq!(Blocks::linear([4, 3, 2], [4, 0, 0]), None);
    }

    #[test]
    fn a_grid_smaller_than_its_sample_runs_whole() {
        let p = Plan::new(&Blocks::sample(0), [3, 1, 1], 32, std::iter::once(floats(96))).unwrap();
        assert!(!p.partial() && p.len() == 3);
        assert_eq!(p.ran(2), BlocksRun { executed: 2, total: 3, list: vec![0, 1] });
    }

    #[test]
    fn the_largest_grid_overflows_nothing() {
        let grid = [(1 << 31) - 1, 65_535, 65_535];
        let s = plan(
            &Blocks::sample(3),
            grid,
            &[floats(1 << 37), Extent { elements: 1 << 36, element_bytes: 8, shape: &[] }],
        );
        assert_eq!(s.last(), Some(&(grid[0] * grid[1] * grid[2] - 1)));
    }
}
