//! The emulated device at work: it makes what its mechanisms imply, element by element, when an element is asked for.

use crate::cases::{Answers, Case};
use crate::condition::Situation;
use crate::device::{Behaviour, Device, Effects};
use crate::error::SweepError;
use crate::geometry::{Product, View};
use crate::misread::{Misreading, Reader};
use crate::point::Point;
use crate::product::{exact, ordered};
use crate::values::{Values, encode, encode_wide, transpose};
use assay_tensor::DType;

/// Which elements of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    Whole,
    /// The cross product of rows and columns.
    Grid(Vec<u64>, Vec<u64>),
}

impl Selection {
    /// Elements of a batch of `rows` x `cols`.
    pub fn len(&self, rows: u64, cols: u64) -> u64 {
        match self {
            Selection::Whole => rows * cols,
            Selection::Grid(r, c) => (r.len() * c.len()) as u64,
        }
    }

    /// Row and column of element `i`.
    pub fn place(&self, i: u64, cols: u64) -> (u64, u64) {
        match self {
            Selection::Whole => (i / cols, i % cols),
            Selection::Grid(r, c) => {
                let n = c.len() as u64;
                (r[(i / n) as usize], c[(i % n) as usize])
            }
        }
    }
}

/// Elements as a device made them, before they are rounded to the dtype.
pub enum Made {
    /// Of every dtype but f64.
    Narrow(Vec<f32>),
    /// Of f64.
    Wide(Vec<f64>),
}

impl Made {
    /// As elements of `dtype` at the beginning of `room`, little-endian: the bytes written.
    ///
    /// # Errors
    /// They do not fit.
    pub fn encode(&self, dtype: DType, room: &mut [u8]) -> Result<usize, SweepError> {
        let bytes = self.bytes(dtype);
        let Some(room) = room.get_mut(..bytes) else {
            return Err(SweepError::Worker(format!("{bytes} bytes do not fit the exchange")));
        };
        match self {
            Made::Narrow(v) => encode(dtype, v, room),
            Made::Wide(v) => encode_wide(dtype, v, room),
        }
        Ok(bytes)
    }

    /// Bytes as elements of `dtype`.
    pub fn bytes(&self, dtype: DType) -> usize {
        let n = match self {
            Made::Narrow(v) => v.len(),
            Made::Wide(v) => v.len(),
        };
        n * dtype.size_bytes() as usize
    }
}

/// A device that has been given a point.
pub struct Emulated {
    device: Device,
    point: Point,
    products: Vec<(Product, Option<Effects>)>,
}

/// What became of the computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Computed {
    /// It returned.
    Done,
    /// It raised, in the forward or backward pass.
    Raised {
        /// `forward` or `backward`.
        stage: &'static str,
        /// The message.
        message: String,
    },
    /// It aborts.
    Aborts(String),
    /// It hangs.
    Hangs,
}

impl Emulated {
    /// `device` with the operands of `point`.
    pub fn new(device: Device, point: Point) -> Emulated {
        let products = point.products().into_iter().map(|p| (p, None)).collect();
        Emulated { device, point, products }
    }

    /// Runs the operation: the forward product, then those of the gradients.
    pub fn compute(&mut self) -> Computed {
        for (i, (product, effects)) in self.products.iter_mut().enumerate() {
            let stage = if i == 0 { "forward" } else { "backward" };
            let situation = Situation {
                product: *product,
                dtype: self.point.dtype,
                version: self.device.version.clone(),
            };
            match self.device.behaviour(&situation) {
                Behaviour::Computes(e) => *effects = Some(e),
                Behaviour::Raises(message) => return Computed::Raised { stage, message },
                Behaviour::Aborts(message) => return Computed::Aborts(message),
                Behaviour::Hangs => return Computed::Hangs,
            }
        }
        Computed::Done
    }

    /// The element type of every tensor.
    pub fn dtype(&self) -> DType {
        self.point.dtype
    }

    /// Batches of every tensor.
    pub fn batch(&self) -> u64 {
        self.point.batch
    }

