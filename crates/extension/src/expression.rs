//! Expressions of host code (see `parse.rs`).

use std::sync::Arc;

use assay_host::fail::Fail;
use assay_host::lex::{Kind, Tok};
use assay_host::types::{Scalar, Value as Number};
use assay_host::vocabulary::{ADDITIVE, BINARY, COMPOUND, number};
use assay_host::{Op, Unary};

use crate::parse::{MAX_CHAIN, Parser, is_builtin_word};
use crate::syntax::{Base, Expr, Name, Node, Part, TemplateArg, Type};

/// Namespaces whose names may have template arguments.
const TEMPLATED_NAMESPACES: [&str; 6] = ["std", "torch", "at", "c10", "py", "pybind11"];

fn is_cast_word(t: &str) -> bool {
    matches!(t, "static_cast" | "reinterpret_cast" | "const_cast" | "dynamic_cast")
}

impl Parser<'_, '_> {
    /// A full expression, commas included.
    pub fn expr(&mut self) -> Result<Expr, Fail> {
        let mut left = self.assignment()?;
        let mut count = 0;
        while self.peek_is(",") {
            let at = self.at();
            self.i += 1;
            count += 1;
            if count > MAX_CHAIN {
                return Err(Fail::unsupported(at, "an expression of that many parts"));
            }
            let right = self.assignment()?;
            left = Expr { at, node: Node::Binary(Op::Comma, Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    /// An expression or a braced list.
    pub fn initializer(&mut self) -> Result<Expr, Fail> {
        if self.peek_is("{") { self.braced() } else { self.expr_without_comma() }
    }

    fn expr_without_comma(&mut self) -> Result<Expr, Fail> {
        self.assignment()
    }

    fn braced(&mut self) -> Result<Expr, Fail> {
        let at = self.at();
        self.i += 1;
        Ok(Expr { at, node: Node::List(self.list("}")?) })
    }

    /// Comma-separated expressions or braced lists up to `closer`, which is read.
    pub fn list(&mut self, closer: &str) -> Result<Vec<Expr>, Fail> {
        let mut out = Vec::new();
        while !self.take(closer) {
            out.push(self.initializer()?);
            self.take("...");
            if !self.take(",") && !self.peek_is(closer) {
                return self.expect(closer).map(|()| out);
            }
        }
        Ok(out)
    }

    /// An expression without commas at its top.
    pub fn assignment(&mut self) -> Result<Expr, Fail> {
        self.enter()?;
        let e = self.assignment_inner();
        self.leave();
        e
    }

    fn assignment_inner(&mut self) -> Result<Expr, Fail> {
        if self.peek_is("throw") {
            let at = self.at();
            self.i += 1;
            let e = if self.peek_is(";") || self.peek_is(")") || self.peek_is(":") {
                None
            } else {
                Some(Box::new(self.assignment()?))
            };
            return Ok(Expr { at, node: Node::Throw(e) });
        }
        let left = self.ternary()?;
        let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct && self.split == 0) else {
            return Ok(left);
        };
        let op = match t.text {
            "=" => None,
            text => match COMPOUND.iter().find(|(p, _)| *p == text) {
                Some((_, op)) => Some(*op),
                None => return Ok(left),
            },
        };
        self.i += 1;
        let value = self.initializer()?;
        Ok(Expr { at: t.at, node: Node::Assign { target: Box::new(left), op, value: Box::new(value) } })
    }

    /// Everything that binds tighter than an assignment.
    pub fn ternary(&mut self) -> Result<Expr, Fail> {
        let cond = self.binary(0)?;
        if !self.peek_is("?") {
            return Ok(cond);
        }
        let at = self.at();
        self.i += 1;
        let a = self.assignment()?;
        self.expect(":")?;
        let b = self.assignment()?;
        Ok(Expr { at, node: Node::Ternary(Box::new(cond), Box::new(a), Box::new(b)) })
    }

    /// A value for a template parameter: no `>` at its top.
    pub fn template_value(&mut self) -> Result<Expr, Fail> {
        self.binary(ADDITIVE)
    }

    fn binary(&mut self, min: u8) -> Result<Expr, Fail> {
        let mut left = self.unary()?;
        let mut count = 0;
        while let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct && self.split == 0) {
            let Some(&(_, op, level)) = BINARY.iter().find(|(p, ..)| *p == t.text) else { break };
            if level <= min {
                break;
            }
            count += 1;
            if count > MAX_CHAIN {
                return Err(Fail::unsupported(t.at, format!("more than {MAX_CHAIN} operators in a row")));
            }
            self.i += 1;
            self.enter()?;
            let right = self.binary(level);
            self.leave();
            left = Expr { at: t.at, node: Node::Binary(op, Box::new(left), Box::new(right?)) };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Fail> {
        self.enter()?;
        let e = self.unary_inner();
        self.leave();
        e
    }

    fn unary_inner(&mut self) -> Result<Expr, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "an expression is missing")) };
        let at = t.at;
        if t.kind != Kind::Punct {
            return self.postfix();
        }
        let op = match t.text {
            "+" => Unary::Plus,
            "-" => Unary::Minus,
            "!" => Unary::Not,
            "~" => Unary::BitNot,
            "++" | "--" => {
                self.i += 1;
                let target = Box::new(self.unary()?);
                let op = if t.text == "++" { Op::Add } else { Op::Sub };
                return Ok(Expr { at, node: Node::Step { op, post: false, target } });
            }
            "&" => {
                self.i += 1;
                return Ok(Expr { at, node: Node::Address(Box::new(self.unary()?)) });
            }
            "*" => {
                self.i += 1;
                return Ok(Expr { at, node: Node::Deref(Box::new(self.unary()?)) });
            }
            "(" => {
                if let Some(ty) = self.cast() {
                    let e = self.unary()?;
                    return Ok(Expr { at, node: Node::Cast(ty, Box::new(e)) });
                }
                return self.postfix();
            }
            _ => return self.postfix(),
        };
        self.i += 1;
        let e = self.unary()?;
        Ok(Expr { at, node: Node::Unary(op, Box::new(e)) })
    }

