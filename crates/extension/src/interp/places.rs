//! Where values are kept: variables, items, fields, memory.

use std::rc::Rc;
use std::sync::Arc;

use assay_host::types::{Scalar, Value as Number};

use crate::syntax::{Expr, Node};
use crate::value::{Scope, Ty, Val};

use super::{Interp, Place, R};

impl Interp<'_, '_> {
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
}
