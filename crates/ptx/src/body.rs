//! Function bodies: scopes, labels, instructions, operands.
//!
//! Labels and names are local to the `{ }` that declares them and may shadow outer ones. Labels
//! may be used before they stand, so references are kept and resolved at the end of the body.

use std::collections::HashMap;

use crate::check::{self, Operands};
use crate::error::PtxError;
use crate::forms::isa;
use crate::isa::Op;
use crate::lexer::{Kind, Token};
use crate::mods::{Mods, Space, Ty};
use crate::module::{
    Base, BranchTable, CallTargets, Function, FunctionKind, Guard, Imm, Instr, Linkage, Loc, Operand,
    Prototype, RegId, Register, Site, Span, Special, SymbolRef, VarId, Variable,
};
use crate::parser::{Global, Parser};

type Result<T> = std::result::Result<T, PtxError>;

/// Deepest nesting of `{ }` in a function. Compilers nest two or three deep; a bound keeps name
/// look-up linear in the text.
const MAX_SCOPES: usize = 64;

/// Most digits that a register number of a `%r<N>` declaration has: those of `u64::MAX`.
const MAX_DIGITS: usize = 20;

/// What a name in a scope stands for.
#[derive(Debug, Clone, Copy)]
enum Name {
    /// A register that some instruction names.
    Reg(RegId),
    /// A register that is declared only.
    Declared(Ty),
    Variable(u32),
    Param(u32),
    Return(u32),
}

#[derive(Default)]
struct Scope<'a> {
    id: u32,
    names: HashMap<&'a str, Name>,
    /// `%r<10>`: prefix to count and type.
    ranges: HashMap<&'a str, (u64, Ty)>,
}

/// What a label stands for.
#[derive(Debug, Clone, Copy)]
enum Target {
    Instr(u32),
    Branch(u32),
    Calls(u32),
    Prototype(u32),
}

/// What a reference to a label must resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Label,
    Table,
    Signature,
}

/// A reference to a label.
struct Pending<'a> {
    instr: u32,
    operand: u32,
    name: Token<'a>,
    scope: u32,
    want: Want,
}

/// A function while its body is read.
pub(crate) struct Body<'a> {
    pub function: Function,
    scopes: Vec<Scope<'a>>,
    /// Parent of every scope ever opened, by its id; scope 0 is its own.
    parents: Vec<u32>,
    labels: HashMap<(u32, &'a str), Target>,
    pending: Vec<Pending<'a>>,
    /// Names in `.branchtargets`, by table: the scope and the labels.
    tables: Vec<(u32, Vec<Token<'a>>)>,
    loc: Option<Loc>,
    /// What a pragma says of the next instruction.
    used_bytes: Option<u32>,
    /// By site of inlined code, the outermost site of its latest inlining.
    outermost: HashMap<Site, Site>,
    /// Spans of the operands of the current instruction.
    spans: Vec<Span>,
}

/// What an identifier in an operand is.
enum Found {
    Reg(RegId),
    Special(Special),
    Symbol(SymbolRef),
    WarpSize,
}

impl<'a> Body<'a> {
    fn scope_id(&self) -> u32 {
        self.scopes.last().map_or(0, |s| s.id)
    }

    fn register(&mut self, depth: usize, name: &'a str, ty: Ty) -> RegId {
        // Fewer registers than bytes of text, which fit u32.
        let id = RegId(self.function.registers.len() as u32);
        self.function.registers.push(Register { name: name.to_string(), ty });
        self.scopes[depth].names.insert(name, Name::Reg(id));
        id
    }

    /// The register or symbol called `name` in the innermost scope that has one.
    fn lookup(&mut self, name: &'a str) -> Option<Found> {
        let digits = name.bytes().rev().take_while(|b| b.is_ascii_digit()).take(MAX_DIGITS).count();
        for depth in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[depth];
            if let Some(found) = scope.names.get(name) {
                return Some(match *found {
                    Name::Reg(id) => Found::Reg(id),
                    Name::Declared(ty) => Found::Reg(self.register(depth, name, ty)),
                    Name::Variable(i) => Found::Symbol(SymbolRef::Local(VarId(i))),
                    Name::Param(i) => Found::Symbol(SymbolRef::Param(i)),
                    Name::Return(i) => Found::Symbol(SymbolRef::Return(i)),
                });
            }
            if scope.ranges.is_empty() {
                continue;
            }
            // `%r12` is of `%r<13>` or, since a prefix may end in digits, of `%r1<3>`.
            for len in (1..=digits).rev() {
                let (prefix, number) = name.split_at(name.len() - len);
                let plain = len == 1 || !number.starts_with('0');
                if plain
                    && let Some((count, ty)) = scope.ranges.get(prefix)
                    && number.parse::<u64>().is_ok_and(|n| n < *count)
                {
                    let ty = *ty;
                    return Some(Found::Reg(self.register(depth, name, ty)));
                }
            }
        }
        None
    }
}

