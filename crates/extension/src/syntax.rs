//! The syntax tree of host code, names unresolved: what the parser leaves and the interpreter walks.
//!
//! Everything is owned and shared by `Arc`, so that a built module can be kept and used by several threads.

use std::sync::Arc;

use assay_host::types::Value as Number;
use assay_host::{Op, Unary};

/// A piece of a qualified name, with its template arguments where it has any.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub ident: Arc<str>,
    pub args: Option<Vec<TemplateArg>>,
}

/// `std::vector<int>`, `x`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub at: u32,
    pub parts: Vec<Part>,
}

impl Name {
    /// The last piece.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", |p| &p.ident)
    }

    /// The template arguments of the last piece.
    pub fn args(&self) -> Option<&[TemplateArg]> {
        self.parts.last().and_then(|p| p.args.as_deref())
    }

    /// The identifier, where the name is nothing more.
    pub fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part { ident, args: None }] => Some(ident),
            _ => None,
        }
    }

    /// With `::`, without template arguments.
    pub fn path(&self) -> String {
        self.parts.iter().map(|p| &*p.ident).collect::<Vec<_>>().join("::")
    }

    /// Whether the first piece is that namespace.
    pub fn within(&self, namespaces: &[&str]) -> bool {
        self.parts.len() > 1 && self.parts.first().is_some_and(|p| namespaces.contains(&&*p.ident))
    }
}

/// A template argument as written; what is a single name may turn out to be either.
#[derive(Clone, Debug)]
pub(crate) enum TemplateArg {
    Type(Type),
    Value(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    /// `*`; the flag says that the pointee is `const`.
    Pointer,
    Reference,
}

#[derive(Clone, Debug)]
pub(crate) enum Base {
    Auto,
    Name(Name),
    Decltype(Box<Expr>),
    /// `void(int)`: known to be a function, no more.
    Function,
}

/// A type as written.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub at: u32,
    pub base: Base,
    pub is_const: bool,
    pub is_static: bool,
    pub suffixes: Vec<Suffix>,
}

impl Type {
    /// As it is written, without qualifiers: `std::vector<torch::Tensor>`, `float`.
    pub fn spelled(&self) -> String {
        let mut out = match &self.base {
            Base::Name(n) => n.path(),
            Base::Auto | Base::Decltype(_) => "auto".to_owned(),
            Base::Function => "a function".to_owned(),
        };
        if let Base::Name(n) = &self.base
            && let Some([TemplateArg::Type(t), ..]) = n.args()
        {
            out = format!("{out}<{}>", t.spelled());
        }
        out.extend(self.suffixes.iter().filter(|s| **s == Suffix::Pointer).map(|_| '*'));
        out
    }

    pub fn is_reference(&self) -> bool {
        self.suffixes.last() == Some(&Suffix::Reference)
    }
}

/// An expression and the byte offset to blame.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub at: u32,
    pub node: Node,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Number(Number),
    Str(Arc<str>),
    Null,
    Name(Name),
    Unary(Unary, Box<Expr>),
    Deref(Box<Expr>),
    Address(Box<Expr>),
    /// `++x`, `x--`.
    Step {
        op: Op,
        post: bool,
        target: Box<Expr>,
    },
    Binary(Op, Box<Expr>, Box<Expr>),
    Assign {
        target: Box<Expr>,
        op: Option<Op>,
        value: Box<Expr>,
    },
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A cast, or `T(x)` with a keyword type; the flag says that bits are kept (`reinterpret_cast`).
    Cast(Type, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Member(Box<Expr>, Part),
    Index(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    /// `T{…}` and `T(…)` where `T` can only be a type.
    Construct(Type, Vec<Expr>, bool),
    Lambda(Arc<Lambda>),
    Launch {
        kernel: Box<Expr>,
        config: Vec<Expr>,
        args: Vec<Expr>,
    },
    SizeOfType(Type),
    SizeOfValue(Box<Expr>),
    New(Type, Option<Box<Expr>>),
    Delete(Box<Expr>),
    Throw(Option<Box<Expr>>),
}

/// One parameter of a function, a kernel or a lambda.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub name: Arc<str>,
    pub ty: Type,
    pub default: Option<Expr>,
    pub at: u32,
}

/// `[&](auto x) {…}`.
#[derive(Clone, Debug)]
pub(crate) struct Lambda {
    /// `[=]`, `[x]` or `[]`; otherwise `[&]`, `[&x]`.
    pub by_value: bool,
    /// `[n = expression]`.
    pub captures: Vec<(Arc<str>, Expr)>,
    pub params: Vec<Param>,
    pub returns: Option<Type>,
    pub body: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) enum Init {
    None,
    /// `= e`.
    Copy(Expr),
    /// `(…)` and `{…}`; the flag says braces.
    Direct(Vec<Expr>, bool),
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub name: Arc<str>,
    pub at: u32,
    pub ty: Type,
    /// Extents of an array; `None` for `[]`.
    pub extents: Vec<Option<Expr>>,
    pub init: Init,
}

/// A `struct` of host code: its fields in order.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub name: Arc<str>,
    pub fields: Vec<Declarator>,
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Empty,
    Decl(Vec<Declarator>),
    /// `auto [a, b] = e;`
    Bind(Vec<Arc<str>>, Expr, bool, u32),
    Expr(Expr),
    Block(Vec<Stmt>),
    If {
        init: Option<Box<Stmt>>,
        cond: Expr,
        then: Box<Stmt>,
        otherwise: Option<Box<Stmt>>,
    },
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    For {
        init: Box<Stmt>,
        cond: Option<Expr>,
        step: Option<Expr>,
        body: Box<Stmt>,
        at: u32,
    },
    ForEach {
        names: Vec<Arc<str>>,
        ty: Type,
        range: Expr,
        body: Box<Stmt>,
        at: u32,
    },
    /// Labels are `None` for `default`.
    Switch(Expr, Vec<(Vec<Option<Expr>>, Vec<Stmt>)>),
    Return(Option<Expr>, u32),
    Break,
    Continue,
    Using(Arc<str>, Type),
    Record(Arc<Record>),
    Try(Vec<Stmt>, Vec<Stmt>),
}

/// One template parameter.
#[derive(Clone, Debug)]
pub(crate) struct TemplateParam {
    pub name: Arc<str>,
    pub is_type: bool,
    pub default: Option<TemplateArg>,
    pub pack: bool,
}

/// A function with a body, or a prototype.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub name: Arc<str>,
    pub template: Option<Vec<TemplateParam>>,
    pub params: Vec<Param>,
    pub returns: Option<Type>,
    pub body: Option<Vec<Stmt>>,
    pub at: u32,
    /// Which text it stands in.
    pub source: usize,
    /// `extern "C"`: its parameters are no part of its symbol.
    pub linkage_c: bool,
}
