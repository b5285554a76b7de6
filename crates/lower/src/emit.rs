//! The program being written: tensors, and calls of our operators over them.

use std::collections::{BTreeMap, BTreeSet};

use assay_ops::array::{Array, Scalar, Value};
use assay_ops::op::{Kind, Literal};
use assay_ops::{Fault, Op};
use assay_tensor::DType;

use crate::error::Unsupported;
use crate::graph::{Argument, ExportedGraph, Meta, Node, Source, dtype};
use crate::text;

/// Index of a tensor.
pub(crate) type TensorId = usize;

/// What a tensor is to the problem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// An input or a parameter; by its target.
    Given,
    /// Made by a call.
    Made,
}

/// A tensor of the program.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    /// Its name in the reference and in `launch`.
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub role: Role,
    /// The tensor whose elements, in the same order, these are.
    pub alias: Option<TensorId>,
}

/// An argument of a call, and a value of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    Tensor(TensorId),
    Number(Scalar),
    Text(String),
    None,
    Tuple(Vec<Arg>),
}

/// A call of one of our operators.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub op: &'static Op,
    /// In the order of the operator's parameters; `None` where the default stands.
    pub args: Vec<Option<Arg>>,
    /// Its results; the second of two is none where nothing reads it.
    pub results: Vec<Option<TensorId>>,
    /// The number of results.
    pub count: usize,
}

/// A tensor that the problem is given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub tensor: TensorId,
    pub parameter: bool,
    /// By which the worker gives its values.
    pub target: String,
    pub init: String,
    pub structure: Option<String>,
    pub fitted: bool,
}

/// A program in the making.
pub(crate) struct Cx<'g> {
    pub graph: &'g ExportedGraph,
    pub tensors: Vec<Tensor>,
    pub calls: Vec<Call>,
    pub given: Vec<Given>,
    /// Values by the graph's names.
    values: BTreeMap<String, Arg>,
    /// Which names of the graph, and which items of them, some node or output reads.
    reads: BTreeSet<(String, Option<i64>)>,
    names: text::Names,
    /// Random tensors so far, in the order in which the forward pass draws them.
    random: usize,
}

