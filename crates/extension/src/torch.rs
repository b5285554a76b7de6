//! Tensors: metadata, allocation and copies here; everything that computes is asked of the library.

use std::rc::Rc;

use assay_host::Op;
use assay_host::types::{Scalar, Value as Number};
use assay_simt::Fill;
use assay_tensor::DType;
use half::{bf16, f16};

use crate::convert::{decode, encode};
use crate::interp::{Interp, R};
use crate::syntax::Name;
use crate::tensor::{Contents, Device, Storage, Tensor, contiguous_strides};
use crate::value::{Meaning, Pointer, Scope, Target, TensorOptions, Ty, Val, dtype_name};
use crate::{ExtensionError, Value};

/// What a new tensor holds.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Fresh,
    Number(f64),
}

/// A generator of the bytes of fresh memory.
fn noise(bytes: &mut [u8], dtype: DType, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut real = move || (next() >> 40) as f64 / (1u64 << 23) as f64 - 1.0;
    match dtype {
        DType::F32 => {
            bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&(real() as f32).to_le_bytes()))
        }
        DType::F64 => bytes.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&real().to_le_bytes())),
        DType::F16 => {
            bytes.chunks_exact_mut(2).for_each(|c| c.copy_from_slice(&f16::from_f64(real()).to_le_bytes()));
        }
        DType::BF16 => {
            bytes.chunks_exact_mut(2).for_each(|c| c.copy_from_slice(&bf16::from_f64(real()).to_le_bytes()));
        }
        // Integers between -1 and 1.
        DType::Bool | DType::I8 | DType::U8 => {
            bytes.iter_mut().for_each(|b| *b = u8::from(real() > 0.0));
        }
        DType::I16 | DType::U16 => {
            bytes.chunks_exact_mut(2).for_each(|c| c.copy_from_slice(&u16::from(real() > 0.0).to_le_bytes()));
        }
        DType::I32 | DType::U32 => {
            bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&u32::from(real() > 0.0).to_le_bytes()));
        }
        DType::I64 | DType::U64 => {
            bytes.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&u64::from(real() > 0.0).to_le_bytes()));
        }
    }
}

/// A dimension from -n..n.
fn wrap_dim(d: i64, n: usize) -> Option<usize> {
    let n = i64::try_from(n).ok()?.max(1);
    let k = if d < 0 { d + n } else { d };
    (0..n).contains(&k).then(|| usize::try_from(k).unwrap_or(0))
}

impl Interp<'_, '_> {
    /// Fresh memory, its contents as the run wants them.
    pub fn allocate(&mut self, bytes: u64, dtype: Option<DType>, at: u32) -> R<Storage> {
        self.allocated = self.allocated.saturating_add(bytes);
        self.allocations += 1;
        if self.allocated > self.run.memory_bytes {
            return self.exhausted(
                at,
                format!("{} bytes of memory, the limit is {}", self.allocated, self.run.memory_bytes),
            );
        }
        let Ok(len) = usize::try_from(bytes) else { return self.exhausted(at, "memory of that size") };
        if let Some(stale) = self.run.stale.iter().find(|s| s.len() == len) {
            return Ok(Storage::with(stale.clone(), Contents::Fresh));
        }
        let mut data = Vec::new();
        if data.try_reserve_exact(len).is_err() {
            return self.exhausted(at, format!("{bytes} bytes of memory"));
        }
        data.resize(len, 0u8);
        match self.run.fill {
            Fill::Noise | Fill::Previous => {
                let seed = self.run.seed.wrapping_add(self.allocations.wrapping_mul(0x51_7c_c1_b7));
                noise(&mut data, dtype.unwrap_or(DType::F32), seed);
            }
            Fill::Zeros => {}
            Fill::Nan => data.fill(0xff),
        }
        Ok(Storage::with(data, Contents::Fresh))
    }

    fn new_tensor(&mut self, sizes: Vec<u64>, o: TensorOptions, content: Content, at: u32) -> R<Val> {
        let dtype = o.dtype.unwrap_or(DType::F32);
        let n = sizes.iter().try_fold(1u64, |n, s| n.checked_mul(*s));
        let Some(bytes) = n.and_then(|n| n.checked_mul(dtype.size_bytes())) else {
            return self.exhausted(at, "a tensor of that size");
        };
        let storage = match content {
            Content::Fresh => self.allocate(bytes, Some(dtype), at)?,
            Content::Number(v) => {
                let fill = std::mem::replace(&mut self.run.fill, Fill::Zeros);
                let stale = std::mem::take(&mut self.run.stale);
                let s = self.allocate(bytes, Some(dtype), at);
                self.run.fill = fill;
                self.run.stale = stale;
                let s = s?;
                let one = encode(dtype, &Number::Float(v, Scalar::F64));
                let zero = v == 0.0 && v.is_sign_positive();
                s.write(Contents::Written, |b| {
                    if let (Some(one), false) = (&one, zero) {
                        b.chunks_exact_mut(one.len()).for_each(|c| c.copy_from_slice(one));
                    }
                });
                s
            }
        };
        let strides = contiguous_strides(&sizes);
        let device = o.device.unwrap_or(Device::Cpu);
        Ok(Val::Tensor(Some(Tensor { storage, dtype, sizes, strides, offset: 0, device })))
    }

    fn sizes_of(&mut self, v: &Val, at: u32) -> R<Vec<u64>> {
        let items: Vec<Val> = match v {
            Val::List(items, _) | Val::Tuple(items) => items.borrow().clone(),
            Val::Num(_) => vec![v.clone()],
            other => return self.unsupported(at, format!("sizes from a `{}`", other.ty())),
        };
        let mut out = Vec::with_capacity(items.len());
        for i in &items {
            match i.as_int() {
                Some(n) if n >= 0 => out.push(n as u64),
                Some(n) => {
                    return self.raised(at, format!("Trying to create tensor with negative dimension {n}"));
                }
                None => return self.unsupported(at, format!("a size of type `{}`", i.ty())),
            }
        }
        Ok(out)
    }

