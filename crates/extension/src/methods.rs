//! Members and methods of values other than tensors.

use std::rc::Rc;

use assay_host::types::{Scalar, Value as Number};

use crate::functions::attribute;
use crate::interp::{Interp, R};
use crate::value::{Meaning, Pointer, Scope, Target, Ty, Val};

impl Interp<'_, '_> {
    /// A data member.
    pub fn member(&mut self, v: &Val, name: &str, at: u32) -> R<Val> {
        match (v, name) {
            (Val::Num(Number::Dim3(d)), "x" | "y" | "z") => {
                let k = match name {
                    "x" => 0,
                    "y" => 1,
                    _ => 2,
                };
                Ok(Val::Num(Number::Int(i128::from(d[k]), Scalar::U32)))
            }
            (Val::Tuple(items), "first" | "second") => {
                let k = usize::from(name == "second");
                match items.borrow().get(k) {
                    Some(v) => Ok(v.clone()),
                    None => self.rejected(at, format!("the member `{name}`")),
                }
            }
            (Val::Record(_, fields), _) => match fields.borrow().get(name) {
                Some(v) => Ok(v.clone()),
                None => self.rejected(at, format!("there is no member `{name}`")),
            },
            (Val::Ptr(p), _) => {
                let inner = self.read_pointer(&p.clone(), at)?;
                self.member(&inner, name, at)
            }
            (Val::Opaque(n), _) if &**n == "cudaDeviceProp" => match attribute(name) {
                Some(v) => Ok(Val::i32(i32::try_from(v).unwrap_or(i32::MAX))),
                None => self.unsupported(at, format!("the device property `{name}`")),
            },
            _ => self.unsupported(at, format!("the member `{name}` of a `{}`", v.ty())),
        }
    }

