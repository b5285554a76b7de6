//! Module-level parsing and what the other parts share: tokens, errors, names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::PtxError;
use crate::forms::Resolved;
use crate::lexer::{Kind, Lexer, Token};
use crate::mods::Space;
use crate::module::{
    FuncId, Function, FunctionKind, Imm, Linkage, Module, Param, Register, Site, Span, Target, Variable,
    Version, line_col,
};

/// Bytes of initialised data that a module may have beyond what its text pays for. Only rows of a
/// nested initialiser that are cut short reach it: their zeros are not in the text.
const INIT_SLACK_BYTES: u64 = 64 << 20;

/// What a module-scope name stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Global {
    Variable(u32),
    Function(FuncId),
}

pub(crate) struct Parser<'a> {
    pub text: &'a str,
    lexer: Lexer<'a>,
    /// The token not yet consumed.
    pub tok: Token<'a>,
    /// End of the token consumed last.
    pub prev_end: u32,
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
    pub globals: HashMap<&'a str, Global>,
    /// `.file` number to index of `files`.
    files_by_number: HashMap<u64, u32>,
    files: Vec<String>,
    /// `.loc` file numbers in order of first use; `Loc::file` is an index into it until the end,
    /// since NVRTC writes `.file` after the functions.
    loc_files: Vec<(u64, Span)>,
    loc_files_by_number: HashMap<u64, u32>,
    pub init_budget: u64,
    pub spellings: HashMap<&'a str, Option<Resolved>>,
    pub version: Version,
}

