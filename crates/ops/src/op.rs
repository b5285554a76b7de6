//! What an operator is: a name, a signature with PyTorch's defaults, an evaluator, and its documentation.

use crate::array::{Array, Scalar, Value};
use crate::error::Fault;
use crate::order::Plan;
use crate::plain::Plain;
use crate::real::Real;
use crate::variant::Variant;

/// A default or literal argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Scalar(Scalar),
    /// A string.
    Text(&'static str),
    /// `None`.
    None,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// A tensor or `None`.
    OptTensor,
    /// A tensor or a number.
    Operand,
    /// A tuple of tensors.
    Tensors,
    /// An integer.
    Int,
    /// An integer or `None`.
    OptInt,
    /// An integer or a tuple of integers.
    Ints,
    /// An integer, a tuple of integers or `None`.
    OptInts,
    /// A number.
    Number,
    /// A number or `None`.
    OptNumber,
    /// A number, a tensor or `None`.
    OptOperand,
    /// `True` or `False`.
    Bool,
    /// Any string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
}

/// The shape of an argument as far as its text tells, for checks before any evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form<'a> {
    /// A literal or folded number.
    Scalar(Scalar),
    /// A string.
    Text(&'a str),
    /// `None`.
    None,
    /// A literal tuple.
    Tuple,
    /// Anything known only when evaluated.
    Unknown,
}

impl Kind {
    /// True where an argument of that form may be right.
    pub fn accepts(self, form: Form<'_>) -> bool {
        use Kind::*;
        match form {
            Form::Unknown => true,
            Form::None => matches!(self, OptTensor | OptInt | OptInts | OptNumber | OptOperand),
            Form::Tuple => matches!(self, Tensors | Ints | OptInts),
            Form::Text(s) => self == Text || matches!(self, Choice(all) if all.contains(&s)),
            Form::Scalar(Scalar::Bool(_)) => matches!(self, Bool | Operand),
            Form::Scalar(Scalar::Int(_)) => {
                matches!(self, Operand | Int | OptInt | Ints | OptInts | Number | OptNumber | OptOperand)
            }
            Form::Scalar(Scalar::Float(_)) => matches!(self, Operand | Number | OptNumber | OptOperand),
        }
    }

    /// In words, for messages.
    pub fn words(self) -> String {
        match self {
            Kind::Tensor => "a tensor".into(),
            Kind::OptTensor => "a tensor or None".into(),
            Kind::Operand => "a tensor or a number".into(),
            Kind::Tensors => "a tuple of tensors".into(),
            Kind::Int => "an integer".into(),
            Kind::OptInt => "an integer or None".into(),
            Kind::Ints => "an integer or a tuple of integers".into(),
            Kind::OptInts => "an integer, a tuple of integers or None".into(),
            Kind::Number => "a number".into(),
            Kind::OptNumber => "a number or None".into(),
            Kind::OptOperand => "a tensor, a number or None".into(),
            Kind::Bool => "True or False".into(),
            Kind::Text => "a string".into(),
            Kind::Choice(all) => {
                let quoted: Vec<String> = all.iter().map(|s| format!("'{s}'")).collect();
                format!("one of {}", quoted.join(", "))
            }
        }
    }
}

/// One parameter of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// PyTorch's name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// PyTorch's default; `None` where it must be given.
    pub default: Option<Literal>,
}

impl Param {
    /// A parameter that must be given.
    pub const fn needed(name: &'static str, kind: Kind) -> Param {
        Param { name, kind, default: None }
    }
    /// A tensor that must be given.
    pub const fn tensor(name: &'static str) -> Param {
        Param::needed(name, Kind::Tensor)
    }
    /// A parameter whose default is `None`.
    pub const fn none(name: &'static str, kind: Kind) -> Param {
        Param { name, kind, default: Some(Literal::None) }
    }
    /// A parameter with an integer default.
    pub const fn int(name: &'static str, kind: Kind, default: i64) -> Param {
        Param { name, kind, default: Some(Literal::Scalar(Scalar::Int(default))) }
    }
    /// A parameter with a float default.
    pub const fn float(name: &'static str, default: f64) -> Param {
        Param { name, kind: Kind::Number, default: Some(Literal::Scalar(Scalar::Float(default))) }
    }
    /// A parameter with a boolean default.
    pub const fn flag(name: &'static str, default: bool) -> Param {
        Param { name, kind: Kind::Bool, default: Some(Literal::Scalar(Scalar::Bool(default))) }
    }
    /// A string out of a list, the first of which is the default.
    pub const fn choice(name: &'static str, all: &'static [&'static str]) -> Param {
        Param { name, kind: Kind::Choice(all), default: Some(Literal::Text(all[0])) }
    }
}

/// What an evaluator gets beside its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Cx {
    /// The way of computing.
    pub variant: Variant,
}