    fn ints_of(&mut self, v: &Val, at: u32) -> R<Vec<i64>> {
        let items: Vec<Val> = match v {
            Val::List(items, _) | Val::Tuple(items) => items.borrow().clone(),
            other => vec![other.clone()],
        };
        let mut out = Vec::with_capacity(items.len());
        for i in &items {
            match i.as_int() {
                Some(n) => out.push(n),
                None => return self.unsupported(at, format!("an integer from a `{}`", i.ty())),
            }
        }
        Ok(out)
    }

    pub fn tensor(&mut self, v: &Val, at: u32) -> R<Tensor> {
        match v {
            Val::Tensor(Some(t)) => Ok(t.clone()),
            Val::Tensor(None) => self.fault(at, "an undefined tensor is used"),
            other => self.unsupported(at, format!("a tensor from a `{}`", other.ty())),
        }
    }

    fn number(&mut self, v: &Val, at: u32) -> R<f64> {
        match v {
            Val::Num(n) => match n.to_scalar(Scalar::F64) {
                Some(Number::Float(v, _)) => Ok(v),
                _ => self.rejected(at, "a number"),
            },
            Val::Tensor(Some(t)) => {
                let item = self.item(&t.clone(), at)?;
                self.number(&item, at)
            }
            other => self.unsupported(at, format!("a number from a `{}`", other.ty())),
        }
    }

    /// A function of `torch::` or `at::`.
    pub fn torch_function(&mut self, n: &Name, args: Vec<Val>, at: u32) -> R<Val> {
        let name = n.last();
        match name {
            "empty" | "zeros" | "ones" | "full" => {
                let (o, rest) = Self::split_options(args);
                let Some(first) = rest.first() else {
                    return self.rejected(at, format!("`{name}` without sizes"));
                };
                let sizes = self.sizes_of(first, at)?;
                let content = match name {
                    "empty" => Content::Fresh,
                    "zeros" => Content::Number(0.0),
                    "ones" => Content::Number(1.0),
                    _ => match rest.get(1) {
                        Some(v) => Content::Number(self.number(&v.clone(), at)?),
                        None => return self.rejected(at, "`full` without a value"),
                    },
                };
                let o = match (name, rest.get(1), o.dtype) {
                    ("full", Some(Val::Num(Number::Int(_, s))), None) => {
                        let d = if *s == Scalar::Bool { DType::Bool } else { DType::I64 };
                        TensorOptions { dtype: Some(d), ..o }
                    }
                    _ => o,
                };
                self.new_tensor(sizes, o, content, at)
            }
            "empty_like" | "zeros_like" | "ones_like" | "full_like" => {
                let (o, rest) = Self::split_options(args);
                let Some(first) = rest.first() else {
                    return self.rejected(at, format!("`{name}` without a tensor"));
                };
                let t = self.tensor(first, at)?;
                let o =
                    TensorOptions { dtype: o.dtype.or(Some(t.dtype)), device: o.device.or(Some(t.device)) };
                let content = match name {
                    "empty_like" => Content::Fresh,
                    "zeros_like" => Content::Number(0.0),
                    "ones_like" => Content::Number(1.0),
                    _ => match rest.get(1) {
                        Some(v) => Content::Number(self.number(&v.clone(), at)?),
                        None => return self.rejected(at, "`full_like` without a value"),
                    },
                };
                let out = self.new_tensor(t.sizes.clone(), o, content, at)?;
                // Dense tensors keep their order of dimensions (`preserve_format`).
                match out {
                    Val::Tensor(Some(mut out)) => {
                        if let Some(strides) = dense_strides(&t) {
                            out.strides = strides;
                        }
                        Ok(Val::Tensor(Some(out)))
                    }
                    other => Ok(other),
                }
            }
            "dtype" | "device" | "TensorOptions" => self.construct(&Ty::Options, args, false, at),
            "Device" => self.construct(&Ty::Device, args, false, at),
            "scalar_tensor" | "tensor" => {
                let (o, rest) = Self::split_options(args);
                let Some(first) = rest.first() else {
                    return self.rejected(at, "`tensor` without values");
                };
                let (items, sizes) = match first {
                    Val::List(items, _) => {
                        let items = items.borrow().clone();
                        let n = items.len() as u64;
                        (items, vec![n])
                    }
                    other => (vec![other.clone()], Vec::new()),
                };
                let mut dtype = o.dtype;
                let mut numbers = Vec::new();
                for i in &items {
                    let Val::Num(n) = i else { return self.unsupported(at, "this tensor of values") };
                    let d = match n.scalar() {
                        Some(Scalar::Bool) => DType::Bool,
                        Some(s) if s.is_float() => DType::F32,
                        _ => DType::I64,
                    };
                    dtype.get_or_insert(d);
                    numbers.push(n.clone());
                }
                let d = dtype.unwrap_or(DType::F32);
                let mut bytes = Vec::new();
                for n in &numbers {
                    bytes.extend(encode(d, n).unwrap_or_default());
                }
                match Tensor::from_bytes(d, &sizes, o.device.unwrap_or(Device::Cpu), bytes) {
                    Some(t) => Ok(Val::Tensor(Some(t))),
                    None => self.unsupported(at, "this tensor of values"),
                }
            }
            "from_blob" => {
                let (o, rest) = Self::split_options(args);
                let [Val::Ptr(p), sizes, ..] = rest.as_slice() else {
                    return self.unsupported(at, "this `from_blob`");
                };
                let sizes = self.sizes_of(&sizes.clone(), at)?;
                let Target::Storage(storage, device) = &p.target else {
                    return self.unsupported(at, "`from_blob` of what is no allocation");
                };
                let dtype = o.dtype.unwrap_or(DType::F32);
                let strides = contiguous_strides(&sizes);
                let offset = u64::try_from(p.offset).unwrap_or(0) / dtype.size_bytes();
                Ok(Val::Tensor(Some(Tensor {
                    storage: storage.clone(),
                    dtype,
                    sizes,
                    strides,
                    offset,
                    device: o.device.unwrap_or(*device),
                })))
            }
            "is_grad_enabled" | "isnan_any" => Ok(Val::bool(false)),
            "manual_seed" => Ok(Val::Void),
            _ => {
                // `torch::transpose(x, 0, 1)` is `x.transpose(0, 1)`.
                if METADATA.contains(&name) && matches!(args.first(), Some(Val::Tensor(_))) {
                    let mut args = args;
                    let t = args.remove(0);
                    let scope = Rc::clone(&self.globals.scope);
                    return self.tensor_method(&t, name, None, args, &scope, at);
                }
                self.library_call(name, args, at)
            }
        }
    }

