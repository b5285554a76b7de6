//! What a point's tensors look like: logical shapes, how they are stored, and which storage element a read touches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::SweepError;

/// How the operands are stored (boundary paper, Table 2). All layouts of one seed hold the same logical values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Layout {
    /// Both operands contiguous.
    #[serde(rename = "contig")]
    Contig,
    /// `b` is a `transpose(1, 2)` view of a contiguous storage.
    #[serde(rename = "bT")]
    BT,
    /// `a` is such a view.
    #[serde(rename = "aT")]
    AT,
    /// Both operands are `[1:]` of a storage with one extra leading batch.
    #[serde(rename = "slice")]
    Slice,
    /// Both operands are `[O:]` of a storage with `O` leading batches.
    #[serde(rename = "offset")]
    Offset,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 5] = [Layout::Contig, Layout::BT, Layout::AT, Layout::Slice, Layout::Offset];

    /// The name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Contig => "contig",
            Layout::BT => "bT",
            Layout::AT => "aT",
            Layout::Slice => "slice",
            Layout::Offset => "offset",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = SweepError;

    fn from_str(s: &str) -> Result<Layout, SweepError> {
        Layout::ALL.into_iter().find(|l| l.name() == s).ok_or_else(|| {
            SweepError::bad(format!("`{s}` is not a layout; there are contig, bT, aT, slice, offset"))
        })
    }
}

/// Which tensor is meant to cross the boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crossing {
    /// The output.
    Out,
    /// The larger operand.
    In,
    /// All three alike.
    All,
}

/// One batch of a product: `a` is `(M, K)`, `b` is `(K, N)`, the output `(M, N)`.
///
/// Written `M,K,N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shape {
    /// Rows of `a` and of the output.
    pub m: u64,
    /// The reduction length.
    pub k: u64,
    /// Columns of `b` and of the output.
    pub n: u64,
}

impl Shape {
    /// Elements of one batch of `a`.
    pub fn a(self) -> u64 {
        self.m * self.k
    }

    /// Elements of one batch of `b`.
    pub fn b(self) -> u64 {
        self.k * self.n
    }

    /// Elements of one batch of the output.
    pub fn out(self) -> u64 {
        self.m * self.n
    }

    /// The tensor with the most elements; all three where they are alike.
    pub fn crossing(self) -> Crossing {
        let (a, b, o) = (self.a(), self.b(), self.out());
        if a == b && b == o {
            Crossing::All
        } else if o >= a.max(b) {
            Crossing::Out
        } else {
            Crossing::In
        }
    }

    /// Elements of one batch of the crossing tensor.
    pub fn crossing_elements(self) -> u64 {
        self.a().max(self.b()).max(self.out())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.m, self.k, self.n)
    }
}

impl From<Shape> for String {
    fn from(s: Shape) -> String {
        s.to_string()
    }
}

impl TryFrom<String> for Shape {
    type Error = SweepError;

    fn try_from(s: String) -> Result<Shape, SweepError> {
        s.parse()
    }
}

impl FromStr for Shape {
    type Err = SweepError;

    fn from_str(s: &str) -> Result<Shape, SweepError> {
        let bad =
            || SweepError::bad(format!("`{s}` is not a shape; write M,K,N with extents from 1 to 1048576"));
        let parts: Vec<&str> = s.split(',').collect();
        let [m, k, n] = parts.as_slice() else { return Err(bad()) };
        let number = |t: &str| {
            let v: u64 = t.trim().parse().map_err(|_| bad())?;
            if (1..=1 << 20).contains(&v) { Ok(v) } else { Err(bad()) }
        };
        let shape = Shape { m: number(m)?, k: number(k)?, n: number(n)? };
        // One batch is generated and multiplied as a whole.
        if shape.crossing_elements() > 1 << 28 {
            return Err(SweepError::bad(format!("one batch of {s} has more than 2^28 elements")));
        }
        Ok(shape)
    }
}

/// Which generated tensor a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The left operand.
    A,
    /// The right operand.
    B,
    /// The upstream gradient, shaped as the output.
    G,
}

impl Role {
    /// The name in requests and records.
    pub fn name(self) -> &'static str {
        match self {
            Role::A => "a",
            Role::B => "b",
            Role::G => "g",
        }
    }
}

/// An operand as an operation receives it: a view of a contiguous storage.
///
/// The storage is `(skip + batches, rows, cols)`, or `(skip + batches, cols, rows)` where `transposed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Whose values it shows.
    pub role: Role,
    /// Batches of the view.
    pub batches: u64,
    /// Rows as seen.
    pub rows: u64,
    /// Columns as seen.
    pub cols: u64,
    /// Leading batches of the storage that are not part of the view.
    pub skip: u64,
    /// Whether the storage of a batch is `(cols, rows)`.
    pub transposed: bool,
    /// Whether rows and columns are exchanged against the operand as the caller has it.
    pub flipped: bool,
}

impl View {
    /// Elements of one batch.
    pub fn per_batch(&self) -> u64 {
        self.rows * self.cols
    }

