//! One run of a sweep: everything that decides what is computed and how it is compared.

use assay_tensor::DType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::SweepError;
use crate::geometry::{Geometry, Layout, Product, Role, Shape};
use crate::values::{Kind, Values};

/// How much of the output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// 256 evenly spaced batches, the first 4, the last 8, and those around every multiple of a boundary.
    Sample,
    /// Every batch.
    Full,
}

/// Why a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// To measure the error of a correct result; its outcome is not counted against the rules.
    Calibration,
    /// A point of a series.
    Search,
    /// A point between two neighbours that differ.
    Bisect,
    /// With index-encoded inputs.
    Index,
    /// Beside a switch point, or at the largest size of a series without one.
    Final,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Point {
    /// Why.
    pub phase: Phase,
    /// One batch.
    pub shape: Shape,
    /// Element type of every tensor.
    pub dtype: DType,
    /// How the operands are stored.
    pub layout: Layout,
    /// What they hold.
    pub kind: Kind,
    /// Batches.
    pub batch: u64,
    /// Leading batches of the storage in the offset layout, else 0.
    pub offset: u64,
    /// The seed of the values.
    pub seed: u64,
    /// How much is compared.
    pub compare: Compare,
    /// Whether the gradients are made and compared too.
    pub backward: bool,
}

impl Point {
    /// The point, where its tensors can be counted: sizes of records and plans come from anywhere.
    ///
    /// # Errors
    /// No batches, or a storage beyond 2^50 elements, far above which 64 bits would not hold its bytes.
    pub fn checked(self) -> Result<Point, SweepError> {
        let all = self.batch.checked_add(self.offset).and_then(|b| b.checked_add(1));
        let elements = all.and_then(|b| b.checked_mul(self.shape.crossing_elements()));
        if self.batch == 0 || elements.is_none_or(|n| n > 1 << 50) {
            return Err(SweepError::bad(format!(
                "{} batches of {} behind {} are no size to sweep",
                self.batch, self.shape, self.offset
            )));
        }
        Ok(self)
    }

    /// The operands.
    pub fn geometry(&self) -> Geometry {
        Geometry::new(self.shape, self.layout, self.batch, self.offset)
    }

    /// The products that it makes.
    pub fn products(&self) -> Vec<Product> {
        self.geometry().products(self.backward)
    }

    /// The values of one operand.
    pub fn values(&self, role: Role) -> Values {
        let constants = self.layout == Layout::Offset && role != Role::G;
        Values::new(self.seed, self.kind, self.dtype, role, self.shape, constants)
    }

    /// The series it belongs to: `256,64,256/f32/bT`, `grad/` before that of a backward pass.
    pub fn series(&self) -> String {
        let pass = if self.backward { "grad/" } else { "" };
        format!("{pass}{}/{}/{}", self.shape, self.dtype, self.layout)
    }

    /// The shape's name: which tensor crosses, and the extents.
    pub fn shape_id(&self) -> String {
        let crossing = match self.shape.crossing() {
            crate::geometry::Crossing::Out => "out",
            crate::geometry::Crossing::In => "in",
            crate::geometry::Crossing::All => "all",
        };
        format!("{crossing} {}", self.shape)
    }

    /// SHA-256 of what identifies the run within a sweep: operation, shape, dtype, layout, input, batch size, seed, kind of
    /// comparison and leading batches; calibration apart from the rest.
    pub fn fingerprint(&self) -> String {
        let text = format!(
            "bmm|{}|{}|{}|{}|{}|B={}|seed={}|{:?}|O={}|{}|{}",
            if self.backward { "backward" } else { "forward" },
            self.shape,
            self.dtype,
            self.layout,
            self.kind.name(),
            self.batch,
            self.seed,
            self.compare,
            self.offset,
            self.phase == Phase::Calibration,
            // The values' definition: a change of it is another run.
            1,
        );
        Sha256::digest(text.as_bytes()).iter().take(16).map(|b| format!("{b:02x}")).collect()
    }

    /// Bytes of every tensor that the run holds at once: inputs with their storage, output; for a backward pass also the
    /// upstream gradient and both gradients.
    pub fn device_bytes(&self) -> u64 {
        let g = self.geometry();
        let out = self.batch * self.shape.out();
        let mut elements = g.a.storage_numel() + g.b.storage_numel() + out;
        if self.backward {
            elements += out + g.a.numel() + g.b.numel();
        }
        elements.saturating_mul(self.dtype.size_bytes())
    }
}
