//! Ways to read an operand wrongly: the hypotheses about wrong values, and what emulated devices do.

use serde::{Deserialize, Serialize};

use crate::geometry::View;
use crate::values::{Storage, Values, transpose};

/// A misreading of an operand (boundary paper, §3 "Reference and comparison"). The default reads rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Misreading {
    /// A transposed storage is read as if it were contiguous.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_strides: bool,
    /// The flat index into the storage wraps around at this element count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap: Option<u64>,
    /// The view is taken to begin where its storage begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_offset: bool,
}

impl Misreading {
    /// Whether it reads `view` rightly everywhere: it ignores or wraps nothing that the view has.
    pub fn harmless(&self, view: &View) -> bool {
        !(self.ignore_strides && view.transposed || self.ignore_offset && view.skip > 0)
            && self.wrap.is_none_or(|at| view.storage_numel() <= at)
    }

    /// What it is called in records: `strides_ignored`, `wrapped_2^32`, `offset_ignored`, joined by `+`.
    pub fn name(&self) -> String {
        let mut parts = Vec::new();
        if self.ignore_strides {
            parts.push("strides_ignored".to_owned());
        }
        if let Some(at) = self.wrap {
            parts.push(format!("wrapped_{}", crate::condition::count(at)));
        }
        if self.ignore_offset {
            parts.push("offset_ignored".to_owned());
        }
        if parts.is_empty() { "right".to_owned() } else { parts.join("+") }
    }

    /// The misreading with that name.
    pub fn parse(name: &str) -> Option<Misreading> {
        let mut out = Misreading::default();
        for part in name.split('+') {
            match part {
                "strides_ignored" => out.ignore_strides = true,
                "offset_ignored" => out.ignore_offset = true,
                "right" => {}
                other => out.wrap = Some(crate::condition::parse_count(other.strip_prefix("wrapped_")?)?),
            }
        }
        Some(out)
    }

    /// Where element (batch, row, col) of `view` is looked for in its storage.
    #[inline]
    fn position(&self, view: &View, batch: u64, row: u64, col: u64) -> u64 {
        let inner = if view.transposed && !self.ignore_strides {
            col * view.rows + row
        } else {
            row * view.cols + col
        };
        let skip = if self.ignore_offset { 0 } else { view.skip };
        let at = (skip + batch) * view.per_batch() + inner;
        match self.wrap {
            Some(w) => at % w,
            None => at,
        }
    }
}

/// Reads one operand under a misreading.
pub struct Reader<'a> {
    values: &'a Values,
    view: View,
    misreading: Misreading,
    storage: Storage<'a>,
    zero_from: Option<u64>,
    scratch: Vec<f32>,
    stored: Vec<f32>,
}

impl<'a> Reader<'a> {
    /// Reads `view`, whose values are `values`.
    pub fn new(values: &'a Values, view: View, misreading: Misreading) -> Reader<'a> {
        let misreading = if misreading.harmless(&view) { Misreading::default() } else { misreading };
        Reader {
            values,
            view,
            misreading,
            storage: Storage::new(values, &view),
            zero_from: None,
            scratch: Vec::new(),
            stored: Vec::new(),
        }
    }

    /// The same storage, its elements from `from` on zero: what a transfer that stops leaves.
    pub fn zeroed(mut self, from: Option<u64>) -> Reader<'a> {
        self.zero_from = from.filter(|&f| f < self.view.storage_numel());
        self
    }

    /// One element.
    #[inline]
    pub fn at(&mut self, batch: u64, row: u64, col: u64) -> f32 {
        let position = self.misreading.position(&self.view, batch, row, col);
        if self.zero_from.is_some_and(|from| position >= from) { 0.0 } else { self.storage.at(position) }
    }

    /// A whole batch, rows x cols as the view shows it.
    pub fn batch(&mut self, batch: u64, out: &mut Vec<f32>) {
        let view = self.view;
        let per = view.per_batch();
        out.resize(per as usize, 0.0);
        let (rows, cols) = (view.rows as usize, view.cols as usize);
        if self.zero_from.is_some() {
            self.singly(batch, out);
            return;
        }
        if self.misreading == Misreading::default() {
            if view.flipped {
                self.scratch.resize(per as usize, 0.0);
                self.values.batch(batch as i64, &mut self.scratch);
                transpose(&self.scratch, cols, rows, out);
            } else {
                self.values.batch(batch as i64, out);
            }
            return;
        }
        let skip = if self.misreading.ignore_offset { 0 } else { view.skip };
        let mut start = (skip + batch) * per;
        let mut whole = true;
        if let Some(w) = self.misreading.wrap {
            start %= w;
            whole = start + per <= w;
        }
        if !whole || !start.is_multiple_of(per) {
            self.singly(batch, out);
        } else if view.transposed && !self.misreading.ignore_strides {
            self.stored.resize(per as usize, 0.0);
            self.values.storage_batch(&view, start / per, &mut self.stored, &mut self.scratch);
            transpose(&self.stored, cols, rows, out);
        } else {
            self.values.storage_batch(&view, start / per, out, &mut self.scratch);
        }
    }

