//! Host code to syntax tree: types, declarations and statements (expressions are in `expression.rs`).
//!
//! Algorithm: recursive descent over preprocessed tokens, with precedence climbing for binary operators. Names
//! are resolved while parsing: variables to frame slots, compile-time constants to their values, calls to
//! functions that are parsed on first use, once per set of template arguments. What is outside the subset is
//! `Unsupported` where it stands.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::ast::{Expr, KernelRef, Node, Stmt};
use crate::builder::{Builder, Name, TemplateArg, TemplateParam, constant_as, instance_name};
use crate::fail::Fail;
use crate::lex::{Kind, Tok};
use crate::types::{Elem, Ty, Value, scalar_named};

/// Operators in one expression, as the height of its tree.
pub(crate) const MAX_HEIGHT: u16 = 200;

/// A reader of one token range; names come from `scopes`, innermost last.
pub(crate) struct Parser<'p, 'a> {
    pub b: &'p mut Builder<'a>,
    pub i: usize,
    pub end: usize,
    pub scopes: Vec<BTreeMap<String, Name>>,
    pub slots: usize,
    /// How much of the current `>>` or `>>>` template brackets have used up.
    pub split: usize,
    /// The variable whose initialiser is being read, which names a scratch tensor.
    pub target: String,
}

impl<'p, 'a> Parser<'p, 'a> {
    pub fn new(b: &'p mut Builder<'a>, range: Range<usize>, scopes: Vec<BTreeMap<String, Name>>) -> Self {
        Parser { b, i: range.start, end: range.end, scopes, slots: 0, split: 0, target: String::new() }
    }

    pub fn peek(&self) -> Option<Tok<'a>> {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> Option<Tok<'a>> {
        let j = self.i.checked_add(ahead)?;
        if j < self.end { self.b.toks.get(j).copied() } else { None }
    }

    pub fn peek_is(&self, text: &str) -> bool {
        self.split == 0 && self.peek().is_some_and(|t| t.is(text))
    }

    pub fn toks_left(&self) -> usize {
        self.end.saturating_sub(self.i)
    }

    /// Offset of the current token, or of the last one at the end.
    pub fn at(&self) -> u32 {
        self.peek()
            .or_else(|| self.b.toks.get(self.end).copied())
            .or_else(|| self.b.toks.last().copied())
            .map_or(0, |t| t.at)
    }

    pub fn expect(&mut self, text: &str) -> Result<(), Fail> {
        if self.peek_is(text) {
            self.i += 1;
            return Ok(());
        }
        let got = self.peek().map_or("the end".to_owned(), |t| format!("`{}`", t.text));
        Err(Fail::invalid(self.at(), format!("expected `{text}`, found {got}")))
    }

