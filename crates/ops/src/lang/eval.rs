//! Evaluation of a parsed program, line by line.

use std::collections::BTreeMap;

use assay_tensor::Tensor;

use super::parser::{Expr, Origin, Program, Slot};
use crate::array::{Scalar, Value};
use crate::error::{Fault, OpsError};
use crate::op::{Args, Cx, Evaluates, Literal, Op};
use crate::ops;
use crate::variant::{Precision, Variant};

impl Program {
    /// Evaluates the whole program and returns the named outputs.
    ///
    /// Float outputs come in the variant's precision (f64 or f32), integer outputs as i64, bools as bool, as PyTorch
    /// has them for a model of that precision. A scalar whose value is whole counts as an integer, as dims do.
    ///
    /// # Errors
    /// Missing inputs or scalars, unknown outputs, and whatever an operator refuses, with its line and shapes.
    pub fn evaluate(
        &self,
        inputs: &BTreeMap<String, Tensor>,
        scalars: &BTreeMap<String, f64>,
        outputs: &[String],
        variant: &Variant,
    ) -> Result<BTreeMap<String, Tensor>, OpsError> {
        match variant.precision {
            Precision::F64 => run::<f64>(self, inputs, scalars, outputs, variant, &mut own),
            Precision::F32 => run::<f32>(self, inputs, scalars, outputs, variant, &mut own),
        }
    }

    /// As [`Program::evaluate`] in float32, with every operator computed by `call`: another implementation of the
    /// operators, or one that watches theirs. An index into a tensor is a call of `select`.
    ///
    /// # Errors
    /// As [`Program::evaluate`]; a fault of `call` is the operator's.
    pub fn evaluate_by(
        &self,
        inputs: &BTreeMap<String, Tensor>,
        scalars: &BTreeMap<String, f64>,
        outputs: &[String],
        call: &mut Caller<'_, f32>,
    ) -> Result<BTreeMap<String, Tensor>, OpsError> {
        run::<f32>(self, inputs, scalars, outputs, &Variant::official(), call)
    }
}

/// Computes one call: the operator, its arguments in order of the parameters, the way of computing.
pub type Caller<'a, T> = dyn FnMut(&'static Op, Args<T>, &Cx) -> Result<Value<T>, Fault> + 'a;

/// The operators' own evaluators.
fn own<T: Evaluates>(op: &'static Op, mut args: Args<T>, cx: &Cx) -> Result<Value<T>, Fault> {
    T::eval_of(op)(&mut args, cx)
}

struct Machine<'a, 'c, T> {
    program: &'a Program,
    inputs: &'a BTreeMap<String, Tensor>,
    scalars: &'a BTreeMap<String, f64>,
    values: Vec<Option<Value<T>>>,
    /// Reads still to come; at the last one the value moves out, so that operators can work in place.
    reads: Vec<usize>,
    cx: Cx,
    call: &'a mut Caller<'c, T>,
}

fn run<T: Evaluates>(
    program: &Program,
    inputs: &BTreeMap<String, Tensor>,
    scalars: &BTreeMap<String, f64>,
    outputs: &[String],
    variant: &Variant,
    call: &mut Caller<'_, T>,
) -> Result<BTreeMap<String, Tensor>, OpsError> {
    let mut machine = Machine::<'_, '_, T> {
        program,
        inputs,
        scalars,
        values: program.slots.iter().map(|_| None).collect(),
        reads: program.reads.clone(),
        cx: Cx { variant: *variant },
        call,
    };
    let mut wanted = Vec::with_capacity(outputs.len());
    for name in outputs {
        let slot = program.find(name).ok_or_else(|| OpsError::UnknownOutput(name.clone()))?;
        machine.reads[slot] += 1;
        wanted.push((name, slot));
    }
    for line in &program.lines {
        let value = machine.eval(&line.value)?;
        match line.targets.as_slice() {
            [slot] => machine.store(*slot, value),
            several => {
                let all = match value {
                    Value::Tuple(all) if all.len() == several.len() => all,
                    other => {
                        let got = match &other {
                            Value::Tuple(all) => format!("a tuple of {}", all.len()),
                            v => v.what().to_owned(),
                        };
                        return Err(OpsError::Op {
                            op: "=",
                            line: line.number,
                            message: format!("{} names need as many values, not {got}", several.len()),
                            shapes: Vec::new(),
                        });
                    }
                };
                for (slot, v) in several.iter().zip(all) {
                    machine.store(*slot, v);
                }
            }
        }
    }
    let mut out = BTreeMap::new();
    for (name, slot) in wanted {
        let value = machine.load(slot)?;
        let tensor = match value.to_tensor() {
            Some(t) => t.map_err(|e| OpsError::BadTensor { name: name.clone(), message: e.to_string() })?,
            None => {
                return Err(OpsError::NotATensor { name: name.clone(), what: value.what().to_owned() });
            }
        };
        out.insert(name.clone(), tensor);
    }
    Ok(out)
}

