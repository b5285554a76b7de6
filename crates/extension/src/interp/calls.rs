//! What names mean, and calls of the file's own functions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::syntax::{Expr, Function, Lambda, Name, Node, Param, TemplateArg, TemplateParam, Type};
use crate::value::{Meaning, Scope, Ty, Val, Var};

use super::{Flow, Interp, Place, R};

impl Interp<'_, '_> {
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
    pub(super) fn name(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Val> {
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

    pub(super) fn call(&mut self, f: &Expr, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Val> {
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

    pub(super) fn call_value(&mut self, callee: &Val, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Val> {
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

    pub(super) fn bind_params(
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
    pub(super) fn call_function(
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
    pub(super) fn choose(
        &mut self,
        name: &str,
        args: &[Expr],
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Arc<Function>> {
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

    pub(super) fn bind_template(
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

    pub(super) fn run_body(&mut self, f: &Function, inner: &Rc<Scope>, at: u32) -> R<Val> {
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
