//! What the C++ library, the CUDA runtime and PyTorch have as names and free functions, and launches.

mod cublas;
mod launches;
mod runtime;

use std::rc::Rc;
use std::sync::Arc;

use assay_host::arith;
use assay_host::types::{Scalar, Value as Number};
use assay_host::vocabulary::{builtin, forced, limit};
use assay_tensor::DType;

use crate::device::{KernelArg, Launch, SymbolWrite};
use crate::interp::{Interp, R, deduce};
use crate::syntax::{Expr, Name, Node, TemplateArg};
use crate::tensor::{Contents, Device, Tensor};
use crate::value::{KernelName, Meaning, Pointer, Scope, Target, TensorOptions, Ty, Val, dtype_name};

/// Dtypes by the names that PyTorch's C++ has for them.
pub(crate) fn dtype_named(name: &str) -> Option<DType> {
    Some(match name {
        "kFloat32" | "kFloat" | "Float" | "float32" => DType::F32,
        "kFloat64" | "kDouble" | "Double" | "float64" => DType::F64,
        "kFloat16" | "kHalf" | "Half" | "float16" => DType::F16,
        "kBFloat16" | "BFloat16" | "bfloat16" => DType::BF16,
        "kInt32" | "kInt" | "Int" | "int32" => DType::I32,
        "kInt64" | "kLong" | "Long" | "int64" => DType::I64,
        "kInt16" | "kShort" | "Short" | "int16" => DType::I16,
        "kInt8" | "kChar" | "Char" | "int8" => DType::I8,
        "kUInt8" | "kByte" | "Byte" | "uint8" => DType::U8,
        "kBool" | "Bool" => DType::Bool,
        _ => return None,
    })
}

/// The dtypes that a dispatch macro of that name covers by itself, and how many more it is given.
fn dispatch(name: &str) -> Option<(&'static [DType], usize)> {
    use DType::{Bool, F32, F64, I8, I16, I32, I64, U8};
    const FLOATING: &[DType] = &[F64, F32];
    const INTEGRAL: &[DType] = &[U8, I8, I32, I64, I16];
    const ALL: &[DType] = &[U8, I8, I32, I64, I16, F64, F32];
    const WITH_HALF: &[DType] = &[F64, F32, DType::F16];
    const REDUCED: &[DType] = &[DType::F16, DType::BF16];
    const ALL_HALF: &[DType] = &[U8, I8, I32, I64, I16, F64, F32, DType::F16];
    let rest = name.strip_prefix("AT_DISPATCH_")?;
    let _ = Bool;
    if rest == "FLOATING_TYPES_AND_HALF" {
        return Some((WITH_HALF, 0));
    }
    if rest == "ALL_TYPES_AND_HALF" {
        return Some((ALL_HALF, 0));
    }
    // `FLOATING_AND_COMPLEX_TYPES_AND2`: complex tensors do not exist here.
    if let Some(tail) =
        rest.strip_prefix("FLOATING_AND_COMPLEX_TYPES").or_else(|| rest.strip_prefix("ALL_TYPES_AND_COMPLEX"))
    {
        let more = match tail.strip_prefix("_AND") {
            Some("") => 1,
            Some(n) => n.parse().ok()?,
            None => 0,
        };
        return Some((if rest.starts_with('F') { FLOATING } else { ALL }, more));
    }
    let (kinds, more) = match rest.split_once("_AND") {
        Some((k, "")) => (k, 1),
        Some((k, n)) => (k, n.parse().ok()?),
        None => (rest, 0),
    };
    match kinds {
        "FLOATING_TYPES" => Some((FLOATING, more)),
        "INTEGRAL_TYPES" => Some((INTEGRAL, more)),
        "ALL_TYPES" => Some((ALL, more)),
        "REDUCED_FLOATING_TYPES" => Some((REDUCED, more)),
        "INDEX_TYPES" => Some((&[I32, I64], more)),
        _ => None,
    }
}