impl<T: Evaluates> Machine<'_, '_, T> {
    fn store(&mut self, slot: Slot, value: Value<T>) {
        if self.reads[slot] > 0 {
            self.values[slot] = Some(value);
        }
    }

    fn load(&mut self, slot: Slot) -> Result<Value<T>, OpsError> {
        if self.values[slot].is_none() {
            let (name, origin) = &self.program.slots[slot];
            self.values[slot] = Some(match origin {
                Origin::Input => {
                    let t = self.inputs.get(name).ok_or_else(|| OpsError::MissingInput(name.clone()))?;
                    Value::from_tensor(t)
                        .map_err(|f| OpsError::BadTensor { name: name.clone(), message: f.0 })?
                }
                Origin::Scalar => {
                    let x = *self.scalars.get(name).ok_or_else(|| OpsError::MissingScalar(name.clone()))?;
                    Value::Scalar(Scalar::from_whole(x))
                }
                // Lines run in order and each is stored when read later, so this is a name out of nowhere.
                Origin::Line => return Err(OpsError::UnknownOutput(name.clone())),
            });
        }
        self.reads[slot] = self.reads[slot].saturating_sub(1);
        let value = if self.reads[slot] == 0 { self.values[slot].take() } else { self.values[slot].clone() };
        value.ok_or_else(|| OpsError::UnknownOutput(self.program.slots[slot].0.clone()))
    }

    fn eval(&mut self, e: &Expr) -> Result<Value<T>, OpsError> {
        Ok(match e {
            Expr::Scalar(s) => Value::Scalar(*s),
            Expr::Text(s) => Value::Text(s.clone()),
            Expr::None => Value::None,
            Expr::Load(slot) => self.load(*slot)?,
            Expr::Tuple(all) => Value::Tuple(all.iter().map(|x| self.eval(x)).collect::<Result<_, _>>()?),
            Expr::Index { of, at, line } => {
                let value = self.eval(of)?;
                let shapes = value.shape().map(|s| s.iter().map(|&d| d as u64).collect());
                let item = match value {
                    Value::Float(_) | Value::Int(_) | Value::Bool(_) => {
                        let number = |i| Value::Scalar(Scalar::Int(i));
                        let op = &ops::shape::select::OP;
                        (self.call)(op, Args::new(op.params, vec![value, number(0), number(*at)]), &self.cx)
                    }
                    tuple => ops::index(tuple, *at),
                };
                item.map_err(|Fault(message)| OpsError::Op {
                    op: "[]",
                    line: *line,
                    message,
                    shapes: shapes.into_iter().collect(),
                })?
            }
            Expr::Call { op, line, args } => {
                let mut values = Vec::with_capacity(args.len());
                for (given, param) in args.iter().zip(op.params) {
                    values.push(match (given, param.default) {
                        (Some(e), _) => self.eval(e)?,
                        (None, Some(Literal::Scalar(s))) => Value::Scalar(s),
                        (None, Some(Literal::Text(s))) => Value::Text(s.to_owned()),
                        (None, Some(Literal::None) | None) => Value::None,
                    });
                }
                let args = Args::new(op.params, values);
                let shapes = args.shapes();
                (self.call)(op, args, &self.cx).map_err(|Fault(message)| OpsError::Op {
                    op: op.name,
                    line: *line,
                    message,
                    shapes,
                })?
            }
        })
    }
}
