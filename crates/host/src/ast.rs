//! The syntax tree of host code: what the parser leaves and the interpreter runs.

use crate::types::{Elem, Scalar, Ty};

/// An expression, the byte offset to blame, and the height of its tree (bounded by the parser).
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub at: u32,
    pub height: u16,
    pub node: Node,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the operators' names")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    LogicalAnd,
    LogicalOr,
    Comma,
}

/// A unary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the operators' names")]
pub enum Unary {
    Plus,
    Minus,
    Not,
    BitNot,
}

/// Mathematical functions that host code may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the functions' names")]
pub enum Builtin {
    Min,
    Max,
    Abs,
    Ceil,
    Floor,
    Sqrt,
    Rsqrt,
    Exp,
    Log,
    Log2,
    Pow,
}

/// Where an assignment lands.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Slot(usize),
    /// A component of a `dim3`.
    Field(usize, usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Int(i128, Scalar),
    Float(f64, Scalar),
    Null,
    /// A variable, and its declared type where that is a scalar.
    Slot(usize, Option<Scalar>),
    Field(Box<Expr>, usize),
    Unary(Unary, Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `&pointer[index]`.
    Element(Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `place = value`, or `place op= value`; `post` is `i++`.
    Assign {
        place: Place,
        op: Option<Op>,
        value: Box<Expr>,
        post: bool,
    },
    Cast(Ty, Box<Expr>),
    Dim3(Vec<Expr>),
    Call(usize, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>, Option<Scalar>),
    /// `scratch<T>(n)`, with the variable it initialises.
    Scratch {
        elem: Elem,
        len: Box<Expr>,
        name: String,
    },
    /// `cudaMemset(pointer, value, bytes)`.
    Memset(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A runtime call that changes nothing here.
    Ignored,
    Assert(Box<Expr>),
}

/// A kernel as launched: its name expression and the types of its parameters, where they are known.
#[derive(Clone, Debug)]
pub(crate) struct KernelRef {
    pub name: String,
    pub params: Vec<Option<Ty>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Empty,
    Decl { slot: usize, ty: Ty, init: Option<Expr>, at: u32 },
    Expr(Expr),
    Block(Vec<Stmt>),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    For { init: Box<Stmt>, cond: Option<Expr>, step: Option<Expr>, body: Box<Stmt>, at: u32 },
    Return(Option<Expr>, u32),
    Break,
    Continue,
    Launch { kernel: KernelRef, grid: Expr, block: Expr, shared: Option<Expr>, args: Vec<Expr>, at: u32 },
}

/// One parameter of a host function.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub name: String,
    pub ty: Ty,
    pub at: u32,
}

/// A host function, or one instance of a host function template.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// With its template arguments, `go<256>`.
    pub name: String,
    pub params: Vec<Param>,
    pub returns: Ty,
    /// Slots of a call's frame; the parameters come first.
    pub slots: usize,
    pub body: Vec<Stmt>,
    pub at: u32,
}

/// Everything that `launch` reaches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// `launch` is number 0.
    pub functions: Vec<Function>,
}