    /// `(type)` of a C-style cast, if one stands here and something to cast follows.
    fn cast(&mut self) -> Option<Type> {
        let start = (self.i, self.split);
        self.i += 1;
        let ty = self.try_type();
        let good = match &ty {
            Some(t) if self.peek_is(")") => {
                let sure = !t.suffixes.is_empty() || t.is_const || self.names_type(t);
                let follows = self.peek_at(1).is_some_and(|n| match n.kind {
                    Kind::Punct => matches!(n.text, "(" | "-" | "*" | "&" | "!" | "~" | "+" | "::"),
                    Kind::Directive => false,
                    _ => true,
                });
                sure && follows
            }
            _ => false,
        };
        if good {
            self.i += 1;
            return ty;
        }
        (self.i, self.split) = start;
        None
    }

    /// Whether a type without stars can be nothing else.
    fn names_type(&self, t: &Type) -> bool {
        match &t.base {
            Base::Name(n) => {
                let last = n.last();
                assay_host::types::scalar_named(last).is_some()
                    || assay_host::types::Elem::named(last).size.is_some()
                    || matches!(last, "void" | "Half" | "BFloat16" | "Tensor" | "ScalarType" | "cudaStream_t")
                    || n.plain().is_some_and(|p| self.known.types.contains(p) || p == "scalar_t")
            }
            Base::Decltype(_) => true,
            Base::Auto | Base::Function => false,
        }
    }

