//! What is known of a file while its host code is parsed: items, instances, constants.
//!
//! Functions are parsed when they are first called, once per set of template arguments; constants at file scope
//! are evaluated when they are first named. `parser.rs` reads single token ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::ast::{Expr, Function, Param, Program};
use crate::fail::Fail;
use crate::interp::constant;
use crate::items::{Item, ItemKind, pairs};
use crate::lex::{Kind, Tok};
use crate::parser::Parser;
use crate::types::{Ty, Value};

/// Nesting of statements, parentheses and instantiations together; keeps the stack small.
const MAX_NESTING: usize = 100;
/// Functions and instances of function templates that one `launch` may reach.
const MAX_FUNCTIONS: usize = 200;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    Slot { slot: usize, ty: Ty, constant: bool },
    Constant(Value),
    Type(String),
}

/// One template parameter of a function or kernel.
#[derive(Clone, Debug)]
pub(crate) struct TemplateParam {
    pub name: String,
    /// A type parameter; otherwise a value of type `ty`.
    pub is_type: bool,
    pub ty: Option<Ty>,
    pub default: Option<Range<usize>>,
    pub pack: bool,
}

/// A template argument: its spelling in a name expression, and what the parameter stands for.
#[derive(Clone, Debug)]
pub(crate) struct TemplateArg {
    pub text: String,
    pub meaning: Name,
}

/// The file, its items, and what has been built from it so far.
pub(crate) struct Builder<'a> {
    pub toks: Vec<Tok<'a>>,
    pub pairs: Vec<usize>,
    pub items: Vec<Item>,
    pub program: Program,
    /// Instance name to function number.
    instances: BTreeMap<String, usize>,
    /// Constants at file scope; `None` while one is being evaluated.
    globals: BTreeMap<String, Option<Name>>,
    pub kernels: BTreeSet<String>,
    /// Items that `launch` reaches, for the normalised text.
    pub used: BTreeSet<usize>,
    nesting: usize,
}

