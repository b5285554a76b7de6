//! Tokens to a checked program: names resolved, operators looked up, arguments bound.

use super::lexer::{At, Token, tokens};
use crate::array::Scalar;
use crate::error::ProgramError;
use crate::near::{distance, reach};
use crate::op::{Form, Op};
use crate::ops;

/// Deepest nesting of an expression; a text beyond it is refused so that no input can exhaust the stack.
const MAX_DEPTH: u32 = 200;

/// Most calls, operators and indices of one line, for the same reason: a chain of them nests as deep.
const MAX_CALLS: u32 = 400;

/// Index of a value during evaluation. Every binding of a name has its own.
pub(crate) type Slot = usize;

/// What a slot holds before the first line runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    Input,
    Scalar,
    Line,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Scalar(Scalar),
    Text(String),
    None,
    Load(Slot),
    /// Arguments in parameter order; `None` where the default stands.
    Call {
        op: &'static Op,
        line: u32,
        args: Vec<Option<Expr>>,
    },
    Tuple(Vec<Expr>),
    Index {
        of: Box<Expr>,
        at: i64,
        line: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: u32,
    pub(crate) targets: Vec<Slot>,
    pub(crate) value: Expr,
}

/// A parsed reference: every name resolved, every call checked against its operator's signature.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) lines: Vec<Line>,
    /// Name and origin of every slot.
    pub(crate) slots: Vec<(String, Origin)>,
    /// Times that each slot is read by a line.
    pub(crate) reads: Vec<usize>,
}

impl Program {
    /// Parses a reference text; `inputs` are the tensors and `scalars` the numbers (dims included) it may name.
    ///
    /// # Errors
    /// The first fault in the text, with its line and column: bad syntax, unknown names or operators (with the
    /// nearest known name), wrong keywords, missing or surplus arguments, and literal arguments of a wrong kind.
    pub fn parse(text: &str, inputs: &[&str], scalars: &[&str]) -> Result<Program, ProgramError> {
        let mut program = Program { lines: Vec::new(), slots: Vec::new(), reads: Vec::new() };
        for (names, origin) in [(inputs, Origin::Input), (scalars, Origin::Scalar)] {
            for name in names {
                program.slots.push(((*name).to_owned(), origin.clone()));
                program.reads.push(0);
            }
        }
        let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, calls: 0, program };
        parser.lines()?;
        Ok(parser.program)
    }

    /// Names that lines define, in order of their first definition.
    pub fn defined(&self) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        for (name, origin) in &self.slots {
            if *origin == Origin::Line && !out.contains(&name.as_str()) {
                out.push(name);
            }
        }
        out
    }

    /// Names of the inputs and scalars that some line reads.
    pub fn used(&self) -> Vec<&str> {
        self.slots
            .iter()
            .zip(&self.reads)
            .filter(|((_, origin), reads)| *origin != Origin::Line && **reads > 0)
            .map(|((name, _), _)| name.as_str())
            .collect()
    }

    /// Names of the operators called, in order, with repetitions.
    pub fn operators(&self) -> Vec<&'static str> {
        fn walk(e: &Expr, out: &mut Vec<&'static str>) {
            match e {
                Expr::Call { op, args, .. } => {
                    args.iter().flatten().for_each(|a| walk(a, out));
                    out.push(op.name);
                }
                Expr::Tuple(all) => all.iter().for_each(|a| walk(a, out)),
                Expr::Index { of, .. } => walk(of, out),
                Expr::Scalar(_) | Expr::Text(_) | Expr::None | Expr::Load(_) => {}
            }
        }
        let mut out = Vec::new();
        self.lines.iter().for_each(|l| walk(&l.value, &mut out));
        out
    }

    /// The slot that a name means after the last line.
    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        self.slots.iter().rposition(|(n, _)| n == name)
    }
}