    /// The tensors it made: names, rows and columns of a batch.
    pub fn outputs(&self) -> Vec<(&'static str, u64, u64)> {
        self.products.iter().map(|(p, _)| (p.output, p.left.rows, p.right.cols)).collect()
    }

    /// Batches of a tensor, an operand as passed or an output.
    ///
    /// # Errors
    /// A tensor that the device does not hold, or batches and elements outside it.
    pub fn read(&self, tensor: &str, batches: &[u64], selection: &Selection) -> Result<Made, SweepError> {
        if batches.iter().any(|&b| b >= self.point.batch) {
            return Err(SweepError::bad(format!("a batch of {tensor} beyond {}", self.point.batch)));
        }
        let g = self.point.geometry();
        if let Some(view) = [g.a, g.b].into_iter().find(|v| v.role.name() == tensor) {
            let mut out = Vec::new();
            self.read_operand(view, batches, selection, &mut out)?;
            return Ok(Made::Narrow(out));
        }
        let Some((product, Some(effects))) = self.products.iter().find(|(p, _)| p.output == tensor) else {
            return Err(SweepError::bad(format!("there is no tensor `{tensor}`")));
        };
        if self.point.dtype == DType::F64 {
            let mut out = Vec::new();
            self.read_output(product, effects, batches, selection, exact, &mut out)?;
            return Ok(Made::Wide(out));
        }
        let mut out = Vec::new();
        self.read_output(product, effects, batches, selection, ordered, &mut out)?;
        Ok(Made::Narrow(out))
    }

    fn read_operand(
        &self,
        view: View,
        batches: &[u64],
        selection: &Selection,
        out: &mut Vec<f32>,
    ) -> Result<(), SweepError> {
        if *selection != Selection::Whole {
            return Err(SweepError::bad("operands are read by whole batches"));
        }
        let values = self.point.values(view.role);
        let corrupt = self.device.corrupt_from(self.point.dtype.size_bytes());
        let mut reader = Reader::new(&values, view, Misreading::default()).zeroed(corrupt);
        let mut whole = Vec::new();
        for &batch in batches {
            reader.batch(batch, &mut whole);
            out.extend_from_slice(&whole);
        }
        Ok(())
    }

    /// The product by `multiply` of what the mechanisms read, and what they leave of it.
    fn read_output<T: Copy + From<f32> + std::ops::Add<Output = T>>(
        &self,
        product: &Product,
        effects: &Effects,
        batches: &[u64],
        selection: &Selection,
        multiply: impl Fn(&[f32], &[f32], usize, usize, usize, &mut Vec<T>),
        out: &mut Vec<T>,
    ) -> Result<(), SweepError> {
        let (l, r) = (product.left, product.right);
        if let Selection::Grid(rows, cols) = selection
            && (rows.iter().any(|&v| v >= l.rows) || cols.iter().any(|&v| v >= r.cols))
        {
            return Err(SweepError::bad("an element outside the tensor"));
        }
        let (lv, rv): (Values, Values) = (self.point.values(l.role), self.point.values(r.role));
        let corrupt = self.device.corrupt_from(self.point.dtype.size_bytes());
        let mut left = Reader::new(&lv, l, effects.left).zeroed(corrupt);
        let mut right = Reader::new(&rv, r, effects.right).zeroed(corrupt);
        let (mut lm, mut rm, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Vec::new();
        let inner = l.cols as usize;
        let per = l.rows * r.cols;
        for &batch in batches {
            let (rows, cols) = match selection {
                Selection::Whole => {
                    left.batch(batch, &mut lm);
                    right.batch(batch, &mut rm);
                    (l.rows as usize, r.cols as usize)
                }
                Selection::Grid(rows, cols) => {
                    left.rows(batch, rows, &mut lm);
                    right.cols(batch, cols, &mut columns);
                    rm.resize(columns.len(), 0.0);
                    transpose(&columns, cols.len(), inner, &mut rm);
                    (rows.len(), cols.len())
                }
            };
            multiply(&lm, &rm, rows, inner, cols, &mut made);
            let touched = effects.zero_from.is_some_and(|from| (batch + 1) * per > from)
                || effects.unexplained && (batch == 0 || batch + 1 == self.point.batch);
            if touched {
                for (i, v) in made.iter_mut().enumerate() {
                    let (row, col) = selection.place(i as u64, r.cols);
                    let at = batch * per + row * r.cols + col;
                    if effects.zero_from.is_some_and(|from| at >= from) {
                        *v = T::from(0.0);
                    }
                    if effects.unexplained && (batch == 0 || batch + 1 == self.point.batch) {
                        // Values that no reading of the inputs gives: half zero, half one more than the right one.
                        *v = if col % 2 == 0 { T::from(0.0) } else { *v + T::from(1.0) };
                    }
                }
            }
            out.extend_from_slice(&made);
        }
        Ok(())
    }
}

/// A device that has been given a case: it answers rightly, but for what its mechanisms do to the output.
pub struct EmulatedCase {
    device: Device,
    case: Case,
    batch: u64,
    dtype: DType,
    seed: u64,
    effects: Effects,
}

impl EmulatedCase {
    /// `device` with `batch` batches of `case`.
    pub fn new(device: Device, case: Case, batch: u64, dtype: DType, seed: u64) -> EmulatedCase {
        EmulatedCase { device, case, batch, dtype, seed, effects: Effects::default() }
    }

