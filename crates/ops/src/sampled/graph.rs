//! A program with every shape known and nothing evaluated: the calls in order, what each reads and gives.

use std::collections::BTreeMap;

use super::rules::{Rule, rule_of};
use crate::array::{Scalar, Value};
use crate::error::{Fault, OpsError};
use crate::lang::Program;
use crate::lang::parser::{Expr, Origin};
use crate::op::{Args, Cx, Literal, Op};
use crate::variant::Variant;

/// A tensor of the graph.
pub(crate) type TensorId = usize;

/// What an expression is, as far as shapes tell.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// A tensor, whatever its elements are.
    Tensor(TensorId),
    /// A number.
    Scalar(Scalar),
    /// A string.
    Text(String),
    /// Python's `None`.
    None,
    /// Several values.
    Tuple(Vec<Known>),
}

/// Where a tensor comes from.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// An input of that name.
    Input(String),
    /// A result of a call.
    Call { call: usize, which: usize },
}

/// A tensor: its shape and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) shape: Vec<u64>,
    pub(crate) from: From,
}

/// A call of an operator on at least one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) op: &'static Op,
    pub(crate) rule: &'static Rule,
    pub(crate) line: u32,
    /// One per parameter.
    pub(crate) args: Vec<Known>,
    /// The tensors among the arguments in order, those in tuples included.
    pub(crate) tensors: Vec<Operand>,
    /// Shape of every result.
    pub(crate) shape: Vec<u64>,
    /// The results.
    pub(crate) results: Vec<TensorId>,
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) param: &'static str,
    pub(crate) id: TensorId,
    pub(crate) shape: Vec<u64>,
}

impl Call {
    /// The arguments that are no tensors; in a tensor's place stands `None`.
    pub(crate) fn numbers(&self) -> Args<f64> {
        Args::new(self.op.params, self.args.iter().map(plain).collect())
    }

    /// Shape of the tensor given for a parameter.
    pub(crate) fn shape_of(&self, param: &str) -> Option<&[u64]> {
        self.tensors.iter().find(|t| t.param == param).map(|t| t.shape.as_slice())
    }

    /// As [`Call::shape_of`], for parameters that must be given.
    ///
    /// # Errors
    /// A fault where no tensor is given.
    pub(crate) fn needed(&self, param: &str) -> Result<&[u64], Fault> {
        self.shape_of(param).ok_or_else(|| Fault(format!("`{param}` takes a tensor")))
    }

    /// A refusal of this call, with its line and shapes.
    pub(crate) fn refuses(&self, Fault(message): Fault) -> OpsError {
        OpsError::Op {
            op: self.op.name,
            line: self.line,
            message,
            shapes: self.tensors.iter().map(|t| t.shape.clone()).collect(),
        }
    }
}

/// A known value without its tensors.
fn plain(k: &Known) -> Value<f64> {
    match k {
        Known::Tensor(_) | Known::None => Value::None,
        Known::Scalar(s) => Value::Scalar(*s),
        Known::Text(s) => Value::Text(s.clone()),
        Known::Tuple(all) => Value::Tuple(all.iter().map(plain).collect()),
    }
}

/// A program's calls and tensors.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) calls: Vec<Call>,
    /// What a name means after the last line.
    names: BTreeMap<String, Known>,
}

impl Graph {
    /// Walks the program over shapes.
    pub(crate) fn new(
        program: &Program,
        shape_of: &dyn Fn(&str) -> Option<Vec<u64>>,
        scalars: &BTreeMap<String, f64>,
    ) -> Result<Graph, OpsError> {
        let mut b = Builder {
            program,
            shape_of,
            scalars,
            slots: program.slots.iter().map(|_| None).collect(),
            graph: Graph { nodes: Vec::new(), calls: Vec::new(), names: BTreeMap::new() },
        };
        for line in &program.lines {
            let value = b.walk(&line.value)?;
            match line.targets.as_slice() {
                [slot] => b.slots[*slot] = Some(value),
                several => {
                    let all = match value {
                        Known::Tuple(all) if all.len() == several.len() => all,
                        _ => {
                            return Err(OpsError::Op {
                                op: "=",
                                line: line.number,
                                message: format!("{} names need as many values", several.len()),
                                shapes: Vec::new(),
                            });
                        }
                    };
                    for (slot, v) in several.iter().zip(all) {
                        b.slots[*slot] = Some(v);
                    }
                }
            }
        }
        // Later bindings of a name replace earlier ones; inputs that no line reads are outputs all the same.
        for (k, (name, _)) in program.slots.iter().enumerate() {
            if let Ok(v) = b.load(k) {
                b.graph.names.insert(name.clone(), v);
            }
        }
        Ok(b.graph)
    }

    /// The tensor that a name means after the last line.
    pub(crate) fn output(&self, name: &str) -> Result<TensorId, OpsError> {
        match self.names.get(name) {
            Some(Known::Tensor(id)) => Ok(*id),
            Some(other) => {
                Err(OpsError::NotATensor { name: name.to_owned(), what: plain(other).what().to_owned() })
            }
            None => Err(OpsError::UnknownOutput(name.to_owned())),
        }
    }
}

struct Builder<'a> {
    program: &'a Program,
    shape_of: &'a dyn Fn(&str) -> Option<Vec<u64>>,
    scalars: &'a BTreeMap<String, f64>,
    slots: Vec<Option<Known>>,
    graph: Graph,
}