    /// A method call; the object is a value, lists and records are shared.
    pub fn method(
        &mut self,
        v: &Val,
        name: &str,
        targs: Option<Vec<Meaning>>,
        mut args: Vec<Val>,
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Val> {
        // `py::object::cast<T>()`.
        if let ("cast", Some([Meaning::Type(t)])) = (name, targs.as_deref()) {
            return self.convert(v, &t.clone(), at);
        }
        match v {
            Val::Tensor(_) => self.tensor_method(v, name, targs, args, scope, at),
            Val::List(items, ty) => {
                let len = items.borrow().len();
                let iterator = |k: usize| {
                    let size = ty.size_bytes().unwrap_or(8).max(1);
                    let offset = (k as u64).saturating_mul(size);
                    Val::Ptr(Pointer {
                        target: Target::Items(Rc::clone(items)),
                        offset: i64::try_from(offset).unwrap_or(i64::MAX),
                        elem: ty.clone(),
                        is_const: false,
                    })
                };
                Ok(match (name, args.len()) {
                    ("size" | "length", 0) => Val::Num(Number::Int(len as i128, Scalar::U64)),
                    ("empty", 0) => Val::bool(len == 0),
                    ("data" | "begin" | "cbegin", 0) => iterator(0),
                    ("end" | "cend", 0) => iterator(len),
                    ("vec", 0) => v.copied(),
                    ("clear", 0) => {
                        items.borrow_mut().clear();
                        Val::Void
                    }
                    ("reserve" | "shrink_to_fit", _) => Val::Void,
                    ("pop_back", 0) => {
                        items.borrow_mut().pop();
                        Val::Void
                    }
                    ("push_back" | "emplace_back", 1) => {
                        if len >= 1 << 24 {
                            return self.exhausted(at, "a list of that many elements");
                        }
                        let one = args.remove(0).copied();
                        let one = self.convert(&one, &ty.clone(), at)?;
                        items.borrow_mut().push(one);
                        Val::Void
                    }
                    ("resize" | "assign", 1 | 2) => {
                        let Some(n) =
                            args[0].as_int().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= 1 << 24)
                        else {
                            return self.exhausted(at, "a list of that many elements");
                        };
                        let fill = match args.get(1) {
                            Some(v) => self.convert(v, &ty.clone(), at)?,
                            None => match ty {
                                Ty::Scalar(s) => {
                                    Number::int(0).to_scalar(*s).map(Val::Num).unwrap_or(Val::Unset)
                                }
                                t => self.default_value(&t.clone(), at)?,
                            },
                        };
                        items.borrow_mut().resize(n, fill);
                        Val::Void
                    }
                    ("fill", 1) => {
                        let fill = self.convert(&args[0], &ty.clone(), at)?;
                        items.borrow_mut().fill(fill);
                        Val::Void
                    }
                    ("insert", 2) => {
                        let Val::Ptr(p) = &args[0] else { return self.unsupported(at, "this `insert`") };
                        let size = i64::try_from(ty.size_bytes().unwrap_or(8).max(1)).unwrap_or(8);
                        let k = usize::try_from(p.offset / size).unwrap_or(usize::MAX);
                        if k > len {
                            return self.fault(at, "an insertion beyond the end of a list");
                        }
                        let one = self.convert(&args[1], &ty.clone(), at)?;
                        items.borrow_mut().insert(k, one);
                        Val::Void
                    }
                    ("erase", 1 | 2) => {
                        let size = i64::try_from(ty.size_bytes().unwrap_or(8).max(1)).unwrap_or(8);
                        let place = |v: &Val| match v {
                            Val::Ptr(p) => usize::try_from(p.offset / size).ok().filter(|k| *k <= len),
                            _ => None,
                        };
                        let from = place(&args[0]);
                        let to = args.get(1).map_or(from.map(|k| k + 1), place);
                        match from.zip(to).filter(|(a, b)| a <= b && *b <= len) {
                            Some((a, b)) => {
                                items.borrow_mut().drain(a..b);
                                iterator(a)
                            }
                            None => return self.fault(at, "an element outside a list is erased"),
                        }
                    }
                    ("front" | "back", 0) => {
                        let k = if name == "front" { Some(0) } else { len.checked_sub(1) };
                        match k.and_then(|k| items.borrow().get(k).cloned()) {
                            Some(v) => v,
                            None => return self.fault(at, "an element of an empty list"),
                        }
                    }
                    ("at" | "get", 1) => {
                        let k = args[0].as_int().and_then(|k| usize::try_from(k).ok());
                        match k.and_then(|k| items.borrow().get(k).cloned()) {
                            Some(v) => v,
                            None => return self.raised(at, "vector::_M_range_check"),
                        }
                    }
                    ("slice", 1 | 2) => {
                        let from = args[0].as_int().and_then(|k| usize::try_from(k).ok()).unwrap_or(len);
                        let n = args.get(1).and_then(Val::as_int).and_then(|k| usize::try_from(k).ok());
                        let part: Vec<Val> =
                            items.borrow().iter().skip(from).take(n.unwrap_or(len)).cloned().collect();
                        Val::list(part, ty.clone())
                    }
                    // An optional that holds a list.
                    ("has_value", 0) => Val::bool(true),
                    ("value", 0) => v.clone(),
                    ("value_or", 1) => v.clone(),
                    _ => return self.unsupported(at, format!("`{name}` of a list")),
                })
            }
            Val::Options(o) => {
                let mut o = *o;
                match (name, args.first()) {
                    ("dtype", Some(Val::DType(d))) => o.dtype = Some(*d),
                    ("device", Some(Val::Device(d))) => o.device = Some(*d),
                    ("device", Some(Val::Str(s))) => o.device = Some(crate::convert::device_named(s)),
                    ("requires_grad" | "layout" | "memory_format" | "pinned_memory" | "device_index", _) => {}
                    ("dtype" | "scalar_type", None) => {
                        return Ok(Val::DType(o.dtype.unwrap_or(assay_tensor::DType::F32)));
                    }
                    ("device", None) => return Ok(Val::Device(o.device.unwrap_or(crate::Device::Cpu))),
                    _ => return self.unsupported(at, format!("`{name}` of tensor options")),
                }
                Ok(Val::Options(o))
            }
            Val::DType(d) => match name {
                "toScalarType" | "name" | "scalarType" => Ok(Val::DType(*d)),
                "itemsize" => Ok(Val::int(i64::try_from(d.size_bytes()).unwrap_or(8))),
                "is_cuda" => Ok(Val::bool(true)),
                _ => self.unsupported(at, format!("`{name}` of a dtype")),
            },
            Val::Device(d) => match name {
                "is_cuda" => Ok(Val::bool(*d == crate::Device::Cuda)),
                "is_cpu" => Ok(Val::bool(*d == crate::Device::Cpu)),
                "index" => Ok(Val::i32(0)),
                "type" => Ok(Val::Device(*d)),
                "has_index" => Ok(Val::bool(*d == crate::Device::Cuda)),
                "str" => Ok(Val::Str(if *d == crate::Device::Cuda { "cuda:0" } else { "cpu" }.into())),
                _ => self.unsupported(at, format!("`{name}` of a device")),
            },
            Val::Stream => match name {
                "stream" | "id" | "unwrap" => Ok(Val::Stream),
                "synchronize" => Ok(Val::Void),
                "device_index" => Ok(Val::i32(0)),
                _ => self.unsupported(at, format!("`{name}` of a stream")),
            },
            Val::Event => Ok(Val::Void),
            Val::Str(s) => match name {
                "c_str" | "data" | "str" | "what" => Ok(v.clone()),
                "size" | "length" => Ok(Val::Num(Number::Int(s.len() as i128, Scalar::U64))),
                "empty" => Ok(Val::bool(s.is_empty())),
                _ => self.unsupported(at, format!("`{name}` of a string")),
            },
            Val::Opaque(n) => match (&**n, name) {
                ("cudaDeviceProp", _) => self.member(v, name, at),
                (_, "str" | "what") => Ok(Val::Str("".into())),
                _ => Ok(Val::Void),
            },
            Val::Nothing => match name {
                "has_value" | "defined" => Ok(Val::bool(false)),
                "value_or" if args.len() == 1 => Ok(args.remove(0)),
                "value" => self.raised(at, "bad optional access"),
                _ => self.fault(at, format!("`{name}` of an empty optional")),
            },
            Val::Num(n) => match name {
                "has_value" => Ok(Val::bool(true)),
                "value" | "value_or" => Ok(v.clone()),
                // at::Scalar.
                "to" => match targs.as_deref() {
                    Some([Meaning::Type(t)]) => self.convert(v, &t.clone(), at),
                    _ => self.unsupported(at, "this `to`"),
                },
                "toDouble" | "toFloat" => self.convert(
                    v,
                    &Ty::Scalar(if name == "toFloat" { Scalar::F32 } else { Scalar::F64 }),
                    at,
                ),
                "toInt" => self.convert(v, &Ty::Scalar(Scalar::I32), at),
                "toLong" => self.convert(v, &Ty::Scalar(Scalar::I64), at),
                "toBool" => self.convert(v, &Ty::Scalar(Scalar::Bool), at),
                "isFloatingPoint" => Ok(Val::bool(n.scalar().is_some_and(Scalar::is_float))),
                "isIntegral" => Ok(Val::bool(n.scalar().is_some_and(|s| !s.is_float()))),
                _ => self.unsupported(at, format!("`{name}` of a `{}`", v.ty())),
            },
            Val::Accessor(t, _) => match (name, args.first().and_then(Val::as_int)) {
                ("size" | "stride", Some(d)) => {
                    let list = if name == "size" { &t.sizes } else { &t.strides };
                    match usize::try_from(d).ok().and_then(|d| list.get(d)) {
                        Some(n) => Ok(Val::int(i64::try_from(*n).unwrap_or(i64::MAX))),
                        None => self.fault(at, "a dimension that an accessor does not have"),
                    }
                }
                _ => self.unsupported(at, format!("`{name}` of an accessor")),
            },
            Val::Ptr(p) => {
                let inner = self.read_pointer(&p.clone(), at)?;
                self.method(&inner, name, targs, args, scope, at)
            }
            Val::Tuple(_) | Val::Record(..) | Val::Lambda(_) | Val::Function(..) | Val::Kernel(_) => {
                match name {
                    "has_value" => Ok(Val::bool(true)),
                    "value" => Ok(v.clone()),
                    _ => self.unsupported(at, format!("`{name}` of a `{}`", v.ty())),
                }
            }
            Val::Void | Val::Unset => self.fault(at, format!("`{name}` of a value that is not there")),
        }
    }
}
