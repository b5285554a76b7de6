//! Types and values of host code while it runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use assay_host::types::{Elem, Scalar, Value as Number};
use assay_tensor::DType;

use crate::syntax::Lambda;
use crate::tensor::{Device, Storage, Tensor};

/// A type of host code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    Void,
    Auto,
    Scalar(Scalar),
    /// `c10::Half`, `__half`, `c10::BFloat16`, `__nv_bfloat16`; the text is the spelling for a name expression.
    Half(DType, Arc<str>),
    /// `float4` and its relatives, `half2`.
    Lanes(Arc<str>),
    Tensor,
    Options,
    Dim3,
    DType,
    Device,
    /// `at::Scalar`.
    Number,
    Str,
    Ptr(Box<Ty>, bool),
    /// `std::vector`, `at::IntArrayRef` and everything else that is a list.
    List(Box<Ty>),
    /// `std::array` and C arrays: a list whose length is the type's.
    Array(Box<Ty>, u64),
    Tuple(Vec<Ty>),
    Optional(Box<Ty>),
    Stream,
    Event,
    /// `cudaError_t`, `cudaDeviceProp` and the like: nothing depends on the value.
    Opaque(Arc<str>),
    /// A `struct` of the file.
    Record(Arc<str>),
    Function,
    /// A packed accessor: element, dimensions, whether indices have 32 bits, spelling.
    Accessor(Box<Ty>, u64, bool, Arc<str>),
}

impl Ty {
    /// The element type of a pointer or tensor by the host crate's name.
    pub fn elem(&self) -> Elem {
        match self {
            Ty::Scalar(s) => Elem::named(s.name()),
            Ty::Half(d, _) => {
                Elem { name: self.to_string(), size: Some(d.size_bytes()), dtype: Some(*d), lanes: 1 }
            }
            Ty::Lanes(n) => Elem::named(n),
            Ty::Ptr(..) => Elem { name: self.to_string(), size: Some(8), dtype: None, lanes: 1 },
            other => Elem { name: other.to_string(), size: None, dtype: None, lanes: 1 },
        }
    }

    /// Bytes of a value of this type.
    pub fn size_bytes(&self) -> Option<u64> {
        match self {
            Ty::Ptr(..) | Ty::Stream | Ty::Event => Some(8),
            Ty::Dim3 => Some(12),
            Ty::DType => Some(1),
            Ty::Array(e, n) => e.size_bytes()?.checked_mul(*n),
            other => other.elem().size,
        }
    }

    /// The dtype that a tensor of such elements has.
    pub fn dtype(&self) -> Option<DType> {
        self.elem().dtype
    }

    pub fn of_dtype(d: DType) -> Ty {
        match d {
            DType::Bool => Ty::Scalar(Scalar::Bool),
            DType::F16 => Ty::Half(d, "c10::Half".into()),
            DType::BF16 => Ty::Half(d, "c10::BFloat16".into()),
            DType::F32 => Ty::Scalar(Scalar::F32),
            DType::F64 => Ty::Scalar(Scalar::F64),
            DType::I8 => Ty::Scalar(Scalar::I8),
            DType::U8 => Ty::Scalar(Scalar::U8),
            DType::I16 => Ty::Scalar(Scalar::I16),
            DType::U16 => Ty::Scalar(Scalar::U16),
            DType::I32 => Ty::Scalar(Scalar::I32),
            DType::U32 => Ty::Scalar(Scalar::U32),
            DType::I64 => Ty::Scalar(Scalar::I64),
            DType::U64 => Ty::Scalar(Scalar::U64),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Void => f.write_str("void"),
            Ty::Auto => f.write_str("auto"),
            Ty::Scalar(s) => f.write_str(s.name()),
            Ty::Half(_, n) | Ty::Lanes(n) | Ty::Opaque(n) | Ty::Record(n) | Ty::Accessor(_, _, _, n) => {
                f.write_str(n)
            }
            Ty::Tensor => f.write_str("torch::Tensor"),
            Ty::Options => f.write_str("torch::TensorOptions"),
            Ty::Dim3 => f.write_str("dim3"),
            Ty::DType => f.write_str("at::ScalarType"),
            Ty::Device => f.write_str("torch::Device"),
            Ty::Number => f.write_str("at::Scalar"),
            Ty::Str => f.write_str("std::string"),
            Ty::Ptr(e, c) => write!(f, "{}{e}*", if *c { "const " } else { "" }),
            Ty::List(e) => write!(f, "std::vector<{e}>"),
            Ty::Array(e, n) => write!(f, "std::array<{e}, {n}>"),
            Ty::Tuple(ts) => {
                f.write_str("std::tuple<")?;
                for (i, t) in ts.iter().enumerate() {
                    write!(f, "{}{t}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(">")
            }
            Ty::Optional(t) => write!(f, "std::optional<{t}>"),
            Ty::Stream => f.write_str("cudaStream_t"),
            Ty::Event => f.write_str("cudaEvent_t"),
            Ty::Function => f.write_str("a function"),
        }
    }
}

/// The scalar of a host type name.
pub(crate) fn dtype_name(d: DType) -> &'static str {
    // As `toString(ScalarType)` has it, which error messages of PyTorch use.
    match d {
        DType::Bool => "Bool",
        DType::F16 => "Half",
        DType::BF16 => "BFloat16",
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::I8 => "Char",
        DType::U8 => "Byte",
        DType::I16 => "Short",
        DType::U16 => "UInt16",
        DType::I32 => "Int",
        DType::U32 => "UInt32",
        DType::I64 => "Long",
        DType::U64 => "UInt64",
    }
}

/// A variable's value, shared by its references.
pub(crate) type Cell = Rc<RefCell<Val>>;
/// A list's elements.
pub(crate) type Items = Rc<RefCell<Vec<Val>>>;

/// What a pointer points into.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Null,
    /// A tensor's or an allocation's bytes.
    Storage(Storage, Device),
    /// A variable.
    Cell(Cell),
    /// The elements of a list.
    Items(Items),
    /// A `__device__` or `__constant__` variable, by name.
    Symbol(Arc<str>),
}