type Result<T> = std::result::Result<T, PtxError>;

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Result<Parser<'a>> {
        let mut lexer = Lexer::new(text)?;
        let tok = lexer.next()?;
        Ok(Parser {
            text,
            lexer,
            tok,
            prev_end: 0,
            variables: Vec::new(),
            functions: Vec::new(),
            globals: HashMap::new(),
            files_by_number: HashMap::new(),
            files: Vec::new(),
            loc_files: Vec::new(),
            loc_files_by_number: HashMap::new(),
            init_budget: INIT_SLACK_BYTES.saturating_add(text.len() as u64 * 8),
            spellings: HashMap::new(),
            version: Version { major: 0, minor: 0 },
        })
    }

    // Tokens.

    /// Consumes and returns the current token.
    pub fn bump(&mut self) -> Result<Token<'a>> {
        let next = self.lexer.next()?;
        let tok = std::mem::replace(&mut self.tok, next);
        self.prev_end = tok.span().end;
        Ok(tok)
    }

    pub fn at(&self, byte: u8) -> bool {
        self.tok.kind == Kind::Punct(byte)
    }

    pub fn at_directive(&self, text: &str) -> bool {
        self.tok.kind == Kind::Directive && self.tok.text == text
    }

    /// Consumes `byte` if it is next.
    pub fn eat(&mut self, byte: u8) -> Result<bool> {
        let found = self.at(byte);
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    pub fn expect(&mut self, byte: u8) -> Result<Token<'a>> {
        if self.at(byte) { self.bump() } else { Err(self.expected(&format!("`{}`", char::from(byte)))) }
    }

    pub fn ident(&mut self, what: &str) -> Result<Token<'a>> {
        if self.tok.kind != Kind::Ident {
            return Err(self.expected(what));
        }
        let tok = self.bump()?;
        if tok.text.contains('.') {
            return Err(self.syntax(tok.span(), format!("expected {what}, found `{}`", tok.text)));
        }
        Ok(tok)
    }

    /// A non-negative integer.
    pub fn integer(&mut self, what: &str) -> Result<u64> {
        if self.tok.kind != Kind::Number {
            return Err(self.expected(what));
        }
        let tok = self.bump()?;
        match self.number(tok)? {
            Imm::Int(v) => Ok(v),
            Imm::F32(_) | Imm::F64(_) => {
                Err(self.syntax(tok.span(), format!("expected {what}, found `{}`", tok.text)))
            }
        }
    }

    /// A number with its sign.
    pub fn signed_number(&mut self) -> Result<Imm> {
        let mut negative = false;
        while self.at(b'-') || self.at(b'+') {
            negative ^= self.bump()?.text == "-";
        }
        if self.tok.kind != Kind::Number {
            return Err(self.expected("a number"));
        }
        let tok = self.bump()?;
        let value = self.number(tok)?;
        if let Kind::Punct(b'*' | b'/' | b'<' | b'>' | b'&' | b'^' | b'?') = self.tok.kind {
            return Err(self.unsupported(self.tok.span(), "a constant expression"));
        }
        Ok(match (value, negative) {
            (v, false) => v,
            (Imm::Int(v), true) => Imm::Int(v.wrapping_neg()),
            (Imm::F32(v), true) => Imm::F32(v ^ 1 << 31),
            (Imm::F64(v), true) => Imm::F64(v ^ 1 << 63),
        })
    }

    /// The value of a number token.
    pub fn number(&self, tok: Token<'a>) -> Result<Imm> {
        let t = tok.text;
        let bad = |what: &str| self.syntax(tok.span(), format!("`{t}` is not {what}"));
        let int = |digits: &str, radix: u32| {
            let digits = digits.strip_suffix('U').unwrap_or(digits);
            let plain = !digits.is_empty() && digits.bytes().all(|b| char::from(b).is_digit(radix));
            if !plain {
                return Err(bad("a number"));
            }
            u64::from_str_radix(digits, radix).map(Imm::Int).map_err(|_| bad("an integer of at most 64 bits"))
        };
        let hex_float = |digits: &str, len: usize, what: &str| {
            if digits.len() == len && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                u64::from_str_radix(digits, 16).map_err(|_| bad(what))
            } else {
                Err(bad(what))
            }
        };
        let b = t.as_bytes();
        match (b.first(), b.get(1)) {
            (Some(b'0'), Some(b'x' | b'X')) => int(&t[2..], 16),
            (Some(b'0'), Some(b'b' | b'B')) => int(&t[2..], 2),
            (Some(b'0'), Some(b'f' | b'F')) => {
                let bits = hex_float(&t[2..], 8, "`0f` and eight hexadecimal digits")?;
                Ok(Imm::F32(bits as u32))
            }
            (Some(b'0'), Some(b'd' | b'D')) => {
                Ok(Imm::F64(hex_float(&t[2..], 16, "`0d` and sixteen hexadecimal digits")?))
            }
            _ if t.bytes().any(|b| matches!(b, b'.' | b'e' | b'E')) => {
                t.parse::<f64>().map(|v| Imm::F64(v.to_bits())).map_err(|_| bad("a number"))
            }
            (Some(b'0'), Some(b'0'..=b'9')) => int(&t[1..], 8),
            _ => int(t, 10),
        }
    }

    // Errors.

    pub fn syntax(&self, span: Span, what: String) -> PtxError {
        let (line, column) = line_col(self.text, span.start);
        PtxError::Syntax { line, column, what }
    }

    pub fn invalid(&self, span: Span, what: String) -> PtxError {
        let (line, column) = line_col(self.text, span.start);
        PtxError::Invalid { line, column, what }
    }

    /// What Assay does not know; at the very end of the text it was more likely cut there.
    pub fn unsupported(&self, span: Span, spelling: &str) -> PtxError {
        let rest = self.text.get(span.end as usize..).unwrap_or("");
        if matches!(rest.trim_ascii(), "" | ".") {
            return self.syntax(span, format!("the text ends after `{}`", shorten(spelling)));
        }
        let (line, _) = line_col(self.text, span.start);
        PtxError::Unsupported { spelling: shorten(spelling).to_string(), line }
    }

    pub fn expected(&self, what: &str) -> PtxError {
        let found = match self.tok.kind {
            Kind::Eof => "the end of the text".to_string(),
            Kind::Ident | Kind::Directive | Kind::Number | Kind::Str | Kind::Punct(_) => {
                format!("`{}`", shorten(self.tok.text))
            }
        };
        self.syntax(self.tok.span(), format!("expected {what}, found {found}"))
    }

    /// The current token, a directive, is unknown.
    pub fn unknown_directive(&self) -> PtxError {
        self.unsupported(self.tok.span(), self.tok.text)
    }

    // The module.

    pub fn module(mut self) -> Result<Module> {
        if !self.at_directive(".version") {
            return Err(self.expected("`.version`"));
        }
        self.bump()?;
        self.version = self.parse_version()?;
        if !self.at_directive(".target") {
            return Err(self.expected("`.target`"));
        }
        self.bump()?;
        let target = self.parse_target()?;
        let mut address_bits = 32;
        while self.tok.kind != Kind::Eof {
            if self.tok.kind == Kind::Directive && self.tok.text == ".address_size" {
                self.bump()?;
                let span = self.tok.span();
                address_bits = self.integer("32 or 64")?;
                if address_bits != 64 {
                    return Err(self.unsupported(span, &format!(".address_size {address_bits}")));
                }
            } else {
                self.item()?;
            }
        }
        if address_bits != 64 && !self.functions.is_empty() {
            return Err(self.unsupported(Span::default(), "a module without `.address_size 64`"));
        }
        self.link_files()?;
        Ok(Module {
            source: Arc::from(self.text),
            version: self.version,
            target,
            address_bits: 64,
            files: self.files,
            variables: self.variables,
            functions: self.functions,
        })
    }

    fn parse_version(&mut self) -> Result<Version> {
        if self.tok.kind != Kind::Number {
            return Err(self.expected("a version such as `9.0`"));
        }
        let tok = self.bump()?;
        let parts = tok.text.split_once('.');
        let version = parts.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (major, minor) =
            version.ok_or_else(|| self.syntax(tok.span(), format!("`{}` is not a version", tok.text)))?;
        Ok(Version { major, minor })
    }

    fn parse_target(&mut self) -> Result<Target> {
        let start = self.tok.start as usize;
        let first = self.tok;
        let mut sm = None;
        loop {
            let name = self.ident("a target such as `sm_90`")?;
            let digits = name.text.strip_prefix("sm_").or_else(|| name.text.strip_prefix("compute_"));
            if let Some(digits) = digits {
                let digits = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                sm = digits.parse::<u32>().ok();
            }
            if !self.eat(b',')? {
                break;
            }
        }
        let sm = sm.ok_or_else(|| self.syntax(first.span(), "no `sm_` target is named".into()))?;
        Ok(Target { sm, spelling: self.text[start..self.prev_end as usize].to_string() })
    }

    /// One directive at module scope, with all that belongs to it.
    fn item(&mut self) -> Result<()> {
        if self.tok.kind != Kind::Directive {
            return Err(self.expected("a directive"));
        }
        match self.tok.text {
            ".file" => return self.file(),
            ".section" => return self.section(),
            ".pragma" => {
                self.pragma()?;
                return Ok(());
            }
            ".loc" => {
                self.loc()?;
                return Ok(());
            }
            _ => (),
        }
        let linkage = self.linkage()?;
        match self.tok.text {
            ".entry" => self.function(FunctionKind::Entry, linkage),
            ".func" => self.function(FunctionKind::Device, linkage),
            ".global" => self.module_variable(Space::Global, linkage),
            ".const" => self.module_variable(Space::Const, linkage),
            ".shared" => self.module_variable(Space::Shared, linkage),
            ".local" => self.module_variable(Space::Local, linkage),
            _ if self.tok.kind == Kind::Directive => Err(self.unknown_directive()),
            _ => Err(self.expected("a directive")),
        }
    }

    /// Linkage directives, if any.
    pub fn linkage(&mut self) -> Result<Linkage> {
        let linkage = match (self.tok.kind, self.tok.text) {
            (Kind::Directive, ".visible") => Linkage::Visible,
            (Kind::Directive, ".weak") => Linkage::Weak,
            (Kind::Directive, ".extern") => Linkage::Extern,
            (Kind::Directive, ".common") => Linkage::Common,
            _ => return Ok(Linkage::Internal),
        };
        self.bump()?;
        Ok(linkage)
    }

    fn module_variable(&mut self, space: Space, linkage: Linkage) -> Result<()> {
        self.bump()?;
        let mut out = Vec::new();
        self.variable_list(space, linkage, false, &mut out)?;
        for (name, variable) in out {
            self.declare_variable(name, variable)?;
        }
        Ok(())
    }

    /// Adds a module-scope variable; an extern declaration and its definition become one.
    fn declare_variable(&mut self, name: &'a str, variable: Variable) -> Result<()> {
        match self.globals.get(name) {
            None => {
                // Fewer variables than bytes of text, which fit u32.
                let index = self.variables.len() as u32;
                self.globals.insert(name, Global::Variable(index));
                self.variables.push(variable);
                Ok(())
            }
            Some(Global::Variable(index)) => {
                let index = *index as usize;
                let old = &self.variables[index];
                let same = old.space == variable.space && old.ty == variable.ty;
                if !same || !(old.is_extern || variable.is_extern) {
                    return Err(self.invalid(variable.span, format!("`{name}` is already declared")));
                }
                if old.is_extern {
                    self.variables[index] = variable;
                }
                Ok(())
            }
            Some(Global::Function(_)) => {
                Err(self.invalid(variable.span, format!("`{name}` is already declared as a function")))
            }
        }
    }

    fn file(&mut self) -> Result<()> {
        self.bump()?;
        let number = self.integer("a file number")?;
        if self.tok.kind != Kind::Str {
            return Err(self.expected("a file name in quotes"));
        }
        let name = self.bump()?.text;
        while self.eat(b',')? {
            self.integer("a time stamp or file size")?;
        }
        // Fewer files than bytes of text, which fit u32.
        let index = self.files.len() as u32;
        self.files.push(unescape(&name[1..name.len() - 1]));
        self.files_by_number.insert(number, index);
        Ok(())
    }

    /// `.pragma "…";`: hints for the optimiser. Gives the mask of `used_bytes_mask`, which a later one replaces.
    /// Source: PTX ISA, "Pragma Strings".
    pub fn pragma(&mut self) -> Result<Option<u32>> {
        self.bump()?;
        let mut used_bytes = None;
        loop {
            if self.tok.kind != Kind::Str {
                return Err(self.expected("a string"));
            }
            let text = self.bump()?.text.trim_matches('"');
            if let Some(mask) = text.strip_prefix("used_bytes_mask") {
                let mask = mask.trim();
                used_bytes = match mask.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => mask.parse().ok(),
                };
            }
            if !self.eat(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(used_bytes)
    }

    /// `.section name { … }`: debug information, skipped.
    fn section(&mut self) -> Result<()> {
        let start = self.bump()?.span();
        if matches!(self.tok.kind, Kind::Directive | Kind::Ident) {
            self.bump()?;
        }
        self.expect(b'{')?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.tok.kind {
                Kind::Punct(b'{') => depth += 1,
                Kind::Punct(b'}') => depth -= 1,
                Kind::Eof => return Err(self.syntax(start, "`.section` has no end".into())),
                Kind::Ident | Kind::Directive | Kind::Number | Kind::Str | Kind::Punct(_) => (),
            }
            self.bump()?;
        }
        Ok(())
    }

    /// `.loc file line column[, function_name label, inlined_at file line column]`.
    pub fn loc(&mut self) -> Result<(Site, Option<Site>)> {
        self.bump()?;
        let site = self.site()?;
        let mut inlined_at = None;
        while self.eat(b',')? {
            let word = self.ident("`function_name` or `inlined_at`")?;
            match word.text {
                "function_name" => {
                    self.ident("a label")?;
                    if self.eat(b'+')? {
                        self.integer("an offset")?;
                    }
                }
                "inlined_at" => inlined_at = Some(self.site()?),
                _ => {
                    let what = format!("expected `function_name` or `inlined_at`, found `{}`", word.text);
                    return Err(self.syntax(word.span(), what));
                }
            }
        }
        Ok((site, inlined_at))
    }

    fn site(&mut self) -> Result<Site> {
        let span = self.tok.span();
        let number = self.integer("a file number")?;
        let line = self.integer("a line number")?;
        let column = self.integer("a column number")?;
        let small = |v: u64| u32::try_from(v).map_err(|_| self.syntax(span, format!("`{v}` is too large")));
        let (line, column) = (small(line)?, small(column)?);
        let file = match self.loc_files_by_number.get(&number) {
            Some(index) => *index,
            None => {
                // Fewer than bytes of text, which fit u32.
                let index = self.loc_files.len() as u32;
                self.loc_files.push((number, span));
                self.loc_files_by_number.insert(number, index);
                index
            }
        };
        Ok(Site { file, line, column })
    }

    /// Replaces the order of first use in `Loc`s by indices into `files`.
    fn link_files(&mut self) -> Result<()> {
        let mut map = Vec::with_capacity(self.loc_files.len());
        for (number, span) in &self.loc_files {
            let Some(index) = self.files_by_number.get(number) else {
                return Err(
                    self.invalid(*span, format!("`.loc` names file {number}, which no `.file` declares"))
                );
            };
            map.push(*index);
        }
        for function in &mut self.functions {
            for instr in &mut function.body {
                if let Some(loc) = &mut instr.loc {
                    loc.file = map[loc.file as usize];
                    if let Some(site) = &mut loc.inlined_at {
                        site.file = map[site.file as usize];
                    }
                }
            }
        }
        Ok(())
    }

    // Functions.

    fn function(&mut self, kind: FunctionKind, linkage: Linkage) -> Result<()> {
        self.bump()?;
        let mut registers = Vec::new();
        let returns = match kind {
            FunctionKind::Device if self.at(b'(') => self.params(kind, &mut registers)?,
            FunctionKind::Device | FunctionKind::Entry => Vec::new(),
        };
        let name = self.ident("a function name")?;
        let params = if self.at(b'(') { self.params(kind, &mut registers)? } else { Vec::new() };
        let mut function = empty_function(name, kind, linkage, params, returns, registers);
        self.performance(&mut function)?;
        if self.at(b';') || self.at(b'{') {
            let id = self.declare_function(name, &function)?;
            if self.eat(b';')? {
                return Ok(());
            }
            let span = function.span;
            if self.functions[id.index()].has_body {
                return Err(self.invalid(span, format!("`{}` is already defined", name.text)));
            }
            if linkage == Linkage::Extern {
                return Err(self.invalid(span, format!("extern `{}` has a body", name.text)));
            }
            let function = self.body(function)?;
            self.functions[id.index()] = function;
            return Ok(());
        }
        Err(self.expected("`;` or `{`"))
    }

    /// Makes `function` known (without its body), or checks it against an earlier declaration.
    fn declare_function(&mut self, name: Token<'a>, function: &Function) -> Result<FuncId> {
        match self.globals.get(name.text) {
            None => {
                // Fewer functions than bytes of text, which fit u32.
                let id = FuncId(self.functions.len() as u32);
                self.globals.insert(name.text, Global::Function(id));
                self.functions.push(function.clone());
                Ok(id)
            }
            Some(Global::Variable(_)) => {
                Err(self.invalid(name.span(), format!("`{}` is already declared as a variable", name.text)))
            }
            Some(Global::Function(id)) => {
                let id = *id;
                let old = &self.functions[id.index()];
                let same_list = |a: &[Param], b: &[Param]| {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.size_bytes == b.size_bytes)
                };
                if old.kind != function.kind
                    || !same_list(&old.params, &function.params)
                    || !same_list(&old.returns, &function.returns)
                {
                    let what = format!("`{}` was declared before with another signature", name.text);
                    return Err(self.invalid(name.span(), what));
                }
                Ok(id)
            }
        }
    }

    /// Directives between a function's head and its body.
    fn performance(&mut self, function: &mut Function) -> Result<()> {
        while self.tok.kind == Kind::Directive {
            match self.tok.text {
                ".maxntid" => function.max_ntid = Some(self.dimensions()?),
                ".reqntid" => function.req_ntid = Some(self.dimensions()?),
                ".reqnctapercluster" => function.req_nctapercluster = Some(self.dimensions()?),
                ".minnctapersm" => function.min_nctapersm = Some(self.directive_integer()?),
                ".maxnreg" => function.max_nreg = Some(self.directive_integer()?),
                ".maxclusterrank" | ".maxnctapersm" | ".abi_preserve" | ".abi_preserve_control" => {
                    self.directive_integer()?;
                }
                ".noreturn" => {
                    self.bump()?;
                    function.noreturn = true;
                }
                ".explicitcluster" | ".blocksareclusters" => {
                    self.bump()?;
                }
                ".pragma" => {
                    self.pragma()?;
                }
                _ => return Err(self.unknown_directive()),
            }
        }
        Ok(())
    }

    fn directive_integer(&mut self) -> Result<u64> {
        self.bump()?;
        self.integer("an integer")
    }

    fn dimensions(&mut self) -> Result<[u64; 3]> {
        self.bump()?;
        let mut out = [1; 3];
        for (i, slot) in out.iter_mut().enumerate() {
            if i > 0 && !self.eat(b',')? {
                break;
            }
            *slot = self.integer("an integer")?;
        }
        Ok(out)
    }
}

fn empty_function(
    name: Token<'_>,
    kind: FunctionKind,
    linkage: Linkage,
    params: Vec<Param>,
    returns: Vec<Param>,
    registers: Vec<Register>,
) -> Function {
    let param_bytes = params.last().map_or(0, |p| p.offset_bytes.saturating_add(p.size_bytes));
    Function {
        name: name.text.to_string(),
        linkage,
        kind,
        params,
        param_bytes,
        returns,
        registers,
        variables: Vec::new(),
        body: Vec::new(),
        has_body: false,
        branch_tables: Vec::new(),
        call_targets: Vec::new(),
        prototypes: Vec::new(),
        labels: Vec::new(),
        max_ntid: None,
        req_ntid: None,
        min_nctapersm: None,
        max_nreg: None,
        req_nctapercluster: None,
        noreturn: false,
        span: name.span(),
    }
}

/// At most 60 characters of `text`, for messages.
fn shorten(text: &str) -> &str {
    match text.char_indices().nth(60) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The string with `\"` and `\\` resolved; other escapes stay as written (Windows paths).
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' && matches!(chars.peek(), Some('"' | '\\')) {
            out.extend(chars.next());
        } else {
            out.push(c);
        }
    }
    out
}
