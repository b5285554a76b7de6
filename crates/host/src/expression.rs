//! Expressions of host code (see `parser.rs`).

use crate::ast::{Expr, Node, Op, Place, Unary};
use crate::builder::Name;
use crate::fail::Fail;
use crate::lex::{Kind, Tok};
use crate::parser::{MAX_HEIGHT, Parser};
use crate::types::{Elem, Scalar, Ty, Value};
use crate::vocabulary::{ADDITIVE, BINARY, COMPOUND, builtin, forced, limit, number};

/// Runtime calls that change nothing that a plan records; their arguments are not looked at.
const IGNORED_CALLS: [&str; 10] = [
    "cudaFuncSetAttribute",
    "cudaFuncSetCacheConfig",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaDeviceSetCacheConfig",
    "cudaDeviceSetSharedMemConfig",
    "cudaFuncSetSharedMemConfig",
    "cudaDeviceSetLimit",
];

/// A node over parts of at most this height.
fn make(at: u32, below: u16, node: Node) -> Result<Expr, Fail> {
    if below >= MAX_HEIGHT {
        return Err(Fail::unsupported(
            at,
            format!("an expression with more than {MAX_HEIGHT} operators in a row"),
        ));
    }
    Ok(Expr { at, height: below + 1, node })
}

fn tallest(parts: &[Expr]) -> u16 {
    parts.iter().map(|e| e.height).max().unwrap_or(0)
}

fn literal(at: u32, v: &Value) -> Option<Expr> {
    let node = match v {
        Value::Int(v, s) => Node::Int(*v, *s),
        Value::Float(v, s) => Node::Float(*v, *s),
        _ => return None,
    };
    Some(Expr { at, height: 1, node })
}

impl Parser<'_, '_> {
    /// A full expression, commas included.
    pub fn expr(&mut self) -> Result<Expr, Fail> {
        let mut left = self.assignment()?;
        while self.peek_is(",") {
            let at = self.at();
            self.i += 1;
            let right = self.assignment()?;
            left = binary(at, Op::Comma, left, right)?;
        }
        Ok(left)
    }

    /// Comma-separated expressions up to `closer`, which is consumed.
    pub fn list(&mut self, closer: &str) -> Result<Vec<Expr>, Fail> {
        let mut out = Vec::new();
        while !self.peek_is(closer) {
            out.push(self.assignment()?);
            if self.peek_is(",") {
                self.i += 1;
                continue;
            }
            if !self.peek_is(closer) {
                return self.expect(closer).map(|()| out);
            }
        }
        self.i += 1;
        Ok(out)
    }

    /// An expression without commas at its top.
    pub fn assignment(&mut self) -> Result<Expr, Fail> {
        let at = self.at();
        self.b.enter(at)?;
        let e = self.assignment_inner();
        self.b.leave();
        e
    }

