//! Types as written to types; conversions, constructions and casts; reading and writing through pointers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use assay_host::Op;
use assay_host::types::{Elem, Scalar, Value as Number, scalar_named};
use assay_tensor::DType;
use half::{bf16, f16};

use crate::interp::{Interp, R};
use crate::syntax::{Base, Name, Node, Suffix, TemplateArg, Type};
use crate::tensor::{Contents, Device};
use crate::value::{Pointer, Scope, Target, TensorOptions, Ty, Val};

/// Reads one element.
pub(crate) fn decode(d: DType, b: &[u8]) -> Option<Number> {
    let int = |v: i128, s| Some(Number::Int(v, s));
    match d {
        DType::Bool => int(i128::from(*b.first()? != 0), Scalar::Bool),
        DType::I8 => int(i128::from(*b.first()? as i8), Scalar::I8),
        DType::U8 => int(i128::from(*b.first()?), Scalar::U8),
        DType::I16 => int(i128::from(i16::from_le_bytes(b.try_into().ok()?)), Scalar::I16),
        DType::U16 => int(i128::from(u16::from_le_bytes(b.try_into().ok()?)), Scalar::U16),
        DType::I32 => int(i128::from(i32::from_le_bytes(b.try_into().ok()?)), Scalar::I32),
        DType::U32 => int(i128::from(u32::from_le_bytes(b.try_into().ok()?)), Scalar::U32),
        DType::I64 => int(i128::from(i64::from_le_bytes(b.try_into().ok()?)), Scalar::I64),
        DType::U64 => int(i128::from(u64::from_le_bytes(b.try_into().ok()?)), Scalar::U64),
        DType::F16 => Some(Number::Float(f64::from(f16::from_le_bytes(b.try_into().ok()?)), Scalar::F32)),
        DType::BF16 => Some(Number::Float(f64::from(bf16::from_le_bytes(b.try_into().ok()?)), Scalar::F32)),
        DType::F32 => Some(Number::Float(f64::from(f32::from_le_bytes(b.try_into().ok()?)), Scalar::F32)),
        DType::F64 => Some(Number::Float(f64::from_le_bytes(b.try_into().ok()?), Scalar::F64)),
    }
}

/// One element's bytes.
pub(crate) fn encode(d: DType, n: &Number) -> Option<Vec<u8>> {
    let scalar = match d {
        DType::Bool => Scalar::Bool,
        DType::I8 => Scalar::I8,
        DType::U8 => Scalar::U8,
        DType::I16 => Scalar::I16,
        DType::U16 => Scalar::U16,
        DType::I32 => Scalar::I32,
        DType::U32 => Scalar::U32,
        DType::I64 => Scalar::I64,
        DType::U64 => Scalar::U64,
        DType::F32 => Scalar::F32,
        DType::F16 | DType::BF16 | DType::F64 => Scalar::F64,
    };
    Some(match (d, n.to_scalar(scalar)?) {
        (DType::F16, Number::Float(v, _)) => f16::from_f64(v).to_le_bytes().to_vec(),
        (DType::BF16, Number::Float(v, _)) => bf16::from_f64(v).to_le_bytes().to_vec(),
        (DType::F32, Number::Float(v, _)) => (v as f32).to_le_bytes().to_vec(),
        (DType::F64, Number::Float(v, _)) => v.to_le_bytes().to_vec(),
        (_, Number::Int(v, s)) => v.to_le_bytes()[..(s.bits() / 8) as usize].to_vec(),
        _ => return None,
    })
}

/// Namespaces whose names are taken by their last piece.
const LIBRARIES: [&str; 10] =
    ["py", "pybind11", "std", "torch", "at", "c10", "cuda", "cub", "thrust", "caffe2"];