impl<'a> Builder<'a> {
    pub fn new(toks: Vec<Tok<'a>>, items: Vec<Item>) -> Builder<'a> {
        let pairs = pairs(&toks);
        Builder {
            toks,
            pairs,
            items,
            program: Program::default(),
            instances: BTreeMap::new(),
            globals: BTreeMap::new(),
            kernels: BTreeSet::new(),
            used: BTreeSet::new(),
            nesting: 0,
        }
    }

    /// Function items of that name that have a body; kernels or not.
    pub fn functions_named(&self, name: &str, kernel: bool) -> Vec<usize> {
        let is = |item: &Item| {
            item.kind == ItemKind::Function
                && item.kernel == kernel
                && item.name.is_some_and(|n| self.toks[n].text == name)
        };
        (0..self.items.len()).filter(|&i| is(&self.items[i]) && self.items[i].body.is_some()).collect()
    }

    /// The function number of an instance, parsed on first use.
    pub fn instance(&mut self, item: usize, args: &[TemplateArg], at: u32) -> Result<usize, Fail> {
        let it = self.items[item].clone();
        let base = it.name.map_or("", |n| self.toks[n].text);
        let name = instance_name(base, args);
        // Overloads differ by item, not by name.
        let key = format!("{name}#{item}");
        if let Some(&f) = self.instances.get(&key) {
            return Ok(f);
        }
        if self.program.functions.len() >= MAX_FUNCTIONS {
            return Err(Fail::unsupported(at, format!("more than {MAX_FUNCTIONS} host functions")));
        }
        let (Some(params), Some(body), Some(name_at)) = (it.params.clone(), it.body.clone(), it.name) else {
            return Err(Fail::unsupported(at, format!("a call of `{base}`, which has no body here")));
        };
        self.used.insert(item);
        let number = self.program.functions.len();
        self.instances.insert(key, number);
        self.program.functions.push(Function {
            name,
            params: Vec::new(),
            returns: Ty::Void,
            slots: 0,
            body: Vec::new(),
            at: self.toks[name_at].at,
        });
        let mut scope = BTreeMap::new();
        if let Some(t) = &it.template {
            for (p, a) in self.template_params(t.clone())?.iter().zip(args) {
                scope.insert(p.name.clone(), a.meaning.clone());
            }
        }
        // The return type: what stands between the template head and the name.
        let head = it.template.as_ref().map_or(it.range.start, |t| t.end + 1);
        let mut p = Parser::new(self, head..name_at, vec![scope.clone()]);
        let (ty, _) = p.parse_type()?;
        let returns = p.pointers(ty)?.0;
        let params = self.params(params, &scope)?;
        let f = &mut self.program.functions[number];
        f.params.clone_from(&params);
        f.returns = returns;
        let mut p = Parser::new(self, body, vec![scope]);
        p.scopes.push(BTreeMap::new());
        for param in &params {
            p.declare(&param.name, param.ty.clone(), false);
        }
        let body = p.statements()?;
        let slots = p.slots;
        let f = &mut self.program.functions[number];
        f.body = body;
        f.slots = slots;
        Ok(number)
    }

    /// Parses a parameter list.
    fn params(&mut self, range: Range<usize>, scope: &BTreeMap<String, Name>) -> Result<Vec<Param>, Fail> {
        let mut out = Vec::new();
        for part in self.commas(range) {
            if part.len() == 1 && self.toks[part.start].is("void") {
                continue;
            }
            let at = self.toks.get(part.start).map_or(0, |t| t.at);
            let mut p = Parser::new(self, part, vec![scope.clone()]);
            let (ty, is_const) = p.parse_type()?;
            if p.peek_is("&") {
                // `const T&` of a value is a copy for our purposes; `T&` would write through.
                if !is_const {
                    return Err(Fail::unsupported(at, "a parameter by reference"));
                }
                p.i += 1;
            }
            let (ty, _) = p.pointers(ty)?;
            let name = p.peek().filter(|t| t.kind == Kind::Ident).map_or("", |t| t.text).to_owned();
            let name_at = p.peek().map_or(at, |t| t.at);
            if p.toks_left() > 1 && p.peek_at(1).is_some_and(|t| t.is("[")) {
                return Err(Fail::unsupported(at, "an array parameter"));
            }
            if matches!(ty, Ty::Other(_) | Ty::Auto) {
                return Err(Fail::unsupported(at, format!("a parameter of type `{ty}`")));
            }
            out.push(Param { name, ty, at: name_at });
        }
        Ok(out)
    }

    /// Splits a token range at its top-level commas; an empty range has no parts.
    pub fn commas(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut start = range.start;
        let mut angle = 0usize;
        let mut j = range.start;
        while j < range.end {
            let t = &self.toks[j];
            let close = self.pairs.get(j).copied().unwrap_or(0);
            if t.kind == Kind::Punct && close > j && close <= range.end {
                j = close;
                continue;
            }
            match t.text {
                "<" if t.kind == Kind::Punct => angle += 1,
                ">" | ">>" if t.kind == Kind::Punct => angle = angle.saturating_sub(t.text.len()),
                "," if t.kind == Kind::Punct && angle == 0 => {
                    parts.push(start..j);
                    start = j + 1;
                }
                _ => {}
            }
            j += 1;
        }
        if start < range.end {
            parts.push(start..range.end);
        }
        parts
    }

    /// The parameters inside `template<…>`.
    pub fn template_params(&mut self, range: Range<usize>) -> Result<Vec<TemplateParam>, Fail> {
        let mut out: Vec<TemplateParam> = Vec::new();
        for part in self.commas(range) {
            let at = self.toks[part.start].at;
            let eq = part.clone().find(|&j| self.toks[j].is("="));
            let head = part.start..eq.unwrap_or(part.end);
            let default = eq.map(|e| e + 1..part.end);
            let is_type = matches!(self.toks[part.start].text, "typename" | "class");
            let pack = head.clone().any(|j| self.toks[j].is("..."));
            let last = head.end.checked_sub(1).filter(|&j| j > head.start).map(|j| self.toks[j]);
            let name = last.filter(|t| t.kind == Kind::Ident).map_or("", |t| t.text).to_owned();
            let ty = if is_type {
                None
            } else if self.toks[part.start].is("template") {
                return Err(Fail::unsupported(at, "a template template parameter"));
            } else {
                let known: BTreeMap<String, Name> = BTreeMap::new();
                let mut p = Parser::new(self, head, vec![known]);
                p.parse_type().ok().map(|(t, _)| t)
            };
            out.push(TemplateParam { name, is_type, ty, default, pack });
        }
        Ok(out)
    }

    /// The types of a kernel's parameters under its template arguments; `None` for those that host code cannot
    /// know (a struct, a parameter of a deduced type).
    pub fn kernel_params(&mut self, item: usize, args: &[TemplateArg]) -> Result<Vec<Option<Ty>>, Fail> {
        let it = self.items[item].clone();
        let mut scope = BTreeMap::new();
        if let Some(t) = &it.template {
            for (p, a) in self.template_params(t.clone())?.iter().zip(args) {
                scope.insert(p.name.clone(), a.meaning.clone());
            }
        }
        let Some(range) = it.params else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        for part in self.commas(range) {
            if part.len() == 1 && self.toks[part.start].is("void") {
                continue;
            }
            let mut p = Parser::new(self, part, vec![scope.clone()]);
            let ty = p.parse_type().and_then(|(ty, _)| p.pointers(ty)).map(|(ty, _)| ty);
            out.push(ty.ok().filter(|ty| matches!(ty, Ty::Scalar(_) | Ty::Ptr(..))));
        }
        Ok(out)
    }

    /// A constant at file scope, evaluated on first use; `None` when no such constant is declared.
    pub fn global(&mut self, name: &str, at: u32) -> Result<Option<Name>, Fail> {
        match self.globals.get(name) {
            Some(Some(known)) => return Ok(Some(known.clone())),
            Some(None) => return Err(Fail::invalid(at, format!("`{name}` is defined by itself"))),
            None => {}
        }
        let declares = |item: &Item| {
            item.kind != ItemKind::Record
                && item.body.is_none()
                && item.constant
                && !item.device
                && item.range.clone().any(|j| self.toks[j].kind == Kind::Ident && self.toks[j].text == name)
        };
        let candidates: Vec<usize> = (0..self.items.len()).filter(|&i| declares(&self.items[i])).collect();
        for index in candidates {
            self.globals.insert(name.to_owned(), None);
            let range = self.items[index].range.clone();
            let mut p = Parser::new(self, range, vec![BTreeMap::new()]);
            let found = p.global_declaration(name);
            match found {
                Ok(Some(value)) => {
                    self.used.insert(index);
                    self.globals.insert(name.to_owned(), Some(Name::Constant(value.clone())));
                    return Ok(Some(Name::Constant(value)));
                }
                Ok(None) => {
                    self.globals.remove(name);
                }
                Err(e) => {
                    self.globals.remove(name);
                    return Err(e);
                }
            }
        }
        Ok(None)
    }

    pub fn enter(&mut self, at: u32) -> Result<(), Fail> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Fail::unsupported(at, format!("code nested more than {MAX_NESTING} deep")));
        }
        Ok(())
    }

    pub fn leave(&mut self) {
        self.nesting = self.nesting.saturating_sub(1);
    }
}

/// `k<float,256>`.
pub(crate) fn instance_name(base: &str, args: &[TemplateArg]) -> String {
    if args.is_empty() {
        return base.to_owned();
    }
    let texts: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
    format!("{base}<{}>", texts.join(","))
}

/// The value of a constant expression, converted to `ty`.
pub(crate) fn constant_as(program: &Program, e: &Expr, ty: &Ty) -> Option<Value> {
    let v = constant(program, e)?;
    match ty {
        Ty::Auto => v.scalar().map(|_| v),
        Ty::Scalar(s) => v.to_scalar(*s),
        _ => None,
    }
}