impl Builder<'_> {
    fn load(&mut self, slot: usize) -> Result<Known, OpsError> {
        if let Some(v) = &self.slots[slot] {
            return Ok(v.clone());
        }
        let (name, origin) = &self.program.slots[slot];
        let v = match origin {
            Origin::Input => {
                let shape = (self.shape_of)(name).ok_or_else(|| OpsError::MissingInput(name.clone()))?;
                let bad = |f: Fault| OpsError::BadTensor { name: name.clone(), message: f.0 };
                countable(&shape).map_err(bad)?;
                self.graph.nodes.push(Node { shape, from: From::Input(name.clone()) });
                Known::Tensor(self.graph.nodes.len() - 1)
            }
            Origin::Scalar => {
                let x = *self.scalars.get(name).ok_or_else(|| OpsError::MissingScalar(name.clone()))?;
                Known::Scalar(Scalar::from_whole(x))
            }
            Origin::Line => return Err(OpsError::UnknownOutput(name.clone())),
        };
        self.slots[slot] = Some(v.clone());
        Ok(v)
    }

    fn walk(&mut self, e: &Expr) -> Result<Known, OpsError> {
        Ok(match e {
            Expr::Scalar(s) => Known::Scalar(*s),
            Expr::Text(s) => Known::Text(s.clone()),
            Expr::None => Known::None,
            Expr::Load(slot) => self.load(*slot)?,
            Expr::Tuple(all) => Known::Tuple(all.iter().map(|x| self.walk(x)).collect::<Result<_, _>>()?),
            Expr::Index { of, at, line } => match self.walk(of)? {
                Known::Tuple(mut all) => {
                    let n = all.len() as i64;
                    if *at < -n || *at >= n {
                        return Err(OpsError::Op {
                            op: "[]",
                            line: *line,
                            message: format!("index {at} is out of range for a tuple of {n}"),
                            shapes: Vec::new(),
                        });
                    }
                    all.swap_remove(if *at < 0 { at + n } else { *at } as usize)
                }
                // An item of a tensor is `select` along its first dimension.
                tensor => {
                    let number = |i: i64| Known::Scalar(Scalar::Int(i));
                    self.call(&crate::ops::shape::select::OP, *line, vec![tensor, number(0), number(*at)])?
                }
            },
            Expr::Call { op, line, args } => {
                let mut values = Vec::with_capacity(args.len());
                for (given, param) in args.iter().zip(op.params) {
                    values.push(match (given, param.default) {
                        (Some(e), _) => self.walk(e)?,
                        (None, Some(Literal::Scalar(s))) => Known::Scalar(s),
                        (None, Some(Literal::Text(s))) => Known::Text(s.to_owned()),
                        (None, Some(Literal::None) | None) => Known::None,
                    });
                }
                self.call(op, *line, values)?
            }
        })
    }

    fn call(&mut self, op: &'static Op, line: u32, args: Vec<Known>) -> Result<Known, OpsError> {
        let mut tensors = Vec::new();
        for (arg, param) in args.iter().zip(op.params) {
            collect(arg, &mut |id| {
                tensors.push(Operand { param: param.name, id, shape: self.graph.nodes[id].shape.clone() });
            });
        }
        let rule = rule_of(op.name);
        let mut call = Call { op, rule, line, args, tensors, shape: Vec::new(), results: Vec::new() };
        if call.tensors.is_empty() {
            // Numbers alone: the operator itself, as the whole evaluation does it.
            let cx = Cx { variant: Variant::truth() };
            let value = (op.eval64)(&mut call.numbers(), &cx).map_err(|f| call.refuses(f))?;
            return match value {
                Value::Scalar(s) => Ok(Known::Scalar(s)),
                other => Err(call.refuses(Fault(format!("{} out of numbers alone", other.what())))),
            };
        }
        let (shape, results) = (rule.shape)(&call).map_err(|f| call.refuses(f))?;
        countable(&shape).map_err(|f| call.refuses(f))?;
        for which in 0..results {
            let from = From::Call { call: self.graph.calls.len(), which };
            call.results.push(self.graph.nodes.len());
            self.graph.nodes.push(Node { shape: shape.clone(), from });
        }
        call.shape = shape;
        let ids = call.results.clone();
        self.graph.calls.push(call);
        Ok(match ids.as_slice() {
            [one] => Known::Tensor(*one),
            several => Known::Tuple(several.iter().map(|&id| Known::Tensor(id)).collect()),
        })
    }
}

/// The tensors of a value, in order.
pub(crate) fn collect(k: &Known, f: &mut dyn FnMut(TensorId)) {
    match k {
        Known::Tensor(id) => f(*id),
        Known::Tuple(all) => all.iter().for_each(|k| collect(k, f)),
        Known::Scalar(_) | Known::Text(_) | Known::None => {}
    }
}

/// Every index of a tensor must fit an i64, with room for padding: no arithmetic on indices overflows then.
fn countable(shape: &[u64]) -> Result<(), Fault> {
    let product = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d.max(1)));
    match product {
        Some(n) if n < 1 << 56 => Ok(()),
        _ => Err(Fault(format!("a tensor of shape {shape:?} has too many elements to index"))),
    }
}