struct Parser {
    tokens: Vec<(Token, At)>,
    at: usize,
    depth: u32,
    calls: u32,
    program: Program,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn here(&self) -> At {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> (Token, At) {
        let t = self.tokens[self.at].clone();
        // The last token is `End`, which no rule consumes.
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        t
    }

    fn sign(&mut self, s: &str) -> bool {
        let yes = matches!(self.peek(), Token::Sign(x) if *x == s);
        if yes {
            self.next();
        }
        yes
    }

    fn expect(&mut self, s: &str, after: &str) -> Result<(), ProgramError> {
        if self.sign(s) {
            return Ok(());
        }
        let hint = match self.peek() {
            Token::Sign(".") => {
                "; methods and attributes are not part of the language, write `op(x, …)` as a call".to_owned()
            }
            _ => String::new(),
        };
        Err(self.here().error(format!("expected `{s}` {after}, found {}{hint}", self.peek().words())))
    }

    fn count_call(&mut self, at: At) -> Result<(), ProgramError> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(at.error(format!("more than {MAX_CALLS} operators on one line; use more lines")));
        }
        Ok(())
    }

    fn lines(&mut self) -> Result<(), ProgramError> {
        loop {
            match self.peek() {
                Token::Newline => {
                    self.next();
                }
                Token::End => return Ok(()),
                Token::Name(_) => self.line()?,
                other => {
                    return Err(self.here().error(format!(
                        "a line starts with the name that it defines (`y = …`), found {}",
                        other.words()
                    )));
                }
            }
        }
    }

    fn line(&mut self) -> Result<(), ProgramError> {
        let number = self.here().line;
        self.calls = 0;
        let mut names = Vec::new();
        loop {
            let (token, at) = self.next();
            let Token::Name(name) = token else {
                return Err(at.error(format!("expected a name, found {}", token.words())));
            };
            if matches!(name.as_str(), "True" | "False" | "None" | "inf" | "nan") {
                return Err(at.error(format!("`{name}` is a constant and cannot be defined")));
            }
            if names.contains(&name) {
                return Err(at.error(format!("`{name}` is defined twice on this line")));
            }
            names.push(name);
            if !self.sign(",") {
                break;
            }
        }
        self.expect("=", "after the name")?;
        let value = self.expression()?;
        match self.peek() {
            Token::Newline => {
                self.next();
            }
            Token::End => {}
            other => {
                let hint = match other {
                    Token::Sign(".") => {
                        "; methods and attributes are not part of the language, write `op(x, …)` as a call"
                    }
                    _ => "",
                };
                return Err(self
                    .here()
                    .error(format!("expected the end of the line, found {}{hint}", other.words())));
            }
        }
        // Bound after the value is parsed: `x = relu(x)` reads the earlier `x`.
        let targets = names
            .into_iter()
            .map(|name| {
                self.program.slots.push((name, Origin::Line));
                self.program.reads.push(0);
                self.program.slots.len() - 1
            })
            .collect();
        self.program.lines.push(Line { number, targets, value });
        Ok(())
    }

    fn expression(&mut self) -> Result<Expr, ProgramError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self
                .here()
                .error(format!("expression nested deeper than {MAX_DEPTH}; use more lines")));
        }
        let left = self.sum()?;
        let at = self.here();
        let op = match self.peek() {
            Token::Sign("<") => Some("lt"),
            Token::Sign("<=") => Some("le"),
            Token::Sign(">") => Some("gt"),
            Token::Sign(">=") => Some("ge"),
            Token::Sign("==") => Some("eq"),
            Token::Sign("!=") => Some("ne"),
            _ => None,
        };
        let value = match op {
            None => left,
            Some(op) => {
                self.next();
                let right = self.sum()?;
                self.operator(op, at, vec![left, right])?
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn sum(&mut self) -> Result<Expr, ProgramError> {
        let mut left = self.product()?;
        loop {
            let at = self.here();
            let op = match self.peek() {
                Token::Sign("+") => "add",
                Token::Sign("-") => "sub",
                _ => return Ok(left),
            };
            self.next();
            let right = self.product()?;
            left = self.operator(op, at, vec![left, right])?;
        }
    }

    fn product(&mut self) -> Result<Expr, ProgramError> {
        let mut left = self.unary()?;
        loop {
            let at = self.here();
            let op = match self.peek() {
                Token::Sign("*") => "mul",
                Token::Sign("/") => "div",
                Token::Sign("//") => "floor_divide",
                Token::Sign("%") => "remainder",
                Token::Sign("@") => "matmul",
                _ => return Ok(left),
            };
            self.next();
            let right = self.unary()?;
            left = self.operator(op, at, vec![left, right])?;
        }
    }

    fn unary(&mut self) -> Result<Expr, ProgramError> {
        let at = self.here();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(at.error(format!("expression nested deeper than {MAX_DEPTH}; use more lines")));
        }
        let value = if self.sign("-") {
            match self.unary()? {
                Expr::Scalar(Scalar::Int(i)) => Expr::Scalar(Scalar::Int(i.wrapping_neg())),
                Expr::Scalar(Scalar::Float(x)) => Expr::Scalar(Scalar::Float(-x)),
                other => self.operator("neg", at, vec![other])?,
            }
        } else if self.sign("+") {
            self.unary()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<Expr, ProgramError> {
        let base = self.postfix()?;
        let at = self.here();
        if !self.sign("**") {
            return Ok(base);
        }
        let exponent = self.unary()?;
        self.operator("pow", at, vec![base, exponent])
    }

    fn postfix(&mut self) -> Result<Expr, ProgramError> {
        let mut value = self.atom()?;
        while matches!(self.peek(), Token::Sign("[")) {
            let (_, at) = self.next();
            self.count_call(at)?;
            let negative = self.sign("-");
            let (token, here) = self.next();
            let Token::Int(i) = token else {
                return Err(here.error(format!("an index is an integer, found {}", token.words())));
            };
            self.expect("]", "after the index")?;
            let i = if negative { i.wrapping_neg() } else { i };
            value = Expr::Index { of: Box::new(value), at: i, line: at.line };
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Expr, ProgramError> {
        let (token, at) = self.next();
        match token {
            Token::Int(i) => Ok(Expr::Scalar(Scalar::Int(i))),
            Token::Float(x) => Ok(Expr::Scalar(Scalar::Float(x))),
            Token::Text(s) => Ok(Expr::Text(s)),
            Token::Sign("(") => {
                if self.sign(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let first = self.expression()?;
                if self.sign(")") {
                    return Ok(first);
                }
                self.expect(",", "or `)` in a tuple")?;
                self.tuple(vec![first], ")")
            }
            Token::Sign("[") => self.tuple(Vec::new(), "]"),
            Token::Name(name) if matches!(self.peek(), Token::Sign("(")) => self.call(&name, at),
            Token::Name(name) => self.name(&name, at),
            other => Err(at.error(format!("expected a value, found {}", other.words()))),
        }
    }

    fn tuple(&mut self, mut items: Vec<Expr>, close: &str) -> Result<Expr, ProgramError> {
        loop {
            if self.sign(close) {
                return Ok(Expr::Tuple(items));
            }
            items.push(self.expression()?);
            if !self.sign(",") {
                self.expect(close, "or `,` in a tuple")?;
                return Ok(Expr::Tuple(items));
            }
        }
    }

    fn name(&mut self, name: &str, at: At) -> Result<Expr, ProgramError> {
        match name {
            "True" => return Ok(Expr::Scalar(Scalar::Bool(true))),
            "False" => return Ok(Expr::Scalar(Scalar::Bool(false))),
            "None" => return Ok(Expr::None),
            _ => {}
        }
        if let Some(slot) = self.program.find(name) {
            self.program.reads[slot] += 1;
            return Ok(Expr::Load(slot));
        }
        match name {
            "inf" => Ok(Expr::Scalar(Scalar::Float(f64::INFINITY))),
            "nan" => Ok(Expr::Scalar(Scalar::Float(f64::NAN))),
            _ if ops::find(name).is_some() => {
                Err(at.error(format!("`{name}` is an operator and needs arguments: `{name}(…)`")))
            }
            _ => {
                let known = self.program.slots.iter().map(|(n, _)| n.as_str());
                Err(at.error(format!("unknown name `{name}`{}", suggestion(name, known))))
            }
        }
    }

    fn call(&mut self, name: &str, at: At) -> Result<Expr, ProgramError> {
        let Some(op) = ops::find(name) else {
            let known = ops::OPS.iter().map(|o| o.name);
            return Err(at.error(format!("unknown operator `{name}`{}", suggestion(name, known))));
        };
        self.count_call(at)?;
        self.expect("(", "after the operator")?;
        let mut args: Vec<Option<Expr>> = op.params.iter().map(|_| None).collect();
        let mut given = 0usize;
        let mut keywords = false;
        while !self.sign(")") {
            let here = self.here();
            let keyword = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Token::Name(k), Some((Token::Sign("="), _))) => Some(k.clone()),
                _ => None,
            };
            let index = if let Some(k) = keyword {
                self.next();
                self.next();
                keywords = true;
                op.params.iter().position(|p| p.name == k).ok_or_else(|| {
                    let known = op.params.iter().map(|p| p.name);
                    here.error(format!(
                        "`{name}` has no parameter `{k}`{} (signature: `{}`)",
                        suggestion(&k, known),
                        op.signature()
                    ))
                })?
            } else if keywords {
                return Err(here.error("a positional argument cannot follow a keyword argument"));
            } else if given >= op.params.len() {
                return Err(here.error(format!(
                    "`{name}` takes at most {} arguments (signature: `{}`)",
                    op.params.len(),
                    op.signature()
                )));
            } else {
                given += 1;
                given - 1
            };
            let value = self.expression()?;
            let param = &op.params[index];
            if !param.kind.accepts(form(&value)) {
                return Err(here.error(format!("`{name}` takes {} as `{}`", param.kind.words(), param.name)));
            }
            if args[index].replace(value).is_some() {
                return Err(here.error(format!("`{name}` got `{}` twice", param.name)));
            }
            if !self.sign(",") {
                self.expect(")", "or `,` after an argument")?;
                break;
            }
        }
        if let Some((p, _)) = op.params.iter().zip(&args).find(|(p, a)| p.default.is_none() && a.is_none()) {
            return Err(at.error(format!("`{name}` needs `{}` (signature: `{}`)", p.name, op.signature())));
        }
        Ok(Expr::Call { op, line: at.line, args })
    }

    /// A call that an operator sign stands for.
    fn operator(&mut self, name: &str, at: At, operands: Vec<Expr>) -> Result<Expr, ProgramError> {
        self.count_call(at)?;
        let op = ops::find(name).ok_or_else(|| at.error(format!("operator `{name}` is not supported")))?;
        let mut args: Vec<Option<Expr>> = op.params.iter().map(|_| None).collect();
        for ((slot, value), param) in args.iter_mut().zip(operands).zip(op.params) {
            if !param.kind.accepts(form(&value)) {
                return Err(at.error(format!("`{name}` takes {} as `{}`", param.kind.words(), param.name)));
            }
            *slot = Some(value);
        }
        Ok(Expr::Call { op, line: at.line, args })
    }
}

fn form(e: &Expr) -> Form<'_> {
    match e {
        Expr::Scalar(s) => Form::Scalar(*s),
        Expr::Text(s) => Form::Text(s),
        Expr::None => Form::None,
        Expr::Tuple(_) => Form::Tuple,
        Expr::Load(_) | Expr::Call { .. } | Expr::Index { .. } => Form::Unknown,
    }
}

/// `; did you mean ...` with the nearest known name, where one is near.
fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|k| (distance(name, k), k))
        .filter(|&(d, _)| d <= reach(name))
        .min()
        .map_or(String::new(), |(_, k)| format!("; did you mean `{k}`?"))
}