    pub fn lookup(&self, name: &str) -> Option<Name> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).cloned()
    }

    pub fn declare(&mut self, name: &str, ty: Ty, constant: bool) -> usize {
        let slot = self.slots;
        self.slots += 1;
        if let Some(scope) = self.scopes.last_mut()
            && !name.is_empty()
        {
            scope.insert(name.to_owned(), Name::Slot { slot, ty, constant });
        }
        slot
    }

    /// True when the tokens at `ahead` name a type.
    pub fn is_type(&self, ahead: usize) -> bool {
        let Some(t) = self.peek_at(ahead) else { return false };
        if t.kind != Kind::Ident {
            return false;
        }
        if t.text == "std" && self.peek_at(ahead + 1).is_some_and(|t| t.is("::")) {
            return self.peek_at(ahead + 2).is_some_and(|t| scalar_named(t.text).is_some());
        }
        matches!(
            t.text,
            "const"
                | "constexpr"
                | "volatile"
                | "static"
                | "register"
                | "unsigned"
                | "signed"
                | "long"
                | "short"
                | "int"
                | "char"
                | "bool"
                | "float"
                | "double"
                | "void"
                | "auto"
                | "dim3"
                | "cudaStream_t"
                | "inline"
                | "__restrict__"
                | "extern"
        ) || match self.lookup(t.text) {
            Some(Name::Type(_)) => true,
            Some(_) => false,
            None => scalar_named(t.text).is_some() || Elem::named(t.text).size.is_some(),
        }
    }

    /// A type without its stars; the flag says `const` or `constexpr`.
    pub fn parse_type(&mut self) -> Result<(Ty, bool), Fail> {
        let at = self.at();
        let mut is_const = false;
        let mut words: Vec<&str> = Vec::new();
        let mut named: Option<String> = None;
        while let Some(t) = self.peek() {
            if t.kind != Kind::Ident {
                break;
            }
            match t.text {
                "const" | "constexpr" => is_const = true,
                "volatile" | "static" | "register" | "inline" | "extern" | "typename" | "__host__"
                | "__device__" | "__forceinline__" | "__inline__" | "__restrict__" | "__restrict"
                | "__grid_constant__" => {}
                "unsigned" | "signed" | "long" | "short" | "int" | "char" | "double" | "float" | "bool"
                | "void" | "auto"
                    if named.is_none() =>
                {
                    words.push(t.text);
                }
                _ if words.is_empty() && named.is_none() => {
                    let mut name = t.text.to_owned();
                    if self.peek_at(1).is_some_and(|t| t.is("::")) {
                        let Some(last) = self.peek_at(2) else { break };
                        // `std::size_t` and the like; other qualified names stay qualified.
                        name = if t.text == "std" {
                            last.text.to_owned()
                        } else {
                            format!("{name}::{}", last.text)
                        };
                        self.i += 2;
                    }
                    named = Some(match self.lookup(&name) {
                        Some(Name::Type(real)) => real,
                        _ => name,
                    });
                }
                _ => break,
            }
            self.i += 1;
        }
        let name = match named {
            Some(n) => n,
            None if words.is_empty() => {
                return Err(Fail::unsupported(at, "this construct (a type was expected)"));
            }
            None => canonical(&words)
                .ok_or_else(|| Fail::unsupported(at, format!("the type `{}`", words.join(" "))))?,
        };
        Ok((named_type(&name), is_const))
    }

    /// The stars after a type, with their qualifiers; the flag says that the pointer itself is `const`.
    pub fn pointers(&mut self, base: Ty) -> Result<(Ty, bool), Fail> {
        // Whether the pointee is const was written before the star, where `parse_type` has passed over it.
        let pointee_const = self.const_before();
        let mut ty = base;
        let mut is_const = false;
        while self.peek_is("*") {
            let at = self.at();
            self.i += 1;
            ty = match ty {
                Ty::Scalar(_) | Ty::Void | Ty::Other(_) => {
                    Ty::Ptr(Elem::named(&pointee_name(&ty)), pointee_const)
                }
                // `auto* p` takes the pointer's type from its initialiser.
                Ty::Auto => Ty::Auto,
                other => return Err(Fail::unsupported(at, format!("a pointer to `{other}`"))),
            };
            while let Some(t) = self.peek() {
                match t.text {
                    "const" => is_const = true,
                    "__restrict__" | "__restrict" | "volatile" => {}
                    _ => break,
                }
                self.i += 1;
            }
        }
        Ok((ty, is_const))
    }

    /// True when `const` stands among the type words just read.
    fn const_before(&self) -> bool {
        let mut j = self.i;
        while j > 0 {
            j -= 1;
            let Some(t) = self.b.toks.get(j) else { break };
            if t.kind != Kind::Ident && !t.is("::") {
                break;
            }
            if t.text == "const" || t.text == "constexpr" {
                return true;
            }
        }
        false
    }

    pub fn statements(&mut self) -> Result<Vec<Stmt>, Fail> {
        let mut out = Vec::new();
        while self.i < self.end {
            out.push(self.statement()?);
        }
        Ok(out)
    }

    fn statement(&mut self) -> Result<Stmt, Fail> {
        let at = self.at();
        self.b.enter(at)?;
        let s = self.statement_inner();
        self.b.leave();
        s
    }

    /// A statement in a scope of its own, as the branches of `if` and the bodies of loops have.
    fn scoped(&mut self) -> Result<Stmt, Fail> {
        self.scopes.push(BTreeMap::new());
        let s = self.statement();
        self.scopes.pop();
        s
    }

    fn block(&mut self) -> Result<Vec<Stmt>, Fail> {
        let at = self.at();
        let close = self.b.pairs.get(self.i).copied().filter(|&c| c > self.i && c <= self.end);
        let Some(close) = close else { return Err(Fail::invalid(at, "a `{` that is never closed")) };
        let outer = self.end;
        self.i += 1;
        self.end = close - 1;
        self.scopes.push(BTreeMap::new());
        let body = self.statements();
        self.scopes.pop();
        self.end = outer;
        self.i = close;
        body
    }

    fn statement_inner(&mut self) -> Result<Stmt, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "a statement is missing")) };
        let at = t.at;
        if t.kind == Kind::Punct {
            match t.text {
                ";" => {
                    self.i += 1;
                    return Ok(Stmt::Empty);
                }
                "{" => return Ok(Stmt::Block(self.block()?)),
                _ => {}
            }
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
                    return Ok(Stmt::While(cond, Box::new(self.scoped()?)));
                }
                "do" => {
                    self.i += 1;
                    let body = Box::new(self.scoped()?);
                    self.expect("while")?;
                    self.expect("(")?;
                    let cond = self.expr()?;
                    self.expect(")")?;
                    self.expect(";")?;
                    return Ok(Stmt::DoWhile(body, cond));
                }
                "return" => {
                    self.i += 1;
                    let value = if self.peek_is(";") { None } else { Some(self.expr()?) };
                    self.expect(";")?;
                    return Ok(Stmt::Return(value, at));
                }
                "break" | "continue" => {
                    self.i += 1;
                    self.expect(";")?;
                    return Ok(if t.text == "break" { Stmt::Break } else { Stmt::Continue });
                }
                "switch" | "goto" | "try" | "throw" | "delete" | "new" | "using" | "typedef" | "struct"
                | "class" | "enum" | "case" | "asm" | "union" | "static_assert" | "co_await" => {
                    return Err(Fail::unsupported(at, format!("`{}`", t.text)));
                }
                _ => {}
            }
            if self.is_launch() {
                return self.launch(at);
            }
            // `dim3(…)` and `float(…)` begin an expression; `dim3 g` a declaration.
            if self.is_type(0) && !self.peek_at(1).is_some_and(|t| t.is("(")) {
                return self.declaration();
            }
            if self.lookup(t.text).is_none() && self.peek_at(1).is_some_and(|n| n.kind == Kind::Ident) {
                return Err(Fail::unsupported(at, format!("the type `{}`", t.text)));
            }
        }
        let e = self.expr()?;
        self.expect(";")?;
        Ok(Stmt::Expr(e))
    }

    fn if_statement(&mut self) -> Result<Stmt, Fail> {
        self.i += 1;
        if self.peek_is("constexpr") {
            self.i += 1;
        }
        self.expect("(")?;
        if self.is_type(0) && !self.peek_at(1).is_some_and(|t| t.is("(")) {
            return Err(Fail::unsupported(self.at(), "a declaration in the condition of `if`"));
        }
        let cond = self.expr()?;
        self.expect(")")?;
        let then = Box::new(self.scoped()?);
        let otherwise = if self.peek_is("else") {
            self.i += 1;
            Some(Box::new(self.scoped()?))
        } else {
            None
        };
        Ok(Stmt::If(cond, then, otherwise))
    }

    fn for_statement(&mut self) -> Result<Stmt, Fail> {
        let at = self.at();
        self.i += 1;
        self.expect("(")?;
        self.scopes.push(BTreeMap::new());
        let init = if self.is_type(0) {
            self.declaration()?
        } else if self.peek_is(";") {
            self.i += 1;
            Stmt::Empty
        } else {
            let e = self.expr()?;
            self.expect(";")?;
            Stmt::Expr(e)
        };
        let cond = if self.peek_is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        let step = if self.peek_is(")") { None } else { Some(self.expr()?) };
        self.expect(")")?;
        let body = Box::new(self.scoped()?);
        self.scopes.pop();
        Ok(Stmt::For { init: Box::new(init), cond, step, body, at })
    }

    /// A declaration, its `;` included; several declarators make a block-free list.
    fn declaration(&mut self) -> Result<Stmt, Fail> {
        let (base, is_const) = self.parse_type()?;
        let start = self.i;
        let mut out = Vec::new();
        loop {
            // Each declarator has stars of its own, but the same `const`.
            let before = self.i;
            let (ty, pointer_const) = if before == start {
                self.pointers(base.clone())?
            } else {
                let stars = self.peek_is("*");
                let (ty, c) = self.pointers(base.clone())?;
                match ty {
                    Ty::Ptr(e, _) if stars => (Ty::Ptr(e, is_const), c),
                    other => (other, c),
                }
            };
            let constant = if matches!(ty, Ty::Ptr(..)) { pointer_const } else { is_const };
            out.push(self.declarator(ty, constant)?);
            if self.peek_is(",") {
                self.i += 1;
                continue;
            }
            self.expect(";")?;
            break;
        }
        if out.len() == 1 {
            return Ok(out.remove(0));
        }
        // Not a `Block`: the names stay visible after it. Execution is the same, since slots are resolved.
        Ok(Stmt::Block(out))
    }

    /// The name and the initialiser of one variable.
    fn declarator(&mut self, ty: Ty, constant: bool) -> Result<Stmt, Fail> {
        let at = self.at();
        if self.peek_is("&") || self.peek_is("&&") {
            return Err(Fail::unsupported(at, "a reference variable"));
        }
        let Some(name) = self.peek().filter(|t| t.kind == Kind::Ident) else {
            return Err(Fail::unsupported(at, "this declaration"));
        };
        if let Ty::Other(n) = &ty {
            return Err(Fail::unsupported(at, format!("a variable of type `{n}`")));
        }
        if ty == Ty::Void {
            return Err(Fail::invalid(at, format!("`{}` has type `void`", name.text)));
        }
        self.i += 1;
        if self.peek_is("[") {
            return Err(Fail::unsupported(at, format!("the array `{}`", name.text)));
        }
        self.target = name.text.to_owned();
        let init = self.initialiser(&ty, name.at)?;
        self.target.clear();
        let ty = match (&ty, &init) {
            (Ty::Auto, None) => {
                return Err(Fail::invalid(at, format!("`auto {}` has no initialiser", name.text)));
            }
            (Ty::Auto, Some(_)) => Ty::Auto,
            _ => ty,
        };
        let value = init.as_ref().filter(|_| constant).and_then(|e| constant_as(&self.b.program, e, &ty));
        let slot = self.declare(name.text, ty.clone(), constant);
        if let (Some(value), Some(scope)) = (value, self.scopes.last_mut()) {
            scope.insert(name.text.to_owned(), Name::Constant(value));
        }
        Ok(Stmt::Decl { slot, ty, init, at: name.at })
    }

    /// `= e`, `(e, …)`, `{e, …}` or nothing.
    fn initialiser(&mut self, ty: &Ty, at: u32) -> Result<Option<Expr>, Fail> {
        if self.peek_is("=") {
            self.i += 1;
            if self.peek_is("{") {
                return Err(Fail::unsupported(self.at(), "a braced initialiser after `=`"));
            }
            return Ok(Some(self.assignment()?));
        }
        let closer = if self.peek_is("(") {
            ")"
        } else if self.peek_is("{") {
            "}"
        } else if *ty == Ty::Dim3 {
            return Ok(Some(Expr { at, height: 1, node: Node::Dim3(Vec::new()) }));
        } else {
            return Ok(None);
        };
        self.i += 1;
        let args = self.list(closer)?;
        if *ty == Ty::Dim3 {
            return self.dim3(args, at).map(Some);
        }
        match <[Expr; 1]>::try_from(args) {
            Ok([e]) => Ok(Some(e)),
            Err(args) if args.is_empty() && closer == "}" => {
                Ok(Some(Expr { at, height: 1, node: Node::Int(0, crate::types::Scalar::I32) }))
            }
            Err(_) => Err(Fail::invalid(at, "a scalar takes one initialiser")),
        }
    }

    /// Reads a constant at file scope and gives the value of `name`.
    pub fn global_declaration(&mut self, name: &str) -> Result<Option<Value>, Fail> {
        let (base, is_const) = self.parse_type()?;
        if !is_const {
            return Ok(None);
        }
        loop {
            let (ty, _) = self.pointers(base.clone())?;
            let Some(t) = self.peek().filter(|t| t.kind == Kind::Ident) else { return Ok(None) };
            self.i += 1;
            if self.peek_is("[") {
                return Ok(None);
            }
            let init = self.initialiser(&ty, t.at)?;
            if t.text == name {
                let Some(init) = init else { return Ok(None) };
                let value = constant_as(&self.b.program, &init, &ty);
                return value.map(Some).ok_or_else(|| {
                    Fail::unsupported(t.at, format!("`{name}`, whose value is not constant"))
                });
            }
            if !self.peek_is(",") {
                return Ok(None);
            }
            self.i += 1;
        }
    }

    /// True when `path<…><<<` or `path<<<` stands here.
    fn is_launch(&self) -> bool {
        let mut j = self.i;
        let toks = &self.b.toks;
        while j < self.end && (toks[j].kind == Kind::Ident || toks[j].is("::")) {
            j += 1;
        }
        if j < self.end && toks[j].is("<") {
            let mut depth = 0usize;
            while j < self.end {
                let t = &toks[j];
                if t.is(";") || t.is("{") || t.is("<<<") {
                    return false;
                }
                let close = self.b.pairs.get(j).copied().unwrap_or(0);
                if close > j {
                    j = close;
                    continue;
                }
                if t.is("<") {
                    depth += 1;
                } else if t.is(">") || t.is(">>") {
                    depth = depth.saturating_sub(t.text.len());
                    if depth == 0 {
                        j += 1;
                        break;
                    }
                }
                j += 1;
            }
        }
        j < self.end && toks[j].is("<<<")
    }

    fn launch(&mut self, at: u32) -> Result<Stmt, Fail> {
        let kernel = self.kernel_ref()?;
        self.expect("<<<")?;
        let config = self.list(">>>")?;
        if config.len() < 2 || config.len() > 4 {
            return Err(Fail::invalid(
                at,
                format!("a launch takes 2 to 4 settings in `<<<>>>`, found {}", config.len()),
            ));
        }
        let mut config = config.into_iter();
        let (Some(grid), Some(block)) = (config.next(), config.next()) else {
            return Err(Fail::invalid(at, "a launch needs a grid and a block"));
        };
        let shared = config.next();
        self.expect("(")?;
        let args = self.list(")")?;
        self.expect(";")?;
        Ok(Stmt::Launch { kernel, grid, block, shared, args, at })
    }

    /// `path<args>`, which names a kernel of this file.
    fn kernel_ref(&mut self) -> Result<KernelRef, Fail> {
        let at = self.at();
        let mut last = "";
        while let Some(t) = self.peek() {
            if t.kind == Kind::Ident {
                last = t.text;
            } else if !t.is("::") {
                break;
            }
            self.i += 1;
        }
        let found = self.b.functions_named(last, true);
        let item = match found.as_slice() {
            [] => {
                return Err(Fail::unsupported(
                    at,
                    format!("a launch of `{last}`, which is no kernel of this file"),
                ));
            }
            [one] => *one,
            _ => {
                return Err(Fail::unsupported(
                    at,
                    format!("a launch of `{last}`, which is defined more than once"),
                ));
            }
        };
        let args = self.template_args(item, last, at)?;
        let base = format!("{}{last}", self.b.items[item].scope);
        let name = instance_name(&base, &args);
        let params = self.b.kernel_params(item, &args)?;
        self.b.kernels.insert(name.clone());
        Ok(KernelRef { name, params })
    }

    /// The explicit template arguments of a template item; a template without any is refused, because the name
    /// of the instance could not be told without deducing types.
    pub fn template_args(&mut self, item: usize, name: &str, at: u32) -> Result<Vec<TemplateArg>, Fail> {
        let template = self.b.items[item].template.clone();
        let Some(range) = template else {
            if self.peek_is("<") {
                return Err(Fail::invalid(at, format!("`{name}` is no template")));
            }
            return Ok(Vec::new());
        };
        let params = self.b.template_params(range)?;
        let mut args = Vec::new();
        if self.peek_is("<") {
            self.i += 1;
            while !self.closing_angle() {
                let param = params.get(args.len()).or_else(|| params.last().filter(|p| p.pack));
                let Some(param) = param else {
                    return Err(Fail::invalid(
                        at,
                        format!("`{name}` takes {} template arguments", params.len()),
                    ));
                };
                args.push(self.template_arg(param)?);
                if self.peek_is(",") {
                    self.i += 1;
                } else if !self.closing_angle() {
                    return Err(Fail::unsupported(self.at(), "this template argument"));
                }
            }
            self.close_angle();
        }
        if let Some(missing) = params.get(args.len()).filter(|p| p.default.is_none() && !p.pack) {
            return Err(Fail::unsupported(
                at,
                format!("`{name}` without its template argument `{}` (write it out)", missing.name),
            ));
        }
        // Defaults give the parameters their meaning, but stay out of the spelling only when all are defaults.
        for p in params.iter().skip(args.len()) {
            let Some(default) = p.default.clone() else { break };
            let mut scope = BTreeMap::new();
            for (p, a) in params.iter().zip(&args) {
                scope.insert(p.name.clone(), a.meaning.clone());
            }
            let mut q = Parser::new(self.b, default, vec![scope]);
            args.push(q.template_arg(p)?);
        }
        Ok(args)
    }

    /// The tokens of a type as a name expression has them, template parameters replaced.
    fn spelling(&self, range: Range<usize>) -> String {
        let mut out = String::new();
        for t in &self.b.toks[range] {
            if t.kind == Kind::Ident && out.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                out.push(' ');
            }
            match self.lookup(t.text) {
                Some(Name::Type(real)) => out.push_str(&real),
                _ => out.push_str(t.text),
            }
        }
        out
    }

    fn closing_angle(&self) -> bool {
        self.peek().is_none_or(|t| t.kind == Kind::Punct && t.text.as_bytes().iter().all(|&b| b == b'>'))
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

    pub fn template_arg(&mut self, param: &TemplateParam) -> Result<TemplateArg, Fail> {
        let at = self.at();
        if param.is_type {
            let start = self.i;
            let (ty, is_const) = self.parse_type()?;
            let (ty, _) = self.pointers(ty)?;
            if self.i == start {
                return Err(Fail::unsupported(at, "this template argument"));
            }
            let meaning =
                if is_const && !matches!(ty, Ty::Ptr(..)) { format!("const {ty}") } else { ty.to_string() };
            let text = self.spelling(start..self.i);
            return Ok(TemplateArg { meaning: Name::Type(meaning), text });
        }
        let e = self.template_value()?;
        let wanted = param.ty.clone().unwrap_or(Ty::Auto);
        let value = constant_as(&self.b.program, &e, &wanted).ok_or_else(|| {
            Fail::unsupported(
                at,
                format!("a value of template parameter `{}` that is not a compile-time constant", param.name),
            )
        })?;
        let text = match &value {
            Value::Int(v, crate::types::Scalar::Bool) => (*v != 0).to_string(),
            Value::Int(v, _) => v.to_string(),
            _ => return Err(Fail::unsupported(at, format!("a template argument of type `{}`", value.ty()))),
        };
        Ok(TemplateArg { text, meaning: Name::Constant(value) })
    }
}