impl Cx {
    /// The accumulation plan for a reduction of `terms` terms.
    pub fn plan(&self, terms: usize) -> Plan {
        Plan::new(self.variant.sum, terms)
    }
}

/// An evaluator in one precision.
pub type Eval<T> = fn(&mut Args<T>, &Cx) -> Result<Value<T>, Fault>;

/// One operator: a row of [`crate::ops::OPS`].
pub struct Op {
    /// PyTorch's functional name.
    pub name: &'static str,
    /// Parameters in order.
    pub params: &'static [Param],
    /// Shapes, errors and source, in Markdown: the operator's documentation comment.
    pub docs: &'static str,
    /// Evaluator in float64.
    pub eval64: Eval<f64>,
    /// Evaluator in float32.
    pub eval32: Eval<f32>,
    /// Its CUDA kernel.
    pub plain: Option<Plain>,
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Op {
    /// The signature as Python would print it.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| match p.default {
                None => p.name.to_owned(),
                Some(Literal::None) => format!("{}=None", p.name),
                Some(Literal::Text(s)) => format!("{}='{s}'", p.name),
                Some(Literal::Scalar(Scalar::Bool(b))) => {
                    format!("{}={}", p.name, if b { "True" } else { "False" })
                }
                Some(Literal::Scalar(Scalar::Int(i))) => format!("{}={i}", p.name),
                Some(Literal::Scalar(Scalar::Float(x))) => format!("{}={x:?}", p.name),
            })
            .collect();
        format!("{}({})", self.name, params.join(", "))
    }
}

