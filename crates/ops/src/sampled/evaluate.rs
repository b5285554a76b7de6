//! The forward pass: boxes of inputs through the operators to a box of an output.

use std::ops::Range;

use assay_tensor::Tensor;

use super::graph::{Call, From, Graph, Known, TensorId};
use super::region::{self, Edge, Region, Window};
use super::rules::{How, Work, sizes};
use super::{Demand, SampleError, Source, broken, extents};
use crate::array::{Array, Value};
use crate::error::{Fault, OpsError};
use crate::kernels::pool::{Pool, PoolParams, pool};
use crate::op::{Args, Cx, Evaluates};

/// Evaluates what a box demands and gives the box.
pub(super) fn run<T: Evaluates>(
    graph: &Graph,
    demand: Demand,
    source: &dyn Source,
    (output, id): (&str, TensorId),
    wanted: &[Range<u64>],
    cx: &Cx,
) -> Result<Tensor, SampleError> {
    // Windows of every tensor still to be read: at the last one it is dropped.
    let mut reads = vec![0usize; graph.nodes.len()];
    reads[id] += 1;
    for (call, work) in graph.calls.iter().zip(&demand.work) {
        if let Some(work) = work {
            for (operand, _) in call.tensors.iter().zip(&work.windows).filter(|(_, w)| w.is_some()) {
                reads[operand.id] += 1;
            }
        }
    }
    let mut machine =
        Machine::<T> { values: graph.nodes.iter().map(|_| None).collect(), regions: demand.regions, reads };
    for (k, node) in graph.nodes.iter().enumerate() {
        match (&node.from, &machine.regions[k]) {
            (From::Input(name), Some(region)) => {
                let t = source
                    .read(name, region)
                    .map_err(|why| SampleError::Source { name: name.clone(), why })?;
                let bad = |message| OpsError::BadTensor { name: name.clone(), message };
                if t.shape != extents(region) {
                    return Err(bad(format!("box {region:?} was read as shape {:?}", t.shape)).into());
                }
                machine.values[k] = Some(Value::from_tensor(&t).map_err(|f| bad(f.0))?);
            }
            // All results of a call at once.
            (From::Call { call, which: 0 }, Some(_)) => {
                if let Some(work) = &demand.work[*call] {
                    let call = &graph.calls[*call];
                    machine.call(call, work, cx).map_err(|f| call.refuses(f))?;
                }
            }
            _ => {}
        }
    }
    let fault = |f: Fault| OpsError::BadTensor { name: output.to_owned(), message: f.0 };
    let value = machine.window(id, &Window::of(wanted)).map_err(fault)?;
    match value.to_tensor() {
        Some(Ok(t)) => Ok(t),
        Some(Err(e)) => Err(fault(Fault(e.to_string())).into()),
        None => Err(fault(broken("no tensor".into())).into()),
    }
}

struct Machine<T> {
    values: Vec<Option<Value<T>>>,
    regions: Vec<Option<Region>>,
    reads: Vec<usize>,
}

impl<T: Evaluates> Machine<T> {
    /// A window of a tensor.
    fn window(&mut self, id: TensorId, w: &Window) -> Result<Value<T>, Fault> {
        let edge = match w.edge {
            Edge::Inside => None,
            Edge::Zero => Some(T::ZERO),
            Edge::NegativeInfinity => Some(T::NEG_INFINITY),
        };
        let out = match (&self.values[id], &self.regions[id], edge) {
            (Some(Value::Float(a)), Some(have), _) => Value::Float(region::read(a, have, w, edge)?),
            (Some(Value::Int(a)), Some(have), None) => Value::Int(region::read(a, have, w, None)?),
            (Some(Value::Bool(a)), Some(have), None) => Value::Bool(region::read(a, have, w, None)?),
            // Operators with padding take floats; an integer input is promoted by them, here before.
            (Some(v @ (Value::Int(_) | Value::Bool(_))), Some(have), Some(_)) => {
                Value::Float(region::read(&v.clone().into_float()?, have, w, edge)?)
            }
            // All of it is padding.
            (None, None, Some(e)) => Value::Float(Array::full(sizes(&w.extent), e)?),
            _ => return Err(broken("a tensor was not evaluated".into())),
        };
        self.reads[id] = self.reads[id].saturating_sub(1);
        if self.reads[id] == 0 {
            self.values[id] = None;
        }
        Ok(out)
    }