    fn postfix(&mut self) -> Result<Expr, Fail> {
        let mut e = self.primary()?;
        let mut count = 0;
        while let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct && self.split == 0) {
            count += 1;
            if count > MAX_CHAIN {
                return Err(Fail::unsupported(t.at, format!("more than {MAX_CHAIN} calls in a row")));
            }
            match t.text {
                "++" | "--" => {
                    self.i += 1;
                    let op = if t.text == "++" { Op::Add } else { Op::Sub };
                    e = Expr { at: t.at, node: Node::Step { op, post: true, target: Box::new(e) } };
                }
                "." | "->" => {
                    self.i += 1;
                    self.take("template");
                    let Some(name) = self.peek().filter(|t| t.kind == Kind::Ident) else {
                        return Err(Fail::unsupported(t.at, "this member"));
                    };
                    self.i += 1;
                    let args = if self.peek_is("<") { self.member_args() } else { None };
                    let part = Part { ident: Arc::from(name.text), args };
                    e = Expr { at: name.at, node: Node::Member(Box::new(e), part) };
                }
                "[" => {
                    self.i += 1;
                    let index = self.initializer()?;
                    self.expect("]")?;
                    e = Expr { at: t.at, node: Node::Index(Box::new(e), Box::new(index)) };
                }
                "(" => {
                    self.i += 1;
                    let args = self.list(")")?;
                    e = Expr { at: e.at, node: Node::Call(Box::new(e), args) };
                }
                "{" if matches!(&e.node, Node::Name(n) if self.is_type_name(n)) => {
                    let Node::Name(n) = e.node else { break };
                    let ty = named(n);
                    self.i += 1;
                    e = Expr { at: e.at, node: Node::Construct(ty, self.list("}")?, true) };
                }
                "<<<" => {
                    self.i += 1;
                    let config = self.launch_config()?;
                    self.expect("(")?;
                    let args = self.list(")")?;
                    e = Expr { at: e.at, node: Node::Launch { kernel: Box::new(e), config, args } };
                }
                _ => break,
            }
        }
        Ok(e)
    }

    /// The settings of a launch up to `>>>`, which may be lexed as `>>` and `>`.
    fn launch_config(&mut self) -> Result<Vec<Expr>, Fail> {
        let mut out = Vec::new();
        loop {
            out.push(self.initializer()?);
            if self.take(",") {
                continue;
            }
            if self.take(">>>") {
                return Ok(out);
            }
            if self.peek_is(">>") && self.next_is(1, ">") {
                self.i += 2;
                return Ok(out);
            }
            return self.expect(">>>").map(|()| out);
        }
    }

    /// Template arguments after a member: `(` must follow.
    fn member_args(&mut self) -> Option<Vec<TemplateArg>> {
        let start = (self.i, self.split);
        let args = self.template_args();
        if args.is_some() && self.peek_is("(") {
            return args;
        }
        (self.i, self.split) = start;
        None
    }

    /// A name that only a type can have, so that braces after it construct one.
    fn is_type_name(&self, n: &Name) -> bool {
        let last = n.last();
        n.args().is_some()
            || n.within(&TEMPLATED_NAMESPACES)
            || matches!(last, "dim3")
            || assay_host::types::scalar_named(last).is_some()
            || assay_host::types::Elem::named(last).size.is_some()
            || self.known.types.contains(last)
    }

    fn primary(&mut self) -> Result<Expr, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "an expression is missing")) };
        let at = t.at;
        let leaf = |node| Ok(Expr { at, node });
        match t.kind {
            Kind::Number => {
                self.i += 1;
                let v = number(t.text).map_err(|e| match e.legal {
                    true => Fail::unsupported(at, e.what),
                    false => Fail::invalid(at, e.what),
                })?;
                leaf(Node::Number(v))
            }
            Kind::Str | Kind::Spelled => {
                let text = self.strings()?;
                leaf(Node::Str(Arc::from(text.as_str())))
            }
            Kind::Char => {
                self.i += 1;
                let text = unquote(t.text).ok_or_else(|| Fail::unsupported(at, "this character"))?;
                let c = text.chars().next().map_or(0, u32::from);
                leaf(Node::Number(Number::Int(i128::from(c), Scalar::I8)))
            }
            Kind::Pasted => Err(Fail::unsupported(at, format!("the macro `{}`, which uses `##`", t.text))),
            Kind::Directive => Err(Fail::unsupported(at, "a directive")),
            Kind::Punct => match t.text {
                "(" => {
                    self.i += 1;
                    let e = self.expr()?;
                    self.expect(")")?;
                    Ok(e)
                }
                "{" => self.braced(),
                "[" => {
                    let l = self.lambda()?;
                    leaf(Node::Lambda(Arc::new(l)))
                }
                "::" => {
                    self.i += 1;
                    self.name()
                }
                other => Err(Fail::unsupported(at, format!("`{other}` where a value is expected"))),
            },
            Kind::Ident => self.word(t),
        }
    }

    fn word(&mut self, t: Tok<'_>) -> Result<Expr, Fail> {
        let at = t.at;
        let leaf = |node| Ok(Expr { at, node });
        match t.text {
            "true" | "false" => {
                self.i += 1;
                leaf(Node::Number(Number::bool(t.text == "true")))
            }
            "nullptr" | "NULL" => {
                self.i += 1;
                leaf(Node::Null)
            }
            "sizeof" => self.size_of(at),
            "new" => {
                self.i += 1;
                let ty = self.expect_type()?;
                let count = if self.take("[") {
                    let e = self.expr()?;
                    self.expect("]")?;
                    Some(Box::new(e))
                } else {
                    return Err(Fail::unsupported(at, "`new` of a single object"));
                };
                if self.take("(") {
                    self.expect(")")?;
                }
                leaf(Node::New(ty, count))
            }
            "delete" => {
                self.i += 1;
                if self.take("[") {
                    self.expect("]")?;
                }
                let e = self.unary_of_delete()?;
                leaf(Node::Delete(Box::new(e)))
            }
            w if is_cast_word(w) => {
                self.i += 1;
                let Some(mut args) = self.template_args() else {
                    return Err(Fail::unsupported(at, format!("this `{w}`")));
                };
                self.expect("(")?;
                let e = self.expr()?;
                self.expect(")")?;
                match args.pop() {
                    Some(TemplateArg::Type(ty)) => leaf(Node::Cast(ty, Box::new(e))),
                    _ => Err(Fail::unsupported(at, format!("this `{w}`"))),
                }
            }
            w if is_builtin_word(w) || w == "typename" || w == "decltype" || w == "const" => {
                let ty = self.expect_type()?;
                if self.take("(") {
                    let args = self.list(")")?;
                    return leaf(Node::Construct(ty, args, false));
                }
                if self.take("{") {
                    let args = self.list("}")?;
                    return leaf(Node::Construct(ty, args, true));
                }
                Err(Fail::unsupported(at, format!("`{w}` in an expression")))
            }
            "operator" | "co_await" | "typeid" | "noexcept" | "alignof" | "dynamic_cast" => {
                Err(Fail::unsupported(at, format!("`{}`", t.text)))
            }
            _ => self.name(),
        }
    }

    fn unary_of_delete(&mut self) -> Result<Expr, Fail> {
        self.postfix()
    }

    fn size_of(&mut self, at: u32) -> Result<Expr, Fail> {
        self.i += 1;
        if self.peek_is("(") {
            let start = (self.i, self.split);
            self.i += 1;
            if let Some(ty) = self.try_type()
                && self.take(")")
            {
                return Ok(Expr { at, node: Node::SizeOfType(ty) });
            }
            (self.i, self.split) = start;
            self.i += 1;
            let e = self.expr()?;
            self.expect(")")?;
            return Ok(Expr { at, node: Node::SizeOfValue(Box::new(e)) });
        }
        Err(Fail::unsupported(at, "`sizeof` without parentheses"))
    }

    /// A possibly qualified name, with template arguments where it can have some.
    fn name(&mut self) -> Result<Expr, Fail> {
        let at = self.at();
        let mut parts: Vec<Part> = Vec::new();
        loop {
            let Some(t) = self.peek().filter(|t| t.kind == Kind::Ident) else {
                return Err(Fail::unsupported(self.at(), "this name"));
            };
            self.i += 1;
            let mut args = None;
            if self.peek_is("<") {
                let qualified = parts.first().is_some_and(|p| TEMPLATED_NAMESPACES.contains(&&*p.ident));
                let known = self.known.templates.contains(t.text)
                    || matches!(t.text, "min" | "max" | "get" | "make_tuple" | "vector" | "array" | "tuple");
                let start = (self.i, self.split);
                if qualified || known {
                    args = self.template_args();
                    // `a < b` of a name that only looks like a template's.
                    let follows = self.peek().is_none_or(|t| {
                        matches!(t.text, "(" | "<<<" | "{" | "::" | ")" | "," | ";" | ">" | ":")
                    });
                    if args.is_some() && !follows {
                        (self.i, self.split) = start;
                        args = None;
                    }
                }
            }
            parts.push(Part { ident: Arc::from(t.text), args });
            if parts.len() > 16 {
                return Err(Fail::unsupported(at, "a name of that many parts"));
            }
            if self.peek_is("::") && self.peek_at(1).is_some_and(|t| t.kind == Kind::Ident) {
                self.i += 1;
                self.take("template");
                continue;
            }
            return Ok(Expr { at, node: Node::Name(Name { at, parts }) });
        }
    }

    /// Adjacent string literals, joined.
    fn strings(&mut self) -> Result<String, Fail> {
        let mut out = String::new();
        while let Some(t) = self.peek() {
            match t.kind {
                Kind::Str => {
                    let text = unquote(t.text).ok_or_else(|| Fail::unsupported(t.at, "this string"))?;
                    out.push_str(&text);
                }
                Kind::Spelled => out.push_str(t.text),
                _ => break,
            }
            self.i += 1;
        }
        Ok(out)
    }
}

/// A type that is a name and no more.
pub(crate) fn named(n: Name) -> Type {
    Type { at: n.at, base: Base::Name(n), is_const: false, is_static: false, suffixes: Vec::new() }
}

/// The text of a string or character literal.
fn unquote(literal: &str) -> Option<String> {
    if let Some(open) = literal.find("R\"") {
        let rest = &literal[open + 2..];
        let paren = rest.find('(')?;
        let tail = format!("){}\"", &rest[..paren]);
        return rest[paren + 1..].strip_suffix(tail.as_str()).map(str::to_owned);
    }
    let quote = literal.find(['"', '\''])?;
    let mark = literal[quote..].chars().next()?;
    let inner = literal[quote + 1..].strip_suffix(mark)?;
    let mut out = String::new();
    let mut it = inner.chars();
    while let Some(c) = it.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match it.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            c @ ('\\' | '\'' | '"' | '?') => c,
            '\n' => continue,
            _ => return None,
        });
    }
    Some(out)
}