/// Declares an operator from its documentation, name, evaluator, parameters, and its plain kernel's file and frame
/// (with `Operands` where those decide the element type).
macro_rules! op {
    (
        $(#[doc = $doc:literal])* $name:literal, $eval:ident, [$($param:expr),* $(,)?]
        $(, plain($file:literal, $frame:ident $(, $element:ident)?))?
    ) => {
        $(#[doc = $doc])*
        pub const OP: $crate::op::Op = $crate::op::Op {
            name: $name,
            params: &[$($param),*],
            docs: concat!($($doc, "\n"),*),
            eval64: $eval::<f64>,
            eval32: $eval::<f32>,
            plain: $crate::op::op!(@plain $($file, $frame $(, $element)?)?),
        };
    };
    (@plain) => { None };
    (@plain $file:literal, $frame:ident) => { $crate::op::op!(@plain $file, $frame, Result) };
    (@plain $file:literal, $frame:ident, $element:ident) => {
        Some($crate::plain::Plain {
            file: $file,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/cuda/", $file)),
            element: $crate::plain::Element::$element,
            frame: $crate::plain::$frame,
        })
    };
}
pub(crate) use op;

/// Implements the dispatch from the precision type to the evaluator.
pub trait Evaluates: Real {
    /// The operator's evaluator in this precision.
    fn eval_of(op: &Op) -> Eval<Self>;
}

impl Evaluates for f64 {
    fn eval_of(op: &Op) -> Eval<f64> {
        op.eval64
    }
}

impl Evaluates for f32 {
    fn eval_of(op: &Op) -> Eval<f32> {
        op.eval32
    }
}

/// Arguments bound to an operator's parameters, defaults filled in.
pub struct Args<T> {
    params: &'static [Param],
    values: Vec<Value<T>>,
}

impl<T: Real> Args<T> {
    /// Binds values to parameters, in order.
    pub fn new(params: &'static [Param], values: Vec<Value<T>>) -> Self {
        Args { params, values }
    }

    /// The arguments, in order of the parameters.
    pub fn into_values(self) -> Vec<Value<T>> {
        self.values
    }

    /// Shapes of the tensors among the arguments, for messages.
    pub fn shapes(&self) -> Vec<Vec<u64>> {
        fn collect<T: Real>(v: &Value<T>, out: &mut Vec<Vec<u64>>) {
            match v {
                Value::Tuple(all) => all.iter().for_each(|v| collect(v, out)),
                v => out.extend(v.shape().map(|s| s.iter().map(|&d| d as u64).collect())),
            }
        }
        let mut out = Vec::new();
        self.values.iter().for_each(|v| collect(v, &mut out));
        out
    }

    /// Takes an argument out, leaving `None` in its place.
    pub fn take(&mut self, name: &str) -> Value<T> {
        match self.params.iter().position(|p| p.name == name).and_then(|i| self.values.get_mut(i)) {
            Some(v) => std::mem::replace(v, Value::None),
            None => Value::None,
        }
    }

    fn wrong(&self, name: &str, got: &Value<T>) -> Fault {
        let want = self.params.iter().find(|p| p.name == name).map_or(String::new(), |p| p.kind.words());
        Fault(format!("`{name}` takes {want}, not {}", got.what()))
    }

    /// A tensor of any element type.
    ///
    /// # Errors
    /// A fault where it is none.
    pub fn tensor(&mut self, name: &str) -> Result<Value<T>, Fault> {
        match self.take(name) {
            v @ (Value::Float(_) | Value::Int(_) | Value::Bool(_)) => Ok(v),
            other => Err(self.wrong(name, &other)),
        }
    }

    /// A tensor as floats: integers and bools are promoted, as PyTorch promotes them for functions that have only
    /// float results.
    ///
    /// # Errors
    /// A fault where it is no tensor.
    pub fn float(&mut self, name: &str) -> Result<Array<T>, Fault> {
        self.tensor(name)?.into_float()
    }

    /// A float tensor or nothing.
    ///
    /// # Errors
    /// A fault where it is neither.
    pub fn opt_float(&mut self, name: &str) -> Result<Option<Array<T>>, Fault> {
        match self.take(name) {
            Value::None => Ok(None),
            v @ (Value::Float(_) | Value::Int(_) | Value::Bool(_)) => v.into_float().map(Some),
            other => Err(self.wrong(name, &other)),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// A fault where it is none.
    pub fn number(&mut self, name: &str) -> Result<Scalar, Fault> {
        match self.take(name) {
            Value::Scalar(s) => Ok(s),
            other => Err(self.wrong(name, &other)),
        }
    }

    /// A number in the evaluation's precision.
    ///
    /// # Errors
    /// A fault where it is none.
    pub fn real(&mut self, name: &str) -> Result<T, Fault> {
        Ok(T::from_f64(self.number(name)?.to_f64()))
    }

    /// A number or nothing.
    ///
    /// # Errors
    /// A fault where it is neither.
    pub fn opt_number(&mut self, name: &str) -> Result<Option<Scalar>, Fault> {
        match self.take(name) {
            Value::None => Ok(None),
            Value::Scalar(s) => Ok(Some(s)),
            other => Err(self.wrong(name, &other)),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// A fault where it is none.
    pub fn flag(&mut self, name: &str) -> Result<bool, Fault> {
        match self.take(name) {
            Value::Scalar(Scalar::Bool(b)) => Ok(b),
            other => Err(self.wrong(name, &other)),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// A fault where it is none, or not one of the choices.
    pub fn text(&mut self, name: &str) -> Result<String, Fault> {
        let kind = self.params.iter().find(|p| p.name == name).map(|p| p.kind);
        match self.take(name) {
            Value::Text(s) if kind.is_none_or(|k| k.accepts(Form::Text(&s))) => Ok(s),
            Value::Text(s) => {
                Err(Fault(format!("`{name}` takes {}, not '{s}'", kind.map_or(String::new(), Kind::words))))
            }
            other => Err(self.wrong(name, &other)),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// A fault where it is none.
    pub fn int(&mut self, name: &str) -> Result<i64, Fault> {
        let v = self.take(name);
        match &v {
            Value::Scalar(s) => s.to_i64().ok_or_else(|| self.wrong(name, &v)),
            _ => Err(self.wrong(name, &v)),
        }
    }

    /// An integer or nothing.
    ///
    /// # Errors
    /// A fault where it is neither.
    pub fn opt_int(&mut self, name: &str) -> Result<Option<i64>, Fault> {
        match self.take(name) {
            Value::None => Ok(None),
            v @ Value::Scalar(_) => {
                let Value::Scalar(s) = &v else { return Ok(None) };
                s.to_i64().map(Some).ok_or_else(|| self.wrong(name, &v))
            }
            other => Err(self.wrong(name, &other)),
        }
    }

    /// One integer or several.
    ///
    /// # Errors
    /// A fault where it is neither.
    pub fn ints(&mut self, name: &str) -> Result<Vec<i64>, Fault> {
        match self.opt_ints(name)? {
            Some(v) => Ok(v),
            None => Err(self.wrong(name, &Value::None)),
        }
    }

    /// One integer, several, or nothing.
    ///
    /// # Errors
    /// A fault where it is none of them.
    pub fn opt_ints(&mut self, name: &str) -> Result<Option<Vec<i64>>, Fault> {
        let v = self.take(name);
        let one = |v: &Value<T>| match v {
            Value::Scalar(s) => s.to_i64(),
            _ => None,
        };
        match &v {
            Value::None => Ok(None),
            Value::Tuple(all) => all
                .iter()
                .map(|x| one(x).ok_or_else(|| self.wrong(name, x)))
                .collect::<Result<_, _>>()
                .map(Some),
            v => one(v).map(|i| Some(vec![i])).ok_or_else(|| self.wrong(name, v)),
        }
    }

    /// One non-negative size per spatial dimension; a single integer stands for all.
    ///
    /// # Errors
    /// A fault where the count is another, or a size is below `least`.
    pub fn sizes(&mut self, name: &str, count: usize, least: i64) -> Result<Vec<usize>, Fault> {
        let v = self.ints(name)?;
        spread_sizes(name, v, count, least)
    }

    /// As [`Args::sizes`], or nothing (`None` or an empty tuple).
    ///
    /// # Errors
    /// As [`Args::sizes`].
    pub fn opt_sizes(&mut self, name: &str, count: usize, least: i64) -> Result<Option<Vec<usize>>, Fault> {
        match self.opt_ints(name)? {
            Some(v) if !v.is_empty() => spread_sizes(name, v, count, least).map(Some),
            _ => Ok(None),
        }
    }

    /// A dimension of a tensor of that rank, negative ones counted from the end.
    ///
    /// # Errors
    /// A fault where it is out of range.
    pub fn dim(&mut self, name: &str, rank: usize) -> Result<usize, Fault> {
        let d = self.int(name)?;
        wrap_dim(d, rank)
    }
}

fn spread_sizes(name: &str, v: Vec<i64>, count: usize, least: i64) -> Result<Vec<usize>, Fault> {
    let v = if v.len() == 1 { vec![v[0]; count] } else { v };
    if v.len() != count {
        return Err(Fault(format!("`{name}` needs 1 or {count} integers, not {}", v.len())));
    }
    v.into_iter()
        .map(|i| {
            usize::try_from(i)
                .ok()
                // Far above any tensor, and small enough that sums and products of sizes cannot overflow.
                .filter(|_| i >= least && i < 1 << 31)
                .ok_or_else(|| Fault(format!("`{name}` must be at least {least} and below 2^31, not {i}")))
        })
        .collect()
}

/// Dimension `d` of a tensor of `rank` dimensions, negative ones counted from the end. A tensor without dimensions
/// accepts 0 and -1, as in PyTorch.
///
/// # Errors
/// A fault where it is out of range.
pub fn wrap_dim(d: i64, rank: usize) -> Result<usize, Fault> {
    let n = rank.max(1) as i64;
    if d < -n || d >= n {
        return Err(Fault(format!("dimension {d} is out of range (expected {} to {})", -n, n - 1)));
    }
    Ok(if d < 0 { d + n } else { d } as usize)
}
