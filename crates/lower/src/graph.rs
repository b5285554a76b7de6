//! The exported graph as the worker's `export` writes it (`docs/torch-worker.md`), read and checked.

use std::collections::{BTreeMap, BTreeSet};

use assay_tensor::DType;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::Unsupported;

/// Nodes, and tensors besides, that a graph may have.
const MAX_NODES: usize = 20_000;
/// Elements of one tensor.
const MAX_ELEMENTS: u64 = 1 << 31;
/// Elements of all tensors together: what a plan of launches would allocate.
const MAX_ALL_ELEMENTS: u64 = 1 << 33;
/// Dimensions of one tensor.
const MAX_RANK: usize = 32;
/// Nesting of an argument.
const MAX_DEPTH: u32 = 8;

/// A module as a graph.
#[derive(Clone, Debug, Deserialize)]
pub struct ExportedGraph {
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// The level and the number that the problem gets; 0 where it has none.
    #[serde(default)]
    pub level: u32,
    /// See `level`.
    #[serde(default)]
    pub id: u32,
    /// Tensors of `get_inputs()`.
    #[serde(default)]
    pub inputs: Vec<Source>,
    /// Parameters of the module.
    #[serde(default)]
    pub parameters: Vec<Source>,
    /// Buffers of the module.
    #[serde(default)]
    pub buffers: Vec<Source>,
    /// Tensors that the forward pass makes by itself.
    #[serde(default)]
    pub constants: Vec<Source>,
    /// Calls, each of earlier names only.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// What the module returns.
    #[serde(default)]
    pub outputs: Vec<Argument>,
    /// Whether integer inputs are cast to the precision, as the official check casts them.
    #[serde(default = "yes")]
    pub cast_integers: bool,
}

fn yes() -> bool {
    true
}

/// A tensor that the graph begins with.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    /// Its name in the graph.
    pub name: String,
    /// By which the worker gives its values: `input:0`, `parameter:conv.weight`.
    #[serde(default)]
    pub target: String,
    /// Element type.
    pub dtype: String,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
    /// The value of a tensor without dimensions.
    #[serde(default)]
    pub value: Option<Value>,
    /// How it is made, in the catalogue's words.
    #[serde(default)]
    pub init: Option<String>,
    /// What its matrices look like, in the catalogue's words.
    #[serde(default)]
    pub structure: Option<String>,
    /// Whether `init` was fitted to its values.
    #[serde(default)]
    pub fitted: bool,
}

/// A call of an operator.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    /// What it defines.
    pub name: String,
    /// `aten.conv2d.default`, or `getitem`.
    pub op: String,
    /// Arguments by position.
    #[serde(default)]
    pub args: Vec<Argument>,
    /// Arguments by name.
    #[serde(default)]
    pub kwargs: BTreeMap<String, Argument>,
    /// Its results; none where one is no tensor.
    #[serde(default)]
    pub outputs: Vec<Option<Meta>>,
}

/// Element type and shape of a result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Meta {
    /// Element type.
    pub dtype: String,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// What a node or a source defines.
    Node(String),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// A string.
    Text(String),
    /// Nothing.
    None,
    /// Several.
    List(Vec<Argument>),
    /// An element type.
    DType(String),
    /// A device, a layout, a memory format: nothing that a value depends on.
    Other(String),
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        argument(&Value::deserialize(d)?, 0).map_err(serde::de::Error::custom)
    }
}

