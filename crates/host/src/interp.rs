//! Runs host code and records what it asks of the device.
//!
//! Every step counts against a budget, every call against a depth, so wrong host code ends as a fault or as
//! exhausted. Arithmetic is C++'s on the types of `types.rs`.

use std::collections::BTreeMap;

use crate::arith::{self, Computed, Wrong};
use crate::ast::{Builtin, Expr, KernelRef, Node, Op, Place, Program, Stmt, Unary};
use crate::fail::Fail;
use crate::plan::{LaunchOp, Plan, PlanArg, PlanOp, Scratch};
use crate::types::{Elem, Scalar, Ty, Value};

/// Statements, operators and calls that one `launch` may take.
const MAX_STEPS: u64 = 2_000_000;
/// Launches and memsets of one plan.
const MAX_OPS: usize = 65_536;
/// Scratch tensors of one plan.
const MAX_SCRATCH: usize = 4_096;
/// Nested calls times expression height stays below this.
const MAX_DEPTH: usize = 250;

/// How a statement ends.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// A variable: its declared type, and its value once it has one.
#[derive(Clone)]
struct Cell {
    ty: Ty,
    value: Option<Value>,
}

type Frame = Vec<Cell>;

/// An execution of one program.
pub(crate) struct Interp<'p> {
    program: &'p Program,
    /// Byte offsets at which the source's lines begin.
    lines: Vec<usize>,
    /// How many scratch tensors have each name.
    names: BTreeMap<String, u32>,
    /// Names of the buffers that pointers index.
    pub buffers: Vec<String>,
    pub plan: Plan,
    steps: u64,
    max_steps: u64,
    depth: usize,
}

/// The value of an expression that needs no variable and no device; `None` otherwise.
pub(crate) fn constant(program: &Program, e: &Expr) -> Option<Value> {
    let mut it = Interp::new(program, "", 10_000);
    let v = it.eval(e, &mut Vec::new()).ok()?;
    (it.plan.ops.is_empty() && it.plan.scratch.is_empty()).then_some(v)
}

impl<'p> Interp<'p> {
    fn new(program: &'p Program, source: &str, max_steps: u64) -> Self {
        let newlines = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Interp {
            program,
            lines: std::iter::once(0).chain(newlines).collect(),
            names: BTreeMap::new(),
            buffers: Vec::new(),
            plan: Plan::default(),
            steps: 0,
            max_steps,
            depth: 0,
        }
    }