impl<'g> Cx<'g> {
    /// Begins with nothing; `nodes` and `outputs` are those that will be lowered.
    pub fn new(graph: &'g ExportedGraph, nodes: &[Node], outputs: &[Argument]) -> Cx<'g> {
        let mut reads = BTreeSet::new();
        for n in nodes {
            match (n.op.as_str(), n.args.as_slice()) {
                ("getitem", [Argument::Node(of), Argument::Int(at)]) => {
                    reads.insert((of.clone(), Some(*at)));
                }
                _ => reads.extend(n.names().into_iter().map(|name| (name.to_owned(), None))),
            }
        }
        for o in outputs {
            if let Argument::Node(n) = o {
                reads.insert((n.clone(), None));
            }
        }
        Cx {
            graph,
            tensors: Vec::new(),
            calls: Vec::new(),
            given: Vec::new(),
            values: BTreeMap::new(),
            reads,
            names: text::Names::default(),
            random: 0,
        }
    }

    /// Whether an item of a node's tuple is read.
    pub fn reads_item(&self, node: &Node, at: i64) -> bool {
        self.reads.contains(&(node.name.clone(), Some(at))) || self.reads.contains(&(node.name.clone(), None))
    }

    /// Makes a tensor of the graph known; used when something first reads it.
    fn source(&mut self, s: &Source) -> Result<Arg, Unsupported> {
        if s.shape.is_empty()
            && let Some(number) = s.value.as_ref().and_then(number)
        {
            // A number that the module holds, not one that an input brings.
            if !self.graph.inputs.iter().any(|i| i.name == s.name)
                && !self.graph.parameters.iter().any(|p| p.name == s.name)
            {
                return Ok(Arg::Number(number));
            }
        }
        let Some(own) = dtype(&s.dtype) else {
            return Err(Unsupported::Use {
                op: "placeholder".to_owned(),
                node: s.name.clone(),
                what: format!("a tensor of the element type `{}`", s.dtype),
            });
        };
        let Some(init) = s.init.clone() else {
            return Err(Unsupported::Use {
                op: "placeholder".to_owned(),
                node: s.name.clone(),
                what: "a tensor that no words say how to make".to_owned(),
            });
        };
        let parameter = !self.graph.inputs.iter().any(|i| i.name == s.name);
        // Without the prefix that `torch.export` gives to what the module holds.
        let short = match s.name.split_once('_') {
            Some(("p" | "b" | "c", rest)) if parameter => rest,
            _ => &s.name,
        };
        let name = self.names.fresh(short);
        let id =
            self.push(Tensor { name, dtype: own, shape: s.shape.clone(), role: Role::Given, alias: None });
        self.given.push(Given {
            tensor: id,
            parameter,
            target: s.target.clone(),
            init,
            structure: s.structure.clone(),
            fitted: s.fitted,
        });
        Ok(Arg::Tensor(id))
    }

    /// Makes the inputs known, whether they are read or not: they are the problem's signature.
    ///
    /// # Errors
    /// An element type that is not covered.
    pub fn inputs(&mut self) -> Result<(), Unsupported> {
        for s in &self.graph.inputs {
            let value = self.source(s)?;
            self.values.insert(s.name.clone(), value);
        }
        Ok(())
    }

    /// A random tensor as an input of its own.
    pub fn random(&mut self, name: &str, dtype: DType, shape: Vec<u64>, init: String) -> TensorId {
        let name = self.names.fresh(name);
        let id = self.push(Tensor { name, dtype, shape, role: Role::Given, alias: None });
        let target = format!("random:{}", self.random);
        self.random += 1;
        self.given.push(Given { tensor: id, parameter: false, target, init, structure: None, fitted: false });
        id
    }

    fn push(&mut self, t: Tensor) -> TensorId {
        self.tensors.push(t);
        self.tensors.len() - 1
    }

    /// The value that a name of the graph has.
    ///
    /// # Errors
    /// `Malformed` for a name that nothing defined.
    pub fn value(&mut self, name: &str) -> Result<Arg, Unsupported> {
        if let Some(v) = self.values.get(name) {
            return Ok(v.clone());
        }
        let Some(s) = self.graph.sources().find(|s| s.name == name) else {
            return Err(Unsupported::Malformed(format!("`{name}` is read and nothing defines it")));
        };
        let value = self.source(s)?;
        self.values.insert(name.to_owned(), value.clone());
        Ok(value)
    }

    /// What a node's name stands for.
    pub fn define(&mut self, name: &str, value: Arg) {
        self.values.insert(name.to_owned(), value);
    }

    /// An argument of a node as one of a call.
    ///
    /// # Errors
    /// As [`Cx::value`].
    pub fn arg(&mut self, a: &Argument) -> Result<Arg, Unsupported> {
        Ok(match a {
            Argument::Node(n) => self.value(n)?,
            Argument::Int(i) => Arg::Number(Scalar::Int(*i)),
            Argument::Float(x) => Arg::Number(Scalar::Float(*x)),
            Argument::Bool(b) => Arg::Number(Scalar::Bool(*b)),
            Argument::Text(s) => Arg::Text(s.clone()),
            Argument::None | Argument::DType(_) | Argument::Other(_) => Arg::None,
            Argument::List(all) => Arg::Tuple(all.iter().map(|a| self.arg(a)).collect::<Result<_, _>>()?),
        })
    }

    /// The tensor behind a value, where it is one.
    pub fn tensor(&self, a: &Arg) -> Option<&Tensor> {
        match a {
            Arg::Tensor(id) => self.tensors.get(*id),
            _ => None,
        }
    }

    /// Element type and shape of a node's result.
    ///
    /// # Errors
    /// `Use` for an element type that is not covered, or a result that is no tensor.
    pub fn meta(&self, node: &Node, at: usize) -> Result<(DType, Vec<u64>), Unsupported> {
        let what = |what: String| Unsupported::Use { op: node.op.clone(), node: node.name.clone(), what };
        let meta: &Meta = node
            .outputs
            .get(at)
            .and_then(Option::as_ref)
            .ok_or_else(|| what(format!("its result {at} is no tensor")))?;
        let own = dtype(&meta.dtype);
        Ok((
            own.ok_or_else(|| what(format!("a result of the element type `{}`", meta.dtype)))?,
            meta.shape.clone(),
        ))
    }

    /// Calls an operator for one result.
    pub fn call(
        &mut self,
        op: &'static Op,
        args: &[(&str, Arg)],
        (dtype, shape): (DType, Vec<u64>),
    ) -> TensorId {
        let name = self.names.made();
        let id = self.push(Tensor { name, dtype, shape, role: Role::Made, alias: None });
        self.calls.push(Call { op, args: bound(op, args), results: vec![Some(id)], count: 1 });
        id
    }

    /// Calls an operator that gives a value and its position, of which those asked for are kept.
    pub fn call_pair(
        &mut self,
        op: &'static Op,
        args: &[(&str, Arg)],
        shape: &[u64],
        dtype: DType,
        wanted: [bool; 2],
    ) -> [Option<TensorId>; 2] {
        let mut made = [None, None];
        for (k, own) in [dtype, DType::I64].into_iter().enumerate() {
            // The kernel writes the value whether it is read or not.
            if wanted[k] || k == 0 {
                let name = self.names.made();
                let t = Tensor { name, dtype: own, shape: shape.to_vec(), role: Role::Made, alias: None };
                made[k] = Some(self.push(t));
            }
        }
        self.calls.push(Call { op, args: bound(op, args), results: made.to_vec(), count: 2 });
        made
    }

    /// The same elements under another shape: `reshape`, without a kernel.
    pub fn reshaped(&mut self, of: TensorId, shape: Vec<u64>) -> TensorId {
        let t = &self.tensors[of];
        if t.shape == shape {
            return of;
        }
        let dtype = t.dtype;
        let tuple = shape.iter().map(|&n| Arg::Number(Scalar::Int(n as i64))).collect();
        let args = [("input", Arg::Tensor(of)), ("shape", Arg::Tuple(tuple))];
        let id = self.call(&assay_ops::ops::shape::reshape::OP, &args, (dtype, shape));
        self.tensors[id].alias = Some(of);
        id
    }

    /// The tensor that holds the elements of this one.
    pub fn storage(&self, mut id: TensorId) -> TensorId {
        while let Some(of) = self.tensors[id].alias {
            id = of;
        }
        id
    }

    /// Gives an output its name; what is given or held elsewhere is copied.
    pub fn output(&mut self, id: TensorId, name: &str, taken: &BTreeSet<TensorId>) -> TensorId {
        let name = self.names.fresh(name);
        let t = &self.tensors[id];
        if t.role == Role::Made && t.alias.is_none() && !taken.contains(&id) {
            self.tensors[id].name = name;
            return id;
        }
        let (dtype, shape) = (t.dtype, t.shape.clone());
        let tuple = shape.iter().map(|&n| Arg::Number(Scalar::Int(n as i64))).collect();
        let args = [("input", Arg::Tensor(id)), ("shape", Arg::Tuple(tuple))];
        let copy = self.call(&assay_ops::ops::shape::reshape::OP, &args, (dtype, shape));
        self.tensors[copy].name = name;
        copy
    }

    /// The value of an argument as a frame reads it: shapes and numbers, elements of zero.
    ///
    /// # Errors
    /// A fault where a tensor is too large.
    pub fn placeholder(&self, a: &Arg) -> Result<Value<f32>, Fault> {
        Ok(match a {
            Arg::Tensor(id) => zeros(&self.tensors[*id])?,
            Arg::Number(s) => Value::Scalar(*s),
            Arg::Text(s) => Value::Text(s.clone()),
            Arg::None => Value::None,
            Arg::Tuple(all) => {
                Value::Tuple(all.iter().map(|a| self.placeholder(a)).collect::<Result<_, _>>()?)
            }
        })
    }
}

/// A tensor of zeros: only its shape counts.
pub(crate) fn zeros(t: &Tensor) -> Result<Value<f32>, Fault> {
    let shape: Vec<usize> = t
        .shape
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| Fault::new("a size is too large")))
        .collect::<Result<_, _>>()?;
    Ok(match t.dtype {
        DType::I64 => Value::Int(Array::full(shape, 0)?),
        DType::Bool => Value::Bool(Array::full(shape, false)?),
        _ => Value::Float(Array::full(shape, 0.0)?),
    })
}