    /// A method of a tensor.
    pub fn tensor_method(
        &mut self,
        v: &Val,
        name: &str,
        targs: Option<Vec<Meaning>>,
        args: Vec<Val>,
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Val> {
        let _ = scope;
        let Val::Tensor(Some(t)) = v else {
            return match name {
                "defined" | "has_value" => Ok(Val::bool(false)),
                "value_or" => Ok(args.into_iter().next().unwrap_or(Val::Nothing)),
                "numel" => Ok(Val::int(0)),
                _ => self.fault(at, format!("`{name}` of an undefined tensor")),
            };
        };
        let n = t.sizes.len();
        let int = |v: u64| Val::int(i64::try_from(v).unwrap_or(i64::MAX));
        let view = |sizes: Vec<u64>, strides: Vec<u64>, offset: u64| {
            Val::Tensor(Some(Tensor { sizes, strides, offset, ..t.clone() }))
        };
        let arg_int = |k: usize| args.get(k).and_then(Val::as_int);
        Ok(match (name, args.len()) {
            ("size" | "stride" | "sym_size", 1) => {
                let Some(d) = arg_int(0) else { return self.rejected(at, "a dimension that is no integer") };
                let list = if name == "stride" { &t.strides } else { &t.sizes };
                match wrap_dim(d, n).filter(|_| n > 0) {
                    Some(k) => int(list[k]),
                    None => {
                        let m = i64::try_from(n).unwrap_or(0);
                        return self.raised(
                            at,
                            format!(
                                "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
                                -m.max(1),
                                m.max(1) - 1
                            ),
                        );
                    }
                }
            }
            ("sizes" | "sym_sizes", 0) => Val::ints(t.sizes.iter().copied()),
            ("strides", 0) => Val::ints(t.strides.iter().copied()),
            ("dim" | "ndimension", 0) => int(n as u64),
            ("numel", 0) => int(t.numel()),
            ("element_size" | "itemsize", 0) => int(t.dtype.size_bytes()),
            ("nbytes", 0) => int(t.numel().saturating_mul(t.dtype.size_bytes())),
            ("storage_offset", 0) => int(t.offset),
            ("options", 0) => Val::Options(TensorOptions { dtype: Some(t.dtype), device: Some(t.device) }),
            ("dtype" | "scalar_type" | "type", 0) => Val::DType(t.dtype),
            ("device", 0) => Val::Device(t.device),
            ("get_device", 0) => Val::i32(if t.device == Device::Cuda { 0 } else { -1 }),
            ("is_cuda", 0) => Val::bool(t.device == Device::Cuda),
            ("is_cpu", 0) => Val::bool(t.device == Device::Cpu),
            ("is_contiguous", _) => Val::bool(t.is_contiguous()),
            ("is_floating_point", 0) => Val::bool(t.dtype.is_float()),
            ("is_sparse" | "requires_grad" | "is_complex" | "is_quantized" | "is_mkldnn", 0) => {
                Val::bool(false)
            }
            ("defined" | "has_value", 0) => Val::bool(true),
            ("value" | "value_or" | "detach" | "alias" | "unsafeGetTensorImpl" | "variable_data", _) => {
                v.clone()
            }
            ("is_same", 1) => {
                let other = self.tensor(&args[0], at)?;
                Val::bool(
                    other.storage.same(&t.storage) && other.offset == t.offset && other.sizes == t.sizes,
                )
            }
            ("set_requires_grad" | "requires_grad_" | "retain_grad", _) => v.clone(),
            ("data_ptr" | "mutable_data_ptr" | "const_data_ptr" | "data", _) => {
                if name == "data" && targs.is_none() {
                    return Ok(v.clone());
                }
                let elem = match targs.as_deref() {
                    Some([Meaning::Type(want)]) => {
                        let fits = want.dtype() == Some(t.dtype) && !matches!(want, Ty::Lanes(_));
                        if !fits {
                            let expected = want.dtype().map_or("?", dtype_name);
                            return self.raised(
                                at,
                                format!("expected scalar type {expected} but found {}", dtype_name(t.dtype)),
                            );
                        }
                        want.clone()
                    }
                    _ => Ty::Void,
                };
                let offset = t.offset.saturating_mul(t.dtype.size_bytes());
                Val::Ptr(Pointer {
                    target: Target::Storage(t.storage.clone(), t.device),
                    offset: i64::try_from(offset).unwrap_or(i64::MAX),
                    elem,
                    is_const: name == "const_data_ptr",
                })
            }
            ("item", _) => {
                let item = self.item(&t.clone(), at)?;
                match targs.as_deref() {
                    Some([Meaning::Type(ty)]) => self.convert(&item, &ty.clone(), at)?,
                    _ => item,
                }
            }
            (
                "accessor"
                | "packed_accessor32"
                | "packed_accessor64"
                | "packed_accessor"
                | "generic_packed_accessor",
                0,
            ) => {
                let (elem, dims) = match targs.as_deref() {
                    Some([Meaning::Type(e), Meaning::Number(d), ..]) => {
                        (e.clone(), Val::Num(d.clone()).as_int().and_then(|d| u64::try_from(d).ok()))
                    }
                    _ => return self.unsupported(at, format!("this `{name}`")),
                };
                if elem.dtype() != Some(t.dtype) {
                    let expected = elem.dtype().map_or("?", dtype_name);
                    let found = dtype_name(t.dtype);
                    return self.raised(at, format!("expected scalar type {expected} but found {found}"));
                }
                let narrow = name.ends_with("32");
                Val::Accessor(
                    t.clone(),
                    Ty::Accessor(Box::new(elem), dims.unwrap_or(n as u64), narrow, name.into()),
                )
            }
            ("contiguous", _) => {
                if t.is_contiguous() {
                    v.clone()
                } else {
                    self.gathered(&t.clone(), t.dtype, t.device, at)?
                }
            }
            ("clone", _) => self.gathered(&t.clone(), t.dtype, t.device, at)?,
            ("cuda" | "cpu", _) => {
                let device = if name == "cuda" { Device::Cuda } else { Device::Cpu };
                if device == t.device { v.clone() } else { self.gathered(&t.clone(), t.dtype, device, at)? }
            }
            ("to" | "toType" | "type_as", _) => {
                let like = match args.first() {
                    Some(Val::Tensor(Some(o))) => {
                        Some(TensorOptions { dtype: Some(o.dtype), device: Some(o.device) })
                    }
                    _ => None,
                };
                let (o, _) = Self::split_options(args.clone());
                let o = like.unwrap_or(o);
                let (d, device) = (o.dtype.unwrap_or(t.dtype), o.device.unwrap_or(t.device));
                if d == t.dtype && device == t.device {
                    v.clone()
                } else {
                    self.gathered(&t.clone(), d, device, at)?
                }
            }
            ("to_float" | "to_half", _) => return self.unsupported(at, format!("`{name}` of a tensor")),
            ("view" | "reshape" | "view_as" | "reshape_as" | "_unsafe_view", _) => {
                let wanted = match args.first() {
                    Some(Val::Tensor(Some(o))) => o.sizes.iter().map(|s| *s as i64).collect(),
                    Some(list) => self.ints_of(&list.clone(), at)?,
                    None => return self.rejected(at, format!("`{name}` without sizes")),
                };
                self.reshaped(&t.clone(), &wanted, name.starts_with("reshape"), at)?
            }
            ("flatten", _) => {
                let from = wrap_dim(arg_int(0).unwrap_or(0), n);
                let to = wrap_dim(arg_int(1).unwrap_or(-1), n);
                let (Some(from), Some(to)) = (from, to) else {
                    return self.raised(at, "Dimension out of range");
                };
                let mut wanted: Vec<i64> = t.sizes.iter().map(|s| *s as i64).collect();
                if n == 0 {
                    wanted.push(1);
                } else if from <= to {
                    let product = wanted[from..=to].iter().product();
                    wanted.splice(from..=to, [product]);
                }
                self.reshaped(&t.clone(), &wanted, true, at)?
            }
            ("transpose" | "swapaxes" | "swapdims", 2) => {
                let (a, b) =
                    (arg_int(0).and_then(|d| wrap_dim(d, n)), arg_int(1).and_then(|d| wrap_dim(d, n)));
                let (Some(a), Some(b)) = (a, b) else { return self.raised(at, "Dimension out of range") };
                let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
                if n > 0 {
                    sizes.swap(a, b);
                    strides.swap(a, b);
                }
                view(sizes, strides, t.offset)
            }
            ("t" | "numpy_T" | "mT", 0) => {
                if n > 2 && name == "t" {
                    return self
                        .raised(at, format!("t() expects a tensor with <= 2 dimensions, but self is {n}D"));
                }
                let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
                if n >= 2 {
                    sizes.swap(n - 2, n - 1);
                    strides.swap(n - 2, n - 1);
                }
                view(sizes, strides, t.offset)
            }
            ("permute", _) => {
                let list = match args.first() {
                    Some(l @ Val::List(..)) => self.ints_of(&l.clone(), at)?,
                    _ => args.iter().filter_map(Val::as_int).collect(),
                };
                let dims: Option<Vec<usize>> = list.iter().map(|d| wrap_dim(*d, n)).collect();
                let Some(dims) = dims.filter(|d| d.len() == n && (0..n).all(|k| d.contains(&k))) else {
                    return self.raised(at, "permute(sparse_coo): the dimensions are no permutation");
                };
                view(
                    dims.iter().map(|k| t.sizes[*k]).collect(),
                    dims.iter().map(|k| t.strides[*k]).collect(),
                    t.offset,
                )
            }
            ("unsqueeze", 1) => {
                let Some(k) = arg_int(0).and_then(|d| wrap_dim(d, n + 1)) else {
                    return self.raised(at, "Dimension out of range");
                };
                let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
                let stride = sizes.get(k).zip(strides.get(k)).map_or(1, |(s, d)| s.saturating_mul(*d));
                sizes.insert(k, 1);
                strides.insert(k, stride);
                view(sizes, strides, t.offset)
            }
            ("squeeze", 0 | 1) => {
                let only = match arg_int(0) {
                    Some(d) => match wrap_dim(d, n) {
                        Some(k) => Some(k),
                        None => return self.raised(at, "Dimension out of range"),
                    },
                    None => None,
                };
                let keep: Vec<usize> =
                    (0..n).filter(|k| t.sizes[*k] != 1 || only.is_some_and(|o| o != *k)).collect();
                view(
                    keep.iter().map(|k| t.sizes[*k]).collect(),
                    keep.iter().map(|k| t.strides[*k]).collect(),
                    t.offset,
                )
            }
            ("expand" | "expand_as", _) => {
                let wanted: Vec<i64> = match args.first() {
                    Some(Val::Tensor(Some(o))) => o.sizes.iter().map(|s| *s as i64).collect(),
                    Some(list) => self.ints_of(&list.clone(), at)?,
                    None => Vec::new(),
                };
                let Some(lead) = wanted.len().checked_sub(n) else {
                    return self.raised(at, "expand: fewer sizes than dimensions");
                };
                let (mut sizes, mut strides) = (Vec::new(), Vec::new());
                for (k, w) in wanted.iter().enumerate() {
                    let own = k.checked_sub(lead).map(|k| (t.sizes[k], t.strides[k]));
                    match (own, u64::try_from(*w)) {
                        (Some((s, d)), Ok(w)) if s == w => {
                            sizes.push(s);
                            strides.push(d);
                        }
                        (Some((s, d)), Err(_)) => {
                            sizes.push(s);
                            strides.push(d);
                        }
                        (Some((1, _)) | None, Ok(w)) => {
                            sizes.push(w);
                            strides.push(0);
                        }
                        _ => return self.raised(at, "expand: the sizes do not match"),
                    }
                }
                view(sizes, strides, t.offset)
            }
            ("select", 2) | ("__getitem__", 1) => {
                if let ("__getitem__", Some(Val::Tensor(_))) = (name, args.first()) {
                    return self.library_call("index", vec![v.clone(), Val::list(args, Ty::Tensor)], at);
                }
                let (d, i) = if name == "select" { (arg_int(0), arg_int(1)) } else { (Some(0), arg_int(0)) };
                let k = d.and_then(|d| wrap_dim(d, n)).filter(|_| n > 0);
                let (Some(k), Some(i)) = (k, i) else { return self.raised(at, "Dimension out of range") };
                let extent = i64::try_from(t.sizes[k]).unwrap_or(i64::MAX);
                let j = if i < 0 { i + extent } else { i };
                if !(0..extent).contains(&j) {
                    return self.raised(
                        at,
                        format!("index {i} is out of bounds for dimension {k} with size {extent}"),
                    );
                }
                let offset = t.offset.saturating_add((j as u64).saturating_mul(t.strides[k]));
                let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
                sizes.remove(k);
                strides.remove(k);
                view(sizes, strides, offset)
            }
            ("slice" | "narrow", _) => {
                let Some(k) = arg_int(0).and_then(|d| wrap_dim(d, n)).filter(|_| n > 0) else {
                    return self.raised(at, "Dimension out of range");
                };
                let extent = i64::try_from(t.sizes[k]).unwrap_or(i64::MAX);
                let clamp = |v: i64| (if v < 0 { v + extent } else { v }).clamp(0, extent);
                let start = clamp(arg_int(1).unwrap_or(0));
                let end = if name == "narrow" {
                    let length = arg_int(2).unwrap_or(0);
                    if length < 0 || start + length > extent {
                        return self.raised(
                            at,
                            format!("start ({start}) + length ({length}) exceeds dimension size ({extent})."),
                        );
                    }
                    start + length
                } else {
                    clamp(arg_int(2).unwrap_or(i64::MAX))
                };
                let step = if name == "slice" { arg_int(3).unwrap_or(1) } else { 1 };
                if step <= 0 {
                    return self.raised(at, "slice step must be positive");
                }
                let len = (end - start).max(0) as u64;
                let offset = t.offset.saturating_add((start as u64).saturating_mul(t.strides[k]));
                let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
                sizes[k] = len.div_ceil(step as u64);
                strides[k] = strides[k].saturating_mul(step as u64);
                view(sizes, strides, offset)
            }
            ("zero_", 0) => {
                self.fill_with(&t.clone(), 0.0, at)?;
                v.clone()
            }
            ("fill_", 1) => {
                let x = self.number(&args[0], at)?;
                self.fill_with(&t.clone(), x, at)?;
                v.clone()
            }
            ("copy_", _) => {
                let from = args.into_iter().next().unwrap_or(Val::Void);
                self.copy_into(&t.clone(), &from, at)?;
                v.clone()
            }
            ("new_empty" | "new_zeros" | "new_ones" | "new_full", _) => {
                let (o, rest) = Self::split_options(args);
                let o =
                    TensorOptions { dtype: o.dtype.or(Some(t.dtype)), device: o.device.or(Some(t.device)) };
                let sizes = match rest.first() {
                    Some(s) => self.sizes_of(&s.clone(), at)?,
                    None => return self.rejected(at, format!("`{name}` without sizes")),
                };
                let content = match (name, rest.get(1)) {
                    ("new_empty", _) => Content::Fresh,
                    ("new_zeros", _) => Content::Number(0.0),
                    ("new_full", Some(v)) => Content::Number(self.number(&v.clone(), at)?),
                    _ => Content::Number(1.0),
                };
                self.new_tensor(sizes, o, content, at)?
            }
            ("index", 1) => return self.indexed(t.clone(), &args[0], at),
            ("index_put_", 2) => {
                let part = self.indexed(t.clone(), &args[0], at)?;
                let part = self.tensor(&part, at)?;
                if !part.storage.same(&t.storage) {
                    return self.unsupported(at, "`index_put_` with a tensor of indices");
                }
                self.copy_into(&part, &args[1], at)?;
                v.clone()
            }
            ("record_stream" | "backward", _) => Val::Void,
            _ if name.ends_with('_') && !name.starts_with('_') => {
                // In place: the functional operation, and its result into this tensor.
                let base = &name[..name.len() - 1];
                let mut all = vec![v.clone()];
                all.extend(args);
                let out = self.library_call(base, all, at)?;
                self.copy_into(&t.clone(), &out, at)?;
                v.clone()
            }
            _ => {
                let mut all = vec![v.clone()];
                all.extend(args);
                self.library_call(name, all, at)?
            }
        })
    }

    /// `x.index({…})`: integers, slices, `None` and `...` as views; a tensor alone through the library.
    fn indexed(&mut self, t: Tensor, list: &Val, at: u32) -> R<Val> {
        let Val::List(items, _) = list else { return self.unsupported(at, "this `index`") };
        let items = items.borrow().clone();
        if items.iter().any(|i| matches!(i, Val::Tensor(_))) {
            if items.len() != 1 {
                return self.unsupported(at, "`index` with tensors among slices");
            }
            return self.library_call("index", vec![Val::Tensor(Some(t)), list.clone()], at);
        }
        let scope = Rc::clone(&self.globals.scope);
        let ellipsis = |i: &Val| match i {
            Val::Str(s) => &**s == "...",
            Val::Opaque(n) => &**n == "Ellipsis",
            _ => false,
        };
        let used = items.iter().filter(|i| !ellipsis(i) && !matches!(i, Val::Nothing)).count();
        let skipped = t.sizes.len().saturating_sub(used);
        let mut out = Val::Tensor(Some(t));
        let mut d = 0i64;
        for i in &items {
            match i {
                i if ellipsis(i) => d += i64::try_from(skipped).unwrap_or(0),
                Val::Nothing => {
                    out = self.tensor_method(&out, "unsqueeze", None, vec![Val::int(d)], &scope, at)?;
                    d += 1;
                }
                Val::Num(_) => {
                    out =
                        self.tensor_method(&out, "select", None, vec![Val::int(d), i.clone()], &scope, at)?;
                }
                Val::Opaque(n) if &**n == "Slice" => d += 1,
                Val::Tuple(parts) => {
                    let mut args = vec![Val::int(d)];
                    for (k, p) in parts.borrow().iter().enumerate().skip(1) {
                        let missing = [0, 0, i64::MAX, 1].get(k).copied().unwrap_or(1);
                        args.push(if matches!(p, Val::Nothing) { Val::int(missing) } else { p.clone() });
                    }
                    out = self.tensor_method(&out, "slice", None, args, &scope, at)?;
                    d += 1;
                }
                other => return self.unsupported(at, format!("`index` with a `{}`", other.ty())),
            }
        }
        Ok(out)
    }

    /// A view with other extents; a copy where that cannot be and `copy` allows it.
    fn reshaped(&mut self, t: &Tensor, wanted: &[i64], copy: bool, at: u32) -> R<Val> {
        let known: i64 =
            wanted.iter().filter(|w| **w >= 0).try_fold(1i64, |n, w| n.checked_mul(*w)).unwrap_or(-1);
        let numel = i64::try_from(t.numel()).unwrap_or(i64::MAX);
        let invalid =
            |this: &Self| this.raised(at, format!("shape '{wanted:?}' is invalid for input of size {numel}"));
        let mut sizes: Vec<u64> = Vec::new();
        for w in wanted {
            sizes.push(match u64::try_from(*w) {
                Ok(w) => w,
                Err(_) if *w == -1 && known > 0 && numel % known == 0 => (numel / known) as u64,
                Err(_) => return invalid(self),
            });
        }
        if sizes.iter().fold(1u64, |n, s| n.saturating_mul(*s)) != t.numel() {
            return invalid(self);
        }
        if let Some(strides) = view_strides(t, &sizes) {
            return Ok(Val::Tensor(Some(Tensor { sizes, strides, ..t.clone() })));
        }
        if copy {
            let dense = self.gathered(t, t.dtype, t.device, at)?;
            let dense = self.tensor(&dense, at)?;
            let strides = contiguous_strides(&sizes);
            return Ok(Val::Tensor(Some(Tensor { sizes, strides, ..dense })));
        }
        self.raised(
            at,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
             two contiguous subspaces). Use .reshape(...) instead.",
        )
    }

