//! Runs host code: statements, expressions, places, calls of the file's own functions.
//!
//! Every step counts against the run's budget and every nesting against a depth, so that wrong host code ends as a
//! fault, an exception or exhausted. Scalar arithmetic is the host crate's. What a name means is looked up when it is
//! met: variables, functions of the file, types, then what the libraries have (`functions.rs`, `methods.rs`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use assay_host::arith::{self, Computed, Wrong};
use assay_host::types::{Scalar, Value as Number};
use assay_host::{Op, Unary};

use crate::Library;
use crate::device::Gpu;
use crate::error::ExtensionError;
use crate::program::Program;
use crate::run::Run;
use crate::syntax::{
    Declarator, Expr, Function, Init, Lambda, Name, Node, Param, Stmt, TemplateArg, TemplateParam, Type,
};
use crate::value::{Cell, Closure, Items, Meaning, Pointer, Scope, Target, Ty, Val, Var};

pub(crate) type R<T> = Result<T, ExtensionError>;

/// Nested calls and expressions.
const MAX_DEPTH: usize = 400;

/// How a statement ends.
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(Val),
}

/// Where a value is kept.
pub(crate) enum Place {
    Var(Var),
    Item(Items, usize, Ty),
    /// A component of a `dim3`.
    Component(Box<Place>, usize),
    Field(Rc<RefCell<BTreeMap<Arc<str>, Val>>>, Arc<str>),
    Memory(Pointer),
    /// A value of its own.
    Value(Val),
}

/// Variables that outlive a call: those of the file, and `static` ones of functions by place.
#[derive(Default)]
pub(crate) struct Globals {
    pub scope: Rc<Scope>,
    pub statics: BTreeMap<(usize, u32), Var>,
    /// What host code has written to variables of the device.
    pub symbols: Vec<crate::device::SymbolWrite>,
    pub ready: bool,
}

/// One call into a module.
pub(crate) struct Interp<'m, 'r> {
    pub program: &'m Program,
    pub gpu: Gpu<'m>,
    pub run: &'r mut Run,
    pub library: &'r mut dyn Library,
    pub globals: &'r mut Globals,
    /// Which text the code that runs stands in.
    pub source: usize,
    pub depth: usize,
    /// Bytes allocated by this call.
    pub allocated: u64,
    /// Numbers the allocations, for their contents.
    pub allocations: u64,
}

impl Interp<'_, '_> {
    pub fn line(&self, at: u32) -> Option<u32> {
        self.program.line(self.source, at)
    }