impl<'a> Parser<'a> {
    /// Reads the body of `function`, the opening brace being current.
    pub fn body(&mut self, function: Function) -> Result<Function> {
        let mut body = Body {
            function,
            scopes: vec![Scope::default()],
            parents: vec![0],
            labels: HashMap::new(),
            pending: Vec::new(),
            tables: Vec::new(),
            loc: None,
            used_bytes: None,
            outermost: HashMap::new(),
            spans: Vec::new(),
        };
        body.function.has_body = true;
        self.declare_params(&mut body)?;
        let open = self.expect(b'{')?;
        let close = loop {
            match self.tok.kind {
                Kind::Punct(b'{') => {
                    let tok = self.bump()?;
                    if body.scopes.len() >= MAX_SCOPES {
                        return Err(
                            self.unsupported(tok.span(), &format!("more than {MAX_SCOPES} nested scopes"))
                        );
                    }
                    // Fewer scopes than bytes of text, which fit u32.
                    let id = body.parents.len() as u32;
                    body.parents.push(body.scope_id());
                    body.scopes.push(Scope { id, ..Scope::default() });
                }
                Kind::Punct(b'}') => {
                    let tok = self.bump()?;
                    if body.scopes.len() == 1 {
                        break tok;
                    }
                    body.scopes.pop();
                }
                Kind::Punct(b';') => {
                    self.bump()?;
                }
                Kind::Punct(b'@') | Kind::Ident => self.statement(&mut body)?,
                Kind::Directive => self.body_directive(&mut body)?,
                Kind::Eof => {
                    let (line, _) = open.span().line_col(self.text);
                    return Err(self.expected(&format!("`}}` for the `{{` of line {line}")));
                }
                Kind::Number | Kind::Str | Kind::Punct(_) => return Err(self.expected("an instruction")),
            }
        };
        self.finish(body, close.span())
    }

    fn declare_params(&mut self, body: &mut Body<'a>) -> Result<()> {
        let lists = [(false, body.function.returns.clone()), (true, body.function.params.clone())];
        for (is_param, list) in lists {
            for (i, param) in list.iter().enumerate() {
                let name = &self.text[param.span.start as usize..param.span.end as usize];
                let meaning = match (param.register, is_param) {
                    (Some(reg), _) => Name::Reg(reg),
                    // Fewer parameters than bytes of text, which fit u32.
                    (None, true) => Name::Param(i as u32),
                    (None, false) => Name::Return(i as u32),
                };
                if name != "_" && body.scopes[0].names.insert(name, meaning).is_some() {
                    return Err(self.invalid(param.span, format!("`{name}` is already declared")));
                }
            }
        }
        Ok(())
    }