    /// A contiguous copy in a dtype on a device.
    fn gathered(&mut self, t: &Tensor, d: DType, device: Device, at: u32) -> R<Val> {
        self.gpu.sync();
        let contents = t.storage.contents();
        let bytes = t.gather();
        let size = t.dtype.size_bytes() as usize;
        let bytes = if d == t.dtype {
            bytes
        } else {
            let mut out = Vec::with_capacity(bytes.len() / size * d.size_bytes() as usize);
            for c in bytes.chunks_exact(size) {
                let n = decode(t.dtype, c).and_then(|n| encode(d, &n));
                out.extend(n.unwrap_or_default());
            }
            out
        };
        self.allocated = self.allocated.saturating_add(bytes.len() as u64);
        if self.allocated > self.run.memory_bytes {
            return self.exhausted(at, "memory for a copy of a tensor");
        }
        // A copy of what nothing wrote is written, but its source is named by whoever reads it.
        let contents = if contents == Contents::Fresh { Contents::Fresh } else { Contents::Written };
        Ok(Val::Tensor(Some(Tensor {
            storage: Storage::with(bytes, contents),
            dtype: d,
            sizes: t.sizes.clone(),
            strides: contiguous_strides(&t.sizes),
            offset: 0,
            device,
        })))
    }

    /// The only element.
    pub fn item(&mut self, t: &Tensor, at: u32) -> R<Val> {
        if t.numel() != 1 {
            return self
                .raised(at, format!("a Tensor with {} elements cannot be converted to Scalar", t.numel()));
        }
        self.gpu.sync();
        let bytes = t.gather();
        match decode(t.dtype, &bytes) {
            Some(n) => {
                // `.item()` gives a C++ double, int64_t or bool.
                let s = match n.scalar() {
                    Some(Scalar::Bool) => Scalar::Bool,
                    Some(s) if s.is_float() => Scalar::F64,
                    _ => Scalar::I64,
                };
                Ok(n.to_scalar(s).map(Val::Num).unwrap_or(Val::Void))
            }
            None => self.fault(at, "an element outside its storage"),
        }
    }