#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    pub target: Target,
    /// Bytes from the target's beginning.
    pub offset: i64,
    pub elem: Ty,
    pub is_const: bool,
}

impl Pointer {
    pub fn null(elem: Ty) -> Pointer {
        Pointer { target: Target::Null, offset: 0, elem, is_const: false }
    }

    /// Whether both point into one thing.
    pub fn same_target(&self, other: &Pointer) -> bool {
        match (&self.target, &other.target) {
            (Target::Null, Target::Null) => true,
            (Target::Storage(a, _), Target::Storage(b, _)) => a.same(b),
            (Target::Cell(a), Target::Cell(b)) => Rc::ptr_eq(a, b),
            (Target::Items(a), Target::Items(b)) => Rc::ptr_eq(a, b),
            (Target::Symbol(a), Target::Symbol(b)) => a == b,
            _ => false,
        }
    }
}

/// `torch::TensorOptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TensorOptions {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
}

/// A lambda and what it sees.
#[derive(Debug)]
pub(crate) struct Closure {
    pub lambda: Arc<Lambda>,
    /// Where it was written, for what it captures by reference. Weak: the lambda may live in that very scope.
    pub outer: Weak<Scope>,
    /// Copies, for what it captures by value.
    pub copies: Option<Rc<Scope>>,
    /// Which text it stands in.
    pub source: usize,
}

/// A kernel by name expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelName {
    /// Index of the kernel in the module.
    pub kernel: usize,
    /// Template arguments given, in order: spelling and meaning.
    pub args: Option<Vec<(String, Meaning)>>,
}

/// What a template parameter stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meaning {
    Type(Ty),
    Number(Number),
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Void,
    /// A variable that has none yet.
    Unset,
    /// `Int`, `Float` or `Dim3` of the host crate.
    Num(Number),
    Str(Rc<str>),
    /// `None` is the undefined tensor.
    Tensor(Option<Tensor>),
    Options(TensorOptions),
    DType(DType),
    Device(Device),
    Ptr(Pointer),
    /// A list and the type of its elements, where it is known.
    List(Items, Ty),
    Tuple(Rc<RefCell<Vec<Val>>>),
    /// `std::nullopt`.
    Nothing,
    Lambda(Rc<Closure>),
    /// Functions of the file by name, with explicit template arguments.
    Function(Arc<str>, Option<Vec<Meaning>>),
    Kernel(KernelName),
    Stream,
    Event,
    /// A value on which nothing depends: a guard, an error code, a device's properties.
    Opaque(Arc<str>),
    Record(Arc<str>, Rc<RefCell<BTreeMap<Arc<str>, Val>>>),
    Accessor(Tensor, Ty),
}

impl Val {
    pub fn int(v: i64) -> Val {
        Val::Num(Number::Int(i128::from(v), Scalar::I64))
    }

    pub fn i32(v: i32) -> Val {
        Val::Num(Number::int(v))
    }

    pub fn bool(v: bool) -> Val {
        Val::Num(Number::bool(v))
    }

    pub fn float(v: f64) -> Val {
        Val::Num(Number::Float(v, Scalar::F64))
    }

    pub fn list(items: Vec<Val>, ty: Ty) -> Val {
        Val::List(Rc::new(RefCell::new(items)), ty)
    }

    pub fn tuple(items: Vec<Val>) -> Val {
        Val::Tuple(Rc::new(RefCell::new(items)))
    }

    pub fn ints(items: impl IntoIterator<Item = u64>) -> Val {
        let items = items.into_iter().map(|v| Val::int(i64::try_from(v).unwrap_or(i64::MAX))).collect();
        Val::list(items, Ty::Scalar(Scalar::I64))
    }

