//! Host code to syntax tree: types, declarations, statements. Expressions are in `expression.rs`.
//!
//! Algorithm: recursive descent over preprocessed tokens without a symbol table. Whether a statement is a declaration
//! is tried out: a type, then a name, then what may follow one. `<` after a name opens template arguments where the
//! name is a member, is qualified by a library's namespace, or is a template of the file.
//!
//! What it misses: classes with members other than data, `goto`, coroutines, templates of templates.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use assay_host::fail::Fail;
use assay_host::items::Item;
use assay_host::lex::{Kind, Tok};

use crate::syntax::{
    Base, Declarator, Expr, Function, Init, Lambda, Name, Param, Part, Record, Stmt, Suffix, TemplateArg,
    TemplateParam, Type,
};

/// Nesting of statements and expressions together; keeps the stack small.
const MAX_NESTING: usize = 120;
/// Operators of one level in a row: the height of a tree that is walked by recursion.
pub(crate) const MAX_CHAIN: usize = 200;

/// What is known of a file's names before its functions are parsed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Types: records, aliases, template type parameters.
    pub types: BTreeSet<String>,
    /// Function templates and kernels that are templates.
    pub templates: BTreeSet<String>,
    /// See [`c_blocks`].
    pub c_blocks: Vec<Range<usize>>,
}

/// A reader of one token range.
pub(crate) struct Parser<'p, 'a> {
    pub toks: &'p [Tok<'a>],
    pub pairs: &'p [usize],
    pub i: usize,
    pub end: usize,
    pub known: &'p mut Known,
    /// How much of the current `>>` or `>>>` template brackets have used up.
    pub split: usize,
    nesting: usize,
}

const KEYWORDS: [&str; 30] = [
    "return",
    "delete",
    "throw",
    "goto",
    "else",
    "new",
    "case",
    "default",
    "if",
    "for",
    "while",
    "do",
    "switch",
    "break",
    "continue",
    "sizeof",
    "try",
    "catch",
    "using",
    "typedef",
    "operator",
    "this",
    "nullptr",
    "true",
    "false",
    "static_cast",
    "reinterpret_cast",
    "const_cast",
    "dynamic_cast",
    "co_await",
];

const BUILTIN_WORDS: [&str; 11] =
    ["unsigned", "signed", "long", "short", "int", "char", "double", "float", "bool", "void", "__int128"];

pub(crate) fn is_builtin_word(t: &str) -> bool {
    BUILTIN_WORDS.contains(&t)
}