    fn fill_with(&mut self, t: &Tensor, x: f64, at: u32) -> R<()> {
        self.gpu.forget(&t.storage);
        let Some(one) = encode(t.dtype, &Number::Float(x, Scalar::F64)) else {
            return self.rejected(at, "a fill with this value");
        };
        let mut places = Vec::new();
        t.for_each_offset(|at| places.push(at));
        let contents = contents_after(t);
        t.storage.write(contents, |b| {
            for p in places {
                if let Some(slot) = b.get_mut(p..p.saturating_add(one.len())) {
                    slot.copy_from_slice(&one);
                }
            }
        });
        Ok(())
    }

    /// `t.copy_(from)`: values converted and broadcast.
    pub fn copy_into(&mut self, t: &Tensor, from: &Val, at: u32) -> R<()> {
        let from = match from {
            Val::Tensor(Some(f)) => f.clone(),
            Val::Num(_) => {
                let x = self.number(from, at)?;
                return self.fill_with(t, x, at);
            }
            other => return self.unsupported(at, format!("a copy of a `{}` into a tensor", other.ty())),
        };
        let mut from = from;
        if from.sizes != t.sizes {
            let sizes = Val::ints(t.sizes.iter().copied());
            let scope = Rc::clone(&self.globals.scope);
            let wide =
                self.tensor_method(&Val::Tensor(Some(from)), "expand", None, vec![sizes], &scope, at)?;
            from = self.tensor(&wide, at)?;
        }
        self.gpu.forget(&t.storage);
        let bytes = from.gather();
        let size = from.dtype.size_bytes() as usize;
        let mut places = Vec::new();
        t.for_each_offset(|at| places.push(at));
        let contents = contents_after(t);
        let (d, f) = (t.dtype, from.dtype);
        t.storage.write(contents, |b| {
            for (p, c) in places.into_iter().zip(bytes.chunks_exact(size)) {
                let one = if d == f { Some(c.to_vec()) } else { decode(f, c).and_then(|n| encode(d, &n)) };
                if let Some(one) = one
                    && let Some(slot) = b.get_mut(p..p.saturating_add(one.len()))
                {
                    slot.copy_from_slice(&one);
                }
            }
        });
        Ok(())
    }