    /// Runs a call on its windows and stores the boxes of its results.
    fn call(&mut self, call: &Call, work: &Work, cx: &Cx) -> Result<(), Fault> {
        let mut next = 0;
        let mut args = Vec::with_capacity(call.args.len());
        for (arg, param) in call.args.iter().zip(call.op.params) {
            let arg = work.set.iter().find(|(name, _)| *name == param.name).map_or(arg, |(_, v)| v);
            args.push(self.argument(arg, work, &mut next)?.unwrap_or(Value::None));
        }
        let region = self.regions[call.results[0]].clone().unwrap_or_default();
        let wants = sizes(&extents(&region));
        let value = match &work.how {
            How::Operator => T::eval_of(call.op)(&mut Args::new(call.op.params, args), cx)?,
            How::Reshape => match only(args)? {
                Value::Float(a) => Value::Float(a.reshaped(wants.clone())?),
                Value::Int(a) => Value::Int(a.reshaped(wants.clone())?),
                Value::Bool(a) => Value::Bool(a.reshaped(wants.clone())?),
                other => return Err(broken(format!("{} to reshape", other.what()))),
            },
            How::Lookup(lookup) => match only(args)? {
                Value::Float(a) => Value::Float(looked_up(&a, lookup, &wants)?),
                Value::Int(a) => Value::Int(looked_up(&a, lookup, &wants)?),
                Value::Bool(a) => Value::Bool(looked_up(&a, lookup, &wants)?),
                other => return Err(broken(format!("{} to look up in", other.what()))),
            },
            How::Average { kernel, stride, counts } => {
                Value::Float(average(cx, only(args)?.into_float()?, kernel, stride, counts)?)
            }
        };
        let results = match value {
            Value::Tuple(all) => all,
            one => vec![one],
        };
        if results.len() != call.results.len() {
            return Err(broken(format!("{} results instead of {}", results.len(), call.results.len())));
        }
        let start: Vec<u64> = if work.crop.is_empty() { vec![0; region.len()] } else { work.crop.clone() };
        for (&id, value) in call.results.iter().zip(results) {
            if self.reads[id] == 0 {
                continue;
            }
            let shape: Vec<u64> = value.shape().unwrap_or_default().iter().map(|&d| d as u64).collect();
            // Without a crop the result is the box and nothing else.
            let exact = work.crop.is_empty();
            let fits = shape.len() == start.len()
                && shape.iter().zip(start.iter().zip(&wants)).all(|(&n, (&s, &w))| {
                    let end = s + w as u64;
                    if exact { end == n } else { end <= n }
                });
            if !fits {
                return Err(broken(format!("a result of shape {shape:?} for a box of {wants:?}")));
            }
            let have = super::whole_region(&shape);
            let crop = Window {
                start: start.iter().map(|&s| s as i64).collect(),
                extent: extents(&region),
                edge: Edge::Inside,
            };
            self.values[id] = Some(match value {
                Value::Float(a) => Value::Float(region::read(&a, &have, &crop, None)?),
                Value::Int(a) => Value::Int(region::read(&a, &have, &crop, None)?),
                Value::Bool(a) => Value::Bool(region::read(&a, &have, &crop, None)?),
                other => return Err(broken(format!("{} as a result", other.what()))),
            });
        }
        Ok(())
    }

    /// An argument's value; `None` for a tensor in a tuple that is not needed.
    fn argument(&mut self, k: &Known, work: &Work, next: &mut usize) -> Result<Option<Value<T>>, Fault> {
        Ok(Some(match k {
            Known::Tensor(id) => {
                let window = work.windows.get(*next).and_then(Option::as_ref);
                *next += 1;
                match window {
                    Some(w) => self.window(*id, w)?,
                    None => return Ok(None),
                }
            }
            Known::Scalar(s) => Value::Scalar(*s),
            Known::Text(s) => Value::Text(s.clone()),
            Known::None => Value::None,
            Known::Tuple(all) => {
                let mut out = Vec::with_capacity(all.len());
                for k in all {
                    out.extend(self.argument(k, work, next)?);
                }
                Value::Tuple(out)
            }
        }))
    }
}

/// The only tensor among arguments.
fn only<T>(args: Vec<Value<T>>) -> Result<Value<T>, Fault> {
    args.into_iter()
        .find(|v| matches!(v, Value::Float(_) | Value::Int(_) | Value::Bool(_)))
        .ok_or_else(|| broken("no tensor".into()))
}

fn looked_up<E: Copy>(a: &Array<E>, lookup: &[usize], shape: &[usize]) -> Result<Array<E>, Fault> {
    let outside = || broken("a place outside of its window".into());
    let data = lookup.iter().map(|&i| a.data().get(i).copied().ok_or_else(outside));
    Array::new(shape.to_vec(), data.collect::<Result<_, _>>()?)
}

/// Sums over windows by the operator's own kernel, divided by what every output's window counts.
fn average<T: Evaluates>(
    cx: &Cx,
    x: Array<T>,
    kernel: &[usize],
    stride: &[usize],
    counts: &[Vec<i64>],
) -> Result<Array<T>, Fault> {
    let n = kernel.len();
    let p = PoolParams {
        kernel: kernel.to_vec(),
        stride: stride.to_vec(),
        padding: vec![0; n],
        dilation: vec![1; n],
        ceil_mode: false,
    };
    // A sum divided by 1 is the sum.
    let sums = pool(cx, x, n, &p, Pool::Average { count_include_pad: true, divisor: Some(1) })?;
    let shape = sums.shape().to_vec();
    if shape.len() < n || shape[shape.len() - n..].iter().zip(counts).any(|(&d, c)| d != c.len()) {
        return Err(broken(format!("averages of shape {shape:?}")));
    }
    let mut divisors = vec![1i64];
    for c in counts {
        divisors = divisors.iter().flat_map(|&d| c.iter().map(move |&c| d * c)).collect();
    }
    let mut data = sums.into_data();
    for plane in data.chunks_exact_mut(divisors.len().max(1)) {
        for (v, &d) in plane.iter_mut().zip(&divisors) {
            *v = *v / T::from_i64(d);
        }
    }
    Array::new(shape, data)
}