/// `float` for the element of `float*`.
fn pointee_name(ty: &Ty) -> String {
    match ty {
        // The canonical spelling keeps `long` and `long long` apart from nothing: both have 64 bits.
        Ty::Scalar(s) => s.name().to_owned(),
        other => other.to_string(),
    }
}

/// Joins `unsigned long int` and its permutations to one spelling.
fn canonical(words: &[&str]) -> Option<String> {
    let count = |w: &str| words.iter().filter(|x| **x == w).count();
    let (u, s, l, h) = (count("unsigned"), count("signed"), count("long"), count("short"));
    let rest: Vec<&str> =
        words.iter().copied().filter(|w| !matches!(*w, "unsigned" | "signed" | "long" | "short")).collect();
    let sign = if u > 0 { "unsigned " } else { "" };
    if u + s > 1 || l > 2 || h > 1 || l * h > 0 || rest.len() > 1 {
        return None;
    }
    Some(match (rest.first().copied(), l, h) {
        (None | Some("int"), 0, 0) => format!("{sign}int"),
        (None | Some("int"), _, 0) => format!("{sign}long long"),
        (None | Some("int"), 0, _) => format!("{sign}short"),
        (Some("char"), 0, 0) if u + s > 0 => {
            if u > 0 {
                "unsigned char".into()
            } else {
                "signed char".into()
            }
        }
        (Some(w), 0, 0) if u + s == 0 => w.to_owned(),
        _ => return None,
    })
}

/// The type of a canonical name.
fn named_type(name: &str) -> Ty {
    match name {
        "void" => Ty::Void,
        "auto" => Ty::Auto,
        "dim3" => Ty::Dim3,
        "cudaStream_t" => Ty::Stream,
        _ => scalar_named(name).map_or_else(|| pointer_text(name), Ty::Scalar),
    }
}

/// A template type argument such as `const float*`, as it was spelled by [`Ty`]'s `Display`.
fn pointer_text(name: &str) -> Ty {
    match name.strip_suffix('*') {
        Some(elem) => {
            let (elem, constant) = elem.strip_prefix("const ").map_or((elem, false), |e| (e, true));
            Ty::Ptr(Elem::named(elem), constant)
        }
        None => Ty::Other(name.to_owned()),
    }
}