    pub fn accessor_index(&mut self, t: &Tensor, ty: &Ty, i: &Val, at: u32) -> R<Val> {
        if t.device == Device::Cuda {
            return self.fault(at, "host code reads device memory");
        }
        let k = i.as_int().and_then(|i| u64::try_from(i).ok());
        let (Some(k), Some(size), Some(stride)) = (k, t.sizes.first(), t.strides.first()) else {
            return self.fault(at, "an index of an accessor");
        };
        if k >= *size {
            return self.fault(at, format!("index {k} of an accessor of extent {size}"));
        }
        let inner = Tensor {
            offset: t.offset.saturating_add(k.saturating_mul(*stride)),
            sizes: t.sizes[1..].to_vec(),
            strides: t.strides[1..].to_vec(),
            ..t.clone()
        };
        if inner.sizes.is_empty() {
            return self.item(&inner, at);
        }
        Ok(Val::Accessor(inner, ty.clone()))
    }

    /// An operator with a tensor on one side.
    pub fn tensor_operator(&mut self, op: Op, a: &Val, b: &Val, at: u32) -> R<Val> {
        let name = match op {
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
            Op::Div => "div",
            Op::Rem => "remainder",
            Op::Lt => "lt",
            Op::Gt => "gt",
            Op::Le => "le",
            Op::Ge => "ge",
            Op::Eq => "eq",
            Op::Ne => "ne",
            Op::And => "bitwise_and",
            Op::Or => "bitwise_or",
            Op::Xor => "bitwise_xor",
            Op::Shl | Op::Shr | Op::LogicalAnd | Op::LogicalOr | Op::Comma => {
                return self.unsupported(at, "this operator on a tensor");
            }
        };
        match (a, b, op) {
            (Val::Tensor(_), ..) => self.library_call(name, vec![a.clone(), b.clone()], at),
            // A number on the left: commuted, or turned into the reverse operation.
            (_, Val::Tensor(_), Op::Add | Op::Mul | Op::Eq | Op::Ne | Op::And | Op::Or | Op::Xor) => {
                self.library_call(name, vec![b.clone(), a.clone()], at)
            }
            (_, Val::Tensor(_), Op::Sub) => self.library_call("rsub", vec![b.clone(), a.clone()], at),
            (_, Val::Tensor(_), Op::Div) => {
                let r = self.library_call("reciprocal", vec![b.clone()], at)?;
                self.library_call("mul", vec![r, a.clone()], at)
            }
            (_, Val::Tensor(_), Op::Lt) => self.library_call("gt", vec![b.clone(), a.clone()], at),
            (_, Val::Tensor(_), Op::Gt) => self.library_call("lt", vec![b.clone(), a.clone()], at),
            (_, Val::Tensor(_), Op::Le) => self.library_call("ge", vec![b.clone(), a.clone()], at),
            (_, Val::Tensor(_), Op::Ge) => self.library_call("le", vec![b.clone(), a.clone()], at),
            _ => self.unsupported(at, "this operator on a tensor"),
        }
    }