    /// The 1-based line of a byte offset.
    fn line(&self, at: u32) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= at as usize)).unwrap_or(u32::MAX)
    }

    /// Runs `launch` (function 0) on bound arguments; `buffers` are the names that pointers index.
    pub fn run(
        program: &'p Program,
        source: &str,
        buffers: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Plan, Fail> {
        let mut it = Interp::new(program, source, MAX_STEPS);
        it.buffers = buffers;
        it.call(0, args, 0)?;
        Ok(it.plan)
    }

    fn step(&mut self, at: u32) -> Result<(), Fail> {
        self.steps += 1;
        if self.steps > self.max_steps {
            return Err(Fail::exhausted(at, format!("host code took more than {} steps", self.max_steps)));
        }
        Ok(())
    }

    fn note(&mut self, at: u32, what: &str) {
        let line = self.line(at);
        let text = format!("line {line}: {what}");
        if !self.plan.notes.contains(&text) && self.plan.notes.len() < 100 {
            self.plan.notes.push(text);
        }
    }

    fn call(&mut self, f: usize, args: Vec<Value>, at: u32) -> Result<Value, Fail> {
        let program = self.program;
        let Some(f) = program.functions.get(f) else { return Err(Fail::fault(at, "a call of nothing")) };
        // While a constant is evaluated, a function may not have its body yet.
        if f.slots < f.params.len() || f.params.len() != args.len() {
            return Err(Fail::unsupported(at, format!("`{}` in its own definition", f.name)));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fail::exhausted(at, "host functions call each other too deep"));
        }
        let mut frame: Frame = vec![Cell { ty: Ty::Auto, value: None }; f.slots];
        for (i, (p, v)) in f.params.iter().zip(args).enumerate() {
            frame[i] = Cell { ty: p.ty.clone(), value: Some(self.convert(&v, &p.ty, at)?) };
        }
        let flow = self.block(&f.body, &mut frame)?;
        self.depth -= 1;
        match (flow, &f.returns) {
            (Flow::Return(v), ty) if *ty != Ty::Void && *ty != Ty::Auto => self.convert(&v, ty, at),
            (Flow::Return(v), _) => Ok(v),
            (_, Ty::Void | Ty::Auto) => Ok(Value::Void),
            _ => Err(Fail::fault(f.at, format!("`{}` ends without returning a value", f.name))),
        }
    }

    fn block(&mut self, body: &[Stmt], frame: &mut Frame) -> Result<Flow, Fail> {
        for s in body {
            match self.exec(s, frame)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn exec(&mut self, s: &Stmt, frame: &mut Frame) -> Result<Flow, Fail> {
        match s {
            Stmt::Empty => Ok(Flow::Next),
            Stmt::Decl { slot, ty, init, at } => {
                self.step(*at)?;
                let value = match init {
                    Some(e) => {
                        let v = self.eval(e, frame)?;
                        if v == Value::Void {
                            return Err(Fail::invalid(e.at, "a value of type `void`"));
                        }
                        Some(self.convert(&v, ty, e.at)?)
                    }
                    None => None,
                };
                if let Some(cell) = frame.get_mut(*slot) {
                    let ty =
                        if *ty == Ty::Auto { value.as_ref().map_or(Ty::Auto, Value::ty) } else { ty.clone() };
                    *cell = Cell { ty, value };
                }
                Ok(Flow::Next)
            }
            Stmt::Expr(e) => {
                self.eval(e, frame)?;
                Ok(Flow::Next)
            }
            Stmt::Block(body) => self.block(body, frame),
            Stmt::If(cond, then, otherwise) => {
                if self.truth(cond, frame)? {
                    self.exec(then, frame)
                } else if let Some(other) = otherwise {
                    self.exec(other, frame)
                } else {
                    Ok(Flow::Next)
                }
            }
            Stmt::While(cond, body) => {
                while self.truth(cond, frame)? {
                    match self.exec(body, frame)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::DoWhile(body, cond) => {
                loop {
                    match self.exec(body, frame)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                    if !self.truth(cond, frame)? {
                        break;
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::For { init, cond, step, body, at } => {
                self.exec(init, frame)?;
                loop {
                    self.step(*at)?;
                    if let Some(c) = cond
                        && !self.truth(c, frame)?
                    {
                        break;
                    }
                    match self.exec(body, frame)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                    if let Some(e) = step {
                        self.eval(e, frame)?;
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::Return(value, at) => {
                self.step(*at)?;
                let v = match value {
                    Some(e) => self.eval(e, frame)?,
                    None => Value::Void,
                };
                Ok(Flow::Return(v))
            }
            Stmt::Break => Ok(Flow::Break),
            Stmt::Continue => Ok(Flow::Continue),
            Stmt::Launch { kernel, grid, block, shared, args, at } => {
                self.step(*at)?;
                let grid = self.extent(grid, frame)?;
                let block = self.extent(block, frame)?;
                let shared_bytes = match shared {
                    None => 0,
                    Some(e) => {
                        let v = self.eval(e, frame)?;
                        match v.to_scalar(Scalar::U64) {
                            Some(Value::Int(n, _)) => u64::try_from(n).unwrap_or(u64::MAX),
                            _ => return Err(Fail::invalid(e.at, "shared bytes that are no integer")),
                        }
                    }
                };
                let args = self.launch_args(kernel, args, frame)?;
                let line = self.line(*at);
                let op = LaunchOp { kernel: kernel.name.clone(), grid, block, shared_bytes, args, line };
                self.push(PlanOp::Launch(op), *at)?;
                Ok(Flow::Next)
            }
        }
    }

    fn push(&mut self, op: PlanOp, at: u32) -> Result<(), Fail> {
        if self.plan.ops.len() >= MAX_OPS {
            return Err(Fail::exhausted(at, format!("more than {MAX_OPS} launches")));
        }
        self.plan.ops.push(op);
        Ok(())
    }

    fn truth(&mut self, e: &Expr, frame: &mut Frame) -> Result<bool, Fail> {
        let v = self.eval(e, frame)?;
        v.truth().ok_or_else(|| Fail::invalid(e.at, format!("a condition of type `{}`", v.ty())))
    }

    /// A grid or block extent, with `dim3`'s conversion to 32 unsigned bits.
    fn extent(&mut self, e: &Expr, frame: &mut Frame) -> Result<[u64; 3], Fail> {
        let v = self.eval(e, frame)?;
        match self.convert(&v, &Ty::Dim3, e.at)? {
            Value::Dim3(d) => Ok(d.map(u64::from)),
            _ => Err(Fail::invalid(e.at, "an extent that is no `dim3`")),
        }
    }

    fn launch_args(
        &mut self,
        kernel: &KernelRef,
        args: &[Expr],
        frame: &mut Frame,
    ) -> Result<Vec<PlanArg>, Fail> {
        let mut out = Vec::with_capacity(args.len());
        for (i, e) in args.iter().enumerate() {
            let mut v = self.eval(e, frame)?;
            if let Some(ty) = kernel.params.get(i).and_then(Option::as_ref) {
                v = self.convert(&v, ty, e.at)?;
            }
            out.push(match v {
                Value::Int(v, s) => PlanArg::Int(v, s.bits()),
                Value::Float(v, s) => PlanArg::Float(v, s.bits()),
                Value::Ptr { buffer: Some(b), offset, .. } => PlanArg::Buffer {
                    name: self.buffers.get(b).cloned().unwrap_or_default(),
                    offset_bytes: offset,
                },
                Value::Ptr { buffer: None, .. } => PlanArg::Null,
                other => {
                    return Err(Fail::unsupported(
                        e.at,
                        format!("a kernel argument of type `{}`", other.ty()),
                    ));
                }
            });
        }
        Ok(out)
    }

    /// The implicit conversions of C++ that host code needs.
    fn convert(&mut self, v: &Value, ty: &Ty, at: u32) -> Result<Value, Fail> {
        let bad = |v: &Value| Fail::invalid(at, format!("a `{}` where `{ty}` is expected", v.ty()));
        match (v, ty) {
            (_, Ty::Auto) => Ok(v.clone()),
            (Value::Int(..) | Value::Float(..), Ty::Scalar(s)) => v.to_scalar(*s).ok_or_else(|| bad(v)),
            (Value::Ptr { .. }, Ty::Scalar(Scalar::Bool)) => v.to_scalar(Scalar::Bool).ok_or_else(|| bad(v)),
            (Value::Int(..) | Value::Float(..), Ty::Dim3) => match v.to_scalar(Scalar::U32) {
                Some(Value::Int(x, _)) => Ok(Value::Dim3([u32::try_from(x).unwrap_or(u32::MAX), 1, 1])),
                _ => Err(bad(v)),
            },
            (Value::Dim3(_), Ty::Dim3) | (Value::Stream, Ty::Stream) | (Value::Void, Ty::Void) => {
                Ok(v.clone())
            }
            // A null pointer constant.
            (Value::Int(0, Scalar::I32), Ty::Ptr(elem, constant)) => {
                Ok(Value::Ptr { buffer: None, offset: 0, elem: elem.clone(), constant: *constant })
            }
            (Value::Ptr { buffer, offset, elem, constant }, Ty::Ptr(to, to_const)) => {
                let null = buffer.is_none();
                let layout = null || to.name == "void" || elem.same_layout(to);
                if !layout || (*constant && !to_const && !null) {
                    return Err(bad(v));
                }
                Ok(Value::Ptr { buffer: *buffer, offset: *offset, elem: to.clone(), constant: *to_const })
            }
            (Value::Int(0, _), Ty::Stream) => Ok(Value::Stream),
            _ => Err(bad(v)),
        }
    }

    fn eval(&mut self, e: &Expr, frame: &mut Frame) -> Result<Value, Fail> {
        self.step(e.at)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fail::exhausted(e.at, "host functions call each other too deep"));
        }
        let v = self.eval_inner(e, frame);
        self.depth -= 1;
        v
    }

    fn eval_inner(&mut self, e: &Expr, frame: &mut Frame) -> Result<Value, Fail> {
        match &e.node {
            Node::Int(v, s) => Ok(Value::Int(*v, *s)),
            Node::Float(v, s) => Ok(Value::Float(*v, *s)),
            Node::Null => {
                Ok(Value::Ptr { buffer: None, offset: 0, elem: Elem::named("void"), constant: false })
            }
            Node::Slot(slot, _) => self.read(*slot, frame, e.at),
            Node::Field(inner, f) => match self.eval(inner, frame)? {
                Value::Dim3(d) => Ok(Value::Int(i128::from(d[*f]), Scalar::U32)),
                other => Err(Fail::invalid(e.at, format!("a member of a `{}`", other.ty()))),
            },
            Node::Unary(op, inner) => {
                let v = self.eval(inner, frame)?;
                self.unary(*op, &v, e.at)
            }
            Node::Binary(Op::LogicalAnd, a, b) => {
                Ok(Value::bool(self.truth(a, frame)? && self.truth(b, frame)?))
            }
            Node::Binary(Op::LogicalOr, a, b) => {
                Ok(Value::bool(self.truth(a, frame)? || self.truth(b, frame)?))
            }
            Node::Binary(Op::Comma, a, b) => {
                self.eval(a, frame)?;
                self.eval(b, frame)
            }
            Node::Binary(op, a, b) => {
                let a = self.eval(a, frame)?;
                let b = self.eval(b, frame)?;
                self.arithmetic(*op, &a, &b, e.at)
            }
            Node::Element(p, i) => {
                let p = self.eval(p, frame)?;
                let i = self.eval(i, frame)?;
                self.arithmetic(Op::Add, &p, &i, e.at)
            }
            Node::Ternary(c, a, b) => {
                let taken = self.truth(c, frame)?;
                // Both arms give the type, one the value; the other is not run, so its type is known only where
                // it is evident. That matters only for scalar arms of different types.
                let v = self.eval(if taken { a } else { b }, frame)?;
                match (v.scalar(), static_scalar(if taken { b } else { a })) {
                    (Some(x), Some(y)) => Ok(v.to_scalar(Scalar::common(x, y)).unwrap_or(v)),
                    _ => Ok(v),
                }
            }
            Node::Assign { place, op, value, post } => {
                let rhs = self.eval(value, frame)?;
                self.assign(place, *op, rhs, *post, e.at, frame)
            }
            Node::Cast(ty, inner) => {
                let v = self.eval(inner, frame)?;
                match (&v, ty) {
                    (_, Ty::Void) => Ok(Value::Void),
                    (Value::Ptr { buffer, offset, .. }, Ty::Ptr(elem, constant)) => Ok(Value::Ptr {
                        buffer: *buffer,
                        offset: *offset,
                        elem: elem.clone(),
                        constant: *constant,
                    }),
                    _ => self.convert(&v, ty, e.at),
                }
            }
            Node::Dim3(parts) => {
                let mut d = [1u32; 3];
                for (slot, part) in d.iter_mut().zip(parts) {
                    let v = self.eval(part, frame)?;
                    // `dim3(other)` copies.
                    if let (Value::Dim3(copy), 1) = (&v, parts.len()) {
                        return Ok(Value::Dim3(*copy));
                    }
                    match v.to_scalar(Scalar::U32) {
                        Some(Value::Int(x, _)) => *slot = u32::try_from(x).unwrap_or(u32::MAX),
                        _ => return Err(Fail::invalid(part.at, format!("an extent of type `{}`", v.ty()))),
                    }
                }
                Ok(Value::Dim3(d))
            }
            Node::Call(f, args) => {
                let mut values = Vec::with_capacity(args.len());
                for a in args {
                    values.push(self.eval(a, frame)?);
                }
                self.call(*f, values, e.at)
            }
            Node::Builtin(f, args, forced) => {
                let mut values = Vec::with_capacity(args.len());
                for a in args {
                    values.push(self.eval(a, frame)?);
                }
                self.builtin(*f, &values, *forced, e.at)
            }
            Node::Scratch { elem, len, name } => {
                let len = self.eval(len, frame)?;
                self.scratch(elem, &len, name, e.at)
            }
            Node::Memset(p, v, n) => {
                let p = self.eval(p, frame)?;
                let v = self.eval(v, frame)?.to_scalar(Scalar::U8);
                let n = self.eval(n, frame)?.to_scalar(Scalar::U64);
                let (Value::Ptr { buffer, offset, .. }, Some(Value::Int(v, _)), Some(Value::Int(n, _))) =
                    (p, v, n)
                else {
                    return Err(Fail::invalid(e.at, "`cudaMemset` takes a pointer, a byte and a length"));
                };
                let Some(buffer) = buffer else {
                    return Err(Fail::fault(e.at, "`cudaMemset` of the null pointer"));
                };
                let line = self.line(e.at);
                let op = PlanOp::Memset {
                    buffer: self.buffers.get(buffer).cloned().unwrap_or_default(),
                    offset_bytes: offset,
                    value: u8::try_from(v).unwrap_or(0),
                    len_bytes: u64::try_from(n).unwrap_or(u64::MAX),
                    line,
                };
                self.push(op, e.at)?;
                Ok(Value::int(0))
            }
            Node::Ignored => Ok(Value::int(0)),
            Node::Assert(inner) => {
                if self.truth(inner, frame)? {
                    Ok(Value::Void)
                } else {
                    Err(Fail::fault(e.at, "a host `assert` does not hold"))
                }
            }
        }
    }

    fn read(&self, slot: usize, frame: &Frame, at: u32) -> Result<Value, Fail> {
        // No cell at all: a constant is being evaluated.
        let value = frame.get(slot).and_then(|cell| cell.value.clone());
        value.ok_or_else(|| Fail::fault(at, "a variable is read before it has a value"))
    }

    fn assign(
        &mut self,
        place: &Place,
        op: Option<Op>,
        rhs: Value,
        post: bool,
        at: u32,
        frame: &mut Frame,
    ) -> Result<Value, Fail> {
        match place {
            Place::Slot(slot) => {
                let old = frame.get(*slot).and_then(|cell| cell.value.clone());
                let new = match (op, &old) {
                    (Some(op), Some(old)) => self.arithmetic(op, old, &rhs, at)?,
                    (Some(_), None) => {
                        return Err(Fail::fault(at, "a variable is read before it has a value"));
                    }
                    (None, _) => rhs,
                };
                let ty = frame.get(*slot).map_or(Ty::Auto, |cell| cell.ty.clone());
                let new = self.convert(&new, &ty, at)?;
                if let Some(cell) = frame.get_mut(*slot) {
                    cell.value = Some(new.clone());
                }
                Ok(if post { old.unwrap_or(new) } else { new })
            }
            Place::Field(slot, f) => {
                let Some(Value::Dim3(mut d)) = frame.get(*slot).and_then(|cell| cell.value.clone()) else {
                    return Err(Fail::invalid(at, "a member of what is no `dim3`"));
                };
                let old = Value::Int(i128::from(d[*f]), Scalar::U32);
                let new = match op {
                    Some(op) => self.arithmetic(op, &old, &rhs, at)?,
                    None => rhs,
                };
                let Some(Value::Int(n, s)) = new.to_scalar(Scalar::U32) else {
                    return Err(Fail::invalid(at, format!("a `{}` in a `dim3`", new.ty())));
                };
                d[*f] = u32::try_from(n).unwrap_or(u32::MAX);
                if let Some(cell) = frame.get_mut(*slot) {
                    cell.value = Some(Value::Dim3(d));
                }
                Ok(if post { old } else { Value::Int(n, s) })
            }
        }
    }

    fn scratch(&mut self, elem: &Elem, len: &Value, base: &str, at: u32) -> Result<Value, Fail> {
        let (Some(dtype), Some(size)) = (elem.dtype, elem.size) else {
            return Err(Fail::unsupported(at, format!("scratch of type `{}`", elem.name)));
        };
        let len = match len.to_scalar(Scalar::U64) {
            Some(Value::Int(n, _)) => u64::try_from(n).unwrap_or(u64::MAX),
            _ => return Err(Fail::invalid(at, "a scratch length that is no integer")),
        };
        if len.checked_mul(size).is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            return Err(Fail::fault(
                at,
                format!("scratch of {len} elements of {size} bytes does not fit in memory"),
            ));
        }
        if self.plan.scratch.len() >= MAX_SCRATCH {
            return Err(Fail::exhausted(at, format!("more than {MAX_SCRATCH} scratch tensors")));
        }
        // `#` is in no C++ name, so a numbered name is never taken; only the first must be looked for.
        let n = self.names.entry(base.to_owned()).or_insert(0);
        *n += 1;
        let mut name = if *n == 1 { base.to_owned() } else { format!("{base}#{n}") };
        if *n == 1 && self.buffers.contains(&name) {
            *n = 2;
            name = format!("{base}#2");
        }
        self.buffers.push(name.clone());
        self.plan.scratch.push(Scratch { name, dtype, len: len.saturating_mul(elem.lanes) });
        Ok(Value::Ptr {
            buffer: Some(self.buffers.len() - 1),
            offset: 0,
            elem: elem.clone(),
            constant: false,
        })
    }

    fn unary(&mut self, op: Unary, v: &Value, at: u32) -> Result<Value, Fail> {
        let r = arith::unary(op, v);
        self.located(r, at)
    }

    /// The result of an operation at its place; signed overflow wraps and is noted.
    fn located(&mut self, r: Result<Computed, Wrong>, at: u32) -> Result<Value, Fail> {
        match r {
            Ok(Computed { value, wrapped: None }) => Ok(value),
            Ok(Computed { value, wrapped: Some(exact) }) => {
                if let Value::Int(v, s) = value {
                    self.note(at, &format!("`{}` overflow, {exact} wraps to {v}", s.name()));
                }
                Ok(value)
            }
            Err(Wrong::Invalid(what)) => Err(Fail::invalid(at, what)),
            Err(Wrong::Fault(what)) => Err(Fail::fault(at, what)),
        }
    }

    fn arithmetic(&mut self, op: Op, a: &Value, b: &Value, at: u32) -> Result<Value, Fail> {
        if matches!(a, Value::Ptr { .. }) || matches!(b, Value::Ptr { .. }) {
            return self.pointer(op, a, b, at);
        }
        let r = arith::binary(op, a, b);
        self.located(r, at)
    }

    fn pointer(&mut self, op: Op, a: &Value, b: &Value, at: u32) -> Result<Value, Fail> {
        let bad = || Fail::invalid(at, format!("an operator on `{}` and `{}`", a.ty(), b.ty()));
        match (op, a, b) {
            (Op::Add | Op::Sub, Value::Ptr { buffer, offset, elem, constant }, Value::Int(n, _)) => {
                let Some(size) = elem.size else {
                    return Err(Fail::invalid(at, format!("arithmetic on a pointer to `{}`", elem.name)));
                };
                let n = if op == Op::Add { *n } else { -*n };
                let moved = n
                    .checked_mul(i128::from(size))
                    .and_then(|d| d.checked_add(i128::from(*offset)))
                    .and_then(|o| i64::try_from(o).ok())
                    .ok_or_else(|| Fail::fault(at, "a pointer moved out of the address space"))?;
                Ok(Value::Ptr { buffer: *buffer, offset: moved, elem: elem.clone(), constant: *constant })
            }
            (Op::Add, Value::Int(..), Value::Ptr { .. }) => self.pointer(Op::Add, b, a, at),
            (
                Op::Sub,
                Value::Ptr { buffer: x, offset: o, elem, .. },
                Value::Ptr { buffer: y, offset: p, elem: other, .. },
            ) => {
                let Some(size) = elem.size.filter(|s| *s > 0 && elem.same_layout(other)) else {
                    return Err(bad());
                };
                if x != y {
                    return Err(Fail::fault(at, "the difference of pointers into two tensors"));
                }
                let d = (i128::from(*o) - i128::from(*p)) / i128::from(size);
                Ok(Value::Int(d, Scalar::I64))
            }
            (Op::Eq | Op::Ne, _, _) => {
                let key = |v: &Value| match v {
                    Value::Ptr { buffer, offset, .. } => Some((*buffer, *offset)),
                    Value::Int(0, _) => Some((None, 0)),
                    _ => None,
                };
                let (Some(x), Some(y)) = (key(a), key(b)) else { return Err(bad()) };
                Ok(Value::bool((x == y) == (op == Op::Eq)))
            }
            (
                Op::Lt | Op::Gt | Op::Le | Op::Ge,
                Value::Ptr { buffer: x, offset: o, .. },
                Value::Ptr { buffer: y, offset: p, .. },
            ) => {
                if x != y {
                    return Err(Fail::fault(at, "the order of pointers into two tensors"));
                }
                Ok(Value::bool(match op {
                    Op::Lt => o < p,
                    Op::Gt => o > p,
                    Op::Le => o <= p,
                    _ => o >= p,
                }))
            }
            _ => Err(bad()),
        }
    }

    fn builtin(
        &mut self,
        f: Builtin,
        args: &[Value],
        forced: Option<Scalar>,
        at: u32,
    ) -> Result<Value, Fail> {
        let r = arith::builtin(f, args, forced);
        self.located(r, at)
    }
}

/// The type of an expression of variables, literals and casts, which is known without running it.
fn static_scalar(e: &Expr) -> Option<Scalar> {
    match &e.node {
        Node::Int(_, s) | Node::Float(_, s) | Node::Cast(Ty::Scalar(s), _) => Some(*s),
        Node::Slot(_, s) => *s,
        Node::Unary(Unary::Minus | Unary::Plus, inner) => static_scalar(inner).map(Scalar::promoted),
        Node::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, a, b) => {
            Some(Scalar::common(static_scalar(a)?, static_scalar(b)?))
        }
        _ => None,
    }
}