    /// The integer it holds, from a number or `bool`.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Val::Num(n) => match n.to_scalar(Scalar::I64) {
                Some(Number::Int(v, _)) => i64::try_from(v).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Truth as `if` sees it.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Val::Num(n) => n.truth(),
            Val::Ptr(p) => Some(!matches!(p.target, Target::Null)),
            Val::Nothing => Some(false),
            Val::Opaque(_) => Some(false),
            Val::Str(_) | Val::Lambda(_) | Val::Tuple(_) => Some(true),
            Val::Tensor(_) | Val::List(..) => Some(true),
            _ => None,
        }
    }

    /// A copy that shares no list with this value.
    pub fn copied(&self) -> Val {
        match self {
            Val::List(items, ty) => Val::list(items.borrow().iter().map(Val::copied).collect(), ty.clone()),
            Val::Tuple(items) => Val::tuple(items.borrow().iter().map(Val::copied).collect()),
            Val::Record(name, fields) => {
                let fields = fields.borrow().iter().map(|(k, v)| (k.clone(), v.copied())).collect();
                Val::Record(name.clone(), Rc::new(RefCell::new(fields)))
            }
            other => other.clone(),
        }
    }

    /// The type as messages call it.
    pub fn ty(&self) -> Ty {
        match self {
            Val::Void | Val::Unset => Ty::Void,
            Val::Num(Number::Dim3(_)) => Ty::Dim3,
            Val::Num(n) => n.scalar().map_or(Ty::Void, Ty::Scalar),
            Val::Str(_) => Ty::Str,
            Val::Tensor(_) => Ty::Tensor,
            Val::Options(_) => Ty::Options,
            Val::DType(_) => Ty::DType,
            Val::Device(_) => Ty::Device,
            Val::Ptr(p) => Ty::Ptr(Box::new(p.elem.clone()), p.is_const),
            Val::List(_, t) => Ty::List(Box::new(t.clone())),
            Val::Tuple(items) => Ty::Tuple(items.borrow().iter().map(Val::ty).collect()),
            Val::Nothing => Ty::Optional(Box::new(Ty::Void)),
            Val::Lambda(_) | Val::Function(..) | Val::Kernel(_) => Ty::Function,
            Val::Stream => Ty::Stream,
            Val::Event => Ty::Event,
            Val::Opaque(n) => Ty::Opaque(n.clone()),
            Val::Record(n, _) => Ty::Record(n.clone()),
            Val::Accessor(_, t) => t.clone(),
        }
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    pub cell: Cell,
    pub ty: Ty,
    pub is_const: bool,
}

/// Names of one block.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub vars: RefCell<Vec<(Arc<str>, Var)>>,
    pub types: RefCell<Vec<(Arc<str>, Ty)>>,
    pub parent: Option<Rc<Scope>>,
}

impl Scope {
    pub fn child(parent: &Rc<Scope>) -> Rc<Scope> {
        Rc::new(Scope { parent: Some(Rc::clone(parent)), ..Scope::default() })
    }

    pub fn find(&self, name: &str) -> Option<Var> {
        let mut scope = Some(self);
        while let Some(s) = scope {
            if let Some((_, v)) = s.vars.borrow().iter().rev().find(|(n, _)| &**n == name) {
                return Some(v.clone());
            }
            scope = s.parent.as_deref();
        }
        None
    }

    pub fn find_type(&self, name: &str) -> Option<Ty> {
        let mut scope = Some(self);
        while let Some(s) = scope {
            if let Some((_, t)) = s.types.borrow().iter().rev().find(|(n, _)| &**n == name) {
                return Some(t.clone());
            }
            scope = s.parent.as_deref();
        }
        None
    }

    pub fn declare(&self, name: &Arc<str>, var: Var) {
        self.vars.borrow_mut().push((Arc::clone(name), var));
    }

    pub fn declare_type(&self, name: &Arc<str>, ty: Ty) {
        self.types.borrow_mut().push((Arc::clone(name), ty));
    }

    /// Every name seen from here with copies of the values, below the file's own scope.
    pub fn snapshot(&self) -> Rc<Scope> {
        let out = Scope::default();
        let mut chain = Vec::new();
        let mut scope = Some(self);
        let mut root = None;
        while let Some(s) = scope {
            if s.parent.is_none() {
                root = Some(s);
                break;
            }
            chain.push(s);
            scope = s.parent.as_deref();
        }
        let _ = root;
        for s in chain.into_iter().rev() {
            for (n, v) in s.vars.borrow().iter() {
                let value = v.cell.borrow().copied();
                let cell = Rc::new(RefCell::new(value));
                out.declare(n, Var { cell, ..v.clone() });
            }
            for (n, t) in s.types.borrow().iter() {
                out.declare_type(n, t.clone());
            }
        }
        Rc::new(out)
    }
}