    pub fn unsupported<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Unsupported { construct: what.into(), line: self.line(at) })
    }

    /// Code that a compiler would refuse.
    pub fn rejected<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Rejected { message: what.into(), line: self.line(at) })
    }

    pub fn raised<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Raised { message: what.into(), line: self.line(at) })
    }

    pub fn fault<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Fault { message: what.into(), line: self.line(at) })
    }

    pub fn exhausted<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Exhausted { message: what.into(), line: self.line(at) })
    }

    pub fn note(&mut self, at: u32, what: &str) {
        let text = format!("line {}: {what}", self.line(at).unwrap_or(0));
        if !self.run.notes.contains(&text) && self.run.notes.len() < 100 {
            self.run.notes.push(text);
        }
    }

    fn step(&mut self, at: u32) -> R<()> {
        match self.run.host_steps.checked_sub(1) {
            Some(left) => {
                self.run.host_steps = left;
                Ok(())
            }
            None => self.exhausted(at, "host code takes too many steps"),
        }
    }

    fn enter(&mut self, at: u32) -> R<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.exhausted(at, "host functions call each other too deep");
        }
        Ok(())
    }

    /// The result of scalar arithmetic; signed overflow is noted.
    pub fn computed(&mut self, r: Result<Computed, Wrong>, at: u32) -> R<Val> {
        match r {
            Ok(c) => {
                if let (Some(exact), Number::Int(v, s)) = (c.wrapped, &c.value) {
                    self.note(at, &format!("`{}` overflow, {exact} wraps to {v}", s.name()));
                }
                Ok(Val::Num(c.value))
            }
            Err(Wrong::Invalid(what)) => self.rejected(at, what),
            Err(Wrong::Fault(what)) => self.fault(at, what),
        }
    }

    // ---- statements

    pub fn block(&mut self, body: &[Stmt], scope: &Rc<Scope>) -> R<Flow> {
        for s in body {
            match self.exec(s, scope)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn scoped(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
        let inner = Scope::child(scope);
        match s {
            Stmt::Block(body) => self.block(body, &inner),
            other => self.exec(other, &inner),
        }
    }

    fn exec(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.exhausted(0, "host code nests too deep");
        }
        let flow = self.exec_inner(s, scope);
        self.depth -= 1;
        flow
    }

    fn exec_inner(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
        match s {
            Stmt::Empty => Ok(Flow::Next),
            Stmt::Decl(list) => {
                for d in list {
                    self.declare(d, scope)?;
                }
                Ok(Flow::Next)
            }
            Stmt::Bind(names, e, by_ref, at) => {
                self.step(*at)?;
                let v = self.eval(e, scope)?;
                let v = if *by_ref { v } else { v.copied() };
                self.bind_names(names, &v, scope, *at)?;
                Ok(Flow::Next)
            }
            Stmt::Expr(e) => {
                self.eval(e, scope)?;
                Ok(Flow::Next)
            }
            Stmt::Block(_) => self.scoped(s, scope),
            Stmt::If { init, cond, then, otherwise } => {
                let inner = Scope::child(scope);
                if let Some(init) = init {
                    self.exec(init, &inner)?;
                }
                if self.truth(cond, &inner)? {
                    self.scoped(then, &inner)
                } else if let Some(other) = otherwise {
                    self.scoped(other, &inner)
                } else {
                    Ok(Flow::Next)
                }
            }
            Stmt::While(cond, body) => {
                while self.truth(cond, scope)? {
                    match self.scoped(body, scope)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::DoWhile(body, cond) => {
                loop {
                    match self.scoped(body, scope)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                    if !self.truth(cond, scope)? {
                        break;
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::For { init, cond, step, body, at } => {
                let inner = Scope::child(scope);
                self.exec(init, &inner)?;
                loop {
                    self.step(*at)?;
                    if let Some(c) = cond
                        && !self.truth(c, &inner)?
                    {
                        break;
                    }
                    match self.scoped(body, &inner)? {
                        Flow::Break => break,
                        Flow::Return(v) => return Ok(Flow::Return(v)),
                        Flow::Next | Flow::Continue => {}
                    }
                    if let Some(e) = step {
                        self.eval(e, &inner)?;
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::ForEach { names, ty, range, body, at } => self.for_each(names, ty, range, body, scope, *at),
            Stmt::Switch(e, arms) => {
                let at = e.at;
                let v = self.eval(e, scope)?;
                let mut start = None;
                for (k, (labels, _)) in arms.iter().enumerate() {
                    for label in labels.iter().flatten() {
                        let l = self.eval(label, scope)?;
                        if self.equal(&v, &l, at)? {
                            start = start.or(Some(k));
                        }
                    }
                }
                let default = arms.iter().position(|(labels, _)| labels.iter().any(Option::is_none));
                let inner = Scope::child(scope);
                for (_, body) in arms.iter().skip(start.or(default).unwrap_or(arms.len())) {
                    match self.block(body, &inner)? {
                        Flow::Next => {}
                        Flow::Break => break,
                        other => return Ok(other),
                    }
                }
                Ok(Flow::Next)
            }
            Stmt::Return(value, at) => {
                self.step(*at)?;
                let v = match value {
                    Some(e) => self.eval(e, scope)?,
                    None => Val::Void,
                };
                Ok(Flow::Return(v))
            }
            Stmt::Break => Ok(Flow::Break),
            Stmt::Continue => Ok(Flow::Continue),
            Stmt::Using(name, ty) => {
                let t = self.resolve(ty, scope)?;
                scope.declare_type(name, t);
                Ok(Flow::Next)
            }
            Stmt::Record(r) => {
                scope.declare_type(&r.name, Ty::Record(r.name.clone()));
                // Its fields are found by name; a record within a function is rare.
                self.unsupported(r.fields.first().map_or(0, |f| f.at), "a record within a function")
            }
            Stmt::Try(body, handler) => {
                let inner = Scope::child(scope);
                match self.block(body, &inner) {
                    Err(ExtensionError::Raised { .. }) => self.block(handler, &Scope::child(scope)),
                    other => other,
                }
            }
        }
    }

    fn bind_names(&mut self, names: &[Arc<str>], v: &Val, scope: &Rc<Scope>, at: u32) -> R<()> {
        let parts: Vec<Val> = match v {
            Val::Tuple(items) | Val::List(items, _) => items.borrow().clone(),
            Val::Record(_, fields) => fields.borrow().values().cloned().collect(),
            other => return self.unsupported(at, format!("a structured binding of a `{}`", other.ty())),
        };
        if parts.len() != names.len() {
            return self.rejected(at, format!("{} names for {} values", names.len(), parts.len()));
        }
        for (n, p) in names.iter().zip(parts) {
            let cell = Rc::new(RefCell::new(p));
            scope.declare(n, Var { cell, ty: Ty::Auto, is_const: false });
        }
        Ok(())
    }

    fn for_each(
        &mut self,
        names: &[Arc<str>],
        ty: &Type,
        range: &Expr,
        body: &Stmt,
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Flow> {
        let v = self.eval(range, scope)?;
        let Val::List(items, _) = &v else {
            return self.unsupported(at, format!("a loop over a `{}`", v.ty()));
        };
        let by_ref = ty.is_reference() && !ty.is_const;
        let want = self.resolve(ty, scope)?;
        let mut k = 0;
        loop {
            self.step(at)?;
            let Some(item) = items.borrow().get(k).cloned() else { break };
            let inner = Scope::child(scope);
            let cell: Cell = Rc::new(RefCell::new(self.convert(&item, &want, at)?));
            if names.len() == 1 {
                for n in names {
                    inner.declare(n, Var { cell: cell.clone(), ty: want.clone(), is_const: ty.is_const });
                }
            } else {
                self.bind_names(names, &item, &inner, at)?;
            }
            let flow = self.scoped(body, &inner)?;
            if by_ref && let Some(slot) = items.borrow_mut().get_mut(k) {
                *slot = cell.borrow().clone();
            }
            match flow {
                Flow::Break => break,
                Flow::Return(v) => return Ok(Flow::Return(v)),
                Flow::Next | Flow::Continue => {}
            }
            k += 1;
        }
        Ok(Flow::Next)
    }

    pub fn declare(&mut self, d: &Declarator, scope: &Rc<Scope>) -> R<()> {
        self.step(d.at)?;
        if d.ty.is_static && scope.parent.is_some() {
            let key = (self.source, d.at);
            if let Some(v) = self.globals.statics.get(&key) {
                scope.declare(&d.name, v.clone());
                return Ok(());
            }
            self.declare_fresh(d, scope)?;
            if let Some(v) = scope.find(&d.name) {
                self.globals.statics.insert(key, v);
            }
            return Ok(());
        }
        self.declare_fresh(d, scope)
    }

    fn declare_fresh(&mut self, d: &Declarator, scope: &Rc<Scope>) -> R<()> {
        let mut ty = self.resolve(&d.ty, scope)?;
        let at = d.at;
        if !d.extents.is_empty() {
            let mut extents = Vec::new();
            for e in &d.extents {
                extents.push(match e {
                    Some(e) => {
                        let n = self.eval(e, scope)?.as_int().and_then(|n| u64::try_from(n).ok());
                        match n {
                            Some(n) => n,
                            None => return self.fault(at, "an array of that length"),
                        }
                    }
                    None => match &d.init {
                        Init::Copy(Expr { node: Node::List(items), .. }) | Init::Direct(items, true) => {
                            items.len() as u64
                        }
                        _ => return self.unsupported(at, "an array of unknown length"),
                    },
                });
            }
            for n in extents.iter().rev() {
                ty = Ty::Array(Box::new(ty), *n);
            }
        }
        let reference = d.ty.is_reference();
        let by_ref = reference && !d.ty.is_const;
        if by_ref && let Init::Copy(e) = &d.init {
            let p = self.place(e, scope)?;
            match p {
                Place::Var(v) => {
                    scope.declare(&d.name, Var { is_const: d.ty.is_const, ..v });
                    return Ok(());
                }
                Place::Value(v) => {
                    let cell = Rc::new(RefCell::new(v));
                    scope.declare(&d.name, Var { cell, ty: Ty::Auto, is_const: d.ty.is_const });
                    return Ok(());
                }
                // Lists are shared by their items; a reference to a single element is copied back by nobody.
                other => {
                    let v = self.get(&other, at)?;
                    if matches!(v, Val::List(..) | Val::Tensor(_) | Val::Record(..)) {
                        let cell = Rc::new(RefCell::new(v));
                        scope.declare(&d.name, Var { cell, ty: Ty::Auto, is_const: d.ty.is_const });
                        return Ok(());
                    }
                    return self.unsupported(at, "a reference to an element");
                }
            }
        }
        let value = match &d.init {
            Init::None => self.default_value(&ty, at)?,
            Init::Copy(e) => {
                let v = self.eval(e, scope)?;
                if matches!(v, Val::Void) {
                    return self
                        .rejected(at, format!("`{}` is initialised with a value of type `void`", d.name));
                }
                let v = if reference { v } else { v.copied() };
                self.convert(&v, &ty, at)?
            }
            Init::Direct(args, braces) => {
                let mut values = Vec::with_capacity(args.len());
                for a in args {
                    values.push(self.eval(a, scope)?);
                }
                self.construct(&ty, values, *braces, at)?
            }
        };
        if let Val::Tensor(Some(t)) = &value {
            self.gpu.name(&t.storage, t.dtype, &d.name);
        }
        if let Val::Ptr(Pointer { target: Target::Storage(s, _), elem, .. }) = &value
            && let Some(dtype) = elem.dtype()
        {
            self.gpu.name(s, dtype, &d.name);
        }
        let ty = if matches!(ty, Ty::Auto) { Ty::Auto } else { ty };
        let var = Var {
            cell: Rc::new(RefCell::new(value)),
            ty,
            is_const: d.ty.is_const && d.ty.suffixes.is_empty(),
        };
        scope.declare(&d.name, var);
        Ok(())
    }

    /// What a variable holds without an initialiser.
    pub fn default_value(&mut self, ty: &Ty, at: u32) -> R<Val> {
        Ok(match ty {
            Ty::Tensor => Val::Tensor(None),
            Ty::Options => Val::Options(Default::default()),
            Ty::Dim3 => Val::Num(Number::Dim3([1, 1, 1])),
            Ty::Str => Val::Str("".into()),
            Ty::List(e) => Val::list(Vec::new(), (**e).clone()),
            Ty::Array(e, n) => {
                if *n > 1 << 20 {
                    return self.exhausted(at, format!("an array of {n} elements"));
                }
                let mut items = Vec::new();
                for _ in 0..*n {
                    items.push(self.default_value(e, at)?);
                }
                Val::list(items, (**e).clone())
            }
            Ty::Tuple(ts) => {
                let mut items = Vec::new();
                for t in ts {
                    items.push(self.default_value(t, at)?);
                }
                Val::tuple(items)
            }
            Ty::Optional(_) => Val::Nothing,
            Ty::Stream => Val::Stream,
            Ty::Event => Val::Event,
            Ty::Ptr(e, c) => Val::Ptr(Pointer { is_const: *c, ..Pointer::null((**e).clone()) }),
            Ty::Opaque(n) => Val::Opaque(n.clone()),
            Ty::Record(name) => {
                let Some(record) = self.program.records.get(&**name) else {
                    return self.unsupported(at, format!("the record `{name}`"));
                };
                let record = Arc::clone(record);
                let root = Rc::clone(&self.globals.scope);
                let mut fields = BTreeMap::new();
                for f in &record.fields {
                    let inner = Scope::child(&root);
                    self.declare_fresh(f, &inner)?;
                    let v = inner.find(&f.name).map_or(Val::Unset, |v| v.cell.borrow().clone());
                    fields.insert(f.name.clone(), v);
                }
                Val::Record(name.clone(), Rc::new(RefCell::new(fields)))
            }
            _ => Val::Unset,
        })
    }

    // ---- places

    pub fn place(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<Place> {
        match &e.node {
            Node::Name(n) => {
                if let Some(var) = n.plain().and_then(|p| scope.find(p)) {
                    return Ok(Place::Var(var));
                }
                Ok(Place::Value(self.eval(e, scope)?))
            }
            Node::Member(inner, part) => {
                let p = self.place(inner, scope)?;
                let v = self.get(&p, e.at)?;
                match (&v, &*part.ident) {
                    (Val::Num(Number::Dim3(_)), "x") => Ok(Place::Component(Box::new(p), 0)),
                    (Val::Num(Number::Dim3(_)), "y") => Ok(Place::Component(Box::new(p), 1)),
                    (Val::Num(Number::Dim3(_)), "z") => Ok(Place::Component(Box::new(p), 2)),
                    (Val::Record(_, fields), name) => Ok(Place::Field(Rc::clone(fields), Arc::from(name))),
                    (Val::Tuple(items), "first") => Ok(Place::Item(Rc::clone(items), 0, Ty::Auto)),
                    (Val::Tuple(items), "second") => Ok(Place::Item(Rc::clone(items), 1, Ty::Auto)),
                    (Val::Ptr(ptr), name) => {
                        let inner = self.read_pointer(ptr, e.at)?;
                        match inner {
                            Val::Record(_, fields) => Ok(Place::Field(fields, Arc::from(name))),
                            _ => Ok(Place::Value(self.eval(e, scope)?)),
                        }
                    }
                    _ => Ok(Place::Value(self.eval(e, scope)?)),
                }
            }
            Node::Index(inner, index) => {
                let base = self.eval(inner, scope)?;
                match &base {
                    Val::List(items, ty) => {
                        let k = self.eval(index, scope)?.as_int();
                        let len = items.borrow().len();
                        match k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k < len) {
                            Some(k) => Ok(Place::Item(Rc::clone(items), k, ty.clone())),
                            None => self
                                .fault(e.at, format!("index {} of a list of {len}", k.unwrap_or_default())),
                        }
                    }
                    Val::Ptr(p) => {
                        let i = self.eval(index, scope)?;
                        let moved = self.pointer_add(p, &i, false, e.at)?;
                        Ok(Place::Memory(moved))
                    }
                    _ => Ok(Place::Value(self.eval(e, scope)?)),
                }
            }
            Node::Deref(inner) => match self.eval(inner, scope)? {
                Val::Ptr(p) => Ok(Place::Memory(p)),
                other => Ok(Place::Value(other)),
            },
            Node::Call(f, args) => {
                // `std::get<0>(t) = x`, `v.at(1) = x`, `v.back() = x`.
                if let Node::Name(n) = &f.node
                    && n.last() == "get"
                    && let [one] = args.as_slice()
                {
                    let v = self.eval(one, scope)?;
                    let k = self.get_index(n, scope)?;
                    if let Val::Tuple(items) | Val::List(items, _) = &v {
                        return Ok(Place::Item(Rc::clone(items), k, Ty::Auto));
                    }
                }
                Ok(Place::Value(self.eval(e, scope)?))
            }
            _ => Ok(Place::Value(self.eval(e, scope)?)),
        }
    }

    pub fn get(&mut self, p: &Place, at: u32) -> R<Val> {
        let v = match p {
            Place::Var(v) => v.cell.borrow().clone(),
            Place::Item(items, k, _) => match items.borrow().get(*k) {
                Some(v) => v.clone(),
                None => return self.fault(at, "an element that is no longer there"),
            },
            Place::Component(inner, k) => match self.get(inner, at)? {
                Val::Num(Number::Dim3(d)) => Val::Num(Number::Int(i128::from(d[*k]), Scalar::U32)),
                other => return self.rejected(at, format!("a component of a `{}`", other.ty())),
            },
            Place::Field(fields, name) => match fields.borrow().get(name) {
                Some(v) => v.clone(),
                None => return self.rejected(at, format!("there is no member `{name}`")),
            },
            Place::Memory(p) => return self.read_pointer(p, at),
            Place::Value(v) => v.clone(),
        };
        Ok(v)
    }

    pub fn set(&mut self, p: &Place, v: Val, at: u32) -> R<()> {
        match p {
            Place::Var(var) => {
                if var.is_const {
                    return self.rejected(at, "an assignment to a `const` variable");
                }
                let old = match &var.ty {
                    Ty::Auto => Some(var.cell.borrow().ty()),
                    _ => None,
                };
                let v = match old {
                    Some(t @ (Ty::Scalar(_) | Ty::Dim3 | Ty::Tensor)) => self.convert(&v, &t, at)?,
                    Some(_) => v,
                    None => self.convert(&v, &var.ty, at)?,
                };
                *var.cell.borrow_mut() = v;
                Ok(())
            }
            Place::Item(items, k, ty) => {
                let v = self.convert(&v, ty, at)?;
                match items.borrow_mut().get_mut(*k) {
                    Some(slot) => {
                        *slot = v;
                        Ok(())
                    }
                    None => self.fault(at, "an element that is no longer there"),
                }
            }
            Place::Component(inner, k) => {
                let Val::Num(Number::Dim3(mut d)) = self.get(inner, at)? else {
                    return self.rejected(at, "a component of what is no `dim3`");
                };
                match self.convert(&v, &Ty::Scalar(Scalar::U32), at)? {
                    Val::Num(Number::Int(n, _)) => d[*k] = u32::try_from(n).unwrap_or(u32::MAX),
                    other => return self.rejected(at, format!("a `{}` in a `dim3`", other.ty())),
                }
                self.set(inner, Val::Num(Number::Dim3(d)), at)
            }
            Place::Field(fields, name) => {
                let ty = match fields.borrow().get(name) {
                    Some(old) => old.ty(),
                    None => return self.rejected(at, format!("there is no member `{name}`")),
                };
                let v = match ty {
                    Ty::Scalar(_) | Ty::Dim3 => self.convert(&v, &ty, at)?,
                    _ => v,
                };
                fields.borrow_mut().insert(name.clone(), v);
                Ok(())
            }
            Place::Memory(p) => self.write_pointer(p, v, at),
            Place::Value(old) => {
                // `x[0] = y` and `x.slice(…) = y` on tensors write through the view.
                if let Val::Tensor(Some(t)) = old {
                    let t = t.clone();
                    return self.copy_into(&t, &v, at);
                }
                self.rejected(at, "an assignment to what is no variable")
            }
        }
    }

    // ---- expressions

    pub fn truth(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<bool> {
        let v = self.eval(e, scope)?;
        self.truth_of(&v, e.at)
    }

    pub fn truth_of(&mut self, v: &Val, at: u32) -> R<bool> {
        if let Val::Unset = v {
            return self.fault(at, "a variable is read before it has a value");
        }
        if let Val::Tensor(Some(t)) = v {
            let item = self.item(&t.clone(), at)?;
            return self.truth_of(&item, at);
        }
        match v.truth() {
            Some(t) => Ok(t),
            None => self.unsupported(at, format!("a condition of type `{}`", v.ty())),
        }
    }

    pub fn eval(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<Val> {
        self.step(e.at)?;
        self.enter(e.at)?;
        let v = self.eval_inner(e, scope);
        self.depth -= 1;
        v
    }

    pub fn eval_all(&mut self, list: &[Expr], scope: &Rc<Scope>) -> R<Vec<Val>> {
        let mut out = Vec::with_capacity(list.len());
        for e in list {
            out.push(self.eval(e, scope)?);
        }
        Ok(out)
    }

    fn eval_inner(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<Val> {
        let at = e.at;
        match &e.node {
            Node::Number(n) => Ok(Val::Num(n.clone())),
            Node::Str(s) => Ok(Val::Str(Rc::from(&**s))),
            Node::Null => Ok(Val::Ptr(Pointer::null(Ty::Void))),
            Node::Name(n) => self.name(n, scope),
            Node::Unary(op, inner) => {
                let v = self.eval(inner, scope)?;
                self.unary(*op, v, at)
            }
            Node::Deref(inner) => {
                let v = self.eval(inner, scope)?;
                match v {
                    Val::Ptr(p) => self.read_pointer(&p, at),
                    Val::Nothing => self.fault(at, "the value of an empty optional"),
                    other => Ok(other),
                }
            }
            Node::Address(inner) => self.address(inner, scope),
            Node::Step { op, post, target } => {
                let p = self.place(target, scope)?;
                let old = self.get(&p, at)?;
                let new = self.binary(*op, &old, &Val::i32(1), at)?;
                self.set(&p, new, at)?;
                if *post { Ok(old) } else { self.get(&p, at) }
            }
            Node::Binary(Op::LogicalAnd, a, b) => {
                Ok(Val::bool(self.truth(a, scope)? && self.truth(b, scope)?))
            }
            Node::Binary(Op::LogicalOr, a, b) => {
                Ok(Val::bool(self.truth(a, scope)? || self.truth(b, scope)?))
            }
            Node::Binary(Op::Comma, a, b) => {
                self.eval(a, scope)?;
                self.eval(b, scope)
            }
            Node::Binary(op, a, b) => {
                let a = self.eval(a, scope)?;
                let b = self.eval(b, scope)?;
                self.binary(*op, &a, &b, at)
            }
            Node::Assign { target, op, value } => self.assign(target, *op, value, scope, at),
            Node::Ternary(c, a, b) => {
                let taken = self.truth(c, scope)?;
                let v = self.eval(if taken { a } else { b }, scope)?;
                // The other arm gives its type only where that is evident; it matters for numbers alone.
                if let (Val::Num(n), Some(other)) = (&v, self.static_scalar(if taken { b } else { a }, scope))
                    && let Some(s) = n.scalar()
                    && let Some(c) = n.to_scalar(Scalar::common(s, other))
                {
                    return Ok(Val::Num(c));
                }
                Ok(v)
            }
            Node::Cast(ty, inner) => {
                let t = self.resolve(ty, scope)?;
                let v = self.eval(inner, scope)?;
                self.cast(v, &t, at)
            }
            Node::Construct(ty, args, braces) => {
                let t = self.resolve(ty, scope)?;
                let values = self.eval_all(args, scope)?;
                self.construct(&t, values, *braces, at)
            }
            Node::Call(f, args) => self.call(f, args, scope, at),
            Node::Member(inner, part) => {
                let v = self.eval(inner, scope)?;
                self.member(&v, &part.ident, at)
            }
            Node::Index(inner, index) => {
                let base = self.eval(inner, scope)?;
                match &base {
                    Val::Tensor(_) => {
                        let i = self.eval(index, scope)?;
                        self.tensor_method(&base, "__getitem__", None, vec![i], scope, at)
                    }
                    Val::Accessor(t, ty) => {
                        let (t, ty) = (t.clone(), ty.clone());
                        let i = self.eval(index, scope)?;
                        self.accessor_index(&t, &ty, &i, at)
                    }
                    Val::Str(s) => {
                        let i = self.eval(index, scope)?.as_int();
                        match i.and_then(|i| s.as_bytes().get(usize::try_from(i).ok()?).copied()) {
                            Some(b) => Ok(Val::Num(Number::Int(i128::from(b as i8), Scalar::I8))),
                            None => self.fault(at, "a character outside a string"),
                        }
                    }
                    Val::List(..) | Val::Ptr(_) => {
                        let p = self.place(e, scope)?;
                        self.get(&p, at)
                    }
                    other => self.unsupported(at, format!("`[]` of a `{}`", other.ty())),
                }
            }
            Node::List(items) => {
                let mut out = Vec::with_capacity(items.len());
                for i in items {
                    out.push(self.eval(i, scope)?.copied());
                }
                let ty = out.first().map_or(Ty::Auto, Val::ty);
                let same = out.iter().all(|v| v.ty() == ty);
                Ok(Val::list(out, if same { ty } else { Ty::Auto }))
            }
            Node::Lambda(l) => Ok(Val::Lambda(Rc::new(self.closure(l, scope)?))),
            Node::Launch { kernel, config, args } => self.launch(kernel, config, args, scope, at),
            Node::SizeOfType(ty) => {
                let t = self.resolve(ty, scope)?;
                match t.size_bytes() {
                    Some(n) => Ok(Val::Num(Number::Int(i128::from(n), Scalar::U64))),
                    None => self.unsupported(at, format!("`sizeof({t})`")),
                }
            }
            Node::SizeOfValue(inner) => {
                // `sizeof(T)` of a template parameter parses as a type; this is a variable.
                if let Node::Name(n) = &inner.node
                    && let Some(v) = n.plain().and_then(|p| scope.find(p))
                {
                    let t = if matches!(v.ty, Ty::Auto) { v.cell.borrow().ty() } else { v.ty };
                    if let Some(n) = t.size_bytes() {
                        return Ok(Val::Num(Number::Int(i128::from(n), Scalar::U64)));
                    }
                }
                let t = self.eval(inner, scope)?.ty();
                match t.size_bytes() {
                    Some(n) => Ok(Val::Num(Number::Int(i128::from(n), Scalar::U64))),
                    None => self.unsupported(at, format!("`sizeof` of a `{t}`")),
                }
            }
            Node::New(ty, count) => {
                let t = self.resolve(ty, scope)?;
                let n = match count {
                    Some(e) => self.eval(e, scope)?.as_int().and_then(|n| u64::try_from(n).ok()),
                    None => Some(1),
                };
                let bytes = n.zip(t.size_bytes()).and_then(|(n, s)| n.checked_mul(s));
                let Some(bytes) = bytes else { return self.unsupported(at, format!("`new {t}`")) };
                let storage = self.allocate(bytes, t.dtype(), at)?;
                Ok(Val::Ptr(Pointer {
                    target: Target::Storage(storage, crate::Device::Cpu),
                    offset: 0,
                    elem: t,
                    is_const: false,
                }))
            }
            Node::Delete(inner) => {
                self.eval(inner, scope)?;
                Ok(Val::Void)
            }
            Node::Throw(value) => {
                let message = match value.as_deref() {
                    Some(Expr { node: Node::Call(_, args) | Node::Construct(_, args, _), .. }) => {
                        match args.first() {
                            Some(first) => {
                                let v = self.eval(first, scope)?;
                                self.display(&v, at)?
                            }
                            None => "an exception".to_owned(),
                        }
                    }
                    Some(other) => {
                        let v = self.eval(other, scope)?;
                        self.display(&v, at)?
                    }
                    None => "an exception".to_owned(),
                };
                self.raised(at, message)
            }
        }
    }

    /// The scalar type of an expression of literals, casts and variables.
    fn static_scalar(&mut self, e: &Expr, scope: &Rc<Scope>) -> Option<Scalar> {
        match &e.node {
            Node::Number(n) => n.scalar(),
            Node::Name(n) => match &*scope.find(n.plain()?)?.cell.borrow() {
                Val::Num(n) => n.scalar(),
                _ => None,
            },
            Node::Cast(ty, _) => match self.resolve(ty, scope).ok()? {
                Ty::Scalar(s) => Some(s),
                _ => None,
            },
            Node::Unary(Unary::Minus | Unary::Plus, inner) => {
                self.static_scalar(inner, scope).map(Scalar::promoted)
            }
            Node::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, a, b) => {
                Some(Scalar::common(self.static_scalar(a, scope)?, self.static_scalar(b, scope)?))
            }
            _ => None,
        }
    }

    fn closure(&mut self, l: &Arc<Lambda>, scope: &Rc<Scope>) -> R<Closure> {
        let copies = if l.by_value || !l.captures.is_empty() {
            let s = if l.by_value { scope.snapshot() } else { Rc::new(Scope::default()) };
            // The file's own names stay visible behind the copies.
            let s = Rc::try_unwrap(s).unwrap_or_default();
            let s = Rc::new(Scope { parent: Some(Rc::clone(&self.globals.scope)), ..s });
            for (name, e) in &l.captures {
                let v = self.eval(e, scope)?.copied();
                s.declare(name, Var { cell: Rc::new(RefCell::new(v)), ty: Ty::Auto, is_const: false });
            }
            Some(s)
        } else {
            None
        };
        Ok(Closure { lambda: Arc::clone(l), outer: Rc::downgrade(scope), copies, source: self.source })
    }

    fn assign(&mut self, target: &Expr, op: Option<Op>, value: &Expr, scope: &Rc<Scope>, at: u32) -> R<Val> {
        // `std::tie(a, b) = f()`.
        if let (Node::Call(f, places), None) = (&target.node, op)
            && let Node::Name(n) = &f.node
            && n.last() == "tie"
        {
            let v = self.eval(value, scope)?;
            let parts = match &v {
                Val::Tuple(items) | Val::List(items, _) => items.borrow().clone(),
                other => return self.unsupported(at, format!("`std::tie` of a `{}`", other.ty())),
            };
            for (p, v) in places.iter().zip(parts) {
                if matches!(&p.node, Node::Name(n) if n.last() == "ignore") {
                    continue;
                }
                let p = self.place(p, scope)?;
                self.set(&p, v, at)?;
            }
            return Ok(Val::Void);
        }
        let p = self.place(target, scope)?;
        let rhs = self.eval(value, scope)?;
        match op {
            None => {
                self.set(&p, rhs.copied(), at)?;
            }
            Some(op) => {
                let old = self.get(&p, at)?;
                if let Val::Tensor(Some(t)) = &old {
                    // In place, as PyTorch does it.
                    let t = t.clone();
                    let new = self.binary(op, &old, &rhs, at)?;
                    self.copy_into(&t, &new, at)?;
                    return Ok(old);
                }
                let new = self.binary(op, &old, &rhs, at)?;
                self.set(&p, new, at)?;
            }
        }
        self.get(&p, at)
    }

    fn address(&mut self, inner: &Expr, scope: &Rc<Scope>) -> R<Val> {
        let at = inner.at;
        // `&function`, as bindings and `cudaFuncSetAttribute` have it.
        if let Node::Name(n) = &inner.node
            && n.plain().and_then(|p| scope.find(p)).is_none()
        {
            return self.name(n, scope);
        }
        match self.place(inner, scope)? {
            Place::Var(v) => {
                let elem = if matches!(v.ty, Ty::Auto) { v.cell.borrow().ty() } else { v.ty.clone() };
                Ok(Val::Ptr(Pointer { target: Target::Cell(v.cell), offset: 0, elem, is_const: v.is_const }))
            }
            Place::Memory(p) => Ok(Val::Ptr(p)),
            Place::Item(items, k, ty) => {
                let size = ty.size_bytes().unwrap_or(8);
                let offset = (k as u64).saturating_mul(size);
                Ok(Val::Ptr(Pointer {
                    target: Target::Items(items),
                    offset: i64::try_from(offset).unwrap_or(i64::MAX),
                    elem: ty,
                    is_const: false,
                }))
            }
            Place::Field(..) | Place::Component(..) | Place::Value(_) => {
                self.unsupported(at, "the address of this")
            }
        }
    }

    pub fn unary(&mut self, op: Unary, v: Val, at: u32) -> R<Val> {
        match (&v, op) {
            (Val::Unset, _) => self.fault(at, "a variable is read before it has a value"),
            (Val::Num(n), _) => {
                let r = arith::unary(op, n);
                self.computed(r, at)
            }
            (Val::Tensor(_), Unary::Minus) => self.library_call("neg", vec![v], at),
            (Val::Tensor(_), Unary::BitNot) => self.library_call("bitwise_not", vec![v], at),
            (_, Unary::Not) => Ok(Val::bool(!self.truth_of(&v, at)?)),
            _ => self.unsupported(at, format!("a unary operator on a `{}`", v.ty())),
        }
    }

    pub fn equal(&mut self, a: &Val, b: &Val, at: u32) -> R<bool> {
        Ok(match (a, b) {
            (Val::DType(x), Val::DType(y)) => x == y,
            (Val::Device(x), Val::Device(y)) => x == y,
            (Val::Opaque(x), Val::Opaque(y)) => x == y,
            (Val::Opaque(_), Val::Num(_)) | (Val::Num(_), Val::Opaque(_)) => false,
            (Val::Str(x), Val::Str(y)) => x == y,
            (Val::Nothing, Val::Nothing) => true,
            (Val::Nothing, _) | (_, Val::Nothing) => false,
            (Val::Stream, _) | (_, Val::Stream) => true,
            (Val::List(x, _), Val::List(y, _)) => {
                let (x, y) = (x.borrow().clone(), y.borrow().clone());
                if x.len() != y.len() {
                    return Ok(false);
                }
                for (a, b) in x.iter().zip(&y) {
                    if !self.equal(a, b, at)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Val::Num(x), Val::Num(y)) => {
                let r = arith::binary(Op::Eq, x, y);
                let v = self.computed(r, at)?;
                v.truth().unwrap_or(false)
            }
            _ => return self.unsupported(at, format!("`==` of a `{}` and a `{}`", a.ty(), b.ty())),
        })
    }

    pub fn binary(&mut self, op: Op, a: &Val, b: &Val, at: u32) -> R<Val> {
        match (a, b) {
            (Val::Unset, _) | (_, Val::Unset) => self.fault(at, "a variable is read before it has a value"),
            (Val::Num(x), Val::Num(y)) => {
                let r = arith::binary(op, x, y);
                self.computed(r, at)
            }
            (Val::Tensor(Some(_)), _) | (_, Val::Tensor(Some(_))) => self.tensor_operator(op, a, b, at),
            (Val::Ptr(_), _) | (_, Val::Ptr(_)) if !matches!(a, Val::Opaque(_)) => {
                self.pointer_operator(op, a, b, at)
            }
            (Val::Opaque(_), _) if op == Op::Shl => {
                // `std::cout << x`.
                let text = self.display(b, at)?;
                if self.run.printed.len() < 1000 {
                    self.run.printed.push(text);
                }
                Ok(a.clone())
            }
            (Val::Str(_), _) | (_, Val::Str(_)) if op == Op::Add => {
                let text = format!("{}{}", self.display(a, at)?, self.display(b, at)?);
                Ok(Val::Str(text.into()))
            }
            _ => match op {
                Op::Eq => Ok(Val::bool(self.equal(a, b, at)?)),
                Op::Ne => Ok(Val::bool(!self.equal(a, b, at)?)),
                _ => self.unsupported(at, format!("an operator on a `{}` and a `{}`", a.ty(), b.ty())),
            },
        }
    }

    /// Text as an output stream, or a message of `TORCH_CHECK`, has it.
    pub fn display(&mut self, v: &Val, at: u32) -> R<String> {
        Ok(match v {
            Val::Str(s) => s.to_string(),
            Val::Num(Number::Int(v, Scalar::Bool)) => v.to_string(),
            Val::Num(Number::Int(v, Scalar::I8)) => {
                u8::try_from(*v).map_or_else(|_| v.to_string(), |b| (b as char).to_string())
            }
            Val::Num(Number::Int(v, _)) => v.to_string(),
            Val::Num(Number::Float(v, _)) => v.to_string(),
            Val::DType(d) => crate::value::dtype_name(*d).to_owned(),
            Val::Device(d) => if *d == crate::Device::Cuda { "cuda:0" } else { "cpu" }.to_owned(),
            Val::List(items, _) => {
                let items = items.borrow().clone();
                let mut parts = Vec::new();
                for i in &items {
                    parts.push(self.display(i, at)?);
                }
                format!("[{}]", parts.join(", "))
            }
            Val::Opaque(n) => n.to_string(),
            Val::Unset => return self.fault(at, "a variable is read before it has a value"),
            other => format!("<{}>", other.ty()),
        })
    }

    // ---- names and calls

    pub fn get_index(&mut self, n: &Name, scope: &Rc<Scope>) -> R<usize> {
        let k = match n.args() {
            Some([TemplateArg::Value(e)]) => self.eval(e, scope)?.as_int(),
            _ => None,
        };
        match k.and_then(|k| usize::try_from(k).ok()) {
            Some(k) => Ok(k),
            None => self.unsupported(n.at, "this `std::get`"),
        }
    }

    /// What a name that is not called stands for.
    fn name(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Val> {
        if let Some(p) = n.plain()
            && let Some(var) = scope.find(p)
        {
            let v = var.cell.borrow().clone();
            if matches!(v, Val::Unset) {
                return self.fault(n.at, format!("`{p}` is read before it has a value"));
            }
            return Ok(v);
        }
        if let Some(k) = self.program.kernel(n.last()) {
            let args = self.kernel_args(k, n, scope)?;
            return Ok(Val::Kernel(crate::value::KernelName { kernel: k, args }));
        }
        if self.program.has_function(n.last()) && !n.within(&["std", "torch", "at", "c10"]) {
            let args = match n.args() {
                Some(list) => Some(self.meanings(list, scope)?),
                None => None,
            };
            return Ok(Val::Function(Arc::from(n.last()), args));
        }
        // Qualified names of the file's own namespaces.
        if n.parts.len() > 1
            && let Some(var) = scope.find(n.last())
            && !n.within(&["std", "torch", "at", "c10"])
        {
            return Ok(var.cell.borrow().clone());
        }
        self.library_name(n, scope)
    }

    /// Template arguments as what they mean.
    pub fn meanings(&mut self, list: &[TemplateArg], scope: &Rc<Scope>) -> R<Vec<Meaning>> {
        let mut out = Vec::new();
        for a in list {
            out.push(self.meaning(a, scope)?);
        }
        Ok(out)
    }

    pub fn meaning(&mut self, a: &TemplateArg, scope: &Rc<Scope>) -> R<Meaning> {
        let (at, e) = match a {
            TemplateArg::Type(t) => {
                // A single name may be a constant.
                if let crate::syntax::Base::Name(n) = &t.base
                    && t.suffixes.is_empty()
                    && n.plain().is_some_and(|p| scope.find(p).is_some())
                {
                    let e = Expr { at: t.at, node: Node::Name(n.clone()) };
                    return self.meaning(&TemplateArg::Value(e), scope);
                }
                return Ok(Meaning::Type(self.resolve(t, scope)?));
            }
            TemplateArg::Value(e) => (e.at, e),
        };
        match self.eval(e, scope)? {
            Val::Num(n) => Ok(Meaning::Number(n)),
            other => self.unsupported(at, format!("a template argument of type `{}`", other.ty())),
        }
    }

    fn call(&mut self, f: &Expr, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Val> {
        match &f.node {
            Node::Name(n) => {
                if let Some(p) = n.plain()
                    && let Some(var) = scope.find(p)
                {
                    let callee = var.cell.borrow().clone();
                    return self.call_value(&callee, args, scope, at);
                }
                if !n.within(&["std", "torch", "at", "c10"]) && self.program.has_function(n.last()) {
                    let targs = match n.args() {
                        Some(list) => Some(self.meanings(list, scope)?),
                        None => None,
                    };
                    return self.call_function(n.last(), targs, args, scope, at);
                }
                if let Some(v) = self.special_call(n, args, scope, at)? {
                    return Ok(v);
                }
                if let Some(t) = self.type_of_name(n, scope)? {
                    let values = self.eval_all(args, scope)?;
                    return self.construct(&t, values, false, at);
                }
                let values = self.eval_all(args, scope)?;
                self.library_function(n, values, scope, at)
            }
            Node::Member(object, part) => {
                // A method that changes a string, or an iterator of a list, needs no place: lists share their items.
                let v = self.eval(object, scope)?;
                if let Val::Record(_, fields) = &v
                    && let Some(callee) = field(fields, &part.ident)
                {
                    return self.call_value(&callee, args, scope, at);
                }
                if let (Val::Nothing, "value_or") = (&v, &*part.ident)
                    && let Some(e) = args.first()
                {
                    return self.eval(e, scope);
                }
                let meanings = match &part.args {
                    Some(list) => Some(self.meanings(list, scope)?),
                    None => None,
                };
                if let ("reset" | "emplace", Node::Name(n)) = (&*part.ident, &object.node)
                    && let Some(var) = n.plain().and_then(|p| scope.find(p))
                    && matches!(var.ty, Ty::Optional(_))
                {
                    let v = match args.first() {
                        Some(e) => self.eval(e, scope)?,
                        None => Val::Nothing,
                    };
                    self.set(&Place::Var(var), v, at)?;
                    return Ok(Val::Void);
                }
                let values = self.eval_all(args, scope)?;
                self.method(&v, &part.ident, meanings, values, scope, at)
            }
            _ => {
                let callee = self.eval(f, scope)?;
                self.call_value(&callee, args, scope, at)
            }
        }
    }

    fn call_value(&mut self, callee: &Val, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Val> {
        match callee {
            Val::Lambda(c) => {
                let c = Rc::clone(c);
                let lambda = Arc::clone(&c.lambda);
                let inner = match (&c.copies, c.outer.upgrade()) {
                    (Some(copies), _) if lambda.by_value => Scope::child(copies),
                    (_, Some(outer)) => Scope::child(&outer),
                    (Some(copies), None) => Scope::child(copies),
                    (None, None) => {
                        return self.fault(at, "a lambda is called after what it refers to is gone");
                    }
                };
                if let (Some(copies), false) = (&c.copies, lambda.by_value) {
                    for (n, v) in copies.vars.borrow().iter() {
                        inner.declare(n, v.clone());
                    }
                }
                self.bind_params(&lambda.params, args, scope, &inner, at, "a lambda")?;
                let source = std::mem::replace(&mut self.source, c.source);
                let flow = self.block(&lambda.body, &inner);
                self.source = source;
                let v = match flow? {
                    Flow::Return(v) => v,
                    _ => Val::Void,
                };
                match &lambda.returns {
                    Some(t) => {
                        let t = self.resolve(t, &inner)?;
                        self.convert(&v, &t, at)
                    }
                    None => Ok(v),
                }
            }
            Val::Function(name, targs) => {
                let name = name.clone();
                self.call_function(&name, targs.clone(), args, scope, at)
            }
            other => self.unsupported(at, format!("a call of a `{}`", other.ty())),
        }
    }

    fn bind_params(
        &mut self,
        params: &[Param],
        args: &[Expr],
        scope: &Rc<Scope>,
        inner: &Rc<Scope>,
        at: u32,
        what: &str,
    ) -> R<()> {
        if args.len() > params.len() {
            return self.rejected(at, format!("{what} takes {} arguments, not {}", params.len(), args.len()));
        }
        for (k, p) in params.iter().enumerate() {
            let ty = self.resolve(&p.ty, inner)?;
            let by_ref = p.ty.is_reference() && !p.ty.is_const;
            let var = match (args.get(k), &p.default) {
                (Some(e), _) if by_ref => match self.place(e, scope)? {
                    Place::Var(v) => Var { is_const: false, ..v },
                    other => {
                        let v = self.get(&other, at)?;
                        Var { cell: Rc::new(RefCell::new(v)), ty, is_const: false }
                    }
                },
                (Some(e), _) => {
                    let v = self.eval(e, scope)?;
                    let v = if p.ty.is_reference() { v } else { v.copied() };
                    let v = self.convert(&v, &ty, e.at)?;
                    Var {
                        cell: Rc::new(RefCell::new(v)),
                        ty,
                        is_const: p.ty.is_const && p.ty.suffixes.is_empty(),
                    }
                }
                (None, Some(d)) => {
                    let v = self.eval(d, inner)?;
                    let v = self.convert(&v, &ty, at)?;
                    Var { cell: Rc::new(RefCell::new(v)), ty, is_const: false }
                }
                (None, None) => {
                    return self.rejected(
                        at,
                        format!("{what} takes {} arguments, not {}", params.len(), args.len()),
                    );
                }
            };
            if let Val::Tensor(Some(t)) = &*var.cell.borrow() {
                self.gpu.name(&t.storage, t.dtype, &p.name);
            }
            inner.declare(&p.name, var);
        }
        Ok(())
    }

    /// Calls a function of the file.
    fn call_function(
        &mut self,
        name: &str,
        targs: Option<Vec<Meaning>>,
        args: &[Expr],
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Val> {
        let f = self.choose(name, args, scope, at)?;
        let root = Rc::clone(&self.globals.scope);
        let inner = Scope::child(&root);
        self.bind_template(&f, targs, args, scope, &inner, at)?;
        // Defaults may stand in a prototype.
        let mut params = f.params.clone();
        if args.len() < params.len()
            && let Some(proto) = self.program.prototype(name, params.len())
        {
            for (p, q) in params.iter_mut().zip(&proto.params) {
                if p.default.is_none() {
                    p.default.clone_from(&q.default);
                }
            }
        }
        self.bind_params(&params, args, scope, &inner, at, &format!("`{name}`"))?;
        self.run_body(&f, &inner, at)
    }

    /// The function of that name that these arguments fit.
    fn choose(&mut self, name: &str, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Arc<Function>> {
        let all = self.program.functions_named(name);
        let mut fitting: Vec<Arc<Function>> = Vec::new();
        let mut error = None;
        for f in all {
            match f {
                Ok(f) if f.body.is_none() => {}
                Ok(f) => {
                    let least = f.params.iter().filter(|p| p.default.is_none()).count();
                    let least =
                        if self.program.prototype(name, f.params.len()).is_some() { 0 } else { least };
                    if args.len() <= f.params.len() && args.len() >= least {
                        fitting.push(Arc::clone(f));
                    }
                }
                Err(e) => error = Some(e.clone()),
            }
        }
        if fitting.is_empty() {
            if let Some(e) = error {
                return Err(e);
            }
            if self.program.functions_named(name).any(|f| f.as_ref().is_ok_and(|f| f.body.is_some())) {
                return self.rejected(at, format!("no `{name}` takes {} arguments", args.len()));
            }
            return self.rejected(at, format!("`{name}` is declared but defined nowhere"));
        }
        if fitting.len() > 1 {
            fitting.retain(|f| f.params.len() == args.len());
            let values = self.eval_all(args, scope)?;
            let root = Rc::clone(&self.globals.scope);
            let mut best: Option<(usize, Arc<Function>)> = None;
            for f in &fitting {
                let mut exact = 0usize;
                let mut fits = true;
                for (p, v) in f.params.iter().zip(&values) {
                    let t = self.resolve(&p.ty, &root).unwrap_or(Ty::Auto);
                    if t == v.ty() {
                        exact += 1;
                    } else if self.convert(v, &t, at).is_err() {
                        fits = false;
                    }
                }
                if fits && best.as_ref().is_none_or(|(n, _)| exact > *n) {
                    best = Some((exact, Arc::clone(f)));
                }
            }
            return match best {
                Some((_, f)) => Ok(f),
                None => self.rejected(at, format!("no `{name}` takes these arguments")),
            };
        }
        fitting.pop().map_or_else(|| self.rejected(at, format!("no `{name}`")), Ok)
    }

    fn bind_template(
        &mut self,
        f: &Function,
        given: Option<Vec<Meaning>>,
        args: &[Expr],
        scope: &Rc<Scope>,
        inner: &Rc<Scope>,
        at: u32,
    ) -> R<()> {
        let Some(template) = f.template.as_deref() else { return Ok(()) };
        let given = given.unwrap_or_default();
        let mut deduced: Vec<(Arc<str>, Ty)> = Vec::new();
        if given.len() < template.len() {
            for (p, e) in f.params.iter().zip(args) {
                let v = self.eval(e, scope)?;
                deduce(&p.ty, &v, template, &mut deduced);
            }
        }
        for (k, p) in template.iter().enumerate() {
            let meaning = match (given.get(k), deduced.iter().find(|(n, _)| *n == p.name), &p.default) {
                (Some(m), ..) => m.clone(),
                (None, Some((_, t)), _) => Meaning::Type(t.clone()),
                (None, None, Some(d)) => self.meaning(&d.clone(), inner)?,
                (None, None, None) => {
                    return self
                        .unsupported(at, format!("`{}` without its template argument `{}`", f.name, p.name));
                }
            };
            self.declare_meaning(&p.name, &meaning, inner);
        }
        Ok(())
    }

    pub fn declare_meaning(&mut self, name: &Arc<str>, m: &Meaning, scope: &Rc<Scope>) {
        match m {
            Meaning::Type(t) => scope.declare_type(name, t.clone()),
            Meaning::Number(n) => {
                let cell = Rc::new(RefCell::new(Val::Num(n.clone())));
                scope.declare(name, Var { cell, ty: Ty::Auto, is_const: true });
            }
        }
    }

    fn run_body(&mut self, f: &Function, inner: &Rc<Scope>, at: u32) -> R<Val> {
        self.enter(at)?;
        let source = std::mem::replace(&mut self.source, f.source);
        let flow = match &f.body {
            Some(body) => self.block(body, inner),
            None => return self.rejected(at, format!("`{}` is declared but defined nowhere", f.name)),
        };
        let v = match flow {
            Ok(Flow::Return(v)) => {
                let ty = match &f.returns {
                    Some(t) => self.resolve(t, inner)?,
                    None => Ty::Auto,
                };
                if matches!(ty, Ty::Void) { Ok(Val::Void) } else { self.convert(&v, &ty, f.at) }
            }
            Ok(_) => {
                let void = match &f.returns {
                    Some(t) => matches!(self.resolve(t, inner)?, Ty::Void | Ty::Auto),
                    None => true,
                };
                if void {
                    Ok(Val::Void)
                } else {
                    self.fault(f.at, format!("`{}` ends without returning a value", f.name))
                }
            }
            Err(e) => Err(e),
        };
        self.source = source;
        self.depth -= 1;
        v
    }

    /// Calls an exported function with values.
    pub fn call_exported(&mut self, f: &Arc<Function>, values: Vec<Val>) -> R<Val> {
        let root = Rc::clone(&self.globals.scope);
        let inner = Scope::child(&root);
        self.source = f.source;
        for (p, v) in f.params.iter().zip(values) {
            let ty = self.resolve(&p.ty, &inner)?;
            let v = self.convert(&v, &ty, p.at)?;
            if let Val::Tensor(Some(t)) = &v {
                self.gpu.name(&t.storage, t.dtype, &p.name);
            }
            let is_const = p.ty.is_const && p.ty.suffixes.is_empty();
            inner.declare(&p.name, Var { cell: Rc::new(RefCell::new(v)), ty, is_const });
        }
        self.run_body(f, &inner, f.at)
    }

    /// Calls an exported lambda with values.
    pub fn call_lambda(&mut self, l: &Arc<Lambda>, source: usize, values: Vec<Val>) -> R<Val> {
        let root = Rc::clone(&self.globals.scope);
        let inner = Scope::child(&root);
        self.source = source;
        for (p, v) in l.params.iter().zip(values) {
            let ty = self.resolve(&p.ty, &inner)?;
            let v = self.convert(&v, &ty, p.at)?;
            if let Val::Tensor(Some(t)) = &v {
                self.gpu.name(&t.storage, t.dtype, &p.name);
            }
            inner.declare(&p.name, Var { cell: Rc::new(RefCell::new(v)), ty, is_const: false });
        }
        match self.block(&l.body, &inner)? {
            Flow::Return(v) => Ok(v),
            _ => Ok(Val::Void),
        }
    }
}

fn field(fields: &RefCell<BTreeMap<Arc<str>, Val>>, name: &str) -> Option<Val> {
    fields.borrow().get(name).cloned()
}

/// Template type parameters that a value's type tells: of `T`, `T*`, `const T*`.
pub(crate) fn deduce(ty: &Type, v: &Val, template: &[TemplateParam], out: &mut Vec<(Arc<str>, Ty)>) {
    let crate::syntax::Base::Name(n) = &ty.base else { return };
    let Some(name) = n.plain() else { return };
    let Some(p) = template.iter().find(|p| p.is_type && &*p.name == name) else { return };
    if out.iter().any(|(n, _)| *n == p.name) {
        return;
    }
    let stars = ty.suffixes.iter().filter(|s| **s == crate::syntax::Suffix::Pointer).count();
    let found = match (stars, v) {
        (0, Val::Unset | Val::Void) => return,
        (0, v) => v.ty(),
        (1, Val::Ptr(p)) => p.elem.clone(),
        _ => return,
    };
    out.push((p.name.clone(), found));
}