    fn singly(&mut self, batch: u64, out: &mut [f32]) {
        for r in 0..self.view.rows {
            for c in 0..self.view.cols {
                out[(r * self.view.cols + c) as usize] = self.at(batch, r, c);
            }
        }
    }

    /// The logical batch that a read of `batch` finds, where it finds the whole of one, and whether its storage order is
    /// taken for the view's own.
    fn found(&self, batch: u64) -> Option<(i64, bool)> {
        if self.zero_from.is_some() {
            return None;
        }
        let (per, m) = (self.view.per_batch(), self.misreading);
        let mut start = (if m.ignore_offset { 0 } else { self.view.skip } + batch) * per;
        if let Some(w) = m.wrap {
            start %= w;
            if start + per > w {
                return None;
            }
        }
        let skip = self.view.skip;
        if !start.is_multiple_of(per) || (start / per < skip && self.values.constant_leading()) {
            return None;
        }
        Some((start as i64 / per as i64 - skip as i64, m.ignore_strides && self.view.transposed))
    }

    /// The rows `rows` of a batch, one after the other.
    pub fn rows(&mut self, batch: u64, rows: &[u64], out: &mut Vec<f32>) {
        let (height, width) = (self.view.rows, self.view.cols);
        out.resize(rows.len() * width as usize, 0.0);
        let found = self.found(batch);
        for (slot, &r) in out.chunks_exact_mut(width as usize).zip(rows) {
            match found {
                Some((logical, false)) => {
                    let (first, step) = if self.view.flipped { (r, height) } else { (r * width, 1) };
                    self.values.strided(logical, first, step, slot);
                }
                _ => {
                    for (c, v) in (0..width).zip(slot) {
                        *v = self.at(batch, r, c);
                    }
                }
            }
        }
    }

    /// The columns `cols` of a batch, one after the other.
    pub fn cols(&mut self, batch: u64, cols: &[u64], out: &mut Vec<f32>) {
        let (height, width) = (self.view.rows, self.view.cols);
        out.resize(cols.len() * height as usize, 0.0);
        let found = self.found(batch);
        for (slot, &c) in out.chunks_exact_mut(height as usize).zip(cols) {
            match found {
                Some((logical, false)) => {
                    let (first, step) = if self.view.flipped { (c * height, 1) } else { (c, width) };
                    self.values.strided(logical, first, step, slot);
                }
                _ => {
                    for (r, v) in (0..height).zip(slot) {
                        *v = self.at(batch, r, c);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, Layout, Shape};
    use crate::values::Kind;
    use assay_tensor::DType;

    #[test]
    fn whole_batches_rows_and_columns_agree_with_single_reads_under_every_misreading() {
        let shape = Shape { m: 5, k: 3, n: 4 };
        for layout in Layout::ALL {
            let g = Geometry::new(shape, layout, 6, 3);
            for view in [g.a, g.b, g.a.transpose(), g.b.transpose()] {
                let values =
                    Values::new(1, Kind::Random, DType::F32, view.role, shape, layout == Layout::Offset);
                let per = view.per_batch();
                for wrap in [None, Some(2 * per), Some(2 * per + 1), Some(per - 1)] {
                    for bits in 0..4 {
                        let m =
                            Misreading { ignore_strides: bits & 1 != 0, wrap, ignore_offset: bits & 2 != 0 };
                        assert_eq!(Misreading::parse(&m.name()), Some(m));
                        let mut reader = Reader::new(&values, view, m);
                        for batch in 0..6 {
                            let (mut whole, mut rows, mut cols) = (Vec::new(), Vec::new(), Vec::new());
                            reader.batch(batch, &mut whole);
                            reader.rows(batch, &[1, 0], &mut rows);
                            reader.cols(batch, &[2, 1], &mut cols);
                            let (r, c) = (view.rows, view.cols);
                            for i in 0..r {
                                for j in 0..c {
                                    let mut fresh = Storage::new(&values, &view);
                                    let want = fresh.at(m.position(&view, batch, i, j));
                                    assert_eq!(whole[(i * c + j) as usize], want, "{layout} {m:?} {view:?}");
                                }
                                assert_eq!(cols[i as usize], whole[(i * c + 2) as usize]);
                                assert_eq!(cols[(r + i) as usize], whole[(i * c + 1) as usize]);
                            }
                            assert_eq!(rows[..c as usize], whole[c as usize..2 * c as usize]);
                        }
                    }
                }
            }
        }
    }
}