/// Arguments by name, in the order of the parameters.
fn bound(op: &'static Op, args: &[(&str, Arg)]) -> Vec<Option<Arg>> {
    debug_assert!(args.iter().all(|(n, _)| op.params.iter().any(|p| p.name == *n)), "{}: {args:?}", op.name);
    op.params
        .iter()
        .map(|p| {
            let given = args.iter().find(|(n, _)| *n == p.name).map(|(_, a)| a.clone())?;
            (!is_default(&given, p.default, p.kind)).then_some(given)
        })
        .collect()
}

fn is_default(given: &Arg, default: Option<Literal>, kind: Kind) -> bool {
    match (given, default) {
        (Arg::None, Some(Literal::None)) => true,
        (Arg::Text(s), Some(Literal::Text(t))) => s == t,
        (Arg::Number(a), Some(Literal::Scalar(b))) => a.to_f64() == b.to_f64(),
        // One integer stands for all.
        (Arg::Tuple(all), Some(Literal::Scalar(b))) if matches!(kind, Kind::Ints | Kind::OptInts) => {
            !all.is_empty() && all.iter().all(|a| *a == Arg::Number(b))
        }
        _ => false,
    }
}

/// A number of JSON.
fn number(v: &serde_json::Value) -> Option<Scalar> {
    match v {
        serde_json::Value::Bool(b) => Some(Scalar::Bool(*b)),
        v => v.as_i64().map(Scalar::Int).or_else(|| v.as_f64().map(Scalar::Float)),
    }
}