    /// Elements of the view.
    pub fn numel(&self) -> u64 {
        self.batches * self.per_batch()
    }

    /// Elements of the storage behind it.
    pub fn storage_numel(&self) -> u64 {
        (self.batches + self.skip) * self.per_batch()
    }

    /// Whether it is more than its storage: neither transposed nor behind leading batches.
    pub fn contiguous(&self) -> bool {
        !self.transposed && self.skip == 0
    }

    /// The same values with rows and columns exchanged, without moving them.
    pub fn transpose(mut self) -> View {
        std::mem::swap(&mut self.rows, &mut self.cols);
        self.transposed = !self.transposed;
        self.flipped = !self.flipped;
        self
    }

    /// Whether the storage holds the transpose of the operand as the caller has it.
    pub fn stored_transposed(&self) -> bool {
        self.transposed != self.flipped
    }

    /// Where element (batch, row, column) of the view lies in the storage.
    #[inline]
    pub fn position(&self, batch: u64, row: u64, col: u64) -> u64 {
        let inner = if self.transposed { col * self.rows + row } else { row * self.cols + col };
        (self.skip + batch) * self.per_batch() + inner
    }
}

/// What a product reads and writes: the forward product, or one of the two that define the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// The tensor that it makes: `out`, `grad_a`, `grad_b`.
    pub output: &'static str,
    /// The left operand.
    pub left: View,
    /// The right operand.
    pub right: View,
}

impl Product {
    /// Elements of the product.
    pub fn numel(&self) -> u64 {
        self.left.batches * self.left.rows * self.right.cols
    }
}

/// The operands of a point in their layout, and the products it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// One batch.
    pub shape: Shape,
    /// Batches.
    pub batch: u64,
    /// `a` as passed.
    pub a: View,
    /// `b` as passed.
    pub b: View,
}

impl Geometry {
    /// The operands of `batch` products of `shape` stored as `layout`, behind `offset` leading batches where the layout
    /// is `offset`.
    pub fn new(shape: Shape, layout: Layout, batch: u64, offset: u64) -> Geometry {
        let skip = match layout {
            Layout::Slice => 1,
            Layout::Offset => offset,
            _ => 0,
        };
        let view = |role, rows, cols, transposed| View {
            role,
            batches: batch,
            rows,
            cols,
            skip,
            transposed,
            flipped: false,
        };
        Geometry {
            shape,
            batch,
            a: view(Role::A, shape.m, shape.k, layout == Layout::AT),
            b: view(Role::B, shape.k, shape.n, layout == Layout::BT),
        }
    }

    /// The upstream gradient: contiguous, shaped as the output.
    pub fn g(&self) -> View {
        View {
            role: Role::G,
            batches: self.batch,
            rows: self.shape.m,
            cols: self.shape.n,
            skip: 0,
            transposed: false,
            flipped: false,
        }
    }

    /// The products in the order in which they are made: the forward one, and for a backward pass the two that
    /// define the gradients, `G B^T` and `A^T G` (boundary paper, Eq. 3).
    pub fn products(&self, backward: bool) -> Vec<Product> {
        let mut all = vec![Product { output: "out", left: self.a, right: self.b }];
        if backward {
            all.push(Product { output: "grad_a", left: self.g(), right: self.b.transpose() });
            all.push(Product { output: "grad_b", left: self.a.transpose(), right: self.g() });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_view_reads_the_other_order_of_its_storage() {
        let g = Geometry::new(Shape { m: 2, k: 3, n: 5 }, Layout::AT, 4, 0);
        // Storage of a batch is (K, M) = (3, 2): element (m, k) lies at k * 2 + m.
        assert_eq!(g.a.position(1, 1, 2), 6 + 5);
        assert_eq!(g.b.position(1, 2, 4), 15 + 14);
        assert!(!g.a.contiguous() && g.b.contiguous());
        assert!(g.a.transpose().contiguous());
    }

    #[test]
    fn leading_batches_belong_to_the_storage_alone() {
        let g = Geometry::new(Shape { m: 2, k: 3, n: 5 }, Layout::Slice, 4, 9);
        assert_eq!((g.a.numel(), g.a.storage_numel(), g.a.position(0, 0, 0)), (24, 30, 6));
        let g = Geometry::new(Shape { m: 2, k: 3, n: 5 }, Layout::Offset, 4, 9);
        assert_eq!((g.b.numel(), g.b.storage_numel(), g.b.position(0, 0, 0)), (60, 195, 135));
    }

    #[test]
    fn the_crossing_tensor_is_the_largest() {
        let crossing = |m, k, n| Shape { m, k, n }.crossing();
        assert_eq!(crossing(256, 64, 256), Crossing::Out);
        assert_eq!(crossing(256, 256, 64), Crossing::In);
        assert_eq!(crossing(128, 512, 64), Crossing::In);
        assert_eq!(crossing(256, 256, 256), Crossing::All);
        assert!("256,64".parse::<Shape>().is_err() && "0,1,1".parse::<Shape>().is_err());
    }
}