/// Functions whose arguments are places, or are evaluated only sometimes.
impl Interp<'_, '_> {
    /// What a name of the libraries stands for where it is not called.
    pub fn library_name(&mut self, n: &Name, scope: &Rc<Scope>) -> R<Val> {
        let last = n.last();
        if n.parts.len() > 1
            && let Some(t) = n.parts.iter().rev().nth(1).filter(|p| &*p.ident == "numeric_limits")
        {
            return self.limit_of(t.args.as_deref(), last, scope, n.at);
        }
        if (n.parts.len() > 1 || last.starts_with('k'))
            && let Some(d) = dtype_named(last)
        {
            return Ok(Val::DType(d));
        }
        if let Some(v) = limit(last) {
            return Ok(Val::Num(v));
        }
        Ok(match last {
            "kCUDA" | "CUDA" => Val::Device(Device::Cuda),
            "kCPU" | "CPU" => Val::Device(Device::Cpu),
            "nullopt" | "None" if n.parts.len() > 1 => Val::Nothing,
            "M_PI" => Val::float(std::f64::consts::PI),
            "M_E" => Val::float(std::f64::consts::E),
            "M_SQRT2" => Val::float(std::f64::consts::SQRT_2),
            "M_SQRT1_2" => Val::float(std::f64::consts::FRAC_1_SQRT_2),
            "M_LN2" => Val::float(std::f64::consts::LN_2),
            "M_LOG2E" => Val::float(std::f64::consts::LOG2_E),
            "M_2_SQRTPI" => Val::float(std::f64::consts::FRAC_2_SQRT_PI),
            "DBL_MAX" => Val::float(f64::MAX),
            "DBL_MIN" => Val::float(f64::MIN_POSITIVE),
            "DBL_EPSILON" => Val::float(f64::EPSILON),
            "NAN" => Val::Num(Number::Float(f64::NAN, Scalar::F32)),
            "HUGE_VALF" => Val::Num(Number::Float(f64::INFINITY, Scalar::F32)),
            "cudaSuccess" | "CUBLAS_STATUS_SUCCESS" => Val::i32(0),
            _ if last.starts_with("CUBLAS_") || last.starts_with("CUDA_R_") => Val::Opaque(last.into()),
            "CUDA_VERSION" | "CUDART_VERSION" => Val::i32(12_080),
            "AT_ERROR" | "cout" | "cerr" | "endl" | "flush" | "clog" | "ignore" => Val::Opaque(last.into()),
            "warpSize" => Val::i32(32),
            "__func__" | "__FUNCTION__" | "__FILE__" => Val::Str(last.into()),
            "__LINE__" => Val::i32(i32::try_from(self.line(n.at).unwrap_or(0)).unwrap_or(0)),
            "Reduction::Mean" => Val::int(1),
            _ if last.starts_with("cudaError") => Val::i32(999),
            _ if last
                .strip_prefix("cuda")
                .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_uppercase())) =>
            {
                Val::Opaque(last.into())
            }
            _ if n.within(&["at", "torch"]) && n.parts.iter().any(|p| &*p.ident == "Reduction") => match last
            {
                "Mean" => Val::int(1),
                "Sum" => Val::int(2),
                _ => Val::int(0),
            },
            _ if n.within(&["at", "torch", "c10"]) && n.parts.iter().any(|p| &*p.ident == "MemoryFormat") => {
                if last == "Contiguous" {
                    Val::Opaque("contiguous_format".into())
                } else {
                    return self.unsupported(n.at, format!("the memory format `{last}`"));
                }
            }
            "Slice" | "Ellipsis" => Val::Opaque(last.into()),
            _ if n.within(&["std"]) => Val::Opaque(last.into()),
            _ if self.program.symbols.contains(last) => Val::Ptr(Pointer {
                target: Target::Symbol(last.into()),
                offset: 0,
                elem: Ty::Void,
                is_const: false,
            }),
            _ => return self.unsupported(n.at, format!("the name `{}`", n.path())),
        })
    }

    fn limit_of(&mut self, args: Option<&[TemplateArg]>, what: &str, scope: &Rc<Scope>, at: u32) -> R<Val> {
        let t = match args {
            Some([TemplateArg::Type(t)]) => self.resolve(t, scope)?,
            _ => return self.unsupported(at, "these `std::numeric_limits`"),
        };
        let Ty::Scalar(s) = t else {
            return self.unsupported(at, format!("`std::numeric_limits<{t}>`"));
        };
        let v = match (s, what) {
            (Scalar::F32, "max") => Number::Float(f64::from(f32::MAX), s),
            (Scalar::F32, "lowest") => Number::Float(f64::from(f32::MIN), s),
            (Scalar::F32, "min") => Number::Float(f64::from(f32::MIN_POSITIVE), s),
            (Scalar::F32, "epsilon") => Number::Float(f64::from(f32::EPSILON), s),
            (Scalar::F64, "max") => Number::Float(f64::MAX, s),
            (Scalar::F64, "lowest") => Number::Float(f64::MIN, s),
            (Scalar::F64, "min") => Number::Float(f64::MIN_POSITIVE, s),
            (Scalar::F64, "epsilon") => Number::Float(f64::EPSILON, s),
            (Scalar::F32 | Scalar::F64, "infinity") => Number::Float(f64::INFINITY, s),
            (Scalar::F32 | Scalar::F64, "quiet_NaN") => Number::Float(f64::NAN, s),
            (_, "max") => {
                let bits = s.bits() - u32::from(s.is_signed());
                Number::Int(if s == Scalar::Bool { 1 } else { (1i128 << bits) - 1 }, s)
            }
            (_, "min" | "lowest") => {
                Number::Int(if s.is_signed() { -(1i128 << (s.bits() - 1)) } else { 0 }, s)
            }
            _ => return self.unsupported(at, format!("`std::numeric_limits` for `{what}`")),
        };
        Ok(Val::Num(v))
    }

    /// Calls that need their arguments unevaluated; `None` for others.
    pub fn special_call(&mut self, n: &Name, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Option<Val>> {
        let last = n.last();
        match last {
            "TORCH_CHECK"
            | "AT_ASSERT"
            | "AT_ASSERTM"
            | "TORCH_INTERNAL_ASSERT"
            | "TORCH_CHECK_VALUE"
            | "TORCH_CHECK_ARG"
            | "TORCH_CHECK_INDEX"
            | "TORCH_CHECK_TYPE"
            | "TORCH_CHECK_NOT_IMPLEMENTED" => {
                let Some((cond, message)) = args.split_first() else {
                    return self.rejected(at, format!("`{last}` without a condition"));
                };
                if self.truth(cond, scope)? {
                    return Ok(Some(Val::Void));
                }
                self.fail_with(message, scope, "a check does not hold", at)
            }
            "TORCH_CHECK_EQ" | "TORCH_CHECK_NE" | "TORCH_CHECK_LT" | "TORCH_CHECK_LE" | "TORCH_CHECK_GT"
            | "TORCH_CHECK_GE" => {
                let [a, b, message @ ..] = args else {
                    return self.rejected(at, format!("`{last}` takes two values"));
                };
                let (a, b) = (self.eval(a, scope)?, self.eval(b, scope)?);
                use assay_host::Op;
                let op = match &last[12..] {
                    "EQ" => Op::Eq,
                    "NE" => Op::Ne,
                    "LT" => Op::Lt,
                    "LE" => Op::Le,
                    "GT" => Op::Gt,
                    _ => Op::Ge,
                };
                let holds = self.binary(op, &a, &b, at)?;
                if self.truth_of(&holds, at)? {
                    return Ok(Some(Val::Void));
                }
                let what =
                    format!("Check failed: {} against {}", self.display(&a, at)?, self.display(&b, at)?);
                self.fail_with(message, scope, &what, at)
            }
            "AT_ERROR" | "TORCH_ERROR" => self.fail_with(args, scope, "an error", at),
            "TORCH_WARN" | "TORCH_WARN_ONCE" | "AT_WARN" => {
                for a in args {
                    self.eval(a, scope)?;
                }
                Ok(Some(Val::Void))
            }
            "assert" => {
                let [cond] = args else { return self.rejected(at, "`assert` takes one condition") };
                if self.truth(cond, scope)? {
                    return Ok(Some(Val::Void));
                }
                self.fault(at, "a host `assert` does not hold")
            }
            "AT_DISPATCH_SWITCH" => self.unsupported(at, "`AT_DISPATCH_SWITCH`"),
            _ if last.starts_with("AT_DISPATCH_") => self.dispatch_call(last, args, scope, at).map(Some),
            "tie" => {
                let values = self.eval_all(args, scope)?;
                Ok(Some(Val::tuple(values)))
            }
            "swap" if args.len() == 2 => {
                let (p, q) = (self.place(&args[0], scope)?, self.place(&args[1], scope)?);
                let (a, b) = (self.get(&p, at)?, self.get(&q, at)?);
                self.set(&p, b, at)?;
                self.set(&q, a, at)?;
                Ok(Some(Val::Void))
            }
            _ => Ok(None),
        }
    }

    fn fail_with(&mut self, parts: &[Expr], scope: &Rc<Scope>, default: &str, at: u32) -> R<Option<Val>> {
        let mut text = String::new();
        for p in parts {
            let v = self.eval(p, scope)?;
            text.push_str(&self.display(&v, at)?);
        }
        if text.is_empty() {
            text.push_str(default);
        }
        self.raised(at, text)
    }

    fn dispatch_call(&mut self, name: &str, args: &[Expr], scope: &Rc<Scope>, at: u32) -> R<Val> {
        let Some((own, more)) = dispatch(name) else {
            return self.unsupported(at, format!("`{name}`"));
        };
        let (Some((body, head)), true) = (args.split_last(), args.len() == more + 3) else {
            return self.rejected(at, format!("`{name}` takes {} arguments, not {}", more + 3, args.len()));
        };
        let mut covered = own.to_vec();
        for e in &head[..more] {
            if let Val::DType(d) = self.eval(e, scope)? {
                covered.push(d);
            }
        }
        let d = match self.eval(&head[more], scope)? {
            Val::DType(d) => d,
            other => return self.unsupported(at, format!("a dispatch on a `{}`", other.ty())),
        };
        let label = self.eval(&head[more + 1], scope)?;
        if !covered.contains(&d) {
            let label = self.display(&label, at)?;
            return self.raised(at, format!("\"{label}\" not implemented for '{}'", dtype_name(d)));
        }
        let Node::Lambda(lambda) = &body.node else {
            return self.unsupported(at, "a dispatch without a lambda");
        };
        let inner = Scope::child(scope);
        let alias = if name.contains("INDEX_TYPES") { "index_t" } else { "scalar_t" };
        inner.declare_type(&Arc::from(alias), Ty::of_dtype(d));
        match self.block(&lambda.body, &inner)? {
            crate::interp::Flow::Return(v) => Ok(v),
            _ => Ok(Val::Void),
        }
    }

    /// A free function of a library on values.
    pub fn library_function(&mut self, n: &Name, mut args: Vec<Val>, scope: &Rc<Scope>, at: u32) -> R<Val> {
        let last = n.last();
        if n.parts.len() > 1
            && let Some(t) = n.parts.iter().rev().nth(1).filter(|p| &*p.ident == "numeric_limits")
        {
            return self.limit_of(t.args.as_deref(), last, scope, at);
        }
        if !n.within(&["torch", "at"]) || last == "Slice" || n.parts.iter().any(|p| &*p.ident == "cuda") {
            if let Some(v) = self.standard_function(n, &mut args, scope, at)? {
                return Ok(v);
            }
            if let Some(v) = self.runtime_function(last, &args, at)? {
                return Ok(v);
            }
        }
        if n.within(&["torch", "at", "c10"]) {
            return self.torch_function(n, args, at);
        }
        // Argument-dependent lookup: a function of a tensor.
        if args.iter().any(|a| matches!(a, Val::Tensor(_))) && n.parts.len() == 1 {
            return self.torch_function(n, args, at);
        }
        self.unsupported(at, format!("a call of `{}`", n.path()))
    }

    /// Functions of C++ and of mathematics.
    fn standard_function(
        &mut self,
        n: &Name,
        args: &mut Vec<Val>,
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Option<Val>> {
        let last = n.last();
        if let Some((f, count)) = builtin(last) {
            if let ([Val::List(items, _)], true) = (args.as_slice(), matches!(last, "min" | "max")) {
                let items = items.borrow().clone();
                let mut it = items.into_iter();
                let Some(mut best) = it.next() else { return self.fault(at, "the least of nothing") };
                for v in it {
                    let (Val::Num(a), Val::Num(b)) = (&best, &v) else {
                        return self.unsupported(at, format!("`{last}` of these"));
                    };
                    let r = arith::builtin(f, &[a.clone(), b.clone()], None);
                    best = self.computed(r, at)?;
                }
                return Ok(Some(best));
            }
            let mut numbers = Vec::new();
            for a in args.iter() {
                match a {
                    Val::Num(n) => numbers.push(n.clone()),
                    Val::Tensor(_) => return Ok(None),
                    other => return self.unsupported(at, format!("`{last}` of a `{}`", other.ty())),
                }
            }
            if numbers.len() != count {
                return self
                    .rejected(at, format!("`{last}` takes {count} arguments, found {}", numbers.len()));
            }
            let as_type = match n.args() {
                Some([TemplateArg::Type(t)]) => match self.resolve(t, scope)? {
                    Ty::Scalar(s) => Some(s),
                    _ => None,
                },
                _ => forced(last),
            };
            if let ("min" | "max", None, [a, b]) = (last, as_type, numbers.as_slice())
                && n.within(&["std"])
                && a.scalar() != b.scalar()
            {
                let name = |v: &Number| v.scalar().map_or("?", Scalar::name);
                return self.rejected(
                    at,
                    format!("`std::{last}` of a `{}` and a `{}`: no matching function", name(a), name(b)),
                );
            }
            let r = arith::builtin(f, &numbers, as_type);
            return self.computed(r, at).map(Some);
        }
        let one = |args: &[Val]| match args.first() {
            Some(Val::Num(n)) => match n.to_scalar(Scalar::F64) {
                Some(Number::Float(v, _)) => Some((v, n.scalar() == Some(Scalar::F32))),
                _ => None,
            },
            _ => None,
        };
        let real: Option<fn(f64) -> f64> = match last {
            "round" | "roundf" | "lround" | "rint" | "nearbyint" => Some(f64::round),
            "trunc" | "truncf" => Some(f64::trunc),
            "tanh" | "tanhf" => Some(f64::tanh),
            "sin" | "sinf" => Some(f64::sin),
            "cos" | "cosf" => Some(f64::cos),
            "tan" | "tanf" => Some(f64::tan),
            "atan" | "atanf" => Some(f64::atan),
            "exp2" | "exp2f" => Some(f64::exp2),
            "log10" | "log10f" => Some(f64::log10),
            "log1p" | "log1pf" => Some(f64::ln_1p),
            "expm1" | "expm1f" => Some(f64::exp_m1),
            "cbrt" | "cbrtf" => Some(f64::cbrt),
            _ => None,
        };
        if let (Some(f), Some((v, single))) = (real, one(args)) {
            let s = if single || last.ends_with('f') { Scalar::F32 } else { Scalar::F64 };
            let v = Number::Float(f(v), Scalar::F64).to_scalar(s);
            return Ok(v.map(Val::Num));
        }
        let take = |args: &mut Vec<Val>, k: usize| -> Val {
            if k < args.len() { args.swap_remove(k) } else { Val::Void }
        };
        Ok(Some(match (last, args.len()) {
            ("isnan", 1) => Val::bool(one(args).is_some_and(|(v, _)| v.is_nan())),
            ("isinf", 1) => Val::bool(one(args).is_some_and(|(v, _)| v.is_infinite())),
            ("isfinite", 1) => Val::bool(one(args).is_some_and(|(v, _)| v.is_finite())),
            ("fmod" | "fmodf", 2) => match (one(args), one(&args[1..])) {
                (Some((a, x)), Some((b, y))) => {
                    let s = if x && y { Scalar::F32 } else { Scalar::F64 };
                    Number::Float(a % b, Scalar::F64).to_scalar(s).map(Val::Num).unwrap_or(Val::Void)
                }
                _ => return Ok(None),
            },
            ("move" | "forward" | "ref" | "cref" | "as_const" | "make_optional" | "make_shared", 1) => {
                take(args, 0)
            }
            ("to_string", 1) => {
                let v = take(args, 0);
                let text = match &v {
                    Val::Num(Number::Float(v, _)) => format!("{v:.6}"),
                    other => self.display(other, at)?,
                };
                Val::Str(text.into())
            }
            ("str" | "string", _) => {
                let mut text = String::new();
                for a in args.iter() {
                    text.push_str(&self.display(a, at)?);
                }
                Val::Str(text.into())
            }
            ("make_tuple" | "make_pair" | "forward_as_tuple", _) => Val::tuple(std::mem::take(args)),
            ("get", 1) => {
                let k = self.get_index(n, scope)?;
                match &args[0] {
                    Val::Tuple(items) | Val::List(items, _) => match items.borrow().get(k) {
                        Some(v) => v.clone(),
                        None => return self.rejected(at, format!("`std::get<{k}>` beyond the end")),
                    },
                    other => return self.unsupported(at, format!("`std::get` of a `{}`", other.ty())),
                }
            }
            ("accumulate", 3 | 4) | ("reduce", 3) => {
                let (Val::Ptr(a), Val::Ptr(b)) = (&args[0], &args[1]) else {
                    return self.unsupported(at, "this `std::accumulate`");
                };
                let items = self.pointer_range(&a.clone(), &b.clone(), at)?;
                let ty = args[2].ty();
                let op = match args.get(3) {
                    Some(Val::Opaque(n)) if &**n == "multiplies" => assay_host::Op::Mul,
                    None => assay_host::Op::Add,
                    Some(Val::Opaque(n)) if &**n == "plus" => assay_host::Op::Add,
                    Some(_) => return self.unsupported(at, "this `std::accumulate`"),
                };
                let mut sum = args[2].clone();
                for i in &items {
                    sum = self.binary(op, &sum, i, at)?;
                    sum = self.convert(&sum, &ty, at)?;
                }
                sum
            }
            ("Slice", _) => {
                let mut parts = vec![Val::Opaque("Slice".into())];
                parts.append(args);
                Val::tuple(parts)
            }
            ("multiplies" | "plus" | "runtime_error", _) => Val::Opaque(last.into()),
            ("begin" | "cbegin", 1) | ("end" | "cend", 1) => {
                let v = take(args, 0);
                return self.method(&v, last, None, Vec::new(), scope, at).map(Some);
            }
            ("size", 1) => {
                let v = take(args, 0);
                return self.method(&v, "size", None, Vec::new(), scope, at).map(Some);
            }
            ("fill", 3) => {
                let (Val::Ptr(a), Val::Ptr(b)) = (args[0].clone(), args[1].clone()) else {
                    return self.unsupported(at, "this `std::fill`");
                };
                let n = self.pointer_range(&a, &b, at)?.len();
                for k in 0..n {
                    let p = self.pointer_add(&a, &Val::int(k as i64), false, at)?;
                    self.write_pointer(&p, args[2].clone(), at)?;
                }
                Val::Void
            }
            ("printf" | "fprintf" | "puts" | "fflush", _) => {
                let text = match args.iter().find(|a| matches!(a, Val::Str(_))) {
                    Some(v) => self.display(&v.clone(), at)?,
                    None => String::new(),
                };
                if self.run.printed.len() < 1000 {
                    self.run.printed.push(text);
                }
                Val::i32(0)
            }
            ("exit" | "abort" | "_exit" | "terminate" | "quick_exit", _) => {
                return self.fault(at, format!("host code ends the process with `{last}`"));
            }
            ("getenv", 1) => Val::Ptr(Pointer::null(Ty::Scalar(Scalar::I8))),
            ("malloc", 1) | ("calloc", 2) => {
                let mut bytes = args[0].as_int();
                if let Some(n) = args.get(1).and_then(Val::as_int) {
                    bytes = bytes.and_then(|b| b.checked_mul(n));
                }
                let Some(bytes) = bytes.and_then(|b| u64::try_from(b).ok()) else {
                    return self.fault(at, "`malloc` of that many bytes");
                };
                let storage = self.allocate(bytes, None, at)?;
                if last == "calloc" {
                    storage.write(Contents::Written, |b| b.fill(0));
                }
                Val::Ptr(Pointer {
                    target: Target::Storage(storage, Device::Cpu),
                    offset: 0,
                    elem: Ty::Void,
                    is_const: false,
                })
            }
            ("free", 1) => Val::Void,
            ("memcpy", 3) => {
                self.copy_memory(&args[0].clone(), &args[1].clone(), &args[2].clone(), at)?;
                Val::Void
            }
            _ => return Ok(None),
        }))
    }

    fn status() -> Val {
        Val::i32(0)
    }

    /// Sets the variable that a pointer argument points to.
    fn store(&mut self, p: &Val, v: Val, at: u32) -> R<()> {
        match p {
            Val::Ptr(p) => {
                let p =
                    Pointer { elem: if p.elem == Ty::Void { Ty::Auto } else { p.elem.clone() }, ..p.clone() };
                self.write_pointer(&p, v, at)
            }
            other => self.unsupported(at, format!("a result in a `{}`", other.ty())),
        }
    }

    fn bytes_of(&mut self, v: &Val, what: &str, at: u32) -> R<u64> {
        match v.as_int().and_then(|n| u64::try_from(n).ok()) {
            Some(n) => Ok(n),
            None => self.fault(at, format!("`{what}` of that many bytes")),
        }
    }

    /// Options out of arguments, and what is left.
    pub fn split_options(args: Vec<Val>) -> (TensorOptions, Vec<Val>) {
        let mut o = TensorOptions::default();
        let mut rest = Vec::new();
        for a in args {
            match a {
                Val::Options(p) => {
                    o.dtype = p.dtype.or(o.dtype);
                    o.device = p.device.or(o.device);
                }
                Val::DType(d) => o.dtype = Some(d),
                Val::Device(d) => o.device = Some(d),
                other => rest.push(other),
            }
        }
        (o, rest)
    }
}

/// A template argument in a name expression.
pub(crate) fn spelling(m: &Meaning) -> String {
    match m {
        Meaning::Type(t) => t.to_string(),
        Meaning::Number(Number::Int(v, Scalar::Bool)) => (*v != 0).to_string(),
        Meaning::Number(Number::Int(v, _)) => v.to_string(),
        Meaning::Number(Number::Float(v, _)) => v.to_string(),
        Meaning::Number(_) => "0".to_owned(),
    }
}

/// Properties of the device that is presented: an H100.
pub(crate) fn attribute(field: &str) -> Option<i64> {
    Some(match field {
        "multiProcessorCount" | "MultiProcessorCount" => 132,
        "maxThreadsPerBlock" | "MaxThreadsPerBlock" => 1024,
        "maxThreadsPerMultiProcessor" | "MaxThreadsPerMultiProcessor" => 2048,
        "warpSize" | "WarpSize" => 32,
        "sharedMemPerBlock" | "MaxSharedMemoryPerBlock" => 48 << 10,
        "sharedMemPerBlockOptin" | "MaxSharedMemoryPerBlockOptin" => 227 << 10,
        "sharedMemPerMultiprocessor" | "MaxSharedMemoryPerMultiprocessor" => 228 << 10,
        "major" | "ComputeCapabilityMajor" => 9,
        "minor" | "ComputeCapabilityMinor" => 0,
        "l2CacheSize" | "L2CacheSize" => 50 << 20,
        "regsPerBlock" | "MaxRegistersPerBlock" => 65_536,
        "totalGlobalMem" => 80 << 30,
        _ => return None,
    })
}
