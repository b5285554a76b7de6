//! Outputs at boxes of indices: a program evaluated without holding, or computing, what the box does not
//! need.
//!
//! Backward from the box every call says which windows of its arguments it needs (`rules`); of each tensor
//! the smallest box around all needs is taken. Forward, inputs are read at their boxes from a [`Source`] and
//! every call runs the operator itself on its windows. Memory and time follow the boxes, not the tensors: an
//! input of 2^33 elements is never made.
//!
//! **Bits.** The same as [`Program::evaluate`] in the same variant, for every operator: what an operator
//! accumulates over is taken whole, in the variant's order; padding is written out with the values that the
//! whole evaluation reads there.
//!
//! **What it cannot do.** Where a result depends on everything (a loss, a sum over all dimensions) everything
//! is needed; a box larger than [`Limits::elements`] makes the evaluation [`SampleError::NotSampleable`],
//! which says nothing about the program. A box around scattered needs can be larger than the needs: `cat` of
//! two ends of one tensor holds what lies between.

mod evaluate;
mod graph;
pub mod region;
mod rules;

use std::collections::BTreeMap;
use std::ops::Range;

use assay_tensor::Tensor;

use crate::error::{Fault, OpsError};
use crate::lang::Program;
use crate::op::Cx;
use crate::variant::{Precision, Variant};
use graph::{From, Graph, TensorId};
pub use region::{Region, boxes, extents, region_len, whole_region};
use region::{Window, hull};
use rules::Work;
pub use rules::is_pointwise;

/// Inputs that can be read in parts.
pub trait Source {
    /// Extents of an input; `None` where there is none of that name.
    fn shape(&self, name: &str) -> Option<Vec<u64>>;

    /// The elements of a box of an input, row-major, in the input's dtype. The box is inside of the shape.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, name: &str, region: &[Range<u64>]) -> Result<Tensor, String>;
}

/// Whole tensors as a source: for tests, and where only the outputs are too large.
impl Source for BTreeMap<String, Tensor> {
    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.get(name).map(|t| t.shape.clone())
    }

    fn read(&self, name: &str, region: &[Range<u64>]) -> Result<Tensor, String> {
        let t = self.get(name).ok_or("no such tensor")?;
        let size = t.dtype.size_bytes() as usize;
        let mut data = Vec::new();
        for_rows(&t.shape, region, |first, len| {
            data.extend_from_slice(&t.data[first as usize * size..(first + len) as usize * size]);
        });
        Tensor::from_bytes(t.dtype, &extents(region), data).map_err(|e| e.to_string())
    }
}

/// Calls `f` with first index and length of every row of a box, in row-major order.
pub fn for_rows(shape: &[u64], region: &[Range<u64>], mut f: impl FnMut(u64, u64)) {
    let Some((last, outer)) = region.split_last() else {
        f(0, 1);
        return;
    };
    if region.iter().any(|r| r.start >= r.end) {
        return;
    }
    let mut at: Vec<u64> = outer.iter().map(|r| r.start).collect();
    loop {
        let base = at.iter().zip(shape).fold(0, |n, (&i, &d)| n * d + i);
        f(base * shape.last().copied().unwrap_or(1) + last.start, last.end - last.start);
        let mut d = outer.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            at[d] += 1;
            if at[d] < outer[d].end {
                break;
            }
            at[d] = outer[d].start;
        }
    }
}

/// How much a box may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements of one tensor's box, padding included.
    pub elements: u64,
}

impl Default for Limits {
    /// 2^27 elements: a gibibyte in float64.
    fn default() -> Limits {
        Limits { elements: 1 << 27 }
    }
}

/// Why a box was not evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// The program or its inputs are wrong, as in a whole evaluation.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The box asked for is empty or not inside of the output.
    #[error("the box {region:?} is empty or outside of `{name}` of shape {shape:?}")]
    Region {
        /// The output.
        name: String,
        /// The box.
        region: Region,
        /// The output's shape.
        shape: Vec<u64>,
    },
    /// The box needs more than the limit. Says nothing about the program.
    #[error("not sampleable: {what} needs {elements} elements at once, the limit is {limit}")]
    NotSampleable {
        /// The call or input.
        what: String,
        /// Elements needed.
        elements: u64,
        /// The limit.
        limit: u64,
    },
    /// An input could not be read.
    #[error("input `{name}`: {why}")]
    Source {
        /// The input.
        name: String,
        /// What the source says.
        why: String,
    },
}

/// A program with its shapes worked out, ready to be evaluated at boxes.
#[derive(Clone, Debug)]
pub struct Sampling {
    graph: Graph,
}

/// What a box needs: per tensor its box, per call what is done.
struct Demand {
    regions: Vec<Option<Region>>,
    work: Vec<Option<Work>>,
}

impl Sampling {
    /// Works out every shape of a program; `shape_of` gives the extents of inputs.
    ///
    /// # Errors
    /// As [`Program::evaluate`], as far as shapes tell.
    pub fn new(
        program: &Program,
        shape_of: &dyn Fn(&str) -> Option<Vec<u64>>,
        scalars: &BTreeMap<String, f64>,
    ) -> Result<Sampling, OpsError> {
        Ok(Sampling { graph: Graph::new(program, shape_of, scalars)? })
    }