impl Interp<'_, '_> {
    /// A type as written.
    pub fn resolve(&mut self, ty: &Type, scope: &Rc<Scope>) -> R<Ty> {
        let mut out = match &ty.base {
            Base::Auto => Ty::Auto,
            Base::Function => Ty::Function,
            Base::Decltype(e) => {
                // `decltype(x.scalar_type())` and the like: the type of what it gives.
                let e = (**e).clone();
                self.eval(&e, scope)?.ty()
            }
            Base::Name(n) => match self.type_of_name(n, scope)? {
                Some(t) => t,
                None => return self.unsupported(ty.at, format!("the type `{}`", n.path())),
            },
        };
        let mut pointee_const = ty.is_const;
        for s in &ty.suffixes {
            if *s == Suffix::Pointer {
                // `auto* p` takes the pointer's type from its initialiser.
                if !matches!(out, Ty::Auto) {
                    out = Ty::Ptr(Box::new(out), pointee_const);
                }
                pointee_const = false;
            }
        }
        if let (Ty::Ptr(e, _), true) = (&out, ty.is_const)
            && matches!(**e, Ty::Scalar(Scalar::I8))
        {
            // `const char*` is a text.
            return Ok(Ty::Str);
        }
        Ok(out)
    }

    fn type_args(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Vec<Ty>> {
        let mut out = Vec::new();
        for a in n.args().unwrap_or(&[]) {
            if let TemplateArg::Type(t) = a {
                out.push(self.resolve(t, scope)?);
            }
        }
        Ok(out)
    }

    /// The type that a name stands for, if it stands for one.
    pub fn type_of_name(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Option<Ty>> {
        if let Some(p) = n.plain()
            && let Some(t) = scope.find_type(p)
        {
            return Ok(Some(t));
        }
        let last = n.last();
        let library = n.parts.len() == 1
            || n.parts[..n.parts.len() - 1].iter().all(|p| {
                LIBRARIES.contains(&&*p.ident) || matches!(&*p.ident, "nn" | "indexing" | "detail" | "cuda")
            });
        if !library {
            return Ok(self.own_type(last));
        }
        if let Some(s) = scalar_named(last) {
            return Ok(Some(Ty::Scalar(s)));
        }
        let opaque = |n: &str| Some(Ty::Opaque(Arc::from(n)));
        let found = match last {
            "void" => Some(Ty::Void),
            "auto" => Some(Ty::Auto),
            "uint8" => Some(Ty::Scalar(Scalar::U8)),
            "Tensor" => Some(Ty::Tensor),
            "TensorOptions" => Some(Ty::Options),
            "dim3" => Some(Ty::Dim3),
            "ScalarType" | "Dtype" | "TypeMeta" => Some(Ty::DType),
            "Device" | "DeviceType" => Some(Ty::Device),
            "Scalar" => Some(Ty::Number),
            "string" | "string_view" | "c10::string_view" => Some(Ty::Str),
            "half" | "__half" => Some(Ty::Half(DType::F16, last.into())),
            "Half" => Some(Ty::Half(DType::F16, "c10::Half".into())),
            "__nv_bfloat16" | "nv_bfloat16" => Some(Ty::Half(DType::BF16, last.into())),
            "BFloat16" => Some(Ty::Half(DType::BF16, "c10::BFloat16".into())),
            "cudaStream_t" | "CUDAStream" | "cudaStream" => Some(Ty::Stream),
            "cudaEvent_t" | "CUDAEvent" => Some(Ty::Event),
            "cudaError_t" | "cudaError" => opaque("cudaError_t"),
            "vector" | "ArrayRef" | "SmallVector" | "initializer_list" | "List" | "span" => {
                let t = self.type_args(n, scope)?.into_iter().next().unwrap_or(Ty::Auto);
                Some(Ty::List(Box::new(t)))
            }
            "IntArrayRef" | "IntList" | "OptionalIntArrayRef" | "SymIntArrayRef" | "DimVector" => {
                Some(Ty::List(Box::new(Ty::Scalar(Scalar::I64))))
            }
            "TensorList" | "ITensorListRef" | "variable_list" | "tensor_list" => {
                Some(Ty::List(Box::new(Ty::Tensor)))
            }
            "array" if n.parts.len() > 1 || n.args().is_some() => {
                let t = self.type_args(n, scope)?.into_iter().next().unwrap_or(Ty::Auto);
                let len = match n.args() {
                    Some([_, TemplateArg::Value(e)]) => self.eval(&e.clone(), scope)?.as_int(),
                    Some([_, TemplateArg::Type(t)]) => match &t.base {
                        Base::Name(n) => {
                            let e = crate::syntax::Expr { at: t.at, node: Node::Name(n.clone()) };
                            self.eval(&e, scope)?.as_int()
                        }
                        _ => None,
                    },
                    _ => None,
                };
                match len.and_then(|n| u64::try_from(n).ok()) {
                    Some(len) => Some(Ty::Array(Box::new(t), len)),
                    None => return self.unsupported(n.at, "an array of that length"),
                }
            }
            "tuple" | "pair" if n.args().is_some() => Some(Ty::Tuple(self.type_args(n, scope)?)),
            "optional" if n.args().is_some() => {
                let t = self.type_args(n, scope)?.into_iter().next().unwrap_or(Ty::Auto);
                Some(Ty::Optional(Box::new(t)))
            }
            "function" if n.args().is_some() => Some(Ty::Function),
            "OptionalDeviceGuard"
            | "CUDAGuard"
            | "OptionalCUDAGuard"
            | "DeviceGuard"
            | "CUDAStreamGuard"
            | "NoGradGuard"
            | "AutoGradMode"
            | "InferenceMode"
            | "AutoDispatchBelowAutograd"
            | "AutoDispatchBelowADInplaceOrView"
            | "AutoNonVariableTypeMode"
            | "StreamGuard" => opaque(last),
            "RestrictPtrTraits" | "DefaultPtrTraits" | "cudaDeviceProp" | "cudaFuncAttributes"
            | "ostringstream" | "stringstream" | "cudaDeviceAttr" => opaque(last),
            "cublasHandle_t" | "cublasStatus_t" | "cublasOperation_t" => opaque(last),
            "tuple" | "list" | "sequence" | "args" if n.within(&["py", "pybind11"]) => {
                Some(Ty::List(Box::new(Ty::Auto)))
            }
            "object" | "handle" if n.within(&["py", "pybind11"]) => Some(Ty::Auto),
            "PackedTensorAccessor32" | "PackedTensorAccessor64" | "PackedTensorAccessor" => {
                self.accessor_type(n, scope)?
            }
            _ if Elem::named(last).size.is_some() => Some(Ty::Lanes(last.into())),
            _ => self.own_type(last),
        };
        Ok(found)
    }

    fn own_type(&self, last: &str) -> Option<Ty> {
        self.program.records.contains_key(last).then(|| Ty::Record(Arc::from(last)))
    }

    fn accessor_type(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Option<Ty>> {
        let args = n.args().unwrap_or(&[]).to_vec();
        let elem = match args.first() {
            Some(TemplateArg::Type(t)) => self.resolve(t, scope)?,
            _ => return Ok(None),
        };
        let dims = match args.get(1) {
            Some(a) => match self.meaning(a, scope)? {
                crate::value::Meaning::Number(v) => Val::Num(v).as_int().and_then(|v| u64::try_from(v).ok()),
                crate::value::Meaning::Type(_) => None,
            },
            None => None,
        };
        let narrow = match n.last() {
            "PackedTensorAccessor32" => true,
            "PackedTensorAccessor64" => false,
            _ => match args.get(3) {
                Some(TemplateArg::Type(t)) => self.resolve(t, scope)?.size_bytes() == Some(4),
                _ => false,
            },
        };
        Ok(dims.map(|d| Ty::Accessor(Box::new(elem), d, narrow, Arc::from(n.last()))))
    }

    /// The implicit conversions of C++ that host code needs.
    pub fn convert(&mut self, v: &Val, ty: &Ty, at: u32) -> R<Val> {
        if let Val::Unset = v {
            return match ty {
                Ty::Auto => Ok(Val::Unset),
                _ => self.fault(at, "a variable is read before it has a value"),
            };
        }
        let out = match (v, ty) {
            (_, Ty::Auto) => Some(v.clone()),
            (Val::Num(n), Ty::Scalar(s)) => n.to_scalar(*s).map(Val::Num),
            (Val::Ptr(_) | Val::Nothing, Ty::Scalar(Scalar::Bool)) => v.truth().map(Val::bool),
            (Val::Opaque(_), Ty::Scalar(_)) => Some(Val::i32(1)),
            (Val::Num(n), Ty::Half(d, _)) => encode(*d, n).and_then(|b| decode(*d, &b)).map(Val::Num),
            (Val::Num(_), Ty::Number) => Some(v.clone()),
            (Val::Tensor(_), Ty::Tensor) => Some(v.clone()),
            (Val::Nothing, Ty::Tensor) => Some(Val::Tensor(None)),
            (Val::Ptr(p), Ty::Ptr(to, to_const)) => {
                let null = matches!(p.target, Target::Null);
                let void = **to == Ty::Void;
                if !null && !void && p.elem != Ty::Void && !self.same_layout(&p.elem, to) {
                    return self
                        .rejected(at, format!("a value of type `{}` where `{ty}` is expected", v.ty()));
                }
                if p.is_const && !to_const && !null {
                    return self
                        .rejected(at, format!("a value of type `{}` where `{ty}` is expected", v.ty()));
                }
                Some(Val::Ptr(Pointer { elem: (**to).clone(), is_const: *to_const, ..p.clone() }))
            }
            (Val::Num(Number::Int(0, _)), Ty::Ptr(to, c)) => {
                Some(Val::Ptr(Pointer { is_const: *c, ..Pointer::null((**to).clone()) }))
            }
            (Val::List(items, _), Ty::Ptr(to, c)) => Some(Val::Ptr(Pointer {
                target: Target::Items(Rc::clone(items)),
                offset: 0,
                elem: (**to).clone(),
                is_const: *c,
            })),
            (Val::Function(..) | Val::Kernel(_) | Val::Opaque(_), Ty::Ptr(..)) => Some(v.clone()),
            (Val::List(items, have), Ty::List(want)) => {
                if have == &**want || matches!(**want, Ty::Auto) {
                    Some(v.clone())
                } else {
                    let items = items.borrow().clone();
                    let mut out = Vec::with_capacity(items.len());
                    for i in &items {
                        out.push(self.convert(i, want, at)?);
                    }
                    Some(Val::list(out, (**want).clone()))
                }
            }
            (Val::Tuple(items), Ty::List(want)) => {
                let items = items.borrow().clone();
                let mut out = Vec::with_capacity(items.len());
                for i in &items {
                    out.push(self.convert(i, want, at)?);
                }
                Some(Val::list(out, (**want).clone()))
            }
            (Val::Num(_) | Val::Tensor(_), Ty::List(want)) => {
                let one = self.convert(v, want, at)?;
                Some(Val::list(vec![one], (**want).clone()))
            }
            (Val::Nothing, Ty::List(_)) => Some(Val::Nothing),
            (Val::List(items, _), Ty::Array(want, n)) => {
                let mut items = items.borrow().clone();
                // `std::array<int, 3>{{1, 2, 3}}`.
                if let ([Val::List(inner, _)], true) = (items.as_slice(), *n != 1) {
                    let inner = inner.borrow().clone();
                    items = inner;
                }
                if items.len() as u64 > *n {
                    return self.rejected(at, format!("{} values for an array of {n}", items.len()));
                }
                let mut out = Vec::with_capacity(items.len());
                for i in &items {
                    out.push(self.convert(i, want, at)?);
                }
                while (out.len() as u64) < *n {
                    let zero = match &**want {
                        Ty::Scalar(s) => Number::int(0).to_scalar(*s).map(Val::Num).unwrap_or(Val::Unset),
                        t => self.default_value(&t.clone(), at)?,
                    };
                    out.push(zero);
                }
                Some(Val::list(out, (**want).clone()))
            }
            (Val::Tuple(items) | Val::List(items, _), Ty::Tuple(ts)) => {
                let items = items.borrow().clone();
                if items.len() != ts.len() {
                    return self.rejected(at, format!("{} values for a tuple of {}", items.len(), ts.len()));
                }
                let mut out = Vec::with_capacity(items.len());
                for (i, t) in items.iter().zip(ts) {
                    out.push(self.convert(i, t, at)?);
                }
                Some(Val::tuple(out))
            }
            (Val::Nothing, Ty::Optional(_)) => Some(Val::Nothing),
            (_, Ty::Optional(t)) => Some(self.convert(v, t, at)?),
            (Val::Str(_), Ty::Str) => Some(v.clone()),
            (Val::Ptr(p), Ty::Str) if matches!(p.target, Target::Null) => Some(Val::Str("".into())),
            (Val::Options(_), Ty::Options) => Some(v.clone()),
            (Val::DType(d), Ty::Options) => {
                Some(Val::Options(TensorOptions { dtype: Some(*d), device: None }))
            }
            (Val::Device(d), Ty::Options) => {
                Some(Val::Options(TensorOptions { dtype: None, device: Some(*d) }))
            }
            (Val::DType(_), Ty::DType) | (Val::Device(_), Ty::Device) => Some(v.clone()),
            (Val::Str(s), Ty::Device) => Some(Val::Device(device_named(s))),
            (Val::Num(Number::Dim3(_)), Ty::Dim3) => Some(v.clone()),
            (Val::Num(n), Ty::Dim3) => match n.to_scalar(Scalar::U32) {
                Some(Number::Int(x, _)) => {
                    Some(Val::Num(Number::Dim3([u32::try_from(x).unwrap_or(u32::MAX), 1, 1])))
                }
                _ => None,
            },
            (Val::List(items, _), Ty::Dim3) => {
                let items = items.borrow().clone();
                return self.construct(ty, items, true, at);
            }
            (Val::Stream, Ty::Stream) | (Val::Event, Ty::Event) => Some(v.clone()),
            (Val::Num(_) | Val::Ptr(_), Ty::Stream) => Some(Val::Stream),
            (_, Ty::Opaque(_)) => Some(v.clone()),
            (Val::Lambda(_) | Val::Function(..) | Val::Kernel(_), Ty::Function) => Some(v.clone()),
            (Val::Record(n, _), Ty::Record(m)) if n == m => Some(v.clone()),
            (Val::List(items, _), Ty::Record(_)) => {
                let items = items.borrow().clone();
                return self.construct(ty, items, true, at);
            }
            (Val::Accessor(..), Ty::Accessor(..)) => Some(v.clone()),
            (Val::Void, Ty::Void) => Some(Val::Void),
            (_, Ty::Void) => Some(Val::Void),
            // A tensor of one element is no scalar without `.item()`.
            _ => None,
        };
        match out {
            Some(v) => Ok(v),
            None => self.rejected(at, format!("a value of type `{}` where `{ty}` is expected", v.ty())),
        }
    }

    pub fn same_layout(&self, a: &Ty, b: &Ty) -> bool {
        if a == b {
            return true;
        }
        match (a, b) {
            (Ty::Half(x, _), Ty::Half(y, _)) => x == y,
            (Ty::Scalar(_), Ty::Scalar(_)) | (Ty::Lanes(_), Ty::Lanes(_)) => a.elem().same_layout(&b.elem()),
            (Ty::Ptr(x, _), Ty::Ptr(y, _)) => self.same_layout(x, y),
            _ => false,
        }
    }

    /// A cast in any of its spellings.
    pub fn cast(&mut self, v: Val, ty: &Ty, at: u32) -> R<Val> {
        match (&v, ty) {
            (_, Ty::Void) => Ok(Val::Void),
            (Val::Ptr(p), Ty::Ptr(to, c)) => {
                Ok(Val::Ptr(Pointer { elem: (**to).clone(), is_const: *c, ..p.clone() }))
            }
            (Val::Stream | Val::Event, Ty::Ptr(..)) => Ok(v),
            (Val::Ptr(p), Ty::Scalar(s)) if !s.is_float() && s.bits() == 64 => {
                // An address, for alignment checks: allocations are aligned, so the offset tells.
                let base = if matches!(p.target, Target::Null) { 0 } else { 1i128 << 40 };
                Ok(Val::Num(Number::Int(s.wrap(base + i128::from(p.offset)).0, *s)))
            }
            (Val::Str(_), Ty::Ptr(..)) => Ok(v),
            (Val::DType(d), Ty::Scalar(_)) => self.convert(&Val::int(*d as i64), ty, at),
            _ => self.convert(&v, ty, at),
        }
    }

    /// `T(…)` and `T{…}`.
    pub fn construct(&mut self, ty: &Ty, values: Vec<Val>, braces: bool, at: u32) -> R<Val> {
        match ty {
            Ty::Dim3 => {
                let mut d = [1u32; 3];
                if values.len() > 3 {
                    return self.rejected(at, "a `dim3` of more than three extents");
                }
                for (slot, v) in d.iter_mut().zip(&values) {
                    if let (Val::Num(Number::Dim3(copy)), 1) = (v, values.len()) {
                        return Ok(Val::Num(Number::Dim3(*copy)));
                    }
                    match self.convert(v, &Ty::Scalar(Scalar::U32), at)? {
                        Val::Num(Number::Int(x, _)) => *slot = u32::try_from(x).unwrap_or(u32::MAX),
                        _ => return self.rejected(at, "an extent that is no integer"),
                    }
                }
                Ok(Val::Num(Number::Dim3(d)))
            }
            Ty::List(elem) if !braces => match values.as_slice() {
                [] => Ok(Val::list(Vec::new(), (**elem).clone())),
                [Val::List(..) | Val::Tuple(_)] => self.convert(&values[0].copied(), ty, at),
                [Val::Ptr(a), Val::Ptr(b)] => {
                    let items = self.pointer_range(a, b, at)?;
                    self.convert(&Val::list(items, Ty::Auto), ty, at)
                }
                [Val::Num(_)] | [Val::Num(_), _] => {
                    let n = values[0].as_int().and_then(|n| usize::try_from(n).ok());
                    let Some(n) = n.filter(|n| *n <= 1 << 24) else {
                        return self.exhausted(at, "a list of that many elements");
                    };
                    let one = match values.get(1) {
                        Some(v) => self.convert(v, elem, at)?,
                        None => match &**elem {
                            Ty::Scalar(s) => Number::int(0).to_scalar(*s).map(Val::Num).unwrap_or(Val::Unset),
                            t => self.default_value(&t.clone(), at)?,
                        },
                    };
                    let items = (0..n).map(|_| one.copied()).collect();
                    Ok(Val::list(items, (**elem).clone()))
                }
                _ => self.unsupported(at, format!("this construction of `{ty}`")),
            },
            Ty::List(elem) => {
                // `std::vector<int>{other}` copies where the element would not be a list.
                if let ([Val::List(..)], false) = (values.as_slice(), matches!(**elem, Ty::List(_))) {
                    return self.convert(&values[0].copied(), ty, at);
                }
                self.convert(&Val::list(values, Ty::Auto), ty, at)
            }
            Ty::Array(..) => self.convert(&Val::list(values, Ty::Auto), ty, at),
            Ty::Tuple(_) if values.len() != 1 || !matches!(values[0], Val::Tuple(_)) => {
                self.convert(&Val::tuple(values), ty, at)
            }
            Ty::Options => {
                let mut o = TensorOptions::default();
                for v in &values {
                    match v {
                        Val::Options(p) => o = *p,
                        Val::DType(d) => o.dtype = Some(*d),
                        Val::Device(d) => o.device = Some(*d),
                        other => {
                            return self.unsupported(at, format!("options from a `{}`", other.ty()));
                        }
                    }
                }
                Ok(Val::Options(o))
            }
            Ty::Device => match values.first() {
                Some(Val::Device(d)) => Ok(Val::Device(*d)),
                Some(Val::Str(s)) => Ok(Val::Device(device_named(s))),
                _ => self.unsupported(at, "this device"),
            },
            Ty::Record(name) => {
                let blank = self.default_value(ty, at)?;
                let Some(record) = self.program.records.get(&**name).cloned() else {
                    return self.unsupported(at, format!("the record `{name}`"));
                };
                if let [Val::Record(..)] = values.as_slice() {
                    return Ok(values[0].copied());
                }
                if values.len() > record.fields.len() {
                    return self.rejected(at, format!("{} values for `{name}`", values.len()));
                }
                let root = Rc::clone(&self.globals.scope);
                if let Val::Record(_, fields) = &blank {
                    for (f, v) in record.fields.iter().zip(&values) {
                        let t = self.resolve(&f.ty, &root)?;
                        let v = self.convert(v, &t, at)?;
                        fields.borrow_mut().insert(f.name.clone(), v);
                    }
                }
                Ok(blank)
            }
            Ty::Str if values.is_empty() => Ok(Val::Str("".into())),
            Ty::Opaque(_) | Ty::Event => Ok(match ty {
                Ty::Opaque(n) => Val::Opaque(n.clone()),
                _ => Val::Event,
            }),
            Ty::Lanes(_) => self.unsupported(at, format!("a value of type `{ty}`")),
            _ => match values.as_slice() {
                [] => match ty {
                    Ty::Scalar(s) => Ok(Number::int(0).to_scalar(*s).map(Val::Num).unwrap_or(Val::Unset)),
                    _ => self.default_value(ty, at),
                },
                [one] => self.cast(one.clone(), ty, at),
                _ => self.rejected(at, format!("`{ty}` from {} values", values.len())),
            },
        }
    }

    // ---- pointers

    fn pointer_size(&self, p: &Pointer, at: u32) -> R<i64> {
        match p.elem.size_bytes().and_then(|s| i64::try_from(s).ok()) {
            Some(s) if s > 0 => Ok(s),
            _ => match p.target {
                // Elements without a size of their own (tensors in a list) are counted by eight.
                Target::Items(_) => Ok(8),
                _ => self.rejected(at, format!("arithmetic on a pointer to `{}`", p.elem)),
            },
        }
    }

    pub fn pointer_add(&mut self, p: &Pointer, n: &Val, minus: bool, at: u32) -> R<Pointer> {
        let size = self.pointer_size(p, at)?;
        let Some(n) = n.as_int() else {
            return self.rejected(at, format!("a pointer plus a `{}`", n.ty()));
        };
        let n = if minus { n.checked_neg() } else { Some(n) };
        match n.and_then(|n| n.checked_mul(size)).and_then(|d| d.checked_add(p.offset)) {
            Some(offset) => Ok(Pointer { offset, ..p.clone() }),
            None => self.fault(at, "a pointer moved out of the address space"),
        }
    }

    pub fn pointer_operator(&mut self, op: Op, a: &Val, b: &Val, at: u32) -> R<Val> {
        match (op, a, b) {
            (Op::Add, Val::Ptr(p), n @ Val::Num(_)) | (Op::Add, n @ Val::Num(_), Val::Ptr(p)) => {
                Ok(Val::Ptr(self.pointer_add(p, n, false, at)?))
            }
            (Op::Sub, Val::Ptr(p), n @ Val::Num(_)) => Ok(Val::Ptr(self.pointer_add(p, n, true, at)?)),
            (Op::Sub, Val::Ptr(p), Val::Ptr(q)) => {
                if !p.same_target(q) {
                    return self.fault(at, "the difference of pointers into two allocations");
                }
                let size = self.pointer_size(p, at)?;
                Ok(Val::int((p.offset - q.offset) / size))
            }
            (Op::Eq | Op::Ne, _, _) => {
                let same = match (a, b) {
                    (Val::Ptr(p), Val::Ptr(q)) => p.same_target(q) && p.offset == q.offset,
                    (Val::Ptr(p), _) | (_, Val::Ptr(p)) => matches!(p.target, Target::Null),
                    _ => false,
                };
                Ok(Val::bool(same == (op == Op::Eq)))
            }
            (Op::Lt | Op::Gt | Op::Le | Op::Ge, Val::Ptr(p), Val::Ptr(q)) if p.same_target(q) => {
                Ok(Val::bool(match op {
                    Op::Lt => p.offset < q.offset,
                    Op::Gt => p.offset > q.offset,
                    Op::Le => p.offset <= q.offset,
                    _ => p.offset >= q.offset,
                }))
            }
            _ => self.unsupported(at, format!("an operator on a `{}` and a `{}`", a.ty(), b.ty())),
        }
    }

    pub fn pointer_range(&mut self, a: &Pointer, b: &Pointer, at: u32) -> R<Vec<Val>> {
        if !a.same_target(b) {
            return self.fault(at, "a range of pointers into two allocations");
        }
        let size = self.pointer_size(a, at)?;
        let n = (b.offset - a.offset) / size;
        let mut out = Vec::new();
        for k in 0..n.clamp(0, 1 << 20) {
            let p = self.pointer_add(a, &Val::int(k), false, at)?;
            out.push(self.read_pointer(&p, at)?);
        }
        Ok(out)
    }

    pub fn read_pointer(&mut self, p: &Pointer, at: u32) -> R<Val> {
        match &p.target {
            Target::Null => self.fault(at, "host code reads through a null pointer"),
            Target::Cell(c) if p.offset == 0 => Ok(c.borrow().clone()),
            Target::Cell(_) => self.fault(at, "host code reads beyond a variable"),
            Target::Items(items) => {
                let size = self.pointer_size(p, at)?;
                let k = usize::try_from(p.offset / size).ok();
                let found = k.and_then(|k| items.borrow().get(k).cloned());
                match found {
                    Some(v) => Ok(v),
                    None => self.fault(at, "host code reads outside a list"),
                }
            }
            Target::Storage(_, Device::Cuda) | Target::Symbol(_) => {
                self.fault(at, "host code reads device memory")
            }
            Target::Storage(s, Device::Cpu) => {
                let Some(d) = p.elem.dtype().filter(|_| !matches!(p.elem, Ty::Lanes(_))) else {
                    return self.unsupported(at, format!("reading a `{}` on the host", p.elem));
                };
                let size = d.size_bytes() as usize;
                let value = usize::try_from(p.offset).ok().and_then(|from| {
                    s.read(|b| b.get(from..from.checked_add(size)?).and_then(|b| decode(d, b)))
                });
                match value {
                    Some(v) => Ok(Val::Num(v)),
                    None => self.fault(at, "host code reads outside an allocation"),
                }
            }
        }
    }

    pub fn write_pointer(&mut self, p: &Pointer, v: Val, at: u32) -> R<()> {
        match &p.target {
            Target::Null => self.fault(at, "host code writes through a null pointer"),
            Target::Cell(c) if p.offset == 0 => {
                let v = match &p.elem {
                    Ty::Auto | Ty::Void => v,
                    t => self.convert(&v, &t.clone(), at)?,
                };
                *c.borrow_mut() = v;
                Ok(())
            }
            Target::Cell(_) => self.fault(at, "host code writes beyond a variable"),
            Target::Items(items) => {
                let size = self.pointer_size(p, at)?;
                let v = self.convert(&v, &p.elem.clone(), at)?;
                let k = usize::try_from(p.offset / size).unwrap_or(usize::MAX);
                if let Some(slot) = items.borrow_mut().get_mut(k) {
                    *slot = v;
                    return Ok(());
                }
                self.fault(at, "host code writes outside a list")
            }
            Target::Storage(_, Device::Cuda) | Target::Symbol(_) => {
                self.fault(at, "host code writes device memory")
            }
            Target::Storage(s, Device::Cpu) => {
                let d = p.elem.dtype().filter(|_| !matches!(p.elem, Ty::Lanes(_)));
                let bytes = match (&v, d) {
                    (Val::Num(n), Some(d)) => encode(d, n),
                    _ => None,
                };
                let Some(bytes) = bytes else {
                    return self.unsupported(at, format!("writing a `{}` on the host", p.elem));
                };
                let contents =
                    if s.contents() == Contents::Written { Contents::Written } else { Contents::Partial };
                let done = usize::try_from(p.offset).ok().and_then(|from| {
                    s.write(contents, |b| {
                        let slot = b.get_mut(from..from.checked_add(bytes.len())?)?;
                        slot.copy_from_slice(&bytes);
                        Some(())
                    })
                });
                match done {
                    Some(()) => Ok(()),
                    None => self.fault(at, "host code writes outside an allocation"),
                }
            }
        }
    }

    /// A value in a variable of its own.
    pub fn cell(v: Val) -> crate::value::Cell {
        Rc::new(RefCell::new(v))
    }
}

/// `cuda`, `cuda:0`, `cpu`.
pub(crate) fn device_named(name: &str) -> Device {
    if name.starts_with("cuda") { Device::Cuda } else { Device::Cpu }
}