    /// Runs the operation.
    pub fn compute(&mut self) -> Computed {
        let situation = Situation {
            product: self.case.as_product(self.batch),
            dtype: self.dtype(),
            version: self.device.version.clone(),
        };
        match self.device.operation(&self.case.name, &situation) {
            Behaviour::Computes(e) => self.effects = e,
            Behaviour::Raises(message) => return Computed::Raised { stage: "forward", message },
            Behaviour::Aborts(message) => return Computed::Aborts(message),
            Behaviour::Hangs => return Computed::Hangs,
        }
        Computed::Done
    }

    /// The element type of the output.
    pub fn dtype(&self) -> DType {
        self.case.output_dtype(self.dtype)
    }

    /// The element type of a tensor.
    ///
    /// # Errors
    /// A tensor that the case does not have.
    pub fn dtype_of(&self, tensor: &str) -> Result<DType, SweepError> {
        if tensor == "out" {
            return Ok(self.dtype());
        }
        self.case
            .operands
            .iter()
            .find(|o| o.name == tensor)
            .map(|o| self.case.operand_dtype(o, self.dtype))
            .ok_or_else(|| SweepError::bad(format!("there is no tensor `{tensor}`")))
    }

    /// The shape of the output.
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = vec![self.batch * self.case.output.times];
        shape.extend(&self.case.output.shape);
        shape
    }

    /// Batches of a tensor.
    ///
    /// # Errors
    /// A tensor or batch that is not there.
    pub fn read(&self, tensor: &str, batches: &[u64]) -> Result<Vec<f64>, SweepError> {
        let answers = Answers::new(&self.case, self.batch, self.dtype, self.seed)?;
        let mut out = Vec::new();
        if let Some(which) = self.case.operands.iter().position(|o| o.name == tensor) {
            let mut values = Vec::new();
            for &b in batches {
                answers.operand(which, b, &mut values);
                out.extend(values.iter().map(|&v| f64::from(v)));
            }
            return Ok(out);
        }
        if tensor != "out" {
            return Err(SweepError::bad(format!("there is no tensor `{tensor}`")));
        }
        let per = self.case.output_elements();
        let mut values = Vec::new();
        for &b in batches {
            answers.output(b, &mut values)?;
            if let Some(from) = self.effects.zero_from {
                for (i, v) in values.iter_mut().enumerate() {
                    if b * per + i as u64 >= from {
                        *v = 0.0;
                    }
                }
            }
            out.extend_from_slice(&values);
        }
        Ok(out)
    }
}