    fn body_directive(&mut self, body: &mut Body<'a>) -> Result<()> {
        let space = match self.tok.text {
            ".loc" => {
                let (site, inlined_at) = self.loc()?;
                // The compiler states a site before it refers to it.
                let outermost = inlined_at.map(|at| body.outermost.get(&at).copied().unwrap_or(at));
                match outermost {
                    Some(o) => body.outermost.insert(site, o),
                    None => body.outermost.remove(&site),
                };
                let Site { file, line, column } = site;
                body.loc = Some(Loc { file, line, column, inlined_at, outermost });
                return Ok(());
            }
            ".reg" => return self.registers(body),
            ".pragma" => {
                body.used_bytes = self.pragma()?.or(body.used_bytes);
                return Ok(());
            }
            ".extern" | ".visible" | ".weak" => {
                return Err(
                    self.unsupported(self.tok.span(), &format!("{} inside a function", self.tok.text))
                );
            }
            ".param" => Space::Param,
            ".local" => Space::Local,
            ".shared" => Space::Shared,
            ".global" => Space::Global,
            ".const" => Space::Const,
            _ => return Err(self.unknown_directive()),
        };
        self.bump()?;
        let mut out: Vec<(&'a str, Variable)> = Vec::new();
        self.variable_list(space, Linkage::Internal, true, &mut out)?;
        for (name, variable) in out {
            // Fewer variables than bytes of text, which fit u32.
            let meaning = Name::Variable(body.function.variables.len() as u32);
            let span = variable.span;
            body.function.variables.push(variable);
            self.declare_local(body, name, meaning, span)?;
        }
        Ok(())
    }

    fn declare_local(&self, body: &mut Body<'a>, name: &'a str, meaning: Name, span: Span) -> Result<()> {
        let last = body.scopes.len() - 1;
        if body.scopes[last].names.insert(name, meaning).is_some() {
            return Err(self.invalid(span, format!("`{name}` is already declared in this scope")));
        }
        Ok(())
    }

    /// `.reg .f32 %f<10>, a, b;`
    fn registers(&mut self, body: &mut Body<'a>) -> Result<()> {
        self.bump()?;
        let tok = self.tok;
        if tok.kind != Kind::Directive {
            return Err(self.expected("a type"));
        }
        let Some(ty) = isa().ty(&tok.text[1..]) else { return Err(self.unknown_directive()) };
        self.bump()?;
        loop {
            let name = self.ident("a register name")?;
            if self.eat(b'<')? {
                let count = self.integer("a number of registers")?;
                self.expect(b'>')?;
                let last = body.scopes.len() - 1;
                if body.scopes[last].ranges.insert(name.text, (count, ty)).is_some() {
                    let what = format!("`{}<…>` is already declared in this scope", name.text);
                    return Err(self.invalid(name.span(), what));
                }
            } else {
                self.declare_local(body, name.text, Name::Declared(ty), name.span())?;
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(())
    }

    /// A label or an instruction.
    fn statement(&mut self, body: &mut Body<'a>) -> Result<()> {
        let start = self.tok.start;
        let mut guard = None;
        if self.eat(b'@')? {
            let negated = self.eat(b'!')?;
            let name = self.ident("a predicate register")?;
            let reg = self.register(body, name)?;
            if body.function.reg_ty(reg) != Ty::Pred {
                return Err(
                    self.invalid(name.span(), format!("guard `{}` is not a .pred register", name.text))
                );
            }
            guard = Some(Guard { reg, negated });
            if self.tok.kind != Kind::Ident {
                return Err(self.expected("an opcode"));
            }
        }
        let opcode = self.bump()?;
        if self.at(b':') && guard.is_none() {
            self.bump()?;
            return self.label(body, opcode);
        }
        let resolved = match self.spellings.get(opcode.text) {
            Some(found) => *found,
            None => {
                let found = isa().resolve(opcode.text);
                self.spellings.insert(opcode.text, found);
                found
            }
        };
        let Some(resolved) = resolved else {
            // Not in the table, if it is an instruction at all: it must end somewhere.
            while !self.at(b';') {
                if matches!(self.tok.kind, Kind::Eof) {
                    return Err(self.expected("`;`"));
                }
                self.bump()?;
            }
            return Err(self.unsupported(opcode.span(), opcode.text));
        };
        let since = resolved.op.row().since;
        if (self.version.major, self.version.minor) < since {
            let Parser { version, .. } = self;
            let what = format!(
                "`{}` needs PTX ISA {}.{}, the module says {}.{}",
                opcode.text, since.0, since.1, version.major, version.minor
            );
            return Err(self.invalid(opcode.span(), what));
        }
        // Fewer instructions than bytes of text, which fit u32.
        let index = body.function.body.len() as u32;
        let operands = self.operands(body, resolved.op, index)?;
        let semi = self.expect(b';')?;
        let span = Span { start, end: semi.span().end };
        check::operands(&Operands {
            op: resolved.op,
            mods: &resolved.mods,
            types: &resolved.types,
            form: resolved.form,
            operands: &operands,
            function: &body.function,
            variables: &self.variables,
        })
        .map_err(|fault| match fault {
            check::Fault::Invalid { operand, what } => {
                let at = operand.and_then(|i| body.spans.get(i).copied()).unwrap_or(opcode.span());
                self.invalid(at, format!("`{}`: {what}", opcode.text))
            }
            check::Fault::Unsupported(what) => {
                self.unsupported(opcode.span(), format!("{} {what}", opcode.text).trim())
            }
        })?;
        body.function.body.push(Instr {
            guard,
            op: resolved.op,
            mods: resolved.mods,
            types: resolved.types,
            operands,
            span,
            spelling: opcode.span(),
            loc: body.loc,
            used_bytes: body.used_bytes.take().filter(|_| matches!(resolved.op, Op::Ld | Op::Ldu)),
        });
        Ok(())
    }

    /// What follows `name:`.
    fn label(&mut self, body: &mut Body<'a>, name: Token<'a>) -> Result<()> {
        if name.text.contains('.') {
            return Err(self.syntax(name.span(), format!("`{}` is not a label", name.text)));
        }
        let scope = body.scope_id();
        let target = match self.tok.text {
            ".branchtargets" => {
                self.bump()?;
                let mut names = Vec::new();
                loop {
                    names.push(self.ident("a label")?);
                    if !self.eat(b',')? {
                        break;
                    }
                }
                self.expect(b';')?;
                let index = body.tables.len() as u32;
                body.tables.push((scope, names));
                body.function
                    .branch_tables
                    .push(BranchTable { name: name.text.to_string(), targets: Vec::new() });
                Target::Branch(index)
            }
            ".calltargets" => {
                self.bump()?;
                let mut functions = Vec::new();
                loop {
                    let target = self.ident("a function name")?;
                    match self.globals.get(target.text) {
                        Some(Global::Function(id)) => functions.push(*id),
                        Some(Global::Variable(_)) | None => {
                            return Err(
                                self.invalid(target.span(), format!("unknown function `{}`", target.text))
                            );
                        }
                    }
                    if !self.eat(b',')? {
                        break;
                    }
                }
                self.expect(b';')?;
                let index = body.function.call_targets.len() as u32;
                body.function.call_targets.push(CallTargets { name: name.text.to_string(), functions });
                Target::Calls(index)
            }
            ".callprototype" => {
                self.bump()?;
                let index = body.function.prototypes.len() as u32;
                let prototype = self.prototype(name)?;
                body.function.prototypes.push(prototype);
                Target::Prototype(index)
            }
            _ => {
                let index = body.function.body.len() as u32;
                body.function.labels.push((name.text.to_string(), index));
                Target::Instr(index)
            }
        };
        if body.labels.insert((scope, name.text), target).is_some() {
            return Err(
                self.invalid(name.span(), format!("label `{}` stands twice in this scope", name.text))
            );
        }
        Ok(())
    }

    /// `(.param .b32 _) _ (.param .b64 _);`
    fn prototype(&mut self, label: Token<'a>) -> Result<Prototype> {
        let mut registers = Vec::new();
        let returns =
            if self.at(b'(') { self.params(FunctionKind::Device, &mut registers)? } else { Vec::new() };
        self.ident("`_`")?;
        let params =
            if self.at(b'(') { self.params(FunctionKind::Device, &mut registers)? } else { Vec::new() };
        let mut noreturn = false;
        while self.tok.kind == Kind::Directive {
            match self.tok.text {
                ".noreturn" => {
                    self.bump()?;
                    noreturn = true;
                }
                ".abi_preserve" | ".abi_preserve_control" => {
                    self.bump()?;
                    self.integer("an integer")?;
                }
                _ => return Err(self.unknown_directive()),
            }
        }
        self.expect(b';')?;
        Ok(Prototype { name: label.text.to_string(), returns, params, noreturn })
    }

    /// The operands of an instruction, up to but without the semicolon.
    fn operands(&mut self, body: &mut Body<'a>, op: Op, index: u32) -> Result<Vec<Operand>> {
        body.spans.clear();
        let mut operands = Vec::with_capacity(4);
        if op == Op::Call {
            self.call_operands(body, index, &mut operands)?;
            return Ok(operands);
        }
        if self.at(b';') {
            return Ok(operands);
        }
        loop {
            let start = self.tok.start;
            let want = match (op, operands.len()) {
                (Op::Bra, 0) => Some(Want::Label),
                (Op::BrxIdx, 1) => Some(Want::Table),
                _ => None,
            };
            let operand = match want {
                Some(want) => self.label_operand(body, want, index, operands.len())?,
                None => self.operand(body)?,
            };
            operands.push(operand);
            body.spans.push(Span { start, end: self.prev_end });
            if !self.eat(b',')? {
                return Ok(operands);
            }
        }
    }

    fn label_operand(
        &mut self,
        body: &mut Body<'a>,
        want: Want,
        instr: u32,
        operand: usize,
    ) -> Result<Operand> {
        let name = self.ident("a label")?;
        let scope = body.scope_id();
        // At most as many operands as bytes of text, which fit u32.
        body.pending.push(Pending { instr, operand: operand as u32, name, scope, want });
        Ok(Operand::Label(0))
    }

    /// `(returns), target, (args), signature`, everything but the target optional.
    fn call_operands(&mut self, body: &mut Body<'a>, index: u32, out: &mut Vec<Operand>) -> Result<()> {
        let start = self.tok.start;
        let mut returns = Vec::new();
        if self.at(b'(') {
            returns = self.call_list(body)?;
            self.expect(b',')?;
        }
        out.push(Operand::Vector(returns));
        body.spans.push(Span { start, end: self.prev_end });
        let start = self.tok.start;
        let target = self.operand(body)?;
        out.push(target);
        body.spans.push(Span { start, end: self.prev_end });
        let mut args = Vec::new();
        let mut comma = self.eat(b',')?;
        let start = self.tok.start;
        if comma && self.at(b'(') {
            args = self.call_list(body)?;
            comma = self.eat(b',')?;
        }
        out.push(Operand::Vector(args));
        body.spans.push(Span { start, end: self.prev_end });
        if comma {
            let start = self.tok.start;
            let signature = self.label_operand(body, Want::Signature, index, out.len())?;
            out.push(signature);
            body.spans.push(Span { start, end: self.prev_end });
        }
        Ok(())
    }

    fn call_list(&mut self, body: &mut Body<'a>) -> Result<Vec<Operand>> {
        self.expect(b'(')?;
        let mut list = Vec::new();
        while !self.at(b')') {
            if !list.is_empty() {
                self.expect(b',')?;
            }
            list.push(self.simple(body)?);
        }
        self.bump()?;
        Ok(list)
    }

    fn operand(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        match self.tok.kind {
            Kind::Punct(b'[') => self.address(body),
            Kind::Punct(b'{') => {
                self.bump()?;
                let mut elements = Vec::with_capacity(4);
                loop {
                    elements.push(self.simple(body)?);
                    if !self.eat(b',')? {
                        break;
                    }
                }
                self.expect(b'}')?;
                Ok(Operand::Vector(elements))
            }
            Kind::Punct(b'!') => {
                self.bump()?;
                let name = self.ident("a predicate register")?;
                Ok(Operand::NotReg(self.register(body, name)?))
            }
            Kind::Punct(b'(') => Err(self.unsupported(self.tok.span(), "a constant expression")),
            Kind::Ident | Kind::Number | Kind::Punct(b'-' | b'+') => {
                let first = self.simple(body)?;
                if !self.at(b'|') {
                    return Ok(first);
                }
                let left = self.pair_half(&first)?;
                self.bump()?;
                let second = self.simple(body)?;
                let right = self.pair_half(&second)?;
                Ok(Operand::Pair(left, right))
            }
            Kind::Directive | Kind::Str | Kind::Eof | Kind::Punct(_) => Err(self.expected("an operand")),
        }
    }

    /// A half of `d|p`.
    fn pair_half(&self, operand: &Operand) -> Result<Option<RegId>> {
        match operand {
            Operand::Reg(id) => Ok(Some(*id)),
            Operand::Sink => Ok(None),
            _ => {
                let span = Span { start: self.prev_end, end: self.prev_end };
                Err(self.syntax(span, "both sides of `|` are registers or `_`".into()))
            }
        }
    }

    /// A register, literal, symbol, special register or `_`.
    fn simple(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        match self.tok.kind {
            Kind::Ident => {
                let name = self.bump()?;
                if name.text == "_" {
                    return Ok(Operand::Sink);
                }
                Ok(match self.resolve(body, name)? {
                    Found::Reg(id) => Operand::Reg(id),
                    Found::Special(special) => Operand::Special(special),
                    Found::WarpSize => Operand::Imm(Imm::Int(32)),
                    Found::Symbol(symbol) => Operand::Symbol { symbol, offset: self.offset()? },
                })
            }
            Kind::Number | Kind::Punct(b'-' | b'+') => Ok(Operand::Imm(self.signed_number()?)),
            Kind::Directive | Kind::Str | Kind::Eof | Kind::Punct(_) => Err(self.expected("an operand")),
        }
    }

    /// `[base+offset]`.
    fn address(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        self.bump()?;
        let span = self.tok.span();
        let operand = match self.tok.kind {
            Kind::Ident => {
                let name = self.bump()?;
                let base = match self.resolve(body, name)? {
                    Found::Reg(id) => Base::Reg(id),
                    Found::Symbol(symbol) => Base::Symbol(symbol),
                    Found::Special(_) | Found::WarpSize => {
                        return Err(self.invalid(span, format!("`{}` cannot be an address", name.text)));
                    }
                };
                Operand::Address { base, offset: self.offset()? }
            }
            Kind::Number | Kind::Punct(b'-' | b'+') => match self.signed_number()? {
                Imm::Int(v) => Operand::Address { base: Base::Absolute, offset: v as i64 },
                Imm::F32(_) | Imm::F64(_) => return Err(self.syntax(span, "an address is an integer".into())),
            },
            Kind::Directive | Kind::Str | Kind::Eof | Kind::Punct(_) => {
                return Err(self.expected("an address"));
            }
        };
        self.expect(b']')?;
        Ok(operand)
    }

    fn register(&self, body: &mut Body<'a>, name: Token<'a>) -> Result<RegId> {
        match self.resolve(body, name)? {
            Found::Reg(id) => Ok(id),
            Found::Special(_) | Found::Symbol(_) | Found::WarpSize => {
                Err(self.invalid(name.span(), format!("`{}` is not a register", name.text)))
            }
        }
    }

    fn resolve(&self, body: &mut Body<'a>, name: Token<'a>) -> Result<Found> {
        let text = name.text;
        if let Some(found) = body.lookup(text) {
            return Ok(found);
        }
        if let Some(special) = Some(text).filter(|t| t.starts_with('%')).and_then(Special::from_name) {
            return Ok(Found::Special(special));
        }
        match self.globals.get(text) {
            Some(Global::Variable(index)) => return Ok(Found::Symbol(SymbolRef::Module(VarId(*index)))),
            Some(Global::Function(id)) => return Ok(Found::Symbol(SymbolRef::Function(*id))),
            None => (),
        }
        if text == "WARP_SZ" {
            return Ok(Found::WarpSize);
        }
        if is_other_special(text) || text.contains('.') {
            return Err(self.unsupported(name.span(), text));
        }
        let what = if text.starts_with('%') { "register" } else { "symbol" };
        Err(self.invalid(name.span(), format!("unknown {what} `{text}`")))
    }

    /// Resolves labels and closes the body.
    fn finish(&mut self, mut body: Body<'a>, close: Span) -> Result<Function> {
        let function = &mut body.function;
        let len = function.body.len() as u32;
        // Control must not run past the end, and a label there must have an instruction.
        let closed = match function.body.last() {
            Some(last) => last.guard.is_none() && ends_flow(last.op),
            None => false,
        };
        if !closed || function.labels.iter().any(|(_, at)| *at == len) {
            function.body.push(Instr {
                guard: None,
                op: Op::Ret,
                mods: Mods::default(),
                types: [None; 4],
                operands: Vec::new(),
                span: close,
                spelling: close,
                loc: body.loc,
                used_bytes: None,
            });
        }
        let find = |scope: u32, name: &'a str| {
            let mut scope = scope;
            loop {
                if let Some(target) = body.labels.get(&(scope, name)) {
                    return Some(*target);
                }
                if scope == 0 {
                    return None;
                }
                scope = body.parents[scope as usize];
            }
        };
        for p in &body.pending {
            let found = find(p.scope, p.name.text);
            let operand = match (found, p.want) {
                (Some(Target::Instr(at)), Want::Label) => Operand::Label(at),
                (Some(Target::Branch(i)), Want::Table) => Operand::BranchTable(i),
                (Some(Target::Calls(i)), Want::Signature) => Operand::CallTargets(i),
                (Some(Target::Prototype(i)), Want::Signature) => Operand::Prototype(i),
                (Some(_), _) => {
                    let what = match p.want {
                        Want::Label => "a label in the code",
                        Want::Table => "a `.branchtargets`",
                        Want::Signature => "a `.callprototype` or `.calltargets`",
                    };
                    return Err(self.invalid(p.name.span(), format!("`{}` is not {what}", p.name.text)));
                }
                (None, _) => {
                    return Err(self.invalid(p.name.span(), format!("unknown label `{}`", p.name.text)));
                }
            };
            let instr = &mut function.body[p.instr as usize];
            instr.operands[p.operand as usize] = operand;
        }
        for (i, (scope, names)) in body.tables.iter().enumerate() {
            let mut targets = Vec::with_capacity(names.len());
            for name in names {
                match find(*scope, name.text) {
                    Some(Target::Instr(at)) => targets.push(at),
                    Some(_) | None => {
                        return Err(self.invalid(name.span(), format!("unknown label `{}`", name.text)));
                    }
                }
            }
            function.branch_tables[i].targets = targets;
        }
        for instr in &function.body {
            check::call(instr, function, &self.functions)
                .map_err(|what| self.invalid(instr.spelling, what))?;
        }
        Ok(body.function)
    }
}

/// True for opcodes after which control never goes on to the next instruction (if unguarded).
pub(crate) fn ends_flow(op: Op) -> bool {
    matches!(op, Op::Ret | Op::Exit | Op::Bra | Op::BrxIdx | Op::Trap)
}

/// Special registers that the PTX manual has and [`Special`] does not.
fn is_other_special(text: &str) -> bool {
    let numbered = |prefix: &str| {
        text.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(text, "%tid" | "%ntid" | "%ctaid" | "%nctaid" | "%clusterid" | "%nclusterid")
        || matches!(text, "%cluster_ctaid" | "%cluster_nctaid")
        || numbered("%pm")
        || numbered("%envreg")
}