impl<'p, 'a> Parser<'p, 'a> {
    pub fn new(
        toks: &'p [Tok<'a>],
        pairs: &'p [usize],
        range: Range<usize>,
        known: &'p mut Known,
    ) -> Parser<'p, 'a> {
        Parser { toks, pairs, i: range.start, end: range.end, known, split: 0, nesting: 0 }
    }

    pub fn peek(&self) -> Option<Tok<'a>> {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> Option<Tok<'a>> {
        let j = self.i.checked_add(ahead)?;
        if j < self.end { self.toks.get(j).copied() } else { None }
    }

    pub fn peek_is(&self, text: &str) -> bool {
        self.split == 0 && self.peek().is_some_and(|t| t.is(text))
    }

    pub fn next_is(&self, ahead: usize, text: &str) -> bool {
        self.peek_at(ahead).is_some_and(|t| t.is(text))
    }

    pub fn at(&self) -> u32 {
        self.peek()
            .or_else(|| self.toks.get(self.end).copied())
            .or_else(|| self.toks.last().copied())
            .map_or(0, |t| t.at)
    }

    pub fn take(&mut self, text: &str) -> bool {
        let there = self.peek_is(text);
        if there {
            self.i += 1;
        }
        there
    }

    pub fn expect(&mut self, text: &str) -> Result<(), Fail> {
        if self.take(text) {
            return Ok(());
        }
        let got = self.peek().map_or("the end".to_owned(), |t| format!("`{}`", t.text));
        Err(Fail::unsupported(self.at(), format!("{got} where `{text}` is expected")))
    }

    pub fn enter(&mut self) -> Result<(), Fail> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Fail::unsupported(self.at(), format!("code nested more than {MAX_NESTING} deep")));
        }
        Ok(())
    }

    pub fn leave(&mut self) {
        self.nesting = self.nesting.saturating_sub(1);
    }

    /// One past the bracket that closes the one here.
    pub fn closing(&self) -> Option<usize> {
        self.pairs.get(self.i).copied().filter(|&c| c > self.i && c <= self.end)
    }

    fn ident(&self) -> Option<&'a str> {
        self.peek().filter(|t| t.kind == Kind::Ident && self.split == 0).map(|t| t.text)
    }

    /// A type without a name after it; `None`, and nothing read, where none stands here.
    pub fn try_type(&mut self) -> Option<Type> {
        let start = (self.i, self.split);
        let t = self.type_inner();
        if t.is_none() {
            (self.i, self.split) = start;
        }
        t
    }

    /// A type that must be here.
    pub fn expect_type(&mut self) -> Result<Type, Fail> {
        let at = self.at();
        let got = self.peek().map_or("the end", |t| t.text);
        let what = format!("`{got}` where a type is expected");
        self.try_type().ok_or_else(|| Fail::unsupported(at, what))
    }

    fn type_inner(&mut self) -> Option<Type> {
        if self.nesting > MAX_NESTING {
            return None;
        }
        self.nesting += 1;
        let t = self.type_body();
        self.nesting -= 1;
        t
    }

    fn type_body(&mut self) -> Option<Type> {
        let at = self.at();
        let mut out = Type { at, base: Base::Auto, is_const: false, is_static: false, suffixes: Vec::new() };
        let mut words: Vec<&str> = Vec::new();
        let mut named = false;
        while let Some(t) = self.peek() {
            if self.split > 0 {
                break;
            }
            match t.text {
                "const" | "constexpr" => out.is_const = true,
                "static" => out.is_static = true,
                "volatile" | "inline" | "typename" | "struct" | "class" | "enum" | "extern" | "register"
                | "mutable" | "thread_local" | "__restrict__" | "__restrict" | "__host__" | "__device__"
                | "__forceinline__" | "__inline__" | "__grid_constant__" | "__global__" => {}
                _ if t.kind == Kind::Str && self.i > 0 && self.toks[self.i - 1].is("extern") => {}
                "[" if self.next_is(1, "[") && !named && words.is_empty() => {
                    // `[[maybe_unused]]`.
                    self.i = self.closing()?;
                    continue;
                }
                w if is_builtin_word(w) && !named => words.push(t.text),
                "auto" if !named && words.is_empty() => named = true,
                "decltype" if !named && words.is_empty() => {
                    self.i += 1;
                    if !self.take("(") {
                        return None;
                    }
                    let e = self.expr().ok()?;
                    if !self.take(")") {
                        return None;
                    }
                    out.base = Base::Decltype(Box::new(e));
                    named = true;
                    continue;
                }
                _ if (t.kind == Kind::Ident || t.is("::")) && !named && words.is_empty() => {
                    if KEYWORDS.contains(&t.text) {
                        return None;
                    }
                    out.base = Base::Name(self.type_name()?);
                    named = true;
                    continue;
                }
                _ => break,
            }
            self.i += 1;
        }
        if !named {
            if words.is_empty() {
                return None;
            }
            let ident = Arc::from(canonical(&words)?.as_str());
            out.base = Base::Name(Name { at, parts: vec![Part { ident, args: None }] });
        }
        self.suffixes(&mut out);
        // `void(int)` as a template argument.
        if self.peek_is("(") && self.i > 0 && words == ["void"] && !self.next_is(1, "*") {
            let close = self.closing()?;
            if self.toks.get(close).is_some_and(|t| t.text.starts_with('>') || t.is(",")) {
                self.i = close;
                out.base = Base::Function;
            }
        }
        Some(out)
    }

    /// Stars, references and their qualifiers.
    pub fn suffixes(&mut self, out: &mut Type) {
        while let Some(t) = self.peek() {
            if self.split > 0 {
                break;
            }
            match t.text {
                "*" => out.suffixes.push(Suffix::Pointer),
                "&" | "&&" => out.suffixes.push(Suffix::Reference),
                "const" | "__restrict__" | "__restrict" | "volatile" => {}
                _ => break,
            }
            self.i += 1;
        }
    }

    fn type_name(&mut self) -> Option<Name> {
        let at = self.at();
        let mut parts = Vec::new();
        self.take("::");
        loop {
            let ident = self.ident()?;
            self.i += 1;
            let args = if self.peek_is("<") { Some(self.template_args()?) } else { None };
            parts.push(Part { ident: Arc::from(ident), args });
            if parts.len() > 16 {
                return None;
            }
            if self.peek_is("::") && self.peek_at(1).is_some_and(|t| t.kind == Kind::Ident) {
                self.i += 1;
                self.take("template");
                continue;
            }
            return Some(Name { at, parts });
        }
    }

    fn closing_angle(&self) -> bool {
        self.peek().is_some_and(|t| {
            t.kind == Kind::Punct
                && t.text.len() > self.split
                && t.text.bytes().all(|b| b == b'>')
                && t.text.len() <= 3
        })
    }

    /// Uses up one `>`, which may be part of `>>`.
    fn close_angle(&mut self) {
        let len = self.peek().map_or(1, |t| t.text.len());
        self.split += 1;
        if self.split >= len {
            self.split = 0;
            self.i += 1;
        }
    }

    /// `<…>` from its bracket on; `None` where it is none.
    pub fn template_args(&mut self) -> Option<Vec<TemplateArg>> {
        let start = (self.i, self.split);
        let args = self.template_args_inner();
        if args.is_none() {
            (self.i, self.split) = start;
        }
        args
    }

    fn template_args_inner(&mut self) -> Option<Vec<TemplateArg>> {
        if !self.take("<") {
            return None;
        }
        let mut out = Vec::new();
        while !self.closing_angle() {
            let start = (self.i, self.split);
            let ty = self.try_type();
            if ty.is_some() {
                self.take("...");
            }
            let ends = |p: &Self| p.peek_is(",") || p.closing_angle();
            match ty {
                Some(t) if ends(self) => out.push(TemplateArg::Type(t)),
                _ => {
                    (self.i, self.split) = start;
                    let e = self.template_value().ok()?;
                    if !ends(self) {
                        return None;
                    }
                    out.push(TemplateArg::Value(e));
                }
            }
            if self.split == 0 && self.take(",") {
                continue;
            }
            if !self.closing_angle() {
                return None;
            }
        }
        self.close_angle();
        Some(out)
    }

    pub fn statements(&mut self) -> Result<Vec<Stmt>, Fail> {
        let mut out = Vec::new();
        while self.i < self.end {
            out.push(self.statement()?);
        }
        Ok(out)
    }

    fn statement(&mut self) -> Result<Stmt, Fail> {
        self.enter()?;
        let s = self.statement_inner();
        self.leave();
        s
    }

    pub fn block(&mut self) -> Result<Vec<Stmt>, Fail> {
        let at = self.at();
        if !self.peek_is("{") {
            return Err(Fail::unsupported(at, "a body without `{`"));
        }
        let close = self.closing().ok_or_else(|| Fail::invalid(at, "a `{` that is never closed"))?;
        let outer = self.end;
        self.i += 1;
        self.end = close - 1;
        let body = self.statements();
        self.end = outer;
        self.i = close;
        body
    }

    fn statement_inner(&mut self) -> Result<Stmt, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "a statement is missing")) };
        let at = t.at;
        if self.take(";") {
            return Ok(Stmt::Empty);
        }
        if self.peek_is("{") {
            return Ok(Stmt::Block(self.block()?));
        }
        if t.kind == Kind::Ident {
            match t.text {
                "if" => return self.if_statement(),
                "for" => return self.for_statement(),
                "while" => {
                    self.i += 1;
                    self.expect("(")?;
                    let cond = self.expr()?;
                    self.expect(")")?;
                    return Ok(Stmt::While(cond, Box::new(self.statement()?)));
                }
                "do" => {
                    self.i += 1;
                    let body = Box::new(self.statement()?);
                    self.expect("while")?;
                    self.expect("(")?;
                    let cond = self.expr()?;
                    self.expect(")")?;
                    self.expect(";")?;
                    return Ok(Stmt::DoWhile(body, cond));
                }
                "switch" => return self.switch_statement(),
                "return" => {
                    self.i += 1;
                    let value = if self.peek_is(";") { None } else { Some(self.initializer()?) };
                    self.expect(";")?;
                    return Ok(Stmt::Return(value, at));
                }
                "break" | "continue" => {
                    self.i += 1;
                    self.expect(";")?;
                    return Ok(if t.text == "break" { Stmt::Break } else { Stmt::Continue });
                }
                "using" => return self.using(),
                "typedef" => return self.typedef(),
                "try" => {
                    self.i += 1;
                    let body = self.block()?;
                    let mut handler = Vec::new();
                    while self.take("catch") {
                        let close = self.closing().ok_or_else(|| Fail::invalid(at, "`catch(`"))?;
                        self.i = close;
                        let h = self.block()?;
                        if handler.is_empty() {
                            handler = h;
                        }
                    }
                    return Ok(Stmt::Try(body, handler));
                }
                "struct" | "class" | "union" if self.record_here() => {
                    let r = self.record()?;
                    self.expect(";")?;
                    return Ok(Stmt::Record(Arc::new(r)));
                }
                "static_assert" => {
                    while self.i < self.end && !self.take(";") {
                        self.i = self.closing().unwrap_or(self.i + 1);
                    }
                    return Ok(Stmt::Empty);
                }
                "goto" | "asm" | "case" | "default" | "co_await" | "enum" | "template" => {
                    return Err(Fail::unsupported(at, format!("`{}`", t.text)));
                }
                _ => {}
            }
            if let Some(s) = self.declaration()? {
                return Ok(s);
            }
        }
        let e = self.expr()?;
        self.expect(";")?;
        Ok(Stmt::Expr(e))
    }

    fn record_here(&self) -> bool {
        (1..3).any(|k| self.next_is(k, "{")) || self.next_is(2, "final")
    }

    fn if_statement(&mut self) -> Result<Stmt, Fail> {
        self.i += 1;
        self.take("constexpr");
        self.expect("(")?;
        let mut init = None;
        if let Some(d) = self.condition_declaration()? {
            init = Some(Box::new(d));
        }
        let cond = self.expr()?;
        self.expect(")")?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.take("else") { Some(Box::new(self.statement()?)) } else { None };
        Ok(Stmt::If { init, cond, then, otherwise })
    }

    /// `if (init; cond)`: a declaration up to its `;`. A declaration that is itself the condition is read so that its
    /// variable is the condition.
    fn condition_declaration(&mut self) -> Result<Option<Stmt>, Fail> {
        let close = self.pairs.get(self.i.saturating_sub(1)).copied().unwrap_or(0);
        let mut depth = 0usize;
        let mut has_semicolon = false;
        for j in self.i..close.saturating_sub(1).min(self.end) {
            match self.toks[j].text {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => has_semicolon = true,
                _ => {}
            }
        }
        if !has_semicolon {
            return Ok(None);
        }
        match self.declaration()? {
            Some(d) => Ok(Some(d)),
            None => {
                let e = self.expr()?;
                self.expect(";")?;
                Ok(Some(Stmt::Expr(e)))
            }
        }
    }

    fn for_statement(&mut self) -> Result<Stmt, Fail> {
        let at = self.at();
        self.i += 1;
        self.expect("(")?;
        if let Some(s) = self.for_each(at)? {
            return Ok(s);
        }
        let init = if self.take(";") {
            Stmt::Empty
        } else if let Some(d) = self.declaration()? {
            d
        } else {
            let e = self.expr()?;
            self.expect(";")?;
            Stmt::Expr(e)
        };
        let cond = if self.peek_is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        let step = if self.peek_is(")") { None } else { Some(self.expr()?) };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        Ok(Stmt::For { init: Box::new(init), cond, step, body, at })
    }

    fn for_each(&mut self, at: u32) -> Result<Option<Stmt>, Fail> {
        let start = (self.i, self.split);
        let Some(ty) = self.try_type() else { return Ok(None) };
        let names = if self.peek_is("[") {
            self.binding_names()
        } else {
            self.ident().map(|n| {
                self.i += 1;
                vec![Arc::from(n)]
            })
        };
        match names {
            Some(names) if self.take(":") => {
                let range = self.initializer()?;
                self.expect(")")?;
                let body = Box::new(self.statement()?);
                Ok(Some(Stmt::ForEach { names, ty, range, body, at }))
            }
            _ => {
                (self.i, self.split) = start;
                Ok(None)
            }
        }
    }

    fn binding_names(&mut self) -> Option<Vec<Arc<str>>> {
        let close = self.closing()?;
        let mut names = Vec::new();
        self.i += 1;
        while self.i < close - 1 {
            names.push(Arc::from(self.ident()?));
            self.i += 1;
            if !self.take(",") {
                break;
            }
        }
        if self.i != close - 1 {
            return None;
        }
        self.i = close;
        Some(names)
    }

    fn switch_statement(&mut self) -> Result<Stmt, Fail> {
        let at = self.at();
        self.i += 1;
        self.expect("(")?;
        let e = self.expr()?;
        self.expect(")")?;
        if !self.peek_is("{") {
            return Err(Fail::unsupported(at, "a `switch` without `{`"));
        }
        let close = self.closing().ok_or_else(|| Fail::invalid(at, "a `{` that is never closed"))?;
        let outer = self.end;
        self.i += 1;
        self.end = close - 1;
        let mut arms: Vec<(Vec<Option<Expr>>, Vec<Stmt>)> = Vec::new();
        while self.i < self.end {
            if self.peek_is("case") || self.peek_is("default") {
                let label = if self.take("default") {
                    None
                } else {
                    self.i += 1;
                    Some(self.ternary()?)
                };
                self.expect(":")?;
                match arms.last_mut() {
                    Some((labels, body)) if body.is_empty() => labels.push(label),
                    _ => arms.push((vec![label], Vec::new())),
                }
                continue;
            }
            let s = self.statement()?;
            match arms.last_mut() {
                Some((_, body)) => body.push(s),
                None => return Err(Fail::unsupported(at, "a statement before the first `case`")),
            }
        }
        self.end = outer;
        self.i = close;
        Ok(Stmt::Switch(e, arms))
    }

    fn using(&mut self) -> Result<Stmt, Fail> {
        self.i += 1;
        if self.peek_is("namespace") {
            while self.i < self.end && !self.take(";") {
                self.i += 1;
            }
            return Ok(Stmt::Empty);
        }
        if self.peek_at(1).is_some_and(|t| t.is("=")) {
            let name = self.ident().unwrap_or("");
            self.i += 2;
            let ty = self.expect_type()?;
            self.expect(";")?;
            self.known.types.insert(name.to_owned());
            return Ok(Stmt::Using(Arc::from(name), ty));
        }
        // `using at::IntArrayRef;`
        let last = self.toks[self.i..self.end].iter().take_while(|t| !t.is(";")).last();
        if let Some(t) = last.filter(|t| t.text.starts_with(|c: char| c.is_ascii_uppercase())) {
            self.known.types.insert(t.text.to_owned());
        }
        while self.i < self.end && !self.take(";") {
            self.i += 1;
        }
        Ok(Stmt::Empty)
    }

    fn typedef(&mut self) -> Result<Stmt, Fail> {
        let at = self.at();
        self.i += 1;
        let ty = self.expect_type()?;
        let Some(name) = self.ident() else {
            return Err(Fail::unsupported(at, "this `typedef`"));
        };
        self.i += 1;
        self.expect(";")?;
        self.known.types.insert(name.to_owned());
        Ok(Stmt::Using(Arc::from(name), ty))
    }

    /// `struct S { fields };` from `struct` on, without the `;`.
    pub fn record(&mut self) -> Result<Record, Fail> {
        let at = self.at();
        self.i += 1;
        let name = self.ident().unwrap_or("");
        if !name.is_empty() {
            self.i += 1;
        }
        self.known.types.insert(name.to_owned());
        if !self.peek_is("{") {
            return Err(Fail::unsupported(at, format!("the record `{name}`")));
        }
        let close = self.closing().ok_or_else(|| Fail::invalid(at, "a `{` that is never closed"))?;
        let outer = self.end;
        self.i += 1;
        self.end = close - 1;
        let mut fields = Vec::new();
        while self.i < self.end {
            if (self.peek_is("public") || self.peek_is("private")) && self.next_is(1, ":") {
                self.i += 2;
                continue;
            }
            match self.declaration()? {
                Some(Stmt::Decl(list)) => fields.extend(list),
                _ => {
                    return Err(Fail::unsupported(
                        self.at(),
                        format!("a member of `{name}` that is no field"),
                    ));
                }
            }
        }
        self.end = outer;
        self.i = close;
        Ok(Record { name: Arc::from(name), fields })
    }

    /// A declaration, its `;` included; `None`, and nothing read, where none stands here.
    pub fn declaration(&mut self) -> Result<Option<Stmt>, Fail> {
        let start = (self.i, self.split);
        let at = self.at();
        let Some(ty) = self.try_type() else { return Ok(None) };
        if matches!(ty.base, Base::Auto) && self.peek_is("[") {
            let by_ref = ty.is_reference();
            let Some(names) = self.binding_names() else {
                return Err(Fail::unsupported(at, "this structured binding"));
            };
            let e = if self.take("=") {
                self.initializer()?
            } else {
                return Err(Fail::unsupported(at, "this structured binding"));
            };
            self.expect(";")?;
            return Ok(Some(Stmt::Bind(names, e, by_ref, at)));
        }
        // A function pointer: `void (*f)(int)`.
        let named = self.ident().is_some_and(|n| !KEYWORDS.contains(&n))
            && self.peek_at(1).is_some_and(|t| {
                matches!(t.text, "=" | ";" | "(" | "{" | "[" | ",") && t.kind == Kind::Punct
            });
        if !named {
            (self.i, self.split) = start;
            return Ok(None);
        }
        let mut base = ty.clone();
        base.suffixes.clear();
        let mut out = vec![self.declarator(ty)?];
        while self.take(",") {
            let mut t = base.clone();
            self.suffixes(&mut t);
            out.push(self.declarator(t)?);
        }
        self.expect(";")?;
        Ok(Some(Stmt::Decl(out)))
    }

    fn declarator(&mut self, ty: Type) -> Result<Declarator, Fail> {
        let at = self.at();
        let Some(name) = self.ident() else { return Err(Fail::unsupported(at, "this declarator")) };
        self.i += 1;
        let mut extents = Vec::new();
        while self.take("[") {
            extents.push(if self.peek_is("]") { None } else { Some(self.expr()?) });
            self.expect("]")?;
        }
        let init = if self.take("=") {
            Init::Copy(self.initializer()?)
        } else if self.peek_is("(") {
            self.i += 1;
            Init::Direct(self.list(")")?, false)
        } else if self.peek_is("{") {
            self.i += 1;
            Init::Direct(self.list("}")?, true)
        } else {
            Init::None
        };
        Ok(Declarator { name: Arc::from(name), at, ty, extents, init })
    }

    /// A parameter list between its parentheses; the closing one is read.
    pub fn params(&mut self) -> Result<Vec<Param>, Fail> {
        let mut out = Vec::new();
        if self.peek_is("void") && self.next_is(1, ")") {
            self.i += 1;
        }
        while !self.take(")") {
            out.push(self.param()?);
            if !self.take(",") && !self.peek_is(")") {
                return Err(Fail::unsupported(self.at(), "this parameter"));
            }
        }
        Ok(out)
    }

    fn param(&mut self) -> Result<Param, Fail> {
        let at = self.at();
        let mut ty = self.expect_type()?;
        self.take("...");
        let mut name = "";
        if let Some(n) = self.ident() {
            name = n;
            self.i += 1;
        } else if self.peek_is("(") {
            return Err(Fail::unsupported(at, "a parameter that is a function pointer"));
        }
        while self.peek_is("[") {
            self.i = self.closing().ok_or_else(|| Fail::invalid(at, "a `[` that is never closed"))?;
            ty.suffixes.push(Suffix::Pointer);
        }
        let default = if self.take("=") { Some(self.initializer()?) } else { None };
        Ok(Param { name: Arc::from(name), ty, default, at })
    }

    /// A parameter list that ends with the range.
    pub fn params_in(&mut self) -> Result<Vec<Param>, Fail> {
        let mut out = Vec::new();
        if self.peek_is("void") && self.i + 1 == self.end {
            return Ok(out);
        }
        while self.i < self.end {
            out.push(self.param()?);
            if !self.take(",") && self.i < self.end {
                return Err(Fail::unsupported(self.at(), "this parameter"));
            }
        }
        Ok(out)
    }

    /// The parameters inside `template<…>`, to the end of the range.
    pub fn template_params(&mut self) -> Result<Vec<TemplateParam>, Fail> {
        let mut out = Vec::new();
        while self.i < self.end {
            let at = self.at();
            let is_type = self.peek_is("typename") || self.peek_is("class");
            if self.peek_is("template") {
                return Err(Fail::unsupported(at, "a template template parameter"));
            }
            let mut pack = false;
            if is_type {
                self.i += 1;
                pack = self.take("...");
            } else {
                self.expect_type()?;
            }
            let name = self.ident().unwrap_or("");
            if !name.is_empty() {
                self.i += 1;
            }
            if is_type {
                self.known.types.insert(name.to_owned());
            }
            let default = if self.take("=") {
                let start = (self.i, self.split);
                match self.try_type() {
                    Some(t) if is_type && (self.i == self.end || self.peek_is(",")) => {
                        Some(TemplateArg::Type(t))
                    }
                    _ => {
                        (self.i, self.split) = start;
                        Some(TemplateArg::Value(self.template_value()?))
                    }
                }
            } else {
                None
            };
            out.push(TemplateParam { name: Arc::from(name), is_type, default, pack });
            if !self.take(",") && self.i < self.end {
                return Err(Fail::unsupported(self.at(), "this template parameter"));
            }
        }
        Ok(out)
    }

    /// `[…](…) -> T {…}`.
    pub fn lambda(&mut self) -> Result<Lambda, Fail> {
        let at = self.at();
        let close = self.closing().ok_or_else(|| Fail::invalid(at, "a `[` that is never closed"))?;
        self.i += 1;
        let mut by_ref = false;
        let mut captures = Vec::new();
        while self.i < close - 1 {
            if self.take("&") {
                by_ref = true;
            }
            if let Some(name) = self.ident() {
                self.i += 1;
                if self.take("=") {
                    captures.push((Arc::from(name), self.assignment()?));
                }
            } else {
                self.take("=");
            }
            if !self.take(",") && self.i < close - 1 {
                return Err(Fail::unsupported(self.at(), "this capture"));
            }
        }
        self.i = close;
        let params = if self.take("(") { self.params()? } else { Vec::new() };
        while self.peek_is("mutable") || self.peek_is("constexpr") || self.peek_is("noexcept") {
            self.i += 1;
        }
        let returns = if self.take("->") { Some(self.expect_type()?) } else { None };
        let body = self.block()?;
        Ok(Lambda { by_value: !by_ref, captures, params, returns, body })
    }
}