fn argument(v: &Value, depth: u32) -> Result<Argument, String> {
    if depth > MAX_DEPTH {
        return Err(format!("an argument is nested deeper than {MAX_DEPTH}"));
    }
    let bad = || format!("`{v}` is no argument");
    Ok(match v {
        Value::Null => Argument::None,
        Value::Bool(b) => Argument::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => Argument::Int(i),
            None => Argument::Float(n.as_f64().filter(|_| n.is_f64()).ok_or_else(bad)?),
        },
        Value::Array(all) => {
            Argument::List(all.iter().map(|a| argument(a, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Object(o) => match o.iter().next().filter(|_| o.len() == 1) {
            Some((kind, Value::String(s))) => match kind.as_str() {
                "node" => Argument::Node(s.clone()),
                "text" => Argument::Text(s.clone()),
                "dtype" => Argument::DType(s.clone()),
                "other" | "value" => Argument::Other(s.clone()),
                "float" => Argument::Float(s.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            },
            _ => return Err(bad()),
        },
        Value::String(_) => return Err(bad()),
    })
}

impl Argument {
    /// The names in it.
    pub fn names<'a>(&'a self, out: &mut Vec<&'a str>) {
        match self {
            Argument::Node(n) => out.push(n),
            Argument::List(all) => all.iter().for_each(|a| a.names(out)),
            _ => {}
        }
    }

    /// The same with other names.
    pub(crate) fn renamed(&self, to: &dyn Fn(&str) -> String) -> Argument {
        match self {
            Argument::Node(n) => Argument::Node(to(n)),
            Argument::List(all) => Argument::List(all.iter().map(|a| a.renamed(to)).collect()),
            other => other.clone(),
        }
    }
}

impl Node {
    /// The names that its arguments mention.
    pub fn names(&self) -> Vec<&str> {
        let mut out = Vec::new();
        self.args.iter().chain(self.kwargs.values()).for_each(|a| a.names(&mut out));
        out
    }
}

/// The element types of values here.
pub(crate) fn dtype(name: &str) -> Option<DType> {
    match name {
        "f32" => Some(DType::F32),
        "i64" => Some(DType::I64),
        "bool" => Some(DType::Bool),
        _ => None,
    }
}

impl ExportedGraph {
    /// Reads a graph from JSON.
    ///
    /// # Errors
    /// `Malformed` with where and what.
    pub fn from_json(text: &str) -> Result<ExportedGraph, Unsupported> {
        serde_json::from_str(text).map_err(|e| Unsupported::Malformed(e.to_string()))
    }

    /// Inputs, parameters, buffers and constants.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.inputs.iter().chain(&self.parameters).chain(&self.buffers).chain(&self.constants)
    }

    /// Whether every name is defined once and before it is used, and every size is one.
    ///
    /// # Errors
    /// `Malformed` and `TooLarge`.
    pub fn check(&self) -> Result<(), Unsupported> {
        if self.nodes.len() > MAX_NODES || self.sources().count() > MAX_NODES {
            return Err(Unsupported::TooLarge(format!("more than {MAX_NODES} nodes or tensors")));
        }
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let mut all = 0u64;
        let mut size = |what: &str, shape: &[u64]| -> Result<(), Unsupported> {
            let count = assay_tensor::numel(shape).filter(|n| *n <= MAX_ELEMENTS && shape.len() <= MAX_RANK);
            let count =
                count.ok_or_else(|| Unsupported::TooLarge(format!("`{what}` has the shape {shape:?}")))?;
            all = all.saturating_add(count);
            if all > MAX_ALL_ELEMENTS {
                return Err(Unsupported::TooLarge(format!(
                    "more than {MAX_ALL_ELEMENTS} elements up to `{what}`"
                )));
            }
            Ok(())
        };
        let twice = |name: &str| Unsupported::Malformed(format!("`{name}` is defined twice"));
        for s in self.sources() {
            if !known.insert(&s.name) {
                return Err(twice(&s.name));
            }
            size(&s.name, &s.shape)?;
        }
        let nodes: BTreeSet<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
        let unknown = |name: &str, by: &str| {
            let why = if nodes.contains(name) { "before it is defined" } else { "which nothing defines" };
            Unsupported::Malformed(format!("{by} reads `{name}` {why}"))
        };
        for n in &self.nodes {
            if let Some(name) = n.names().into_iter().find(|name| !known.contains(name)) {
                return Err(unknown(name, &format!("`{}`", n.name)));
            }
            if !known.insert(&n.name) {
                return Err(twice(&n.name));
            }
            for meta in n.outputs.iter().flatten() {
                size(&n.name, &meta.shape)?;
            }
        }
        if self.outputs.is_empty() {
            return Err(Unsupported::Malformed("there are no outputs".to_owned()));
        }
        for output in &self.outputs {
            match output {
                Argument::Node(name) if known.contains(name.as_str()) => {}
                Argument::Node(name) => return Err(unknown(name, "an output")),
                other => {
                    return Err(Unsupported::Malformed(format!("the output {other:?} is no tensor")));
                }
            }
        }
        Ok(())
    }
}