    /// An operation of PyTorch.
    pub fn library_call(&mut self, name: &str, args: Vec<Val>, at: u32) -> R<Val> {
        self.gpu.sync();
        let mut kwargs: Vec<(String, Value)> = Vec::new();
        let mut values = Vec::new();
        for a in &args {
            match a {
                Val::Options(o) => {
                    if let Some(d) = o.dtype {
                        kwargs.push(("dtype".into(), Value::DType(d)));
                    }
                    if let Some(d) = o.device {
                        kwargs.push(("device".into(), Value::Device(d)));
                    }
                }
                Val::Opaque(n) if &**n == "contiguous_format" => {}
                other => values.push(self.outward(other, at)?),
            }
        }
        *self.run.operations.entry(name.to_owned()).or_insert(0) += 1;
        let out = self.library.call(name, &values, &kwargs);
        match out {
            Ok(v) => Ok(self.inward(v)),
            Err(e) => Err(match (e, self.line(at)) {
                (ExtensionError::Unsupported { construct, line: None }, line) => {
                    ExtensionError::Unsupported { construct, line }
                }
                (ExtensionError::Raised { message, line: None }, line) => {
                    ExtensionError::Raised { message, line }
                }
                (e, _) => e,
            }),
        }
    }

    /// A value for the outside.
    pub fn outward(&mut self, v: &Val, at: u32) -> R<Value> {
        Ok(match v {
            Val::Void | Val::Nothing => Value::None,
            Val::Num(Number::Int(v, Scalar::Bool)) => Value::Bool(*v != 0),
            Val::Num(Number::Int(v, _)) => match i64::try_from(*v) {
                Ok(v) => Value::Int(v),
                Err(_) => return self.unsupported(at, "an integer beyond 64 signed bits"),
            },
            Val::Num(Number::Float(v, _)) => Value::Float(*v),
            Val::Str(s) => Value::Str(s.to_string()),
            Val::Tensor(Some(t)) => Value::Tensor(t.clone()),
            Val::Tensor(None) => Value::None,
            Val::DType(d) => Value::DType(*d),
            Val::Device(d) => Value::Device(*d),
            Val::List(items, _) => {
                let items = items.borrow().clone();
                let mut out = Vec::new();
                for i in &items {
                    out.push(self.outward(i, at)?);
                }
                Value::List(out)
            }
            Val::Tuple(items) => {
                let items = items.borrow().clone();
                let mut out = Vec::new();
                for i in &items {
                    out.push(self.outward(i, at)?);
                }
                Value::Tuple(out)
            }
            Val::Unset => return self.fault(at, "a variable is read before it has a value"),
            other => return self.unsupported(at, format!("a value of type `{}` for PyTorch", other.ty())),
        })
    }