/// Reads a function item: its template parameters, parameters, result and body.
///
/// # Errors
/// `Unsupported` for what the parser does not have.
pub(crate) fn function(
    toks: &[Tok<'_>],
    pairs: &[usize],
    item: &Item,
    source: usize,
    known: &Known,
    with_body: bool,
) -> Result<Function, Fail> {
    let mut known = known.clone();
    let (Some(name_at), Some(params)) = (item.name, item.params.clone()) else {
        return Err(Fail::unsupported(toks[item.range.start].at, "this function"));
    };
    let template = match &item.template {
        Some(range) => Some(Parser::new(toks, pairs, range.clone(), &mut known).template_params()?),
        None => None,
    };
    let params = Parser::new(toks, pairs, params, &mut known).params_in()?;
    let head = item.template.as_ref().map_or(item.range.start, |t| t.end + 1);
    let returns = Parser::new(toks, pairs, head..name_at, &mut known).try_type();
    let body = match (&item.body, with_body) {
        (Some(range), true) => Some(Parser::new(toks, pairs, range.clone(), &mut known).statements()?),
        _ => None,
    };
    Ok(Function {
        name: Arc::from(toks[name_at].text),
        template,
        params,
        returns,
        body,
        at: toks[name_at].at,
        source,
        linkage_c: known.c_blocks.iter().any(|b| b.contains(&item.range.start)),
    })
}

/// The token ranges of `extern "C"` blocks and declarations.
pub(crate) fn c_blocks(toks: &[Tok<'_>], pairs: &[usize]) -> Vec<Range<usize>> {
    let c = |k: usize| toks[k].is("extern") && toks.get(k + 1).is_some_and(|t| t.kind == Kind::Str);
    let block = |k: usize| {
        let brace = k + 2;
        match toks.get(brace) {
            Some(t) if t.is("{") => k..pairs[brace].max(brace),
            _ => k..k + 3,
        }
    };
    (0..toks.len()).filter(|k| c(*k)).map(block).collect()
}

/// Joins `unsigned long int` and its permutations to one spelling.
fn canonical(words: &[&str]) -> Option<String> {
    let count = |w: &str| words.iter().filter(|x| **x == w).count();
    let (u, l, h) = (count("unsigned"), count("long"), count("short"));
    let rest: Vec<&str> =
        words.iter().copied().filter(|w| !matches!(*w, "unsigned" | "signed" | "long" | "short")).collect();
    let sign = if u > 0 { "unsigned " } else { "" };
    Some(match (rest.first().copied(), l, h) {
        (None | Some("int"), 0, 0) => format!("{sign}int"),
        (None | Some("int"), _, 0) => format!("{sign}long long"),
        (None | Some("int"), 0, _) => format!("{sign}short"),
        (Some("char"), 0, 0) => format!("{sign}char"),
        (Some("double"), 1, 0) => "double".to_owned(),
        (Some(w), 0, 0) if u == 0 && rest.len() == 1 => w.to_owned(),
        _ => return None,
    })
}