    /// Extents of an output.
    ///
    /// # Errors
    /// `UnknownOutput`, `NotATensor`.
    pub fn shape(&self, output: &str) -> Result<&[u64], OpsError> {
        Ok(&self.graph.nodes[self.graph.output(output)?].shape)
    }

    /// The most elements that a box needs of one tensor at once, padding included; what [`Limits`] is
    /// compared with.
    ///
    /// # Errors
    /// As [`Sampling::evaluate`] but for the limit.
    pub fn needs(&self, output: &str, region: &[Range<u64>]) -> Result<u64, SampleError> {
        let demand = self.demand(output, region)?;
        Ok(self.sizes(&demand).map(|(n, _)| n).max().unwrap_or(0))
    }

    /// A box of an output: the same bits as that part of [`Program::evaluate`]'s result in this variant.
    ///
    /// # Errors
    /// `Region` for a box that is empty or not inside; `NotSampleable` where more than the limit is needed;
    /// `Source`; `Ops` for what an operator refuses.
    pub fn evaluate(
        &self,
        source: &dyn Source,
        output: &str,
        region: &[Range<u64>],
        variant: &Variant,
        limits: &Limits,
    ) -> Result<Tensor, SampleError> {
        let demand = self.demand(output, region)?;
        if let Some((elements, what)) = self.sizes(&demand).find(|(n, _)| *n > limits.elements) {
            let what = match what {
                Holder::Input(name) => format!("input `{name}`"),
                Holder::Call(call) => {
                    format!("`{}` at line {}", self.graph.calls[call].op.name, self.graph.calls[call].line)
                }
            };
            return Err(SampleError::NotSampleable { what, elements, limit: limits.elements });
        }
        let cx = Cx { variant: *variant };
        let id = self.graph.output(output)?;
        match variant.precision {
            Precision::F64 => evaluate::run::<f64>(&self.graph, demand, source, (output, id), region, &cx),
            Precision::F32 => evaluate::run::<f32>(&self.graph, demand, source, (output, id), region, &cx),
        }
    }

    fn demand(&self, output: &str, region: &[Range<u64>]) -> Result<Demand, SampleError> {
        let Graph { nodes, calls, .. } = &self.graph;
        let id = self.graph.output(output)?;
        let shape = &nodes[id].shape;
        let inside = region.len() == shape.len()
            && region.iter().zip(shape).all(|(r, &n)| r.start < r.end && r.end <= n);
        if !inside {
            return Err(SampleError::Region {
                name: output.to_owned(),
                region: region.to_vec(),
                shape: shape.clone(),
            });
        }
        let mut demand = Demand {
            regions: nodes.iter().map(|_| None).collect(),
            work: calls.iter().map(|_| None).collect(),
        };
        demand.regions[id] = Some(region.to_vec());
        for (k, call) in calls.iter().enumerate().rev() {
            let mut wanted: Option<Region> = None;
            for r in call.results.iter().filter_map(|&id| demand.regions[id].as_ref()) {
                match &mut wanted {
                    Some(w) => hull(w, r),
                    None => wanted = Some(r.clone()),
                }
            }
            let Some(wanted) = wanted else { continue };
            for &id in &call.results {
                demand.regions[id] = Some(wanted.clone());
            }
            let rule = if call.shape.contains(&0) { rules::everything } else { call.rule.work };
            let work = rule(call, &wanted).map_err(|f| call.refuses(f))?;
            for (operand, window) in call.tensors.iter().zip(&work.windows) {
                if let Some(window) = window {
                    want(&mut demand.regions, operand.id, &operand.shape, window);
                }
            }
            demand.work[k] = Some(work);
        }
        Ok(demand)
    }

    /// Elements of everything that is held for a demand, by what holds it.
    fn sizes<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = (u64, Holder<'a>)> {
        let held = self.graph.nodes.iter().zip(&demand.regions).filter_map(|(node, region)| {
            let holder = match &node.from {
                From::Input(name) => Holder::Input(name),
                From::Call { call, .. } => Holder::Call(*call),
            };
            region.as_ref().map(|r| (region_len(r).unwrap_or(u64::MAX), holder))
        });
        let windows = demand.work.iter().enumerate().flat_map(|(k, work)| {
            let all = work.iter().flat_map(|w| w.windows.iter().flatten());
            all.map(move |w| (w.len().unwrap_or(u64::MAX), Holder::Call(k)))
        });
        held.chain(windows)
    }
}

/// What holds a box.
enum Holder<'a> {
    Input(&'a str),
    Call(usize),
}

/// Widens what is wanted of a tensor by a window.
fn want(regions: &mut [Option<Region>], id: TensorId, shape: &[u64], window: &Window) {
    let part = if shape.contains(&0) { Some(whole_region(shape)) } else { window.inside(shape) };
    let Some(part) = part else { return };
    match &mut regions[id] {
        Some(r) => hull(r, &part),
        none => *none = Some(part),
    }
}

/// A refusal that names no line: a result that is not what a rule promised.
fn broken(what: String) -> Fault {
    Fault(format!("evaluation at a box: {what}"))
}