    fn assignment_inner(&mut self) -> Result<Expr, Fail> {
        let left = self.ternary()?;
        let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct) else { return Ok(left) };
        let op = match t.text {
            "=" => None,
            text => match COMPOUND.iter().find(|(p, _)| *p == text) {
                Some((_, op)) => Some(*op),
                None => return Ok(left),
            },
        };
        self.i += 1;
        let place = self.place(&left)?;
        let value = self.assignment()?;
        make(t.at, value.height, Node::Assign { place, op, value: Box::new(value), post: false })
    }

    /// The place that an expression names, if it may be assigned to.
    fn place(&self, e: &Expr) -> Result<Place, Fail> {
        match &e.node {
            Node::Slot(s, _) => {
                self.writable(*s, e.at)?;
                Ok(Place::Slot(*s))
            }
            Node::Field(inner, f) => match &inner.node {
                Node::Slot(s, _) => {
                    self.writable(*s, e.at)?;
                    Ok(Place::Field(*s, *f))
                }
                _ => Err(Fail::unsupported(e.at, "an assignment to this")),
            },
            _ => Err(Fail::invalid(e.at, "an assignment to what is no variable, or is constant")),
        }
    }

    fn writable(&self, slot: usize, at: u32) -> Result<(), Fail> {
        let constant = self
            .scopes
            .iter()
            .flat_map(|s| s.values())
            .any(|n| matches!(n, Name::Slot { slot: s, constant: true, .. } if *s == slot));
        if constant { Err(Fail::invalid(at, "an assignment to a `const` variable")) } else { Ok(()) }
    }

    fn ternary(&mut self) -> Result<Expr, Fail> {
        let cond = self.binary(0)?;
        if !self.peek_is("?") {
            return Ok(cond);
        }
        let at = self.at();
        self.i += 1;
        let a = self.assignment()?;
        self.expect(":")?;
        let b = self.assignment()?;
        let below = cond.height.max(a.height).max(b.height);
        make(at, below, Node::Ternary(Box::new(cond), Box::new(a), Box::new(b)))
    }

    /// A value for a template parameter: no `>` at its top.
    pub fn template_value(&mut self) -> Result<Expr, Fail> {
        self.binary(ADDITIVE)
    }

    fn binary(&mut self, min: u8) -> Result<Expr, Fail> {
        let mut left = self.unary()?;
        while let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct && self.split == 0) {
            let Some(&(_, op, level)) = BINARY.iter().find(|(p, ..)| *p == t.text) else { break };
            if level <= min {
                break;
            }
            self.i += 1;
            let at = self.at();
            self.b.enter(at)?;
            let right = self.binary(level);
            self.b.leave();
            left = binary(t.at, op, left, right?)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Fail> {
        let at = self.at();
        self.b.enter(at)?;
        let e = self.unary_inner();
        self.b.leave();
        e
    }

    fn unary_inner(&mut self) -> Result<Expr, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "an expression is missing")) };
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
                let target = self.unary()?;
                return self.step(t, &target, false);
            }
            "&" => {
                self.i += 1;
                let e = self.unary()?;
                return match e.node {
                    Node::Element(..) => Ok(e),
                    _ => Err(Fail::unsupported(t.at, "the address of this")),
                };
            }
            "*" => return Err(Fail::unsupported(t.at, "reading device memory on the host")),
            "(" if self.is_cast() => {
                self.i += 1;
                let (ty, _) = self.parse_type()?;
                let (ty, _) = self.pointers(ty)?;
                self.expect(")")?;
                let e = self.unary()?;
                return cast(t.at, ty, e);
            }
            _ => return self.postfix(),
        };
        self.i += 1;
        let e = self.unary()?;
        make(t.at, e.height, Node::Unary(op, Box::new(e)))
    }

    /// True at the `(` of a C-style cast.
    fn is_cast(&self) -> bool {
        if !self.is_type(1) {
            return false;
        }
        // `(int)` and `(const float*)` are casts, `(int(x))` and `(dim3(x))` are not.
        let mut j = 1;
        while let Some(t) = self.peek_at(j) {
            if t.is(")") {
                return j > 1;
            }
            if t.kind != Kind::Ident && !t.is("*") && !t.is("::") {
                return false;
            }
            j += 1;
        }
        false
    }

    fn step(&mut self, t: Tok<'_>, target: &Expr, post: bool) -> Result<Expr, Fail> {
        let place = self.place(target)?;
        let op = if t.text == "++" { Op::Add } else { Op::Sub };
        let one = Expr { at: t.at, height: 1, node: Node::Int(1, Scalar::I32) };
        Ok(Expr {
            at: t.at,
            height: 2,
            node: Node::Assign { place, op: Some(op), value: Box::new(one), post },
        })
    }

    fn postfix(&mut self) -> Result<Expr, Fail> {
        let mut e = self.primary()?;
        while let Some(t) = self.peek().filter(|t| t.kind == Kind::Punct) {
            match t.text {
                "++" | "--" => {
                    self.i += 1;
                    e = self.step(t, &e, true)?;
                }
                "." => {
                    let field = match self.peek_at(1).map_or("", |t| t.text) {
                        "x" => 0,
                        "y" => 1,
                        "z" => 2,
                        other => return Err(Fail::unsupported(t.at, format!("the member `{other}`"))),
                    };
                    self.i += 2;
                    e = make(t.at, e.height, Node::Field(Box::new(e), field))?;
                }
                "[" => {
                    self.i += 1;
                    let index = self.expr()?;
                    self.expect("]")?;
                    let below = e.height.max(index.height);
                    e = make(t.at, below, Node::Element(Box::new(e), Box::new(index)))?;
                    // Only `&p[i]` computes without reading; the caller took the `&` before it came here.
                    if !self.address_taken() {
                        return Err(Fail::unsupported(t.at, "reading device memory on the host"));
                    }
                }
                "->" => return Err(Fail::unsupported(t.at, "`->`")),
                "(" => return Err(Fail::unsupported(t.at, "a call of this")),
                _ => break,
            }
        }
        Ok(e)
    }

    /// True when the token before the operand that ends here is `&`: the operand is one name and its brackets.
    fn address_taken(&self) -> bool {
        let mut j = self.i;
        let mut depth = 0usize;
        while j > 0 {
            j -= 1;
            let t = &self.b.toks[j];
            if t.is("]") || t.is(")") {
                depth += 1;
            } else if t.is("[") || t.is("(") {
                depth = match depth.checked_sub(1) {
                    Some(d) => d,
                    None => return false,
                };
            } else if depth == 0 && t.kind != Kind::Ident {
                return t.is("&");
            }
        }
        false
    }

    fn primary(&mut self) -> Result<Expr, Fail> {
        let Some(t) = self.peek() else { return Err(Fail::invalid(self.at(), "an expression is missing")) };
        match t.kind {
            Kind::Number => {
                self.i += 1;
                let v = number(t.text).map_err(|e| match e.legal {
                    true => Fail::unsupported(t.at, e.what),
                    false => Fail::invalid(t.at, e.what),
                })?;
                literal(t.at, &v).ok_or_else(|| Fail::unsupported(t.at, format!("`{}` here", t.text)))
            }
            // A message in `assert(x && "…")` is a pointer that is not null.
            Kind::Str | Kind::Spelled => {
                self.i += 1;
                while self.peek().is_some_and(|t| matches!(t.kind, Kind::Str | Kind::Spelled)) {
                    self.i += 1;
                }
                Ok(Expr { at: t.at, height: 1, node: Node::Int(1, Scalar::Bool) })
            }
            Kind::Char => Err(Fail::unsupported(t.at, "a character")),
            Kind::Pasted => Err(Fail::unsupported(t.at, format!("the macro `{}`, which uses `##`", t.text))),
            Kind::Directive => Err(Fail::unsupported(t.at, "a directive")),
            Kind::Punct if t.text == "(" => {
                self.i += 1;
                let e = self.expr()?;
                self.expect(")")?;
                Ok(e)
            }
            Kind::Punct if matches!(t.text, "[" | "{" | "..." | "#" | "@") => {
                Err(Fail::unsupported(t.at, format!("`{}` here", t.text)))
            }
            Kind::Punct => Err(Fail::invalid(t.at, format!("`{}` where a value is expected", t.text))),
            Kind::Ident => self.name(t),
        }
    }

    fn name(&mut self, t: Tok<'_>) -> Result<Expr, Fail> {
        let at = t.at;
        match t.text {
            "sizeof" => return self.size_of(at),
            "nullptr" | "NULL" => {
                self.i += 1;
                return Ok(Expr { at, height: 1, node: Node::Null });
            }
            "static_cast" | "reinterpret_cast" | "const_cast" => {
                self.i += 1;
                self.expect("<")?;
                let (ty, _) = self.parse_type()?;
                let (ty, _) = self.pointers(ty)?;
                self.expect(">")?;
                self.expect("(")?;
                let e = self.expr()?;
                self.expect(")")?;
                return cast(at, ty, e);
            }
            "scratch" if self.peek_at(1).is_some_and(|t| t.is("<")) => return self.scratch(at),
            _ => {}
        }
        if self.is_type(0) {
            return self.functional_cast(at);
        }
        // A path; `std::` and namespaces of this file are looked through.
        let mut name = t.text.to_owned();
        self.i += 1;
        let mut qualified = false;
        while self.peek_is("::") {
            self.i += 1;
            qualified = true;
            let Some(next) = self.peek().filter(|t| t.kind == Kind::Ident) else {
                return Err(Fail::unsupported(at, format!("`{name}::`")));
            };
            next.text.clone_into(&mut name);
            self.i += 1;
        }
        if self.peek_is("(") {
            return self.call(&name, at);
        }
        if self.peek_is("<") && !self.b.functions_named(&name, false).is_empty() {
            return self.call(&name, at);
        }
        if !qualified {
            match self.lookup(&name) {
                Some(Name::Slot { slot, ty, .. }) => {
                    let scalar = if let Ty::Scalar(s) = ty { Some(s) } else { None };
                    return Ok(Expr { at, height: 1, node: Node::Slot(slot, scalar) });
                }
                Some(Name::Constant(v)) => {
                    return literal(at, &v).ok_or_else(|| Fail::unsupported(at, format!("`{name}` here")));
                }
                _ => {}
            }
        }
        if let Some(v) = limit(&name).and_then(|v| literal(at, &v)) {
            return Ok(v);
        }
        if let Some(Name::Constant(v)) = self.b.global(&name, at)? {
            return literal(at, &v).ok_or_else(|| Fail::unsupported(at, format!("`{name}` here")));
        }
        Err(Fail::unsupported(at, format!("the name `{name}`")))
    }

    fn size_of(&mut self, at: u32) -> Result<Expr, Fail> {
        self.i += 1;
        self.expect("(")?;
        if !self.is_type(0) {
            return Err(Fail::unsupported(at, "`sizeof` of anything but a type"));
        }
        let (ty, _) = self.parse_type()?;
        let (ty, _) = self.pointers(ty)?;
        self.expect(")")?;
        let bytes = match &ty {
            Ty::Scalar(s) => Some(u64::from(s.bits() / 8)),
            Ty::Ptr(..) => Some(8),
            Ty::Dim3 => Some(12),
            Ty::Other(name) => Elem::named(name).size,
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| Fail::unsupported(at, format!("`sizeof({ty})`")))?;
        Ok(Expr { at, height: 1, node: Node::Int(i128::from(bytes), Scalar::U64) })
    }

    /// `scratch<T>(n)`.
    fn scratch(&mut self, at: u32) -> Result<Expr, Fail> {
        self.i += 2;
        let (ty, _) = self.parse_type()?;
        let elem = match &ty {
            Ty::Scalar(s) => Elem::named(s.name()),
            Ty::Other(name) => Elem::named(name),
            other => return Err(Fail::unsupported(at, format!("scratch of type `{other}`"))),
        };
        if elem.dtype.is_none() {
            return Err(Fail::unsupported(at, format!("scratch of type `{ty}`")));
        }
        self.expect(">")?;
        self.expect("(")?;
        let len = self.assignment()?;
        self.expect(")")?;
        let name = if self.target.is_empty() { "scratch".to_owned() } else { self.target.clone() };
        make(at, len.height, Node::Scratch { elem, len: Box::new(len), name })
    }

    /// `int(x)`, `dim3(a, b)`, `dim3{a, b}`.
    fn functional_cast(&mut self, at: u32) -> Result<Expr, Fail> {
        let (ty, _) = self.parse_type()?;
        let closer = if self.peek_is("(") {
            ")"
        } else if self.peek_is("{") {
            "}"
        } else {
            return Err(Fail::invalid(at, format!("the type `{ty}` where a value is expected")));
        };
        self.i += 1;
        let args = self.list(closer)?;
        if ty == Ty::Dim3 {
            return self.dim3(args, at);
        }
        match <[Expr; 1]>::try_from(args) {
            Ok([e]) => cast(at, ty, e),
            Err(_) => Err(Fail::unsupported(at, format!("a `{ty}` made of other than one value"))),
        }
    }

    pub fn dim3(&mut self, args: Vec<Expr>, at: u32) -> Result<Expr, Fail> {
        if args.len() > 3 {
            return Err(Fail::invalid(at, format!("a `dim3` has 3 extents, found {}", args.len())));
        }
        make(at, tallest(&args), Node::Dim3(args))
    }

    fn call(&mut self, name: &str, at: u32) -> Result<Expr, Fail> {
        let own = self.b.functions_named(name, false);
        if own.is_empty() {
            return self.foreign_call(name, at);
        }
        // Overloads: by the number of parameters, which is all that is told apart here.
        let open = self.i;
        let template = self.peek_is("<");
        let mut fitting = own.clone();
        if own.len() > 1 {
            if template {
                return Err(Fail::unsupported(at, format!("the overloaded template `{name}`")));
            }
            let close = self.b.pairs.get(open).copied().unwrap_or(0);
            let count = if close > open { self.b.commas(open + 1..close - 1).len() } else { 0 };
            fitting.retain(|&i| {
                let params = self.b.items[i].params.clone().unwrap_or(0..0);
                self.b.commas(params).len() == count
            });
        }
        let [item] = fitting.as_slice() else {
            return Err(Fail::unsupported(at, format!("the overloaded function `{name}`")));
        };
        let item = *item;
        let header = self.b.items[item].header.clone();
        let it = &self.b.items[item];
        if it.device && !self.b.toks[header].iter().any(|t| t.is("__host__")) {
            return Err(Fail::invalid(at, format!("a call of the device function `{name}` from the host")));
        }
        let args = self.template_args(item, name, at)?;
        let f = self.b.instance(item, &args, at)?;
        self.expect("(")?;
        let target = std::mem::take(&mut self.target);
        let values = self.list(")")?;
        self.target = target;
        let want = self.b.program.functions[f].params.len();
        if values.len() != want {
            return Err(Fail::invalid(
                at,
                format!("`{name}` takes {want} arguments, found {}", values.len()),
            ));
        }
        make(at, tallest(&values), Node::Call(f, values))
    }

    /// A function that this file does not define.
    fn foreign_call(&mut self, name: &str, at: u32) -> Result<Expr, Fail> {
        if IGNORED_CALLS.contains(&name) {
            let close = self.b.pairs.get(self.i).copied().filter(|&c| c > self.i && c <= self.end);
            self.i = close.ok_or_else(|| Fail::invalid(at, format!("`{name}(` is never closed")))?;
            return Ok(Expr { at, height: 1, node: Node::Ignored });
        }
        if self.peek_is("<") {
            return Err(Fail::unsupported(at, format!("a call of `{name}`")));
        }
        let known = builtin(name);
        if known.is_none() && !matches!(name, "cudaMemset" | "cudaMemsetAsync" | "assert") {
            return Err(Fail::unsupported(at, format!("a call of `{name}`")));
        }
        self.expect("(")?;
        let args = self.list(")")?;
        let below = tallest(&args);
        if let Some((f, count)) = known {
            if args.len() != count {
                return Err(Fail::invalid(
                    at,
                    format!("`{name}` takes {count} arguments, found {}", args.len()),
                ));
            }
            return make(at, below, Node::Builtin(f, args, forced(name)));
        }
        let mut it = args.into_iter();
        match (name, it.next(), it.next(), it.next()) {
            ("assert", Some(e), None, None) => make(at, below, Node::Assert(Box::new(e))),
            ("cudaMemset" | "cudaMemsetAsync", Some(p), Some(v), Some(n)) => {
                make(at, below, Node::Memset(Box::new(p), Box::new(v), Box::new(n)))
            }
            _ => Err(Fail::invalid(at, format!("`{name}` with these arguments"))),
        }
    }
}

fn binary(at: u32, op: Op, a: Expr, b: Expr) -> Result<Expr, Fail> {
    make(at, a.height.max(b.height), Node::Binary(op, Box::new(a), Box::new(b)))
}

fn cast(at: u32, ty: Ty, e: Expr) -> Result<Expr, Fail> {
    match ty {
        Ty::Scalar(_) | Ty::Ptr(..) | Ty::Void => make(at, e.height, Node::Cast(ty, Box::new(e))),
        other => Err(Fail::unsupported(at, format!("a cast to `{other}`"))),
    }
}
