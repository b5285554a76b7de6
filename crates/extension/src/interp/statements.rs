//! Statements and declarations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use assay_host::types::Value as Number;

use crate::error::ExtensionError;
use crate::syntax::{Declarator, Expr, Init, Node, Stmt, Type};
use crate::value::{Cell, Pointer, Scope, Target, Ty, Val, Var};

use super::{Flow, Interp, MAX_DEPTH, Place, R};

impl Interp<'_, '_> {
    pub fn block(&mut self, body: &[Stmt], scope: &Rc<Scope>) -> R<Flow> {
        for s in body {
            match self.exec(s, scope)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn scoped(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
        let inner = Scope::child(scope);
        match s {
            Stmt::Block(body) => self.block(body, &inner),
            other => self.exec(other, &inner),
        }
    }

    pub(super) fn exec(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.exhausted(0, "host code nests too deep");
        }
        let flow = self.exec_inner(s, scope);
        self.depth -= 1;
        flow
    }

    pub(super) fn exec_inner(&mut self, s: &Stmt, scope: &Rc<Scope>) -> R<Flow> {
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

    pub(super) fn bind_names(&mut self, names: &[Arc<str>], v: &Val, scope: &Rc<Scope>, at: u32) -> R<()> {
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

    pub(super) fn for_each(
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

    pub(super) fn declare_fresh(&mut self, d: &Declarator, scope: &Rc<Scope>) -> R<()> {
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
}