    /// A value from the outside.
    pub fn inward(&mut self, v: Value) -> Val {
        match v {
            Value::Tensor(t) => Val::Tensor(Some(t)),
            Value::Int(v) => Val::int(v),
            Value::Float(v) => Val::float(v),
            Value::Bool(v) => Val::bool(v),
            Value::Str(s) => Val::Str(s.into()),
            Value::List(items) => {
                let mut out = Vec::new();
                for i in items {
                    out.push(self.inward(i));
                }
                let ty = out.first().map_or(Ty::Auto, Val::ty);
                let same = out.iter().all(|v| v.ty() == ty);
                Val::list(out, if same { ty } else { Ty::Auto })
            }
            Value::Tuple(items) => {
                let mut out = Vec::new();
                for i in items {
                    out.push(self.inward(i));
                }
                Val::tuple(out)
            }
            Value::DType(d) => Val::DType(d),
            Value::Device(d) => Val::Device(d),
            Value::None => Val::Nothing,
        }
    }
}

/// Methods that are done here, also as functions of a tensor.
const METADATA: &[&str] = &[
    "view",
    "reshape",
    "flatten",
    "transpose",
    "t",
    "permute",
    "unsqueeze",
    "squeeze",
    "expand",
    "select",
    "slice",
    "narrow",
    "clone",
    "contiguous",
    "swapaxes",
    "swapdims",
    "numel",
    "is_floating_point",
    "detach",
];

/// A whole-storage write leaves nothing unwritten.
fn contents_after(t: &Tensor) -> Contents {
    let whole = t.is_contiguous()
        && t.offset == 0
        && t.numel().saturating_mul(t.dtype.size_bytes()) == t.storage.len_bytes();
    if whole || t.storage.contents() == Contents::Written { Contents::Written } else { Contents::Partial }
}

/// The strides of a tensor that covers its elements without gaps or overlaps in some order of its dimensions; none
/// otherwise, and for contiguous ones.
fn dense_strides(t: &Tensor) -> Option<Vec<u64>> {
    if t.is_contiguous() {
        return None;
    }
    let mut dims: Vec<usize> = (0..t.sizes.len()).filter(|k| t.sizes[*k] != 1).collect();
    dims.sort_by_key(|k| t.strides[*k]);
    let mut step = 1u64;
    for k in dims {
        if t.strides[k] != step {
            return None;
        }
        step = step.checked_mul(t.sizes[k])?;
    }
    Some(t.strides.clone())
}

/// Strides of a view with these extents, where there is one.
fn view_strides(t: &Tensor, sizes: &[u64]) -> Option<Vec<u64>> {
    if t.is_contiguous() || t.numel() == 0 {
        return Some(contiguous_strides(sizes));
    }
    // Group the old dimensions into runs that are contiguous within, and give each run's elements to new ones.
    let mut strides = vec![0u64; sizes.len()];
    let mut new = sizes.len();
    let old: Vec<usize> = (0..t.sizes.len()).filter(|k| t.sizes[*k] != 1).collect();
    let mut k = old.len();
    while k > 0 {
        let base = t.strides[old[k - 1]];
        let mut have = t.sizes[old[k - 1]];
        let mut j = k - 1;
        while j > 0 && t.strides[old[j - 1]] == t.strides[old[j]].checked_mul(t.sizes[old[j]])? {
            j -= 1;
            have = have.checked_mul(t.sizes[old[j]])?;
        }
        let mut step = base;
        let mut covered = 1u64;
        while new > 0 && (covered < have || sizes[new - 1] == 1) {
            new -= 1;
            strides[new] = step;
            step = step.checked_mul(sizes[new])?;
            covered = covered.checked_mul(sizes[new])?;
        }
        if covered != have {
            return None;
        }
        k = j;
    }
    for s in strides.iter_mut().take(new) {
        *s = 1;
    }
    Some(strides)
}
