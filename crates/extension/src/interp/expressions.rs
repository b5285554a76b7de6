//! Expressions: operators, casts, literals, lambdas.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use assay_host::arith::{self};
use assay_host::types::{Scalar, Value as Number};
use assay_host::{Op, Unary};

use crate::syntax::{Expr, Lambda, Node};
use crate::value::{Closure, Pointer, Scope, Target, Ty, Val, Var};

use super::{Interp, Place, R};

impl Interp<'_, '_> {
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

    pub(super) fn eval_inner(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<Val> {
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
    pub(super) fn static_scalar(&mut self, e: &Expr, scope: &Rc<Scope>) -> Option<Scalar> {
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

    pub(super) fn closure(&mut self, l: &Arc<Lambda>, scope: &Rc<Scope>) -> R<Closure> {
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

    pub(super) fn assign(
        &mut self,
        target: &Expr,
        op: Option<Op>,
        value: &Expr,
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Val> {
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

    pub(super) fn address(&mut self, inner: &Expr, scope: &Rc<Scope>) -> R<Val> {
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
}
